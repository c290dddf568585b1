# SPDX-License-Identifier: GPL-2.0-only
"""The tables for other tools, and knc-metrics with a perf that is not one."""
import ast
import csv
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lines import TOP, executable, quietly

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = f"{TOP}/tools"
sys.path.insert(0, TOOLS)
import knc_format  # noqa: E402
import knc_listing  # noqa: E402
import knc_overlap  # noqa: E402
import knc_tables  # noqa: E402


def near(want):
    return pytest.approx(want, rel=1e-9)


def code(text):
    return int(text, 16)


def csv_rows(path):
    lines = path.read_text().splitlines()
    return [*csv.DictReader(line for line in lines if not line.startswith("#"))]


def generate(tmp_path, what):
    quietly(sys.executable, f"{TOOLS}/knc_tables.py", what, tmp_path / what)
    return tmp_path / what


def perf_tables(tmp_path):
    """(events, metrics), each with its topic."""
    entries = [{**entry, "topic": file.name}
               for file in sorted(generate(tmp_path, "perf").iterdir())
               for entry in json.loads(file.read_text())]
    return ([e for e in entries if "EventName" in e],
            [e for e in entries if "MetricName" in e])


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1))


# --- the tables --------------------------------------------------------------------

def test_tables_manual(tmp_path):
    """In each format what is in the tables that were made from the manual, and no more"""
    wanted = {row["name"]: (code(row["umask"]), code(row["event"]))
              for name in ("knc_events.csv", "knc_events_extra.csv")
              for row in csv_rows(Path(TOP, "tests/data", name))}
    perfmon = generate(tmp_path, "perfmon") / "KNC/knightscorner_core_v1.json"
    for entries in (perf_tables(tmp_path)[0], json.loads(perfmon.read_text())):
        assert sorted(entry["EventName"] for entry in entries) == sorted(wanted), "names"
        for entry in entries:
            name, umask = entry["EventName"], code(entry["UMask"])
            assert (umask, code(entry["EventCode"])) == wanted[name], name
            assert entry["Counter"] == ("0" if umask == 0x10 else "0,1"), name
            assert entry["BriefDescription"], name
            assert is_prime(int(entry["SampleAfterValue"])), f"{name}: period"


def test_tables_topics(tmp_path):
    """Nothing that perf 6.1 would take for another event, and no name of a group for a metric"""
    events, metrics = perf_tables(tmp_path)
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


def test_tables_emulated():
    """Events without a model are those that the emulator's own table has not"""
    events = Path(TOP, "emulator/target/i386/knc/events.h.inc").read_text()
    modelled = set(re.findall(r"EVENT\(0x\w+, (\w+)\)", events))
    assert {e.name for e in knc_tables.load()[0] if e.emulated} == modelled


def test_tables_perfmon(tmp_path):
    """The mapfile has one row for the model, which names a list that is there, and what
    pmu-tools read of an event is there."""
    folder = generate(tmp_path, "perfmon")
    assert {"README.md", "LICENSE"} < {path.name for path in folder.iterdir()}
    row, = csv_rows(folder / "mapfile.csv")
    assert (row["Family-model"], row["EventType"]) == ("GenuineIntel-11-1", "core")
    path = folder / row["Filename"].lstrip("/")
    assert path.name.endswith(f"_core_{row['Version']}.json"), path
    entries = {entry["EventName"]: entry for entry in json.loads(path.read_text())}
    for key in ("EdgeDetect", "Invert", "AnyThread", "CounterMask", "MSRIndex", "MSRValue"):
        assert {int(entry[key], 16) for entry in entries.values()} == {0}, key
    assert entries["L2_READ_MISS"]["PublicDescription"]


def test_tables_refused():
    """Events that are not in both files are named"""
    for tables, word in (("[topic cache]\nNO_SUCH_EVENT = 3\n", "NO_SUCH_EVENT"),
                         ("[topic cache]\nDATA_READ = 3\n", "nothing about")):
        with pytest.raises(knc_tables.Bad, match=word):
            knc_tables.describe(knc_tables.read_events(), knc_tables.read_tables(tables))
    with pytest.raises(knc_tables.Bad, match="usage"):
        knc_tables.main("nosuch", "-")
    done = subprocess.run([sys.executable, f"{TOOLS}/knc_tables.py", "perf", "/dev/null/x"],
                          check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "knc_tables: /dev/null/x: Not a directory\n")


# --- knc-metrics -------------------------------------------------------------------

class Run:
    """What became of a call of knc-metrics. With files the perf is that of another machine."""

    def __init__(self, tmp_path, *args, program=("./program",), perf=None,
                 stdin=subprocess.DEVNULL, env=None, **fake):
        self.log = tmp_path / "log"
        self.log.unlink(missing_ok=True)
        if "script" in fake:
            # Longer than an environment may be
            (tmp_path / "script").write_text(json.dumps(fake["script"]))
            fake["script"] = str(tmp_path / "script")
        env = {**os.environ, **(env or {}),
               "FAKE_PERF": json.dumps({"log": str(self.log), **fake})}
        # A job in the background ignores SIGINT, and so does what it starts.
        command = ["env", "--default-signal=INT", f"{TOOLS}/knc-metrics"]
        if perf != "":
            command += ["--perf", perf or f"{HERE}/perf" + " perf" * ("files" in fake)]
        done = subprocess.run([*command, *args, *program], check=False, env=env,
                              stdin=stdin, capture_output=True)
        self.status, self.out, self.err = \
            done.returncode, done.stdout.decode(), done.stderr.decode()

    def calls(self):
        return self.log.read_text().splitlines()

    def metrics(self):
        return {m["metric"]: m for m in json.loads(self.out)["metrics"]}


def as_json(tmp_path, *args, **fake):
    run = Run(tmp_path, "-f", "json", "-o", "-", *args, **fake)
    if run.status:
        pytest.fail(run.err, pytrace=False)
    return run


def test_metrics_pairs(tmp_path):
    """Two events at most, one of them of unit mask 0x10; all that is needed"""
    run = as_json(tmp_path)
    seen = set()
    for call in run.calls():
        events = re.findall(r"event=(\w+),umask=(\w+)", call)
        assert 1 <= len(events) <= 2, call
        assert sum(umask == "0x10" for _, umask in events) <= 1, call
        assert re.search(r"-e \{cpu/[^}]*\} -e duration_time -- \./program$", call), call
        seen |= set(re.findall(r"name=(\w+?)(?:_any_1)?/", call))
    _, metrics = knc_tables.load()
    assert seen == {name for m in metrics for name, _ in m.events()}
    for m in metrics:
        keys = m.events()
        has_value = run.metrics()[m.name]["value"] is not None
        if has_value and len(keys) == 2 and not all(k[0].startswith(("L2_", "SNP_")) for k in keys):
            assert run.metrics()[m.name]["runs"] == 1, m.name


