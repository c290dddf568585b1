# SPDX-License-Identifier: GPL-2.0-only
"""knc-report's page has what it was made of: it is read back, and looked at by Chromium."""
import argparse
import html
import json
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from lines import TOP, executable, load, quietly
from test_tools import PERF, near
import knc_data

REPORT = f"{TOP}/tools/knc-report"
HOSTILE = '<script>alert("1")</script>&amp;\'x</title></style>'
# Elements that bring something from elsewhere, or may do something
ALIEN = {"script", "link", "iframe", "object", "embed", "img", "base", "form", "audio", "video"}
CARD = "".join(f"CPU{cpu},{1000 + cpu},,INSTRUCTIONS_EXECUTED,7895467,100.00,,\n" for cpu in range(244))
CPUINFO = "".join(f"processor\t: {cpu}\ncpu family\t: 11\nmodel\t\t: 1\nstepping\t: 3\n"
                  f"model name\t: 0b/01\ncpu MHz\t\t: 1052.630\ncore id\t\t: {cpu // 4}\n\n"
                  for cpu in range(244))
STACK = """columns   286     7.429589: DATA_PAGE_WALK:
	            169d sum+0x4d (/root/columns)
	            14ff main+0xf (/root/columns)

"""
SOURCE = "".join(f"line {n}\n" for n in range(1, 27)) + \
    "\t\tfor (i = 0; i < N && j > 0; i++) /* </pre> & \"more\" */\nline 28\nline 29\n"


def metric(name, value, unit="", exceeded=(), reason="", runs=1):
    return {"metric": name, "value": value, "unit": unit, "min": None, "max": None, "runs": runs,
            "exceeded": list(exceeded), "groups": ["tlb"], "description": f"What {name} is",
            "reason": reason}


TLB = {"threshold": "> 1.6", "meaning": "much", "source": "somebody who measured",
       "advice": "Change the order of the loops. Else <b>do</b> something.", "advisor": "Who knows"}
METRICS = {"command": ["./columns", "an argument"], "repeat": 1, "runs": [], "metrics": [
    metric("cpi_thread", 2.0130482810691923),
    metric("l1_tlb_miss_ratio", 24.28241967439533, "%", [TLB]),
    metric("memory_write_bytes", 2482624.0, "Bytes", runs=2),
    metric("vectorization_intensity", None, reason="the emulator has no model of VPU_STALL_REG")]}


def row(function, file, line, walks, reads=1000, reason=""):
    return {"function": function, "file": file and os.path.basename(file), "path": file,
            "line": line, "object": "/root/columns", "reason": reason,
            "events": {"DATA_PAGE_WALK": {"samples": walks, "count": walks * 263,
                                          "share": walks / 1003},
                       "DATA_READ_OR_WRITE": {"samples": reads, "count": reads * 1301, "share": 0.25}},
            "metrics": {"l1_tlb_miss_ratio": {"value": 19.75, "unit": "%", "error": 0.05, "reason": ""}}}


def lines_of(*rows, **event):
    return {"command": ["./columns"], "by": "line", "rows": list(rows), "events": {
        "DATA_PAGE_WALK": {"samples": 1003, "period": 263, "lost": 0, "note": "", **event},
        "DATA_READ_OR_WRITE": {"samples": 1, "period": 1301, "lost": 0, "note": ""}}}


LINES = lines_of(row("fill", "columns.c", 17, 1), row("sum", "columns.c", 27, 990),
                 row("clear_page", None, None, 12, reason="lines of the kernel need its vmlinux"))


def squeezed(element):
    return " ".join("".join(text for text in element.itertext() if not text.isspace()).split())


class Page:
    """What knc-report makes of these files, or of a program with a perf that is none"""

    def __init__(self, *options, perf=None, **files):
        for name, content in files.items():
            Path(name).write_text(content if isinstance(content, str) else json.dumps(content))
        path = Path("page.html")
        path.unlink(missing_ok=True)
        done = subprocess.run([REPORT, "-o", path, *options, *files], check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env={**os.environ, "FAKE_PERF": json.dumps(perf or {})})
        self.status, self.said = done.returncode, done.stderr
        self.html = path.read_text() if path.exists() else ""
        # Without its script
        self.root = ElementTree.fromstring(
            re.sub("<script>.*</script>", "", self.html, flags=re.S) or "<html/>")
        assert perf or "Traceback" not in self.said, self.said

    def text(self, section="summary"):
        return " ".join(map(squeezed, self.root.iterfind(f".//section[@id='{section}']")))

    def rows(self, section):
        """(id, text, numbers) of each row of a table there"""
        return [(row.get("id"), squeezed(row), [float(n.get("value")) for n in row.iter("data")])
                for row in self.root.iterfind(f".//section[@id='{section}']//tr")]

    def has(self, section, *words):
        for each in words:
            assert each in self.text(section), f"{each}: {self.text(section)}"

    def begins(self, words):
        assert self.text().startswith(words), self.text()

    def refused(self, *words, status=1):
        assert self.status == status and not self.html, self.said
        self.says(*words)

    def says(self, *words):
        for each in words:
            assert each in self.said, self.said


