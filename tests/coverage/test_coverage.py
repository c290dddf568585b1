# SPDX-License-Identifier: GPL-2.0-only
from lines import TESTS, quietly


def test_coverage():
    print(quietly(f"{TESTS}/coverage/run"))
