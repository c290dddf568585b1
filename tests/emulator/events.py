#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compare the table of Documentation/emulator.rst with the emulator and the manual.

The document must have each event of Table 1-6, and the few others, once. The events that
it calls exact or modelled must be those that the emulator knows, with the manual's code.
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
    """A list of (name, exact, modelled or not, text)"""
    text = lines("Documentation/emulator.rst")
    rows = re.findall(r"^([A-Z0-9_]+) +(exact|modelled)(?: +(.*))?$", text, re.M)
    never = re.search(r"^Never counted: ([^.]*)\.$", text, re.M)
    return rows + [(name, "not", "") for name in re.split(r",\s+", never[1])]


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
    known, modelled = manual(), emulated()
    listed = sorted(name for name, _, _ in table)
    wanted = sorted(name for _, name in known)
    counted = {(code, name) for code, name in known
               if any(row[0] == name and row[1] != "not" for row in table)}
    checks = (
        ("each event of the manual is in the documentation, once",
         listed == wanted, sorted(set(listed) ^ set(wanted)) or listed),
        ("what is said to count is what the emulator knows",
         counted == modelled and counted, sorted(counted ^ modelled)),
        ("each event is exact, modelled or not, and what counts is explained",
         all(text for _, how, text in table if how != "not"), ""),
    )
    for name, good, why in checks:
        print(f"ok events: {name}" if good else f"FAIL events: {name}: {why}")
    return not all(good for _, good, _ in checks)


if __name__ == "__main__":
    sys.exit(main())