def whole(**files):
    """Of all that a page can be made of"""
    Path("columns.c").write_text(SOURCE)
    return Page(**{"metrics": METRICS, "lines": LINES, "card": CARD, "cpuinfo": CPUINFO,
                   "stacks": STACK * 40, **files})


def test_report_numbers():
    """Read back from the page: metrics, shares, samples, and the marks beside them"""
    page = whole()
    assert page.status == 0, page.said
    # Each number of the JSON is in the page as it is, and none else.
    rows = {row: (text, data) for row, text, data in page.rows("metrics") if data}
    assert {row: data for row, (_, data) in rows.items()} == {
        f"metric-{m['metric']}": [m["value"]] for m in METRICS["metrics"] if m["value"]}
    for name, words in (("cpi_thread", "2.013not above 8"),
                        ("l1_tlb_miss_ratio", "24.28 %! above 1.6 %"),
                        ("memory_write_bytes", "~2.483 MB")):
        assert words in rows[f"metric-{name}"][0], rows
    # Rows of less than 1 % are counted.
    assert [data for *_, data in page.rows("lines") if data] == [[990 / 1003, 990], [12 / 1003, 12]]
    page.has("lines", "and 1 more", "19.75 % (± 5 %)", "lines of the kernel need its vmlinux")
    page.has("missing", "vectorization_intensitythe emulator has no model of VPU_STALL_REG")
    assert len(re.findall('<div class="box".*\n<svg', page.html)) == 2
    assert re.search(r">core 60, CPU 240, 241, 242, 243: .*; 1,243<", page.html), "the heat map"
    assert "sum: 40 samples, 100.0%" in page.html, "the flame graph"
    page.has("run", "./columns 'an argument'", "61 cores, 244 hardware threads", "1052.630 MHz",
             "family 11, model 1, stepping 3")
    # What is exceeded, the hot line, its source, and what to do come first.
    first = page.html.partition('id="run"')[0]
    assert 'id="summary"' in first and "<svg" not in first
    page.has("summary", "l1_tlb_miss_ratio exceeds its threshold, most of all at columns.c:27 in sum. "
             "Change the order of the loops.", "l1_tlb_miss_ratio: 24.28 % is above 1.6 %",
             "This means: much.", "somebody who measured",
             "columns.c:27 in sum has 98.70 % of the samples of DATA_PAGE_WALK",
             "> 27 for (i = 0; i < N && j > 0; i++) /* </pre> & \"more\" */",
             "What to do: Change the order of the loops. Else <b>do</b> something.")
    page.says("columns.c:27 in sum", "Change the order")


def test_report_nothing_exceeded():
    """It says so, and what was not compared; nothing is said to be right for want of values"""
    calm = {**METRICS, "metrics": [metric("cpi_thread", 2.0), METRICS["metrics"][3]]}
    page = whole(metrics=calm)
    page.begins("No threshold is exceeded. Compared: cpi_thread. Not compared, as there is no "
                "value: vectorization_intensity, l1_read_miss_ratio, l1_tlb_miss_ratio.")
    assert "What to do" not in page.text()
    blind = {**METRICS, "metrics": METRICS["metrics"][2:]}
    whole(metrics=blind).begins("No metric that has a threshold has a value here")
    Page(card=CARD, cpuinfo=CPUINFO).begins("No metrics were given")


def test_report_below():
    """A value that is too low: the line that lacks most, however many instructions others have"""
    def line(function, at, instructions, elements):
        return {**row(function, "columns.c", at, 0), "events": {
            "VPU_INSTRUCTIONS_EXECUTED": {"samples": instructions, "count": 9 * instructions,
                                          "share": instructions / 1000},
            "VPU_ELEMENTS_ACTIVE": {"samples": elements, "count": 9 * elements, "share": 0.5}}}

    metrics = {**METRICS, "metrics": [metric("vectorization_intensity", 6.9, "", [{**TLB, "threshold": "< 8"}])]}
    lines = {**LINES, "events": {"VPU_ELEMENTS_ACTIVE": {"samples": 9, "period": 7},
                                 "VPU_INSTRUCTIONS_EXECUTED": {"samples": 9, "period": 7}},
             "rows": [{**line("whole", 1, 800, 6400),
                       "metrics": {"vectorization_intensity": {"value": 8}}},
                      line("half", 2, 150, 600), line("single", 3, 50, 50)]}
    page = whole(metrics=metrics, lines=lines)
    page.has("summary", "vectorization_intensity is below its threshold, most of all at columns.c:2 in half",
             "vectorization_intensity: 6.900 is below 8This",
             "columns.c:2 in half has 63.16 % of the missing VPU_ELEMENTS_ACTIVE")
    assert "exceed" not in page.text(), page.text()
    page.has("metrics", "6.900! below 8")
    assert [data[0] for *_, data in page.rows("lines") if data] == [600 / 950, 350 / 950]


