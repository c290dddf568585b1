# SPDX-License-Identifier: GPL-2.0-only
"""Faults are put into the driver, one at a time, and tests must notice them (faults.py).

A fault that one of its tests passes has survived, and fails; so does one that does not build.
The tests run in a copy of the checkout, first on the driver without a fault, which must pass.
Those for the kernel of the cards need KDIR=<its build tree> IMAGE=<bzImage>.
"""
import fcntl
import fnmatch
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from faults import read_faults
from knc_scripts import CACHE
from lines import TOP, Case, copy, none_of, read, sources

# Always the same: the cache has builds for each place of a checkout.
CHECKOUT = f"{CACHE}/mutants{TOP}"
# What scripts/check is told for tests of each kind
KINDS = {"unit": ("unit",), "guest": ("guest", "--kernel=stock"),
         "builtin": ("guest", "--kernel=builtin"), "uos": ("guest", "--kernel=2.6.38")}


def run(kind, fault):
    """(the tests that fail, and whether the guest died; all that is printed)"""
    # "boot" is always looked at.
    tests = {*fault.tests[kind], *fault.tests.get("beside", ())} - {"boot"}
    said = subprocess.run(
        [f"{CHECKOUT}/scripts/check", *KINDS[kind]], check=False, text=True,
        env={**os.environ, "TEST": " ".join(tests)}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    failed = [re.sub("^boot-.*", "boot", name)
              for name in re.findall(r"^FAIL (?:\S+/)?(\S+)", said, re.M)]
    return failed, "more failed, as their runs had ended" in said, said


def check(fault):
    os.makedirs(os.path.dirname(CHECKOUT), exist_ok=True)
    for kind in KINDS.keys() & fault.tests.keys():
        if kind == "uos" and not (os.environ.get("KDIR") and os.environ.get("IMAGE")):
            pytest.skip("needs a card's kernel: KDIR=<build tree, x86_64> IMAGE=<bzImage>")
        with open(f"{CHECKOUT}.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            shutil.rmtree(CHECKOUT, ignore_errors=True)
            copy(sources(".*"), CHECKOUT)
            failed, died, said = run(kind, fault)
            assert re.search(r"^ok ", said, re.M) and not failed, f"without it:\n{said}"
            Path(CHECKOUT, fault.file).write_text(fault.apply(read(fault.file)))
            failed, died, said = run(kind, fault)
            assert not re.search("does not build|cannot prepare|failed after", said), said
            none_of(f"survived {kind} {test}: {fault.breaks}" for test in fault.tests[kind]
                    if not died and not fnmatch.filter(failed, test))
            yield f"{kind}: {' '.join(sorted(failed))}"


def cases(_run):
    for fault in read_faults():
        if KINDS.keys() & fault.tests.keys():
            # One after the other: each builds and boots on all CPUs.
            yield Case(fault.name, lambda fault=fault: check(fault), seconds=120, timed=True)


def test(case, record_property):
    for note in case.check():
        record_property("note", note)
