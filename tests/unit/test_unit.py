# SPDX-License-Identifier: GPL-2.0-only
"""KUnit, in one boot."""
import glob
import os
import re
import subprocess
import tempfile

import pytest
from lines import Case, SCRIPTS, TESTS, built, once

# KTAP, as KUnit prints it: a suite's cases are indented once, their parameters
# twice. Up to 6.1 a dash stands before the name.
PREFIX = re.compile(r"^\[ *\d+\.\d+\] ")
SUITE = re.compile(r"^    # Subtest: (\S+)")
PLAN = re.compile(r"^    1\.\.(\d+)")
RESULT = re.compile(r"^(    )?(not )?ok \d+ (?:- )?(.+?)(?: # SKIP(.*))?$")


def results(lines):
    """The result of each case, as (verdict, "suite.case", notes), where the verdict
    is "ok", "skip" or "FAIL"; a suite that is not whole has one of its own."""
    suite, plan, told, notes = None, None, 0, []
    for line in lines:
        line = PREFIX.sub("", line)
        if found := SUITE.match(line):
            suite, plan, told, notes = found.group(1), None, 0, []
        elif not suite:
            continue
        elif plan is None and (found := PLAN.match(line)):
            plan = int(found.group(1))
        elif not (found := RESULT.match(line)):
            notes.append(line)
        elif found.group(1):
            told += 1
            _, bad, name, skip = found.groups()
            verdict = "FAIL" if bad else "ok" if skip is None else "skip"
            yield verdict, f"{suite}.{name}", [skip] if skip else notes
            notes = []
        else:
            # The suite's own line: every case that it has must have spoken.
            if told != plan:
                yield "FAIL", suite, [f"told of {told} of {plan} cases"]
            suite = None
    if suite:
        yield "FAIL", suite, ["did not come to its end"]


def names():
    """All cases, as the module will print them: SUITE.CASE."""
    text = ""
    for file in sorted(glob.glob(f"{TESTS}/unit/*.c")):
        with open(file, encoding="utf-8") as f:
            text += f.read()
    for suite, body in re.findall(r"struct kunit_case (\w+)_cases\[\] = {(.*?)^};", text,
                                  re.M | re.S):
        for case in re.findall(r"KUNIT_CASE(?:_PARAM)?\((\w+)", body):
            yield f"{suite}.{case}"


@once
def boot(kernel):
    """{case: (verdict, notes)} of one boot, and its status."""
    module = built("build-module", kernel, "tests/unit", "knc_pmu_test.ko")
    with tempfile.TemporaryDirectory(prefix="unit.") as out:
        status = subprocess.run(
            [f"{SCRIPTS}/run-uos", "--kernel", kernel, "--out", out, "--module", module, "true"],
            check=False, stdout=subprocess.DEVNULL).returncode
        if not os.path.exists(f"{out}/console.log"):
            pytest.fail(f"there was no boot: run-uos ended with status {status}")
        with open(f"{out}/console.log", errors="replace", encoding="utf-8") as f:
            return {name: (verdict, notes)
                    for verdict, name, notes in results(f.read().splitlines())}, status


def check(kernel, name):
    verdict, notes = boot(kernel)[0].get(name, ("FAIL", ["no result"]))
    if verdict == "skip":
        pytest.skip(" ".join(notes))
    if verdict == "FAIL":
        pytest.fail("\n".join(note.strip() for note in notes), pytrace=False)


def check_boot(kernel):
    """Every suite is whole, each case is known, and the guest came to its end."""
    told, status = boot(kernel)
    strange = told.keys() - set(names())
    assert not status and not strange, f"status {status}, {[told[name] for name in strange]}"


def cases(run):
    kernel = run.kernel or "builtin"
    for name in names():
        yield Case(name, lambda name=name: check(kernel, name), "boot", 60)
    yield Case("boot-unit", lambda: check_boot(kernel), "boot", 60, True)


def test(case):
    case.check()
