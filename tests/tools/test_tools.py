# SPDX-License-Identifier: GPL-2.0-only
"""The tables for other tools, and knc-metrics with a perf that is not one."""
import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lines import TOP

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = f"{TOP}/tools"
sys.path.insert(0, TOOLS)
import knc_tables  # noqa: E402

# Another reader of the header than ours: the C preprocessor, for which it is
LISTING = """
#include "knc_pmu_events.h"
#define PRINT(unit, code, NAME, name, description) @NAME KNC_UNIT_##unit code description
KNC_EVENTS(PRINT)
KNC_EVENTS_EXTRA(PRINT)
"""


def same(got, want, what=""):
    assert got == want, f"{what}: {got!r}, not {want!r}"


def near(got, want, what=""):
    assert abs(got - want) <= 1e-9 * abs(want), f"{what}: {got!r}, not {want!r}"


def code(text):
    return int(text, 16)


def header_events():
    """{NAME: (unit mask, code, description)}, by the preprocessor"""
    listed = subprocess.run(["gcc", "-E", "-P", "-I", TOP, "-"], input=LISTING, check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    return {name: (code(umask), code(event), description) for name, umask, event, description in
            re.findall(r'@(\w+) (\w+) (\w+) "(.*?)"', listed)}


def csv_rows(path, **form):
    lines = path.read_text().splitlines()
    return [*csv.DictReader((line for line in lines if not line.startswith("#")), **form)]


def generate(tmp_path, what):
    subprocess.run([f"{TOOLS}/gen-tables", what, tmp_path / what], check=True)
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

def check_entries(entries, wanted):
    """Entries of perf's or Intel's lists against the header"""
    names = [entry["EventName"] for entry in entries]
    same(sorted(names), sorted(wanted), "names")
    for entry in entries:
        name = entry["EventName"]
        same((code(entry["UMask"]), code(entry["EventCode"]), entry["BriefDescription"]),
             wanted[name], name)
        same(entry["Counter"], "0" if wanted[name][0] == 0x10 else "0,1", name)
        assert is_prime(int(entry["SampleAfterValue"])), f"{name}: period"


def test_tables_header(tmp_path):
    """All of the header's events, and no others, in each format"""
    wanted = header_events()
    same(len(wanted), 63)
    check_entries(perf_tables(tmp_path)[0], wanted)
    perfmon = generate(tmp_path, "perfmon") / "KNC/knightscorner_core_v1.json"
    check_entries(json.loads(perfmon.read_text()), wanted)


def test_tables_manual(tmp_path):
    """The same against the tables that were made from the manual"""
    wanted = {row["name"]: (code(row["umask"]), code(row["event"]))
              for name in ("knc_events.csv", "knc_events_extra.csv")
              for row in csv_rows(Path(TOP, "tests/data", name))}
    for entry in perf_tables(tmp_path)[0]:
        same((code(entry["UMask"]), code(entry["EventCode"])),
             wanted.pop(entry["EventName"]), entry["EventName"])
    same(wanted, {}, "left over")


def test_tables_topics(tmp_path):
    """perf's own topics, and nothing in it that perf 6.1 would take for another event"""
    events, metrics = perf_tables(tmp_path)
    same({entry["topic"] for entry in events} - {"cache.json", "floating-point.json",
                                                 "frontend.json", "memory.json",
                                                 "pipeline.json", "virtual-memory.json"},
         set())
    same({entry["topic"] for entry in metrics}, {"knc-metrics.json"})
    for entry in events:
        # These have a unit of their own, or are taken for the fixed counters.
        assert "Unit" not in entry and "." not in entry["EventName"], entry
        assert not entry["BriefDescription"].endswith("."), entry
    names = [m["MetricName"] for m in metrics]
    groups = {group for m in metrics for group in m["MetricGroup"].split(";")}
    same(len(names), len(set(names)))
    same(set(names) & groups, set(), "both a metric and a group")
    assert {"cpi", "tlb", "vector", "cache", "pairing", "memory"} <= groups


def test_tables_at_once(tmp_path):
    """perf has no metric whose events would take turns, of which one may have none"""
    events, metrics = perf_tables(tmp_path)
    counters = {entry["EventName"]: entry["Counter"] for entry in events}
    assert len(metrics) > 20, metrics
    for metric in metrics:
        used = set(re.findall(r"[A-Z]\w+", metric["MetricExpr"]))
        assert len(used) <= 2 and [counters[name] for name in used].count("0") <= 1, metric


def test_tables_seconds(tmp_path):
    """Rates have the unit that they say, of duration_time in seconds as perf has it"""
    rates = {m.name: m for m in knc_tables.load()[1] if "duration_time" in m.expr}
    same({name: (m.scale, m.unit) for name, m in rates.items()},
         {"clock_rate": (1e-9, "GHz"), "memory_bandwidth": (1e-9, "GB/s")})
    clock = next(m for m in perf_tables(tmp_path)[1] if m["MetricName"] == "clock_rate")
    same((clock["MetricExpr"], clock["ScaleUnit"]),
         ("d_ratio(CPU_CLK_UNHALTED, duration_time)", "1e-9GHz"))
    got = as_json(tmp_path, "-M", "clock_rate", seconds=[2],
                  counts={"CPU_CLK_UNHALTED": 3 * 10 ** 9})
    near(got.metrics()["clock_rate"]["value"], 1.5)


def test_tables_emulated():
    """Events without a model are those that the emulator's own table has not"""
    events = Path(TOP, "emulator/target/i386/knc/events.c").read_text()
    modelled = set(re.findall(r"EVENT\(0x\w+, (\w+)\)", events))
    same({e.name for e in knc_tables.load()[0] if e.emulated}, modelled)


def test_tables_perfmon(tmp_path):
    """TSV and JSON are the same list, and the mapfile names files that are there"""
    folder = generate(tmp_path, "perfmon")
    mapped = csv_rows(folder / "mapfile.csv")
    same([row["Family-model"] for row in mapped], ["GenuineIntel-11-1"] * 2)
    same({row["EventType"] for row in mapped}, {"core"})
    lists = []
    for row in mapped:
        path = folder / row["Filename"].lstrip("/")
        assert f"_core_{row['Version']}." in path.name, path
        lists.append(json.loads(path.read_text()) if path.suffix == ".json" else
                     csv_rows(path, delimiter="\t", quoting=csv.QUOTE_NONE))
    same(lists[0], lists[1])


def refused(tables, word):
    events = knc_tables.read_events()
    with pytest.raises(knc_tables.Bad, match=word):
        entries = knc_tables.read_tables(tables)
        knc_tables.describe(events, entries)
        for section, entry in entries.items():
            knc_tables.Metric(section, entry)


def test_tables_refused():
    """What does not fit the header is an error that names it"""
    refused("[NO_SUCH_EVENT]\ntopic = cache\nperiod = 3\n", "NO_SUCH_EVENT")
    refused("[DATA_READ]\ntopic = cache\nperiod = 3\n", "nothing about")
    refused("[DATA_READ]\ntopic = a\nperiod = 3\nwrong = 1\n", "wrong")
    refused("[DATA_READ]\n[DATA_READ]\n", "already exists")


# --- knc-metrics -------------------------------------------------------------------

class Run:
    """What became of a call of knc-metrics"""

    def __init__(self, tmp_path, *args, program=("./program",), perf=f"{HERE}/perf",
                 stdin=subprocess.DEVNULL, **fake):
        self.log = tmp_path / "log"
        self.log.unlink(missing_ok=True)
        env = {**os.environ, "FAKE_PERF": json.dumps({"log": str(self.log), **fake})}
        command = [f"{TOOLS}/knc-metrics"]
        if perf:
            command += ["--perf", perf]
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
    same(run.status, 0, run.err)
    return run


def recorded(name):
    lines = Path(HERE, "recorded.txt").read_text()
    return int(re.search(rf"^(\d+);.*;{name};", lines, re.M)[1])


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
    same(seen, {name for m in metrics for name, _ in m.events()} - {"duration_time"})
    for m in metrics:
        keys = [key for key in m.events() if key[0] != "duration_time"]
        has_value = run.metrics()[m.name]["value"] is not None
        if has_value and len(keys) == 2 and not all(k[0].startswith(("L2_", "SNP_")) for k in keys):
            same(run.metrics()[m.name]["runs"], 1, m.name)


def test_metrics_values(tmp_path):
    """Arithmetic on what perf said: ratios, per cent, bytes, and 0 to divide by"""
    got = as_json(tmp_path).metrics()
    clocks, instructions = recorded("CPU_CLK_UNHALTED"), recorded("INSTRUCTIONS_EXECUTED")
    near(got["cpi_thread"]["value"], clocks / instructions)
    near(got["ipc"]["value"], instructions / clocks)
    near(got["cpi_core"]["value"], clocks / recorded("INSTRUCTIONS_EXECUTED_any_1"))
    near(got["l1_tlb_miss_ratio"]["value"],
         100 * recorded("DATA_PAGE_WALK") / recorded("DATA_READ_OR_WRITE"))
    same(got["l1_tlb_miss_ratio"]["unit"], "%")
    reads, writes = (recorded(f"L2_DATA_{what}_MISS_MEM_FILL") for what in ("READ", "WRITE"))
    near(got["memory_read_bytes"]["value"],
         64 * (reads + writes + recorded("HWP_L2MISS")))
    assert got["memory_read_bytes"]["runs"] == 3, got["memory_read_bytes"]
    misses = recorded("DATA_READ_MISS_OR_WRITE_MISS") + recorded("L1_DATA_HIT_INFLIGHT_PF1")
    near(got["l1_hit_rate"]["value"], 100 - 100 * misses / recorded("DATA_READ_OR_WRITE"))
    same(got["vectorization_intensity"]["value"], None)
    assert "divide" in got["vectorization_intensity"]["reason"], got


def test_metrics_threshold(tmp_path):
    """Exceeded ones are told, with what they mean and who says so"""
    for elements, exceeded in ((100, ["< 8"]), (800, ["< 16"]), (1600, [])):
        run = as_json(tmp_path, "-M", "vectorization_intensity",
                      counts={"VPU_INSTRUCTIONS_EXECUTED": 100,
                              "VPU_ELEMENTS_ACTIVE": elements})
        got = run.metrics()["vectorization_intensity"]
        near(got["value"], elements / 100)
        same([e["threshold"] for e in got["exceeded"]], exceeded)
    run = Run(tmp_path, "-M", "vectorization_intensity",
              counts={"VPU_INSTRUCTIONS_EXECUTED": 100, "VPU_ELEMENTS_ACTIVE": 100})
    assert "! < 8: a part of the vector unit" in run.err and "likwid" in run.err, run.err
    # Nothing is below a threshold that has no value.
    assert "! <" not in Run(tmp_path, "-M", "vectorization_intensity").err


def test_metrics_sourced():
    """A threshold stands only where the notes have one that was read"""
    _, metrics = knc_tables.load()
    same([m.name for m in metrics if m.thresholds], ["vectorization_intensity"])


def test_metrics_repeat(tmp_path):
    """Mean and spread of several rounds"""
    counts = {"DATA_READ_MISS_OR_WRITE_MISS": 100, "L1_DATA_HIT_INFLIGHT_PF1": 0}
    run = as_json(tmp_path, "-r", "3", "-M", "l1_misses", grow=10, counts=counts)
    same(len(run.calls()), 3)
    got = run.metrics()["l1_misses"]
    same((got["min"], got["value"], got["max"]), (100, 120, 140))
    text = Run(tmp_path, "-r", "3", "-M", "l1_misses", grow=10, counts=counts).err
    assert re.search(r"l1_misses +120 +100 \.\. 140", text), text


def test_metrics_shared(tmp_path):
    """What was counted for a part of the time only is not taken"""
    run = Run(tmp_path, "-M", "cpi_thread", share="40.00")
    same(run.status, 1)
    assert "40 %" in run.err and "watchdog" in run.err, run.err


def test_metrics_denied(tmp_path):
    """One event that is refused takes its metric with it, and no other"""
    got = as_json(tmp_path, "-M", "cpi", deny="any=1").metrics()
    same(got["cpi_core"]["value"], None)
    assert "limited" in got["cpi_core"]["reason"], got["cpi_core"]
    assert got["cpi_thread"]["value"] and not got["cpi_thread"]["reason"]
    run = Run(tmp_path, "-M", "cpi", deny="event")
    same(run.status, 1)
    assert "limited" in run.err, run.err


def test_metrics_not_counted(tmp_path):
    """What has no count is no 0, and who may have the counters is told"""
    for value, why in (("<not counted>", "another perf"), ("<not supported>", "not supported")):
        got = as_json(tmp_path, "-M", "ipc,branch", counts={"BRANCHES": value}).metrics()
        same(got["branch_mispredict_ratio"]["value"], None)
        assert why in got["branch_mispredict_ratio"]["reason"], got
        assert got["ipc"]["value"]


def test_metrics_pmu(tmp_path):
    """It is called as on the machine that counts; a file that is not there is empty."""
    for options, files, name in (((), {"knc/type": "4"}, "knc"), ((), {}, "cpu"),
                                 (("--pmu", "other"), {"knc/type": "4"}, "other")):
        run = as_json(tmp_path, *options, "-M", "ipc", perf=f"{HERE}/perf perf", files=files)
        assert f"-e {{{name}/event=" in run.calls()[0], run.calls()


def test_metrics_not_modelled(tmp_path):
    """On the emulated card what it has no model of is not counted, and has no value"""
    run = as_json(tmp_path, "-M", "v_pipe_share,ipc,hwp_bytes", perf=f"{HERE}/perf perf",
                  files={"cpuinfo": "model name : a card (emulated)"})
    same(len(run.calls()), 1)
    got = run.metrics()
    assert got["ipc"]["value"], got
    for name, event in (("v_pipe_share", "INSTRUCTIONS_EXECUTED_V_PIPE"),
                        ("hwp_bytes", "HWP_L2MISS")):
        same((got[name]["value"], got[name]["reason"]),
             (None, f"the emulator has no model of {event}"))
    run = Run(tmp_path, "-M", "hwp_bytes", perf=f"{HERE}/perf perf",
              files={"cpuinfo": "model name: (emulated)"})
    assert run.status == 1 and "no model of HWP_L2MISS" in run.err, run.err
    assert as_json(tmp_path, "-M", "v_pipe_share").metrics()["v_pipe_share"]["value"] == 0


def test_metrics_stderr(tmp_path):
    """What the program says is passed on as it is, and no part of perf's report"""
    for says in ("no end", "12%\r100%\r", "{", '{"counter-value', "1;;ipc;1;100.00\n", "",
                 "Error:\nnot perf's\n", '{"counter-value" : "1"\n'):
        for perf in (f"{HERE}/perf", f"env {HERE}/perf"):
            run = Run(tmp_path, "-M", "ipc", "-o", f"{tmp_path}/out", perf=perf, says=says)
            same((run.status, run.out), (0, ""), run.err)
            same(run.err, says, perf)
            assert re.search(r"^ipc +0\.5000$", (tmp_path / "out").read_text(), re.M), says


def test_metrics_ssh(tmp_path):
    """The shell of another machine gets perf's arguments as they are"""
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nshift\nexec bash -c "$*"\n')
    ssh.chmod(0o755)
    run = as_json(tmp_path, "-M", "ipc", perf=f"{ssh} mic0 {HERE}/perf",
                  program=("./program", "a b", "{c,d}"))
    assert run.calls()[0].endswith("-- ./program a b {c,d}"), run.calls()


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
                same([call.split(" < ")[1] for call in calls], ["line"] * 3)


def test_metrics_turns(tmp_path):
    """Attached: turns of different length are compared by their rates"""
    run = as_json(tmp_path, "-p", "12", "-t", "0.5", "-M", "l1_hit_rate", program=(),
                  seconds=[1, 3],
                  counts={"DATA_READ_OR_WRITE": 3000, "DATA_READ_MISS_OR_WRITE_MISS": 100,
                          "L1_DATA_HIT_INFLIGHT_PF1": 0})
    calls = run.calls()
    same(len(calls), 2)
    for call in calls:
        assert call.endswith("-p 12 -- sleep 0.5"), call
    # The accesses are those of the short turn or of the long one, whichever has them.
    first = "DATA_READ_OR_WRITE" in calls[0]
    accesses, misses = (3000, 100 / 3) if first else (1000, 100)
    near(run.metrics()["l1_hit_rate"]["value"], 100 - 100 * misses / accesses)
    run = as_json(tmp_path, "-a", "-M", "ipc", program=())
    assert run.calls()[0].endswith("-a -- sleep 1"), run.calls()
    run = as_json(tmp_path, "-a", "-M", "ipc")
    assert run.calls()[0].endswith("-a -- ./program"), run.calls()


def test_metrics_text(tmp_path):
    """The report is on stderr, the program's words are passed on, once each"""
    run = Run(tmp_path, "-M", "cpi_thread,tlb")
    same((run.status, run.out), (0, ""))
    same(run.err.count("the program speaks"), len(run.calls()))
    assert re.search(r"^cpi_thread +2\.000$", run.err, re.M), run.err
    assert re.search(r"^l1_tlb_miss_ratio +1\.168 %$", run.err, re.M), run.err
    assert ";" not in run.err, run.err


def test_metrics_csv(tmp_path):
    """CSV has the values that JSON has"""
    run = Run(tmp_path, "-f", "csv", "-o", f"{tmp_path}/csv")
    same((run.status, run.out), (0, ""), run.err)
    rows = {row["metric"]: row for row in csv_rows(tmp_path / "csv")}
    for name, m in as_json(tmp_path).metrics().items():
        row = rows.pop(name)
        same(row["value"], "" if m["value"] is None else repr(m["value"]), name)
        same(row["groups"].split(";"), m["groups"])
    same(rows, {})


def test_metrics_status(tmp_path):
    """The program's status is ours, and its counts are told all the same"""
    run = Run(tmp_path, "-M", "cpi_thread", status=3)
    same(run.status, 3)
    assert "cpi_thread" in run.err, run.err


def test_metrics_killed(tmp_path):
    """A program that a signal has ended has the status that a shell gives it"""
    for perf in (f"{HERE}/perf", f"env {HERE}/perf"):
        for says in ("", "no end"):
            same(Run(tmp_path, "-M", "ipc", perf=perf, signal="Killed", says=says).status, 137)
    same(Run(tmp_path, "-M", "ipc", signal="Segmentation fault").status, 139)
    same(Run(tmp_path, "-M", "ipc", says="somebody: Killed\n").status, 0)


def test_metrics_names(tmp_path):
    """Names with blanks, in several -M; and all that there are for one that is not"""
    run = as_json(tmp_path, "-M", "ipc, branch_mispredict_ratio", "-M", "cpi_thread")
    same(list(run.metrics()), ["ipc", "branch_mispredict_ratio", "cpi_thread"])
    run = Run(tmp_path, "-M", "ipc,nosuch")
    assert "nosuch: no such metric" in run.err and "l1_hit_rate" in run.err and \
        " tlb" in run.err, run.err


def test_metrics_list_head(tmp_path):
    """A reader that has seen enough is no error"""
    done = subprocess.run(["sh", "-c", f"{TOOLS}/knc-metrics --list | head -n 1"], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
    same((len(done.stdout.splitlines()), done.stderr), (1, b""))


def test_shell_debian_perf():
    """Where perf has no tables, the shell's perf says so of -M, which it would ignore"""
    said = subprocess.run([f"{TOP}/uos/perf", "stat", "-M", "ipc", "true"], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    assert "perf: -M is ignored" in said and "knc-metrics" in said, said


def test_metrics_refused(tmp_path):
    """Bad calls are told apart, and nothing is counted for them"""
    for args, program, word in (((), (), "which program"),
                                (("-M", "nosuch"), ("x",), "no such metric"),
                                (("-p", "1"), ("x",), "neither a program"),
                                (("-p", "1", "-a"), (), "neither a program"),
                                (("-r", "0"), ("x",), "number above 0"),
                                (("-t", "x"), ("x",), "number above 0")):
        run = Run(tmp_path, *args, program=program)
        assert run.status in (1, 2) and word in run.err, (args, run.err)
        assert not run.log.exists(), args
    run = Run(tmp_path, perf="")
    assert run.status == 1 and "no Knights Corner" in run.err, run.err
    run = Run(tmp_path, "--perf", "/no/such/perf")
    assert run.status == 1 and "/no/such/perf" in run.err, run.err


def test_metrics_list(tmp_path):
    """--list has all metrics, their formulas and their sources"""
    run = Run(tmp_path, "--list", program=())
    same(run.status, 0)
    for metric in knc_tables.load()[1]:
        assert re.search(rf"^{metric.name}  \(", run.out, re.M), metric.name
        assert f"= {metric.expr}\n    after {metric.source}\n" in run.out, metric.name


def test_generated():
    """The documents are what the header and the tables make of them"""
    subprocess.run([f"{TOP}/scripts/gen-events", "--check"], check=True)
