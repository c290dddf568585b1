# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of each core, or of each hardware thread: knc-metrics -a --per-core.

perf counts on each CPU. knc_pmu_tables.ini says of which events a core has the sum of its threads,
and of which each thread has what the core has.
"""
import collections

from knc_card import read_topology
from knc_format import counted
from knc_runs import DURATION, Counts, Failed, Result, broken, events_of, file_there, run_stat, settle

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


def reasons(args, metrics, events):
    """{metric: why it has no value for a core, or for a thread}, which needs no run"""
    in_core = {event.name: event.in_core for event in events}
    for metric in metrics:
        if args.per == "core" and metric.of_thread:
            yield metric, "it has a value for a thread only: --per-thread"
        for name, _ in metric.events():
            if in_core.get(name) == "unknown":
                yield metric, f"each active thread counts {name} for its core: " + (
                    "neither the sum nor one of them is sure to be the core's"
                    if args.per == "core" else "it is not the thread's")


def places_of(plan, runs):
    """Cores, or threads, in their order: (keys, the counts of each run)"""
    args = plan.args
    places = read_topology(file_there(args, "/proc/cpuinfo"))
    cpus = sorted({cpu for counts in runs for cpu in counts})
    strange = [cpu for cpu in cpus if cpu not in places]
    if strange:
        raise Failed(f"/proc/cpuinfo does not say which core CPU {strange[0]} belongs to")
    if args.per == "thread":
        for cpu in sorted(cpus, key=places.get):
            core, thread = places[cpu]
            yield ({"core": core, "thread": thread, "cpus": [cpu]},
                   [counts[cpu] for counts in runs if cpu in counts])
        return
    for core in sorted({places[cpu][0] for cpu in cpus}):
        threads = [cpu for cpu in cpus if places[cpu][0] == core]
        yield {"core": core, "thread": None, "cpus": threads}, [
            of_core(args, plan.needed, [counts[cpu] for cpu in threads])
            for counts in runs if set(threads) <= set(counts)]


def measure(plan, table):
    """Report the cores, or threads; returns the program's bad status or 0."""
    args, runs, status, why = plan.args, [], 0, ""
    for run in plan.each():
        counts, ended, failed = count_cpus(args, plan.needed, run)
        status, why = status or ended, why or failed
        runs.append(counts)
    if not any(runs):
        raise plan.failed(why)
    rows = [(keys, [Result(plan, m, [counts]) for m in plan.formulas]) for keys, counts in places_of(plan, runs)]
    table.say(f"by {args.per}: {counted(len(runs), args.what)}", "")
    heads = ["core", "thread"][:1 + (args.per == "thread")]
    table.columns(heads, [m for at, m in enumerate(plan.formulas)
                          if any(results[at].value is not None for _, results in rows)])
    for keys, results in rows:
        table.place(keys, [result.entry() for result in results],
                    title=[keys[head] for head in heads])
    if args.per == "thread":
        table.over([[result.entry() for result in results] for _, results in rows])
    table.end(plan.head(by=args.per), plan.missing(), [*broken(args, status)])
    return status
