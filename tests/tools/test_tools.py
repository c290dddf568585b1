# SPDX-License-Identifier: GPL-2.0-only
"""The tables for other tools, and knc-metrics with a perf that is not one."""
import ast
import csv
import json
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lines import TESTS, TOP, executable, quietly, read
import knc_format
import knc_listing
import knc_overlap
import knc_runs
import knc_tables

HERE = f"{TESTS}/tools"
TOOLS = f"{TOP}/tools"


def near(want):
    return pytest.approx(want, rel=1e-9)


def csv_rows(path):
    return [*csv.DictReader(re.findall("^[^#].*", path.read_text(), re.M))]


@pytest.fixture
def tables():
    """(events, metrics) for perf, each with its topic; and those for perfmon are made."""
    for what in "perf", "perfmon":
        quietly(sys.executable, f"{TOOLS}/knc_tables.py", what, what)
    entries = [{**entry, "topic": file.name} for file in sorted(Path("perf").iterdir())
               for entry in json.loads(file.read_text())]
    return [[e for e in entries if key in e] for key in ("EventName", "MetricName")]


def test_tables_manual(tables):
    """Each format has the events of the manual's tables; the emulator those with a model."""
    wanted = {row["name"]: (int(row["umask"], 16), int(row["event"], 16))
              for name in ("knc_events.csv", "knc_events_extra.csv")
              for row in csv_rows(Path(TOP, "tests/data", name))}
    folder = Path("perfmon")
    perfmon = json.loads((folder / "KNC/knightscorner_core_v1.json").read_text())
    for entries in tables[0], perfmon:
        assert sorted(entry["EventName"] for entry in entries) == sorted(wanted), "names"
        for entry in entries:
            name, umask = entry["EventName"], int(entry["UMask"], 16)
            assert (umask, int(entry["EventCode"], 16)) == wanted[name], name
            assert entry["Counter"] == ("0" if umask == 0x10 else "0,1"), name
            assert entry["BriefDescription"], name
            period = int(entry["SampleAfterValue"])
            # A prime
            assert period > 1 and all(period % n for n in range(2, math.isqrt(period) + 1)), name
    modelled = {name: divmod(int(code, 16), 256) for code, name in re.findall(
        r"EVENT\((0x\w+), (\w+)\)", read("emulator/target/i386/knc/events.h.inc"))}
    assert {e.name: wanted[e.name] for e in knc_tables.load()[0] if e.emulated} == modelled
    # The mapfile has one row for the model, with the list's name; pmu-tools read the keys below.
    assert {"README.md", "LICENSE"} < {path.name for path in folder.iterdir()}
    row, = csv_rows(folder / "mapfile.csv")
    assert [row[key] for key in ("Family-model", "EventType", "Filename", "Version")] == \
        ["GenuineIntel-11-1", "core", "/KNC/knightscorner_core_v1.json", "v1"]
    for key in ("EdgeDetect", "Invert", "AnyThread", "CounterMask", "MSRIndex", "MSRValue"):
        assert {int(entry[key], 16) for entry in perfmon} == {0}, key
    assert [e["PublicDescription"] for e in perfmon if e["EventName"] == "L2_READ_MISS"] > [""]


def test_tables_topics(tables):
    """Nothing that perf 6.1 would take for another event, and no name of a group for a metric"""
    events, metrics = tables
    assert {entry["topic"] for entry in metrics} == {"knc-metrics.json"}
    for entry in events:
        # These have a unit of their own, or are taken for the fixed counters.
        assert "Unit" not in entry and "." not in entry["EventName"], entry
        assert not entry["BriefDescription"].endswith("."), entry
    groups = {group for m in metrics for group in m["MetricGroup"].split(";")}
    assert groups.isdisjoint(m["MetricName"] for m in metrics)
    # perf has no metric whose events would take turns, of which one may have none.
    counters = {entry["EventName"]: entry["Counter"] for entry in events}
    assert len(metrics) > 20, metrics
    for metric in metrics:
        used = set(re.findall(r"[A-Z]\w+", metric["MetricExpr"]))
        assert len(used) <= 2 and [counters[name] for name in used].count("0") <= 1, metric
    # Only where one was read, with who says so; perf compares before it scales: 1.6 % is 0.016.
    for m in knc_tables.load()[1]:
        assert all(t.meaning and t.source and m.advice and m.advisor for t in m.thresholds), m
    assert {m["MetricName"]: m["MetricThreshold"] for m in metrics if "MetricThreshold" in m} == {
        "cpi_thread": "cpi_thread > 8", "l1_read_miss_ratio": "l1_read_miss_ratio > 0.13",
        "l1_tlb_miss_ratio": "l1_tlb_miss_ratio > 0.016",
        "vectorization_intensity": "vectorization_intensity < 8"}


def test_tables_refused():
    for tables, word in (("[topic cache]\nNO_SUCH_EVENT = 3\n", "NO_SUCH_EVENT"),
                         ("[topic cache]\nDATA_READ = 3\n", "nothing about")):
        with pytest.raises(knc_tables.Bad, match=word):
            knc_tables.describe(knc_tables.read_events(), knc_tables.read_tables(tables))
    with pytest.raises(knc_tables.Bad, match="usage"):
        knc_tables.main("nosuch", "-")
    done = subprocess.run([sys.executable, f"{TOOLS}/knc_tables.py", "perf", "/dev/null/x"],
                          check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "knc_tables: /dev/null/x: Not a directory\n")


# A perf that is none, and the same in a way to it
PERF = f"{HERE}/perf"
PERFS = PERF, f"env {PERF}"


class Run:
    """A call of knc-metrics that has ended. With files the perf is that of another machine."""

    def __init__(self, words="", *args, program=("./program",), perf=None,
                 stdin=subprocess.DEVNULL, env=None, **fake):
        self.log = Path("log")
        self.log.unlink(missing_ok=True)
        if "script" in fake:
            # Longer than an environment may be
            Path("script").write_text(json.dumps(fake["script"]))
            fake["script"] = "script"
        env = {**os.environ, **(env or {}), "FAKE_PERF": json.dumps({"log": "log", **fake})}
        # A job in the background ignores SIGINT, and so does what it starts.
        command = ["env", "--default-signal=INT", f"{TOOLS}/knc-metrics"]
        if perf != "":
            command += ["--perf", perf or PERF + " perf" * ("files" in fake)]
        done = subprocess.run([*command, *words.split(), *args, *program], check=False, env=env,
                              stdin=stdin, capture_output=True)
        self.status = done.returncode
        self.out, self.err = done.stdout.decode(), done.stderr.decode()

    def calls(self):
        return self.log.read_text().splitlines()

    def json(self):
        return json.loads(self.out)

    def metrics(self):
        return {m["metric"]: m for m in self.json()["metrics"]}

    def has_line(self, regex):
        assert re.search(f"^{regex}$", self.err, re.M), self.err

    def ends(self, status, *words):
        assert self.status == status and all(word in self.err for word in words), self.err

    def refuses(self, why, status=1):
        """It has counted nothing, too."""
        self.ends(status, why)
        assert not self.log.exists()


