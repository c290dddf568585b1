# SPDX-License-Identifier: GPL-2.0-only
"""Runs a program with regions of knc_pmu_regions.h, and reads the files that its processes write.
"""
import collections
import heapq
import itertools
import re
import subprocess

from knc_format import counted, differ, mean, with_value
from knc_runs import DEVICES, Counts, Failed, Result, ask, file_there, held, rewind

NSEC = 10 ** 9
FILE, BEGIN, RANK, BEGUN, END = "# file ", "# knc-regions 1", "# rank ", "# begun", "# end"
FORMAT = re.compile(r"(config\d?):(\d+)(?:-\d+)?$")
# A part of a region is of all, a rank of MPI, or a thread, which may be another one in another run.
ALL = "", None
HOW = "a program that ends by _exit(), abort() or a signal calls knc_regions_write() before"


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


class Part(Counts):
    """A region in one run, of all threads or of one"""

    def __init__(self):
        super().__init__()
        self.values, self.spans, self.threads = collections.Counter(), [], set()
        self.duration, self.calls, self.lost, self.rank = 0.0, 0, 0, None

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


class Run(Counts):
    """What one run has left: {(region, kind, number): Part}, and which processes wrote nothing"""

    def __init__(self, status, labels, unwritten=()):
        super().__init__()
        self.parts, self.status, self.labels, self.unwritten = {}, status, labels, unwritten

    def take(self, rows):
        """Threads are numbered as they were made, process by process."""
        def place(row):
            return -1 if row["rank"] is None else row["rank"], row["process"], int(row["tid"])

        threads = [at for at, _ in itertools.groupby(sorted(map(place, rows)))]
        for row in rows:
            thread = threads.index(place(row))
            for which in (ALL, ("thread", thread), *[("rank", row["rank"])] * (row["rank"] is not None)):
                part = self.parts.setdefault((row["region"], *which), Part())
                part.add(row, thread, self.labels)
                part.rank = row["rank"]
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
        missing.lack(self.labels.values(), "the region was not begun in each run")
        return self.parts.get(which, missing)


def apart(row, labels):
    """A row's first call and its later ones as two regions, if the file tells them apart"""
    if not int(row.get("first_calls", 0)):
        return [row]
    first = {**row, "region": f"{row['region']}, first call", "calls": row["first_calls"], "lost": 0,
             "seconds": int(row["first_ns"]) / NSEC, **{label: row[f"first_{label}"] for label in labels},
             "last": int(row["first"]) + int(row["first_ns"])}
    later = {**row, "region": f"{row['region']}, later calls",
             "seconds": float(row["seconds"]) - first["seconds"],
             **{name: int(row[name]) - int(first[name]) for name in ("calls", *labels)}}
    return [first, *[later] * bool(later["calls"] or int(row["lost"]))]


def setting(args, countable):
    """An event as KNC_REGIONS has it, by what the PMU's directory in sysfs says"""
    folder = f"{DEVICES}/{args.pmu}"
    configs = {"config": 0, "config1": 0}
    for term in f"{countable.event.terms()},{countable.terms}".strip(",").split(","):
        name, _, value = term.partition("=")
        found = FORMAT.match(file_there(args, f"{folder}/format/{name}"))
        if not found or found[1] not in configs:
            raise Failed(f"{folder}: the PMU has no term {name}")
        configs[found[1]] |= int(value or "1", 0) << int(found[2])
    kind = file_there(args, f"{folder}/type").strip()
    return f"{countable.label}={kind}:{configs['config']:#x}:{configs['config1']:#x}" + \
        (":u" if args.user else "")


def rows_of(text):
    """The rows of the files in @text, who has written none, and how many files are not whole"""
    rows, unwritten, broken = [], [], 0
    for file in re.split(rf"^{FILE}(?=[\d.]+$)", text, flags=re.M)[1:]:
        name, *lines = file.rstrip("\n").split("\n")
        rank = int(lines.pop(1)[len(RANK):]) if lines[1:] and lines[1].startswith(RANK) else None
        if lines == [BEGIN, BEGUN]:
            unwritten.append(f"process {name}" if rank is None else f"rank {rank}")
            continue
        if lines[:1] != [BEGIN] or lines[-1] != END:
            broken += 1
            continue
        # PID, or PID and another number
        process = [int(part) for part in name.split(".")]
        columns = lines[1].split("\t")
        rows += [{**dict(zip(columns, line.split("\t"))), "process": process, "rank": rank}
                 for line in lines[2:-1]]
    return rows, unwritten, broken


