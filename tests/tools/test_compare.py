# SPDX-License-Identifier: GPL-2.0-only
"""Two results compared: how often chance is taken for a change, and a change for chance."""
import math
import os
import random
import re
from functools import partial

import pytest
from test_tools import Run, as_json, near
from knc_compare import PAIRS, Difference, how_sure, note_changes

# So many pairs of results, of so many runs each; changes are of so many standard deviations.
COMPARED, RUNS, CHANGE = 2000, 5, 2.5


def skewed(draw):
    """Log-normal, with a standard deviation of 1"""
    return math.exp(draw.gauss(0, 0.8)) / 1.25


@pytest.mark.parametrize("noise", ("normal", "skewed", "one-outlier"))
def test_compare_found(noise):
    """A/A is called different in 5 of 100 at most; a change is found, whichever has the outlier"""
    draw = random.Random(noise)
    one = partial(skewed if noise == "skewed" else lambda draw: draw.gauss(0, 1), draw)
    false = found = inside = large = 0
    for at in range(COMPARED):
        both = [[one() for _ in range(RUNS)] for _ in range(2)]
        if noise == "one-outlier":
            both[at % 2][0] = 20 + draw.random()
        alike = Difference(*both)
        false += alike.is_sure()
        inside += alike.low <= 0 <= alike.high
        found += Difference(both[0], [value + CHANGE for value in both[1]]).is_sure()
        large += Difference(both[0], [value + alike.seen for value in both[1]]).is_sure()
    assert false <= 0.05 * COMPARED and inside == COMPARED - false, (false, inside)
    assert found > 0.8 * COMPARED, found
    # What is said to be found is found, though one result says it of another one.
    assert 0.6 * COMPARED < large, large


def test_compare_sizes():
    """Few runs say nothing, and many find little; outliers do not hide it; pairs have what is common"""
    draw = random.Random(1)
    assert not Difference([1, 1, 1], [2, 2, 2]).is_sure() and Difference([1] * 4, [2] * 4).is_sure()
    for runs in 30, 100:
        before, after = ([draw.gauss(middle, 0.01) for _ in range(runs)] for middle in (0.5, 0.525))
        before[:2] = 0.7, 0.9
        d = Difference(before, after)
        assert d.is_sure() and 0.015 < d.low < d.high < 0.035 and d.aside == [0.7, 0.9], (d.low, d.high)
    # An outlier that is nearer to the other result than to its own
    assert Difference([0.48, 0.5, 0.5, 0.52, 0.7], [0.57, 0.58, 0.585, 0.6, 0.605]).is_sure()
    drift = [10 * n for n in range(PAIRS)]
    before, after = ([n + shift + draw.gauss(0, 0.1) for n in drift] for shift in (0, 1))
    assert not Difference(before, after).is_sure() and Difference(before, after, True).is_sure()
    assert not Difference(before, [n + draw.choice((-1, 1)) for n in before], True).is_sure()


def test_compare_small():
    """What the start of a program, and its name, make is no difference to act on"""
    assert not Difference([1e6] * 5, [1e6 + 90] * 5).is_sure() and Difference([1e6] * 5, [1e6 + 110] * 5).is_sure()
    assert Difference([500] * 5, [511] * 5).is_sure() and not Difference([500] * 5, [509] * 5, few=10).is_sure()
    # 100 of BRANCHES_MISPREDICTED, in percent; of BRANCHES they are less than a digit
    counts = {"BRANCHES": 10 ** 8, "BRANCHES_MISPREDICTED": 50000}
    m = as_json("-M branch_mispredict_ratio", counts=counts).json()["metrics"][0]
    assert m["few"] == near(1e-4 + 100 * (0.0005 - 50000 / (10 ** 8 + 100))), m
    alike = {**m, "value": m["value"] + 9e-5, "values": [m["value"] + 9e-5] * 5, "min": 0}
    note_changes([{**m, "values": [m["value"]] * 5}], [alike])
    assert not alike["difference"].is_sure() and "name, addresses and environment" in how_sure(alike), alike


def test_compare_in_turn():
    """A B B A, each with its own counts, and one sentence of the whole"""
    words = "-r 4 -M l1_l2_bytes --versus", "./other 'a b'"
    fake = {"grow": 1, "counts": {"DATA_READ_MISS_OR_WRITE_MISS": 10, "DATA_CACHE_LINES_WRITTEN_BACK": 0}}
    run = as_json(*words, **fake)
    assert [call.partition("-- ")[2] for call in run.calls()] == \
        ["./other a b", "./program", "./program", "./other a b"] * 2, run.err
    before, after = run.json()
    assert (before["command"], after["command"]) == (["./other", "a b"], ["./program"])
    assert before["metrics"][0]["values"] == near([64 * (10 + 2 * n) for n in (0, 3, 4, 7)])
    context = {**before["context"], "date": re.sub(r"\d", "9", before["context"]["date"])[:19]}
    assert context.pop("driver") and context == {
        "machine": os.uname().nodename, "kernel": os.uname().release, "perf": "perf version 6.0",
        "emulated": False, "user": False, "turns": False, "pmu": "cpu", "date": "9999-99-99 99:99:99"}
    run = Run(*words, seconds=[1, 1.05] * 4, **fake)
    run.ends(0, "No metric differs by more than chance does.", "not different: ")
    assert "the runs took" not in run.err, run.err
    Run(*words, seconds=[1, 1, 1, 3] * 2, **fake).ends(
        0, "before: ! the runs took 1.000000 to 3.000000 seconds")
