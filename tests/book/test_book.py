# SPDX-License-Identifier: GPL-2.0-only
"""The documentation: Sphinx builds it as one book without a message, and comments below each
literal block with commands say what is done with them. These are behind a prompt, if there is
one in the block.

    .. runs: card        "commands" runs them in this order, as root in /root of an emulated
                         card; "host": in a copy of the checkout, where ssh reaches the cards
                         mic0 and mic1. card$ and host$ are prompts of these
    .. before: COMMAND   that is needed first, on that machine
    .. then: COMMAND     that is run last
    .. holds: REGEX      it is found in what they print, behind what the last one has found

    .. runs: in PART/NAME    that test of "scripts/check PART" does
    .. runs: never: REASON

For pages in Markdown commands.txt has the comments, under the page's name and the block's first
command. One comment is enough for a block that stands in several places, and commands that run
tests need none. ``make TARGET`` in the text
names a target, and ``scripts/NAME --option`` an option that is in --help. With WORD in
TEST_COMMANDS "commands" runs only blocks that have it.
"""
import html
import itertools
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from lines import SCRIPTS, TOP, Case, built, executable, none_of, quietly
from boots import WITHOUT_OWN_DRIVER

DOCUMENTS = sorted(Path(TOP, "Documentation").glob("*.rst"))
PAGES = [*sorted(Path(TOP).glob("*.md")), *sorted(Path(TOP).glob("*/README.md")), *DOCUMENTS]
# What follows the line that opens a block is indented at least as far as its first line.
LITERAL = {".rst": r"^(?!\.\.)(?:.*[^:\n])?::\n\s*\n(?P<block>(?P<indent> +|\t){})",
           ".md": r"^(?P<block>(?P<indent> {{4,}}|\t){})"}
INDENTED = r"\S.*\n(?:(?P=indent).*\n|[ \t]*\n)*"
PROMPT = re.compile(r"(\$|#|uos#|card\$|host\$) (.*)")
COMMENT = re.compile(r" *\.\. (runs|before|then|holds): (.*)")
INLINE = re.compile(r"(`{1,2})([^`]+)\1")
PROGRAM = re.compile(r"(make|scripts/[a-z0-9-]+|tests/[a-z]+/run|knc-[a-z]+) \S")
TESTS_RUN = re.compile(r"(TEST_\w+=\d+ )*make check")
# What is typed where a document has a name for it
REAL = {"<build tree of the card's kernel>": "$KDIR", "/path/to/sysroot": "$SYSROOT",
        "k1om-mpss-linux-gcc": "gcc",
        # To boot a whole card takes half a minute of a processor.
        "--cores 61": "--cores 8",
        # The cards are there already.
        **{f"scripts/shell --add {name}": f"ssh mic0 'cat >{name}; chmod +x {name}' <{name}"
           for name in ("columns", "vectors")}}


def literal_blocks(path, text):
    """(number of the first line, lines without their indentation) of each"""
    for found in re.finditer(LITERAL[path.suffix].format(INDENTED), text, re.M):
        yield (text.count("\n", 0, found.start("block")),
               [line.removeprefix(found["indent"]).rstrip()
                for line in found["block"].splitlines()])


def typed(block):
    """(prompt, command) of a block, without comments; a line that goes on is one line."""
    lines = re.sub(r"\\\n\s*", "", "\n".join(block)).split("\n")
    prompts = [line for line in lines if PROMPT.fullmatch(line)]
    for line in filter(None, prompts or lines):
        prompt, command = (PROMPT.fullmatch(line) or ("", "", line)).groups() \
            if prompts else ("", line)
        yield prompt, re.sub(r"\s+# .*", "", command).strip()


class Block:
    """Commands of a literal block, and what the comments below it say"""

    def __init__(self, name, commands, comments):
        self.name, self.commands = f"{name}: {commands[0][1]}", commands
        said = {"runs": [], "before": [], "then": [], "holds": []}
        for word, text in comments:
            said[word].append(text)
        self.runs, self.before, self.then, self.holds = said.values()
        self.machine = self.runs[0] if self.runs in (["card"], ["host"]) else None

    def wrong(self, tests):
        """What of it cannot be true"""
        kind, _, text = "".join(self.runs).partition(" ")
        if len(self.runs) != 1 or not (self.machine or kind in ("in", "never:") and text):
            yield "no comment below it or in commands.txt says what runs it, or it is in no page"
        elif self.machine and not self.holds:
            yield "nothing is said of what it prints"
        elif kind == "in" and text not in tests:
            yield f"no test is called {text}"

    def run(self, host):
        """What is wrong with what it does"""
        of_prompt = {"card$": host.card, "host$": host.host}
        usual, said = getattr(host, self.machine), ""
        for prompt, command in (*(("", c) for c in self.before), *self.commands,
                                *(("", c) for c in self.then)):
            if TESTS_RUN.match(command):
                continue
            for shown, real in REAL.items():
                command = command.replace(shown, real)
            status, out, err = of_prompt.get(prompt, usual)(command)
            if status:
                yield f"{command}: status {status}: {(err + out)[-1000:]}"
                return
            said += err + out
        for regex in self.holds:
            found = re.search(regex, said, re.M)
            if not found:
                yield f"no line has \"{regex}\": {said[-1000:]}"
                return
            said = said[found.end():]


