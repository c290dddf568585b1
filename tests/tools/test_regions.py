# SPDX-License-Identifier: GPL-2.0-only
"""knc-metrics --regions, with a program that is none; the headers, which only compile here"""
import glob
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import test_tools
from lines import TOP, executable, quietly
from test_tools import HERE, PERF, clocks, near
import knc_regions

CARD = {"/type": "4\n", "format/event": "config:0-7\n", "format/umask": "config:8-15\n",
        "format/any": "config:21\n", "/cpuinfo": "model name : of a card\n"}


class Run(test_tools.Run):
    """Of knc-metrics --regions with the program @fake"""

    def __init__(self, words, files=None, switches=(), **fake):
        super().__init__(f"--regions -o - {words}", program=[f"{HERE}/regions"],
                         env={"FAKE_REGIONS": json.dumps({"log": "log", **fake})},
                         files=files or CARD, switches=switches)


def rows_of(words, **fake):
    run = Run(f"-f json {words}", **fake)
    assert run.status == 0, run.err
    return run.json()["rows"]


def row(region, tid, calls=1, lost=0, why="-", seconds=1, **counts):
    return [region, tid, calls, lost, why, seconds, counts]


def test_regions_paranoid():
    """The program opens its events for user mode where its user may not count the kernel."""
    for level, caps, is_user in (("2", "0", True), ("2", "1ffffffffff", False), ("1", "0", False)):
        run = Run("-f json -M ipc", rows=[[row("a", 7, **clocks(4, 2))]], files={
            **CARD, "perf_event_paranoid": level, "self/status": f"Name:\tx\nCapEff:\t{caps}\n"})
        assert [event.endswith(":u") for event in run.calls()[0].split(",")] == [is_user] * 2
        assert ("counts in user mode only" in run.err) == is_user, run.err
    run = Run("-u -M ipc", rows=[], files={
        **CARD, "perf_event_paranoid": "3", "self/status": "CapEff:\t0\n"})
    assert run.err.startswith("knc-metrics: kernel.perf_event_paranoid is 3"), run.err


def test_regions_sums():
    """Counts of all threads, and of each, in the order in which they were made"""
    rows = [row("b", 12, 3, seconds=2, **clocks(600, 100)),
            row("b", 7, 2, seconds=1, **clocks(200, 100)), row("a", 7, **clocks(50, 10))]
    got = rows_of("--per-thread -M cpi_thread,clock_rate", rows=[rows])
    assert [(r["region"], r["thread"], r["threads"], r["calls"], r["seconds"],
             r["metrics"]["cpi_thread"]["value"]) for r in got] == [
        ("b", None, 2, 5, 2, 4), ("b", 0, 1, 2, 1, 2), ("b", 1, 1, 3, 2, 6),
        ("a", None, 1, 1, 1, 5), ("a", 0, 1, 1, 1, 5)]
    text = Run("--per-thread -M cpi_thread", rows=[rows]).out
    assert re.search(r"^over 2 threads +min +max +mean\ncpi_thread +2 +6 +4 *\n\n"
                     r"thread +calls +seconds +cpi_thread\n +0 +2 +1.000000 +2\n"
                     r" +1 +3 +2.000000 +6\n\na: 1 call, 1 thread", text, re.M), text
    assert text.count("Clocks of the core for each instruction") == 2
    # No sum: by the time of both threads
    assert got[0]["metrics"]["clock_rate"]["value"] == near(800 / 3 * 1e-9)
    files = Path("log.files").read_text().split()
    assert len(files) == 2 and not any(map(os.path.exists, files))


def test_regions_first():
    """The first call of each thread apart from the later ones; the file of an older header has none"""
    fake = {"rows": [[row("a", tid, calls, seconds=1.4, **clocks(1000, 100)) for tid, calls in ((7, 5), (8, 1))]]}
    first = [1, 1.0, clocks(800, 50)]
    got = rows_of("--first-call -M cpi_thread", first=first, **fake)
    assert [(r["region"], r["threads"], r["calls"], r["seconds"], r["metrics"]["cpi_thread"]["value"])
            for r in got] == [("a, first call", 2, 2, 1.0, 16), ("a, later calls", 1, 4, 0.4, 4)]
    for words, more in (("", {"first": first}), ("--first-call", {}), ("--first-call", {"first": [0, 0, clocks(0, 0)]})):
        assert [r["region"] for r in rows_of(f"{words} -M cpi_thread", **fake, **more)] == ["a"]


