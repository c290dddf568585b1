# SPDX-License-Identifier: GPL-2.0-only
"""The packages are installed, used, removed and purged on a copy of this machine's root
(an overlay in a mount namespace, which needs root). DKMS builds the driver there for
Debian's own kernel, which is then booted on the emulated card and loads it by the CPU's
alias. The tests are in the order in which the copy is changed.
"""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from lines import SCRIPTS, TOP, built, quietly

pytestmark = pytest.mark.xdist_group("packages")
VERSION = re.search(r'PACKAGE_VERSION="(.*)"', Path(TOP, "dkms.conf").read_text()).group(1)
DEBS = ("knc-pmu-dkms", "knc-pmu-dev", "knc-pmu-tools", "knc-pmu-perf")
RPMS = ("knc-pmu-dkms", "knc-pmu-devel", "knc-pmu-tools", "knc-pmu-perf")
TOO_OLD = "5.10.0-99-amd64"
# In directory $1; it is there as long as the shell is, whose input ends with this process.
MOUNT = """
mount -t tmpfs -o size=2g tmpfs "$1" && cd "$1" && mkdir up work root &&
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" root &&
mount --bind /dev root/dev && mount -t proc proc root/proc && echo mounted && read _
"""
# depmod writes the others anew.
KEPT = ("modules.builtin", "modules.builtin.modinfo", "modules.order")


