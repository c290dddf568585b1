# SPDX-License-Identifier: GPL-2.0-only
"""The driver on the emulated card: a group for each boot."""
import os

from lines import TESTS, Case, Lines, check_listed, quietly

RUN = f"{TESTS}/guest/run"
# About how long a boot takes, where that is more than a minute
SECONDS = {"main": 240, "races": 200, "storm": 90, "tools": 80, "alone": 70, "card": 600}
# On request: the programs of one are to be fetched, the other takes long.
ON_REQUEST = ("strangers", "card")


def cases(run):
    args = ["--kernel", run.kernel or "uos",
            *(f"--{name}" for name in run.names if name in ("card", "races", "mainline"))]
    keep = ["--keep", run.keep] if run.keep else []
    asked = {*run.names, *os.environ.get("TEST", "").split()}

    def start(names):
        return Lines(names, RUN, *args, *keep, *(n for n in names if not n.startswith("boot-")))

    listed = [line.split() for line in quietly(RUN, *args, "--list").splitlines()]
    for name, boot in listed:
        closes = name == f"boot-{boot}"
        if boot not in ON_REQUEST or {name, boot} & asked or closes and any(
                other == boot and test in asked for test, other in listed):
            yield Case(name, start, boot, SECONDS.get(boot, 60), closes)


def test(case, running, record_property):
    if case.closes:
        running(case).check(case.name)
    check_listed(case, running, record_property)
