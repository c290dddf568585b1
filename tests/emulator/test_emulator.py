# SPDX-License-Identifier: GPL-2.0-only
"""The emulator alone: a test for each suite of tests/emulator/run."""
import os
import tempfile

import pytest
from lines import TESTS, Case, built, once, quietly

HERE = f"{TESTS}/emulator"


@pytest.fixture(scope="session")
def bare():
    """The program that QEMU boots, built once."""
    with tempfile.TemporaryDirectory(prefix="emulator.") as work:
        quietly(f"{HERE}/build", f"{work}/bare")
        yield f"{work}/bare"


@once
def qemu(suite):
    if os.environ.get("QEMU"):
        return os.environ["QEMU"]
    options = ["--suite", suite] if suite else []
    if os.environ.get("QEMU_SANITIZED"):
        options.append("--sanitized")
    return built("build-qemu", *options) + "/qemu-system-x86_64"


def cases(run):
    for name in quietly(f"{HERE}/run", "--list").split():
        yield Case(name, lambda: qemu(run.kernel), seconds=20)


def test(case, bare):
    quietly(f"{HERE}/run", case.name, env={**os.environ, "BARE": bare, "QEMU": case.check()})