def as_json(words="", *args, **fake):
    run = Run(f"-f json -o - {words}", *args, **fake)
    assert run.status == 0, run.err
    return run


def clocks(cycles, instructions):
    return {"CPU_CLK_UNHALTED": cycles, "INSTRUCTIONS_EXECUTED": instructions}


# Of 4 CPUs
CORES = {"cpuinfo": "".join(f"processor\t: {cpu}\nmodel name\t: x\ncore id\t\t: {core}\n\n"
                            for cpu, core in enumerate((1, 0, 0, 1)))}


def test_metrics_threads():
    """So many threads on each core, told where they are; those that ran are counted"""
    executable(Path("taskset"), '#!/bin/sh\n[ "$1" = 0xf ] && shift && exec "$@"\n')
    words = "--threads 1,2 -M ipc", {"PATH": f"{os.getcwd()}:{os.environ['PATH']}"}
    fake = {"files": CORES, "counts": clocks(4000, 1000), "running": 9 * 10 ** 8}
    run = as_json(words[0], program=["./it", "-n{}"], env=words[1], **fake)
    assert [call.partition("-- ")[2] for call in run.calls()] == [
        "env OMP_NUM_THREADS=2 OMP_PROC_BIND=close OMP_DYNAMIC=false OMP_PLACES={1},{0} ./it -n2",
        "env OMP_NUM_THREADS=4 OMP_PROC_BIND=close OMP_DYNAMIC=false OMP_PLACES={1},{2},{0},{3} ./it -n4"]
    assert [(r["threads_per_core"], r["threads"], r["ran"], r["ipc_of_core"]) for r in run.json()] == \
        [(1, 2, near(1.8), None), (2, 4, near(1.8), None)]
    run = Run(words[0].replace("1,2", "2") + " -r 2", env=words[1], seconds=[1, 0.5], **fake)
    run.ends(0, "Fastest: 4 threads, 2 on each core", "! 4 threads were asked for, and 1.350 ran on")
    run.has_line(" +2 +4 +1.350 +0.7500 +0.2500 +0.1688 +#{20}")
    assert run.calls()[1].partition("-- ")[2].startswith("taskset 0xf env OMP"), run.calls()
    Run("--threads 3", **fake).ends(1, "not every core has 3 threads online")
    Run("--threads 1", files={"cpuinfo": "processor\t: 0\n\n"}).ends(1, "does not say which core each CPU belongs to")


def test_metrics_pairs():
    """Two events at most, one of them of unit mask 0x10; all that is needed"""
    run = as_json()
    seen = set()
    for call in run.calls():
        events = re.findall(r"event=(\w+),umask=(\w+)", call)
        assert 1 <= len(events) <= 2, call
        assert sum(umask == "0x10" for _, umask in events) <= 1, call
        assert re.search(r"-e \{cpu/[^}]*\} -e duration_time -- \./program$", call), call
        seen |= set(re.findall(r"name=(\w+?)(?:_any_1)?/", call))
    metrics = knc_tables.load()[1]
    assert seen == {name for m in metrics for name, _ in m.events()}
    for m in metrics:
        keys, got = m.events(), run.metrics()[m.name]
        if got["value"] is not None and len(keys) == 2 and not all(
                k[0].startswith(("L2_", "SNP_")) for k in keys):
            assert got["runs"] == 1, m.name


def test_metrics_paranoid():
    """What a user may not count is left out, which is said once; or refused, with what to type"""
    said = "knc-metrics: counts in user mode only, as with -u: kernel.perf_event_paranoid is 2"
    for words, fake in (("-M ipc,branch", {}), ("-I 100 -M ipc", {"times": [0.1, 0.2]}),
                        ("-a --per-thread -M ipc", {"cpus": {}, "files": CORES})):
        run = as_json(words, paranoid=2, **fake)
        assert run.err.count("user mode") == 1 and said in run.err, run.err
        assert '"ipc"' in run.out and run.json()["context"]["user"] is True
        assert "user mode" not in Run(words, "-u", paranoid=2, **fake).err
        assert not as_json(words, paranoid=1, **fake).json()["context"]["user"]
    for level, typed, words, deny in (
            (3, 2, "", "INSTRUCTIONS"), (2, 0, "", "INSTRUCTIONS"), (2, 0, "--by line", "period"),
            (2, 0, "-I 500", "INSTRUCTIONS")):
        run = Run(f"-M ipc {words}", deny=deny, paranoid=level)
        run.ends(1, f": kernel.perf_event_paranoid is {level}, which allows only root to ")
        assert run.err.endswith(f"sysctl kernel.perf_event_paranoid={typed}\"\n"), run.err
    # From 7.2 on perf only says that the events are not supported: the kernel is asked.
    for level, typed, words in ((3, 2, "-M ipc"), (2, 0, "-a -M ipc"), (1, 0, "-M cpi_core"),
                                (2, 0, "-u -M cpi_core")):
        run = Run(words, files={"sys/kernel/perf_event_paranoid": str(level),
                                "self/status": "CapEff:\t0\n"})
        assert run.status == 1 and run.err.endswith(
            f"sysctl kernel.perf_event_paranoid={typed}\"\n"), run.err


def test_metrics_values():
    """Arithmetic on what perf said: ratios, per cent, bytes, and 0 to divide by"""
    got = as_json(counts={
        **clocks(434333412, 217166628), "INSTRUCTIONS_EXECUTED_any_1": 217166630,
        "DATA_PAGE_WALK": 580482, "DATA_READ_OR_WRITE": 49717513,
        "DATA_READ_MISS_OR_WRITE_MISS": 14404150, "L1_DATA_HIT_INFLIGHT_PF1": 17,
        "L2_DATA_READ_MISS_MEM_FILL": 329250, "L2_DATA_WRITE_MISS_MEM_FILL": 11135332,
        "HWP_L2MISS": 3}).metrics()
    for name, value in (
            ("cpi_thread", 434333412 / 217166628), ("ipc", 217166628 / 434333412),
            ("cpi_core", 434333412 / 217166630), ("l1_tlb_miss_ratio", 100 * 580482 / 49717513),
            ("memory_read_bytes", 64 * (329250 + 11135332 + 3)),
            ("l1_hit_rate", 100 - 100 * (14404150 + 17) / 49717513)):
        assert got[name]["value"] == near(value), name
    assert (got["l1_tlb_miss_ratio"]["unit"], got["memory_read_bytes"]["runs"]) == ("%", 3), got
    none = got["vectorization_intensity"]
    assert none["value"] is None and "divide" in none["reason"], none


