# SPDX-License-Identifier: GPL-2.0-only
"""A program with one, two, three and four threads on each core, side by side
"""
import io
import json

import knc_card
import knc_runs
from knc_format import FORMATS, counted, mean, number
from knc_runs import Failed, ask, file_there

# If the caller names no metrics; the core's IPC needs the first.
USUAL = ["ipc", "l1_read_miss_ratio", "memory_read_bandwidth", "vectorization_intensity"]
BAR = 20


def cpus_of(args, per_core):
    """The CPUs of so many threads of each core, core by core"""
    cores = {}
    for cpu, (core, thread) in knc_card.read_topology(file_there(args, "/proc/cpuinfo")).items():
        cores.setdefault(core, []).append((thread, cpu))
    if not cores:
        raise Failed("/proc/cpuinfo does not say which core each CPU belongs to")
    used = [sorted(cores[core])[:per_core] for core in sorted(cores)[:args.cores]]
    if any(len(threads) < per_core for threads in used):
        raise Failed(f"not every core has {per_core} threads online")
    return len(used), [cpu for threads in used for _, cpu in threads]


def command_with(program, cpus, placed):
    """@program, told in OpenMP's way, or by "{}", how many threads to make; taskset keeps it there
    """
    return [*(["taskset", mask(cpus)] if placed else []), "env", f"OMP_NUM_THREADS={len(cpus)}",
            "OMP_PROC_BIND=close", "OMP_DYNAMIC=false",
            f"OMP_PLACES={','.join(f'{{{cpu}}}' for cpu in cpus)}",
            *(word.replace("{}", str(len(cpus))) for word in program)]


def mask(cpus):
    """As every taskset takes it"""
    return f"{sum(1 << cpu for cpu in cpus):#x}"


def measure(plan, out, report):
    """Each number of threads in turn; returns the program's bad status or 0"""
    args, program, results, status = plan.args, plan.args.command, [], 0
    plans = [(per_core, *cpus_of(args, per_core)) for per_core in args.threads]
    placed = ask(args, "sh", "-c", f"taskset {mask(plans[0][2])} echo placed") == "placed\n"
    for per_core, cores, cpus in plans:
        args.command, text = command_with(program, cpus, placed), io.StringIO()
        plan.overlap = None
        counts = [knc_runs.count(args, plan.needed, run) for run in plan.each()]
        status = report(plan, counts, FORMATS["json"](text, args.what)) or status
        # How many ran is measured: an environment need not reach the program.
        ran = mean([run.running / run.duration for run in counts if run.duration and run.running])
        found = json.loads(text.getvalue())
        ipc = next((m["value"] for m in found["metrics"] if m["metric"] == "ipc"), None)
        why = "" if placed else ("there is no taskset to keep the program on the cores that are "
                                 "asked for")
        why = why or args.user * "with -u the time of the kernel is missing"
        results.append({**found, "threads_per_core": per_core, "threads": len(cpus), "ran": ran,
                        "ipc_of_core": ipc * ran / cores if ipc and ran and not why else None})
        results[-1]["notes"] += [f"! ipc of a core: {why}"] if why else []
    if args.format == "json":
        json.dump(results, out, indent=2)
        out.write("\n")
    else:
        out.writelines(f"{line}\n" for line in as_text(results))
    return status


def as_text(results):
    """A line for each number of threads, with a bar for its time; and what is the best"""
    times = [mean(found["seconds"]) for found in results]
    longest = max(filter(None, times), default=None)
    heads = ["on a core", "threads", "ran", "s"] + [
        f"{m['metric']} {m['unit']}".rstrip() for m in results[0]["metrics"]] + ["ipc of a core"]
    lines = [heads]
    for found, seconds in zip(results, times):
        lines.append([number(value) for value in (
            found["threads_per_core"], found["threads"], found["ran"], seconds,
            *(m["value"] for m in found["metrics"]), found["ipc_of_core"])])
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line, seconds in zip(lines, [None, *times]):
        bar = "#" * round(BAR * seconds / longest) if seconds else ""
        yield f"{'  '.join(cell.rjust(width) for cell, width in zip(line, widths))}  {bar}".rstrip()
    yield ""
    if longest:
        best = min((seconds, found["threads"], found["threads_per_core"])
                   for found, seconds in zip(results, times) if seconds)
        yield f"Fastest: {counted(best[1], 'thread')}, {best[2]} on each core"
    for found in results:
        if found["ran"] and found["ran"] < found["threads"] / 2:
            yield (f"! {found['threads']} threads were asked for, and {number(found['ran'])} ran "
                   "on average: does the program take their number from OMP_NUM_THREADS or {}?")
    yield from dict.fromkeys(f"! {m['metric']}: {m['reason']}" for found in results
                             for m in found["metrics"] if m["value"] is None)
    yield from dict.fromkeys(note for found in results for note in found["notes"])