CONTEXT = {"machine": "mic0", "emulated": False, "kernel": "6.1", "driver": "the module 1", "perf": "6.1",
           "pmu": "cpu", "date": "today", "user": False, "turns": False}


def result(seconds, context=None, **values):
    """Of knc-metrics -r: what each run has of each metric, whose name has its unit"""
    return {**METRICS, "seconds": seconds, "context": {**CONTEXT, **(context or {})}, "metrics": [
        {**metric(name, sum(has) / len(has), "%" * ("ratio" in name) or "Bytes" * ("byte" in name)),
         "min": min(has), "max": max(has), "values": has} for name, has in values.items()]}


def about(middle):
    return [middle + n / 100 for n in range(-2, 3)]


def test_report_compared():
    """Before and after a change: each difference, its interval, and whether chance makes it"""
    before = result(about(2), ipc=about(0.5), miss_ratio=about(38), few=[1, 1, 1], gone=[1], bytes=[7e8] * 5,
                    same=[3] * 5, tail=[*about(1)[:4], 9])
    after = result(about(1), ipc=about(0.505), miss_ratio=about(4), few=[2, 2, 2], new=[1], bytes=[779596352] * 5,
                   same=[3] * 5, tail=about(1.1))
    page = Page(before=before, after=after)
    rows = {row.removeprefix("metric-"): (data, text)
            for row, text, data in page.rows("metrics") if row}
    for name, values, words in (
            ("elapsed_time", [2, 1], "-1 s (-50.0 %)different: -1.025 s to -0.9750 s"),
            ("ipc", [0.5, 0.505], "+0.00500 (+1.0 %)not different: -0.0200 to +0.0300; 0.0350 would have been found"),
            ("miss_ratio", [38, 4], "-34 percentage pointsdifferent: -34.03 percentage points to -33.97"),
            ("few", [1, 2], "+1 (+100.0 %)too few runs to tell a change from chance"),
            ("bytes", [7e8, 779596352], "700 MB779.6 MB779.6 to 779.6 MB+79.60 MB (+11.4 %)different: +79.60 MB to +79.60 MB"),
            ("same", [3, 3], "0 (+0.0 %)not different: 0 to 0"), ("new", [1], "What new is1"),
            ("tail", [0.995, 1.1], "different: +0.0800 to +0.1300; 1 run far from all others is left out: 9")):
        assert rows[name][0] == near(values) and words in rows[name][1], (name, rows[name])
    assert "gone" not in rows, rows
    for words in ("elapsed_time is faster: 2 to 1 s, -1 s (-50.0 %).",
                  "miss_ratio is less: 38 to 4 %, -34 percentage points.",
                  "bytes is more: 700 to 779.6 MB, +79.60 MB", "4 of 6 metrics differ",
                  "1 metric: too few runs"):
        page.has("summary", words)
        page.says(words)
    page.begins("elapsed_time is faster")
    page.has("run", "Command./columns 'an argument'", "Before./columns", "Machine beforemic0", "Date beforetoday")
    Page(before=after, after=after).says("No metric differs by more than chance does.")


def test_report_unlike():
    """What cannot be compared is refused; other differences, and files without values, are told"""
    one = result(about(2), miss_ratio=about(38))
    for context, words in (({"user": True}, "one is with what the kernel does, the other without (-u)"),
                           ({"emulated": True}, "one is of a real card, the other of the emulated one"),
                           ({"turns": True}, "one is of a program, the other of CPUs or")):
        Page(before=one, after=result(about(1), context, miss_ratio=about(4))).refused(words)
    page = Page(before=one, after=result(about(1), {"kernel": "6.2"}, miss_ratio=about(4)))
    page.has("summary", "The kernel is another one: 6.1, then 6.2.")
    # Time is no headline on the emulated card.
    page = Page(before=result(about(2), {"emulated": True}, miss_ratio=about(38)),
                after=result(about(3), {"emulated": True}, miss_ratio=about(4)))
    page.begins("miss_ratio is less")
    page.says("says nothing of a card's: elapsed_time")
    assert "slower" not in page.said, page.said
    page.has("run", "mic0 (emulated)")
    del one["metrics"][0]["values"], one["context"]
    Page(before=one, after=one).says("1 metric: the file has the spread of the runs, and not",
                                     "does not say where it is from")