def test_metrics_threshold():
    """Exceeded ones are told, with what they mean and who says so"""
    words = "-M vectorization_intensity"
    for elements, below in ((100, ["< 8"]), (800, []), (1600, [])):
        counts = {"VPU_INSTRUCTIONS_EXECUTED": 100, "VPU_ELEMENTS_ACTIVE": elements}
        got, = as_json(words, counts=counts).metrics().values()
        assert got["value"] == elements / 100
        assert [e["threshold"] for e in got["exceeded"]] == below
    Run(words, counts={**counts, "VPU_ELEMENTS_ACTIVE": 100}).ends(
        0, "! below 8: a part of the vector unit", "S. Naik", "Align the data")


def test_metrics_limits():
    """What a metric cannot be is no value, with the reason; a mean leaves no such value out"""
    counts = {"DATA_READ_MISS_OR_WRITE_MISS": 1359, "L2_DATA_READ_MISS_MEM_FILL": 900,
              "L2_DATA_WRITE_MISS_MEM_FILL": 93, "HWP_L2MISS": 551, "DATA_READ": 1000,
              "DATA_READ_MISS": 990}
    words = "-M l1_misses_in_l2,l1_read_miss_ratio"
    none, ratio = as_json(words, counts=counts).metrics().values()
    assert none["value"] is None and not none["values"], none
    assert none["reason"].startswith("-13.61 % is outside of 0 .. 100: "), none
    assert ratio["value"] == near(99), ratio
    counts = {**counts, "DATA_READ": 980, "DATA_READ_MISS": 980}
    assert as_json(words, counts=counts).metrics()["l1_read_miss_ratio"]["value"] == 100
    got, = as_json("-r 2 -M l1_tlb_misses_per_l2_tlb_miss", grow=10,
                   counts={"DATA_PAGE_WALK": -9, "LONG_DATA_PAGE_WALK": -8}).metrics().values()
    assert "is outside of 1 ..: " in got["reason"], got
    # Of samples, by no more than their error
    for misses, value in ((1010, 100), (1600, None)):
        report, _ = by("function", "-M l1_read_miss_ratio", *[script_of(
            (misses, "DATA_READ_MISS", "f", "/p"), (1000, "DATA_READ", "f", "/p"))] * 2,
            counts={"DATA_READ": 101000, "DATA_READ_MISS": 101000})
        assert report["rows"][0]["metrics"]["l1_read_miss_ratio"]["value"] == value, report
    assert all(m.least < m.most for m in knc_tables.load()[1])


def test_metrics_halted():
    """On all CPUs a core's clocks are taken once; a thread's own are those in user mode."""
    cpus = {"CPU_CLK_UNHALTED": {"0": 4000, "1": 1000, "2": 1010, "3": 3990},
            "INSTRUCTIONS_EXECUTED": {"0": 2000, "1": 500, "2": 0, "3": 0},
            "INSTRUCTIONS_EXECUTED_any_1": {"0": 2000, "1": 500, "2": 500, "3": 2000},
            **{name: dict.fromkeys("0123", 10) for name in (
                "EXEC_STAGE_CYCLES", "DATA_READ_OR_WRITE", "DATA_READ_MISS_OR_WRITE_MISS")}}
    fake = {"cpus": cpus, "files": CORES, "running": 10 ** 9}
    words = "-a -M cpi,latency_impact"
    got = as_json(words, **fake).metrics()
    for name in "cpi_thread", "ipc", "latency_impact":
        assert got[name]["value"] is None and "a thread that halts reads" in got[name]["reason"], got
    assert (got["cpi_core"]["value"], got["clock_rate"]["value"]) == near((5010 / 2500, 2505e-9))
    rows = as_json(words, "-I", "500", times=[0.5], **fake).json()["rows"]
    assert {n: m["value"] for row in rows for n, m in row["metrics"].items()}["cpi_core"] == \
        near(5010 / 2500)
    cpus["CPU_CLK_UNHALTED"].update({"2": 0, "3": 0})
    got = as_json(words, "-u", **fake).metrics()
    assert got["cpi_thread"]["value"] == near(2) and got["ipc"]["value"] == near(0.5), got
    for name in "cpi_core", "clock_rate":
        assert "own user mode only" in got[name]["reason"], got


def test_metrics_numbers():
    """Mean and spread of runs; none is 0 for being small; the program's locale"""
    fake = {"grow": 10, "counts": {"DATA_READ_MISS_OR_WRITE_MISS": 100,
                                   "L1_DATA_HIT_INFLIGHT_PF1": 0}}
    run = as_json("-r 3 -M l1_misses", **fake)
    got = run.metrics()["l1_misses"]
    assert (len(run.calls()), got["min"], got["value"], got["max"]) == (3, 100, 120, 140)
    Run("-r 3 -M l1_misses", **fake).has_line(r".*l1_misses +120 +100 \.\. 140.*")
    assert [knc_format.number(n) for n in (0, 12.3456, 0.05, 0.1234567, -0.0012345, 3e-5)] == \
        ["0", "12.35", "0.0500", "0.1235", "-0.00123", "0.0000300"]
    run = as_json("-M ipc", locale="C.UTF-8", env={"LC_ALL": "C.UTF-8"})
    assert run.metrics()["ipc"]["value"] == near(0.5)


def switches(*spans):
    """What perf script prints of (thread, CPU, from, to)"""
    lines = sorted((at, f"p q {tid} [{cpu:03}] {at:.9f}: PERF_RECORD_SWITCH {what}")
                   for tid, cpu, *times in spans for at, what in zip(times, ("IN", "OUT preempt")))
    return [line for _, line in lines]


def test_metrics_side_by_side():
    """What each thread counts for its core is no sum, unless one of a core runs at a time"""
    together = switches((1, 0, 1, 9), (2, 0, 8, 9), (3, 0, 8, 9))
    in_turn = switches((1, 0, 1, 2), (2, 0, 2, 3), (1, 0, 3, 4))
    scripts = [script_of((50, "L2_VICTIM_REQ_WITH_DATA", "f", "/p"))] * 2
    for lines, is_right in ((together, False), (in_turn, True), (["a b [000] 1.0: no record"], False)):
        got = as_json("-M memory_write_bytes,ipc,memory_read_bandwidth", switches=lines).metrics()
        wrote = got["memory_write_bytes"]
        assert got["ipc"]["value"] and got["memory_read_bandwidth"]["value"], got
        assert (wrote["value"] is not None) == is_right, got
        assert is_right or "L2_VICTIM_REQ_WITH_DATA for its core" in wrote["reason"], got
        report, _ = by("function", "-M memory_write_bytes", *scripts, switches=lines)
        assert ("memory_write_bytes" in report["rows"][0]["metrics"]) == is_right, report
        assert ("for its core" in str(report["no_value"])) != is_right, report
    report, _ = by("function", "-a -M memory_write_bytes", *scripts)
    assert "does not show which" in report["no_value"]["memory_write_bytes"], report


