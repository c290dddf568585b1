# SPDX-License-Identifier: GPL-2.0-only
"""Which core each CPU of a card belongs to.

Imported by knc-draw and knc-metrics.
"""
import collections
import re


def read_topology(text):
    """{CPU: (core, thread)} from a card's /proc/cpuinfo, or from
    "grep . /sys/devices/system/cpu/cpu*/topology/core_id" there; empty if it has no core
    """
    cores = (re.findall(r"cpu(\d+)/topology/core_id:(\d+)$", text, re.M) or
             re.findall(r"^processor\s*: (\d+)\n(?:.+\n)*?core id\s*: (\d+)$", text, re.M))
    places, threads = {}, collections.Counter()
    for cpu, core in sorted((int(cpu), int(core)) for cpu, core in cores):
        places[cpu] = core, threads[core]
        threads[core] += 1
    return places
