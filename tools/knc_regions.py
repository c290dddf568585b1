# SPDX-License-Identifier: GPL-2.0-only
"""The regions of a program that knc_pmu_regions.h has marked: runs it, and reads the files
that its processes write.

Imported by knc-metrics.
"""
import collections
import csv
import functools
import io
import json
import os
import re
import shlex
import subprocess

BEGIN, END = "# knc-regions 1", "# end"
FORMAT = re.compile(r"(config\d?):(\d+)(?:-\d+)?$")
# In another run it may be another thread.
ALL = None


class Bad(Exception):
    """The program has written nothing that can be reported."""


class Part:
    """A region in one run, of all threads or of one; what is missing has a reason."""

    def __init__(self):
        self.values, self.reasons, self.duration = collections.Counter(), {}, 0.0
        self.calls, self.lost, self.threads, self.status = 0, 0, set(), 0

    def add(self, row, thread, labels):
        self.calls += int(row["calls"])
        self.lost += int(row["lost"])
        self.threads.add(thread)
        # Of threads that work at the same time, the one that takes longest
        self.duration = max(self.duration, float(row["seconds"]))
        for label, key in labels.items():
            self.values[key] += int(row[label])
            if int(row["lost"]):
                self.reasons[key] = row["why"]


class Run:
    """What one run has left: {(region, thread): Part}, where thread is ALL, too."""

    def __init__(self, status, labels):
        self.parts, self.status, self.labels, self.values = {}, status, labels, {}

    def take(self, rows):
        """Threads are numbered as they were made."""
        tids = sorted({(row["process"], int(row["tid"])) for row in rows})
        for row in rows:
            thread = tids.index((row["process"], int(row["tid"])))
            for which in (ALL, thread):
                part = self.parts.setdefault((row["region"], which), Part())
                part.add(row, thread, self.labels)
        for part in self.parts.values():
            for key in part.reasons:
                part.reasons[key] = f"{part.lost} of {part.calls + part.lost} calls are " \
                    f"not counted: {part.reasons[key]}"
                del part.values[key]
            # For knc-metrics, which asks whether anything was counted
            self.values.update(part.values)

    def part(self, which):
        missing = Part()
        missing.reasons = {key: "the region was not begun in each run"
                           for key in self.labels.values()}
        return self.parts.get(which, missing)


# --- the program -----------------------------------------------------------------------

def on_machine(args, words):
    """A command where perf is; ssh puts words together for the shell of the other machine."""
    before = args.perf[:-1]
    ssh = before and os.path.basename(before[0]) == "ssh"
    return before + ([shlex.quote(word) for word in words] if ssh else words)


@functools.lru_cache(maxsize=None)
def content(file_there, perf, name):
    """Of a file that does not change, which may be on a card"""
    return file_there([*perf], name).strip()


def setting(args, countable, file_there):
    """An event as KNC_REGIONS has it, by what the PMU's directory in sysfs says"""
    perf = tuple(args.perf)
    folder = f"/sys/bus/event_source/devices/{args.pmu}"
    configs = {"config": 0, "config1": 0}
    for term in f"{countable.event.terms()},{countable.terms}".strip(",").split(","):
        name, _, value = term.partition("=")
        found = FORMAT.match(content(file_there, perf, f"{folder}/format/{name}"))
        if not found or found.group(1) not in configs:
            raise Bad(f"{folder}: the PMU has no term {name}")
        configs[found.group(1)] |= int(value or "1", 0) << int(found.group(2))
    kind = content(file_there, perf, f"{folder}/type")
    return f"{countable.label}={kind}:{configs['config']:#x}:{configs['config1']:#x}" + \
        (":u" if args.user else "")


def rows_of(text):
    """The rows of the files in @text, and how many files are not whole"""
    rows, broken = [], 0
    for number, file in enumerate(text.split(BEGIN + "\n")[1:]):
        lines = file.splitlines()
        if lines[-1:] != [END]:
            broken += 1
            continue
        columns = lines[0].split("\t")
        rows += [{**dict(zip(columns, line.split("\t"))), "process": number}
                 for line in lines[1:-1]]
    return rows, broken