def regions(seconds, walks, *threads):
    return {"command": ["./columns"], "runs": [], "no_value": {}, "rows": [
        {"region": "fill & sum", "thread": thread, "threads": 2, "calls": 7, "seconds": seconds,
         "all_seconds": about(seconds), "metrics": {
             "l1_tlb_miss_ratio": {**metric("l1_tlb_miss_ratio", value, "%", [TLB] * (value > 1.6)),
                                   "min": value - 0.1, "max": value + 0.1,
                                   "values": [value + n / 20 for n in range(-2, 3)]}}}
        for thread, value in ((None, walks), *enumerate(threads))]}


def test_report_regions():
    """Each region's metrics, thresholds and threads; and two results of them"""
    page = Page(regions=regions(3, 2.5, 2, 3))
    page.has("regions", "fill & sum7 calls, 2 threads", "l1_tlb_miss_ratioWhat", "elapsed_time",
             "Threads: 2 to 3 %, mean 2.500 %", "2.500 %2.400 to 2.600 %! above 1.6 %")
    page.begins("l1_tlb_miss_ratio in fill & sum exceeds its threshold.")
    page = Page(a=regions(3, 2.5), b=regions(2, 1.5))
    page.has("summary", "elapsed_time in fill & sum is faster: 3 to 2 s, -1 s (-33.3 %)",
             "l1_tlb_miss_ratio in fill & sum is less: 2.500 to 1.500 %, -1 percentage points.")


READS = {**TLB, "threshold": "> 13", "advice": "Change the order of the loops. Else block."}


def functions_of(*rows):
    return {**lines_of(*(row(name, None, None, samples) for name, samples in rows)),
            "by": "function", "cost": "DATA_PAGE_WALK"}


def advised(function, text, *metrics, **more):
    """The summary of a page whose hottest line this is, of these metrics"""
    Path("hot.c").write_text(f"{text}\n")
    page = Page(metrics={**METRICS, "metrics": [*metrics], "context": CONTEXT, **more},
                lines=lines_of(row(function, "hot.c", 1, 900)),
                functions=functions_of((function, 900), ("work", 100)))
    return page.text()


def test_report_advice():
    """By what the hot line and the other metrics say: conflicts, indices out of memory, and waiting"""
    column, walks = "a[j][i] = a[j - 1][i] + a[j][i - 1];", metric("l1_tlb_miss_ratio", 20, "%", [TLB])
    reads, few = metric("l1_read_miss_ratio", 40, "%", [READS]), metric("l1_tlb_miss_ratio", 0.1, "%")
    for share, conflict in ((99, True), (60, False)):
        said = advised("relax", column, reads, few, metric("l1_misses_in_l2", share, "%"))
        assert ("multiple of 4096 bytes apart" in said) == conflict, said
        assert ("lines of 64 bytes: 64 bytes if these are the 2 accesses that a line has here, 256 if they are 8 "
                in said) == conflict, said
        assert ("Change the order of the loops. Else block." in said) != conflict, said
    said = advised("relax", column, reads, walks, metric("l1_misses_in_l2", 99, "%"))
    assert "4096" not in said, said
    for text, indirect in (("sum += values[p] * x[columns[p]];", True), (column, False),
                           ("sum += a[i][j] + b[i];", False), ("y(i) = a(i, min(j, n))", False)):
        said = advised("multiply", text, walks)
        assert ("Number the elements so that neighbours" in said) == indirect, said
        assert ("Change the order of the loops" in said) != indirect, said
    for name in "gomp_barrier_wait_end", "gomp_team_barrier_wait_end", "__kmp_hyper_barrier_release":
        said = advised(name, column, metric("cpi_thread", 2))
        assert "There the threads wait for others. They wait for those in work, which has 9.970 %." in said, said
        assert "Number" not in advised(name, "x[y[i]]", walks) and "wait" in said
    assert "threads wait" not in advised("compute_wait", column, metric("cpi_thread", 2))
    # What cannot be exceeded there is not judged.
    metrics = metric("cpi_thread", 2), metric("branch_mispredict_ratio", 20.5, "%")
    said = advised("sort", column, *metrics, context={**CONTEXT, "emulated": True})
    for words in "cpi_thread cannot exceed its threshold here", "these cost time: 20.50 % of the branches are predicted":
        assert words in said, said
    assert "cannot exceed" not in advised("sort", column, *metrics)


