# SPDX-License-Identifier: GPL-2.0-only
"""What KUnit prints: tests/unit and tests/mutants read it."""
import re

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
