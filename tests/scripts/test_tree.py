# SPDX-License-Identifier: GPL-2.0-only
"""The tree as its documents have it: the map of contributing.rst, and the version."""
import os
import re
import subprocess
import unittest

from common import TOP


def text(name):
    with open(os.path.join(TOP, name), encoding="utf-8") as f:
        return f.read()


class Tree(unittest.TestCase):
    def test_map(self):
        """Each file is in the map, or in a folder that is; the map has nothing else."""
        rows = re.findall(r"^(``.*?``)  ", text("Documentation/contributing.rst"), re.M)
        listed = {name for row in rows for name in re.findall(r"``(.*?)``", row)}
        done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=TOP,
                              check=True, stdout=subprocess.PIPE, text=True)
        files = [name for name in done.stdout.split("\n") if os.path.exists(f"{TOP}/{name}")]
        folders = tuple(name for name in listed if name.endswith("/"))
        self.assertEqual([name for name in files if name and name not in listed and
                          not name.startswith(folders)], [], "not in contributing.rst")
        self.assertEqual([name for name in sorted(listed)
                          if not any(file == name or name.endswith("/") and
                                     file.startswith(name) for file in files)], [],
                         "only in contributing.rst")

    def test_version(self):
        """dkms.conf's version is the one of all copies."""
        version = re.search(r'^PACKAGE_VERSION="(.*)"$', text("dkms.conf"), re.M).group(1)
        for name, pattern in (("debian/changelog", r"\Aknc-pmu \((.*?)\)"),
                              ("CHANGELOG", r"^Version (\S+)"),
                              ("README.md", r"knc-pmu-dkms_(.*?)_all\.deb")):
            found = re.search(pattern, text(name), re.M)
            self.assertEqual(found and found.group(1), version, name)