def test_metrics_paranoid(tmp_path):
    """What the kernel does not let a user count is left out, which is said once; or refused, with
    what to type"""
    said = "knc-metrics: counts in user mode only, as with -u: kernel.perf_event_paranoid is 2"
    for options, fake in ((["-M", "ipc,branch"], {}), (
            ["-I", "100", "-M", "ipc"], {"times": [0.1, 0.2]}), (
            ["-a", "--per-thread", "-M", "ipc"], {"cpus": {}, "files": {"cpuinfo": CORES}})):
        run = as_json(tmp_path, *options, paranoid=2, **fake)
        assert run.err.count("user mode") == 1 and said in run.err, run.err
        assert '"ipc"' in run.out and json.loads(run.out)["context"]["user"] is True
        assert "user mode" not in Run(tmp_path, *options, "-u", paranoid=2, **fake).err
        assert not json.loads(as_json(tmp_path, *options, paranoid=1, **fake).out)["context"]["user"]
    for level, typed, options, deny in (
            (3, 2, (), "INSTRUCTIONS"), (2, 0, (), "INSTRUCTIONS"), (1, 0, (), "INSTRUCTIONS"),
            (2, 0, ("--by", "line"), "period"), (2, 0, ("-I", "500"), "INSTRUCTIONS")):
        run = Run(tmp_path, "-M", "ipc", *options, deny=deny, paranoid=level)
        assert run.status == 1 and f": kernel.perf_event_paranoid is {level}, which allows only root to " \
            in run.err, run.err
        assert run.err.endswith(f"sysctl kernel.perf_event_paranoid={typed}\"\n"), run.err
    # From 7.2 on perf only says that the events are not supported: the kernel is asked.
    for level, typed, options in ((3, 2, ()), (2, 0, ("-a",)), (1, 0, ("-M", "cpi_core")),
                                  (2, 0, ("-u", "-M", "cpi_core"))):
        run = Run(tmp_path, *(options if "-M" in options else (*options, "-M", "ipc")), files={
            "sys/kernel/perf_event_paranoid": str(level), "self/status": "CapEff:\t0\n"})
        assert run.status == 1 and run.err.endswith(
            f"sysctl kernel.perf_event_paranoid={typed}\"\n"), run.err


def test_metrics_no_driver(tmp_path):
    """Without a PMU nothing is tried"""
    card = "vendor_id : GenuineIntel\ncpu family : 11\nmodel : 1\n"
    run = Run(tmp_path, "-M", "ipc", files={"cpuinfo": card})
    assert run.status == 1 and "insmod knc_pmu.ko" in run.err and not run.log.exists(), run.err


def test_metrics_values(tmp_path):
    """Arithmetic on what perf said: ratios, per cent, bytes, and 0 to divide by"""
    got = as_json(tmp_path, counts={
        "CPU_CLK_UNHALTED": 434333412, "INSTRUCTIONS_EXECUTED": 217166628,
        "INSTRUCTIONS_EXECUTED_any_1": 217166630, "DATA_PAGE_WALK": 580482,
        "DATA_READ_OR_WRITE": 49717513, "DATA_READ_MISS_OR_WRITE_MISS": 14404150,
        "L1_DATA_HIT_INFLIGHT_PF1": 17, "L2_DATA_READ_MISS_MEM_FILL": 329250,
        "L2_DATA_WRITE_MISS_MEM_FILL": 11135332, "HWP_L2MISS": 3}).metrics()
    assert got["cpi_thread"]["value"] == near(434333412 / 217166628)
    assert got["ipc"]["value"] == near(217166628 / 434333412)
    assert got["cpi_core"]["value"] == near(434333412 / 217166630)
    assert got["l1_tlb_miss_ratio"]["value"] == near(100 * 580482 / 49717513)
    assert got["l1_tlb_miss_ratio"]["unit"] == "%"
    assert got["memory_read_bytes"]["value"] == near(64 * (329250 + 11135332 + 3))
    assert got["memory_read_bytes"]["runs"] == 3, got["memory_read_bytes"]
    assert got["l1_hit_rate"]["value"] == near(100 - 100 * (14404150 + 17) / 49717513)
    assert got["vectorization_intensity"]["value"] is None
    assert "divide" in got["vectorization_intensity"]["reason"], got


def test_metrics_threshold(tmp_path):
    """Exceeded ones are told, with what they mean and who says so"""
    for elements, exceeded in ((100, ["< 8"]), (800, []), (1600, [])):
        run = as_json(tmp_path, "-M", "vectorization_intensity",
                      counts={"VPU_INSTRUCTIONS_EXECUTED": 100,
                              "VPU_ELEMENTS_ACTIVE": elements})
        got = run.metrics()["vectorization_intensity"]
        assert got["value"] == near(elements / 100)
        assert [e["threshold"] for e in got["exceeded"]] == exceeded
    run = Run(tmp_path, "-M", "vectorization_intensity",
              counts={"VPU_INSTRUCTIONS_EXECUTED": 100, "VPU_ELEMENTS_ACTIVE": 100})
    for words in ("! below 8: a part of the vector unit", "S. Naik", "Align the data"):
        assert words in run.err, run.err
    # Nothing is below a threshold that has no value.
    assert "! below" not in Run(tmp_path, "-M", "vectorization_intensity").err


def test_metrics_limits(tmp_path):
    """What a metric cannot be is no value, with the reason; a mean leaves no such value out"""
    counts = {"DATA_READ_MISS_OR_WRITE_MISS": 1359, "L2_DATA_READ_MISS_MEM_FILL": 900,
              "L2_DATA_WRITE_MISS_MEM_FILL": 93, "HWP_L2MISS": 551, "DATA_READ": 1000, "DATA_READ_MISS": 990}
    args = "-M", "l1_misses_in_l2,l1_read_miss_ratio"
    got = as_json(tmp_path, *args, counts=counts).metrics()
    assert got["l1_misses_in_l2"]["value"] is None and not got["l1_misses_in_l2"]["values"], got
    assert got["l1_misses_in_l2"]["reason"].startswith("-13.61 % is outside of 0 .. 100: "), got
    assert got["l1_read_miss_ratio"]["value"] == near(99), got
    counts = {**counts, "DATA_READ": 980, "DATA_READ_MISS": 980}
    assert as_json(tmp_path, *args, counts=counts).metrics()["l1_read_miss_ratio"]["value"] == 100
    got = as_json(tmp_path, "-r", "2", "-M", "l1_tlb_misses_per_l2_tlb_miss", grow=10,
                  counts={"DATA_PAGE_WALK": -9, "LONG_DATA_PAGE_WALK": -8}).metrics()
    assert "is outside of 1 ..: " in got["l1_tlb_misses_per_l2_tlb_miss"]["reason"], got
    # Of samples, by no more than their error
    for misses, value in ((1010, 100), (1600, None)):
        report, _ = by(tmp_path, "function", *[script_of(
            (misses, "DATA_READ_MISS", "f", "/p"), (1000, "DATA_READ", "f", "/p"))] * 2,
            args=("-M", "l1_read_miss_ratio"), counts={"DATA_READ": 101000, "DATA_READ_MISS": 101000})
        assert report["rows"][0]["metrics"]["l1_read_miss_ratio"]["value"] == value, report
    assert all(m.least < m.most for m in knc_tables.load()[1])


