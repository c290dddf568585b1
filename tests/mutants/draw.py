# SPDX-License-Identifier: GPL-2.0-only
"""Faults that are drawn: each changes one place of the driver's code.

All places that can be changed are listed, and put into an order that the seed
decides; fault SEED/INDEX is the one at INDEX, for as long as the driver is the same.
What is built into the kernel, and what is for the kernel of the cards, is left out:
the unit tests do not have it.

equivalent.txt holds those that no test can notice, and the reason. They are told by
the text of the line before and after, so they stay when lines move:

    FILE FUNCTION
    -<the line>
    +<what it becomes>
    because TEXT
"""
import os
import random
import re

from faults import Fault, Wrong, functions
from lines import strip_comments

FILES = ("knc_config.c", "knc_pmu.c", "knc_pmi.c", "knc_user_regs.c", "spflt.c",
         "knc_module.c", "knc_perf_core.c", "knc_softmask.h", "knc_counter.h",
         "knc_pmu_msr.h", "compat/compat.h", "compat/rdpmc.h")

# What becomes what, by one operator
OPERATORS = (
    (r"==", "!="), (r"!=", "=="),
    (r"(?<= )<(?= )", "<="), (r"(?<= )<(?= )", ">="), (r"<=", "<"), (r"<=", ">"),
    (r"(?<= )>(?= )", ">="), (r"(?<= )>(?= )", "<="), (r">=", ">"), (r">=", "<"),
    (r"(?<= )\+(?= )", "-"), (r"(?<= )-(?= )", "+"), (r"\+=", "-="), (r"-=", "+="),
    (r"\+\+", "--"), (r"--", "++"), (r"<<", ">>"), (r">>", "<<"),
    (r"&&", "||"), (r"\|\|", "&&"),
    (r"(?<= )\|(?= |$)", "&"), (r"(?<= )&(?= )", "|"), (r"\|=", "&="), (r"&=", "|="),
    (r"~", ""), (r"!(?!=)", ""),
    (r"(?<![\w.])0(?![\w.])", "1"), (r"(?<![\w.])1(?![\w.])", "0"),
    (r"(?<![\w.])(?:0x[0-9a-f]+|\d+)(?![\w.])", lambda found: str(int(found.group(), 0) + 1)),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
)
DECLARATION = re.compile(
    r"(const|static|struct|union|unsigned|int|long|bool|enum|typeof|[us](8|16|32|64)|pid_t|"
    r"return|goto|case|default|BUILD_BUG_ON|DEFINE_\w+|DECLARE_\w+)\b")


class Drawn(Fault):
    """One of them"""

    def __init__(self, file, function, first, before, after, what):
        super().__init__(file, function)
        self.first, self.before, self.after, self.what = first, before, after, what
        self.title = ""

    def key(self):
        """What equivalent.txt tells it by."""
        return (self.file, self.function, squeeze(self.before), squeeze(self.after))

    def call(self, seed, index):
        """Of one length, so that objects can be compared"""
        self.name = f"r{index:05}"
        self.title = (f"{seed}/{index} {self.file}:{self.first + 1} {self.function}() "
                      f"{self.what}")

    def apply(self, text):
        lines = text.split("\n")
        lines[self.first:self.first + len(self.before)] = self.after
        return "\n".join(lines)

    def tell(self, kind, failed):
        """Printed at once: a boot takes its time."""
        super().tell(kind, failed)
        if self.is_noticed():
            print(f"killed {self.title}: {' '.join(self.noticed_by(kind)[:4])}", flush=True)

    def diff(self):
        return [f"    -{line.strip()}" for line in self.before] + [
            f"    +{line.strip()}" for line in self.after if line.strip()]


def squeeze(lines):
    """One line, with the comments and what it is indented with left out"""
    return " ".join(strip_comments("\n".join(lines)).split())


def closing(text, start):
    """Where the parenthesis ends that begins at @start, or -1"""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at
    return -1


