# SPDX-License-Identifier: GPL-2.0-only
"""scripts/check, in a copy that has other tests: what is not run has failed."""
import os
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
        top = self.path("copy")
        shutil.rmtree(top, ignore_errors=True)
        shutil.copytree(f"{TOP}/scripts", f"{top}/scripts")
        os.makedirs(f"{top}/tests/demo")
        for name in ("conftest.py", "lines.py", "pytest.ini"):
            shutil.copy(f"{TOP}/tests/{name}", f"{top}/tests")
        for name, text in {"parts": "demo demo\n", **files}.items():
            with open(f"{top}/tests/{name}", "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(f"{top}/tests/{name}", 0o755)
        return self.run_it(f"{top}/scripts/check", "demo", TEST="", TEST_ORDER="",
                           KNC_PMU_JOBS="1", KNC_PMU_RUNS="", **env)

    def check(self, files, status, *lines):
        got, out, _ = self.begin(files)
        assert got == status, out
        for line in lines:
            assert line in out.splitlines()
        assert out.splitlines()[-1] == lines[-1]

    def ends(self, program, why):
        self.check({"demo/run": program, "demo/test_demo.py": LISTED}, 1, "ok a",
                   "FAIL b because", f"FAIL c no result: the run ended {why}",
                   "FAIL demo-run status 3",
                   "1 more failed, as their runs had ended: failures above say why",
                   "1 passed, 4 failed")

    def test_check_program_ends(self):
        self.ends(PROGRAM, "with status 3")

    def test_check_program_tells_why(self):
        self.ends(PROGRAM.replace("exit", "echo run: still running; echo at: here; exit"),
                  "early: still running")

    def test_check_worker_dies(self):
        self.check({"demo/test_demo.py": DEAD}, 1, "FAIL after was not run",
                   "FAIL again was not run", "0 passed, 3 failed")

    def test_check_seed(self):
        """A new one each time, which is printed; what is given is taken."""
        files = {"parts": "demo TEST_DEMO_SEED=new,demo\n", "demo/test_demo.py": SEED}
        _, first, said = self.begin(files)
        seed = re.search(r"^TEST_DEMO_SEED=(\d+)$", said, re.M)[1]
        assert f"FAIL seed drawn {seed}" in first
        assert self.begin(files)[1] != first
        _, out, said = self.begin(files, TEST_DEMO_SEED=seed)
        assert out == first and "TEST_DEMO_SEED" not in said

    def test_check_no_test(self):
        self.check({"demo/test_demo.py": "import nosuch\n"}, 1, "0 passed, 1 failed")