def test_metrics_halted(tmp_path):
    """On all CPUs a thread that halts reads the clocks of its core, which are taken once; a
    thread's own are those in user mode"""
    cpus = {"CPU_CLK_UNHALTED": {"0": 4000, "1": 1000, "2": 1010, "3": 3990},
            "INSTRUCTIONS_EXECUTED": {"0": 2000, "1": 500, "2": 0, "3": 0},
            "INSTRUCTIONS_EXECUTED_any_1": {"0": 2000, "1": 500, "2": 500, "3": 2000},
            **{name: dict.fromkeys("0123", 10) for name in (
                "EXEC_STAGE_CYCLES", "DATA_READ_OR_WRITE", "DATA_READ_MISS_OR_WRITE_MISS")}}
    fake = {"cpus": cpus, "files": {"cpuinfo": CORES}, "running": 10 ** 9}
    args = ("-a", "-M", "cpi,latency_impact")
    got = as_json(tmp_path, *args, **fake).metrics()
    for name in "cpi_thread", "ipc", "latency_impact":
        assert got[name]["value"] is None and "a thread that halts reads" in got[name]["reason"], got
    assert got["cpi_core"]["value"] == near(5010 / 2500) and got["clock_rate"]["value"] == near(2505e-9)
    rows = json.loads(as_json(tmp_path, *args, "-I", "500", times=[0.5], **fake).out)["rows"]
    assert {n: m["value"] for row in rows for n, m in row["metrics"].items()}["cpi_core"] == near(5010 / 2500)
    cpus["CPU_CLK_UNHALTED"].update({"2": 0, "3": 0})
    got = as_json(tmp_path, *args, "-u", **fake).metrics()
    assert got["cpi_thread"]["value"] == near(2) and got["ipc"]["value"] == near(0.5), got
    for name in "cpi_core", "clock_rate":
        assert "own user mode only" in got[name]["reason"], got
    got = places(tmp_path, "--per-thread", *args[1:], "-u", cpus=cpus)
    assert [got[at]["metrics"]["cpi_thread"]["value"] for at in ((1, 0), (0, 0), (1, 1))] == [2, 2, None]


def test_metrics_repeat(tmp_path):
    """Mean and spread of several rounds"""
    counts = {"DATA_READ_MISS_OR_WRITE_MISS": 100, "L1_DATA_HIT_INFLIGHT_PF1": 0}
    run = as_json(tmp_path, "-r", "3", "-M", "l1_misses", grow=10, counts=counts)
    assert len(run.calls()) == 3
    got = run.metrics()["l1_misses"]
    assert (got["min"], got["value"], got["max"]) == (100, 120, 140)
    text = Run(tmp_path, "-r", "3", "-M", "l1_misses", grow=10, counts=counts).err
    assert re.search(r"l1_misses +120 +100 \.\. 140", text), text


def test_metrics_numbers():
    """None is so small that it is shown as 0."""
    assert [knc_format.number(n) for n in (0, 12.3456, 0.05, 0.1234567, -0.0012345, 3e-5)] == \
        ["0", "12.35", "0.0500", "0.1235", "-0.00123", "0.0000300"]


def test_metrics_locale(tmp_path, monkeypatch):
    """A decimal comma is one, and the program has the locale that it would have"""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    run = as_json(tmp_path, "-M", "ipc", point=",", locale="C.UTF-8")
    assert run.metrics()["ipc"]["value"] == near(0.5)


def switches(*spans):
    """What perf script prints of (thread, CPU, from, to)"""
    lines = sorted((at, f"p q {tid} [{cpu:03}] {at:.9f}: PERF_RECORD_SWITCH {what}")
                   for tid, cpu, *times in spans for at, what in zip(times, ("IN", "OUT preempt")))
    return [line for _, line in lines]


def test_metrics_side_by_side(tmp_path):
    """What each thread counts for its core is no sum, unless one of a core runs at a time"""
    together = switches((1, 0, 1, 9), (2, 0, 8, 9), (3, 0, 8, 9))
    in_turn = switches((1, 0, 1, 2), (2, 0, 2, 3), (1, 0, 3, 4))
    for lines, is_right in ((together, False), (in_turn, True), (["a b [000] 1.0: no record"], False)):
        got = as_json(tmp_path, "-M", "memory_write_bytes,ipc,memory_read_bandwidth",
                      switches=lines).metrics()
        assert got["ipc"]["value"] and got["memory_read_bandwidth"]["value"], got
        assert (got["memory_write_bytes"]["value"] is not None) == is_right, got
        assert is_right or "L2_VICTIM_REQ_WITH_DATA for its core" in \
            got["memory_write_bytes"]["reason"], got
        report, _ = by(tmp_path, "function", *[script_of((50, "L2_VICTIM_REQ_WITH_DATA", "f", "/p"))] * 2,
                       args=("-M", "memory_write_bytes"), switches=lines)
        assert ("memory_write_bytes" in report["rows"][0]["metrics"]) == is_right, report
        assert ("for its core" in str(report["no_value"])) != is_right, report
    report, _ = by(tmp_path, "function", *[script_of((50, "L2_VICTIM_REQ_WITH_DATA", "f", "/p"))] * 2,
                   args=("-a", "-M", "memory_write_bytes"))
    assert "does not show which" in report["no_value"]["memory_write_bytes"], report


def test_metrics_core(tmp_path):
    """What each thread counts for its core comes from one thread of each core."""
    cpus = {"L2_VICTIM_REQ_WITH_DATA": {"0": 90000, "1": 500, "2": 0, "3": 90500},
            "SNP_HITM_L2": {"0": 1, "1": 2, "2": 3, "3": 4}}
    fake = {"cpus": cpus, "counts": {"SNP_HITM_L2": 10}, "files": {"cpuinfo": CORES},
            "seconds": [2] * 9}
    args = ("-a", "-M", "memory_write_bytes,memory_write_bandwidth,cpi_core")
    wrote = 64 * (500 + 90500 + 10)
    got = as_json(tmp_path, *args, **fake).metrics()
    assert got["memory_write_bytes"]["value"] == wrote, got
    assert "by one thread of each core" in Run(tmp_path, *args, **fake).err
    assert "by one thread of each core" in str(json.loads(as_json(tmp_path, *args, **fake).out)["notes"])
    assert got["memory_write_bandwidth"]["value"] == near(wrote / 2 * 1e-9), got
    assert got["cpi_core"]["value"] == near(2), got
    rows = json.loads(as_json(tmp_path, *args, "-I", "500", times=[0.5, 1.5], **fake).out)["rows"]
    for at in (0, 1):
        assert [row["metrics"]["memory_write_bytes"]["value"] for row in rows
                if "memory_write_bytes" in row["metrics"]][at] == wrote * (at + 1), rows
    cpus["L2_VICTIM_REQ_WITH_DATA"]["0"] = 1500
    got = as_json(tmp_path, *args, **fake).metrics()
    assert "do not agree" in got["memory_write_bytes"]["reason"], got