def test_report_functions():
    """Functions with what exceeds a threshold marked; instructions beside the hot line"""
    functions = functions_of(("sum", 900), ("fill", 103))
    functions["rows"][0]["metrics"]["l1_tlb_miss_ratio"]["exceeded"] = [TLB]
    hot = {**LINES["rows"][1], "assembly": [
        {"address": "1690", "instruction": "mov <a>,%rax", "share": 0},
        {"address": "1694", "instruction": "add $0x1,%edx", "share": 0.987}]}
    page = whole(lines=lines_of(hot), functions=functions)
    text = page.text("functions")
    assert re.search(r"sum in /root/columns *89\.73 %900 samples.*! above 1\.6.*fill in", text), text
    assert text.count("!") == 1, text
    page.has("summary", " 0.0% 1690: mov <a>,%rax 98.7% 1694: add $0x1,%edx", "columns.c:27")
    assert '<b> 98.7%  1694: add' in page.html


def test_report_profiles():
    """Functions of two results: what each has, what has changed most first, and what sampling makes"""
    before, after = ({**functions_of(*of), "context": CONTEXT} for of in (
        [("sum", 900), ("fill", 103), ("gone", 40), ("few", 9)],
        [("sum", 100), ("fill", 110), ("new", 60)]))
    page = Page(before=before, after=after)
    for (_, text, data), counts, words in zip(
            page.rows("functions")[1:5], ((900, 100), (0, 60), (40, 0), (103, 110)),
            ("sum in /root/columns236,70026,300-210,400 events (-88.9 %)", "+15,780 events",
             "-10,520 events (-100.0 %)", "+1,841 events (+6.8 %)not more than sampling makes"),
            strict=True):
        assert data == [n * 263 for n in counts] and words in text, text
    assert "and 1 more" in page.text("functions") and "few in" not in page.text("functions")
    # Each function of the second result stands below as ever.
    assert page.text("functions").count("sum in /root/columns") == 2, page.text("functions")
    after["context"] = {**CONTEXT, "emulated": True}
    Page(before=before, after=after).refused("cannot be compared")


def test_report_hostile():
    """Names are text, whatever is in them, and nothing comes from elsewhere"""
    name = "a&b<i>\".c"
    Path(name).write_text("</code></pre><script>alert(1)</script>\n")
    metrics = {**METRICS, "command": [HOSTILE, "http://elsewhere"]}
    lines = lines_of(row(HOSTILE, name, 1, 900), row("f<int>(T&&)", HOSTILE, 2, 30))
    page = whole(metrics=metrics, lines=lines, stacks=STACK.replace("main", HOSTILE.replace(" ", "")))
    assert page.status == 0, page.said
    # The one script is the page's.
    assert [page.html.count(tag) for tag in ("<script", "<h1>", "</html>")] == [1, 1, 1]
    assert ALIEN.isdisjoint(element.tag for element in page.root.iter())
    assert [(key, value) for element in page.root.iter() for key, value in element.items()
            if key.startswith("on") or key in ("src", "href", "action", "srcset", "xlink:href") or
            "://" in value or "url(" in value and "url(#scale)" not in value] == []
    assert not re.search("@import|url\\(|@font-face|expression", page.root.find(".//style").text)
    page.has("summary", f"{name}:1 in {HOSTILE} has", "</code></pre><script>alert(1)</script>")
    page.has("lines", "f<int>(T&&)")


def test_report_sources():
    """Why a line is not shown; where sources are is told by --source; what a line is"""
    for hot, why in ((row("f", "/src/no.c", 1, 900), "/src/no.c is not here; --source DIR"),
                     (row("f", "columns.c", 999, 900), "has 29 lines only: it is another version"),
                     (row("f", None, None, 900), "no debug information says"),
                     (row("f", None, None, 900, reason="stripped"), "stripped"),
                     ({**row("clear_page", None, None, 900), "object": "[kernel.kallsyms]"},
                      "the kernel, at work for the program: -u leaves")):
        whole(lines=lines_of(hot)).has("summary", why)
    Path("far").mkdir()
    Path("far/no.c").write_text("found = it;\n")
    page = Page("--source", "far", metrics=METRICS, lines=lines_of(row("f", "/src/no.c", 1, 900)))
    page.has("summary", "> 1 found = it;")
    # A form feed ends no line, and no control character gets out.
    Path("f.c").write_text("\f\nint\ra;\r\n\v\x1c\u2028\nhot(\x1b[2J);\n")
    page = Page(metrics=METRICS, lines=lines_of(row("f\x07", "f.c", 4, 900)),
                stacks=STACK.replace("main", "ma\x1bin"))
    page.has("summary", "> 4 hot(?[2J);")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", page.html + page.said), page.said
    assert ">ma?in: 1 samples" in page.html


