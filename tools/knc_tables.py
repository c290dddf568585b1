# SPDX-License-Identifier: GPL-2.0-only
"""The events of knc_pmu_events.h and the metrics of knc_pmu_tables.ini, which are beside this
file, or in the directory above.

knc_tables.py perf DIR writes perf's own tables, as install-in-tree puts them into a kernel, and
"perfmon DIR" a list in the format of Intel's perfmon. With "-" for DIR all of it is printed.
"""
import knc_python

knc_python.check()

import configparser
import json
import os
import re
import sys

import knc_perf

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER, TABLES = "knc_pmu_events.h", "knc_pmu_tables.ini"
# How perf calls the CPU: family in decimal, model in hexadecimal
CPUID = "GenuineIntel-11-1"
# What perf, and Intel, call the tables
CODENAME, VERSION = "knightscorner", "1"

EVENT = re.compile(r'E\((\w+),\s*(0x\w\w),\s*(\w+),\s*(\w+),\s*"([^"]*)"\)')
UNIT = re.compile(r"#define KNC_UNIT_(\w+)\s+(0x\w\w)")
# An event in perf's words, in a metric: its name, or name and terms as pmu@...@
TERMS = re.compile(r"cpu@((?:[^@\\]|\\.)+)@")
WORD = re.compile(TERMS.pattern + r"|([A-Za-z_]\w*)")
DURATION, RUNNING = "duration_time", "running_time"
BAR = re.compile(r"\s*\|\s*")
# What is no event in an expression
NO_EVENT = {"d_ratio", DURATION, RUNNING}
# What a core has of an event, if not the sum of its threads
IN_CORE = "once", "core"


class Bad(knc_perf.Failed):
    """The files do not say what they should."""


def read(name):
    """One of the two files: of a checkout, or as installed."""
    for folder in (HERE, os.path.dirname(HERE)):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                return f.read()
    raise Bad(f"{name}: neither in {HERE} nor above it")


def macro_body(text, name):
    """The lines of a macro, joined to one."""
    body = re.search(rf"(?sm)^#define {name}\(\w\)(.*?[^\\])\n(?!\S*\\)", text)[1]
    return re.sub(r"\s*\\\n\s*", " ", body)


class Event:
    """A row of the list, and what the tables add to it."""

    def __init__(self, row, units):
        self.unit, self.code, self.name, self.sysfs, self.brief = row
        self.umask = units[self.unit]
        # Counter 0 alone has what the core-ring interface reports.
        self.counters = (0,) if self.unit == "CRI" else (0, 1)
        self.topic = None

    def terms(self):
        """For perf, where nothing knows the name."""
        return f"event={self.code},umask={self.umask}"


class Threshold:
    """A comparison, what is said where it holds, and who says so."""

    def __init__(self, line):
        self.text, self.meaning, self.source = BAR.split(line.strip())
        self.sign, limit = self.text.split()
        self.limit = float(limit)

    def holds(self, value):
        return value < self.limit if self.sign == "<" else value > self.limit


class Metric:
    def __init__(self, name, *, groups, expr, brief, source="the events' own definitions", limits="",
                 more="", of="", unit="", threshold="", advice="|"):
        self.name, self.groups, self.expr, self.brief = name, groups.split(";"), expr, brief
        self.source, self.more, self.of_thread, self.scale_unit = source, more, of == "thread", unit
        found = re.fullmatch(r"([0-9.]*(?:e-?[0-9]+)?)(.*)", unit)
        self.scale, self.unit = float(found[1] or 1), found[2]
        self.limits = limits or ("0 .. 100" if self.unit == "%" else "0 ..")
        least, most = self.limits.split("..")
        self.least, self.most = float(least), float(most or "inf")
        self.thresholds = [Threshold(line) for line in threshold.splitlines() if line.strip()]
        self.advice, self.advisor = BAR.split(advice)

    def events(self):
        """In the order in which they appear: (name, terms beside the event)."""
        words = [name or terms.replace("\\", "") for terms, name in WORD.findall(self.expr)]
        return [*dict.fromkeys(word.partition(",")[::2] for word in words if word not in NO_EVENT)]

    def words(self):
        """What there is to say of it, beside its name and formula"""
        yield f"{self.brief}{f' [{self.unit}]' if self.unit else ''}. {self.more}".rstrip()
        yield f"Source: {self.source}."
        for t in self.thresholds:
            yield f"Threshold: {t.text}: {t.meaning}. Source: {t.source}."
        if self.advice:
            yield f"What to do: {self.advice} Source: {self.advisor}."

    def is_sum(self):
        """Do the values of all parts of a program add up to its own? By time they do."""
        return "d_ratio" not in self.expr or self.expr.endswith(f", {DURATION})")


def fit(first, second):
    """Is there a counter for each of the two?"""
    return any(a != b for a in first.counters for b in second.counters)


def at_once(metric, events):
    """Can perf count all that the metric is made of at the same time?"""
    by_name = {event.name: event for event in events}
    found = [by_name[name] for name, _ in metric.events()]
    return RUNNING not in metric.expr and (len(found) == 1 or len(found) == 2 and fit(*found))


