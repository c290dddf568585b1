# SPDX-License-Identifier: GPL-2.0-only
"""Events that the emulated card has no model of. They read 0 there, which is no count.

Imported by knc-metrics, knc-draw and knc_watch. "knc-host stat" runs it on what perf stat -x,
has printed on a card with this /proc/cpuinfo: knc_models.py CPUINFO <CSV
"""
import re
import sys

import knc_perf
import knc_tables

WHY = "not modelled"


def is_emulated(cpuinfo):
    """Is it the emulated card's? Its CPUID says so."""
    return bool(re.search(r"^model name\s*:.*\(emulated\)$", cpuinfo, re.M))


class Models:
    """Of a card with this /proc/cpuinfo, and of the events of perf's -e, if these are known"""

    def __init__(self, cpuinfo, events=""):
        self.names, self.codes, self.own = set(), set(), set()
        known, metrics = knc_tables.load() if is_emulated(cpuinfo) else ((), ())
        for event in known:
            if not event.emulated:
                self.names.add(event.name)
                self.codes.add(int(event.umask, 16) << 8 | int(event.code, 16))
        self.names |= {metric.name.upper() for metric in metrics
                       if self.names & {name for name, _ in metric.events()}}
        # In perf's report they have the names that their terms give them.
        for text in re.findall(r"\w+/([^/]*)/", events):
            name = re.search(r"\bname=(\w+)", text)
            if name and not self.has(text):
                self.own.add(name[1])

    def has(self, event):
        """Is there a model of this event, or metric? As perf has it: NAME, rXXXX, or terms"""
        if not self.names:
            return True
        event = re.sub(r"(?<!:):\w*$", "", event)
        raw = re.fullmatch(r"r([0-9a-f]+)", event, re.I)
        terms = {key: int(value, 0) for key, value in
                 re.findall(r"\b(event|umask|config)=(0x[0-9a-f]+|\d+)", event, re.I)}
        code = int(raw[1], 16) if raw else \
            terms.get("config", 0) | terms.get("umask", 0) << 8 | terms.get("event", 0)
        return not ((raw or terms) and code & 0xffff in self.codes or event in self.own or
                    self.names & {*re.findall(r"\w+", event.upper())})

    def record(self, record):
        """Of perf's report, without a count that is none"""
        return record if self.has(record.event) else record._replace(value=None, why=WHY)


def main():
    with open(sys.argv[1], encoding="utf-8", errors="replace") as f:
        models = Models(f.read())
    for line in sys.stdin:
        for record in knc_perf.read([line]):
            if not models.has(record.event):
                line = re.sub(rf"[\d.]+(,[^,]*,{re.escape(record.event)},)", rf"<{WHY}>\1", line)
            if not models.has(record.metric):
                line = re.sub(r"[^,]*(,[^,]*)$", r"nan\1", line)
        sys.stdout.write(line)


if __name__ == "__main__":
    main()
