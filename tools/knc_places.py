# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of each core, or of each hardware thread: knc-metrics -a --per-core.

perf counts on each CPU. What a core has counted is the sum of its threads for most events.
CPU_CLK_UNHALTED is the core's on each thread, and so is what "any" counts: a sum would
have it once for each thread. knc_pmu_tables.ini says which event is which.
"""
import collections
import csv
import io
import json

from knc_card import read_topology
from knc_runs import DURATION, Counts, Failed, Formula, Missing, countables, events_of, \
    file_there, modelled, number, plan_runs, rewindable, run_stat, settle

# By how much the threads' readings of a core's count may differ, as they are not read at
# the same time
SAME = 0.1


def count_cpus(args, needed, run):
    """({CPU: Counts}, the program's status, why there are none)"""
    events, labels = events_of(args, needed, run)
    counts, duration = collections.defaultdict(Counts), None
    records, said, status = run_stat(args, events, ["-A"])
    for record in records:
        if record.event == DURATION and record.value:
            duration = record.value / 1e9
        elif record.cpu is not None:
            counts[record.cpu].take(record, labels)
    for of_cpu in counts.values():
        of_cpu.duration = duration
    return counts, settle(args, said, status, counts), "" if counts else said.reason()


def of_core(args, needed, threads):
    """What a core has counted in a run, of what its threads have"""
    core = Counts()
    core.duration = threads[0].duration
    for key in {key for counts in threads for key in {**counts.values, **counts.reasons}}:
        missing = next((counts.reasons.get(key, "not counted on each of its threads")
                        for counts in threads if key not in counts.values), None)
        values = [counts.values[key] for counts in threads if key in counts.values]
        name, how = key[0], "once" if "any" in key[1] else needed[key].event.in_core
        if missing is None and how == "unknown":
            missing = (f"each active thread counts {name} for its core: neither the sum nor one "
                       "of them is sure to be the core's")
        if missing is None and how == "once" and args.user and not key[1]:
            missing = (f"with -u a thread counts {name} in its own user mode only, and the "
                       "core's is in none of them")
        if missing is None and how == "once" and min(values) < (1 - SAME) * max(values):
            missing = f"the threads of the core do not agree on {name}"
        if missing is None:
            core.values[key] = max(values) if how == "once" else sum(values)
        else:
            core.reasons[key] = missing
    return core


class Place:
    """A core or a thread, and what came of each metric: (value, runs, reason)"""

    def __init__(self, core, thread, cpus):
        self.core, self.thread, self.cpus, self.values = core, thread, cpus, {}

    def compute(self, args, formulas, needed, counts):
        for metric, formula in formulas.items():
            try:
                if self.thread is None and metric.of_thread:
                    raise Missing("it has a value for a thread only: --per-thread")
                unknown = next((key[0] for key in formula.keys if self.thread is not None and
                                needed[key].event.in_core == "unknown"), None)
                if unknown:
                    raise Missing(f"a thread counts {unknown} for its core")
                value, runs = formula.value(counts, args.turns)
                self.values[metric] = value * metric.scale, runs, ""
            except Missing as why:
                self.values[metric] = None, 0, str(why)


def rows_of(args, needed, formulas, runs):
    """Cores, or threads, in their order"""
    places = read_topology(file_there(args.perf, "/proc/cpuinfo"))
    cpus = sorted({cpu for counts in runs for cpu in counts})
    strange = [cpu for cpu in cpus if cpu not in places]
    if strange:
        raise Failed(f"/proc/cpuinfo does not say which core CPU {strange[0]} belongs to")
    rows = []
    if args.per == "thread":
        for cpu in sorted(cpus, key=places.get):
            place = Place(*places[cpu], [cpu])
            place.compute(args, formulas, needed,
                          [counts[cpu] for counts in runs if cpu in counts])
            rows.append(place)
        return rows
    for core in sorted({places[cpu][0] for cpu in cpus}):
        threads = [cpu for cpu in cpus if places[cpu][0] == core]
        place = Place(core, None, threads)
        place.compute(args, formulas, needed, [
            of_core(args, needed, [counts[cpu] for cpu in threads])
            for counts in runs if set(threads) <= set(counts)])
        rows.append(place)
    return rows


def as_text(args, metrics, reasons, rows, runs):
    what = "turn" if args.turns else "run"
    shown = [m for m in metrics if any(row.values.get(m, (None,))[0] is not None for row in rows)]
    heads = [f"{m.name} [{m.unit}]" if m.unit else m.name for m in shown]
    lines = [f"by {args.per}: {len(runs)} {what}" + ("" if len(runs) == 1 else "s"), "",
             "  ".join(["core", *(["thread"] if args.per == "thread" else []), *heads])]
    for row in rows:
        cells = [f"{row.core:4}", *([f"{row.thread:6}"] if args.per == "thread" else [])]
        for metric, head in zip(shown, heads):
            value, used, _ = row.values[metric]
            cells.append((("~" if used > 1 else "") + number(value)).rjust(len(head)))
        lines.append("  ".join(cells))
    notes = {f"{m.name}: {reason}": None for m, reason in reasons.items()}
    for row in rows:
        notes.update({f"{m.name}: {reason}": None
                      for m, (_, _, reason) in row.values.items() if reason})
    lines += ["", *(f"no value: {note}" for note in notes)]
    if any(used > 1 for row in rows for _, used, _ in row.values.values()):
        lines.append(f"~ computed from the counts of several {what}s")
    return "\n".join(lines).rstrip() + "\n"


def entries(metrics, reasons, rows):
    for row in rows:
        yield row, {m: row.values.get(m, (None, 0, reasons.get(m, ""))) for m in metrics}


def as_csv(_args, metrics, reasons, rows, _runs):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["core", "thread", "metric", "value", "unit", "runs", "reason"])
    for row, values in entries(metrics, reasons, rows):
        for metric, (value, used, reason) in values.items():
            writer.writerow([row.core, row.thread, metric.name, value, metric.unit, used, reason])
    return text.getvalue()


def as_json(args, metrics, reasons, rows, runs):
    return json.dumps({
        "command": args.command, "by": args.per,
        "runs": [[" ".join(key).strip() for key in run] for run in runs],
        "rows": [{"core": row.core, "thread": row.thread, "cpus": row.cpus,
                  "metrics": {m.name: {"value": value, "unit": m.unit, "runs": used,
                                       "reason": reason}
                              for m, (value, used, reason) in values.items()}}
                 for row, values in entries(metrics, reasons, rows)]}, indent=2) + "\n"


FORMATS = {"text": as_text, "csv": as_csv, "json": as_json}


def measure(args, metrics, events):
    """(the report's text, the program's bad status or 0)"""
    possible, reasons = modelled(args, metrics, events)
    needed = countables(possible, events)
    plan, runs, status, why = plan_runs(possible, needed), [], 0, ""
    if args.command and len(plan) > 1:
        args.replay = rewindable()
    for run in plan:
        counts, ended, failed = count_cpus(args, needed, run)
        status, why = status or ended, why or failed
        runs.append(counts)
    if not any(runs):
        raise Failed(why or next(iter(reasons.values()), "nothing was counted"))
    formulas = {metric: Formula(metric, needed) for metric in possible}
    rows = rows_of(args, needed, formulas, runs)
    return FORMATS[args.format](args, metrics, reasons, rows, plan), status
