#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compare the table of Documentation/emulator.rst with the emulator and the manual.

The table must have each event of Table 1-6, and the few others, once, with its
code. The events that it calls exact or modelled must be those that the emulator knows.
"""
import csv
import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def lines(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


def documented():
    """A list of (code, name, exact, modelled or not, text)"""
    rows = re.findall(r"^   \* - (0x\w+)\n     - (0x\w+)\n     - (\w+)\n"
                      r"     - (\w+)\n     -(.*)$",
                      lines("Documentation/emulator.rst"), re.M)
    return [(int(umask, 16) << 8 | int(event, 16), name, how, text.strip())
            for umask, event, name, how, text in rows]


def manual():
    events = set()
    for path in ("tests/data/knc_events.csv", "tests/data/knc_events_extra.csv"):
        for row in csv.DictReader(lines(path).splitlines()):
            events.add((int(row["umask"], 16) << 8 | int(row["event"], 16),
                        row["event" if "name" not in row else "name"]))
    return events


def emulated():
    found = re.findall(r"^    EVENT\((0x\w+), (\w+)\),$",
                       lines("emulator/target/i386/knc/events.c"), re.M)
    return {(int(code, 16), name) for code, name in found}


def main():
    table = documented()
    listed = {(code, name) for code, name, _, _ in table}
    counted = {(code, name) for code, name, how, _ in table if how != "not"}
    checks = (
        ("each event of the manual is in the documentation, once",
         listed == manual() and len(listed) == len(table),
         sorted(listed ^ manual())),
        ("what is said to count is what the emulator knows",
         counted == emulated() and counted, sorted(counted ^ emulated())),
        ("each event is exact, modelled or not, and what counts is explained",
         all(how in ("exact", "modelled", "not") and
             bool(text) == (how != "not") for _, _, how, text in table), ""),
    )
    for name, good, why in checks:
        print(f"ok events: {name}" if good else f"FAIL events: {name}: {why}")
    return not all(good for _, good, _ in checks)


if __name__ == "__main__":
    sys.exit(main())
