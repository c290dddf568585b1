# SPDX-License-Identifier: GPL-2.0-only
"""perf.data, as perf record writes it into a pipe, of samples that are known"""
import struct
from collections import namedtuple

MMAP2, COMM, EXIT, SAMPLE, ATTR, FINISHED_ROUND = 10, 3, 4, 9, 64, 68
USER = 2                                 # PERF_RECORD_MISC_USER
USER_CALLERS = 2 ** 64 - 512             # PERF_CONTEXT_USER
EXCLUDE_KERNEL_AND_HV, SAMPLE_ID_ALL = 3 << 5, 1 << 18
IP, TID, TIME, CALLCHAIN, CPU, PERIOD = (1 << bit for bit in (0, 1, 2, 5, 7, 8))

# (process, thread): name. One has ended before its last samples.
TASKS = {(137, 137): "workload", (137, 138): "workload", (4194303, 4194303): "a b",
         (22, 22): "1st", (5, 5): "x:y", (77777, 77777): "kworker/0:1-ev"}
ENDED = 137, 138
Known = namedtuple("Known", "task cpu time period chain has_ended")


def record(kind, *fields):
    """A record of 8-byte words; pairs are two 4-byte ones, text is padded"""
    body = b"".join(field + b"\0" * (-len(field) % 8) if isinstance(field, bytes) else
                    struct.pack("<II", *field) if isinstance(field, tuple) else
                    struct.pack("<Q", field) for field in fields)
    return struct.pack("<IHH", kind, USER, 8 + len(body)) + body


def recording(known, has_callers, tasks=TASKS, program="/bin/a b", offset=0x400000):
    """perf.data of samples of this program, whose bytes from @offset on are mapped at 0x400000"""
    kinds = IP | TID | TIME | CPU | PERIOD | CALLCHAIN * has_callers
    yield struct.pack("<8sQ", b"PERFILE2", 16)
    # instructions
    yield record(ATTR, (0, 128), 1, 100000, kinds, 0, EXCLUDE_KERNEL_AND_HV | SAMPLE_ID_ALL,
                 b"\0" * 80, 0)
    for task, name in tasks.items():
        # The end of each record that is no sample: task, time and CPU
        yield record(COMM, task, name.encode() + b"\0", task, 1, (0, 0))
        # perf 6.1 prints a caller's place in the file: the same number.
        yield record(MMAP2, task, 0x400000, 0x200000, offset, (8, 1), 77, 0, (5, 2),
                     program.encode() + b"\0", task, 2, (0, 0))
    has_ended = False
    for at, one in enumerate(known, 1):
        if one.has_ended > has_ended:
            has_ended, time = True, one.time - 1
            yield record(EXIT, (ENDED[0], 1), (ENDED[1], 1), time, ENDED, time, (0, 0))
        chain = [len(one.chain) + 1, USER_CALLERS, *one.chain] if has_callers else []
        yield record(SAMPLE, one.chain[0], one.task, one.time, (one.cpu, 0), one.period, *chain)
        if not at % 10000:
            yield record(FINISHED_ROUND)