def test_overlap():
    """Of each core's busy time; a thread may be on its CPU before and after what is recorded"""
    places = {0: (0, 0), 1: (0, 1), 4: (1, 0)}

    def share(lines):
        return knc_overlap.share([*knc_overlap.spans(lines)], places)

    assert share(switches((1, 0, 0, 4), (2, 1, 3, 4))) == near(0.25)
    assert share(switches((1, 0, 0, 4), (2, 4, 0, 4))) == 0
    assert share(switches((1, 0, 0, 4))[1:] + switches((2, 1, 4, 8))) == 0
    assert share([*switches((9, 4, 0, 1)), *switches((1, 0, 1, 4))[:1], *switches((2, 1, 1, 4))]) == near(3 / 4)
    with pytest.raises(knc_overlap.Unknown, match="lost"):
        share([*switches((1, 0, 0, 4)), "p 1 [000] 5.0: PERF_RECORD_LOST lost 7"])


def test_metrics_background(tmp_path):
    """perf has ended, though a process of the program's goes on with its stderr"""
    script = executable(tmp_path / "perf", f'#!/bin/sh\nsleep 60 >/dev/null &\nexec {HERE}/perf "$@"\n')
    began = time.monotonic()
    for options in ((), ("-I", "100")):
        assert as_json(tmp_path, "-M", "ipc", *options, perf=str(script), times=[0.5]).out
    assert time.monotonic() - began < 40


def test_metrics_interrupted(tmp_path):
    """What was counted before a ^C is not lost; an -o that cannot be written is found first"""
    run = Run(tmp_path, "-M", "cpi,tlb", interrupt=2)
    assert (run.status, len(run.calls())) == (130, 3), run.err
    assert re.search(r"^cpi_thread +2$", run.err, re.M) and "in run 3; this" in run.err, run.err
    run = Run(tmp_path, "-M", "ipc", "-o", "/no/such/file")
    assert run.status == 1 and "/no/such/file" in run.err and not run.log.exists(), run.err


def test_metrics_denied(tmp_path):
    """One event that is refused takes its metric with it, and no other"""
    got = as_json(tmp_path, "-M", "cpi", deny="any=1").metrics()
    assert got["cpi_core"]["value"] is None
    assert "perf_event_paranoid" in got["cpi_core"]["reason"], got["cpi_core"]
    assert got["cpi_thread"]["value"] and not got["cpi_thread"]["reason"]


def test_metrics_not_counted(tmp_path):
    """What has no count is no 0, and who may have the counters is told"""
    for value, share, why in (("<not counted>", "0.00", "another perf"),
                              ("<not counted>", "100.00", "nothing ran"),
                              ("<not supported>", "100.00", "not supported")):
        got = as_json(tmp_path, "-M", "ipc,branch", counts={"BRANCHES": value},
                      shares={"BRANCHES": share}).metrics()
        assert got["branch_mispredict_ratio"]["value"] is None
        assert why in got["branch_mispredict_ratio"]["reason"], got
        assert got["ipc"]["value"]


def test_metrics_time(tmp_path):
    """A perf that has no time of a program has one that begins later, in a run of its own"""
    run = as_json(tmp_path, "-M", "memory_read_bandwidth,ipc", unstarted=True)
    assert run.metrics()["memory_read_bandwidth"]["value"], run.out
    assert ["-D 1 " in call for call in run.calls()].count(True) == 1, run.calls()
    run = as_json(tmp_path, "-M", "ipc", unstarted=True)
    assert "-D 1 " not in run.log.read_text()


def test_metrics_pmu(tmp_path):
    """It is called as on the machine that counts; a file that is not there is empty."""
    for options, files, name in (((), {"knc/type": "4"}, "knc"), ((), {}, "cpu"),
                                 (("--pmu", "other"), {"knc/type": "4"}, "other")):
        run = as_json(tmp_path, *options, "-M", "ipc", files=files)
        assert f"-e {{{name}/event=" in run.calls()[0], run.calls()


def test_metrics_not_modelled(tmp_path):
    """On the emulated card what it has no model of is not counted, and has no value"""
    run = as_json(tmp_path, "-M", "v_pipe_share,ipc,vpu_stall_ratio",
                  files={"cpuinfo": "model name : a card (emulated)"})
    assert len(run.calls()) == 1
    got = run.metrics()
    assert got["ipc"]["value"], got
    for name, event in (("v_pipe_share", "INSTRUCTIONS_EXECUTED_V_PIPE"),
                        ("vpu_stall_ratio", "VPU_STALL_REG")):
        assert (got[name]["value"], got[name]["reason"]) == \
            (None, f"the emulator has no model of {event}")
    run = Run(tmp_path, "-M", "v_pipe_share", files={"cpuinfo": "model name: (emulated)"})
    assert run.status == 1 and "no model of INSTRUCTIONS_EXECUTED_V_PIPE" in run.err, run.err
    assert as_json(tmp_path, "-M", "v_pipe_share").metrics()["v_pipe_share"]["value"] == 0


def test_metrics_stderr(tmp_path):
    """What the program says is passed on as it is, and no part of perf's report"""
    for says in ("no end", "12%\r100%\r", "1;;ipc;1;100.00\n", "", "Error:\nnot perf's\n"):
        for perf in (f"{HERE}/perf", f"env {HERE}/perf"):
            run = Run(tmp_path, "-M", "ipc", "-o", f"{tmp_path}/out", perf=perf, says=says)
            assert (run.status, run.out) == (0, ""), run.err
            assert run.err == says, perf
            assert re.search(r"^ipc +0\.5000$", (tmp_path / "out").read_text(), re.M), says


def test_metrics_ssh_breaks(tmp_path):
    """What may be counted in part is told beside the values, in each form, and by the status."""
    ssh = executable(tmp_path / "ssh", '#!/bin/sh\nshift\nbash -c "$*"\ncase $* in *" stat "*) exit 255; esac\n')
    for options, fake in (((), {}), (("-I", "500"), {"times": [0.5]}),
                          (("-a", "--per-thread"), {"cpus": {}, "files": {"cpuinfo": CORES}})):
        perf = f"{ssh} mic0 {HERE}/perf" + " perf" * bool(options and "cpus" in fake)
        run = Run(tmp_path, "-M", "ipc", *options, perf=perf, **fake)
        assert run.status == 255 and "! ssh has ended with status 255" in run.err, run.err
    # The program of this machine ends as it likes.
    assert "ssh" not in Run(tmp_path, "-M", "ipc", status=255).err


def test_metrics_stdin(tmp_path):
    """Each run reads the same"""
    with open(f"{tmp_path}/in", "w+", encoding="utf-8") as file:
        file.write("skipped line")
        file.flush()
        file.seek(8)
        os.lseek(file.fileno(), 8, os.SEEK_SET)
        with subprocess.Popen(["printf", "line"], stdout=subprocess.PIPE) as pipe:
            for stdin in (file, pipe.stdout):
                calls = as_json(tmp_path, "-M", "tlb", stdin=stdin, reads=True).calls()
                assert [call.split(" < ")[1] for call in calls] == ["line"] * 3