def blocks():
    """Those that have to be run, once each; with comments, if any of its places has them"""
    found, text = {}, Path(TOP, "tests/book/commands.txt").read_text()
    # Comments of pages in Markdown, by page and first command
    apart = {head: re.findall(r"^    (\w+): (.*)", under, re.M)
             for head, under in re.findall(r"^([^ #\n].*)\n((?:    .*\n)+)", text, re.M)}
    for path in PAGES:
        # Code is marked as such, and is no command.
        text = re.sub(r"^```c\n.*?^```$", lambda code: "\n" * code[0].count("\n"),
                      path.read_text(), flags=re.M | re.S)
        lines = text.split("\n")
        for first, block in literal_blocks(path, text):
            commands = tuple(typed(block))
            if not commands or all(TESTS_RUN.match(command) for _, command in commands):
                continue
            name = str(path.relative_to(TOP)).removeprefix("Documentation/")
            below = itertools.takewhile(bool, map(COMMENT.fullmatch, lines[first + len(block):]))
            comments = apart.pop(f"{name}: {commands[0][1]}", None) or [
                comment.groups() for comment in below]
            if comments or commands not in found:
                found[commands] = Block(name, commands, comments)
    return [*found.values(), *(Block(head, [("", "")], []) for head in apart)]


def named():
    """{command in the text: the documents that have it}"""
    found = {}
    for path in PAGES:
        # An inline command may go over a line's end.
        for paragraph in re.split(r"\n\s*\n", path.read_text()):
            for _, words in INLINE.findall(re.sub(r"\s*\n\s*", " ", paragraph)):
                if PROGRAM.match(words) and "..." not in words and "ARCH=" not in words:
                    found.setdefault(words, set()).add(path.name)
    return found


def not_there(command, targets):
    """What of a command does not exist"""
    program, *words = shlex.split(re.sub(r"<.*?>", "", command).partition(" -- ")[0])
    if program == "make":
        yield from (word for word in words if "=" not in word and word not in targets)
        return
    path = Path(TOP, "" if "/" in program else "tools", program)
    options = [word.partition("=")[0] for word in words
               if word.startswith("--") and word != "--help"]
    if not path.exists():
        yield program
    elif options:
        said = quietly(path, "--help")
        yield from (option for option in options if option not in said)


def check_listed(_):
    """Each block has its comments; what the text names is there."""
    check = ("env", "-u", "TEST", f"{SCRIPTS}/check")
    tests = (quietly(*check, "--list") + quietly(*check, "card", "--list")).split()
    targets = re.search(r"^\.PHONY: (.*)", quietly("make", "-C", TOP, "-pn", "help"), re.M)[1]
    targets += " check-".join(["", *re.findall("^[* ] check-([a-z]+)", quietly(
        "make", "-C", TOP, "help"), re.M)])
    wrong = [f"{block.name}: {why}" for block in blocks() for why in block.wrong(tests)]
    wrong += [f"{', '.join(sorted(names))}: {command}: there is no {what}"
              for command, names in named().items()
              for what in not_there(command, targets.split())]
    none_of(wrong)


def check_rendered(_):
    """Each indented block behind a paragraph or a comment is in the page: a comment takes what is
    indented below it for its own. The style is there."""
    book = Path(quietly(f"{SCRIPTS}/build-book").split()[-1]).parent
    wrong = [f"{file}: is not in the book" for file in
             re.findall(r'href="(_static/[^"]*\.css)"', (book / "index.html").read_text())
             if not (book / file).exists()]
    for path in DOCUMENTS:
        page = html.unescape(re.sub(r"<[^>]*>", "", (book / f"{path.stem}.html").read_text()))
        page = " ".join(page.split())
        behind = re.finditer(r"^(?!- |\d+\. )(?:\w.*[^:]::|\.\. \w+: .*|::)\n\n((?:[ \t]+\S.*\n|\n)+)",
                             path.read_text(), re.M)
        wrong += [f"{path.name}: {line.strip()}: is not in the page"
                  for found in behind for line in found[1].splitlines()
                  if " ".join(line.split()) not in page]
    none_of(wrong)


def program(folder, name):
    """An example, to be measured on the card"""
    quietly("gcc", "-O2", "-g", "-static", "-fno-omit-frame-pointer", f"-I{TOP}/include",
            "-pthread", "-DLIKWID_PERFMON", "-o", f"{folder}/{name}", f"{TOP}/Documentation/examples/{name}.c")
    return f"{folder}/{name}"


