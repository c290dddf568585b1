# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of each core, or of each hardware thread: knc-metrics -a --per-core; and of all CPUs.

perf counts on each CPU. knc_pmu_tables.ini says which events a core sums over its threads, and which
read the core's count in every thread: of these, one thread is taken.
"""
import collections

import knc_runs
from knc_card import read_topology
from knc_format import counted, with_value
from knc_runs import DURATION, Counts, Failed, Result, events_of, file_there, run_stat, settle

# By how much the threads' readings of a core's count may differ, as they are not read at
# the same time: a part of it, or so many events that come in bursts
SAME, FEW = 0.1, 1000


def count_cpus(args, needed, run):
    """({CPU: Counts}, the program's status, why there are none)"""
    events, labels = events_of(args, needed, run)
    counts, duration = collections.defaultdict(Counts), None
    records, said, status = run_stat(args, events, ["-A"])
    for record in records:
        if DURATION in record.event and record.value:
            duration = record.value / 1e9
        elif record.cpu is not None:
            counts[record.cpu].take(record, labels)
    for of_cpu in counts.values():
        of_cpu.duration = duration
    return counts, settle(args, said, status, counts), "" if counts else said.reason()


def of_core(args, needed, threads, clocks="once"):
    """What a core has counted, by its threads; @clocks is "sum" if each counts its own clocks"""
    core = Counts()
    core.duration, core.running = threads[0].duration, threads[0].running
    for key in {key for counts in threads for key in {**counts.values, **counts.reasons}}:
        lacks = [counts.reasons.get(key, "not counted on each of its threads")
                 for counts in threads if key not in counts.values]
        values = [counts.values[key] for counts in threads if key in counts.values]
        how = "once" if "any" in key[1] else needed[key].event.in_core
        how = clocks if how == "once" else how
        if lacks:
            core.reasons[key] = lacks[0]
        elif how == "once" and args.user and not key[1]:
            core.reasons[key] = knc_runs.IN_USER_MODE
        elif how != "sum" and max(values) - min(values) > max(
                SAME * max(values), FEW * (how == "core")):
            core.reasons[key] = f"the threads of the core do not agree on {key[0]}"
        else:
            core.values[key] = sum(values) if how == "sum" else max(values)
    return core


def topology(args, cpus):
    """{CPU: (core, thread)}, with each of these CPUs"""
    if "places" not in args:
        args.places = read_topology(file_there(args, "/proc/cpuinfo"))
    strange = sorted({*cpus} - {*args.places})
    if strange:
        raise Failed(f"/proc/cpuinfo does not say which core CPU {strange[0]} belongs to")
    return args.places


def of_all(args, needed, cpus):
    """What all CPUs have counted, of {CPU: Counts}"""
    cores, whole, values = collections.defaultdict(list), Counts(), collections.Counter()
    for cpu, (core, _) in topology(args, cpus).items():
        if cpu in cpus:
            cores[core].append(cpus[cpu])
    for threads in cores.values():
        core = of_core(args, needed, threads, "sum" if args.user else "once")
        whole.duration = core.duration
        whole.running += core.running
        values.update(core.values)
        whole.reasons.update(core.reasons)
    whole.values = {key: value for key, value in values.items() if key not in whole.reasons}
    return whole


def count(args, needed, run):
    """As knc_runs.count(), on all CPUs: what a core counts is taken of one thread of each core."""
    if not any(needed[key].is_shared for key in run):
        return knc_runs.count(args, needed, run)
    cpus, status, why = count_cpus(args, needed, run)
    counts = of_all(args, needed, cpus)
    counts.status = status
    counts.lack(run, why)
    return counts


def reasons(args, metrics, events):
    """{metric: why it has no value for a core, or for a thread}, which needs no run"""
    in_core = {event.name: event.in_core for event in events}
    for metric in metrics:
        if args.per == "core" and metric.of_thread:
            yield metric, "it has a value for a thread only: --per-thread"
        for name, _ in metric.events():
            if in_core.get(name) == "core" and args.per == "thread":
                yield metric, f"each thread counts {name} for its core: --per-core"


def places_of(plan, runs):
    """Cores, or threads, in their order: (keys, the counts of each run)"""
    args = plan.args
    cpus = sorted({cpu for counts in runs for cpu in counts})
    places = topology(args, cpus)
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
    rows = [(keys, [Result(plan, m, [counts]).entry() for m in plan.formulas])
            for keys, counts in places_of(plan, runs)]
    table.say(f"by {args.per}: {counted(len(runs), args.what)}", "")
    heads = ["core", "thread"][:1 + (args.per == "thread")]
    table.columns(heads, with_value(plan.formulas, [entries for _, entries in rows]))
    for keys, entries in rows:
        table.place(keys, entries, title=[keys[head] for head in heads])
    if args.per == "thread":
        table.over([entries for _, entries in rows])
    table.end(plan.head(by=args.per), plan.missing(), [*plan.notes(status)])
    return status
