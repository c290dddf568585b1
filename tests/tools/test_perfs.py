# SPDX-License-Identifier: GPL-2.0-only
"""What "perf script" of several versions prints of one recording, read back"""
import io
import itertools
import os
import random
import subprocess

import pytest
from lines import TOP, built
import knc_script
from recordings import ENDED, TASKS, Known, recording

OPTIONAL = "comm", "tid", "pid", "cpu", "time", "period"


def draw_samples(seed):
    draw, time, known = random.Random(seed), 12 * 10 ** 9, []
    for at in range(40):
        time += draw.randrange(10 ** 3, 10 ** 9)
        has_ended = at >= 36
        task = ENDED if has_ended else draw.choice([*TASKS])
        known.append(Known(task, draw.randrange(240), time,
                           draw.choice((1, 137, 99999, 100000, 2 ** 31, 12345678901)),
                           [0x401000 + 64 * at + draw.randrange(64) for _ in range(draw.randrange(1, 5))],  # all differ
                           has_ended))
    return known


def name_of(one, fields, version):
    """From perf 6.12 on an ended task is its number: known where this is printed"""
    is_number = one.has_ended and version >= (6, 12) and "tid" not in fields
    return (f":{one.task[1]}" if is_number else TASKS[one.task]) if "comm" in fields else None


@pytest.mark.parametrize("has_callers", (False, True), ids=("flat", "callers"))
@pytest.mark.parametrize("which", ("perf", os.environ.get("TEST_PERF", "perf-6.12")))
def test_perf_prints(which, has_callers):
    """Each choice of columns says the same of the same samples"""
    perf = which if which == "perf" else built("fetch-program", which)
    version = subprocess.check_output([perf, "--version"], text=True).split()[-1]
    version = (*map(int, version.split(".")[:2]),)
    known = draw_samples(os.environ.get("TEST_SEED", "1"))
    data = b"".join(recording(known, has_callers))
    for chosen in itertools.product((False, True), repeat=len(OPTIONAL)):
        fields = [*itertools.compress(OPTIONAL, chosen), "event", "ip", "sym", "dso"]
        text = subprocess.check_output([perf, "script", "-i", "-", "-F", ",".join(fields)],
                                       input=data)
        reader = knc_script.Reader(io.TextIOWrapper(io.BytesIO(text), encoding="utf-8"))
        got = [(one.comm, one.event, one.weight,
                [frame.address and int(frame.address, 16) for frame in one.frames])
               for one in reader]
        assert got == [(name_of(one, fields, version), "instructions:u",
                        one.period if "period" in fields else 1,
                        one.chain if has_callers else one.chain[:1]) for one in known], fields
        assert not [*reader.says()], fields


def test_bench_tools():
    said = subprocess.check_output([f"{TOP}/scripts/bench-tools", "500"])
    assert said.count(b" MiB\n") == 8, said