def test_metrics_endless(tmp_path):
    """A standard input without an end does not fill the disk."""
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as pipe:
        run = Run(tmp_path, "-M", "tlb", stdin=pipe.stdout)
        pipe.terminate()
    assert run.status == 1 and "more than 256 MiB" in run.err and not run.log.exists(), run.err


def test_metrics_turns(tmp_path):
    """Attached: turns of different length are compared by their rates"""
    run = as_json(tmp_path, "-p", "12", "-t", "0.5", "-M", "l1_hit_rate", program=(),
                  seconds=[1, 3],
                  counts={"DATA_READ_OR_WRITE": 3000, "DATA_READ_MISS_OR_WRITE_MISS": 100,
                          "L1_DATA_HIT_INFLIGHT_PF1": 0})
    calls = run.calls()
    assert len(calls) == 2
    for call in calls:
        assert call.endswith("-p 12 -- sleep 0.5"), call
    # The accesses are those of the short turn or of the long one, whichever has them.
    first = "DATA_READ_OR_WRITE" in calls[0]
    accesses, misses = (3000, 100 / 3) if first else (1000, 100)
    assert run.metrics()["l1_hit_rate"]["value"] == near(100 - 100 * misses / accesses)
    run = as_json(tmp_path, "-a", "-M", "l2_tlb_miss_ratio", program=())
    assert run.calls()[0].endswith("-a -- sleep 1"), run.calls()
    run = as_json(tmp_path, "-a", "-M", "l2_tlb_miss_ratio")
    assert run.calls()[0].endswith("-a -- ./program"), run.calls()


def test_metrics_csv(tmp_path):
    """CSV has the values that JSON has"""
    run = Run(tmp_path, "-f", "csv", "-o", f"{tmp_path}/csv")
    assert (run.status, run.out) == (0, ""), run.err
    rows = {row["metric"]: row for row in csv_rows(tmp_path / "csv")}
    for name, m in as_json(tmp_path).metrics().items():
        row = rows.pop(name)
        assert row["value"] == ("" if m["value"] is None else repr(m["value"])), name
        assert row["groups"].split(";") == m["groups"]
    assert rows == {}


def test_metrics_once(tmp_path):
    """A program that fails in the first run is not run again, and where there is no perf nothing is
    tried; one line says why"""
    for options, value in (("-M", "cpi,tlb"), "^cpi_thread +2$"), (("-M", "ipc", "--by", "line"), "$"):
        run = Run(tmp_path, *options, status=3, says="usage: program FILE\n")
        assert run.status == 3 and len(run.calls()) == 1 and run.err.count("usage") == 1, run.err
        assert re.search(value, run.err, re.M), run.err
        assert run.err.count("./program has ended with status 3, and is not run") == 1, run.err
    run = Run(tmp_path, "-M", "cpi,tlb", perf=f"{HERE}/nosuch")
    assert (run.status, run.err) == (1, f"knc-metrics: {HERE}/nosuch: No such file or directory\n")
    ssh = executable(tmp_path / "ssh", "#!/bin/sh\necho ssh: no such host >&2; exit 255\n")
    run = Run(tmp_path, "-M", "cpi,tlb", perf=f"{ssh} mic9 perf")
    assert (run.status, run.err) == (1, f"knc-metrics: {ssh} mic9 perf: ssh: no such host\n")


def test_metrics_killed(tmp_path):
    """A program that a signal has ended has the status that a shell gives it"""
    for perf in (f"{HERE}/perf", f"env {HERE}/perf"):
        for says in ("", "no end"):
            assert Run(tmp_path, "-M", "ipc", perf=perf, signal="Killed", says=says).status == 137
    assert Run(tmp_path, "-M", "ipc", signal="Segmentation fault").status == 139
    assert Run(tmp_path, "-M", "ipc", says="somebody: Killed\n").status == 0


def test_metrics_names(tmp_path):
    """Names with blanks, in several -M"""
    run = as_json(tmp_path, "-M", "ipc, branch_mispredict_ratio", "-M", "cpi_thread")
    assert list(run.metrics()) == ["ipc", "branch_mispredict_ratio", "cpi_thread"]


