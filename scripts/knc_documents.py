# SPDX-License-Identifier: GPL-2.0-only
"""The documents: commands in their literal blocks, which are run in a copy of the
checkout, and their tables.
"""
import os
import re
import shutil
import subprocess

from knc_scripts import TOP

DOCUMENTS = os.path.join(TOP, "Documentation")
# What follows the line that opens a block is indented at least as far as its first line.
LITERAL = {".rst": r"^(?!\.\.)(?:.*[^:\n])?::\n\s*\n(?P<block>(?P<indent> +|\t){})",
           ".md": r"^(?P<block>(?P<indent> {{4}}|\t){})"}
INDENTED = r"\S.*\n(?:(?P=indent).*\n|[ \t]*\n)*"


def literal_blocks(path, text):
    """(number of the first line, indentation, lines without it) of each"""
    pattern = LITERAL[os.path.splitext(path)[1]].format(INDENTED)
    for found in re.finditer(pattern, text, re.M):
        yield (text.count("\n", 0, found.start("block")), found["indent"],
               [line.removeprefix(found["indent"]).rstrip()
                for line in found["block"].splitlines()])


def copy_checkout(work):
    """The copy's path, in this directory"""
    return shutil.copytree(TOP, os.path.join(work, "knc-pmu"),
                           ignore=shutil.ignore_patterns(".git"))


def run_in(folder, command, **options):
    """Status, stdout and stderr of a line for the shell"""
    done = subprocess.run(["bash", "-c", command], cwd=folder, check=False, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, capture_output=True,
                          **options)
    return done.returncode, done.stdout, done.stderr


def table(head, rows):
    """A simple table of reStructuredText"""
    widths = [max(len(row[i]) for row in [head] + rows) for i in range(len(head))]
    rule = "  ".join("=" * width for width in widths)
    lines = [rule, head, rule, *rows, rule]
    return "\n".join(
        line if isinstance(line, str) else
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
        for line in lines)
