# SPDX-License-Identifier: GPL-2.0-only
"""Regions with names: what knc-metrics makes of their files, with a program that is none;
and that the headers compile, and do nothing on this machine but say so.
"""
import glob
import json
import os
import re
import subprocess
import sys

import pytest
import test_tools
from lines import TOP, executable, quietly

sys.path.insert(0, f"{TOP}/tools")
import knc_regions  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
CARD = {"/type": "4\n", "format/event": "config:0-7\n", "format/umask": "config:8-15\n",
        "format/any": "config:21\n", "/cpuinfo": "model name : of a card\n"}


class Run(test_tools.Run):
    """What became of knc-metrics --regions with the program @fake"""

    def __init__(self, tmp_path, *args, files=None, switches=(), **fake):
        super().__init__(tmp_path, "--pmu", "cpu", "--regions", "-o", "-", *args,
                         perf=f"{HERE}/perf perf", program=[f"{HERE}/regions"],
                         env={"FAKE_REGIONS": json.dumps({"log": str(tmp_path / "log"), **fake})},
                         files=files or CARD, switches=switches)

    def json(self):
        assert self.status == 0, self.err
        return json.loads(self.out)["rows"]


def row(region, tid, calls=1, lost=0, why="-", seconds=1, **counts):
    return [region, tid, calls, lost, why, seconds, counts]


def test_regions_paranoid(tmp_path):
    """The program opens its events for user mode where its user may not count the kernel."""
    for level, caps, mode in (("2", "0", ":u"), ("2", "1ffffffffff", ""), ("1", "0", "")):
        run = Run(tmp_path, "-f", "json", "-M", "ipc", rows=[[row("a", 7, **clocks(4, 2))]], files={
            **CARD, "perf_event_paranoid": level, "self/status": f"Name:\tx\nCapEff:\t{caps}\n"})
        assert [event.endswith(":u") for event in run.calls()[0].split(",")] == [mode != ""] * 2
        assert ("counts in user mode only" in run.err) == (mode != ""), run.err
    run = Run(tmp_path, "-u", "-M", "ipc", rows=[], files={
        **CARD, "perf_event_paranoid": "3", "self/status": "CapEff:\t0\n"})
    assert run.err.startswith("knc-metrics: kernel.perf_event_paranoid is 3"), run.err


def clocks(cycles, instructions):
    return {"CPU_CLK_UNHALTED": cycles, "INSTRUCTIONS_EXECUTED": instructions}


def test_regions_sums(tmp_path):
    """Counts of all threads, and of each, in the order in which they were made"""
    rows = [row("b", 12, 3, seconds=2, **clocks(600, 100)),
            row("b", 7, 2, seconds=1, **clocks(200, 100)), row("a", 7, **clocks(50, 10))]
    run = Run(tmp_path, "-f", "json", "--per-thread", "-M", "cpi_thread,clock_rate", rows=[rows])
    got = run.json()
    assert [(r["region"], r["thread"], r["threads"], r["calls"], r["seconds"],
             r["metrics"]["cpi_thread"]["value"]) for r in got] == [
        ("b", None, 2, 5, 2, 4), ("b", 0, 1, 2, 1, 2), ("b", 1, 1, 3, 2, 6),
        ("a", None, 1, 1, 1, 5), ("a", 0, 1, 1, 1, 5)]
    text = Run(tmp_path, "--per-thread", "-M", "cpi_thread", rows=[rows]).out
    assert re.search(r"^over 2 threads +min +max +mean\ncpi_thread +2 +6 +4 *\n\n"
                     r"thread +calls +seconds +cpi_thread\n +0 +2 +1.000000 +2\n"
                     r" +1 +3 +2.000000 +6\n\na: 1 call, 1 thread", text, re.M), text
    assert text.count("Clocks of the core for each instruction") == 2
    # No sum: by the time of both threads
    assert got[0]["metrics"]["clock_rate"]["value"] == pytest.approx(800 / 3 * 1e-9)
    assert [r["thread"] for r in Run(tmp_path, "-f", "json", "-M", "ipc", rows=[rows]).json()] == \
        [None, None]
    files = (tmp_path / "log.files").read_text().split()
    assert len(files) == 3 and not [name for name in files if os.path.exists(name)]


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
    run = knc_regions.Run(0, {"x": "x"})
    run.take(found)
    assert not broken and run.parts["# file 1", "", None].duration == pytest.approx(0.25 + 0.9 / 4)
    assert [run.parts["# file 1", "thread", thread].values["x"] for thread in range(4)] == [997, 997, 997, 1000]
    run = knc_regions.Run(0, {"x": "x"})
    run.take(knc_regions.rows_of("".join(rows[:2]))[0])
    assert run.parts["# file 1", "", None].duration == pytest.approx(0.2)


