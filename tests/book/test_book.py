# SPDX-License-Identifier: GPL-2.0-only
"""The documentation: Sphinx builds it as one book without a message; each command in the
tutorial and in README's tour does what they say, and prints what they show; of all
others commands.txt says which test runs them, or "commands" does.
"""
from lines import Case, SCRIPTS, TESTS, TOP, quietly

COMMANDS = {
    "book-builds": (f"{SCRIPTS}/build-book",),
    "book-pages": (f"{TESTS}/book/pages",),
    "commands-listed": (f"{TESTS}/book/commands", "--check"),
    "tour": (f"{SCRIPTS}/gen-tutorial", "--check", f"{TOP}/README.md"),
    "tutorial": (f"{SCRIPTS}/gen-tutorial", "--check"),
    "uneven": (f"{SCRIPTS}/gen-tutorial", "--check", f"{TOP}/Documentation/uneven.rst"),
    "commands": (f"{TESTS}/book/commands",),
}


def cases(_run):
    for name, command in COMMANDS.items():
        yield Case(name, lambda command=command: quietly(*command), seconds=60)


def test(case):
    case.check()