def test_metrics_core():
    """What each thread counts for its core comes from one thread of each core."""
    cpus = {"L2_VICTIM_REQ_WITH_DATA": {"0": 90000, "1": 500, "2": 0, "3": 90500},
            "SNP_HITM_L2": {"0": 1, "1": 2, "2": 3, "3": 4}}
    fake = {"cpus": cpus, "counts": {"SNP_HITM_L2": 10}, "files": CORES, "seconds": [2] * 9}
    words = "-a -M memory_write_bytes,memory_write_bandwidth,cpi_core"
    wrote = 64 * (500 + 90500 + 10)
    run = as_json(words, **fake)
    for said in Run(words, **fake).err, str(run.json()["notes"]):
        assert "by one thread of each core" in said, said
    for name, value in (("memory_write_bytes", wrote), ("cpi_core", 2),
                        ("memory_write_bandwidth", wrote / 2 * 1e-9)):
        assert run.metrics()[name]["value"] == near(value), run.out
    rows = as_json(words, "-I", "500", times=[0.5, 1.5], **fake).json()["rows"]
    assert [row["metrics"]["memory_write_bytes"]["value"] for row in rows
            if "memory_write_bytes" in row["metrics"]][:2] == [wrote, wrote * 2], rows
    cpus["L2_VICTIM_REQ_WITH_DATA"]["0"] = 1500
    got = as_json(words, **fake).metrics()
    assert "do not agree" in got["memory_write_bytes"]["reason"], got


def test_overlap():
    """Of each core's busy time; a thread may be on its CPU before and after what is recorded"""
    def share(lines):
        return knc_overlap.share([*knc_overlap.spans(lines)], {0: (0, 0), 1: (0, 1), 4: (1, 0)})

    one = switches((1, 0, 0, 4))
    assert share(switches((1, 0, 0, 4), (2, 1, 3, 4))) == near(0.25)
    assert share(switches((1, 0, 0, 4), (2, 4, 0, 4))) == 0
    assert share(one[1:] + switches((2, 1, 4, 8))) == 0
    assert share([*switches((9, 4, 0, 1)), *switches((1, 0, 1, 4))[:1], *switches((2, 1, 1, 4))]) == near(3 / 4)
    with pytest.raises(knc_overlap.Unknown, match="lost"):
        share([*one, "p 1 [000] 5.0: PERF_RECORD_LOST lost 7"])


def test_metrics_background():
    """perf has ended, though a process of the program's goes on with its stderr"""
    script = executable(Path("perf"), f'#!/bin/sh\nsleep 60 >/dev/null &\nexec {PERF} "$@"\n')
    began = time.monotonic()
    for words in ("-M ipc", "-M ipc -I 100"):
        assert as_json(words, perf=f"./{script}", times=[0.5]).out
    assert time.monotonic() - began < 40


def test_metrics_interrupted():
    """What was counted before a ^C is not lost; an -o that cannot be written is found first"""
    run = Run("-M cpi,tlb", interrupt=2)
    run.ends(130, "in run 3; this")
    run.has_line("cpi_thread +2")
    assert len(run.calls()) == 3, run.err
    Run("-M ipc -o /no/such/file").refuses("/no/such/file")


def test_metrics_not_counted():
    """What has no count, or is refused, is no 0, has a reason, and takes no other metric with it"""
    for name, value, share, deny, why in (
            ("branch_mispredict_ratio", "<not counted>", "0.00", "", "another perf"),
            ("branch_mispredict_ratio", "<not counted>", "100.00", "", "nothing ran"),
            ("branch_mispredict_ratio", "<not supported>", "100.00", "", "not supported"),
            ("cpi_core", 10 ** 6, "100.00", "any=1", "perf_event_paranoid")):
        got = as_json("-M cpi,branch", counts={"BRANCHES": value}, shares={"BRANCHES": share},
                      deny=deny).metrics()
        assert got[name]["value"] is None and why in got[name]["reason"], got
        for other in "cpi_thread", "ipc":
            assert got[other]["value"] and not got[other]["reason"], got


def test_metrics_calls():
    """perf is called for the PMU of the machine that counts, where a file that is not there is
    empty; if it has no time of a program it begins later, in a run of its own."""
    for words, fake, said in (("-M ipc", {"files": {"knc/type": "4"}}, "-e {knc/event="),
                              ("-M ipc", {"files": {}}, "-e {cpu/event="),
                              ("-M l2_tlb_miss_ratio -a", {"program": ()}, "-a -- sleep 1\n"),
                              ("-M l2_tlb_miss_ratio -a", {}, "-a -- ./program\n")):
        assert said in as_json(words, **fake).log.read_text().partition("\n")[0] + "\n", said
    run = as_json("-M memory_read_bandwidth,ipc", unstarted=True)
    assert run.metrics()["memory_read_bandwidth"]["value"], run.out
    assert ["-D 1 " in call for call in run.calls()].count(True) == 1, run.calls()
    assert "-D 1 " not in as_json("-M ipc", unstarted=True).log.read_text()


def test_metrics_not_modelled():
    """On the emulated card what it has no model of is not counted, and has no value"""
    run = as_json("-M v_pipe_share,ipc,vpu_stall_ratio",
                  files={"cpuinfo": "model name : a card (emulated)"})
    share, ipc, stalls = run.metrics().values()
    assert ipc["value"] and len(run.calls()) == 1, run.out
    for got, event in (share, "INSTRUCTIONS_EXECUTED_V_PIPE"), (stalls, "VPU_STALL_REG"):
        assert (got["value"], got["reason"]) == (None, f"the emulator has no model of {event}")
    Run("-M v_pipe_share", files={"cpuinfo": "model name: (emulated)"}).ends(
        1, "no model of INSTRUCTIONS_EXECUTED_V_PIPE")


def test_metrics_stderr():
    """What the program says is passed on as it is, and no part of perf's report"""
    for says in ("no end", "12%\r100%\r", "1;;ipc;1;100.00\n", "", "Error:\nnot perf's\n"):
        for perf in PERFS:
            run = Run("-M ipc -o out", perf=perf, says=says)
            assert (run.status, run.out, run.err) == (0, "", says), perf
            assert re.search(r"^ipc +0\.5000$", Path("out").read_text(), re.M), says


def test_metrics_ssh_breaks():
    """What may be counted in part is told beside the values, in each form, and by the status."""
    ssh = executable(Path("ssh"), '#!/bin/sh\nshift; bash -c "$*"\n'
                     'case $* in *" stat "*) exit 255; esac\n')
    for words, fake, more in (("", {}, ""), ("-I 500", {"times": [0.5]}, ""),
                              ("-a --per-thread", {"cpus": {}, "files": CORES}, " perf")):
        Run(f"-M ipc {words}", perf=f"./{ssh} mic0 {PERF}{more}", **fake).ends(
            255, "! ssh has ended with status 255")
    # The program of this machine ends as it likes.
    assert "ssh" not in Run("-M ipc", status=255).err


