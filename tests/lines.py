# SPDX-License-Identifier: GPL-2.0-only
"""What the tests share, such as programs that print a line for each of their tests:
"ok NAME", "FAIL NAME why" or "skip NAME why".
"""
import functools
import importlib.machinery
import os
import re
import shutil
import subprocess
import time
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest

TESTS = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(TESTS)
SCRIPTS = os.path.join(TOP, "scripts")
LINE = re.compile(r"(ok|FAIL|skip) (\S+) ?(.*)")


@dataclass
class Case:
    """A test: what @check does; or a line of the program that check(names) begins, which
    prints those of a whole @group. One that @closes the group is run if any of it is. No two that
    are @timed, by the host's clock, run at a time."""
    name: str
    check: Callable = None
    group: str = ""
    seconds: int = 1
    closes: bool = False
    timed: bool = False


def once(function):
    """Call it once for the same arguments, whether it fails or not."""
    made = {}

    @functools.wraps(function)
    def get(*args):
        if args not in made:
            try:
                made[args] = function(*args), None
            except (Exception, pytest.fail.Exception) as why:
                made[args] = None, why
        result, why = made[args]
        if why:
            raise why.with_traceback(None)
        return result

    return get


def built(script, *args):
    """What a script has built: the last line that it prints. It says how it gets on."""
    done = subprocess.run([f"{SCRIPTS}/{script}", *args], check=False, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    if done.returncode:
        pytest.fail(f"{script} {' '.join(args)} failed", pytrace=False)
    return done.stdout.strip().splitlines()[-1]


def quietly(*command, silent=False, **options):
    """Run a command, which must end with status 0, and silent if so said."""
    done = subprocess.run(command, check=False, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    if done.returncode or silent and done.stdout:
        pytest.fail(f"{os.path.basename(command[0])}: status {done.returncode}, "
                    f"{len(done.stdout.splitlines())} lines\n{done.stdout}", pytrace=False)
    return done.stdout


def executable(path, text):
    """A script, at this path"""
    path.write_text(text)
    path.chmod(0o755)
    return path


def until(what, seconds=30, why=str):
    """Wait for something; if it does not come, fail with why."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, why()
        time.sleep(0.02)


def load(path):
    """A script in Python, as a module"""
    module = types.ModuleType(os.path.basename(path).replace("-", "_"))
    module.__file__ = path
    importlib.machinery.SourceFileLoader(module.__name__, path).exec_module(module)
    return module


def none_of(wrong):
    """Nothing of what is wrong, or a failure that tells it, one a line"""
    said = [*wrong]
    if said:
        pytest.fail("\n".join(said), pytrace=False)


def read(name):
    return Path(TOP, name).read_text(encoding="utf-8")


@functools.cache
def sources(pattern):
    """Files of the checkout whose names match."""
    listed = quietly("git", "-C", TOP, "ls-files", "-co", "--exclude-standard").splitlines()
    return [name for name in listed
            if re.fullmatch(pattern, name) and os.path.isfile(os.path.join(TOP, name))]


def copy(names, work, place=lambda name: name):
    """Files of the checkout, into another folder"""
    for name in names:
        dest = os.path.join(work, place(name))
        os.makedirs(os.path.dirname(dest), exist_ok=True)
        shutil.copy(os.path.join(TOP, name), dest)


class Lines:
    """A program that runs, while each of these tests waits for its own line."""

    def __init__(self, names, *command, **options):
        self.names, self.found, self.notes = names, {}, []
        self.says = f"{os.path.basename(command[0])}: "
        self.process = subprocess.Popen(command, text=True, errors="replace",
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def read_until(self, name):
        """Read on until there is a line for this test, or no more line."""
        while name is None or name not in self.found:
            line = self.process.stdout.readline()
            if not line:
                break
            found = LINE.match(line)
            if found:
                verdict, test, why = found.groups()
                self.found.setdefault(test, []).append((verdict, why, self.notes))
                self.notes = []
            elif line.strip():
                self.notes.append(line.rstrip())

    def check(self, name):
        """The result of a test, as pytest has it. Returns its notes if it has passed."""
        self.read_until(name)
        told = self.found.get(name, [])
        if len(told) != 1:
            what = "has several results" if told else f"no result: {self.why_ended()}"
            pytest.fail("\n".join([what, *self.failures(), *self.notes[-30:]]), pytrace=False)
        verdict, why, notes = told[0]
        if verdict == "skip":
            pytest.skip(why)
        if verdict == "FAIL":
            pytest.fail("\n".join([why, *notes]), pytrace=False)
        return notes

    def why_ended(self):
        """Its own last message, such as run-uos's of a limit, or its status"""
        status = self.process.wait()
        said = [note for note in self.notes if note.startswith(self.says)]
        return f"the run ended early: {said[-1].removeprefix(self.says)}" if said else \
            f"the run ended with status {status}"

    def failures(self):
        """What failed beside the tests that were asked for, or had a second result."""
        return [f"{name} {why}" for name, told in self.found.items()
                for verdict, why, _ in (told[1:] if name in self.names else told)
                if verdict == "FAIL"]

    def check_whole(self):
        """Nothing else has failed, and the status fits the results."""
        self.read_until(None)
        status, bad = self.process.wait(), self.failures()
        failed = any(told[0][0] == "FAIL" for told in self.found.values())
        if bad or status and not failed:
            pytest.fail("\n".join([f"status {status}", *bad, *self.notes[-30:]]), pytrace=False)


def check_listed(case, running, record_property):
    """The notes of a test that has passed are printed with --notes, and are in --junit-xml."""
    if case.closes:
        running(case).check_whole()
        return
    for note in running(case).check(case.name):
        record_property("note", note)