def test_report_missing():
    """What could not be had is told, with the reason, and what is said of the numbers"""
    alone = "gt 1 2.5: cycles:\n\t 16 f+0x1 (/root/gt)\n\n"
    for files, words in (
            ({"stacks": alone * 9}, "callersno sample has any"),
            ({"stacks": STACK * 6 + alone * 4}, "some callers4 of 10 samples have none"),
            ({"stacks": STACK.replace("main+0xf", "[unknown]")}, "some symbols1 frames"),
            ({"lines": lines_of(row("f", "columns.c", 1, 19))}, "there are too few samples"),
            ({"lines": lines_of(row("f", "columns.c", 1, 900), lost=7)}, "7 samples of DATA_PAGE"),
            ({"lines": lines_of(row("f", "columns.c", 1, 900), note="not alike")}, "not alike"),
            ({"card": CARD.replace("100.00", "4.50")}, "the counters were shared"),
            ({"cpuinfo": "processor\t: 0\n"}, "no /proc/cpuinfo with core ids")):
        whole(**files).has("missing", words)
    # Nothing is said of counts that cannot be told apart, nor of samples behind folded stacks.
    page = whole(card=CARD * 2, stacks="[gt];main;a 100\ngt;main;b 300\n")
    page.has("missing", "several by the name")
    assert not re.search("callers|not understood", page.text("missing")), page.text("missing")
    assert "a: 100 samples, 25.0%" in page.html
    # What knc-metrics says of its numbers stands beside them.
    page = whole(metrics={**METRICS, "notes": ["! it broke"]},
                 lines={**LINES, "notes": ["! run 1: unknown events", "rows"]})
    page.has("metrics", "! it broke")
    page.has("lines", "263 events. ! run 1: unknown events.")
    page = Page(stacks="gt;main 1 2\n")
    assert page.status == 1 and "each stack has two counts" in page.said, page.said
    Page(metrics={**METRICS, "metrics": METRICS["metrics"][:1]}).has(
        "missing", "knc-metrics --by line", "perf stat -a -A", "neither perf.data nor")


PROGRAM = """#include <unistd.h>
static volatile long x;
__attribute__((noinline)) void early(long n) { for (long i = 0; i < n; i++) x += i; }
__attribute__((noinline)) void late(long n) { for (long i = 0; i < n; i++) getppid(); }
int main(void) { early(50000000); late(200000); return 0; }
"""


def compiled(text):
    Path("t.c").write_text(text)
    quietly("gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-o", "t", "t.c")


