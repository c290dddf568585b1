# SPDX-License-Identifier: GPL-2.0-only
"""The documentation: Sphinx builds it as one book without a message; each command in the
tutorial and in README's tour does what they say, and prints what they show; of all
others commands.txt says which test runs them, or "commands" does.

A command is what stands in a literal block, behind a prompt if there is one in it, and
``words`` in the text that begin with a program of ours, make, perf with an option, and
the like. With WORD in TEST_COMMANDS "commands" runs only those that have it.
"""
import functools
import html
import os
import re
import shlex
import sys
from pathlib import Path

from lines import SCRIPTS, TESTS, TOP, Case, built, none_of, quietly

sys.path.append(SCRIPTS)
from knc_documents import copy_checkout, literal_blocks, run_in  # noqa: E402

DOCUMENTS = sorted(Path(TOP, "Documentation").glob("*.rst"))
# Whose "$" and "uos#" commands are run by gen-tutorial
GENERATED = ("README.md", "tutorial.rst", "uneven.rst")
PROMPT = re.compile(r"(?:\$|#|uos#|card\$|host\$) (.*)")
INLINE = re.compile(r"(`{1,2})([^`]+)\1")
PROGRAM = re.compile(r"(make|scripts/[a-z0-9-]+|tests/[a-z]+/run|knc-[a-z]+|sysctl|modprobe"
                     r"|insmod|modinfo|uname|stress-ng|bpftrace|likwid-[a-zA-Z]+) \S|perf \S+ \S")
# Commands that follow each other have the same lines below them.
ROWS = re.compile(r"((?:^\$ .*\n)+)((?:^[a-z].*\n)+)", re.M)
KINDS = ("card", "host", "test", "option", "never")
# The widest font of the theme for code, DejaVu Sans Mono: width by height
LETTER = 0.602
# The theme's sizes: text, page, sidebar, a letter of text, a letter of code
SIZES = (r"div\.body {[^}]*max-width: (\d+)px", r"div\.document {\s*width: (\d+)px",
         r"div\.sphinxsidebar {\s*width: (\d+)px", r"body {[^}]*font-size: (\d+)px",
         r"pre, tt, code {[^}]*font-size: ([\d.]+)em")
# Of text, and of code
PADDING = 2 * 30


# --- the book -------------------------------------------------------------------

def ugly(book):
    """What is wrong with its sidebar, its first page and its widest lines in a browser"""
    page, _, sidebar = (book / "index.html").read_text().partition('class="sphinxsidebar"')
    pages = re.findall(r'"reference internal" href="([a-z-]+)\.html"', sidebar)
    if sorted([*pages, "index"]) != sorted(p.stem for p in DOCUMENTS):
        yield f"the sidebar does not have each page once: {pages}"
    if sidebar.find("searchbox") > sidebar.find("toctree"):
        yield "the search is below the pages"
    for part in (r"<pre>.*make demo\nmake check\n", r'<img .*src="_images/\w'):
        if not re.search(part, page):
            yield f"the first page has no {part}"
    css = "".join(path.read_text() for path in sorted(book.glob("_static/*.css")))
    most, width, beside, font, code = (
        float(re.search(f"^{size}", css, re.M)[1]) for size in SIZES)
    columns = (min(most, width - beside - PADDING) - PADDING) / (font * code * LETTER)
    if width > 1280 - 20:
        yield f"{width} px are too many for a window of 1280 with a scroll bar"
    for path in sorted(book.glob("*.html")):
        for block in re.findall(r"<pre>(.*?)</pre>", path.read_text(), re.S):
            for line in html.unescape(re.sub(r"<.*?>", "", block)).expandtabs().split("\n"):
                if len(line) > columns:
                    yield f"{path.name} shows {columns:.0f} columns of: {line}"


# --- what the documents have ------------------------------------------------------

