# SPDX-License-Identifier: GPL-2.0-only
"""For how much of its time a program had two of its threads on one core: there each of them counts
what the core does. perf records the switches of its threads in a run, or turn, of their own.
"""
import collections
import re
import tempfile

from knc_card import read_topology
from knc_perf import captured

# "sh 21166 [001] 15261.063600: PERF_RECORD_SWITCH OUT"
RECORD = re.compile(r".*\s(?P<tid>\d+)\s+\[(?P<cpu>\d+)\]\s+(?P<time>\d+\.\d+): "
                    r"PERF_RECORD_(?P<what>SWITCH IN|SWITCH OUT|COMM exec|EXIT|LOST)")


class Unknown(Exception):
    """It could not be recorded, and why."""


def spans(lines):
    """(CPU, from, to) of each time that a thread ran. One that is first seen when it leaves its CPU
    was on it from the beginning, and one that does not leave it was there until the end.
    """
    running, known, first, last = {}, set(), None, 0.0
    for found in filter(None, map(RECORD.match, lines)):
        tid, cpu, last, what = found["tid"], int(found["cpu"]), float(found["time"]), found["what"]
        first = last if first is None else first
        if what == "LOST":
            raise Unknown("perf has lost records of it")
        if what in ("SWITCH OUT", "EXIT"):
            if tid in running or tid not in known:
                yield (*running.pop(tid, (cpu, first)), last)
        elif what == "SWITCH IN" or tid not in known:
            running[tid] = cpu, last
        known.add(tid)
    yield from ((cpu, since, last) for cpu, since in running.values())


def share(found, places):
    """The part of the time in which a core was busy in which it had two threads and more"""
    edges = collections.defaultdict(list)
    for cpu, begin, end in found:
        edges[places.get(cpu, (0, 0))[0]] += [(begin, 1), (end, -1)]
    busy = shared = 0.0
    for of_core in edges.values():
        threads, before = 0, 0.0
        for time, change in sorted(of_core):
            busy += (time - before) * (threads > 0)
            shared += (time - before) * (threads > 1)
            threads, before = threads + change, time
    if not busy:
        raise Unknown("perf has recorded no switch of its threads")
    return shared / busy


def measure(args, record, cpuinfo):
    """Run it once more, by record(), for share()"""
    with tempfile.TemporaryDirectory(prefix="knc-metrics.") as folder:
        data = f"{folder}/perf.data"
        why = record(args, data, "-e", "dummy:u", "--sample-cpu", "--switch-events")
        if why:
            raise Unknown(why)
        done = captured(["perf" if args.remote else args.perf[0], "script", "-i", data, "--ns",
                         "-F", "comm,tid,cpu,time", "--show-switch-events", "--show-task-events",
                         "--show-lost-events"])
    if done.returncode:
        raise Unknown(done.stderr.strip().split("\n")[0])
    return share(spans(done.stdout.split("\n")), read_topology(cpuinfo))
