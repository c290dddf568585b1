# SPDX-License-Identifier: GPL-2.0-only
from lines import TESTS, check_listed, listed

test = check_listed


def cases(_run):
    return listed(f"{TESTS}/mutants/run", "mutants")