def typed(block, generated):
    """The commands of a block, without comments; a line that goes on is one line."""
    lines = re.sub(r"\\\n\s*", "", "\n".join(block)).split("\n")
    prompts = [line for line in lines if PROMPT.fullmatch(line)]
    if prompts and generated and not any(line.startswith("# ") for line in prompts):
        return
    for line in prompts or lines:
        found = PROMPT.fullmatch(line)
        yield re.sub(r"\s+# .*", "", found[1] if found else line).strip()


def commands_of(path):
    # Code is marked as such, and is no command.
    text = re.sub(r"^```c\n.*?^```$", "", path.read_text(), flags=re.M | re.S)
    for _, _, block in literal_blocks(path, text):
        yield from typed(block, path.name in GENERATED)
    # An inline command may go over a line's end.
    for paragraph in re.split(r"\n\s*\n", text):
        for _, words in INLINE.findall(re.sub(r"\s*\n\s*", " ", paragraph)):
            if PROGRAM.match(words) and "..." not in words:
                yield words


def documented():
    """{command: the documents that have it}"""
    found = {}
    for path in [Path(TOP, "README.md"), *DOCUMENTS]:
        for command in filter(None, commands_of(path)):
            found.setdefault(command, set()).add(path.name)
    return found


# --- what is done with them ---------------------------------------------------------

class Row:
    """A command of commands.txt, and what is done with it"""

    def __init__(self, command, lines):
        said = {"before": [], "then": [], "as": []}
        for word, _, text in (line.partition(" ") for line in lines):
            said.setdefault(word, []).append(text)
        self.command, self.before, self.then = command, said.pop("before"), said.pop("then")
        self.typed = [command, *said.pop("as")][-1]
        self.kind, text = next(iter(said.items()), ("", []))
        self.text = "".join(text)
        self.understood = len(said) == len(text) == 1 and self.kind in KINDS and \
            (self.text or self.kind == "option")

    def wrong(self, tests):
        """What of it cannot be true"""
        free = re.sub(r"<.*?>|/path/\S*", "(.+)", re.escape(self.command).replace("\\ ", " "))
        if not self.understood:
            yield "what is done with it is not understood"
        elif not re.fullmatch(free, self.typed):
            yield f"\"{self.typed}\" is another command"
        elif self.kind == "test":
            name, path, text = self.text.split(" ", 2)
            if name not in tests:
                yield f"no test is called {name}"
            if text not in re.sub(r"\\\n\s*", "", Path(TOP, path).read_text()):
                yield f"{path} has no \"{text}\""
        elif self.kind == "option":
            script, option = self.command.split()[:2]
            if option not in quietly(f"{TOP}/{script}", "--help"):
                yield f"{script} --help has no {option}"
        elif self.kind == "never" and re.fullmatch(r"make [a-z-]+", self.command):
            quietly("make", "-C", TOP, "-n", self.command.split()[1])

    def run(self, run):
        """What is wrong with what it does"""
        said = ""
        for command in (*self.before, self.typed, *self.then):
            status, out, err = run(command)
            if status:
                yield f"{command}: status {status}: {(err + out)[-1000:]}"
                return
            if command in (self.then or [self.typed]):
                said += err + out
        if self.text == "quiet":
            if said.strip():
                yield f"prints: {said[-1000:]}"
        elif not re.search(self.text, said, re.M):
            yield f"no line has \"{self.text}\": {said[-1000:]}"


def rows():
    text = Path(TESTS, "book/commands.txt").read_text()
    strange = re.sub(r"^(#.*)?\n", "", ROWS.sub("", text), flags=re.M)
    assert not strange, f"commands.txt: not below a command: {strange}"
    return [Row(command.removeprefix("$ "), lines.splitlines())
            for commands, lines in ROWS.findall(text) for command in commands.splitlines()]