def test_metrics_stdin():
    """Each run reads the same; an input without an end does not fill the disk."""
    Path("in").write_text("skipped line")
    with open("in", encoding="utf-8") as file:
        os.lseek(file.fileno(), 8, os.SEEK_SET)
        with subprocess.Popen(["printf", "line"], stdout=subprocess.PIPE) as pipe:
            for stdin in (file, pipe.stdout):
                calls = as_json("-M tlb", stdin=stdin, reads=True).calls()
                assert [call.split(" < ")[1] for call in calls] == ["line"] * 3
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as pipe:
        run = Run("-M tlb", stdin=pipe.stdout)
        pipe.terminate()
    run.refuses("more than 256 MiB")


def test_metrics_turns():
    """Attached: turns of different length are compared by their rates"""
    pid = os.getpid()
    run = as_json(f"-p {pid} -t 0.04 -M l1_hit_rate", program=(), seconds=[1, 3], counts={
        "DATA_READ_OR_WRITE": 3000, "DATA_READ_MISS_OR_WRITE_MISS": 100,
        "L1_DATA_HIT_INFLIGHT_PF1": 0})
    calls = run.calls()
    assert [f"-p {pid} -- sh -c n=$0; " in call and call.endswith(f" 1 {pid}") for call in calls] == \
        [True] * 2, calls
    # The accesses are those of the short turn or of the long one, whichever has them.
    accesses, misses = (3000, 100 / 3) if "DATA_READ_OR_WRITE" in calls[0] else (1000, 100)
    assert run.metrics()["l1_hit_rate"]["value"] == near(100 - 100 * misses / accesses)
    # A process has ended, too, that its parent does not wait for.
    with subprocess.Popen("true") as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        subprocess.run(["sh", "-c", knc_runs.TURN, "6000", str(ended.pid)], check=True, timeout=60)


def test_metrics_csv():
    run = Run("-f csv -o csv")
    assert (run.status, run.out) == (0, ""), run.err
    rows = {row["metric"]: row for row in csv_rows(Path("csv"))}
    assert {name: (row["value"], row["groups"].split(";")) for name, row in rows.items()} == {
        name: ("" if m["value"] is None else repr(m["value"]), m["groups"])
        for name, m in as_json().metrics().items()}


def test_metrics_once():
    """A program that fails is not run again; without perf nothing is tried; one line says why"""
    for words, line in (("-M cpi,tlb", "cpi_thread +2"), ("-M ipc --by line", ".*")):
        run = Run(words, status=3, says="usage: program FILE\n")
        assert run.status == 3 and len(run.calls()) == 1 and run.err.count("usage") == 1, run.err
        run.has_line(line)
        assert run.err.count("./program has ended with status 3, and is not run") == 1, run.err
    ssh = executable(Path("ssh"), "#!/bin/sh\necho ssh: no such host >&2; exit 255\n")
    for perf, why in ((f"{HERE}/nosuch", "No such file or directory"),
                      (f"./{ssh} mic9 perf", "ssh: no such host")):
        run = Run("-M cpi,tlb", perf=perf)
        assert (run.status, run.err) == (1, f"knc-metrics: {perf}: {why}\n")


def test_metrics_killed():
    """A program that a signal has ended has the status that a shell gives it"""
    for perf in PERFS:
        for status, fake in ((139, {"signal": "Segmentation fault"}), (137, {"signal": "Killed"}),
                             (137, {"signal": "Killed", "says": "no end"}),
                             (0, {"says": "somebody: Killed\n"})):
            assert Run("-M ipc", perf=perf, **fake).status == status, fake


