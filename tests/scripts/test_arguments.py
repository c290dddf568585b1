# SPDX-License-Identifier: GPL-2.0-only
"""What is typed wrongly is refused at once, and nothing is built for it."""
import os

from common import SCRIPTS, TOP, ScriptTest

# These run in the guest, or are read by others.
NOT_TYPED = {"uos-init", "uos-save", "lib.sh"}
WITHOUT_ARGUMENTS = ("demo", "setup", "build-rootfs", "build-workload",
                     "bench-emulator")


def programs():
    for name in sorted(os.listdir(SCRIPTS)):
        path = os.path.join(SCRIPTS, name)
        if name not in NOT_TYPED and os.path.isfile(path) and os.access(path, os.X_OK):
            yield name


class Arguments(ScriptTest):
    def test_help(self):
        for name in programs():
            with self.subTest(name):
                status, out, err = self.unbuilt(name, "--help")
                self.assertEqual((status, err), (0, ""), name)
                self.assertIn(name, out.splitlines()[0])
                self.assertGreater(len(out), 80, f"{name}: says little: {out}")
                self.assertNotIn("shellcheck", out)

    def test_arguments_for_nothing(self):
        for name in WITHOUT_ARGUMENTS:
            with self.subTest(name):
                status, out, err = self.unbuilt(name, "nonsense")
                self.assertEqual((status, out), (2, ""))
                self.assertIn("nonsense", err)

    def test_shell_without_a_terminal(self):
        status, _, err = self.unbuilt("shell")
        self.assertEqual(status, 1)
        self.assertIn("this needs a terminal", err)

    def test_make_without_headers(self):
        for target in ("all", "modules_install", "clean"):
            status, _, err = self.unbuilt("make", "-C", TOP, target, "KDIR=/nosuch")
            self.assertEqual(status, 2)
            self.assertIn("/nosuch: there is no kernel build tree.", err)
            self.assertIn('"make KDIR=<build tree of the kernel', err)

    def test_unknown_test(self):
        for target in ("check", "check-guest", "check-unit", "check-debug"):
            status, out, err = self.unbuilt("make", "-C", TOP, target, "TEST=nosuch")
            with self.subTest(target):
                self.assertEqual(status, 2)
                self.assertNotIn("FAIL", out + err)
                self.assertEqual(err.count("no test is called nosuch"), 1, err)

    def test_unknown_part(self):
        status, _, err = self.unbuilt("check", "nosuch", TEST="")
        self.assertEqual(status, 1)
        self.assertIn("nosuch: no such part", err)