def test_regions_events(tmp_path):
    """Events as perf_event_open(2) has them, by the formats in sysfs"""
    run = Run(tmp_path, "-u", "-M", "cpi_core", rows=[[row("a", 1)]],
              counts={"CPU_CLK_UNHALTED": 3, "INSTRUCTIONS_EXECUTED_any_1": 1})
    assert run.calls() == ["CPU_CLK_UNHALTED=4:0x2a:0x0:u,"
                              "INSTRUCTIONS_EXECUTED_any_1=4:0x200016:0x0:u"], run.err
    run = Run(tmp_path, "-M", "l2_compute_to_data", rows=[[row("a", 1)]],
              files={**CARD, "/type": "9\n", "format/event": "config1:8-15\n"})
    assert run.calls()[0].startswith("VPU_ELEMENTS_ACTIVE=9:0x2000:0x1800,"), run.calls()
    files = {name: text for name, text in CARD.items() if name != "format/umask"}
    run = Run(tmp_path, "-M", "ipc", rows=[[]], files=files)
    assert run.status == 1 and "the PMU has no term umask" in run.err, run.err


def test_regions_lost(tmp_path):
    """What is not counted in one thread has no value, and the other region has"""
    # In Latin-1 the names are "ä" and "ö".
    rows = [row("\udce4", 1, 4, 1, "left open", **clocks(8, 4)), row("\udce4", 2, **clocks(8, 4)),
            row("\udcf6", 1, **clocks(8, 4))]
    got = Run(tmp_path, "-f", "json", "-M", "ipc", rows=[rows]).json()
    assert got[0]["metrics"]["ipc"]["value"] is None and got[0]["calls"] == 6, got
    assert got[0]["metrics"]["ipc"]["reason"] == "1 of 6 calls are not counted: left open"
    assert got[1]["metrics"]["ipc"]["value"] == 0.5
    run = Run(tmp_path, "-M", "ipc", rows=[rows[:1]])
    assert run.status == 1 and run.err == "knc-metrics: 1 of 5 calls are not counted: left open\n"
    assert not run.out and "Traceback" not in run.err, run.out


def test_regions_core(tmp_path, monkeypatch):
    """What each thread counts for its core, if two of a core ran: it is said what to do"""
    monkeypatch.setenv("PATH", test_tools.perf_here(tmp_path))
    for end, words in ((9, "Run the program with one thread on each core"), (2, "")):
        found, = Run(tmp_path, "-f", "json", "-M", "memory_write_bytes", rows=[[row("a", 1)]],
                     switches=test_tools.switches((1, 0, 1, end), (2, 0, 2, 9))).json()
        m = found["metrics"]["memory_write_bytes"]
        assert m["value"] == (None if words else 0) and words in m["reason"], m


def test_regions_differ(tmp_path):
    """Runs with other calls say so; a region that one run lacks has no such metric"""
    rows = [[row("a", 1, 5, **clocks(8, 4))], [row("a", 1, 6), row("b", 1)]]
    run = Run(tmp_path, "-M", "ipc,branch", rows=rows)
    assert "! 5 to 6 calls: the runs differ" in run.out, run.out
    assert "! 0 to 1 calls" in run.out, run.out
    assert "no value: the region was not begun in each run" in run.out, run.out
    assert run.out.count("2 runs") == 1, run.out
    run = Run(tmp_path, "-M", "ipc,branch", rows=[[row("a", 1, seconds=s)] for s in (3, 1)])
    assert "! the runs took 1.000000 to 3.000000 seconds" in run.out, run.out
    text = Run(tmp_path, "-M", "ipc", rows=rows[:1]).out
    assert "a: 5 calls, 1 thread, 1.000000 seconds\n\nipc " in text and "!" not in text, text


