# SPDX-License-Identifier: GPL-2.0-only
"""What is typed wrongly is refused at once, and nothing is built for it."""
import glob
import os
import shutil
from pathlib import Path

from common import ROOMS, TOP, ScriptTest
from lines import built, quietly

# It is read by others; the other runs on a card.
NOT_TYPED = {"lib.sh", "card-check"}
WITHOUT_ARGUMENTS = ("demo", "setup", "build-rootfs", "build-workload", "bench-emulator")


def programs():
    for room in ROOMS:
        for name in sorted(os.listdir(room)):
            path = os.path.join(room, name)
            if name not in NOT_TYPED and os.path.isfile(path) and os.access(path, os.X_OK):
                yield name


class TestArguments(ScriptTest):
    def test_help(self):
        for name in (*programs(), "card-check", "knc-host watch", "knc-draw card",
                        "knc-draw flame"):
            status, out, err = self.unbuilt(*name.split(), "--help", COLUMNS="80")
            assert (status, err) == (0, ""), name
            assert name in out.splitlines()[0]
            assert len(out) > 80, f"{name}: says little: {out}"
            assert max(map(len, out.splitlines())) <= 80, f"{name}: is wide: {out}"
            assert "shellcheck" not in out
            assert ("Not as in perf: -t" in out) == (name == "knc-metrics")

    def test_arguments_for_nothing(self):
        for name in WITHOUT_ARGUMENTS:
            self.refuses("nonsense", 2, name, "nonsense")

    def test_shell_without_a_terminal(self):
        self.refuses("this needs a terminal", 1, "shell")

    def test_cards(self):
        for args, status, why in (([], 2, "cards DIR CARD"), (["new"], 2, "cards DIR CARD"),
                                  (["new", "mic0;"], 1, "mic0;: names have letters"),
                                  ([self.work, "mic0"], 1, "is there already: name a new"),
                                  (["--end", "new"], 1, "new: there is no ssh_config")):
            self.refuses(why, status, "cards", *args)

    def test_make_without_headers(self):
        for target in ("all", "modules_install"):
            status, _, err = self.unbuilt("make", "-C", TOP, target, "KDIR=/nosuch")
            assert status == 2
            assert "/nosuch: there is no kernel build tree." in err
            assert '"make KDIR=<build tree of the kernel' in err

    def test_make_clean(self):
        """It needs no kernel, and leaves sources and the user's folders."""
        for name in "Makefile", ".gitignore":
            shutil.copy(f"{TOP}/{name}", self.work)
        kept = {"Makefile", ".gitignore", "a/x.c", "cards/x"}
        for name in ("a/x.c", "a/x.o", "a/.x.o.cmd", "a/x~", "cards/x", "x.ko", "x.mod.c",
                     "Module.symvers", "modules.order", "a/__pycache__/x.pyc"):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            self.path(name, b"")
        self.passes("make", "-s", "clean", "KDIR=/nosuch")
        assert {os.path.relpath(os.path.join(folder, name), self.work)
                for folder, _, names in os.walk(self.work) for name in names} == kept

    def test_unknown_test(self):
        for target in ("check", "check-guest", "check-unit", "check-debug"):
            status, out, err = self.unbuilt("make", "-C", TOP, target, "TEST=nosuch")
            assert status == 2
            assert "FAIL" not in out + err
            assert err.count("no test is called nosuch") == 1, err

    def test_unknown_part(self):
        self.refuses("nosuch: no such part", 2, "check", "nosuch", TEST="")


class TestInstall(ScriptTest):
    def test_make_install(self):
        dest = self.path("dest")
        self.passes("make", "-C", TOP, "install", f"DESTDIR={dest}", "prefix=/opt/knc")
        there = {os.path.relpath(os.path.join(folder, name), f"{dest}/opt/knc")
                 for folder, _, names in os.walk(dest) for name in names}
        assert {"include/knc_pmu_user.h", "share/pkgconfig/knc-pmu.pc",
                "share/man/man3/knc_pmu_user.3"} <= there
        for kind in ("perf", "perfmon"):
            assert [f for f in there if f.startswith(f"share/knc-pmu/{kind}/") and
                    f.endswith(".json")], f"no tables for {kind}"
        assert "@" not in Path(f"{dest}/opt/knc/share/pkgconfig/knc-pmu.pc").read_text()
        flags = self.passes("pkg-config", "--cflags", "knc-pmu",
                            PKG_CONFIG_PATH=f"{dest}/opt/knc/share/pkgconfig")
        assert flags.strip() == "-I/opt/knc/include -I/opt/knc/include/knc-pmu"
        commands = os.listdir(f"{dest}/opt/knc/bin")
        assert "knc-draw" in commands
        for name in commands:
            # Of the place where they will be
            assert os.readlink(f"{dest}/opt/knc/bin/{name}") == f"/opt/knc/share/knc-pmu/{name}"
            self.passes(f"{dest}/opt/knc/share/knc-pmu/{name}", "--help")
            self.man_page(f"{dest}/opt/knc/share/man/man1/{name}.1")
        assert self.run_it(f"{dest}/opt/knc/share/knc-pmu/knc-report", "-o", self.path("page"),
                           self.path("cpuinfo", b"processor\t: 0\n"))[0] == 0
        # Programs that are marked, with what is there
        include, examples = f"{dest}/opt/knc/include", f"{TOP}/Documentation/examples"
        flags = ("-Wall", "-Wextra", "-Werror", "-pthread", f"-I{include}",
                 f"-I{include}/knc-pmu", "-o", f"{dest}/program")
        self.passes("gcc", *flags, f"{examples}/matmul.c")
        self.passes("gcc", *flags, "-DLIKWID_PERFMON", f"{examples}/marked.c")
        self.passes(f"{dest}/program")

    def test_make_dist(self):
        """The tarball has all that the driver is made of."""
        self.passes("make", "-s", "-C", TOP, "dist", f"dist={self.work}/dist.tar.xz")
        self.passes("tar", "-x", "-C", self.work, "-f", f"{self.work}/dist.tar.xz")
        tree, = glob.glob(f"{self.work}/knc-pmu-*")
        quietly("make", "-s", "-C", tree, f"KDIR={built('build-kernel', 'stock')}/build")
        assert os.path.exists(f"{tree}/knc_pmu.ko")

    def man_page(self, page):
        """groff has nothing to say of it."""
        assert "SEE ALSO" in self.passes("groff", "-man", "-Tutf8", "-ww", "-P-cbou", page)

    def test_man_pages(self):
        for name in sorted(os.listdir(os.path.join(TOP, "man"))):
            if name != "from-help":
                self.man_page(os.path.join(TOP, "man", name))