@pytest.fixture(scope="module")
def packages():
    """{"deb": files, "rpm": files}"""
    return {kind: [file for which in (kind, f"{kind}-perf") for file in
                   subprocess.run([f"{SCRIPTS}/build-packages", which], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout.split()]
            for kind in ("deb", "rpm")}


@pytest.fixture(scope="module")
def stock():
    """Debian's own kernel"""
    return Path(built("build-kernel", "stock"))


class Root:
    """The copy of the root: its path as this process sees it, and a way to run commands."""

    def __init__(self, shell, folder, stock):
        self.path = Path(f"/proc/{shell}/root{folder}/root")
        self.enter = ("nsenter", f"--mount=/proc/{shell}/ns/mnt", "env", "-u", "KNC_PMU_CACHE",
                      "DEBIAN_FRONTEND=noninteractive", "chroot", f"{folder}/root")
        self.release = os.path.basename(os.readlink(stock / "modules"))
        self.modules = self.path / "lib/modules" / self.release
        self.place_kernels(stock)

    def run(self, *command):
        return quietly(*self.enter, *command)

    def shell(self, script):
        return self.run("sh", "-c", script)

    def dkms_status(self):
        return self.run("dkms", "status", "-m", "knc-pmu")

    def place_kernels(self, stock):
        """Debian's kernel as if it were installed, and one that is too old, in place of
        the machine's own"""
        self.shell("rm -rf /lib/modules")
        for folder in (self.modules, self.modules.parent / TOO_OLD):
            folder.mkdir(parents=True)
            (folder / "build").symlink_to(stock / "build")
        for file in (stock / "modules").iterdir():
            if file.name in KEPT or not file.name.startswith(("build", "source", "modules.")):
                (self.modules / file.name).symlink_to(file)

    def install(self, files, command):
        """Copy packages there, and install them by this command."""
        for file in files:
            shutil.copy(file, self.path / "srv")
        return self.shell(command)


@pytest.fixture(scope="module")
def root(tmp_path_factory, stock):
    if os.geteuid():
        pytest.skip("needs root, for a mount namespace")
    folder = tmp_path_factory.mktemp("root")
    with subprocess.Popen(["unshare", "-m", "sh", "-c", MOUNT, "sh", folder],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        if shell.stdout.readline() != "mounted\n":
            pytest.fail("the copy of the root cannot be made", pytrace=False)
        copy = Root(shell.pid, folder, stock)
        # This machine may have the packages installed.
        copy.shell(f"dpkg -P {' '.join(DEBS)} || :")
        yield copy
        shell.stdin.close()


@pytest.fixture(scope="module")
def installed(root, packages):
    """What apt has said"""
    return root.install(packages["deb"], "apt-get install -y /srv/knc-pmu*.deb")


@pytest.fixture(scope="module")
def for_card(root, installed, tmp_path_factory):
    """Copies of what DKMS has built, and of the example for GRUB"""
    folder = tmp_path_factory.mktemp("card")
    assert (root.modules / "updates").exists(), installed
    shutil.copytree(root.modules / "updates", folder / "updates")
    shutil.copy(root.path / "usr/share/doc/knc-pmu-dkms/examples/knc-pmu.cfg", folder)
    shutil.copy(root.path / "usr/lib/knc-pmu/perf", folder / "knc-perf")
    return folder


@pytest.fixture(scope="module")
def removed(root, for_card):
    """After the copies are made"""
    return root.run("dpkg", "-r", *DEBS)


@pytest.fixture(scope="module")
def purged(root, removed):
    return root.run("dpkg", "-P", *DEBS)


def test_packages_build(packages):
    """debian/changelog and dkms.conf have the same version."""
    assert [name.rpartition("_")[2] for name in packages["deb"]
            if f"_{VERSION}_" in name] == ["all.deb"] * 3 + ["amd64.deb"]


def test_packages_lintian(packages):
    quietly(f"{SCRIPTS}/setup", "lintian")
    quietly("lintian", "--allow-root", "--fail-on", "error,warning", *packages["deb"])


def contents(listing):
    """The files in it, but for documentation and the compression of man pages"""
    names = re.findall(r"^[^d].*? \.?(/usr/\S+)", listing, re.M)
    return sorted(re.sub(r"(/man/.*)\.gz$", r"\1", name) for name in names
                  if not re.match("/usr/share/(doc|licenses|lintian)/", name))


def test_packages_rpm(packages):
    """The RPMs have the same files."""
    for deb_name, rpm_name in zip(DEBS, RPMS):
        deb, = (file for file in packages["deb"] if f"/{deb_name}_" in file)
        rpm, = (file for file in packages["rpm"] if f"/{rpm_name}-{VERSION}-" in file)
        files = contents(quietly("dpkg-deb", "-c", deb))
        assert files and files == contents(quietly(
            "rpm", "-qp", "--qf", r"[%{FILEMODES:perms} %{FILENAMES}\n]", rpm))


def test_packages_dist(stock, tmp_path):
    """The tarball has all that the driver is made of."""
    quietly("make", "-s", "-C", TOP, "dist", f"dist={tmp_path}/dist.tar.xz")
    quietly("tar", "-x", "-C", tmp_path, "-f", f"{tmp_path}/dist.tar.xz")
    tree = tmp_path / f"knc-pmu-{VERSION}"
    quietly("make", "-s", "-C", tree, f"KDIR={stock}/build")
    assert (tree / "knc_pmu.ko").exists()


@pytest.mark.usefixtures("installed")
def test_packages_install():
    pass


def test_packages_dkms(root, installed):
    assert re.search(rf"^knc-pmu/[0-9.]*, {root.release}, x86_64: installed$",
                     root.dkms_status(), re.M), installed
    assert (root.modules / "updates/dkms/knc_pmu.ko").exists()
    assert "knc_pmu" in (root.modules / "modules.alias").read_text(), "depmod knows no alias"


@pytest.mark.usefixtures("installed")
def test_packages_excludes(root):
    assert "5.10" not in root.dkms_status()
    said = root.shell(f"dkms build -m knc-pmu -v {VERSION} -k {TOO_OLD}; echo status $?")
    assert said.endswith("status 77\n"), said


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
               "/tmp/knc-stat --help && man -w 1 knc-stat")


@pytest.mark.usefixtures("installed")
def test_packages_perf(root):
    """On another processor the tables are there if they are asked for. On the card: load."""
    assert root.run("readlink", "-f", "/usr/bin/knc-perf") == "/usr/lib/knc-pmu/perf\n"
    # Where it was built is nobody's business.
    assert b"perf-objects" not in (root.path / "usr/lib/knc-pmu/perf").read_bytes()
    said = root.shell("PERF_CPUID=GenuineIntel-11-1-0 knc-perf list metric")
    assert re.search(r"^  cpi_thread$", said, re.M), said
    built_of = root.run("dpkg-query", "-W", "-f", "${Built-Using}", "knc-pmu-perf")
    for source in ("elfutils", "glibc", "linux", "slang2"):
        assert re.search(rf"\b{source} \(= [0-9]", built_of), built_of


def test_packages_remove(root, removed):
    assert not root.dkms_status(), removed
    assert not [*root.path.glob("lib/modules/**/knc_pmu*")]


def test_packages_purge(root, purged):
    listed = root.shell("dpkg -l 'knc-pmu*' 2>/dev/null || :")
    assert not re.search(r"^[a-z][a-z] ", listed, re.M), f"{purged}{listed}"
    left = [*root.path.glob("usr/bin/knc-[dp]*"), *root.path.glob("usr/lib/knc-pmu*")]
    for folder in ("usr/src", "usr/share", "usr/include", "usr/bin", "var/lib/dkms",
                   "var/lib/dpkg/info", "etc"):
        left += root.path.glob(f"{folder}/**/*knc[-_]pmu*")
    assert not left


@pytest.mark.usefixtures("purged")
def test_packages_rpm_install(root, packages):
    """The same with the RPMs"""
    said = root.install(packages["rpm"], "rpm -i --nodeps /srv/knc-pmu*.rpm")
    assert root.dkms_status().startswith(f"knc-pmu/{VERSION}"), said
    root.run("dkms", "build", "-m", "knc-pmu", "-v", VERSION, "-k", root.release)
    root.run("knc-draw", "--help")
    assert root.run("pkg-config", "--modversion", "knc-pmu") == f"{VERSION}\n"
    said = root.run("rpm", "-e", *RPMS)
    assert not root.dkms_status(), said
    assert not (root.path / f"usr/src/knc-pmu-{VERSION}").exists()


# --- on the card ------------------------------------------------------------------

# What README.Debian and the log tell the user to type
PARAMETER = "initcall_blacklist=init_hw_perf_events"
INSTALL = """extra=/lib/modules/$(uname -r)/updates
mkdir -p ${extra%/*} && cp -r /uos/updates $extra && depmod || exit 1
modprobe "$(cat /sys/devices/system/cpu/modalias)" 2>&1
echo "modprobe $?"
dmesg | grep knc_pmu:"""
MEASURE = "perf stat -x, -e instructions:u,branches:u sh -c : 2>&1"


def on_card(folder, command, *options):
    """On Debian's kernel, with what DKMS has built"""
    return quietly(f"{SCRIPTS}/run-uos", "--kernel", "stock", "--add-dir",
                   f"{folder}/updates:/uos/updates", *options, "--", command)


def test_packages_refused(for_card):
    """Beside the kernel's own driver the module does not load, and says why."""
    said = on_card(for_card, INSTALL)
    assert re.search(r"^modprobe: .*Device or resource busy$", said, re.M), said
    assert re.search("^modprobe 1$", said, re.M), said
    # busybox tries each module twice.
    assert {line for line in re.findall(r"^[^]]*\] (.*knc_pmu:.*)", said, re.M)
            if "taint" not in line} == {
        f"knc_pmu: the kernel's own driver has the counters: boot with {PARAMETER}"}


def test_packages_load(for_card):
    line = quietly("sh", "-c", '. "$0" && echo "$GRUB_CMDLINE_LINUX"', f"{for_card}/knc-pmu.cfg",
                   env={**os.environ, "GRUB_CMDLINE_LINUX": "quiet"})
    assert line == f"quiet {PARAMETER}\n"
    readme = Path(TOP, "debian/knc-pmu-dkms.README.Debian").read_text()
    assert f"\n    {PARAMETER}\n" in readme
    said = on_card(for_card, f"{INSTALL}; {MEASURE}; knc-perf list '*page_walk*'; "
                   "knc-perf stat -M cpi_thread true 2>&1", "--append", line.strip(), "--add",
                   f"{for_card}/knc-perf:/usr/bin/knc-perf")
    assert re.search('knc_pmu: .*registered as "cpu"', said), said
    for event in ("instructions", "branches"):
        count = re.search(rf"^(\d+),,{event}:u,", said, re.M)
        assert count and int(count[1]) > 1000, said
    assert "[Page walks for instruction reads]" in said, said
    assert re.search(r" # +[1-9]\.\d+ +cpi_thread", said), said