def check_rows(_):
    """There is a row for each command, and one command for each row."""
    check = ("env", "-u", "TEST", f"{SCRIPTS}/check")
    tests = (quietly(*check, "--list") + quietly(*check, "card", "--list")).split()
    found, table = documented(), rows()
    have = [row.command for row in table]
    wrong = [f"{', '.join(sorted(names))}: nobody runs: {command}"
             for command, names in found.items() if command not in have]
    wrong += [f"commands.txt: no document has: {command}"
              for command in have if command not in found]
    wrong += [f"commands.txt: twice: {command}"
              for command in {*have} if have.count(command) > 1]
    wrong += [f"commands.txt: {row.command}: {why}" for row in table for why in row.wrong(tests)]
    none_of(wrong)


# --- running them ------------------------------------------------------------------------

def program(folder, name):
    """An example, to be measured on the card"""
    quietly("gcc", "-O2", "-g", "-static", "-fno-omit-frame-pointer", f"-I{TOP}/include",
            "-pthread", "-DLIKWID_PERFMON", "-o", f"{folder}/{name}", f"{TOP}/Documentation/examples/{name}.c")
    return f"{folder}/{name}"


class Host:
    """A copy of the checkout, with cards/, and PATH as if our programs were installed"""

    def __init__(self, work):
        self.copy = copy_checkout(work)
        programs = work / "bin"
        programs.mkdir()
        for name in ("knc-draw", "knc-host", "knc-metrics", "knc-report"):
            (programs / name).symlink_to(f"{TOP}/tools/{name}")
        (programs / "ssh").write_text(
            f'#!/bin/sh\nexec /usr/bin/ssh -F {self.copy}/cards/ssh_config "$@"\n')
        (programs / "ssh").chmod(0o755)
        self.env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}",
                    "KDIR": built("build-kernel", "stock") + "/build", "TEST": "",
                    "LINUX": f"{work}/linux", "SOURCE": built("build-kernel", "source"),
                    # Where things are installed
                    "DESTDIR": f"{work}/root", "INSTALL_MOD_PATH": f"{work}/root"}
        added = (program(work, "columns") + ":/root/program", program(work, "matmul"),
                 program(work, "marked"),
                 built("build-perf") + ":/usr/lib/knc-pmu/perf")
        quietly(f"{SCRIPTS}/cards", f"{self.copy}/cards", "mic0", "mic1", "--",
                *(f"--add={file}" for file in added))

    def card(self, command):
        # With ssh's pipes perf report would read its input, and perf record write there.
        command = f"({command}) </dev/null >/tmp/out 2>&1; s=$?; cat /tmp/out; exit $s"
        return self.host(f"ssh mic0 {shlex.quote(command)}")

    def host(self, command):
        return run_in(self.copy, command, env=self.env)


def run_rows(work):
    host, word = Host(work), os.environ.get("TEST_COMMANDS", "")
    try:
        wrong = [f"{row.command}: {why}" for row in rows()
                 if row.kind in ("card", "host") and word in row.command
                 for why in row.run(getattr(host, row.kind))]
    finally:
        status, _, why = host.host(f"{SCRIPTS}/cards --end cards")
    none_of(wrong + [why] * (status > 0))


gen_tutorial = functools.partial(quietly, f"{SCRIPTS}/gen-tutorial")
CHECKS = {
    "book-builds": lambda _: quietly(f"{SCRIPTS}/build-book"),
    "book-pages": lambda _: none_of(ugly(Path(built("build-book")).parent)),
    "tour": lambda _: gen_tutorial("--check", f"{TOP}/README.md"),
    "tutorial": lambda _: gen_tutorial("--check"),
    "uneven": lambda _: gen_tutorial("--check", f"{TOP}/Documentation/uneven.rst"),
    "commands-listed": check_rows,
    "commands": run_rows,
}


def cases(_run):
    return [Case(name, check, seconds=400 if name == "commands" else 60)
            for name, check in CHECKS.items()]


def test(case, tmp_path):
    case.check(tmp_path)
