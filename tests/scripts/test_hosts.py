# SPDX-License-Identifier: GPL-2.0-only
"""Other hosts are told what they need. setup, with an apt-get and a dpkg-query that are none."""
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from common import ScriptTest

OTHERS = {"ubuntu": "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n", "alpine": "ID=alpine\n",
          "old": "ID=debian\nVERSION_CODENAME=bullseye\n"}
# What lib.sh, setup and in-debian run
PROGRAMS = ("sh", "realpath", "dirname", "awk", "nproc", "sed", "grep", "uname", "id", "env",
            "unshare", "chroot", "mount", "mktemp", "date")


class TestHosts(ScriptTest):
    def only(self, *names):
        """A PATH with no more than these programs"""
        os.mkdir("bin")
        for name in names:
            os.symlink(shutil.which(name), f"bin/{name}")
        return self.path("bin")

    def told(self, *command, **env):
        # Nor has a check around this one installed all that is needed.
        self.refuses("this needs Debian 12, 13 or testing", 1, *command,
                     KNC_PMU_TESTS_RUN="", **env)

    @pytest.mark.parametrize("name", OTHERS)
    def test_host_other(self, name):
        release = self.path("os-release", OTHERS[name])
        for script in ("setup", "check"):
            self.told(script, KNC_PMU_OS_RELEASE=release)

    def test_host_without_dpkg(self):
        self.told("setup", "demo", PATH=self.only(*PROGRAMS))

    def test_host_32_bit(self):
        path = self.only(*(set(PROGRAMS) - {"uname"}), "dpkg")
        self.path("bin/uname", "#!/bin/sh\necho i686\n")
        self.told("setup", "demo", PATH=path)

    def test_in_debian(self):
        self.refuses("in-debian [--release NAME]", 2, "in-debian")
        self.refuses("lenny: lib.sh knows no such", 1, "in-debian", "--release", "lenny", "true")
        self.refuses("neither mmdebstrap nor debootstrap is installed", 1, "in-debian", "true",
                     PATH=self.only(*PROGRAMS))


# Like apt-get and dpkg: a second one fails, and a package is away while it is replaced.
FAKES = {"apt-get": 'echo "$2" >>calls && mkdir busy || exit 100\n'
                    'rm -f installed; sleep 0.5\n'
                    '[ "$2" = update ] || echo installed >installed\nrmdir busy',
         "dpkg-query": "cat installed",
         "sudo": 'exec "$@"'}


class TestSetup(ScriptTest):
    @pytest.fixture(autouse=True)
    def fakes(self, room):
        for name, body in FAKES.items():
            self.path(f"bin/{name}", f"#!/bin/sh\n{body}\n")

    def run_setup(self, beside=""):
        return self.run_it("setup", "demo", "book", KNC_PMU_TESTS_RUN=beside,
                           KNC_PMU_CACHE=self.path("cache"),
                           PATH=f"{self.path('bin')}:{os.environ['PATH']}")

    def test_setup_beside_another(self):
        """Runs that come while one installs wait for it, and have nothing to do."""
        with ThreadPoolExecutor() as pool:
            for status, _, err in pool.map(lambda _: self.run_setup(), range(4)):
                assert status == 0, err
        assert Path("calls").read_text().split() == ["update", "install"]

    def test_setup_source_is_missing(self):
        """A mirror names a source that it does not have: an older one is taken."""
        self.path("bin/apt-get", "#!/bin/sh\ncase $* in *update) ;; *=1) >z_1.dsc ;; *source*) exit 100 ;;\n"
                  "*) . /etc/os-release; echo $VERSION_CODENAME m m; esac\n")
        self.path("bin/apt-cache", "#!/bin/sh\nprintf 'z | 2 | m\\nz | 1 | m\\n'\n")
        self.run_it("apt-fetch", "--source", "to", "z", KNC_PMU_CACHE=self.path("cache"),
                    PATH=f"{self.path('bin')}:{os.environ['PATH']}")
        assert os.listdir("to") == ["z_1.dsc"]

    def test_setup_in_a_test(self):
        """Beside tests nothing is installed, and what is missing is named."""
        status, _, err = self.run_setup(beside="yes")
        assert (status, os.path.exists("calls")) == (1, False)
        assert re.search("these tests:.* busybox-static .* python3-sphinx", err), err
