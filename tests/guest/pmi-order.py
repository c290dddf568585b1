#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""pmi-order.py TRACE - is each interrupt handled in the manual's order?

TRACE is the emulator's trace of a run of the guest test pmi-order. For each PMI
that was delivered (327357-001, Figure 1-2):

  stop the counters       WRMSR GLOBAL_CTRL = 0
  read which overflowed   RDMSR GLOBAL_STATUS
  clear them              WRMSR GLOBAL_OVF_CTRL = what was read
  unmask the LVT entry    LVTPC, mask bit 0
  reset what overflowed   RDPMC n, WRMSR PERFCTR n, for each n
  no EOI                  the delivery is an NMI
  start the counters      WRMSR GLOBAL_CTRL

and nothing else on that hardware thread in between. A PMI that comes where the
kernel has stopped the counters anyway has neither the first nor the last. One that
comes beside the kernel's own write of GLOBAL_CTRL reads that register before all.

Prints what is wrong and exits 1, or prints how many of each kind it saw.
"""
import re
import sys

PERFCTR0 = 0x20
GLOBAL_STATUS = 0x2D
GLOBAL_OVF_CTRL = 0x2E
GLOBAL_CTRL = 0x2F

LVT_MASKED = 1 << 16
LVT_MODE = 7 << 8
LVT_NMI = 4 << 8

MARK_SINGLE, MARK_BOTH, MARK_OVERLAP, MARK_END = 0x51, 0x52, 0x53, 0x54

# At least so many of each kind, or the test has not tested it
WANT = {
    "single, counter 0": 300,
    "single, counter 1": 300,
    "both at once": 500,
    "other counter during entry": 20,
}

# What is accessed, in a line of the trace
ACCESSES = {"rdmsr": "msr", "wrmsr": "msr", "rdpmc": "counter", "lvtpc": None}

LINE = re.compile(r"knc_pmu_(\w+)((?: \w+=\S+)*)")


class Wrong(Exception):
    """A PMI that was not handled as it should be."""


def events(path):
    """Yield (line number, kind, fields) for each line of the trace."""
    with open(path, encoding="ascii", errors="replace") as trace:
        for number, line in enumerate(trace, 1):
            match = LINE.search(line)
            if not match:
                continue
            words = (word.split("=", 1) for word in match.group(2).split())
            yield number, match.group(1), {key: int(value, 0) for key, value in words}


def expected(status, running):
    """The accesses that a PMI with this status is made of."""
    steps = [("wrmsr", GLOBAL_CTRL, 0)] if running else []
    steps += [("rdmsr", GLOBAL_STATUS, status), ("wrmsr", GLOBAL_OVF_CTRL, status),
              ("lvtpc", None, None)]
    for counter in (0, 1):
        if status >> counter & 1:
            steps += [("rdpmc", counter, None), ("wrmsr", PERFCTR0 + counter, None)]
    if running:
        steps += [("wrmsr", GLOBAL_CTRL, None)]
    return steps


class Cpu:
    """One hardware thread: what it is doing with its PMU."""

    def __init__(self):
        self.ctrl = 0
        self.pmi = None
        self.raised_by = set()

    def deliver(self, number, fields):
        if self.pmi:
            raise Wrong(f"delivered again in the PMI of line {self.pmi['line']}")
        if str(fields.get("mode")).lower() not in ("nmi", "4", str(LVT_NMI)):
            raise Wrong(f"delivered in mode {fields.get('mode')}, not as an NMI")
        self.pmi = {"line": number, "running": self.ctrl != 0, "steps": [], "status": None,
                    "late": set(), "raised_by": self.raised_by, "looked": False}
        self.raised_by = set()

    def overflow(self, counter):
        if not self.pmi:
            self.raised_by.add(counter)
            return
        # The write that stops the counters is the last instruction they count.
        if len(self.pmi["steps"]) > 1 or (self.pmi["steps"] and not self.pmi["running"]):
            raise Wrong(f"counter {counter} overflowed with the counters stopped")
        self.pmi["late"].add(counter)

    def step(self, kind, what, value):
        """Take one access; return the PMI if this was its last."""
        if kind == "wrmsr" and what == GLOBAL_CTRL:
            self.ctrl = value
        pmi = self.pmi
        if not pmi:
            return None
        if kind == "rdmsr" and what == GLOBAL_STATUS:
            pmi["status"] = value
        index = len(pmi["steps"])
        # The PMI has come beside a write of GLOBAL_CTRL by the task: it looks once.
        if index == 0 and (kind, what) == ("rdmsr", GLOBAL_CTRL) and not pmi["looked"]:
            pmi["looked"] = True
            return None
        pmi["steps"].append((kind, what, value))
        want = expected(pmi["status"] or 0, pmi["running"])
        if index >= len(want):
            raise Wrong(f"an access more: {shown((kind, what, value))}")
        if want[index][:2] != (kind, what) or want[index][2] not in (None, value):
            raise Wrong(f"step {index + 1} is {shown((kind, what, value))}, "
                        f"not {shown(want[index])}")
        if kind == "lvtpc" and (value & LVT_MASKED or value & LVT_MODE != LVT_NMI):
            raise Wrong(f"LVTPC becomes {value:#x}")
        if pmi["status"] is None or index + 1 < len(want):
            return None
        if pmi["running"] and not value:
            raise Wrong("the counters were not started again")
        self.pmi = None
        return pmi


def shown(step):
    kind, what, value = step
    text = kind.upper()
    if what is not None:
        text += f" {what:#x}" if kind != "rdpmc" else f" {what}"
    if value is not None:
        text += f" = {value:#x}"
    return text


def classify(pmi, seen):
    """Count what kind of PMI it was."""
    together = pmi["raised_by"] | pmi["late"]
    if {n for n in (0, 1) if pmi["status"] >> n & 1} != together:
        raise Wrong(f"STATUS {pmi['status']:#x}, but overflowed have {sorted(together)}")
    if pmi["late"] - pmi["raised_by"]:
        seen["other counter during entry"] += 1
    elif pmi["status"] == 3:
        seen["both at once"] += 1
    else:
        seen[f"single, counter {pmi['status'] - 1}"] += 1
    if not pmi["running"]:
        seen["with the counters stopped"] += 1


def check(path):
    seen = dict.fromkeys(WANT, 0)
    seen["with the counters stopped"] = 0
    cpus = {}
    phase = None
    marks = []
    for number, kind, fields in events(path):
        cpu = cpus.setdefault(fields.get("cpu", 0), Cpu())
        try:
            done = None
            if kind == "mark":
                phase = fields["value"]
                marks.append(phase)
            elif kind == "lost":
                raise Wrong("an edge was lost")
            elif kind == "gp" and phase is not None:
                raise Wrong(f"#GP at MSR {fields.get('msr')}")
            elif kind == "deliver":
                cpu.deliver(number, fields)
            elif kind == "overflow":
                cpu.overflow(fields["counter"])
            elif kind == "eoi" and cpu.pmi:
                raise Wrong("an EOI in an NMI")
            elif kind in ACCESSES:
                done = cpu.step(kind, fields.get(ACCESSES[kind]), fields["value"])
            if done and phase is not None and phase != MARK_END:
                classify(done, seen)
        except Wrong as wrong:
            print(f"line {number}, CPU {fields.get('cpu')}: {wrong}")
            return 1
    # Other tests of the same boot may leave marks of their own.
    marks = [mark for mark in marks if MARK_SINGLE <= mark <= MARK_END]
    if marks != [MARK_SINGLE, MARK_BOTH, MARK_OVERLAP, MARK_END]:
        print(f"the trace has the marks {marks}")
        return 1
    for kind, least in WANT.items():
        if seen[kind] < least:
            print(f"only {seen[kind]} PMIs of the kind \"{kind}\", want {least}")
            return 1
    print(", ".join(f"{kind}: {number}" for kind, number in seen.items()))
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(check(sys.argv[1]))
