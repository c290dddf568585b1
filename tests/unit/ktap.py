# SPDX-License-Identifier: GPL-2.0-only
"""What KUnit prints: tests/unit and tests/mutants read it."""
import re

# KTAP, as KUnit prints it: a suite's cases are indented once, their parameters
# twice. Up to 6.1 a dash stands before the name.
PREFIX = re.compile(r"^\[ *\d+\.\d+\] ")
SUITE = re.compile(r"^    # Subtest: (\S+)")
PLAN = re.compile(r"^    1\.\.(\d+)")
RESULT = re.compile(r"^(    )?(not )?ok \d+ (?:- )?(.+?)(?: # SKIP(.*))?$")


class Suite:
    def __init__(self, name):
        self.name, self.plan, self.told, self.done = name, None, 0, False


def results(lines):
    """The result of each case, as (verdict, "suite.case", notes), where the verdict
    is "ok", "skip" or "FAIL"; a suite that is not whole has one of its own."""
    suite, notes = None, []
    for line in lines:
        line = PREFIX.sub("", line)
        found = SUITE.match(line)
        if found:
            suite, notes = Suite(found.group(1)), []
            continue
        if not suite:
            continue
        found = PLAN.match(line)
        if found and suite.plan is None:
            suite.plan = int(found.group(1))
            continue
        found = RESULT.match(line)
        if not found:
            notes.append(line)
            continue
        case, bad, name, skip = found.groups()
        if not case:
            # The suite's own line: every case that it has must have spoken.
            if suite.told != suite.plan:
                yield "FAIL", suite.name, [f"told of {suite.told} of {suite.plan} cases"]
            suite = None
            continue
        suite.told += 1
        verdict = "FAIL" if bad else "ok" if skip is None else "skip"
        yield verdict, f"{suite.name}.{name}", [skip] if skip else notes
        notes = []
    if suite:
        yield "FAIL", suite.name, ["did not come to its end"]
