# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of each interval: knc-metrics -I.

Two counters count one pair of events, so each run, or turn, has intervals of one pair, and
shows the metrics that this pair gives. Intervals of different runs are not put together:
nothing says that the program was at the same place in both.
"""
import csv
import json
import os
import shlex
import subprocess
import threading

import knc_perf
from knc_runs import Counts, Failed, Formula, Missing, Said, countables, events_of, modelled, \
    number, plan_runs, rewind, rewindable, settle, target

# Another machine's perf cannot have a descriptor of ours: there its report has the standard
# output, and the program's output goes to standard error.
WRAPPED = ["sh", "-c", 'exec "$@" 3>&1 >&2', "sh"]


class Interval:
    def __init__(self, begin, end):
        self.begin, self.end, self.counts = begin, end, Counts()
        self.counts.duration = end - begin


class Stream:
    """perf stat -I of a run: an iterator of intervals, as they come"""

    def __init__(self, args, needed, run):
        self.args, self.run = args, run
        self.events, self.labels = events_of(args, needed, run)
        self.said, self.status, self.some = Said(False), 0, False

    def command(self, fd):
        args = self.args
        words = ["stat", "-j", "-I", str(args.interval), "--log-fd", str(fd), "-e",
                 f"{{{self.events}}}", *target(args)]
        if not args.remote:
            return [*args.perf, *words]
        words = [*WRAPPED, args.perf[-1], *words]
        ssh = os.path.basename(args.perf[0]) == "ssh"
        return args.perf[:-1] + ([shlex.quote(word) for word in words] if ssh else words)

    def __iter__(self):
        rewind(self.args)
        ours, its = os.pipe() if not self.args.remote else (None, 3)
        with subprocess.Popen(self.command(its), pass_fds=[] if ours is None else [its],
                              stdout=subprocess.PIPE if ours is None else None,
                              stderr=subprocess.PIPE,
                              env={**os.environ, "LC_ALL": "C"}) as perf:
            if ours is not None:
                os.close(its)
            reader = threading.Thread(target=self.said.read, args=(perf.stderr,))
            reader.start()
            with (perf.stdout if ours is None else open(ours, "rb")) as report:
                yield from self.intervals(line.decode(errors="replace") for line in report)
            reader.join()
        self.status = settle(self.args, self.said, perf.returncode, self.some)

    def intervals(self, lines):
        current, end = None, 0.0
        for record in knc_perf.read(lines):
            if record.event not in self.labels or record.time is None:
                continue
            if current is None or record.time != current.end:
                if current:
                    yield self.finished(current)
                current, end = Interval(end, record.time), record.time
            current.counts.take(record, self.labels)
            if len(current.counts.values) + len(current.counts.reasons) == len(self.run):
                yield self.finished(current)
                current = None
        if current:
            yield self.finished(current)

    def finished(self, interval):
        self.some = True
        for key in self.run:
            if key in interval.counts.values:
                continue
            if interval.counts.reasons.setdefault(key, "not counted").startswith("not counted"):
                interval.counts.reasons[key] = ("not counted: nothing ran in this interval, or "
                                                "something else has the counters")
        return interval


class Row:
    """An interval of a run: {metric: (value, reason)}"""

    def __init__(self, run, interval, formulas):
        self.run, self.begin, self.end, self.values = run, interval.begin, interval.end, {}
        for metric, formula in formulas.items():
            try:
                value, _ = formula.value([interval.counts], False)
                self.values[metric] = value * metric.scale, ""
            except Missing as why:
                self.values[metric] = None, str(why)


class Text:
    """A table for each run; a line is written when its interval ends."""

    def __init__(self, args, plan, out):
        self.args, self.plan, self.out, self.notes = args, plan, out, {}

    def begin(self, number_of, formulas):
        what = "turn" if self.args.turns else "run"
        events = ", ".join(" ".join(key).strip() for key in self.plan[number_of - 1])
        self.heads = [f"{m.name} [{m.unit}]" if m.unit else m.name for m in formulas]
        self.out.write(f"\n{what} {number_of} of {len(self.plan)}: {events}\n" +
                       "  ".join(["   seconds", *self.heads]) + "\n")

    def row(self, row):
        cells = [f"{row.end:10.3f}", *(number(value).rjust(len(head)) for head, (value, _) in
                                       zip(self.heads, row.values.values()))]
        self.out.write("  ".join(cells) + "\n")
        self.out.flush()
        self.notes.update({f"-: {m.name}: {reason}": None
                           for m, (_, reason) in row.values.items() if reason})

    def end(self, reasons):
        notes = [*self.notes, *(f"no value: {m.name}: {why}" for m, why in reasons.items())]
        self.out.write("".join(f"{note}\n" for note in ["", *notes] if notes))


class Csv:
    def __init__(self, _args, _plan, out):
        self.out, self.writer = out, csv.writer(out, lineterminator="\n")
        self.writer.writerow(["run", "begin", "end", "metric", "value", "unit", "reason"])

    def begin(self, number_of, formulas):
        pass

    def row(self, row):
        for metric, (value, reason) in row.values.items():
            self.writer.writerow([row.run, row.begin, row.end, metric.name, value, metric.unit,
                                  reason])
        self.out.flush()

    def end(self, reasons):
        for metric, reason in reasons.items():
            self.writer.writerow(["", "", "", metric.name, "", metric.unit, reason])


class Json:
    def __init__(self, args, plan, out):
        self.args, self.plan, self.out, self.rows = args, plan, out, []

    def begin(self, number_of, formulas):
        pass

    def row(self, row):
        self.rows.append({"run": row.run, "begin": row.begin, "end": row.end, "metrics": {
            metric.name: {"value": value, "unit": metric.unit, "reason": reason}
            for metric, (value, reason) in row.values.items()}})

    def end(self, reasons):
        json.dump({"command": self.args.command, "interval": self.args.interval / 1000,
                   "runs": [[" ".join(key).strip() for key in run] for run in self.plan],
                   "rows": self.rows,
                   "no_value": {m.name: reason for m, reason in reasons.items()}},
                  self.out, indent=2)
        self.out.write("\n")


FORMATS = {"text": Text, "csv": Csv, "json": Json}


def measure(args, metrics, events, out):
    """Write the report to this file; return the program's bad status or 0."""
    possible, reasons = modelled(args, metrics, events)
    formulas = {metric: Formula(metric, countables(possible, events)) for metric in possible}
    # Only what one run has all of
    pairs = [metric for metric in possible if
             any(set(formulas[metric].keys) <= set(run)
                 for run in plan_runs([metric], countables([metric], events)))]
    for metric in possible:
        if metric not in pairs:
            runs = len(plan_runs([metric], countables([metric], events)))
            reasons[metric] = f"its events take {runs} runs, and no interval has all of them"
    if not pairs:
        raise Failed("; ".join(f"{m.name}: {reason}" for m, reason in reasons.items()))
    needed = countables(pairs, events)
    plan, status, some = plan_runs(pairs, needed), 0, False
    if args.command and len(plan) > 1:
        args.replay = rewindable()
    report, left = FORMATS[args.format](args, plan, out), list(pairs)
    try:
        for number_of, run in enumerate(plan, 1):
            mine = {m: formulas[m] for m in left if set(formulas[m].keys) <= set(run)}
            left = [m for m in left if m not in mine]
            report.begin(number_of, mine)
            stream = Stream(args, needed, run)
            for interval in stream:
                report.row(Row(number_of, interval, mine))
            status, some = status or stream.status, some or stream.some
            if not stream.some:
                reasons.update({m: stream.said.reason() for m in mine})
    except KeyboardInterrupt:
        status = 130
    if not (some or status):
        raise Failed(next(iter(reasons.values()), "nothing was counted"))
    report.end(reasons)
    return status