class Host:
    """A copy of the checkout, with cards/, and PATH as if our programs were installed"""

    def __init__(self, work):
        self.copy = shutil.copytree(TOP, work / "knc-pmu", ignore=shutil.ignore_patterns(".git"))
        programs = work / "bin"
        programs.mkdir()
        for name in ("knc-draw", "knc-host", "knc-metrics", "knc-report"):
            (programs / name).symlink_to(f"{TOP}/tools/{name}")
        executable(programs / "ssh",
                   f'#!/bin/sh\nexec /usr/bin/ssh -F {self.copy}/cards/ssh_config "$@"\n')
        self.env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}",
                    "KDIR": built("build-kernel", "stock") + "/build", "TEST": "",
                    "SYSROOT": f"{work}/root"}
        added = (program(work, "columns") + ":/root/program", program(work, "matmul"),
                 program(work, "marked"),
                 built("build-perf") + ":/usr/lib/knc-pmu/perf")
        # Commands load the driver on mic0, once.
        quietly(f"{SCRIPTS}/cards", f"{self.copy}/cards", "mic0", "mic1", "--", "--no-load",
                *WITHOUT_OWN_DRIVER.split(), *(f"--add={file}" for file in added))
        self.host("ssh mic1 modprobe knc_pmu")

    def card(self, command):
        # With ssh's pipes perf report would read its input, and perf record write there.
        command = f"({command}) </dev/null >/tmp/out 2>&1; s=$?; cat /tmp/out; exit $s"
        return self.host(f"ssh mic0 {shlex.quote(command)}")

    def host(self, command):
        """Status, stdout and stderr of a line for the shell"""
        done = subprocess.run(["bash", "-c", command], cwd=self.copy, env=self.env, check=False,
                              text=True, errors="replace", stdin=subprocess.DEVNULL,
                              capture_output=True)
        return done.returncode, done.stdout, done.stderr


def by_user(host):
    """At each level those that it does not allow say so, and all others work."""
    # The driver as "commands" loads it; a short program in place of the demo's
    host.card("modprobe knc_pmu; cp program columns; cp -r . /home/user; "
              "cp program /home/user/workload; chown -R user /home/user")
    keep_symbols(host)
    typed_there = {command.replace("-r 5", "-r 1"): None for block in blocks()
                   if block.machine == "card" and re.match("README|tools|tutorial", block.name)
                   for command in (*block.before, *(words for _, words in block.commands))
                   if command.startswith(("perf ", "knc-"))}
    assert len(typed_there) > 20, typed_there
    for level in 2, 1, 3:
        host.card(f"echo {level} >/proc/sys/kernel/perf_event_paranoid; rm -f /home/user/perf.data*")
        for command in typed_there:
            measures = bool(re.match("perf (stat|record)|knc-metrics", command))
            refused = measures and (level == 3 or "-a" in command.split())
            if level == 3 and not measures:
                # There is no recording to be read.
                continue
            status, out, err = host.card(f"su user -c {shlex.quote(f'cd; {command}')}")
            told = "perf_event_paranoid" + f" is {level}" * command.startswith("knc-")
            if bool(status) != refused or refused and told not in out:
                yield f"a user, at {level}: {command}: status {status}: {(err + out)[-1000:]}"


def keep_symbols(host):
    """perf reads them for each record (symbols_once() in tests/guest/lib.sh)."""
    host.card("cat /proc/kallsyms >/tmp/kallsyms; mount --bind /tmp/kallsyms /proc/kallsyms")


def by_blocks(host):
    word = os.environ.get("TEST_COMMANDS", "")
    for block in filter(lambda block: block.machine, blocks()):
        loads = any("&& insmod" in command for _, command in block.commands)
        if loads or any(word in command for _, command in block.commands):
            yield from (f"{block.name}: {why}" for why in block.run(host))
        if loads:
            keep_symbols(host)


def on_cards(typed_there):
    """A test, of what is wrong where this is typed"""
    def check(work):
        host, wrong = Host(work), []
        try:
            wrong += typed_there(host)
        finally:
            status, _, why = host.host(f"{SCRIPTS}/cards --end cards")
        none_of(wrong + [why] * (status > 0))

    return check


CHECKS = {
    "book-builds": check_rendered,
    "commands-listed": check_listed,
    "commands": on_cards(by_blocks),
    "commands-user": on_cards(by_user),
}


def cases(run):
    return [Case(name, check, seconds=400 if name == "commands" else 60,
                 timed=name.startswith("commands"))
            for name, check in CHECKS.items() if name != "commands-user" or run.names]


def test(case, tmp_path):
    case.check(tmp_path)
