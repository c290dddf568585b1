# SPDX-License-Identifier: GPL-2.0-only
import os

import pytest
from lines import TESTS, Case, check_listed, listed


def cases(_run):
    if os.environ.get("KDIR") and os.environ.get("IMAGE"):
        return listed(f"{TESTS}/uos/run", "uos")
    return [Case("uos")]


def test(case, running, record_property):
    if not case.check:
        pytest.skip("needs a card's kernel: make check-uos KDIR=<build tree, x86_64> "
                    "IMAGE=<bzImage>")
    check_listed(case, running, record_property)
