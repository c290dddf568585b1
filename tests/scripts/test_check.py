# SPDX-License-Identifier: GPL-2.0-only
"""scripts/check, in a copy that has other tests: what is not run has failed."""
import re
import shutil

from common import TOP, ScriptTest

PROGRAM = """#!/bin/sh
echo "ok a"; echo "FAIL b because"; echo "FAIL d strange"
exit 3
"""
LISTED = """from lines import TESTS, Case, Lines, check_listed as test
def start(names):
    return Lines(names, TESTS + "/demo/run")
def cases(_run):
    return [Case(name, start, "demo", closes=name == "demo-run") for name in [*"abce", "demo-run"]]
"""
DEAD = """import os
def test_dies(): os._exit(3)
def test_after(): pass
def test_again(): pass
"""
SEED = """import os
def test_seed(): assert not os.environ["TEST_DEMO_SEED"], "drawn " + os.environ["TEST_DEMO_SEED"]
"""


class TestCheck(ScriptTest):
    def begin(self, files, **env):
        """Status, output and messages of check in a copy that has these files"""
        shutil.rmtree("copy", ignore_errors=True)
        shutil.copytree(f"{TOP}/scripts", "copy/scripts")
        for name, text in {"parts": "demo demo\n", **files}.items():
            self.path(f"copy/tests/{name}", text)
        for name in ("conftest.py", "lines.py", "pytest.ini"):
            shutil.copy(f"{TOP}/tests/{name}", "copy/tests")
        return self.run_it("copy/scripts/check", "demo", TEST="", TEST_ORDER="",
                           KNC_PMU_JOBS="1", KNC_PMU_RUNS="", **env)

    def check(self, files, *lines):
        status, out, _ = self.begin(files)
        assert status == 1 and {*lines} <= {*out.splitlines()}, out
        assert out.splitlines()[-1] == lines[-1]

    def test_check_program_ends(self):
        for says, why in (("", "with status 3"), ("echo run: still running; echo at: here; ",
                                                  "early: still running")):
            self.check({"demo/run": PROGRAM.replace("exit", f"{says}exit"),
                        "demo/test_demo.py": LISTED}, "ok a", "FAIL b because",
                       f"FAIL c no result: the run ended {why}", "FAIL demo-run status 3",
                       "1 more failed, as their runs had ended: failures above say why",
                       "1 passed, 4 failed")

    def test_check_worker_dies(self):
        """So has a file that cannot be read."""
        self.check({"demo/test_demo.py": DEAD}, "FAIL after was not run",
                   "FAIL again was not run", "0 passed, 3 failed")
        self.check({"demo/test_demo.py": "import nosuch\n"}, "0 passed, 1 failed")

    def test_check_seed(self):
        """A new one each time, which is printed; what is given is taken."""
        files = {"parts": "demo TEST_DEMO_SEED=new,demo\n", "demo/test_demo.py": SEED}
        _, first, said = self.begin(files)
        seed = re.search(r"^TEST_DEMO_SEED=(\d+)$", said, re.M)[1]
        assert f"FAIL seed drawn {seed}" in first
        assert self.begin(files)[1] != first
        _, out, said = self.begin(files, TEST_DEMO_SEED=seed)
        assert out == first and "TEST_DEMO_SEED" not in said
