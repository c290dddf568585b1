# SPDX-License-Identifier: GPL-2.0-only
"""The tree as its documents have it: the map of contributing.rst, and the version."""
import re

from lines import read, sources


def test_map():
    """Each file is in the map, or in a folder that is; the map has nothing else."""
    rows = re.findall(r"^(``.*?``)  ", read("Documentation/contributing.rst"), re.M)
    listed = {name for row in rows for name in re.findall(r"``(.*?)``", row)}
    files = sources(".*")
    folders = tuple(name for name in listed if name.endswith("/"))
    assert not [name for name in files
                if name not in listed and not name.startswith(folders)], "not in contributing.rst"
    assert not [name for name in sorted(listed)
                if not any(file == name or name.endswith("/") and file.startswith(name)
                           for file in files)], "only in contributing.rst"


def test_version():
    """dkms.conf's version is the one of all copies."""
    version = re.search(r'^PACKAGE_VERSION="(.*)"$', read("dkms.conf"), re.M).group(1)
    for name, pattern in (("debian/changelog", r"\Aknc-pmu \((.*?)\)"),
                          ("CHANGELOG", r"^Version (\S+)"),
                          ("README.md", r"knc-pmu-dkms_(.*?)_all\.deb")):
        found = re.search(pattern, read(name), re.M)
        assert found and found.group(1) == version, name
