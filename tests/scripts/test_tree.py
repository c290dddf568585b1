# SPDX-License-Identifier: GPL-2.0-only
"""The tree as its documents have it: the map of contributing.rst, and the version."""
import re

from lines import read, sources


def test_map():
    """Each folder is in the map, or in one that is; the map has no others."""
    rows = re.findall(r"^- (``.*?/``): ", read("Documentation/contributing.rst"), re.M)
    folders = {name for row in rows for name in re.findall(r"``(.*?/)``", row)} - {"./"}
    files = [name for name in sources(".*") if not re.fullmatch(r"(tests/)?[^/]*", name)]
    assert not [name for name in files if not name.startswith(tuple(folders))], "not in the map"
    assert not [name for name in sorted(folders)
                if not any(file.startswith(name) for file in files)], "only in the map"


def test_version():
    version = re.search(r"^version := (.*)$", read("Makefile"), re.M)[1]
    assert re.search(r"^Version (\S+)", read("CHANGELOG"), re.M)[1] == version
