# SPDX-License-Identifier: GPL-2.0-only
"""The regions of a program that knc_pmu_regions.h has marked: runs it, and reads the files
that its processes write.
"""
import collections
import heapq
import re
import subprocess

from knc_format import counted, differ
from knc_runs import DEVICES, Failed, Result, ask, file_there, held, only_root, only_user_mode, rewind

NSEC = 10 ** 9
FILE, BEGIN, END = "# file ", "# knc-regions 1", "# end"
FORMAT = re.compile(r"(config\d?):(\d+)(?:-\d+)?$")
# CAP_SYS_ADMIN, CAP_PERFMON
PRIVILEGES = 1 << 21 | 1 << 38
# In another run it may be another thread.
ALL = None


def union(spans):
    """Seconds for which there was a thread in the region, of (first, last, share of the time
    between these). Of threads that are in it side by side, the one that is there most counts.
    """
    edges = sorted({edge for first, last, _ in spans for edge in (first, last)})
    waiting, inside, seconds = sorted(spans, reverse=True), [], 0.0
    for begin, end in zip(edges, edges[1:]):
        while waiting and waiting[-1][0] <= begin:
            _, last, share = waiting.pop()
            heapq.heappush(inside, (-share, last))
        while inside and inside[0][1] <= begin:
            heapq.heappop(inside)
        if inside:
            seconds -= (end - begin) * inside[0][0]
    return seconds


class Part:
    """A region in one run, of all threads or of one; what is missing has a reason."""

    def __init__(self):
        self.values, self.reasons, self.spans = collections.Counter(), {}, []
        self.duration = self.running = 0.0
        self.calls, self.lost, self.threads, self.status = 0, 0, set(), 0

    def add(self, row, thread, labels):
        self.calls += int(row["calls"])
        self.lost += int(row["lost"])
        self.threads.add(thread)
        self.running += float(row["seconds"])
        seconds, first = float(row["seconds"]), int(row.get("first", 0))
        last = max(int(row.get("last", 0)) or seconds * NSEC, first + 1)
        self.spans.append((first, last, seconds / (last - first)))
        for label, key in labels.items():
            self.values[key] += int(row[label])
            if int(row["lost"]):
                self.reasons[key] = row["why"]


class Run:
    """What one run has left: {(region, thread): Part}, where thread is ALL, too."""

    def __init__(self, status, labels):
        self.parts, self.status, self.labels = {}, status, labels
        # For knc-metrics, which asks whether anything was counted
        self.values, self.reasons, self.duration = {}, {}, None

    def take(self, rows):
        """Threads are numbered as they were made, process by process."""
        tids = sorted({(*row["process"], int(row["tid"])) for row in rows})
        for row in rows:
            thread = tids.index((*row["process"], int(row["tid"])))
            for which in (ALL, thread):
                part = self.parts.setdefault((row["region"], which), Part())
                part.add(row, thread, self.labels)
        for part in self.parts.values():
            part.duration = union(part.spans)
            for key in part.reasons:
                part.reasons[key] = f"{part.lost} of {part.calls + part.lost} calls are " \
                    f"not counted: {part.reasons[key]}"
                del part.values[key]
            self.values.update(part.values)
            self.reasons.update(part.reasons)

    def part(self, which):
        missing = Part()
        missing.reasons = {key: "the region was not begun in each run"
                           for key in self.labels.values()}
        return self.parts.get(which, missing)


# --- the program -----------------------------------------------------------------------

def content(args, name):
    """Of a file that does not change, which may be on a card"""
    known = vars(args).setdefault("contents", {})
    if name not in known:
        known[name] = file_there(args, name).strip()
    return known[name]


def setting(args, countable):
    """An event as KNC_REGIONS has it, by what the PMU's directory in sysfs says"""
    folder = f"{DEVICES}/{args.pmu}"
    configs = {"config": 0, "config1": 0}
    for term in f"{countable.event.terms()},{countable.terms}".strip(",").split(","):
        name, _, value = term.partition("=")
        found = FORMAT.match(content(args, f"{folder}/format/{name}"))
        if not found or found.group(1) not in configs:
            raise Failed(f"{folder}: the PMU has no term {name}")
        configs[found.group(1)] |= int(value or "1", 0) << int(found.group(2))
    kind = content(args, f"{folder}/type")
    return f"{countable.label}={kind}:{configs['config']:#x}:{configs['config1']:#x}" + \
        (":u" if args.user else "")


