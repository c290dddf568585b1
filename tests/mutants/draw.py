# SPDX-License-Identifier: GPL-2.0-only
"""Faults that are drawn: each changes one place of the driver's code.

All places that can be changed are listed, and put into an order that the seed
decides; fault SEED/INDEX is the one at INDEX, for as long as the driver is the same.
What is built into the kernel, what is for the kernel of the cards, and the table of events,
which tests/tools compares with the manual's, is left out: the unit tests do not have it.

equivalent.txt holds those that no test can notice: a line for each, as "survived" prints
it, below the reason that they share. It has no number, so it stays when lines move.
"""
import os
import random
import re

from faults import Fault, functions
from lines import strip_comments

FILES = ("knc_config.c", "knc_pmu.c", "knc_pmi.c", "knc_user_regs.c", "spflt.c",
         "knc_module.c", "knc_sched.c", "knc_register.c", "knc_softmask.h", "knc_counter.h",
         "knc_pmu_msr.h", "compat/compat.h")

# What becomes what, by one operator
CONSTANTS = (
    (r"\b1\b", "0"), (r"\b(?:0x[0-9a-f]+|\d+)\b", lambda found: str(int(found.group(), 0) + 1)),
    (r"<<", ">>"), (r">>", "<<"),
)
OPERATORS = CONSTANTS + (
    (r"==", "!="), (r"!=", "=="),
    (r"(?<= )<(?= )", "<="), (r"(?<= )<(?= )", ">="), (r"<=", "<"), (r"<=", ">"),
    (r"(?<= )>(?= )", ">="), (r"(?<= )>(?= )", "<="), (r">=", ">"), (r">=", "<"),
    (r"(?<= )\+(?= )", "-"), (r"(?<= )-(?= )", "+"), (r"\+=", "-="), (r"-=", "+="),
    (r"\+\+", "--"), (r"--", "++"), (r"&&", "||"), (r"\|\|", "&&"),
    (r"(?<= )\|(?= |$)", "&"), (r"(?<= )&(?= )", "|"), (r"\|=", "&="), (r"&=", "|="),
    (r"\bmin(?=_t\(|\()", "max"), (r"[-+|&]=", "="),
    (r"~", ""), (r"!(?!=)", ""), (r"(?<=[( ])-(?=\w)", ""),
    (r"\b(?!NULL\b|_)[A-Z][A-Z0-9_]{3,}\b(?!\()", r"(\g<0> - 1)"),
    (r"(?<=[(\[])idx\b", "0"), (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
)
# An operand becomes what leaves the other one alone, a condition what decides it.
OPERANDS = {"&&": "1", "||": "0", "|": "0", "&": "-1", "+": "0", "-": "0"}
BINDS = {"?": 1, "||": 2, "&&": 3, "|": 4, "&": 5, "+": 7, "-": 7,
         **dict.fromkeys(("==", "!=", "<", ">", "<=", ">="), 6)}
TOKEN = re.compile(r"\|\||&&|[-+*/%&|^=!<>]=|<<=?|>>=?|->|\+\+|--|\w+|[^\s\w\\]")
DECLARATION = re.compile(
    r"(const|static|struct|union|unsigned|int|long|bool|enum|typeof|[us](8|16|32|64)|pid_t|"
    r"return|goto|break|continue|pr_\w+|BUILD_BUG_ON|DEFINE_\w+|DECLARE_\w+)\b")
LABEL = re.compile(r"(?:case\b[^:]*|default|\w+) ?:(?!:)\s*")
# What is seen by an NMI or another driver: two of these are swapped.
ORDERED = re.compile(
    r"knc_(read|write|clear|mask|unmask|run|set|fill|account|event|pmi|pmu|spflt_update)_?|"
    r"WRITE_ONCE|local64_set|(un)?register_nmi|on_each_cpu")
HEAD = re.compile(r"(?:if|for|while|switch|\w*for_each\w*) ?\(")


class Drawn(Fault):
    """One of them"""

    def __init__(self, file, function, first, before, after, what):
        super().__init__(file, function)
        self.first, self.before, self.after, self.what = first, before, after, what
        self.title = ""

    def key(self):
        """What equivalent.txt tells it by."""
        return f"{self.file} {self.function}() {self.what}: {squeeze(self.before)}"

    def call(self, seed, index):
        """Of one length, so that objects can be compared"""
        self.name = f"r{index:05}"
        self.title = f"{seed}/{index} {self.key()}"

    def apply(self, text):
        lines = text.split("\n")
        lines[self.first:self.first + len(self.before)] = self.after
        return "\n".join(lines)

    def tell(self, kind, failed):
        """Printed at once: a boot takes its time."""
        super().tell(kind, failed)
        if self.is_noticed():
            print(f"killed {self.title}: {' '.join(self.noticed_by(kind)[:4])}", flush=True)


def squeeze(lines):
    """One line, with the comments and what it is indented with left out"""
    return " ".join(strip_comments("\n".join(lines)).split())


def closing(text, start):
    """Behind the parenthesis that ends what begins at @start"""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at + 1
    return len(text)


def skip(code, at):
    """Where something is again"""
    return re.compile(r"\s*").match(code, at).end()


def statement(code, at, blocks):
    """(first, end) of the one at @at; @blocks gets lists of those that stand side by side."""
    at = skip(code, at)
    while (found := LABEL.match(code, at)) and not code.startswith("::", found.end() - 1):
        at = found.end()
    if code[at] == "{":
        inside, end = [], skip(code, at + 1)
        blocks.append(inside)
        while code[end] != "}":
            inside.append(statement(code, end, blocks))
            end = skip(code, inside[-1][1])
        return at, end + 1
    if found := HEAD.match(code, at):
        _, end = body(code, closing(code, found.end() - 1), blocks)
        after = skip(code, end)
        if found.group().startswith("if") and re.match(r"else\b", code[after:]):
            _, end = body(code, after + len("else"), blocks)
        return at, end
    if re.match(r"do\b", code[at:]):
        _, end = body(code, at + len("do"), blocks)
    else:
        end = at
    while code[end] != ";":
        end = closing(code, end) if code[end] == "(" else end + 1
    return at, end + 1


def body(code, at, blocks):
    """The same, of a condition or a loop"""
    found = statement(code, at, blocks)
    if code[found[0]] != "{":
        blocks.append([found])
    return found


def operands(code, first, end):
    """(the left one, the operator, the right one) as (first, end) each"""
    tokens = [(found.start() + first, found.group()) for found in TOKEN.finditer(code[first:end])]

    def far(at, step, binds):
        """To the last token of the operand that begins at @at"""
        depth = 0
        while 0 <= at < len(tokens):
            token = tokens[at][1]
            depth += step * ((token in "([") - (token in ")]"))
            if depth < 0 or not depth and (
                    token in ",;{}=:" or re.fullmatch(r"return|[-+|&]=", token) or
                    BINDS.get(token, 9) <= binds and is_binary(at)):
                break
            at += step
        return at - step

    def is_binary(at):
        return at and re.fullmatch(r"(?!return$)\w+|[])]", tokens[at - 1][1]) and \
            code[tokens[at][0] - 1].isspace()

    def span(a, b):
        return tokens[a][0], tokens[b][0] + len(tokens[b][1])

    for at, (_, token) in enumerate(tokens):
        if (token in OPERANDS or token == "?") and is_binary(at):
            yield (span(far(at - 1, -1, BINDS[token]), at - 1), token,
                   span(at + 1, far(at + 1, 1, BINDS[token])))


def by_operators(code, first, end, operators):
    """Changes are (first, end, the new text, what)."""
    for pattern, becomes in operators:
        for found in re.compile(pattern).finditer(code, first, end):
            line = code[code.rfind("\n", 0, found.start()) + 1:found.start()]
            if not re.match(r"#(?!define)|\s*(BUILD_BUG_ON|static_assert)\b", line):
                new = becomes(found) if callable(becomes) else found.expand(becomes)
                yield found.start(), found.end(), new, f"{found.group()} -> {new or 'nothing'}"


def by_operands(raw, code, first, end):
    for left, token, right in operands(code, first, end):
        if token == "?":
            for value in "10":
                yield *left, value, f"? of {value}"
            continue
        for a, b in (left, right) if token != "-" else (right,):
            yield a, b, OPERANDS[token], f"without {squeeze([raw[a:b]])}"
        if token == "-":
            yield (left[0], right[1], f"{raw[slice(*right)]} - ({raw[slice(*left)]})",
                   "- turned around")


def by_statement(raw, code, at, end):
    """Changes of one statement"""
    text = code[at:end]
    if found := re.match(r"if \(", text):
        a, b = at + found.end(), closing(code, at + found.end() - 1) - 1
        cond = raw[a:b]
        yield a, b, f"1 || ({cond})", "condition true"
        yield a, b, f"0 && ({cond})", "condition false"
        if not re.fullmatch(r"!?[^!&|<>=]*|[^&|<>=]* [!<>=]= [^&|<>=]*", code[a:b]):
            yield a, b, f"!({cond})", "condition turned around"
    if HEAD.match(text) or text[0] == "{" or re.match(r"do\b", text):
        return
    if found := re.match(r"return (?!0;)", text):
        yield at + found.end(), end - 1, "0", "returns 0"
        yield at + found.end(), end - 1, f"!({raw[at + found.end():end - 1]})", \
            "returns the opposite"
    if (found := re.match(r"[\w .>[\]-]+ = (?!\{|NULL;|0;)", text)):
        yield at + found.end(), end - 1, "0", "becomes 0"
    if not DECLARATION.match(text) and text != ";":
        yield at, end, ";", "left out"


def changes(raw, code, first, end):
    """All of a function's body"""
    yield from by_operators(code, first, end, OPERATORS)
    yield from by_operands(raw, code, first, end)
    blocks = []
    statement(code, first, blocks)
    for block in blocks:
        for one in block:
            yield from by_statement(raw, code, *one)
        for (a, b), (c, d) in [*zip(block, block[1:]), *zip(block, block[2:])]:
            if ORDERED.search(code[a:b]) and ORDERED.search(code[c:d]) and \
                    not DECLARATION.match(code[a:b]) and not DECLARATION.match(code[c:d]):
                yield a, d, raw[c:d] + raw[b:c] + raw[a:b], "swapped"


def by_tables(raw, code, first, end):
    """Changes of macros, and of rows of tables"""
    for found in re.compile(r"^#define (?:.*\\\n)*.*", re.M).finditer(code, first, end):
        yield from by_operators(code, *found.span(), CONSTANTS)
        yield from by_operands(raw, code, *found.span())
    for found in re.compile(r"^\t?[A-Z][A-Z_]*(?=\()", re.M).finditer(code, first, end):
        after = closing(code, found.end())
        if not code.startswith(";", after):
            lines = code.count("\n", found.start(), after)
            yield found.start(), after, "\\\n" * lines, "row left out"


def places(file, text):
    """A fault for each change that can be made"""
    # In strings and comments nothing is changed, nor in what #if asks.
    bare = re.sub(r'"(?:\\.|[^"\\\n])*"', lambda found: '"' + "_" * (len(found.group()) - 2) + '"',
                  strip_comments(text))
    bare = re.sub(r"^#(?!define).*", lambda found: " " * len(found.group()), bare, flags=re.M)
    lines, done = text.split("\n"), set()

    def drawn(name, made):
        for at, end, new, what in made:
            first, last = text.count("\n", 0, at), text.count("\n", 0, end)
            was = "\n".join(lines[first:last + 1])
            start = text.rfind("\n", 0, at) + 1
            now = was[:at - start] + new + was[end - start:]
            if (first, squeeze([now])) not in done:
                # The same may be at two places of a function.
                while (name, what, squeeze([was])) in done:
                    what += " again"
                done.update([(first, squeeze([now])), (name, what, squeeze([was]))])
                # Lines below stay where they are: the log has their numbers.
                now += "\n" * (was.count("\n") - now.count("\n"))
                yield Drawn(file, name, first, was.split("\n"), now.split("\n"), what)

    outside, code = 0, bare.split("\n")
    starts = [0]
    for line in code:
        starts.append(starts[-1] + len(line) + 1)
    for name, first, end in functions(code):
        opens = bare.index("{", starts[first])
        yield from drawn("", by_tables(text, bare, outside, opens))
        yield from drawn(name, changes(text, bare, opens, starts[end] - 1))
        outside = starts[end]
    yield from drawn("", by_tables(text, bare, outside, len(bare)))


def read_equivalent(path):
    """{key: reason}"""
    known, why = {}, ""
    with open(path, encoding="utf-8") as f:
        for line in f.read().splitlines():
            if line.startswith("because "):
                why = line
            elif line and line[0] != "#":
                known[line] = why
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
