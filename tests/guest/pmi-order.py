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

# At least so many of each kind, or the test has not tested it
WANT = {
    "single, counter 0": 300,
    "single, counter 1": 300,
    "both at once": 500,
    "other counter during entry": 20,
}

LINE = re.compile(r"knc_pmu_(\w+)((?: \w+=\S+)*)")

# Counters overflow until they are stopped: that write is the last instruction they count.
HANDLED = "(?:read1 clear1 unmask get0 set0|read2 clear2 unmask get1 set1|" \
          "read3 clear3 unmask get0 set0 get1 set1) "
RUNNING = re.compile(rf"(?:over. )*(?:look )?(?:over. )*stop (?:over. )*{HANDLED}start ")
STOPPED = re.compile(rf"(?:over. )*(?:look )?{HANDLED}")


def word(kind, field):
    """What happens in a line of the trace; None: nothing of the PMU"""
    value = field.get("value", 0)
    if kind == "overflow":
        return f"over{field['counter']}"
    if kind == "rdpmc":
        return f"get{field['counter']}"
    if kind == "lvtpc":
        return "mask" if value & LVT_MASKED or value & LVT_MODE != LVT_NMI else "unmask"
    if kind in ("eoi", "gp", "lost"):
        return kind
    names = {("rdmsr", GLOBAL_STATUS): f"read{value}", ("rdmsr", GLOBAL_CTRL): "look",
             ("wrmsr", GLOBAL_OVF_CTRL): f"clear{value}",
             ("wrmsr", GLOBAL_CTRL): "start" if value else "stop",
             ("wrmsr", PERFCTR0): "set0", ("wrmsr", PERFCTR0 + 1): "set1"}
    other = "other" if kind in ("rdmsr", "wrmsr") else None
    return names.get((kind, field.get("msr")), other)


def read(path):
    """For each hardware thread, the words before its first PMI and after each of them"""
    cpus = {}
    with open(path, encoding="ascii", errors="replace") as trace:
        for kind, fields in (match.groups() for match in map(LINE.search, trace) if match):
            field = {key: int(value, 0) for key, value in
                     (pair.split("=", 1) for pair in fields.split())}
            parts = cpus.setdefault(field.get("cpu", 0), [""])
            if kind == "deliver":
                parts.append("")
                if field["mode"] != LVT_NMI >> 8:
                    parts[-1] = f"mode{field['mode']} "
            elif word(kind, field):
                parts[-1] += word(kind, field) + " "
    return cpus


def check(path):
    seen = dict.fromkeys([*WANT, "with the counters stopped"], 0)
    for cpu, (before, *pmis) in read(path).items():
        running = before.rfind("start ") > before.rfind("stop ")
        for pmi in pmis:
            match = (RUNNING if running else STOPPED).match(pmi)
            raised, late = set(re.findall("over(.)", before)), set()
            if match:
                late = set(re.findall("over(.)", match.group())) - raised
                status = int(re.search("read(.)", match.group()).group(1))
            if not match or "lost" in pmi or "gp" in pmi or \
                    {str(n) for n in (0, 1) if status >> n & 1} != raised | late:
                print(f"CPU {cpu}, running: {running}, after {before[-60:]}: {pmi[:200]}")
                return 1
            kind = "both at once" if status == 3 else f"single, counter {status - 1}"
            seen["other counter during entry" if late else kind] += 1
            seen["with the counters stopped"] += not running
            before = pmi[match.end():]
            running = pmi.rfind("start ") > pmi.rfind("stop ") if re.search("start |stop ", pmi) \
                else running
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