# Of three threads of 997 and one of 1000: (tid, first, last, seconds)
SPANS = ((997, 5, 0.0, 0.1, 0.1), (997, 6, 0.1, 0.2, 0.1), (997, 7, 0.15, 0.25, 0.1),
         (1000, 4, 0.15, 1.15, 0.25))


def test_regions_spans():
    """The time is that in which a thread was in the region; processes by their numbers"""
    rows = [f"# file {process}\n# knc-regions 1\n"
            "region\ttid\tcalls\tlost\twhy\tseconds\tx\tfirst\tlast\n"
            f"# file 1\t{tid}\t1\t0\t-\t{seconds}\t{process}\t{1 + first * 1e9:.0f}\t"
            f"{1 + last * 1e9:.0f}\n# end\n" for process, tid, first, last, seconds in SPANS]
    # As a shell sorts the files
    found, _, broken = knc_regions.rows_of("".join(reversed(rows)))
    two = knc_regions.rows_of("".join(rows[:2]))[0]
    assert not broken
    for part, seconds in ((two, 0.2), (found, 0.25 + 0.9 / 4)):
        run = knc_regions.Run(0, {"x": "x"})
        run.take(part)
        assert run.parts["# file 1", "", None].duration == pytest.approx(seconds)
    assert [run.parts["# file 1", "thread", n].values["x"] for n in range(4)] == [997] * 3 + [1000]


def test_regions_events():
    """Events as perf_event_open(2) has them, by the formats in sysfs"""
    run = Run("-u -M cpi_core", rows=[[row("a", 1)]],
              counts={"CPU_CLK_UNHALTED": 3, "INSTRUCTIONS_EXECUTED_any_1": 1})
    assert run.calls() == ["CPU_CLK_UNHALTED=4:0x2a:0x0:u,"
                           "INSTRUCTIONS_EXECUTED_any_1=4:0x200016:0x0:u"], run.err
    run = Run("-M l2_compute_to_data", rows=[[row("a", 1)]],
              files={**CARD, "/type": "9\n", "format/event": "config1:8-15\n"})
    assert run.calls()[0].startswith("VPU_ELEMENTS_ACTIVE=9:0x2000:0x1800,"), run.calls()
    files = {name: text for name, text in CARD.items() if name != "format/umask"}
    Run("-M ipc", rows=[[]], files=files).ends(1, "the PMU has no term umask")


def test_regions_lost():
    """What is not counted in one thread has no value, and the other region has"""
    # In Latin-1 the names are "ä" and "ö".
    rows = [row("\udce4", 1, 4, 1, "left open", **clocks(8, 4)), row("\udce4", 2, **clocks(8, 4)),
            row("\udcf6", 1, **clocks(8, 4))]
    assert [(r["calls"], r["metrics"]["ipc"]["value"], r["metrics"]["ipc"]["reason"])
            for r in rows_of("-M ipc", rows=[rows])] == [
        (6, None, "1 of 6 calls are not counted: left open"), (1, 0.5, "")]
    run = Run("-M ipc", rows=[rows[:1]])
    assert (run.status, run.out, run.err) == \
        (1, "", "knc-metrics: 1 of 5 calls are not counted: left open\n")


def test_regions_core(monkeypatch):
    """What each thread counts for its core, if two of a core ran: it is said what to do"""
    monkeypatch.setenv("PATH", HERE, prepend=":")
    for end, words in ((9, "Run the program with one thread on each core"), (2, "")):
        found, = rows_of("-M memory_write_bytes", rows=[[row("a", 1)]],
                         switches=test_tools.switches((1, 0, 1, end), (2, 0, 2, 9)))
        m = found["metrics"]["memory_write_bytes"]
        assert m["value"] == (None if words else 0) and words in m["reason"], m


def test_regions_differ():
    """Runs with other calls say so; a region that one run lacks has no such metric"""
    rows = [[row("a", 1, 5, **clocks(8, 4))], [row("a", 1, 6), row("b", 1)]]
    text = Run("-M ipc,branch", rows=rows).out
    for words in ("! 5 to 6 calls: the runs differ", "! 0 to 1 calls",
                  "no value: the region was not begun in each run"):
        assert words in text, text
    assert text.count("2 runs") == 1, text
    text = Run("-M ipc,branch", rows=[[row("a", 1, seconds=s)] for s in (3, 1)]).out
    assert "! the runs took 1.000000 to 3.000000 seconds" in text, text
    text = Run("-M ipc", rows=rows[:1]).out
    assert "a: 5 calls, 1 thread, 1.000000 seconds\n\nipc " in text and "!" not in text, text


