# SPDX-License-Identifier: GPL-2.0-only
"""The packages are installed, used, removed and purged on a copy of this machine's root
(an overlay in a mount namespace, which needs root). The tests are in the order in which the
copy is changed.
"""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from lines import SCRIPTS, TOP, built, quietly

pytestmark = pytest.mark.xdist_group("packages")
VERSION = re.search(r"^version := (.*)$", Path(TOP, "Makefile").read_text(), re.M).group(1)
DEBS = ("knc-pmu-dev", "knc-pmu-tools")
# In directory $1; it is there as long as the shell is, whose input ends with this process.
MOUNT = """
mount -t tmpfs -o size=2g tmpfs "$1" && cd "$1" && mkdir up work root &&
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" root &&
mount --bind /dev root/dev && mount -t proc proc root/proc && echo mounted && read _
"""


@pytest.fixture(scope="module")
def packages():
    return subprocess.run([f"{SCRIPTS}/build-packages"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.split()


class Root:
    """The copy of the root: its path as this process sees it, and a way to run commands."""

    def __init__(self, shell, folder):
        self.path = Path(f"/proc/{shell}/root{folder}/root")
        self.enter = ("nsenter", f"--mount=/proc/{shell}/ns/mnt", "env", "-u", "KNC_PMU_CACHE",
                      "DEBIAN_FRONTEND=noninteractive", "chroot", f"{folder}/root")

    def run(self, *command):
        return quietly(*self.enter, *command)

    def shell(self, script):
        return self.run("sh", "-c", script)

    def install(self, files, command):
        """Copy packages there, and install them by this command."""
        for file in files:
            shutil.copy(file, self.path / "srv")
        return self.shell(command)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    if os.geteuid():
        pytest.skip("needs root, for a mount namespace")
    folder = tmp_path_factory.mktemp("root")
    with subprocess.Popen(["unshare", "-m", "sh", "-c", MOUNT, "sh", folder],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        if shell.stdout.readline() != "mounted\n":
            pytest.fail("the copy of the root cannot be made", pytrace=False)
        copy = Root(shell.pid, folder)
        # This machine may have the packages installed.
        copy.shell(f"dpkg -P {' '.join(DEBS)} || :")
        yield copy
        shell.stdin.close()


@pytest.fixture(scope="module")
def installed(root, packages):
    """What dpkg has said"""
    return root.install(packages, "dpkg -i /srv/knc-pmu*.deb")


@pytest.fixture(scope="module")
def removed(root, installed):
    return f"{installed}{root.run('dpkg', '-r', *DEBS)}"


@pytest.fixture(scope="module")
def purged(root, removed):
    return root.run("dpkg", "-P", *DEBS)


def test_packages_build(packages):
    """debian/changelog and the Makefile have the same version."""
    assert [re.sub(".*/", "", name) for name in packages] == [
        f"{name}_{VERSION}_all.deb" for name in DEBS]


def test_packages_lintian(packages):
    quietly("lintian", "--allow-root", "--fail-on", "error,warning", *packages)


def test_packages_dist(tmp_path):
    """The tarball has all that the driver is made of."""
    quietly("make", "-s", "-C", TOP, "dist", f"dist={tmp_path}/dist.tar.xz")
    quietly("tar", "-x", "-C", tmp_path, "-f", f"{tmp_path}/dist.tar.xz")
    tree = tmp_path / f"knc-pmu-{VERSION}"
    quietly("make", "-s", "-C", tree, f"KDIR={built('build-kernel', 'stock')}/build")
    assert (tree / "knc_pmu.ko").exists()


@pytest.mark.usefixtures("installed")
def test_packages_install():
    pass


@pytest.mark.usefixtures("installed")
def test_packages_header(root):
    assert root.run("pkg-config", "--modversion", "knc-pmu") == f"{VERSION}\n"
    root.shell("cd /tmp && cp /usr/share/doc/knc-pmu-dev/examples/matmul.c . && "
               "gcc -Wall -Wextra -Werror $(pkg-config --cflags knc-pmu) -o matmul matmul.c && "
               "./matmul && man -w 3 knc_pmu_user && man -w 3 knc_pmu_regions")
    root.shell("cd /tmp && cp /usr/share/doc/knc-pmu-dev/examples/marked.* . && "
               "gcc -Wall -Wextra -Werror -pthread -DLIKWID_PERFMON "
               "$(pkg-config --cflags knc-pmu) -o marked marked.c && ./marked && "
               "gcc -c -o regions.o -x c /usr/include/knc_pmu_regions.h && "
               "gfortran -pthread -o marked /usr/include/knc-pmu/knc_pmu_regions.f90 "
               "marked.f90 regions.o && ./marked")


@pytest.mark.usefixtures("installed")
def test_packages_tools(root):
    tools = [file.name for file in root.path.glob("usr/bin/knc-*")]
    assert "knc-draw" in tools
    for tool in tools:
        root.run(tool, "--help")
        root.run("man", "-w", "1", tool)
    assert "--openmetrics" in root.run("knc-host", "watch", "--help")
    assert "core 0 thread 0: 5" in root.shell("echo CPU0,5,,cycles,1,100.00,, | knc-draw card")
    root.run("man", "-w", "4", "knc_pmu")
    root.shell("gcc -Wall -Werror -o /tmp/knc-stat /usr/share/knc-pmu/knc-stat.c && "
               "/tmp/knc-stat --help")


def test_packages_purge(root, purged):
    listed = root.shell("dpkg -l 'knc-pmu*' 2>/dev/null || :")
    assert not re.search(r"^[a-z][a-z] ", listed, re.M), f"{purged}{listed}"
    left = [*root.path.glob("usr/bin/knc-*"), *root.path.glob("usr/lib/knc-pmu*")]
    for folder in ("usr/src", "usr/share", "usr/include", "usr/bin", "var/lib/dpkg/info",
                   "etc"):
        left += root.path.glob(f"{folder}/**/*knc[-_]pmu*")
    assert not left