def test_regions_ssh(tmp_path):
    """Words stay words for the shell of the other machine"""
    ssh = executable(tmp_path / "ssh", f'#!/bin/sh\nshift\nexec sh -c "{HERE}/perf $*"\n')
    env = {**os.environ, "FAKE_PERF": json.dumps({"files": CARD}), "FAKE_REGIONS": json.dumps(
        {"log": str(tmp_path / "log"), "rows": [[row("a", 1, **clocks(8, 4))]]})}
    done = subprocess.run(
        [f"{TOP}/tools/knc-metrics", "--perf", f"{ssh} mic0 perf", "--pmu", "cpu", "--regions",
         "-M", "ipc", "sh", "-c", f'echo "two  words" $0; exec {HERE}/regions', "a;b"],
        check=False, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "two  words a;b\n"), done
    assert "a: 1 call, 1 thread" in done.stderr, done


def test_regions_ranks(tmp_path):
    """Of each rank of MPI; a process that has written none is told, and no sum is without it"""
    fake = {"rows": [[row("a", 7, 2, **clocks(400, 100)), row("a", 8, **clocks(600, 100)),
                      row("b", 9, **clocks(30, 10))]], "ranks": {"7": 12, "8": 3}}
    args = ("-f", "json", "-M", "cpi_thread,l1_misses", "--per-thread")
    got = Run(tmp_path, *args, **fake).json()
    assert [(r["region"], r["rank"], r["thread"], r["calls"], r["metrics"]["cpi_thread"]["value"]) for r in got] == [
        ("a", None, None, 3, 5), ("a", 3, None, 1, 6), ("a", 12, None, 2, 4), ("a", 3, 1, 1, 6),
        ("a", 12, 2, 2, 4), ("b", None, None, 1, 3), ("b", None, 0, 1, 3)]
    assert got[0]["metrics"]["l1_misses"]["value"] == 0 and "rank 5" not in str(got)
    out = Run(tmp_path, "-M", "cpi_thread", **fake).out
    assert re.search(r"^a: 3 calls, 2 threads, .* seconds, 2 ranks$", out, re.M) and re.search(
        r"^rank +calls +seconds +cpi_thread\n +3 +1 +1.000000 +6\n +12 +2 +1.000000 +4$", out, re.M), out
    for begun, who in ((["# knc-regions 1", "# rank 5", "# begun"], "rank 5"),
                       (["# knc-regions 1", "# begun"], "process ")):
        run = Run(tmp_path, *args, begun=begun, **fake)
        total, rank = run.json()[:2]
        assert total["metrics"]["cpi_thread"]["value"] == 5 and rank["metrics"]["l1_misses"]["value"] == 0
        assert total["metrics"]["l1_misses"]["value"] is None and who in total["metrics"]["l1_misses"]["reason"]
        note, *_ = json.loads(run.out)["notes"]
        assert note.startswith(f"! {who}") and "began regions and did not write them" in note, note
    run = Run(tmp_path, "-M", "ipc", rows=[[]], begun=begun)
    assert run.status == 1 and "has begun regions, and written none: a program that ends by _exit()" in run.err


def test_regions_none(tmp_path):
    """No file, and half a file"""
    run = Run(tmp_path, "-M", "ipc", rows=[[]])
    assert run.status == 1 and "has written no regions: is it marked" in run.err, run.err
    run = Run(tmp_path, "-M", "ipc", rows=[[row("a", 1)]], half=True)
    assert run.status == 1 and "has not written all of its file" in run.err, run.err


# --- the headers -----------------------------------------------------------------------

