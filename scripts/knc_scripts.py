# SPDX-License-Identifier: GPL-2.0-only
"""What the scripts in Python share, as lib.sh is for those in shell."""
import os
import re
import shutil

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.environ.get("KNC_PMU_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "knc-pmu")


class Refused(Exception):
    """The source tree is not one that we know how to change."""


class Edit:
    """A change of one file: where "pattern" is found, "old" becomes "new"."""

    def __init__(self, path, pattern, old, new, count=1):
        self.path, self.old, self.new, self.count = path, old, new, count
        self.pattern = re.compile(pattern, re.M)

    def undo(self, text):
        return text.replace(self.new, self.old)

    def place(self, found):
        return found.group(0).replace(self.old, self.new)

    def apply(self, text):
        found = len(self.pattern.findall(text))
        if found != self.count:
            raise Refused(f"{self.path}: looked for /{self.pattern.pattern}/ "
                          f"{self.count} time(s), and found it {found} time(s)")
        return self.pattern.sub(self.place, text)


def undo(edits, text):
    for edit in reversed(edits):
        text = edit.undo(text)
    return text


def apply(edits, text):
    """A file's text with these edits, whether or not it has them already."""
    plain = text = undo(edits, text)
    for edit in edits:
        text = edit.apply(text)
    if undo(edits, text) != plain:
        raise Refused(f"{edits[0].path}: the edits could not be undone")
    return text


def read(tree, path):
    try:
        with open(os.path.join(tree, path), encoding="utf-8") as f:
            return f.read()
    except OSError as e:
        raise Refused(f"{path}: {e.strerror}; is {tree} the right source tree?") from e


def write(tree, path, text):
    """Only when it changes, so that nothing is compiled again for it."""
    full = os.path.join(tree, path)
    try:
        with open(full, encoding="utf-8") as f:
            if f.read() == text:
                return
    except OSError:
        os.makedirs(os.path.dirname(full), exist_ok=True)
    # A tree may be made of hard links to another one: never write in place.
    with open(full + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    if os.path.exists(full):
        shutil.copymode(full, full + ".new")
    os.replace(full + ".new", full)


def table(head, rows):
    """A simple table of reStructuredText"""
    widths = [max(len(row[i]) for row in [head] + rows) for i in range(len(head))]
    rule = "  ".join("=" * width for width in widths)
    lines = [rule, head, rule, *rows, rule]
    return "\n".join(
        line if isinstance(line, str) else
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
        for line in lines)