def test_regions_ssh():
    """Words stay words for the shell of the other machine"""
    executable(Path("ssh"), f'#!/bin/sh\nshift\nexec sh -c "{PERF} $*"\n')
    run = test_tools.Run(
        "--regions -M ipc", perf="./ssh mic0 perf", files=CARD, env={
            "FAKE_REGIONS": json.dumps({"log": "log", "rows": [[row("a", 1, **clocks(8, 4))]]})},
        program=("sh", "-c", f'echo "two  words" $0; exec {HERE}/regions', "a;b"))
    run.ends(0, "a: 1 call, 1 thread")
    assert run.out == "two  words a;b\n"


def test_regions_ranks():
    """Of each rank of MPI; a process that has written none is told, and no sum is without it"""
    fake = {"rows": [[row("a", 7, 2, **clocks(400, 100)), row("a", 8, **clocks(600, 100)),
                      row("b", 9, **clocks(30, 10))]], "ranks": {"7": 12, "8": 3}}
    words = "-M cpi_thread,l1_misses --per-thread"
    got = rows_of(words, **fake)
    assert [(r["region"], r["rank"], r["thread"], r["calls"], r["metrics"]["cpi_thread"]["value"]) for r in got] == [
        ("a", None, None, 3, 5), ("a", 3, None, 1, 6), ("a", 12, None, 2, 4), ("a", 3, 1, 1, 6),
        ("a", 12, 2, 2, 4), ("b", None, None, 1, 3), ("b", None, 0, 1, 3)]
    assert got[0]["metrics"]["l1_misses"]["value"] == 0 and "rank 5" not in str(got)
    out = Run("-M cpi_thread", **fake).out
    assert re.search(r"^a: 3 calls, 2 threads, .* seconds, 2 ranks$", out, re.M) and re.search(
        r"^rank +calls +seconds +cpi_thread\n +3 +1 +1.000000 +6\n +12 +2 +1.000000 +4$", out, re.M), out
    for begun, who in ((["# knc-regions 1", "# rank 5", "# begun"], "rank 5"),
                       (["# knc-regions 1", "# begun"], "process ")):
        run = Run(f"-f json {words}", begun=begun, **fake)
        total, rank, *_ = run.json()["rows"]
        assert total["metrics"]["cpi_thread"]["value"] == 5 and rank["metrics"]["l1_misses"]["value"] == 0
        assert total["metrics"]["l1_misses"]["value"] is None and who in total["metrics"]["l1_misses"]["reason"]
        note, *_ = run.json()["notes"]
        assert note.startswith(f"! {who}") and "began regions and did not write them" in note, note


def test_regions_none():
    """No file, half a file, and one with regions that were only begun"""
    for fake, why in (
            ({}, "has written no regions: is it marked"),
            ({"rows": [[row("a", 1)]], "half": True}, "has not written all of its file"),
            ({"begun": ["# knc-regions 1", "# begun"]},
             "has begun regions, and written none: a program that ends by _exit()")):
        Run("-M ipc", **{"rows": [[]], **fake}).ends(1, why)


# likwid's macros, and its functions
CALLS = (("INIT", "Init()"), ("THREADINIT", "ThreadInit()"),
         ('REGISTER("a")', 'RegisterRegion("a")'),
         ('START("a");\n\tspflt_region\n\t\tother()', 'StartRegion("a")'),
         ('STOP("a")', 'StopRegion("a")'),
         ('GET("a", &n, events, &time, &count)', 'GetRegion("a", &n, events, &time, &count)'),
         ("SWITCH", "NextGroup()"), ('RESET("a")', 'ResetRegion("a")'),
         ('WRITE_FILE("file")', 'WriteFile("file")'), ("CLOSE", "Close()"))
CALLED = "\n".join([*(f"\tLIKWID_MARKER_{macro};" for macro, _ in CALLS),
                    *(f"\tlikwid_marker{function};" for _, function in CALLS)])