PROGRAM = """
#include <likwid-marker.h>
#include "knc_pmu_regions.h"

void other(void);

int main(void)
{
	double events[2] = { 0, 0 }, time = 0;
	int n = 2, count = 0, cpu;

	LIKWID_MARKER_INIT;
	LIKWID_MARKER_THREADINIT;
	LIKWID_MARKER_REGISTER("a");
	LIKWID_MARKER_START("a");
	spflt_region
		other();
	LIKWID_MARKER_STOP("a");
	LIKWID_MARKER_GET("a", &n, events, &time, &count);
	LIKWID_MARKER_SWITCH;
	LIKWID_MARKER_RESET("a");
	LIKWID_MARKER_WRITE_FILE("file");
	LIKWID_MARKER_CLOSE;
	likwid_markerInit();
	likwid_markerThreadInit();
	likwid_markerRegisterRegion("a");
	likwid_markerStartRegion("a");
	likwid_markerStopRegion("a");
	likwid_markerGetRegion("a", &n, events, &time, &count);
	likwid_markerResetRegion("a");
	likwid_markerNextGroup();
	likwid_markerWriteFile("file");
	likwid_markerClose();
	for (cpu = -1; cpu <= 1024; cpu++)
		if (likwid_pinThread(cpu) && likwid_getProcessorId() != cpu)
			return 1;
	if (!likwid_pinProcess(likwid_getProcessorId()))
		return 1;
	return (int)(events[0] + time) + count + (n > 2);
}
"""
OTHER = """
#include "knc_pmu_regions.h"

#ifdef __cplusplus
extern "C" void other(void);
#else
void other(void);
#endif
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


@pytest.fixture
def sources(tmp_path):
    for suffix in ("c", "cc"):
        text = PROGRAM.replace("void other", 'extern "C" void other') if suffix == "cc" else PROGRAM
        (tmp_path / f"program.{suffix}").write_text(text)
        (tmp_path / f"other.{suffix}").write_text(OTHER)
    return tmp_path


def test_regions_compile(sources):
    """In any dialect; in the newest with and without optimization, and LIKWID_PERFMON"""
    for compiler, (suffix, *dialects) in DIALECTS.items():
        for dialect in dialects:
            for flags in FLAGS if dialect == dialects[-1] else FLAGS[:1]:
                quietly(compiler, f"-std={dialect}", *flags, *WARNINGS, "-pthread", "-o",
                        sources / "program", sources / f"program.{suffix}",
                        sources / f"other.{suffix}")


def test_headers_alone(tmp_path):
    """Each header needs no other one before it, and nothing in it warns."""
    for header in glob.glob("*.h", root_dir=f"{TOP}/include"):
        for compiler, (suffix, *dialects) in DIALECTS.items():
            (tmp_path / f"alone.{suffix}").write_text(f"#include <{header}>\n")
            for dialect in dialects:
                for flags in ((), ("-DLIKWID_PERFMON",)):
                    quietly(compiler, f"-std={dialect}", *flags, *WARNINGS, "-fsyntax-only",
                            tmp_path / f"alone.{suffix}")


def test_regions_here(sources):
    """One state for C and C++; on this machine nothing is counted, and that is said once."""
    quietly("gcc", "-c", *WARNINGS, "-o", sources / "other.o", sources / "other.c")
    quietly("g++", *WARNINGS, "-pthread", "-DLIKWID_PERFMON", "-o", sources / "program",
            sources / "program.cc", sources / "other.o")
    said = subprocess.run(["nm", sources / "program"], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.split()
    assert said.count("knc_regions_") == said.count("knc_region_begin") == 1
    for setting, want in (({}, ""), ({"KNC_REGIONS": "a=4:0", "KNC_REGIONS_FILE": str(sources / "x")},
                                    "knc_regions: nothing is counted: this is no Knights Corner\n")):
        done = subprocess.run([sources / "program"], check=False, env={**os.environ, **setting},
                              capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", want), done
    assert not (sources / "x").exists() and not [*sources.glob("x.*")]


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


def test_regions_fortran(tmp_path):
    """The two lines of its own comment, with the example, and with all of likwid's calls"""
    quietly("gcc", "-O2", "-c", "-o", tmp_path / "regions.o", "-x", "c",
            f"{TOP}/include/knc_pmu_regions.h")
    (tmp_path / "all.f90").write_text(FORTRAN.format(use="use likwid"))
    (tmp_path / "without.f90").write_text(FORTRAN.format(use="implicit none"))
    strict = "-std=f2003", "-Wall", "-Wextra", "-Werror"
    for source, flags, want in (
            (f"{TOP}/Documentation/examples/marked.f90", strict, ["313344"]),
            (tmp_path / "all.f90", strict, ["0", "0", "0"]),
            (tmp_path / "without.f90", STATIC, ["0", "0", "0"])):
        quietly("gfortran", *flags, "-pthread", f"-J{tmp_path}", "-o", tmp_path / "marked",
                f"{TOP}/include/knc_pmu_regions.f90", source, tmp_path / "regions.o")
        said = subprocess.run([tmp_path / "marked"], check=True, capture_output=True, text=True)
        assert said.stdout.split() == want and not said.stderr, said