def test_shell_debian_perf():
    """Where perf has no tables, the shell's perf says so of -M, which it would ignore"""
    said = subprocess.run([f"{TOP}/uos/perf", "stat", "-M", "ipc", "true"], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    assert "perf: -M is ignored" in said and "knc-metrics" in said, said


def test_metrics_refused():
    """Bad calls are told apart, and count nothing; names may have blanks, and be in several -M."""
    run = as_json("-M", "ipc, branch_mispredict_ratio", "-M", "cpi_thread")
    assert [*run.metrics()] == ["ipc", "branch_mispredict_ratio", "cpi_thread"]
    for words, why in (
            ("", "which program"), ("-p 1 x", "neither a program"), ("-p 1 -a", "neither a program"),
            ("-r 0 x", "number above 0"), ("-t x x", "number above 0"), ("-I 0 x", "above 0"),
            ("--by line -r 2 x", "do not go together"), ("--by line -I 10 x", "do not go together"),
            ("--by word x", "invalid choice"), ("--per-core x", "wants -a"), ("--symfs / x", "is for --by"),
            ("--threads 5 x", "numbers from 1 to 4"), ("--threads 1 -a x", "takes a program"),
            ("-p 4194305", "no process 4194305"), ("-p 1,x", "no process x"),
            ("--first-call x", "wants --regions"), ("--cores 1 x", "is for --threads"), ("--versus x -a x", "takes two programs"),
            ("--versus x -f csv x", "takes two programs"),
            *((f"--regions {more}", "--regions takes a program") for more in (
                "--versus x x", "-a x", "-p 1", "-a")),
            *(("-M ipc,nosuch x", why) for why in ("nosuch: no such metric", "l1_hit_rate", " tlb"))):
        run = Run(words, program=())
        assert run.status in (1, 2) and why in run.err and not run.log.exists(), (words, run.err)
    Run(perf="").ends(1, "no Knights Corner")
    # Without a driver
    card = "vendor_id : GenuineIntel\ncpu family : 11\nmodel : 1\n"
    Run("-M ipc", files={"cpuinfo": card}).refuses("insmod knc_pmu.ko")


def test_metrics_list():
    """All metrics, their formulas and their sources; a reader that has seen enough is no error"""
    run = Run("--list", program=())
    for metric in knc_tables.load()[1]:
        expr, limits, brief, source = map(
            re.escape, (metric.expr, metric.limits, metric.brief, metric.source))
        assert re.search(rf"^{metric.name}  \(.*\n    {expr}; {limits}\n(.*\n)?    {brief}.*\n"
                         rf"    Source: {source}\.\n", run.out, re.M), metric.name
    assert quietly("sh", "-c", f"{TOOLS}/knc-metrics --list | head -n 1").count("\n") == 1


def script_of(*samples):
    """What perf script prints of (how many, event, function, object[, source])"""
    return [line for at, (n, event, function, file, *source) in enumerate(samples, 4) for line in
            [f"{event}:      4016f4 {function}{f'+0x{at:x}' * (function[0] != '[')} ({file})",
             *(f"  {s}" for s in source)] * n]


def by(what, words, *scripts, **fake):
    run = as_json(f"--by {what} {words}", script=scripts, **fake)
    return run.json(), run


# Three thousand samples of the one, and none of the other
BRANCHES = {"BRANCHES": 3027000, "BRANCHES_MISPREDICTED": 0}


def test_by_function():
    """Shares, counts and metrics of samples, in the order of the clocks"""
    report, run = by("function", "-M cpi_thread,clock_rate", script_of(
        (60, "INSTRUCTIONS_EXECUTED", "less", "/root/p"),
        (500, "CPU_CLK_UNHALTED", "less", "/root/p"),
        (2940, "INSTRUCTIONS_EXECUTED", "most(int, char (*)[2])", "/a (b) c/p (deleted)"),
        (2498, "CPU_CLK_UNHALTED", "most(int, char (*)[2])", "/a (b) c/p (deleted)"),
        (2, "CPU_CLK_UNHALTED", "rare", "[kernel.kallsyms]")) + ["", "what is this"],
        counts=clocks(6000000, 3000000))
    assert [call.split()[0] for call in run.calls()] == ["stat", "record"]
    assert report["no_value"] == {"clock_rate": "samples do not show how long a thread ran"}
    # Primes, one sample in 3000
    events = report["events"]
    assert [(e["period"], e["samples"], e["counted"], e["lost"]) for e in events.values()] == \
        [(2003, 3000, 6000000, 0), (1009, 3000, 3000000, 0)]
    assert "period=2003,name=CPU_CLK_UNHALTED/,cpu/event=0x16,umask=0x00,period=1009,name=" in \
        run.calls()[1] and run.calls()[1].endswith("}:D -- ./program"), run.calls()[1]
    most, less, rare = report["rows"]
    assert (most["function"], most["object"], most["line"], less["function"]) == \
        ("most(int, char (*)[2])", "/a (b) c/p (deleted)", None, "less")
    cycles = most["events"]["CPU_CLK_UNHALTED"]
    assert [cycles[key] for key in ("samples", "count", "share")] == \
        near([2498, 2498 * 2003, 2498 / 3000])
    cpi = most["metrics"]["cpi_thread"]
    assert cpi["value"] == near(2498 * 2003 / (2940 * 1009))
    # sqrt(1 / n + 1 / m), as far as errors are small
    assert abs(cpi["error"] / (1 / 2498 + 1 / 2940) ** 0.5 - 1) < 0.02, cpi
    # A function exceeds a threshold, though the program does not.
    assert [([t["threshold"] for t in row["metrics"]["cpi_thread"]["exceeded"]], row["hot"])
            for row in report["rows"]] == [([], True), (["> 8"], False), ([], False)]
    cpi = rare["metrics"]["cpi_thread"]
    assert (cpi["value"], cpi["reason"]) == \
        (None, "too few samples: 2 of CPU_CLK_UNHALTED, 0 of INSTRUCTIONS_EXECUTED")


def test_by_few():
    """What rests on too few samples is not shown; and no digits that are not certain"""
    for n, shown in ((26, True), (24, False)):
        report, _ = by("function", "-M branch_mispredict_ratio", script_of(
            (3000, "BRANCHES", "f", "/p"), (n, "BRANCHES_MISPREDICTED", "f", "/p")),
            counts={**BRANCHES, "BRANCHES_MISPREDICTED": 101 * n})
        got = report["rows"][0]["metrics"]["branch_mispredict_ratio"]
        assert (got["value"] is None) == ("too few samples: " in got["reason"]) != shown, got
    for cycles, words in ((6000000, r"2\.02 +\+- 3 %"), (30000000, r"10\.1 +\+- 3 %  ! above 8")):
        Run("--by function -M cpi_thread", counts=clocks(cycles, 3000000), script=[script_of(
            (3000, "INSTRUCTIONS_EXECUTED", "f", "/p"), (3050, "CPU_CLK_UNHALTED", "f", "/p"))
            ]).has_line(f" +cpi_thread +{words}")


def test_by_line(tmp_path):
    """Lines with the file's whole path; where there is none, why"""
    program = tmp_path / "program"
    program.touch()
    event = "DATA_CACHE_LINES_WRITTEN_BACK"
    text = script_of(*((n, event, *where) for n, *where in (
        (40, "walk", program, "/src/where.c:28"), (30, "walk", program, "/src/where.c:29"),
        (15, "nowhere", program, "nowhere+12"), (5, "[unknown]", program, "program[4016f4]"),
        (4, "[unknown]", "/not/here"), (3, "do_it", "[kernel.kallsyms]"),
        (2, "[unknown]", "[kernel.kallsyms]"), (1, "[unknown]", "[unknown]"))))
    counts = {event: 10100, "DATA_READ_MISS_OR_WRITE_MISS": 0}
    report, run = by("line", "-M l1_l2_bytes", text, counts=counts)
    # Of the samples of each place one has its line looked up.
    assert re.search(r"^.*dso\n.*,symoff,dso,srcline --full-source-path --time 1\.5,1\.5$",
                     Path(f"{run.log}.script").read_text()), run.log
    assert [(r["file"], r["path"], r["line"]) for r in report["rows"]][:3] == \
        [("where.c", "/src/where.c", 28), ("where.c", "/src/where.c", 29), (None,) * 3]
    row = report["rows"][1]
    assert (row["cost"], row["metrics"][report["cost"]]["value"]) == near((0.3, 64 * 30 * 101))
    for row, word in zip(report["rows"][2:], ("with -g", "stripped", "no file /not/here",
                                              "vmlinux", "kptr_restrict", "no file"), strict=True):
        assert word in row["reason"], (row, word)
    Run("--by line -M l1_l2_bytes", script=[text], counts=counts).has_line(
        "hot: where.c:28  walk has 40% of l1_l2_bytes\n"
        "hot: where.c:29  walk has 30% of l1_l2_bytes\n")
    Run("--by line -M l1_l2_bytes", counts=counts, script=[script_of(
        *((10, event, "f", "/p", f"/a.c:{n}") for n in range(1, 11)))]).ends(
            0, "no line has a quarter of l1_l2_bytes: none is hot\n")


def assembled(text):
    """A program of this, that is not run"""
    subprocess.run(["gcc", "-nostdlib", "-static", "-Wl,-e,hot", "-x", "assembler", "-o", "p", "-"],
                   input=text, text=True, check=True)
    return Path("p").absolute()


def test_by_assembly():
    """The instruction that has the samples, and those around it; of no other function"""
    path = assembled(".globl hot, cold\n.type hot, @function\nhot: nop\nnop\nnop\nnop\nincl %eax\n"
                     "ret\n.type cold, @function\ncold: ret\n")
    text = script_of((2400, "BRANCHES", "hot", path), (600, "BRANCHES", "cold", path))
    report, _ = by("function", "-M branch", text, counts=BRANCHES)
    cold, hot = report["rows"]
    assert [(a["instruction"].split()[0], a["share"]) for a in hot["assembly"]] == \
        [("nop", 0)] * 4 + [("inc", 0.8), ("ret", 0)]
    assert cold["assembly"] == []
    Run("--by function -M branch", script=[text], counts=BRANCHES).has_line(
        r"hot  \(/.*\n( +0\.0%  [0-9a-f]+:  nop\n){4} +80.0%  [0-9a-f]+:  inc .*")


VECTORS = """.globl hot, kernel
.type kernel, @function
kernel: mov $1000, %ecx
1: .byte 0x62,0xf1,0x78,0x08,0x28,0x07	# vmovaps (%rdi), %zmm0
.byte 0x62,0xf1,0x78,0x08,0x58,0xc2	# vaddps %zmm2, %zmm0, %zmm0
.byte 0xc5,0xf8,0x41,0xc1	# kand %k1, %k0
.byte 0xc5,0xfb,0xae,0xf0	# spflt %eax
dec %ecx
jnz 1b
ret
.size kernel, .-kernel
.type hot, @function
hot: ret
"""


def test_listing(monkeypatch):
    """The card's own instructions, in programs of either machine; else what lists them"""
    path = assembled(VECTORS)
    code = path.read_bytes()
    for machine in (62, 181):
        path.write_bytes(code[:18] + bytes([machine, 0]) + code[20:])
        found, why = knc_listing.instructions(path, "kernel")
        assert [words.split()[0] for _, words in found] == \
            ["mov", "vmovapsz", "vaddps", "kand", "spflt", "dec", "jnz", "ret"] and not why, found
        assert [address - found[0][0] for address, _ in found] == [0, 5, 11, 17, 21, 25, 27, 29]
        assert knc_listing.instructions(path, "hot")[0][0][1] == "ret"
        with monkeypatch.context() as patch:
            patch.setattr(knc_listing, "ZYDIS", ())
            found, why = knc_listing.instructions(path, "kernel")
            assert not found and "Debian: zydis-tools" in why, why
            assert len(knc_listing.instructions(path, "hot")[0]) == 1
            patch.setattr(knc_listing, "OBJDUMPS", {})
            assert "Debian: binutils" in knc_listing.instructions(path, "hot")[1]
    # The report has the reason instead of instructions.
    Run("--by function -M branch", script=[script_of((3000, "BRANCHES", "gone", path))],
        counts=BRANCHES).ends(0, "    objdump finds no function gone in ")


def test_python(tmp_path):
    """An older Python is told what a tool needs, before it reads what it cannot."""
    # The rest of the imports would be found here.
    Path("argparse.py").write_text("raise SystemExit('imported before')\n")
    begin = "import runpy, sys\nsys.version_info = (3, int(sys.argv[1]), 8)\nsys.argv[:] = sys.argv[2:]\n" \
        f"sys.path[:0] = ['{tmp_path}', '{TOOLS}']\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
    for name in ("knc-draw", "knc-metrics", "knc-report", "knc_card.py", "knc_data.py",
                 "knc_tables.py", "knc_watch.py"):
        ast.parse(Path(TOOLS, name).read_text(), feature_version=(3, 6))
        for minor in "678":
            done = subprocess.run([sys.executable, "-S", "-c", begin, minor, f"{TOOLS}/{name}"],
                                  check=False, capture_output=True, text=True)
            assert (done.returncode, done.stderr) == \
                (1, f"{name}: needs Python 3.9; this is 3.{minor}\n")
    ast.parse(Path(TOOLS, "knc_python.py").read_text(), feature_version=(3, 6))


def test_packages():
    """With -S Python has none: two programs name the one that they need, and all others run."""
    for words, why in (
            ("knc-report x", "knc-report: needs the package python3-jinja2: No module named 'jinja2'\n"),
            ("knc_watch.py x --textfile x", "knc-host watch: error: needs the package "
             "python3-prometheus-client: No module named 'prometheus_client'\n"),
            ("knc-report --help", ""), ("knc_watch.py --rules", ""), ("knc-draw --help", ""),
            ("knc-metrics --help", ""), ("knc_tables.py perf -", "")):
        done = subprocess.run([sys.executable, "-S", *f"{TOOLS}/{words}".split()], check=False,
                              capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (bool(why), why), words


def test_by_lost(monkeypatch):
    """Samples that were lost, or not taken, are told; a throttled run is repeated"""
    monkeypatch.setenv("PATH", HERE, prepend=":")
    words, counts = "-M ipc", clocks(6000000, 3000000)
    text = script_of((3000, "INSTRUCTIONS_EXECUTED", "f", "/p"),
                     (3000, "CPU_CLK_UNHALTED", "f", "/p"))
    for lost in ((100, 0), (0, 100), (60, 100)):
        report, _ = by("function", words, text, counts=counts, lost=lost)
        assert [e["lost"] for e in report["events"].values()] == [100, 100]
    Run("--by function -M ipc", counts=counts, script=[text], lost=lost).ends(
        0, "! run 1: 100 of 6,100 samples were lost")
    # A run that was cut has no metrics, and the status says so.
    for perf in PERFS:
        run = Run("--by function -M ipc", counts=counts, script=[text], cut=8, perf=perf)
        run.ends(1, "! run 1: the data is cut: it has 6,000 samples, and what came after them is "
                 "missing\n")
        assert "no value: ipc" not in run.err, run.err
    for scripts, fake, reason in (
            ([text], {"lost": (1000, 0)}, "1000 samples were lost, and 6000 were not"),
            ([text] * 4, {"throttled": [0, 1, 1, 1, 1]}, "throttled"),
            ([text[::2]], {}, "account for 50 % of"), ([text[:1]], {}, "account for 0 % of")):
        report, _ = by("function", words, *scripts, counts=counts, **fake)
        got = report["rows"][0]["metrics"]["ipc"]
        assert got["value"] is None and reason in got["reason"], got
    # The second run has samples four times as far apart, and was not throttled.
    report, run = by("function", words, [], text[::4], counts=counts, throttled=[0, 1, 0])
    assert (len(run.calls()), {e["period"] for e in report["events"].values()}) == (3, {4049, 8017})
    assert report["rows"][0]["metrics"]["ipc"]["value"], report["rows"]


def test_by_where(tmp_path, monkeypatch):
    """Of another machine: through a pipe, with its kernel's symbols, and its files, or --symfs"""
    monkeypatch.setenv("PATH", HERE, prepend=":")
    program = tmp_path / "program"
    program.write_text("the card's")
    for symfs, file, word in (("", "/not/there", "could not be had from the card; --symfs DIR has"),
                              ("", program, "stripped"), ("--symfs /usr", "/bin", "stripped"),
                              ("--symfs /usr", program, "could not be had from the card")):
        report, run = by("function", f"-M branch {symfs}", script_of(
            (50, "BRANCHES", "[unknown]", file)), perf="env perf",
            counts={"BRANCHES": 5000, "BRANCHES_MISPREDICTED": 0})
        assert word in report["rows"][0]["reason"], report["rows"][0]
        assert run.calls()[1].startswith("record -q -B -o - -P "), run.calls()
        said = Path(f"{run.log}.script").read_text().splitlines()[-1]
        assert re.search(r"script -i \S+/perf.data .* --kallsyms \S+ --symfs /", said), said


def test_form():
    """JSON where perf has it"""
    for version, form in ("2.6.38", "-x;"), ("6.1.187", "-j"), ("7.3.4", "-j"), ("10.0", "-j"):
        assert Run("-M ipc", version=version).calls()[0].startswith(f"stat {form} -o ")


def test_intervals():
    """Each interval's own values, and none of one without counts; nothing that several runs give"""
    fake = {"times": [0.5, 1.5], "counts": clocks(1000, 500)}
    words = "-I 500 -M ipc,clock_rate,cpi_core,latency_impact"
    for perf in PERFS:
        run = as_json(words, perf=perf, **fake)
        assert len(run.calls()) == 3 and "stat -x; -I 500 --log-fd" in run.calls()[0], run.calls()
        rows = run.json()["rows"]
        assert [(r["run"], r["begin"], r["end"]) for r in rows] == \
            [(at, *times) for at in (1, 2, 3) for times in ((0, 0.5), (0.5, 1.5))]
        assert [[*r["metrics"]] for r in rows[::2]] == [["ipc", "clock_rate"], ["cpi_core"],
                                                       ["latency_impact"]]
        # Two threads in the first interval, which is half as long, and one in the other
        assert [row["metrics"]["clock_rate"]["value"] for row in rows[:2]] == [near(1e-6), near(2e-6)]
    Run(words, says="", **fake).has_line(
        r"run 1 of 3: .*\n +seconds +ipc +clock_rate \[GHz\]\n +0\.500 +0\.5000 .*")
    run = Run("-I 500 -f csv -o - -M ipc -a -u", program=(), cpus={}, files=CORES, **fake)
    assert run.out == "run,begin,end,metric,value,unit,min,max,error,runs,reason\n" \
        "1,0.0,0.5,ipc,0.5,,,,,1,\n1,0.5,1.5,ipc,0.5,,,,,1,\n"
    assert run.calls()[0].endswith("-A -a -- sleep 1"), run.calls()
    for row in as_json("-I 500 -M ipc", times=[0.5, 1.5], share="40.00").json()["rows"]:
        got = row["metrics"]["ipc"]
        assert got["value"] is None and "40 %" in got["reason"], row
    # Three events on one counter take turns: perf has scaled them.
    words = "-I 500 -M memory_read_bandwidth"
    fake = {"times": [0.5], "share": "33.30", "counts": {"HWP_L2MISS": 10 ** 7}}
    run = as_json(words, **fake)
    assert "{" not in run.calls()[0], run.calls()
    found, = run.json()["rows"][0]["metrics"].values()
    assert (found["value"], found["runs"]) == (near(64 * 12 * 10 ** 6 / 0.5 * 1e-9), 3)
    assert "~1.536" in Run(words, **fake).err
    run = as_json("-I 500 -M memory_bandwidth,ipc", times=[0.5],
                  switches=switches((1, 0, 0, 4), (2, 0, 0, 4)))
    assert "two of a core ran" in run.json()["no_value"]["memory_bandwidth"], run.out
    assert Run("-I 500 -M ipc", status=3, times=[0.5]).status == 3


def places(words, **fake):
    run = as_json(f"-a {words}", files=CORES, **fake)
    assert " -A " in run.calls()[0], run.calls()
    return {(r["core"], r["thread"]): r for r in run.json()["rows"]}


def test_per_core():
    """Sums over the threads of a core, but of what each thread has of its core"""
    cpus = {"CPU_CLK_UNHALTED": {"0": 4000, "1": 1000, "2": 1000, "3": 4000},
            "INSTRUCTIONS_EXECUTED_any_1": {"0": 2000, "1": 250, "2": 250, "3": 2000},
            "DATA_READ_MISS_OR_WRITE_MISS": {"0": 1, "1": 2, "2": 4, "3": 8},
            "DATA_CACHE_LINES_WRITTEN_BACK": {"0": 10, "1": 20, "2": 40, "3": 80}}
    words = "--per-core -M " \
        "cpi_core,clock_rate,l1_l2_bytes,cpi_thread,ipc,latency_impact,memory_write_bytes"
    got = places(words, cpus=cpus, running=2 * 10 ** 9)
    assert {at: row["cpus"] for at, row in got.items()} == {(0, None): [1, 2], (1, None): [0, 3]}
    value = {at: {n: m["value"] for n, m in row["metrics"].items()} for at, row in got.items()}
    assert [value[core, None][name] for name in ("cpi_core", "l1_l2_bytes") for core in (0, 1)] == \
        [4, 2, 64 * 66, 64 * 99] and value[1, None]["clock_rate"] == near(4000 / 2 * 1e-9), value
    # A metric that has none is refused before the program runs.
    run = Run(f"-a {words}", files=CORES, cpus=cpus)
    for name in "cpi_thread", "ipc", "latency_impact":
        run.has_line(f"no value: {name}: .*--per-thread.*")
    Run("-a --per-core -M ipc", files=CORES, cpus=cpus).refuses("a thread only: --per-thread")
    # A thread in user mode has not seen all of the core's clocks.
    got = places(f"-u {words}", cpus=cpus)
    assert "own user mode" in got[0, None]["metrics"]["cpi_core"]["reason"], got
    # Threads that do not agree on what they share, or of which one was not counted
    for cycles, word in (({"0": 4000, "3": 3000}, "do not agree"),
                         ({"0": 4000, "3": "<not counted>"}, "nothing ran")):
        cpus["CPU_CLK_UNHALTED"].update(cycles)
        got = places(words, cpus=cpus)
        assert word in got[1, None]["metrics"]["clock_rate"]["reason"], got


def test_per_thread():
    """Each thread by its core's number; the text and CSV have the same"""
    cpus = {"CPU_CLK_UNHALTED": dict.fromkeys("0123", 4000),
            "INSTRUCTIONS_EXECUTED": {"0": 1000, "1": 2000, "2": 500, "3": 4000}}
    words = "--per-thread -u -M cpi_thread,memory_write_bytes"
    got = places(words, cpus=cpus)
    assert {at: row["metrics"]["cpi_thread"]["value"] for at, row in got.items()} == \
        {(0, 0): 2, (0, 1): 8, (1, 0): 4, (1, 1): 1}
    run = Run(f"-a {words}", files=CORES, cpus=cpus)
    run.has_line("core  thread  cpi_thread\n   0       0           2")
    run.has_line("no value: memory_write_bytes: each thread counts.*")
    run.has_line(r"over 4 threads +min +max +mean\ncpi_thread +1 +8 +3\.750 *")
    run = Run(f"-a -f csv -o - {words}", files=CORES, cpus=cpus)
    assert "\n0,1,cpi_thread,8.0,,,,,1,\n" in run.out, run.out
    Run(f"-a {words}", perf=f"{PERF} perf", cpus=cpus).ends(1, "which core CPU 0 belongs to")