def test_report_proof(tmp_path, monkeypatch):
    """A name is shown if its file is proven to be that of the data; else it is said what to pass.
    What is lost or cut stands beside the picture."""
    if os.geteuid() and int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) > 1:
        pytest.skip("needs this machine's kernel in a recording: as root, or with "
                    "kernel.perf_event_paranoid=1")
    monkeypatch.setenv("HOME", str(tmp_path))

    def record(text, command):
        compiled(text)
        quietly("sh", "-c", f"perf record -q -g -e cpu-clock -F 1000 --no-buildid-mmap -o {command}")

    def page(*args):
        made = Page(*args)
        # What is said is on the page, too.
        for line in made.said.splitlines()[1:]:
            made.has("missing", line.removeprefix("knc-report: "))
        return made

    def check(shows, *args):
        made = page(*args)
        assert (made.status, "early: " in made.text("flame"),
                f"{tmp_path}/t" in made.said and "proves" in made.said) == \
            (0, shows, not shows), made.said

    record(PROGRAM + "int more;", "known -N ./t")
    check(True, "known")
    record(PROGRAM, "kept ./t")
    record(PROGRAM, "- ./t >pipe")
    record(PROGRAM, "- --buildid-mmap ./t >ids")
    record(PROGRAM, "packed -z ./t")
    record(PROGRAM, "proven -z --buildid-mmap ./t")
    # Another program is there.
    check(False, "known")
    # This file has the build id; perf has kept it.
    check(True, "kept")
    os.remove("t")
    check(True, "kept")
    compiled(PROGRAM)
    check(False, "pipe")
    check(False, "packed")
    assert knc_data.walk("ids").ids.items() >= knc_data.build_ids("ids").items() > set()
    check(True, "proven")
    with monkeypatch.context() as patch:
        patch.setattr(knc_data.tempfile, "tempdir", str(tmp_path))
        patch.setattr(knc_data, "build_ids", lambda path: {"": "1", "/../bin/sh": "1"})
        with knc_data.proven("known", "", ""):
            assert not os.path.lexists("bin")
    # Nor is this machine's kernel that of the data.
    page("pipe").says("[kernel.kallsyms]")
    check(True, "--symfs", "/", "pipe")
    kallsyms = re.sub(r" (\w) (?!_s?text$)", r" \1 cards_own_", Path("/proc/kallsyms").read_text(),
                      flags=re.M)
    Path("kallsyms").write_text(kallsyms)
    made = page("pipe", "kallsyms")
    assert "[kernel.kallsyms]" not in made.said, made.said
    made.has("flame", "cards_own_", "hotspot --kallsyms kallsyms --sysroot SYMFS pipe",
             "SYMFS is a directory with",
             "perf script -F +pid --kallsyms kallsyms --symfs SYMFS -i pipe")
    assert not re.search("early: |KALLSYMS", made.text("flame")), made.text("flame")[-900:]
    for cut in (kallsyms[:-1], kallsyms[:kallsyms.rindex("\n", 0, 10 ** 6) + 1]):
        Path("kallsyms").write_text(cut)
        page("pipe", "kallsyms").says("[kernel.kallsyms]")

    # Code that was made at run time has the names of the card's file, not of this machine's.
    Path("jit").write_text("j 1 1.5: 1 x:\n\t 40 f+0x1 (/tmp/perf-1.map)\n\t 50 f+0x11 (/tmp/perf-1.map)\n")
    Path("tmp").mkdir()
    Path("tmp/perf-1.map").write_text("no line\n30 18 old\n100 8 g\n0x30 0x20 new (a, b)\n")
    cat = ["sh", "-c", "cat jit"]
    for symfs, names in (("/", ["f", "f"]), ("/x", ["[unknown]"] * 2),
                         (str(tmp_path), ["new (a, b)", "[unknown]"])):
        with knc_data.script(cat, "", ["--symfs", symfs]) as reader:
            assert [[frame.function for frame in sample.frames] for sample in reader] == [names]
    knc_data.bring("jit", "brought", lambda name: ["cat", f"{tmp_path}{name}"], cat)
    assert Path("brought/tmp/perf-1.map").read_text().startswith("no line")
    name = f"/tmp/perf-{os.getpid()}99999.map"
    Path(name[1:]).write_text("1 1 x\n")
    with knc_data.borrowed([name, "/tmp/perf-7777777.map"], str(tmp_path)):
        assert Path(name).read_text() == "1 1 x\n"
    assert not os.path.lexists(name)

    data = Path("pipe").read_bytes()
    Path("cut").write_bytes(data[:-3])
    made = page("cut")
    words = re.search(r"the data is cut: it has ([\d,]+) samples", made.said)
    assert made.status == 1 and words, made.said
    made.has("flame", words[0])
    Path("hole").write_bytes(data[:-2000] + data[-1001:])
    assert page("hole").status == 1


def test_report_run():
    """knc-metrics and perf run the program; what they cannot have is missing: all, if it fails"""
    for status, missing in ((0, ("hottest lines for l1_tlb_miss_ratio", "heat map", "flame graph")),
                            (3, ("hottest lines, functions, heat map, flame graphthe program has ended with status 3",))):
        page = Page("-M", "l1_tlb_miss_ratio", "--perf", PERF, "--", "./program", perf={
            "log": f"log{status}", "status": status,
            "counts": {"DATA_PAGE_WALK": 50, "DATA_READ_OR_WRITE": 100}})
        assert page.status == status, page.said
        page.says("the program speaks\n")
        assert (Path(f"log{status}").read_text().count("\n") == 1) == (status > 0)
        rows = {row: data for row, _, data in page.rows("metrics")}
        assert rows["metric-l1_tlb_miss_ratio"][0] == near(50)
        page.has("summary", "l1_tlb_miss_ratio exceeds its threshold. Change the")
        page.has("run", "./program")
        page.has("metrics", "elapsed_time")
        page.has("missing", *missing)


def test_report_callers(tmp_path):
    """Why DWARF shows none: perf cannot follow it, or if it does not say so the program"""
    report = load(REPORT)
    events = {event.name: event for event in report.knc_tables.load()[0]}
    for says, why in (("callers by DWARF: read it elsewhere", "read it elsewhere"), ("", "has no index")):
        perf = executable(tmp_path / "perf", f"""#!/bin/sh
[ $1 = script ] && printf 'a 7/8 1.5: 1 x: \\n\\t40 f+0x1 (/x)\\n'
case $3 in *dwarf) echo '{says}' >&2; esac; : >>fp
""")
        page = report.Page()
        report.record_stacks(page, argparse.Namespace(
            pid=None, perf=[perf], user=True, pmu="cpu", command=["x"], events=events, replay=None,
            output="page.html", symfs=None), tmp_path, report.WORK, 1)
        assert why in dict(page.missing)["true callers"], page.missing
        assert page.symfs == "/" and os.path.getsize("page.kallsyms"), page.kallsyms