def one_line(text):
    return " ".join(text.split())


def read_events(macros=("KNC_EVENTS", "KNC_EVENTS_EXTRA")):
    header = read(HEADER)
    units = dict(UNIT.findall(header))
    return [Event(row, units) for macro in macros
            for row in EVENT.findall(macro_body(header, macro))]


def read_tables(text):
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str
    parser.read_string(text, TABLES)
    return {section: {key: value if key == "threshold" or section.startswith("topic ") else
                      one_line(value) for key, value in parser[section].items()}
            for section in parser.sections()}


def describe(events, tables):
    """Give the events their topics, periods and descriptions."""
    by_name = {event.name: event for event in events}
    for section, entry in tables.items():
        kind, _, topic = section.partition(" ")
        for name, text in entry.items() if kind == "topic" else ():
            event = by_name.get(name)
            if not event:
                raise Bad(f"{TABLES}: {name} is not in {HEADER}")
            words, _, more = text.partition("\n")
            event.period, *words = words.split()
            event.topic, event.more = topic, one_line(more)
            event.emulated = "no-model" not in words
            event.in_core = next((word for word in words if word in IN_CORE), "sum")
    for event in events:
        if not event.topic:
            raise Bad(f"{TABLES}: nothing about {event.name}")


def load():
    events, tables = read_events(), read_tables(read(TABLES))
    describe(events, tables)
    return events, [Metric(section.split(" ", 1)[1], **entry)
                    for section, entry in tables.items() if section.startswith("metric ")]


def sentences(*texts):
    return " ".join(text.rstrip(".") + "." for text in texts if text)


def perf_event(event):
    return {"BriefDescription": event.brief, "Counter": ",".join(map(str, event.counters)),
            "EventCode": event.code, "EventName": event.name,
            "SampleAfterValue": event.period, "UMask": event.umask,
            "PublicDescription": event.more and sentences(event.brief, event.more)}


def perf_metric(metric):
    # Newer perf marks such a value, before it applies the scale; 6.1 does not read it.
    limits = [f"{metric.name} {t.sign} {t.limit / metric.scale:g}" for t in metric.thresholds[:1]]
    return {"BriefDescription": metric.brief, "MetricExpr": metric.expr,
            "MetricGroup": ";".join(metric.groups), "MetricName": metric.name,
            "PublicDescription": metric.more and sentences(metric.brief, metric.more),
            "ScaleUnit": metric.scale_unit, "MetricThreshold": "".join(limits)}


def as_json(entries):
    """Entries without what they have not"""
    return json.dumps([{key: value for key, value in entry.items() if value} for entry in entries],
                      indent=4, sort_keys=True) + "\n"


def perf_files():
    """perf's own tables: {file: text}. Metrics that take several runs are left out: perf would let
    their events take turns, and compute with 0 where one had none. It has no running time."""
    events, metrics = load()
    metrics = [metric for metric in metrics if at_once(metric, events)]
    topics = {}
    for event in sorted(events, key=lambda event: event.name):
        topics.setdefault(event.topic, []).append(perf_event(event))
    files = {f"{topic}.json": as_json(entries) for topic, entries in topics.items()}
    files["knc-metrics.json"] = as_json(
        [perf_metric(m) for m in sorted(metrics, key=lambda m: m.name)])
    return files


def mapfile_line(filename=CODENAME):
    """For the mapfile of perf, or of Intel's lists."""
    return f"{CPUID},v{VERSION},{filename},core"


# What Intel's lists have and this PMU has not, with the value that says so
PERFMON_NONE = {**dict.fromkeys(("MSRIndex", "MSRValue", "TakenAlone", "CounterMask", "Invert",
                                 "AnyThread", "EdgeDetect", "PEBS"), "0"),
                "Errata": "null", "Offcore": "0"}


def perfmon_files():
    """Lists in the format of Intel's perfmon: {file: text}."""
    entries = [{**perf_event(event), "PublicDescription": sentences(event.brief, event.more),
                **PERFMON_NONE} for event in load()[0]]
    name = f"{CODENAME}_core_v{VERSION}"
    # One row for each model: of two, pmu-tools keeps the last one's file.
    mapping = ["Family-model,Version,Filename,EventType", mapfile_line(f"/KNC/{name}.json")]
    return {f"KNC/{name}.json": json.dumps(entries, indent=2) + "\n",
            "mapfile.csv": "\n".join(mapping) + "\n",
            # pmu-tools fetch these two as well.
            "README.md": "Events of Knights Corner, in the form of Intel's lists\n",
            "LICENSE": "GPL-2.0-only\n"}


def main(kind="", folder="", *more):
    kinds = {"perf": perf_files, "perfmon": perfmon_files}
    if kind not in kinds or not folder or more:
        raise Bad('usage: knc_tables.py perf|perfmon DIR; "-" for DIR prints')
    for name, text in kinds[kind]().items():
        path = os.path.join(folder, name)
        if folder == "-":
            print(f"==> {name} <==\n{text}", end="")
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    knc_perf.run("knc_tables", main, *sys.argv[1:])
