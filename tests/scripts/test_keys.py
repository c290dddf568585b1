# SPDX-License-Identifier: GPL-2.0-only
"""What the names of builds in the cache depend on."""
import os
import shutil

from common import TOP, ScriptTest

# Versions of packages are those of $UPGRADE; for the rest a build gets no further than
# its name.
FAKES = {"dpkg-query": 'echo "installed $UPGRADE"',
         "apt-cache": 'echo "Depends: libfoo1"; case $* in *lib*) echo "Candidate: $UPGRADE";;'
                      ' *) echo "Candidate: 1";; esac',
         "apt-get": "exit 1", "setup": "", "build-kernel": "echo /nosuch"}


class Keys(ScriptTest):
    def test_library_upgrade(self):
        """apt upgrades a library: what was built with it is found again."""
        for room in ("scripts", "tools"):
            shutil.copytree(os.path.join(TOP, room), self.path(room))
        shutil.copy(os.path.join(TOP, "knc_pmu_events.h"), self.work)
        os.mkdir(self.path("bin"))
        for name, body in FAKES.items():
            folder = "scripts" if name in ("setup", "build-kernel") else "bin"
            path = self.path(f"{folder}/{name}", f"#!/bin/sh\n{body}\n".encode())
            os.chmod(path, 0o755)
        for name, what in (("build-perf", "perf"), ("build-programs", "programs")):
            for upgrade in "12":
                status, _, err = self.run_it(
                    self.path(f"scripts/{name}"), UPGRADE=upgrade,
                    KNC_PMU_CACHE=self.path("cache"),
                    PATH=f"{self.path('bin')}:{os.environ['PATH']}")
                self.assertEqual(status, 1, err)
            locks = [n for n in os.listdir(self.path(f"cache/{what}")) if n.endswith(".lock")]
            self.assertEqual(len(locks), 1, name)