def test_report_progress():
    """On a terminal it says what it does, which run this is, how many come, what is read"""
    ours, its = os.openpty()
    text = "yes 'w 1 1.5: 1 x: 40 f (f)' | head -n 9999"
    for command in ([REPORT, "-M", "tlb", "--perf", PERF, "--", "x"],
                    ["sh", "-c", f"({text}; sleep 1.2; {text}) | {TOP}/tools/knc-draw flame"]):
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stderr=its,
                       env={**os.environ, "FAKE_PERF": '{"log": "log"}'})
    os.close(its)
    said = os.read(ours, 65536).decode()
    for line in ("knc-report: knc-metrics -r 1 -M tlb", "knc-metrics: run 1 of 3", "knc-metrics: run 3 of 3",
                 # A pair by line and one by function, twice each; the heat map, and the flame graph
                 "knc-report: 6 runs follow, 3 s if each takes 0.5 s as the last ones did",
                 "knc-report: perf record"):
        assert f"{line}\r\n" in said, said
    assert re.search(r"\n(\rknc-draw: [\d,]+ samples read)+\r {28,}\r$", said), said


def test_report_refused():
    """Bad calls and files are told apart, and nothing is written for them"""
    for file, why in (
            ({"$schema": "x"}, "no result of knc-metrics"), ([1], "no result of knc-metrics"),
            ({"command": 1, "runs": 1, "metrics": {"rps": 1}}, "no result of knc-metrics"),
            ({"command": "x", "runs": 1, "rows": [[1]]}, "no result of knc-metrics"),
            ({"command": ["x"], "interval": 0.1, "runs": [["CYCLES"]], "no_value": {},
              "rows": [{"run": 1, "metrics": {}}]}, "without -I, --per-core"),
            ("5,,cycles,1,100.00,,\n", "has no counts by CPU"),
            ("nothing of perf's\n", "none of the files that --help names")):
        Page(file=file).refused(why)
    for name in "ab":
        Path(name).write_text(json.dumps(METRICS))
    for words, status, why in (
            ("", 2, "which program"), ("a -- x", 2, "not both"), ("-p 1 -- x", 2, "not both"),
            ("-p 1 -t 0", 2, "above 0"), ("a b a", 1, "another file"),
            ("-o /no/x a", 2, "/no/x: cannot be written"), ("-o / a", 2, "/: cannot be written"),
            ("no", 1, "No such file"), (f"-M no --perf {PERF} -- x", 1, "no: no such metric")):
        Page(*words.split()).refused(why, status=status)


# What the flame graph and the heat map do
MEASURE = """<script>addEventListener("load", () => {
    const page = document.querySelector("iframe").contentDocument
    const box = page.querySelectorAll("#flame svg svg")[1], search = page.querySelector("input")
    page.querySelector("#card path").dispatchEvent(new MouseEvent("pointerover", { bubbles: true }))
    box.focus()
    const told = page.querySelector("#flame output").value
    box.dispatchEvent(new MouseEvent("click", { bubbles: true }))
    search.value = "main"
    search.dispatchEvent(new Event("input"))
    document.body.textContent = JSON.stringify({ told, zoomed: box.getAttribute("width"),
        cell: page.querySelector("#card output").value,
        found: page.querySelectorAll(".found").length,
        loaded: page.defaultView.performance.getEntriesByType("resource").length })
    })</script>"""


def test_report_browser(tmp_path):
    """Pictures have numbers for pointer and keyboard, the flame graph zooms and finds, and nothing
    is loaded"""
    page = html.escape(whole().html)
    Path("looked.html").write_text(f'<iframe srcdoc="{page}"></iframe>{MEASURE}')
    left = quietly("chromium-headless-shell", "--no-sandbox", "--disable-gpu", "--dump-dom",
                   "--disable-sync", "--disable-background-networking",
                   f"--user-data-dir={tmp_path}/profile", f"{tmp_path}/looked.html", timeout=300)
    found = json.loads(html.unescape(re.search("<body>(.*)</body>", left, re.S)[1]))
    assert re.match(r"\w.*: \d+ samples", found["told"]) and found["found"] > 0, found
    assert found["zoomed"] == "100%" and found["cell"].startswith("core 0, CPU 0, 1, 2, 3: 1,000; "), found
    assert found["loaded"] == 0, found
