# SPDX-License-Identifier: GPL-2.0-only
"""What is typed wrongly is refused at once, and nothing is built for it."""
import glob
import os
import shutil
from pathlib import Path

from common import ROOMS, TOP, ScriptTest
from lines import built, quietly


class TestArguments(ScriptTest):
    def test_help(self):
        programs = {os.path.basename(path) for room in ROOMS for path in glob.glob(f"{room}/*")
                    if os.path.isfile(path) and os.access(path, os.X_OK)}
        # lib.sh is read by others.
        for name in programs - {"lib.sh"} | {"knc-host watch", "knc-draw card", "knc-draw flame"}:
            status, out, err = self.unbuilt(*name.split(), "--help", COLUMNS="80")
            assert (status, err, name in out.splitlines()[0]) == (0, "", True), name
            assert len(out) > 80, f"{name}: says little: {out}"
            assert max(map(len, out.splitlines())) <= 80, f"{name}: is wide: {out}"
            assert "shellcheck" not in out
            assert ("Not as in perf: -t" in out) == (name == "knc-metrics")

    def test_arguments(self):
        for words, status, why in (
                *((f"{name} nonsense", 2, "nonsense") for name in (
                    "demo", "setup", "build-rootfs", "build-workload", "bench-emulator")),
                ("shell", 1, "this needs a terminal"), ("check nosuch", 2, "nosuch: no such part"),
                ("cards", 2, "cards DIR CARD"), ("cards new", 2, "cards DIR CARD"),
                ("cards new mic0;", 1, "mic0;: names have letters"),
                ("cards . mic0", 1, "is there already: name a new"),
                ("cards --end new", 1, "new: there is no ssh_config")):
            self.refuses(why, status, *words.split(), TEST="")

    def test_make_without_headers(self):
        for target in ("all", "modules_install"):
            status, _, err = self.unbuilt("make", "-C", TOP, target, "KDIR=/nosuch")
            assert status == 2 and "/nosuch: there is no kernel build tree." in err, err
            assert '"make KDIR=<build tree of the kernel' in err

    def test_make_clean(self):
        """It needs no kernel, and leaves sources and the user's folders."""
        for name in "Makefile", ".gitignore":
            shutil.copy(f"{TOP}/{name}", ".")
        kept = {"Makefile", ".gitignore", "a/x.c", "cards/x"}
        for name in ("a/x.c", "a/x.o", "a/.x.o.cmd", "a/x~", "cards/x", "x.ko", "x.mod.c",
                     "Module.symvers", "modules.order", "a/__pycache__/x.pyc"):
            self.path(name, "")
        self.passes("make", "-s", "clean", "KDIR=/nosuch")
        assert {str(path) for path in Path().rglob("*") if path.is_file()} == kept

    def test_unknown_test(self):
        for target in ("check", "check-guest", "check-unit", "check-debug"):
            status, out, err = self.unbuilt("make", "-C", TOP, target, "TEST=nosuch")
            assert (status, "FAIL" in out + err) == (2, False), err
            assert err.count("no test is called nosuch") == 1, err


class TestInstall(ScriptTest):
    def test_make_install(self):
        assert "python3-jinja2" in self.passes("make", "-C", TOP, "install", f"DESTDIR={os.getcwd()}",
                                               "prefix=/opt/knc")
        dest = Path("opt/knc").absolute()
        assert (dest / "include/knc_pmu_user.h").exists()
        for kind in ("perf", "perfmon"):
            assert [*dest.glob(f"share/knc-pmu/{kind}/**/*.json")], f"no tables for {kind}"
        assert "@" not in (dest / "share/pkgconfig/knc-pmu.pc").read_text()
        flags = self.passes("pkg-config", "--cflags", "knc-pmu",
                            PKG_CONFIG_PATH=f"{dest}/share/pkgconfig")
        assert flags.strip() == "-I/opt/knc/include -I/opt/knc/include/knc-pmu"
        commands = os.listdir(dest / "bin")
        assert "knc-draw" in commands
        for name in commands:
            # Of the place where they will be
            assert os.readlink(dest / "bin" / name) == f"/opt/knc/share/knc-pmu/{name}"
            self.passes(f"{dest}/share/knc-pmu/{name}", "--help")
        pages = {page.name: page for page in dest.glob("share/man/man?/*")}
        assert {*pages} == {"knc_pmu.4", "knc_pmu_regions.3", "knc_pmu_user.3", *(
            f"{name}.1" for name in commands)}
        # groff has nothing to say of them.
        for page in pages.values():
            assert "SEE ALSO" in self.passes("groff", "-man", "-Tutf8", "-ww", "-P-cbou", page)
        assert self.run_it(f"{dest}/share/knc-pmu/knc-report", "-o", "page",
                           self.path("cpuinfo", "processor\t: 0\n"))[0] == 0
        # Programs that are marked, with what is there
        flags = ("-Wall", "-Wextra", "-Werror", "-pthread", f"-I{dest}/include",
                 f"-I{dest}/include/knc-pmu", "-o", "program")
        self.passes("gcc", *flags, f"{TOP}/Documentation/examples/matmul.c")
        self.passes("gcc", *flags, "-DLIKWID_PERFMON", f"{TOP}/Documentation/examples/marked.c")
        self.passes("./program")

    def test_make_dist(self):
        """The tarball has all that the driver is made of."""
        self.passes("make", "-s", "-C", TOP, "dist", f"dist={os.getcwd()}/dist.tar.xz")
        self.passes("tar", "-x", "-f", "dist.tar.xz")
        tree, = glob.glob("knc-pmu-*")
        quietly("make", "-s", "-C", tree, f"KDIR={built('build-kernel', 'stock')}/build")
        assert os.path.exists(f"{tree}/knc_pmu.ko")
