# SPDX-License-Identifier: GPL-2.0-only
"""How much of the driver the tests reach, as gcov counts it in the guest.

KUnit and the guest tests run on kernels in which the driver is compiled to count,
as a module and built in. What they have reached is added up, and is not enough if
there is a function that none has called, less than 95 % of a file's lines, or a
branch of the interrupt handler that none has taken both ways.
"""
import base64
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from io import BytesIO
from pathlib import Path

import pytest
from lines import SCRIPTS, TESTS, Case, built, once, read, sources

LINES = 95
ALL_BRANCHES = ("knc_pmi.c",)

# Functions that nothing can call, and why; or no test, if it is to tell.
NEVER = {
    "compat_no_event": "of a PMU that is there for some microseconds of loading, for an "
                       "event of a type that nobody has",
}

# Ways that no branch takes: (file, line of source, way) and why.
NEVER_TAKEN = {
    ("knc_pmi.c", "knc_pmi_reset_counter(kc, __ffs(wrapped), regs);", way):
        "__ffs() asks whether it is of a constant, in each of two copies of the function"
    for way in (0, 2)
}

# Modules are built to be profiled, and all tests run.
PROFILED = {**os.environ, "KNC_PMU_MAKE": "GCOV_PROFILE=y", "TEST": ""}


def say(*lines):
    """pytest's workers print nothing else."""
    print(*lines, sep="\n", file=sys.stderr, flush=True)


# --- count --------------------------------------------------------------------------

def run_unit(keep):
    module = built("build-module", "gcov", "tests/unit", "knc_pmu_test.ko", env=PROFILED)
    subprocess.run(
        [f"{SCRIPTS}/run-uos", "--kernel", "gcov", "--out", f"{keep}/unit", "--module", module,
         "--add", f"{TESTS}/guest/gcov.sh:/", "sh /gcov.sh"],
        check=False, stdout=subprocess.DEVNULL)


def run_guest(kernel, keep):
    """What fails is told; that it fails is for check-guest to say."""
    done = subprocess.run(
        [f"{SCRIPTS}/check", "guest", f"--kernel={kernel}", f"--keep={keep}"], check=False,
        env=PROFILED, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    say(*re.findall("^FAIL.*", done.stdout, re.M))


def unpack(results, folder):
    """The .gcda files of a boot, below folder by the names they had."""
    text = "".join(re.findall("^# gcov (.*)\n", results.read_text(errors="replace"), re.M))
    if text:
        with tarfile.open(fileobj=BytesIO(base64.b64decode(text)), mode="r:gz") as tar:
            tar.extractall(folder)
    return folder.rglob("*.gcda")


class Totals:
    """Of each file: lines, functions and branches, and how often each was reached."""

    def __init__(self):
        self.lines, self.functions = defaultdict(Counter), defaultdict(Counter)
        self.branches = defaultdict(dict)

    def add(self, report):
        for file in report["files"]:
            name = os.path.basename(file["file"])
            for line in file["lines"]:
                number = line["line_number"]
                self.lines[name][number] += line["count"]
                self.add_branches(name, number, [b["count"] for b in line["branches"]])
            for function in file["functions"]:
                self.functions[name][function["name"]] += function["execution_count"]

    def add_branches(self, name, number, counts):
        """Where two compilations have the same branches in a line they are added up;
        where they do not, each has its own."""
        if not counts:
            return
        known = self.branches[name].setdefault(number, {})
        was = known.get(len(counts), [0] * len(counts))
        known[len(counts)] = [a + b for a, b in zip(was, counts)]


def gcov(data, note):
    """What gcov says of a .gcda file; its .gcno is where the object was."""
    assert note.exists(), f"{note} is not there"
    data.with_suffix(".gcno").symlink_to(note)
    return json.loads(subprocess.run(
        ["gcov", "--json-format", "--branch-probabilities", "--stdout", data], check=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)


@once
def counted(keep):
    totals = Totals()
    with tempfile.TemporaryDirectory(prefix="coverage.") as work:
        keep = keep or f"{work}/keep"
        run_unit(keep)
        run_guest("gcov", keep)
        run_guest("builtin-gcov", keep)
        for number, results in enumerate(Path(keep).rglob("results")):
            folder = Path(work, str(number))
            for data in unpack(results, folder):
                totals.add(gcov(data, "/" / data.relative_to(folder).with_suffix(".gcno")))
    assert totals.lines, "nothing was counted"
    return totals


# --- judge --------------------------------------------------------------------------

def source_line(name, number):
    return read(name).split("\n")[number - 1].strip()


def check_functions(name, totals):
    missed = [function for function, count in sorted(totals.functions[name].items())
              if not count and function not in NEVER]
    assert not missed, f"never called: {', '.join(missed)}"


def never_lines(name):
    """The lines of the functions that nothing can call"""
    numbers, inside = set(), False
    for number, line in enumerate(read(name).split("\n"), 1):
        inside = inside or any(re.match(rf"[a-z].*\b{n}\(", line) for n in NEVER)
        if inside:
            numbers.add(number)
        inside = inside and line != "}"
    return numbers


def check_lines(name, totals):
    if name not in totals.lines and name.endswith(".h"):
        pytest.skip("tables and declarations, no code")
    lines = {number: count for number, count in totals.lines[name].items()
             if number not in never_lines(name)}
    assert lines, "is in no kernel"
    missed = sorted(number for number, count in lines.items() if not count)
    percent = 100 * (len(lines) - len(missed)) / len(lines)
    say(f"{name}: {percent:.1f} % of {len(lines)} lines",
        *(f"    {name}:{number}: {source_line(name, number)}" for number in missed))
    assert percent >= LINES, f"{percent:.1f} % of {len(lines)}"


def check_branches(name, totals):
    missed, ways = [], 0
    for number, known in sorted(totals.branches[name].items()):
        # The compilation that shows most of it
        counts = max(known.values(), key=lambda c: (sum(map(bool, c)) / len(c), len(c)))
        line = source_line(name, number)
        counts = {way: count for way, count in enumerate(counts)
                  if (name, line, way) not in NEVER_TAKEN}
        ways += len(counts)
        missed += [f"{name}:{number}: way {way} of {line}"
                   for way, count in counts.items() if not count]
    say(f"{name}: {ways - len(missed)} of {ways} ways")
    assert not missed, "\n".join(missed)


def cases(run):
    # A header without code has no function either.
    for check, files in ((check_functions, sources(r"[^/]*\.[ch]")),
                         (check_lines, sources(r"[^/]*\.[ch]")),
                         (check_branches, ALL_BRANCHES)):
        for name in files:
            yield Case(f"{check.__name__.removeprefix('check_')}/{name}",
                       lambda check=check, name=name: check(name, counted(run.keep)),
                       "coverage", 7200)


def test(case):
    case.check()