def change_line(raw, code):
    """(the line, what) for each change within one line; @code has no strings."""
    if not re.match(r"\s*(BUILD_BUG_ON|case|static_assert)\b", code):
        for pattern, becomes in OPERATORS:
            for found in re.finditer(pattern, code):
                new = becomes(found) if callable(becomes) else becomes
                yield (raw[:found.start()] + new + raw[found.end():],
                       f"{found.group()} -> {new or 'nothing'}")
    found = re.match(r"\s*(?:} )?(?:else )?if \(", code)
    end = closing(code, found.end() - 1) if found else -1
    if end > 0:
        before, cond, rest = raw[:found.end()], raw[found.end():end], raw[end:]
        yield f"{before}1 || ({cond}){rest}", "condition true"
        yield f"{before}0 && ({cond}){rest}", "condition false"
        yield f"{before}!({cond}){rest}", "condition turned around"
    found = re.match(r"(\s*return )(.*);$", code)
    if found and found.group(2) != "0":
        value = raw[found.end(1):raw.rindex(";")]
        yield f"{found.group(1)}0;", "returns 0"
        yield f"{found.group(1)}!({value});", "returns the opposite"


def statements(code, first, end):
    """(the first line, the line after the last) of each statement to leave out"""
    at = first
    while at < end:
        line, before = code[at].strip(), [c for c in code[first:at] if c.strip()]
        begins = not before or before[-1].strip()[-1:] in tuple(";{}):") or \
            before[-1].strip() in ("else", "do")
        # A condition that goes on
        if before and before[-1].count("(") != before[-1].count(")"):
            begins = False
        last = at
        while last < end - 1 and not code[last].strip().endswith((";", "{", "}", ":")):
            last += 1
        text = " ".join(c.strip() for c in code[at:last + 1])
        if begins and re.match(r"[\w*(]", line) and text.endswith(";") and \
                not DECLARATION.match(line) and \
                not re.match(r"(if|for|while|switch|do|else)\b|\w+:$|for_each", line) and \
                text.count("(") == text.count(")"):
            yield at, last + 1
            at = last
        at += 1


def places(file, text):
    """Each change that can be made"""
    raw = text.split("\n")
    bare = strip_comments(text)
    # In strings nothing is changed.
    bare = re.sub(r'"(?:\\.|[^"\\\n])*"', lambda found: '"' + "_" * (len(found.group()) - 2) + '"',
                  bare)
    code = bare.split("\n")
    for name, first, end in functions(code):
        # The body
        first, end = code.index("{", first) + 1, end - 1
        for number in range(first, end):
            if not code[number].startswith("#") and code[number].strip():
                bare_line = code[number].rstrip()
                for new, what in change_line(raw[number][:len(bare_line)], bare_line):
                    yield Drawn(file, name, number, [raw[number]], [new], what)
        for at, after in statements(code, first, end):
            yield Drawn(file, name, at, raw[at:after],
                        [";"] + [""] * (after - at - 1), "left out")


def read_equivalent(path):
    """{key: reason}"""
    known = {}
    with open(path, encoding="utf-8") as f:
        for block in re.split(r"\n\s*\n", f.read()):
            lines = [line for line in block.split("\n") if line and not line.startswith("#")]
            if not lines:
                continue
            file, _, function = lines[0].partition(" ")
            why = " ".join(line.strip() for line in lines[1:] if line[0] not in "-+")
            if not why.startswith("because "):
                raise Wrong(f"equivalent.txt: no reason is given for {lines}")
            key = (file, function.strip(),
                   squeeze([line[1:] for line in lines if line[0] == "-"]),
                   squeeze([line[1:] for line in lines if line[0] == "+"]))
            known[key] = why[len("because "):]
    return known


def draw(top, seed):
    """All of them, in the order that @seed decides"""
    drawn = []
    for file in FILES:
        with open(os.path.join(top, file), encoding="utf-8") as f:
            drawn += places(file, f.read())
    random.Random(str(seed)).shuffle(drawn)
    for index, fault in enumerate(drawn):
        fault.call(seed, index)
    return drawn
