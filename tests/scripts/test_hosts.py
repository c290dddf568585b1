# SPDX-License-Identifier: GPL-2.0-only
"""Which hosts there are: others are told at once what they need."""
import os
import shutil

import pytest
from common import ScriptTest

OTHERS = {"ubuntu": 'ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n',
          "old": 'ID=debian\nVERSION_CODENAME=bullseye\n',
          "fedora": 'ID=fedora\nVERSION_ID=43\n',
          "alpine": 'ID=alpine\n'}
# What lib.sh, setup and in-debian run
PROGRAMS = ("sh", "realpath", "dirname", "awk", "nproc", "sed", "grep", "uname", "id", "env",
            "unshare", "chroot", "mount", "mktemp", "date")


class TestHosts(ScriptTest):
    def only(self, *names):
        """A PATH with no more than these programs"""
        os.makedirs(self.path("bin"), exist_ok=True)
        for name in names:
            os.symlink(shutil.which(name), self.path(f"bin/{name}"))
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
        self.path("bin/uname", b"#!/bin/sh\necho i686\n")
        self.told("setup", "demo", PATH=path)

    def test_in_debian(self):
        self.refuses("in-debian [--release NAME]", 2, "in-debian")
        self.refuses("lenny: lib.sh knows no such", 1, "in-debian", "--release", "lenny", "true")
        self.refuses("neither mmdebstrap nor debootstrap is installed", 1, "in-debian", "true",
                     PATH=self.only(*PROGRAMS))
