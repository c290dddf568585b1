# SPDX-License-Identifier: GPL-2.0-only
"""tools/card-check on a card's host, with a card that is a directory: what it runs there runs
here. tests/guest has the rest with emulated cards.
"""
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from common import PHI, ScriptTest

# A shell runs the command in the card's directory, which is its /tmp as well.
SSH = """#!/bin/sh
cd "$WORK/$1" || exit 255
[ ! -e hangs ] || { trap '' TERM; exec sleep 100; }
exec sh -c "$(echo "$2" | sed "s|/tmp/|$WORK/$1/|g")"
"""
# A self-test of which the card does not come back
STUCK = """#include <stdio.h>
#include <unistd.h>
int main(void) { puts("ok cpu 0: said"); fflush(stdout); sleep(100); puts("late"); }
"""


class TestCardCheck(ScriptTest):
    @pytest.fixture(autouse=True)
    def card(self, room):
        self.path("ssh", SSH)
        self.path("phi", PHI)
        os.mkdir(self.path("mic0"))

    def card_check(self, *args, CC="gcc", **env):
        """Status, what it says, and the file"""
        status, out, err = self.run_it("card-check", "--prefix", self.path("ssh") + " {}", *args,
                                       WORK=self.work, CC=CC, **env)
        assert out == ""
        return status, err, Path(self.path("card-check-mic0.txt")).read_text()

    def is_whole(self, status, err, text, tested=True):
        assert (status, "card-check-mic0.txt: please send this file" in err) == \
            ((0, True) if tested else (1, False)), err
        assert re.findall("^== (.*)", text, re.M) == \
            ["copying to the card", "kernel", "processor", "driver", "before the self-test",
             "self-test", "after the self-test", "end"]
        assert os.listdir(self.path("mic0")) == []

    def ends_early(self, where, why, status, err, text):
        assert status == 1
        told = f'== ended early, in "{where}": {why}\n'
        assert told in err
        assert told in text
        assert "please send" not in err

    def program(self, source):
        subprocess.run(["gcc", "-o", self.path("program"), "-x", "c", "-"], check=True,
                       input=source, text=True)
        return self.path("program")

    def test_card_check(self):
        done = self.card_check("mic0")
        self.is_whole(*done)
        assert "self-test: not done: the driver is not loaded\nstatus 2\n" in done[2]

    def test_card_check_prefix(self):
        self.is_whole(*self.card_check("--prefix", self.path("phi") + " run sh -c", "mic0"))

    def test_card_check_selftest(self):
        program = self.program('int puts(const char *); int main(void) { puts("mine"); }')
        done = self.card_check("--selftest", program, "mic0", CC="/no/such/compiler")
        self.is_whole(*done)
        assert "== self-test\nmine\nstatus 0\n" in done[2]

    def test_card_check_no_compiler(self):
        for compiler in ("", "/no/such/compiler", "false"):
            done = self.card_check("mic0", CC=compiler)
            self.is_whole(*done, tested=False)
            assert "card-check-mic0.txt has no self-test" in done[1]
            assert f"no self-test: {compiler or 'k1om-mpss-linux-gcc'} does not build it" in done[2]
            assert "./selftest is not there" in done[2]

    def test_card_check_machine(self):
        """card-cc builds for the machine of the card; for another one the self-test does not run"""
        card_cc = self.path("card-cc", b'#!/bin/sh\necho "$1" >>"$WORK/asked"\n'
                            b'[ "$1" != --machine=62 ] || shift\nexec gcc "$@"\n')
        self.path("uname", b"#!/bin/sh\necho k1om\n")
        self.is_whole(*self.card_check("mic0", CC=card_cc))
        self.card_check("mic0", CC=card_cc, PATH=f"{self.work}:{os.environ['PATH']}")
        assert Path(self.path("asked")).read_text() == "--machine=62\n-O2\n"
        program = self.program("int main(void) { return 0; }")
        with open(program, "r+b") as f:
            f.seek(18)
            f.write(b"\xb5")
        done = self.card_check("--selftest", program, "mic0")
        self.is_whole(*done, tested=False)
        assert "is built for another machine" in done[2]

    def test_card_check_ssh_hangs(self):
        self.path("mic0/hangs", b"")
        begin = time.monotonic()
        done = self.card_check("--limit", "2", "mic0")
        assert time.monotonic() - begin < 80
        self.ends_early("copying to the card", "no answer in 2 seconds", *done)
        assert re.search("/tmp/knc-card-check.[0-9]+ may be left on mic0", done[2]), done[2]

    def test_card_check_card_hangs(self):
        begin = time.monotonic()
        done = self.card_check("--limit", "10", "--selftest", self.program(STUCK), "mic0")
        assert time.monotonic() - begin < 80
        self.ends_early("self-test", "no answer in 10 seconds", *done)
        assert "== self-test\nok cpu 0: said\n" in done[2]
        assert "late" not in done[2]
        assert os.listdir(self.path("mic0")) == []

    def test_card_check_refuses(self):
        for args, why in (
                (["mic0;reboot"], "no name of a card"),
                (["-x", "mic0"], "no name of a card"),
                (["mic0", "mic1"], "mic1: one card at a time"),
                (["--limit"], "--limit: which?"),
                (["--limit", "2m", "mic0"], "2m: no number of seconds"),
                (["--selftest", "/no/such", "mic0"], "/no/such: no such file")):
            self.refuses(why, 2, "card-check", *args)
            assert not os.path.exists(self.path("card-check-mic0.txt"))
