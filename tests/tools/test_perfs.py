# SPDX-License-Identifier: GPL-2.0-only
"""What "perf script" of several versions prints of one recording, read back. It is made here, as
perf writes it into a pipe, so that each sample is known."""
import io
import itertools
import os
import random
import struct
import subprocess
from collections import namedtuple

import pytest
from lines import TOP, built
import knc_script

MMAP2, COMM, EXIT, SAMPLE, ATTR = 10, 3, 4, 9, 64
USER = 2                                 # PERF_RECORD_MISC_USER
USER_CALLERS = 2 ** 64 - 512             # PERF_CONTEXT_USER
EXCLUDE_KERNEL_AND_HV, SAMPLE_ID_ALL = 3 << 5, 1 << 18
IP, TID, TIME, CALLCHAIN, CPU, PERIOD = (1 << bit for bit in (0, 1, 2, 5, 7, 8))

# (process, thread): name. One has ended before its last samples.
TASKS = {(137, 137): "workload", (137, 138): "workload", (4194303, 4194303): "a b",
         (22, 22): "1st", (5, 5): "x:y", (77777, 77777): "kworker/0:1-ev"}
ENDED = 137, 138
Known = namedtuple("Known", "task cpu time period chain has_ended")
OPTIONAL = "comm", "tid", "pid", "cpu", "time", "period"


def record(kind, *fields):
    """A record of 8-byte words; pairs are two 4-byte ones, text is padded"""
    body = b"".join(field + b"\0" * (-len(field) % 8) if isinstance(field, bytes) else
                    struct.pack("<II", *field) if isinstance(field, tuple) else
                    struct.pack("<Q", field) for field in fields)
    return struct.pack("<IHH", kind, USER, 8 + len(body)) + body


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


def recording(known, has_callers, tasks=None, program="/bin/a b", offset=0x400000):
    """perf.data of samples of this program, whose bytes from @offset on are mapped at 0x400000"""
    kinds = IP | TID | TIME | CPU | PERIOD | CALLCHAIN * has_callers
    yield struct.pack("<8sQ", b"PERFILE2", 16)
    # instructions
    yield record(ATTR, (0, 128), 1, 100000, kinds, 0, EXCLUDE_KERNEL_AND_HV | SAMPLE_ID_ALL,
                 b"\0" * 80, 0)
    for task, name in (tasks or TASKS).items():
        # The end of each record that is no sample: task, time and CPU
        yield record(COMM, task, name.encode() + b"\0", task, 1, (0, 0))
        # perf 6.1 prints a caller's place in the file: the same number.
        yield record(MMAP2, task, 0x400000, 0x200000, offset, (8, 1), 77, 0, (5, 2),
                     program.encode() + b"\0", task, 2, (0, 0))
    has_ended = False
    for one in known:
        if one.has_ended > has_ended:
            has_ended, time = True, one.time - 1
            yield record(EXIT, (ENDED[0], 1), (ENDED[1], 1), time, ENDED, time, (0, 0))
        chain = [len(one.chain) + 1, USER_CALLERS, *one.chain] if has_callers else []
        yield record(SAMPLE, one.chain[0], one.task, one.time, (one.cpu, 0), one.period, *chain)


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