def count(args, needed, run, file_there):
    """Run the program once, with these events in its regions."""
    events = ",".join(setting(args, needed[key], file_there) for key in run)
    file = f"/tmp/knc-regions-{os.urandom(8).hex()}"
    if args.replay is not None:
        os.lseek(0, args.replay, os.SEEK_SET)
    status = subprocess.run(on_machine(args, [
        "env", f"KNC_REGIONS={events}", f"KNC_REGIONS_FILE={file}", *args.command]),
        check=False).returncode
    status = 128 - status if status < 0 else status
    said = subprocess.run(on_machine(args, ["sh", "-c", f"cat {file}.*; rm -f {file}.*"]),
                          check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, errors="replace").stdout
    rows, broken = rows_of(said)
    if broken:
        raise Bad("the program has not written all of its file of regions: is the disk full?")
    if not rows:
        raise Bad(f"{args.command[0]} (status {status}) has written no regions: is it marked "
                  "(knc_pmu_regions.h; likwid-marker.h, with -DLIKWID_PERFMON), and does it "
                  "end by exit?")
    found = Run(status, {needed[key].label: key for key in run})
    found.take(rows)
    return found


# --- the report ------------------------------------------------------------------------

class Region:
    """Of all threads, or one: its metrics, and whether the runs are alike"""

    def __init__(self, key, repetitions, results_of):
        self.name, self.thread = key
        parts = [[run.part(key) for run in counts] for counts in repetitions]
        self.results = results_of(parts)
        every = [part for counts in parts for part in counts]
        self.calls = sorted({part.calls + part.lost for part in every})
        self.threads = max(len(part.threads) for part in every)
        self.seconds = sum(part.duration for part in every) / len(every)

    def columns(self):
        return {"region": self.name, "thread": self.thread, "threads": self.threads,
                "calls": self.calls[-1], "least_calls": self.calls[0],
                "seconds": round(self.seconds, 9)}

    def title(self):
        who = f"thread {self.thread}" if self.thread is not ALL else \
            f"{self.threads} thread{'s' * (self.threads > 1)}"
        calls = f"{self.calls[-1]} call{'s' * (self.calls[-1] != 1)}"
        lines = [f"{self.name}: {calls}, {who}, {self.seconds:.6f} seconds"]
        if len(self.calls) > 1:
            lines.append(f"! {self.calls[0]} to {self.calls[-1]} calls: the runs differ, and a "
                         "metric of several runs mixes them")
        return "\n".join(lines)


def regions(args, repetitions, results_of):
    """In the order in which they were begun, each with its threads below it"""
    if not any(run.values for counts in repetitions for run in counts):
        raise Bad(next(reason for counts in repetitions for run in counts
                       for part in run.parts.values() for reason in part.reasons.values()))
    keys = dict.fromkeys(key for counts in repetitions for run in counts for key in run.parts)
    for name in dict.fromkeys(name for name, _ in keys):
        yield Region((name, ALL), repetitions, results_of)
        if args.per == "thread":
            for thread in sorted(thread for n, thread in keys if n == name
                                 and thread is not ALL):
                yield Region((name, thread), repetitions, results_of)


def as_text(found, show):
    blocks, head, foot = [], "", ""
    for region in found:
        # "6 runs", the metrics, and what marks mean
        head, _, body = show(region.results).partition("\n\n")
        body, mark, rest = body.partition("\n~ ")
        foot = foot or (f"\n~ {rest}" if mark else "")
        blocks.append(f"{region.title()}\n\n{body.rstrip()}\n")
    return f"{head}\n\n" + "\n".join(blocks) + foot


def as_csv(found, show):
    text, writer = io.StringIO(), None
    for region in found:
        for row in csv.DictReader(io.StringIO(show(region.results))):
            row = {**region.columns(), **row}
            if not writer:
                writer = csv.DictWriter(text, row, lineterminator="\n")
                writer.writeheader()
            writer.writerow(row)
    return text.getvalue()


def as_json(found, show):
    whole, entries = {}, []
    for region in found:
        whole = json.loads(show(region.results))
        entries.append({**region.columns(), "metrics": whole.pop("metrics")})
    return json.dumps({**whole, "regions": entries}, indent=2) + "\n"


def report(args, found, show):
    """@show makes a report of one region's results in the format that is asked for."""
    return {"text": as_text, "csv": as_csv, "json": as_json}[args.format](found, show)
