# SPDX-License-Identifier: GPL-2.0-only
"""Faults that are written (faults.txt): read, and each put into the file that it is for.

Faults are separated by blank lines, "#" begins a comment. A line "in FILE FUNCTION" says
where the faults below it are, "in FILE" that they may be anywhere in the file. A fault is

    fault NAME: TEXT            what no longer holds
    unit CASE...                KUnit cases that must notice: "suite.case", or
                                with "*" at the end all that begin like it
    guest TEST...               the same for tests of the module in the guest
    beside TEST...              run with these, and need not notice
    builtin TEST...             and of the driver that is built in
    uos TEST...                 and of the module on the kernel of the cards, a boot
                                for each; skipped where there is no such kernel
    proof OBLIGATION...         and of "make prove", which tries these itself
    -<a line of the file>
    +<what it becomes>
     <a line that stays>

A fault without tests is one that any unit test may notice.

The lines without "+" must be in the file exactly once, one after the other; what
they are indented with does not matter, nor do comments and blank lines. TEXT goes
on in lines that begin with a tab. "boot" among the tests of the guest is what is
looked at when all is over: the kernel's log, and the balance of interrupts.
"""
import collections
import fnmatch
import re

from lines import strip_comments

KINDS = ("unit", "guest", "builtin", "uos")
FUNCTION = re.compile(r"^(?=[A-Za-z_]).*?\b(\w+)\(")


def functions(lines):
    """(name, first line, the line after the last) of each function that is defined"""
    name, first = "", 0
    for number, line in enumerate(lines):
        found = FUNCTION.match(line)
        if found and not line.endswith(";"):
            name, first = found.group(1), number
        elif line == "}":
            yield name, first, number + 1


class Wrong(Exception):
    """A fault that cannot be used, or does not match the driver."""


class Fault:
    """One line of the driver, or some, that are not what they should be."""

    def __init__(self, file, function, where="", name="", breaks=""):
        self.file, self.function, self.where, self.name = file, function, where, name
        self.breaks = breaks
        self.unit, self.guest, self.builtin, self.uos, self.proof = [], [], [], [], []
        self.before, self.after, self.beside = [], [], []
        # By kind, the tests that failed with it, or None if the guest died
        self.failed = {}
        # Why it could not be tried
        self.broken = ""

    def check(self):
        """Does it say all that a fault must say?"""
        if not re.fullmatch(r"[a-z0-9-]{1,44}", self.name):
            raise Wrong(f"{self.where}: \"{self.name}\" is no name")
        if not self.before:
            raise Wrong(f"{self.where}: {self.name} has no line of the driver")
        if not self.breaks:
            raise Wrong(f"{self.where}: {self.name} does not say what it breaks")
        if not any(getattr(self, kind) for kind in (*KINDS, "proof")):
            self.unit = ["*"]

    def tests(self, kind):
        """What runs in the guest; "boot" is always looked at."""
        return [*self.beside, *(name for name in getattr(self, kind) if name != "boot")]

    def tell(self, kind, failed):
        self.failed[kind] = failed

    def noticed_by(self, kind):
        failed = self.failed[kind]
        return ["a crash"] if failed is None else sorted(failed)

    def missed(self):
        """The tests that should have noticed, and have not"""
        if not self.failed:
            return ["everything"]
        return [f"{kind} {pattern}" for kind, failed in self.failed.items()
                for pattern in getattr(self, kind)
                if failed is not None and not fnmatch.filter(failed, pattern)]

    def apply(self, text):
        """The text of the driver's file with the fault in it."""
        lines, bare = text.split("\n"), strip_comments(text).split("\n")
        before = [line.strip() for line in strip_comments("\n".join(self.before)).split("\n")
                  if line.strip()]
        places = []
        for first, end in self.ranges(lines):
            code = [at for at in range(first, end) if bare[at].strip()]
            for at in range(len(code) - len(before) + 1):
                found = code[at:at + len(before)]
                if [bare[number].strip() for number in found] == before:
                    places.append((found[0], found[-1] + 1))
        if len(places) != 1:
            raise Wrong(f"{self.where}: {self.name}: its lines are in {self.file} "
                        f"{len(places)} times")
        first, end = places[0]
        return "\n".join(lines[:first] + self.after + lines[end:])

    def ranges(self, lines):
        """Where to look: (first, end) of the function, or of each that #if knows."""
        if not self.function:
            return [(0, len(lines))]
        found = [(first, end) for name, first, end in functions(lines) if name == self.function]
        if not found:
            raise Wrong(f"{self.where}: {self.name}: {self.file} has no function "
                        f"{self.function}()")
        return found


def read_faults(path):
    """All that the file has, in its order"""
    faults, fault, field, file, function = [], None, "", "", ""
    for number, line in enumerate(path.read_text().split("\n"), 1):
        where = f"{path.name}:{number}"
        if line.startswith("#") or (not line.strip() and not line.startswith(("-", "+"))):
            field = ""
            continue
        if line.startswith("\t") and field:
            setattr(fault, field, f"{getattr(fault, field)} {line.strip()}")
            continue
        word, _, rest = line.partition(" ")
        field = ""
        if word == "fault":
            name, _, breaks = rest.partition(": ")
            fault = Fault(file, function, where, name, breaks.strip())
            faults.append(fault)
            field = "breaks"
        elif word == "in":
            file, _, function = rest.strip().partition(" ")
        elif not fault:
            raise Wrong(f"{where}: no fault begins here")
        elif line[0] in "-+ ":
            fault.before += [line[1:]] * (line[0] != "+")
            fault.after += [line[1:]] * (line[0] != "-")
        elif word in (*KINDS, "proof", "beside"):
            getattr(fault, word).extend(rest.split())
        else:
            raise Wrong(f"{where}: \"{word}\" is none of the words of a fault")
    names = collections.Counter(fault.name for fault in faults)
    for fault in faults:
        fault.check()
        if names[fault.name] > 1:
            raise Wrong(f"{fault.where}: there are two faults called {fault.name}")
    return faults
