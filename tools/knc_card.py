# SPDX-License-Identifier: GPL-2.0-only
"""What a card's /proc/cpuinfo says: which core each CPU belongs to, and whether the card is
emulated. Events that the emulated card has no model of read 0 there, which is no count. "knc-host
stat" runs this file on the output of a card's perf stat -x,: knc_card.py CPUINFO <CSV
"""
import knc_python

knc_python.check()

import collections
import re
import sys

import knc_perf
import knc_tables

WHY = "not modelled"
THREADS_PER_CORE = 4


def processor(cpuinfo):
    """Of its first CPU: {key: value}"""
    lines = cpuinfo.strip().split("\n\n", 1)[0].splitlines()
    return {key.strip(): value.strip() for key, _, value in
            (line.partition(":") for line in lines)}


def is_card(cpuinfo):
    return {"vendor_id": "GenuineIntel", "cpu family": "11", "model": "1"}.items() <= \
        processor(cpuinfo).items()


def is_emulated(cpuinfo):
    return processor(cpuinfo).get("model name", "").endswith("(emulated)")


def read_topology(text):
    """{CPU: (core, thread)} from a card's /proc/cpuinfo; empty if it does not say so. CPUs that are
    offline are not in it. An APIC id says which of the core's threads a CPU is; without one they
    are in their order, if no core lacks any.
    """
    cpus = []
    for block in re.split(r"^(?=processor\t)", text, flags=re.M):
        of = processor(block)
        if {"processor", "core id"} <= {*of}:
            cpus.append((int(of["processor"]), int(of["core id"]), of.get("apicid", "")))
    places, threads = {}, collections.Counter()
    for cpu, core, apicid in sorted(cpus):
        places[cpu] = core, int(apicid) % THREADS_PER_CORE if apicid else threads[core]
        threads[core] += 1
    lacks = len({*threads.values()}) > 1 and not all(apicid for _, _, apicid in cpus)
    return {} if lacks or len({*places.values()}) < len(places) else places


class Models:
    """Of a card with this /proc/cpuinfo, and of the events of perf's -e, if these are known"""

    def __init__(self, cpuinfo, events=""):
        known, metrics = knc_tables.load() if is_emulated(cpuinfo) else ((), ())
        lacking, self.own = [event for event in known if not event.emulated], set()
        self.names = {event.name for event in lacking}
        self.codes = {int(event.umask, 16) << 8 | int(event.code, 16) for event in lacking}
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


def main():
    with open(sys.argv[1], encoding="utf-8", errors="replace") as f:
        models = Models(f.read())
    for line in sys.stdin:
        for record in knc_perf.read([line]):
            event = record.event.partition(" ")[0]
            if not models.has(event):
                line = re.sub(rf"[\d.]+(,[^,]*,{re.escape(event)},)", rf"<{WHY}>\1", line)
            if not models.has(record.metric):
                line = re.sub(r"[^,]*(,[^,]*)$", r"nan\1", line)
        sys.stdout.write(line)


if __name__ == "__main__":
    main()
