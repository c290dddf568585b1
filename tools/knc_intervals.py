# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of each interval: knc-metrics -I.

Each run, or turn, has the intervals of one pair of events, and the metrics that this pair gives. The
events of a metric that takes more have a run of their own, in which they take turns.
"""
import collections
import os
import signal
import subprocess
import threading
import types

import knc_perf
import knc_places
from knc_runs import Counts, Failed, Plan, Result, Said, as_named, \
    countables, events_of, held, plan_runs, rewind, settle, spoken, target, until_end

# Another machine's perf cannot have a descriptor of ours: there its report has the standard
# output, and the program's output goes to standard error.
WRAPPED = ["sh", "-c", 'exec "$@" 3>&1 >&2', "sh"]


def lines_of(chunks):
    rest = b""
    for data in chunks:
        *lines, rest = (rest + data).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)


class Stream:
    """perf stat -I of a run: an iterator of intervals, as they come"""

    def __init__(self, args, needed, run, in_turn):
        self.args, self.needed, self.run, self.in_turn = args, needed, run, in_turn
        self.events, self.labels = events_of(args, needed, run)
        self.said, self.status, self.some = Said(), 0, False
        self.by_cpu = args.all_cpus and any(needed[key].is_shared for key in run)

    def __iter__(self):
        args = self.args
        rewind(args)
        ours, its = os.pipe() if not args.remote else (None, 3)
        command = held(args, *WRAPPED * args.remote, args.perf[-1], "stat", *args.form, "-I",
                       str(args.interval), "--log-fd", str(its), "-e",
                       self.events if self.in_turn else f"{{{self.events}}}",
                       *["-A"] * self.by_cpu, *target(args))
        with subprocess.Popen(command, pass_fds=[] if ours is None else [its],
                              stdout=subprocess.PIPE if ours is None else None,
                              stderr=subprocess.PIPE) as perf:
            if ours is not None:
                os.close(its)
            reader = threading.Thread(target=self.said.read, args=(perf,))
            reader.start()
            try:
                with (perf.stdout if ours is None else open(ours, "rb")) as report:
                    yield from self.intervals(lines_of(until_end(report.fileno(), perf)))
            except BaseException:
                perf.send_signal(signal.SIGINT)
                raise
            finally:
                reader.join()
        self.status = settle(args, self.said, perf.returncode, self.some)

    def intervals(self, lines):
        current, end = None, 0.0
        for record in as_named(self.args, knc_perf.read(lines)):
            if record.event not in self.labels or record.time is None:
                continue
            if current is None or record.time != current.end:
                if current:
                    yield self.finished(current)
                current = types.SimpleNamespace(begin=end, end=record.time,
                                                cpus=collections.defaultdict(Counts))
                end = record.time
            current.cpus[record.cpu].take(record, self.labels, self.in_turn)
            if self.by_cpu:
                continue
            counts = current.cpus[None]
            if len(counts.values) + len(counts.reasons) == len(self.run):
                yield self.finished(current)
                current = None
        if current:
            yield self.finished(current)

    def finished(self, interval):
        self.some = True
        interval.counts = interval.cpus[None] if not self.by_cpu else \
            knc_places.of_all(self.args, self.needed, interval.cpus)
        interval.counts.duration = interval.end - interval.begin
        interval.counts.lack(self.run, "not counted")
        return interval


def measure(plan, table):
    """Report each interval as it comes; returns the program's bad status or 0."""
    args, metrics, in_turn = plan.args, [], []
    for metric in plan.formulas:
        needed = countables([metric], plan.events)
        if len(plan_runs([metric], needed)) == 1:
            metrics.append(metric)
            continue
        why = any(each.is_core for each in needed.values()) and plan.side_by_side()
        if why:
            plan.reasons[metric] = f"each thread counts an event of it for its core, and {why}"
        else:
            in_turn.append(metric)
    if not (metrics or in_turn):
        raise Failed("; ".join(f"{name}: {why}" for name, why in plan.missing().items()))
    alone = Plan(args, metrics, plan.events).runs
    plan = Plan(args, [*metrics, *in_turn], plan.events, plan.reasons)
    plan.runs = [*alone, *(plan.formulas[m].keys for m in in_turn)]
    left, status, some = list(metrics), 0, False
    try:
        for at, run in enumerate(plan.each(), 1):
            mine = [m for m in left if set(plan.formulas[m].keys) <= set(run)] \
                if at <= len(alone) else [in_turn[at - len(alone) - 1]]
            left = [m for m in left if m not in mine]
            table.say(*[""] * (at > 1), f"{args.what} {at} of {len(plan.runs)}: "
                      f"{', '.join(map(spoken, run))}")
            table.columns(["   seconds"], mine)
            stream = Stream(args, plan.needed, run, at > len(alone))
            for interval in stream:
                keys = {"run": at, "begin": interval.begin, "end": interval.end}
                results = [Result(plan, m, [[interval.counts]]) for m in mine]
                for result in results if stream.in_turn else ():
                    result.runs = len(run)
                table.place(keys, [result.entry() for result in results],
                            title=[f"{interval.end:.3f}"])
            status, some = status or stream.status, some or stream.some
            if not stream.some:
                plan.reasons.update({m: stream.said.reason() for m in mine})
    except KeyboardInterrupt:
        status = 130
    if not (some or status):
        raise plan.failed()
    # These have their own note.
    table.is_mixed = False
    table.end(plan.head(interval=args.interval / 1000), plan.missing(), [
        *["~ estimates: the events took turns in each interval"] * bool(in_turn),
        *plan.notes(status)])
    return status