def test_metrics_list_head(tmp_path):
    """A reader that has seen enough is no error"""
    done = subprocess.run(["sh", "-c", f"{TOOLS}/knc-metrics --list | head -n 1"], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
    assert (len(done.stdout.splitlines()), done.stderr) == (1, b"")


def test_shell_debian_perf():
    """Where perf has no tables, the shell's perf says so of -M, which it would ignore"""
    said = subprocess.run([f"{TOP}/uos/perf", "stat", "-M", "ipc", "true"], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    assert "perf: -M is ignored" in said and "knc-metrics" in said, said


def test_metrics_refused(tmp_path):
    """Bad calls are told apart, and nothing is counted for them"""
    for words, why in (
            ("", "which program"), ("-p 1 x", "neither a program"), ("-p 1 -a", "neither a program"),
            ("-r 0 x", "number above 0"), ("-t x x", "number above 0"), ("-I 0 x", "above 0"),
            ("--by line -r 2 x", "do not go together"), ("--by line -I 10 x", "do not go together"),
            ("--by word x", "invalid choice"), ("--per-core x", "wants -a"), ("--symfs / x", "is for --by"),
            ("--versus x -a x", "takes two programs"), ("--versus x -f csv x", "takes two programs"),
            *((f"--regions {more}", "--regions takes a program") for more in (
                "--versus x x", "-a x", "-p 1", "-a")),
            *(("-M ipc,nosuch x", why) for why in ("nosuch: no such metric", "l1_hit_rate", " tlb"))):
        run = Run(tmp_path, *words.split(), program=())
        assert run.status in (1, 2) and why in run.err and not run.log.exists(), (words, run.err)
    run = Run(tmp_path, perf="")
    assert run.status == 1 and "no Knights Corner" in run.err, run.err


def test_metrics_list(tmp_path):
    """--list has all metrics, their formulas and their sources"""
    run = Run(tmp_path, "--list", program=())
    for metric in knc_tables.load()[1]:
        assert re.search(rf"^{metric.name}  \((.*\n)+?    = {re.escape(metric.expr)}; {re.escape(str(metric.limits))}\n"
                         rf"(.*\n)?    after {re.escape(metric.source)}\n", run.out, re.M), metric.name


# --- by function, line, interval, core ---------------------------------------------------

def script_of(*samples):
    """What perf script prints of (how many, event, function, object[, source])"""
    return [line for at, (n, event, function, file, *source) in enumerate(samples, 4) for line in
            [f"{event}:      4016f4 {function}{f'+0x{at:x}' * (function[0] != '[')} ({file})",
             *(f"  {s}" for s in source)] * n]


def by(tmp_path, what, *scripts, args=(), **fake):
    run = Run(tmp_path, "--by", what, "-f", "json", "-o", "-", *args, script=scripts, **fake)
    assert run.status == 0, run.err
    return json.loads(run.out), run


def test_by_function(tmp_path):
    """Shares, counts and metrics of samples, in the order of the clocks"""
    counts = {"CPU_CLK_UNHALTED": 6000000, "INSTRUCTIONS_EXECUTED": 3000000}
    report, run = by(tmp_path, "function", script_of(
        (60, "INSTRUCTIONS_EXECUTED", "less", "/root/p"),
        (500, "CPU_CLK_UNHALTED", "less", "/root/p"),
        (2940, "INSTRUCTIONS_EXECUTED", "most(int, char (*)[2])", "/a (b) c/p (deleted)"),
        (2498, "CPU_CLK_UNHALTED", "most(int, char (*)[2])", "/a (b) c/p (deleted)"),
        (2, "CPU_CLK_UNHALTED", "rare", "[kernel.kallsyms]")) + ["", "what is this"], args=("-M", "cpi_thread,clock_rate"),
        counts=counts)
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
    clocks = most["events"]["CPU_CLK_UNHALTED"]
    assert (clocks["samples"], clocks["count"]) == (2498, 2498 * 2003)
    assert clocks["share"] == near(2498 / 3000)
    cpi = most["metrics"]["cpi_thread"]
    assert cpi["value"] == near(2498 * 2003 / (2940 * 1009))
    # sqrt(1 / n + 1 / m), as far as errors are small
    assert abs(cpi["error"] / (1 / 2498 + 1 / 2940) ** 0.5 - 1) < 0.02, cpi
    # A function exceeds a threshold, though the program does not.
    assert [[t["threshold"] for t in row["metrics"]["cpi_thread"]["exceeded"]] for row in
            report["rows"]] == [[], ["> 8"], []]
    assert (most["hot"], less["hot"], rare["hot"]) == (True, False, False)
    cpi = rare["metrics"]["cpi_thread"]
    assert (cpi["value"], cpi["reason"]) == \
        (None, "too few samples: 2 of CPU_CLK_UNHALTED, 0 of INSTRUCTIONS_EXECUTED")


def test_by_few(tmp_path):
    """What rests on too few samples is not shown; and no digits that are not certain"""
    for n, shown in ((26, True), (24, False)):
        counts = {"BRANCHES": 3027000, "BRANCHES_MISPREDICTED": 101 * n}
        report, _ = by(tmp_path, "function", script_of(
            (3000, "BRANCHES", "f", "/p"), (n, "BRANCHES_MISPREDICTED", "f", "/p")),
            args=("-M", "branch_mispredict_ratio"), counts=counts)
        got = report["rows"][0]["metrics"]["branch_mispredict_ratio"]
        assert (got["value"] is not None) == shown, got
        assert ("too few samples: " in got["reason"]) == (not shown), got
    for clocks, words in ((6000000, r"2\.02 +\+- 3 %"), (30000000, r"10\.1 +\+- 3 %  ! above 8")):
        run = Run(tmp_path, "--by", "function", "-M", "cpi_thread", script=[script_of(
            (3000, "INSTRUCTIONS_EXECUTED", "f", "/p"), (3050, "CPU_CLK_UNHALTED", "f", "/p"))],
            counts={"CPU_CLK_UNHALTED": clocks, "INSTRUCTIONS_EXECUTED": 3000000})
        assert re.search(rf"^ +cpi_thread +{words}$", run.err, re.M), run.err


def test_by_line(tmp_path):
    """Lines with the file's whole path; where there is none, why"""
    program = tmp_path / "program"
    program.write_text("")
    text = script_of(
        (40, "L1", "walk", program, "/src/where.c:28"),
        (30, "L1", "walk", program, "/src/where.c:29"),
        (15, "L1", "nowhere", program, "nowhere+12"),
        (5, "L1", "[unknown]", program, "program[4016f4]"),
        (4, "L1", "[unknown]", "/not/here"), (3, "L1", "do_it", "[kernel.kallsyms]"),
        (2, "L1", "[unknown]", "[kernel.kallsyms]"), (1, "L1", "[unknown]", "[unknown]"))
    text = [line.replace("L1:", "DATA_CACHE_LINES_WRITTEN_BACK:") for line in text]
    counts = {"DATA_CACHE_LINES_WRITTEN_BACK": 10100, "DATA_READ_MISS_OR_WRITE_MISS": 0}
    report, run = by(tmp_path, "line", text, args=("-M", "l1_l2_bytes"), counts=counts)
    # Of the samples of each place one has its line looked up.
    assert re.search(r"^.*dso\n.*,symoff,dso,srcline --full-source-path --time 1\.5,1\.5$",
                     Path(f"{run.log}.script").read_text()), run.log
    assert [(r["file"], r["path"], r["line"]) for r in report["rows"]][:3] == \
        [("where.c", "/src/where.c", 28), ("where.c", "/src/where.c", 29), (None,) * 3]
    assert report["cost"] == "l1_l2_bytes"
    assert report["rows"][1]["cost"] == near(0.3)
    assert report["rows"][1]["metrics"]["l1_l2_bytes"]["value"] == near(64 * 30 * 101)
    for row, word in zip(report["rows"][2:], ("with -g", "stripped", "no file /not/here",
                                              "vmlinux", "kptr_restrict", "no file")):
        assert word in row["reason"], (row, word)
    run = Run(tmp_path, "--by", "line", "-M", "l1_l2_bytes", script=[text], counts=counts)
    assert re.search(r"^hot: where.c:28  walk has 40% of l1_l2_bytes\n"
                     r"hot: where.c:29  walk has 30% of l1_l2_bytes\n\n", run.err, re.M), run.err
    run = Run(tmp_path, "--by", "line", "-M", "l1_l2_bytes", counts=counts, script=[script_of(
        *((10, "DATA_CACHE_LINES_WRITTEN_BACK", "f", "/p", f"/a.c:{n}") for n in range(1, 11)))])
    assert "no line has a quarter of l1_l2_bytes: none is hot\n" in run.err, run.err


ASSEMBLY = ".globl hot, cold\n.type hot, @function\nhot: nop\nnop\nnop\nnop\nincl %eax\nret\n" \
    ".type cold, @function\ncold: ret\n"


def test_by_assembly(tmp_path):
    """The instruction that has the samples, and those around it; of no other function"""
    subprocess.run(["gcc", "-nostdlib", "-static", "-Wl,-e,hot", "-x", "assembler", "-o",
                    tmp_path / "p", "-"], input=ASSEMBLY, text=True, check=True)
    text = script_of((2400, "BRANCHES", "hot", tmp_path / "p"), (600, "BRANCHES", "cold", tmp_path / "p"))
    counts = {"BRANCHES": 3027000, "BRANCHES_MISPREDICTED": 0}
    report, _ = by(tmp_path, "function", text, args=("-M", "branch"), counts=counts)
    cold, hot = report["rows"]
    assert [(a["instruction"].split()[0], a["share"]) for a in hot["assembly"]] == \
        [("nop", 0)] * 4 + [("inc", 0.8), ("ret", 0)]
    assert cold["assembly"] == []
    run = Run(tmp_path, "--by", "function", "-M", "branch", script=[text], counts=counts)
    assert re.search(r"^hot  \(/.*\n( +0\.0%  [0-9a-f]+:  nop\n){4} +80.0%  [0-9a-f]+:  inc ", run.err, re.M), \
        run.err


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


def test_listing(tmp_path, monkeypatch):
    """The card's own instructions, in programs of either machine; else what lists them"""
    path = tmp_path / "p"
    subprocess.run(["gcc", "-nostdlib", "-static", "-Wl,-e,hot", "-x", "assembler", "-o", path, "-"],
                   input=VECTORS, text=True, check=True)
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
    assert "no function gone" in knc_listing.instructions(path, "gone")[1]
    # The report has it instead of instructions.
    text = script_of((3000, "BRANCHES", "gone", path))
    counts = {"BRANCHES": 3027000, "BRANCHES_MISPREDICTED": 0}
    run = Run(tmp_path, "--by", "function", "-M", "branch", script=[text], counts=counts)
    assert "    objdump finds no function gone in " in run.err, run.err


def test_python(tmp_path):
    """An older Python is told what a tool needs, before it reads what it cannot."""
    for name in ("knc-draw", "knc-metrics", "knc-report", "knc_card.py", "knc_data.py",
                 "knc_tables.py", "knc_watch.py"):
        text = Path(TOOLS, name).read_text()
        ast.parse(text, feature_version=(3, 6))
        # The rest of the imports would be found here.
        begin = "import runpy, sys\nsys.version_info = (3, int(sys.argv[1]), 8)\nsys.argv[:] = sys.argv[2:]\n" \
            f"sys.path[:0] = ['{tmp_path}', '{TOOLS}']\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
        (tmp_path / "argparse.py").write_text("raise SystemExit('imported before')\n")
        for minor in "678":
            done = subprocess.run([sys.executable, "-S", "-c", begin, minor, f"{TOOLS}/{name}"],
                                  check=False, capture_output=True, text=True)
            assert (done.returncode, done.stderr) == \
                (1, f"{name}: needs Python 3.9; this is 3.{minor}\n")
    ast.parse(Path(TOOLS, "knc_python.py").read_text(), feature_version=(3, 6))


def perf_here(tmp_path):
    """$PATH with the perf that is none as perf"""
    here = tmp_path / "bin"
    here.mkdir(exist_ok=True)
    executable(here / "perf", f'#!/bin/sh\nexec {HERE}/perf "$@"\n')
    return f"{here}:{os.environ['PATH']}"


def test_by_lost(tmp_path, monkeypatch):
    """Samples that were lost, or not taken, are told; a throttled run is repeated"""
    counts = {"CPU_CLK_UNHALTED": 6000000, "INSTRUCTIONS_EXECUTED": 3000000}
    text = script_of((3000, "INSTRUCTIONS_EXECUTED", "f", "/p"),
                     (3000, "CPU_CLK_UNHALTED", "f", "/p"))
    for lost in ((100, 0), (0, 100), (60, 100)):
        report, _ = by(tmp_path, "function", text, args=("-M", "ipc"), counts=counts, lost=lost)
        assert [e["lost"] for e in report["events"].values()] == [100, 100]
    run = Run(tmp_path, "--by", "function", "-M", "ipc", counts=counts, script=[text], lost=lost)
    assert "! run 1: 100 of 6,100 samples were lost" in run.err, run.err
    # A run that was cut has no metrics, and the status says so.
    for perf in (f"{HERE}/perf", f"env {HERE}/perf"):
        monkeypatch.setenv("PATH", perf_here(tmp_path))
        run = Run(tmp_path, "--by", "function", "-M", "ipc", counts=counts, script=[text], cut=8, perf=perf)
        assert run.status == 1, run.err
        assert "! run 1: the data is cut: it has 6,000 samples, and what came after them is " \
            "missing\n" in run.err and "no value: ipc" not in run.err, run.err
    for scripts, fake, reason in (
            ([text], {"lost": (1000, 0)}, "1000 samples were lost, and 6000 were not"),
            ([text] * 4, {"throttled": [0, 1, 1, 1, 1]}, "throttled"),
            ([text[::2]], {}, "account for 50 % of"), ([text[:1]], {}, "account for 0 % of")):
        report, _ = by(tmp_path, "function", *scripts, args=("-M", "ipc"), counts=counts, **fake)
        got = report["rows"][0]["metrics"]["ipc"]
        assert got["value"] is None and reason in got["reason"], got
    # The second run has samples four times as far apart, and was not throttled.
    report, run = by(tmp_path, "function", [], text[::4], args=("-M", "ipc"), counts=counts,
                     throttled=[0, 1, 0])
    assert len(run.calls()) == 3
    assert {e["period"] for e in report["events"].values()} == {4049, 8017}
    assert report["rows"][0]["metrics"]["ipc"]["value"], report["rows"]


def test_by_where(tmp_path, monkeypatch):
    """Of another machine: through a pipe, with its kernel's symbols, and its files, or --symfs"""
    monkeypatch.setenv("PATH", perf_here(tmp_path))
    program = tmp_path / "program"
    program.write_text("the card's")
    for args, file, word in (((), "/not/there", "could not be had from the card; --symfs DIR has"),
                             ((), program, "stripped"), (("--symfs", "/usr"), "/bin", "stripped"),
                             (("--symfs", "/usr"), program, "could not be had from the card")):
        samples = script_of((50, "BRANCHES", "[unknown]", file))
        report, run = by(tmp_path, "function", samples,
                         perf="env perf", args=("-M", "branch", *args),
                         counts={"BRANCHES": 5000, "BRANCHES_MISPREDICTED": 0})
        assert word in report["rows"][0]["reason"], report["rows"][0]
        assert run.calls()[1].startswith("record -q -B -o - -P "), run.calls()
        said = Path(f"{run.log}.script").read_text().splitlines()[-1]
        assert re.search(r"script -i \S+/perf.data .* --kallsyms \S+ --symfs /", said), said


def test_intervals(tmp_path):
    """Each interval's own values; nothing that several runs give"""
    fake = {"times": [0.5, 1.5], "counts": {"CPU_CLK_UNHALTED": 1000,
                                            "INSTRUCTIONS_EXECUTED": 500}}
    args = ("-I", "500", "-M", "ipc,clock_rate,cpi_core,latency_impact")
    for perf in (f"{HERE}/perf", f"env {HERE}/perf"):
        run = as_json(tmp_path, *args, perf=perf, **fake)
        assert len(run.calls()) == 3
        assert "stat -x ; -I 500 --log-fd" in run.calls()[0], run.calls()
        rows = json.loads(run.out)["rows"]
        assert [(r["run"], r["begin"], r["end"]) for r in rows] == \
            [(at, *times) for at in (1, 2, 3) for times in ((0, 0.5), (0.5, 1.5))]
        assert [[*r["metrics"]] for r in rows[::2]] == [["ipc", "clock_rate"], ["cpi_core"],
                                                       ["latency_impact"]]
        # Two threads in the first interval, which is half as long, and one in the other
        assert [row["metrics"]["clock_rate"]["value"] for row in rows[:2]] == [near(1e-6), near(2e-6)]
    run = Run(tmp_path, *args, says="", **fake)
    assert re.search(r"^run 1 of 3: .*\n +seconds +ipc +clock_rate \[GHz\]\n +0\.500 +0\.5000 ",
                     run.err, re.M), run.err
    run = Run(tmp_path, "-I", "500", "-f", "csv", "-o", "-", "-M", "ipc", "-a", "-u", program=(),
              cpus={}, files={"cpuinfo": CORES}, **fake)
    assert run.out == "run,begin,end,metric,value,unit,min,max,error,runs,reason\n" \
        "1,0.0,0.5,ipc,0.5,,,,,1,\n1,0.5,1.5,ipc,0.5,,,,,1,\n"
    assert run.calls()[0].endswith("-A -a -- sleep 1"), run.calls()


def test_intervals_missing(tmp_path):
    """An interval in which nothing was counted has no value"""
    run = as_json(tmp_path, "-I", "500", "-M", "ipc", times=[0.5, 1.5], share="40.00")
    for row in json.loads(run.out)["rows"]:
        assert row["metrics"]["ipc"]["value"] is None
        assert "40 %" in row["metrics"]["ipc"]["reason"], row
    # Three events on one counter take turns: perf has scaled them.
    options = "-I", "500", "-M", "memory_read_bandwidth"
    fake = {"times": [0.5], "share": "33.30", "counts": {"HWP_L2MISS": 10 ** 7}}
    run = as_json(tmp_path, *options, **fake)
    assert "{" not in run.calls()[0], run.calls()
    found = json.loads(run.out)["rows"][0]["metrics"]["memory_read_bandwidth"]
    assert (found["value"], found["runs"]) == (near(64 * 12 * 10 ** 6 / 0.5 * 1e-9), 3)
    assert "~1.536" in Run(tmp_path, *options, **fake).err
    run = as_json(tmp_path, "-I", "500", "-M", "memory_bandwidth,ipc", times=[0.5],
                  switches=switches((1, 0, 0, 4), (2, 0, 0, 4)))
    assert "two of a core ran" in json.loads(run.out)["no_value"]["memory_bandwidth"], run.out
    assert Run(tmp_path, "-I", "500", "-M", "ipc", status=3, times=[0.5]).status == 3


CORES = "".join(f"processor\t: {cpu}\nmodel name\t: x\ncore id\t\t: {core}\n\n"
                for cpu, core in enumerate((1, 0, 0, 1)))


def places(tmp_path, *args, **fake):
    run = as_json(tmp_path, "-a", *args, files={"cpuinfo": CORES}, **fake)
    assert " -A " in run.calls()[0], run.calls()
    return {(r["core"], r["thread"]): r for r in json.loads(run.out)["rows"]}


def test_per_core(tmp_path):
    """Sums over the threads of a core, but of what each thread has of its core"""
    cpus = {"CPU_CLK_UNHALTED": {"0": 4000, "1": 1000, "2": 1000, "3": 4000},
            "INSTRUCTIONS_EXECUTED_any_1": {"0": 2000, "1": 250, "2": 250, "3": 2000},
            "DATA_READ_MISS_OR_WRITE_MISS": {"0": 1, "1": 2, "2": 4, "3": 8},
            "DATA_CACHE_LINES_WRITTEN_BACK": {"0": 10, "1": 20, "2": 40, "3": 80}}
    args = ("-M", "cpi_core,clock_rate,l1_l2_bytes,cpi_thread,ipc,latency_impact,"
            "memory_write_bytes")
    got = places(tmp_path, "--per-core", *args, cpus=cpus, running=2 * 10 ** 9)
    assert {at: row["cpus"] for at, row in got.items()} == {(0, None): [1, 2], (1, None): [0, 3]}
    value = {at: {n: m["value"] for n, m in row["metrics"].items()} for at, row in got.items()}
    assert (value[0, None]["cpi_core"], value[1, None]["cpi_core"]) == (4, 2)
    assert value[1, None]["clock_rate"] == near(4000 / 2 * 1e-9)
    assert (value[0, None]["l1_l2_bytes"], value[1, None]["l1_l2_bytes"]) == (64 * 66, 64 * 99)
    # A metric that has none is refused before the program runs.
    run = Run(tmp_path, "-a", "--per-core", *args, files={"cpuinfo": CORES}, cpus=cpus)
    for name, word in (("cpi_thread", "--per-thread"), ("ipc", "--per-thread"),
                       ("latency_impact", "--per-thread")):
        assert re.search(f"^no value: {name}: .*{word}", run.err, re.M), run.err
    run = Run(tmp_path, "-a", "--per-core", "-M", "ipc", files={"cpuinfo": CORES}, cpus=cpus)
    assert run.status == 1 and "a thread only: --per-thread" in run.err, run.err
    assert not run.log.exists()
    # A thread in user mode has not seen all of the core's clocks.
    got = places(tmp_path, "--per-core", "-u", *args, cpus=cpus)
    assert "own user mode" in got[0, None]["metrics"]["cpi_core"]["reason"], got
    assert got[0, None]["metrics"]["l1_l2_bytes"]["value"] == 64 * 66
    # Threads that do not agree on what they share, or of which one was not counted
    for clocks, word in (({"0": 4000, "3": 3000}, "do not agree"),
                         ({"0": 4000, "3": "<not counted>"}, "nothing ran")):
        cpus["CPU_CLK_UNHALTED"].update(clocks)
        got = places(tmp_path, "--per-core", *args, cpus=cpus)
        assert word in got[1, None]["metrics"]["clock_rate"]["reason"], got


def test_per_thread(tmp_path):
    """Each thread by its core's number; the text and CSV have the same"""
    cpus = {"CPU_CLK_UNHALTED": dict.fromkeys("0123", 4000),
            "INSTRUCTIONS_EXECUTED": {"0": 1000, "1": 2000, "2": 500, "3": 4000}}
    args = ("--per-thread", "-u", "-M", "cpi_thread,memory_write_bytes")
    got = places(tmp_path, *args, cpus=cpus)
    assert {at: row["metrics"]["cpi_thread"]["value"] for at, row in got.items()} == \
        {(0, 0): 2, (0, 1): 8, (1, 0): 4, (1, 1): 1}
    fake = {"files": {"cpuinfo": CORES}, "cpus": cpus}
    run = Run(tmp_path, "-a", *args, **fake)
    assert re.search(r"^core  thread  cpi_thread\n   0       0           2\n", run.err, re.M), \
        run.err
    assert "no value: memory_write_bytes: each thread counts" in run.err, run.err
    assert re.search(r"^over 4 threads +min +max +mean\ncpi_thread +1 +8 +3\.750 *$", run.err, re.M), \
        run.err
    run = Run(tmp_path, "-a", "-f", "csv", "-o", "-", *args, **fake)
    assert "\n0,1,cpi_thread,8.0,,,,,1,\n" in run.out, run.out
    run = Run(tmp_path, "-a", *args, perf=f"{HERE}/perf perf", cpus=cpus)
    assert run.status == 1 and "which core CPU 0 belongs to" in run.err, run.err