OTHER = """
#include "knc_pmu_regions.h"

#ifdef __cplusplus
extern "C"
#endif
void other(void);
"""
PROGRAM = f"""
#include <likwid-marker.h>
{OTHER}
int main(void)
{{
	double events[2] = {{ 0, 0 }}, time = 0;
	int n = 2, count = 0, cpu;

{CALLED}
	for (cpu = -1; cpu <= 1024; cpu++)
		if (likwid_pinThread(cpu) && likwid_getProcessorId() != cpu)
			return 1;
	if (!likwid_pinProcess(likwid_getProcessorId()))
		return 1;
	return (int)(events[0] + time) + count + (n > 2);
}}
"""
OTHER += """
void other(void)
{
	knc_region_begin_spflt("b");
	knc_region_end_spflt("b");
}
"""
DIALECTS = {"gcc": ("c", "c99", "gnu99", "gnu11"), "clang": ("c", "c99", "gnu11"),
            "g++": ("cc", "c++98", "c++11", "c++20"), "clang++": ("cc", "c++98", "c++20")}
FLAGS = ("-O2", "-DLIKWID_PERFMON"), ("-O0", "-DLIKWID_PERFMON"), ("-O2",)
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", f"-I{TOP}/include")


def test_regions_compile():
    """In any dialect, each header before any other one; one state for C and C++; here nothing is
    counted, which is said once"""
    for compiler, (suffix, *dialects) in DIALECTS.items():
        Path(f"program.{suffix}").write_text(PROGRAM)
        Path(f"other.{suffix}").write_text(OTHER)
        Path(f"user.{suffix}").write_text("#include <knc_pmu_user.h>\n")
        for dialect in dialects:
            for flags in FLAGS if dialect == dialects[-1] else FLAGS[:1]:
                quietly(compiler, f"-std={dialect}", *flags, *WARNINGS, "-pthread", "-o",
                        "program", *(f"{name}.{suffix}" for name in ("program", "other", "user")))
    quietly("gcc", "-c", *WARNINGS, "other.c")
    quietly("g++", *WARNINGS, "-pthread", *FLAGS[1], "-o", "program", "program.cc", "other.o")
    said = quietly("nm", "program").split()
    assert said.count("knc_regions_") == said.count("knc_region_begin") == 1
    for setting, want in (({}, ""), ({"KNC_REGIONS": "a=4:0", "KNC_REGIONS_FILE": "x"},
                                    "knc_regions: nothing is counted: this is no Knights Corner\n")):
        done = subprocess.run(["./program"], check=False, env={**os.environ, **setting},
                              capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", want), done
    assert not glob.glob("x*")


# All that likwid's module has, in two threads; nothing is counted here.
FORTRAN = """program all_of_it
  {use}
  integer :: n, calls
  double precision :: counts(2), seconds
  call likwid_markerInit()
!$omp parallel num_threads(2)
  call likwid_markerThreadInit()
  call likwid_markerRegisterRegion("a")
  call likwid_markerStartRegion("a")
  call likwid_markerStopRegion("a")
!$omp end parallel
  n = 2
  calls = 5
  call likwid_markerGetRegion("a", n, counts, seconds, calls)
  print *, n, int(seconds), calls
  call likwid_markerResetRegion("a")
  call likwid_markerNextGroup()
  call likwid_markerWriteFile("x")
  call likwid_markerClose()
end program
"""
STATIC = "-static", "-fopenmp", "-Wl,-u,pthread_mutex_destroy"


def test_regions_fortran():
    """The two lines of its own comment, with the example, and with all of likwid's calls"""
    quietly("gcc", "-O2", "-c", "-o", "regions.o", "-x", "c", f"{TOP}/include/knc_pmu_regions.h")
    Path("all.f90").write_text(FORTRAN.format(use="use likwid"))
    Path("without.f90").write_text(FORTRAN.format(use="implicit none"))
    strict = "-std=f2003", "-Wall", "-Wextra", "-Werror"
    for source, flags, want in (
            (f"{TOP}/Documentation/examples/marked.f90", strict, ["313344"]),
            ("all.f90", strict, ["0", "0", "0"]), ("without.f90", STATIC, ["0", "0", "0"])):
        quietly("gfortran", *flags, "-pthread", "-o", "marked",
                f"{TOP}/include/knc_pmu_regions.f90", source, "regions.o")
        assert quietly("./marked").split() == want
