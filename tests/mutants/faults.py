# SPDX-License-Identifier: GPL-2.0-only
"""Faults that are written (faults.txt): read, and each put into the file that it is for.

"#" begins a comment. A line "in FILE FUNCTION" says where the faults below it are, "in FILE"
that they may be anywhere in the file. A fault is

    fault NAME: TEXT            what no longer holds
    unit CASE...                KUnit cases that must notice it: "suite.case", or a pattern
    guest TEST...               the same for tests of the module in the guest
    beside TEST...              run with these, and need not notice
    builtin TEST...             and of the driver that is built in
    uos TEST...                 and of the module on the kernel of the cards
    proof OBLIGATION...         and of "make prove", which tries these itself
    -<a line of the file>
    +<what it becomes>
     <a line that stays>

The lines without "+" must be in the file exactly once, one after the other. TEXT goes on in lines
that begin with a tab. "boot" among the tests of the guest is what is looked at when all is over:
the kernel's log, and the balance of interrupts.
"""
import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Fault:
    """One line of the driver, or some, that are not what they should be."""
    file: str
    function: str
    name: str
    breaks: str
    before: str = ""
    after: str = ""
    # By kind, and those "beside"
    tests: dict = field(default_factory=dict)

    def apply(self, text):
        """The text of the driver's file with the fault in it."""
        # A function may be there for each #if.
        places = [found.start() + at.start() for found in re.finditer(
                      rf"^(?:\w[^\n;]*\b)?{self.function}\(.*?^}}$" if self.function else ".*",
                      text, re.M | re.S)
                  for at in re.finditer(f"^{re.escape(self.before)}", found[0] + "\n", re.M)]
        if len(places) != 1 or not self.before:
            raise ValueError(f"{self.name}: its lines are in {self.file} {self.function} "
                             f"{len(places)} times")
        return text[:places[0]] + self.after + text[places[0] + len(self.before):]


def read_faults():
    """All that faults.txt has, in its order"""
    faults, file, function = {}, "", ""
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word == "in":
            file, _, function = rest.partition(" ")
        elif word == "fault":
            name, _, breaks = rest.partition(": ")
            assert name not in faults, f"there are two faults called {name}"
            fault = faults[name] = Fault(file, function, name, breaks)
        elif line[:1] == "\t":
            fault.breaks += f" {line.strip()}"
        elif line[:1] in ("-", "+", " "):
            fault.before += f"{line[1:]}\n" * (line[0] != "+")
            fault.after += f"{line[1:]}\n" * (line[0] != "-")
        elif word in ("unit", "guest", "beside", "builtin", "uos", "proof"):
            fault.tests[word] = rest.split()
        elif line[:1] not in ("", "#"):
            raise ValueError(f"faults.txt: \"{word}\" is none of the words of a fault")
    return [*faults.values()]