def count(args, needed, run):
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
    rows, unwritten, broken = rows_of(said)
    if broken:
        raise Failed("the program has not written all of its file of regions: is the disk full?")
    if unwritten and not rows:
        raise Failed(f"{args.command[0]} (status {status}) has begun regions, and written none: {HOW}")
    if not rows:
        raise Failed(f"{args.command[0]} (status {status}) has written no regions: is it marked "
                  "(knc_pmu_regions.h; likwid-marker.h, with -DLIKWID_PERFMON), and does it "
                  "end by exit?")
    found = Run(status, {needed[key].label: key for key in run}, unwritten)
    found.take([part for row in rows for part in apart(row, found.labels)] if args.first_call else rows)
    return found


def report(plan, repetitions, table):
    """In the order in which they were begun, each with a line for each thread below it"""
    found = dict.fromkeys(key for counts in repetitions for run in counts for key in run.parts)
    lacks = [*notes(run for counts in repetitions for run in counts)]
    for name in dict.fromkeys(name for name, _, _ in found):
        rows = {"": [], "rank": [], "thread": []}
        for kind, number in [ALL, *sorted(
                key[1:] for key in found if key[0] == name and key[1] in ("rank", plan.args.per))]:
            parts = [[run.part((name, kind, number)) for run in counts] for counts in repetitions]
            keys, title = described(name, kind, number, [part for counts in parts for part in counts])
            entries = [Result(plan, m, parts).described() for m in plan.metrics]
            for m, each in zip(plan.metrics, entries):
                if lacks and not kind and m.is_sum() and each["value"] is not None:
                    each.update(value=None, min=None, max=None, values=[], exceeded=[], reason=lacks[0])
            rows[kind].append((keys, entries, title))
        keys, entries, title = rows[""][0]
        title[0] += f", {counted(len(rows['rank']), 'rank')}" * bool(rows["rank"])
        table.place(keys, entries, title=[*title, ""])
        table.over([entries for _, entries, _ in rows["thread"]])
        table.say("")
        for kind in filter(rows.get, ("rank", "thread")):
            heads = ["rank", "thread"] if kind == "thread" and rows["rank"] else [kind]
            table.columns([*heads, "calls", "   seconds"], with_value(
                plan.metrics, [entries for _, entries, _ in rows[kind]]))
            for keys, entries, _ in rows[kind]:
                table.place(keys, entries, title=[*("-" if keys[head] is None else keys[head] for head in heads),
                                                  keys["calls"], f"{keys['seconds']:.6f}"])
            table.columns([], [])


def notes(runs):
    """Which processes have begun regions, and are not in a run"""
    for unwritten in dict.fromkeys(", ".join(run.unwritten) for run in runs):
        if unwritten:
            yield f"{unwritten} began regions and did not write them, so they are missing: {HOW}"


def described(name, kind, number, parts):
    """The keys of a region, and its title: of all threads, of a rank, or of one thread"""
    calls = sorted({part.calls + part.lost for part in parts})
    threads = max(len(part.threads) for part in parts)
    durations = [part.duration for part in parts]
    seconds = mean(durations)
    title = [f"{name}: {counted(calls[-1], 'call')}, {counted(threads, 'thread')}, "
             f"{seconds:.6f} seconds"]
    if len(calls) > 1:
        title.append(f"! {calls[0]} to {calls[-1]} calls: the runs differ, and a metric of "
                     "several runs mixes them")
    title += [f"! {note}" for note in differ(durations)]
    return {"region": name, "rank": number if kind == "rank" else
            next((part.rank for part in parts if kind and part.rank is not None), None),
            "thread": number if kind == "thread" else None, "threads": threads, "calls": calls[-1],
            "seconds": round(seconds, 9), "all_seconds": [round(each, 9) for each in durations]}, title