def rows_of(text):
    """The rows of the files in @text, and how many files are not whole"""
    rows, broken = [], 0
    for file in re.split(rf"^{FILE}(?=[\d.]+$)", text, flags=re.M)[1:]:
        name, *lines = file.rstrip("\n").split("\n")
        if lines[:1] != [BEGIN] or lines[-1] != END:
            broken += 1
            continue
        # PID, or PID and another number
        process = [int(part) for part in name.split(".")]
        columns = lines[1].split("\t")
        rows += [{**dict(zip(columns, line.split("\t"))), "process": process}
                 for line in lines[2:-1]]
    return rows, broken


def paranoid(args):
    """What the kernel's setting forbids to the program's user: it opens its events itself."""
    level = content(args, "/proc/sys/kernel/perf_event_paranoid")
    mask = re.search(r"^CapEff:\s*(\w+)", content(args, "/proc/self/status"), re.M)
    return -1 if not (level and mask) or int(mask[1], 16) & PRIVILEGES else int(level)


def count(args, needed, run):
    """Run the program once, with these events in its regions."""
    level = paranoid(args)
    if level > 2:
        raise Failed(only_root(level))
    if level == 2 and not args.user:
        only_user_mode(args)
    events = ",".join(setting(args, needed[key]) for key in run)
    # Not in the directory: a program may become another user.
    file = f"{args.room}-regions"
    rewind(args)
    status = subprocess.run(held(
        args, "env", f"KNC_REGIONS={events}", f"KNC_REGIONS_FILE={file}", *args.command),
        check=False).returncode
    args.status = status = 128 - status if status < 0 else status
    said = ask(args, "sh", "-c", f'for f in {file}.*; do [ ! -e "$f" ] || {{ '
               f'echo "{FILE}${{f#{file}.}}"; cat "$f"; rm -f "$f"; }}; done')
    rows, broken = rows_of(said)
    if broken:
        raise Failed("the program has not written all of its file of regions: is the disk full?")
    if not rows:
        raise Failed(f"{args.command[0]} (status {status}) has written no regions: is it marked "
                  "(knc_pmu_regions.h; likwid-marker.h, with -DLIKWID_PERFMON), and does it "
                  "end by exit?")
    found = Run(status, {needed[key].label: key for key in run})
    found.take(rows)
    return found


# --- the report ------------------------------------------------------------------------

def report(plan, repetitions, table):
    """In the order in which they were begun, each with a line for each thread below it"""
    found = dict.fromkeys(key for counts in repetitions for run in counts for key in run.parts)
    for name in dict.fromkeys(name for name, _ in found):
        threads = sorted(thread for n, thread in found if n == name and thread is not ALL)
        rows = []
        for thread in [ALL, *(threads if plan.args.per == "thread" else [])]:
            parts = [[run.part((name, thread)) for run in counts] for counts in repetitions]
            keys, title = described(name, thread, [part for counts in parts for part in counts])
            rows.append((keys, [Result(plan, m, parts).described() for m in plan.metrics], title))
        table.place(*rows[0][:2], title=[*rows[0][2], ""])
        table.over([entries for _, entries, _ in rows[1:]])
        table.say("")
        if rows[1:]:
            table.columns(["thread", "calls", "   seconds"], [
                m for at, m in enumerate(plan.metrics)
                if any(entries[at]["value"] is not None for _, entries, _ in rows[1:])])
        for keys, entries, _ in rows[1:]:
            table.place(keys, entries, title=[keys["thread"], keys["calls"], f"{keys['seconds']:.6f}"])
        if rows[1:]:
            table.columns([], [])


def described(name, thread, parts):
    """The keys of a region, and its title: of all threads, or of one"""
    calls = sorted({part.calls + part.lost for part in parts})
    threads = max(len(part.threads) for part in parts)
    durations = [part.duration for part in parts]
    seconds = sum(durations) / len(parts)
    title = [f"{name}: {counted(calls[-1], 'call')}, {counted(threads, 'thread')}, "
             f"{seconds:.6f} seconds"]
    if len(calls) > 1:
        title.append(f"! {calls[0]} to {calls[-1]} calls: the runs differ, and a metric of "
                     "several runs mixes them")
    title += [f"! {note}" for note in differ(durations)]
    return {"region": name, "thread": thread, "threads": threads, "calls": calls[-1],
            "seconds": round(seconds, 9), "all_seconds": [round(each, 9) for each in durations]}, title
