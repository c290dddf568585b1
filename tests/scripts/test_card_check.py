# SPDX-License-Identifier: GPL-2.0-only
"""card-check on a host, with a card that is a directory; tests/guest has it with emulated ones."""
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
        os.mkdir("mic0")
        self.env = {"WORK": os.getcwd(), "CC": "gcc"}

    def card_check(self, *args, **env):
        """Status, what it says, and the file"""
        status, out, err = self.run_it("card-check", "--prefix", "./ssh {}", *args, **env)
        assert out == ""
        return status, err, Path("card-check-mic0.txt").read_text()

    def is_whole(self, status, err, text, tested=True):
        assert (status, "card-check-mic0.txt: please send this file" in err) == \
            ((0, True) if tested else (1, False)), err
        assert re.findall("^== (.*)", text, re.M) == \
            ["copying to the card", "kernel", "processor", "driver", "before the self-test",
             "self-test", "after the self-test", "end"]
        assert os.listdir("mic0") == []

    def ends_early(self, where, seconds, *args):
        """The file, if the card does not answer there for so many seconds"""
        begin = time.monotonic()
        status, err, text = self.card_check("--limit", str(seconds), *args)
        assert time.monotonic() - begin < 80
        told = f'== ended early, in "{where}": no answer in {seconds} seconds\n'
        assert status == 1 and told in err and told in text and "please send" not in err, err
        return text

    def program(self, source):
        subprocess.run(["gcc", "-o", "program", "-xc", "-"], check=True, input=source, text=True)
        return self.path("program")

    def test_card_check(self):
        for args in [], ["--prefix", "./phi run sh -c"]:
            done = self.card_check(*args, "mic0")
            self.is_whole(*done)
            assert "self-test: not done: the driver is not loaded\nstatus 2\n" in done[2]

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
        card_cc = self.path("card-cc", '#!/bin/sh\necho "$1" >>"$WORK/asked"\n'
                            '[ "$1" != --machine=62 ] || shift\nexec gcc "$@"\n')
        self.path("uname", "#!/bin/sh\necho k1om\n")
        self.is_whole(*self.card_check("mic0", CC=card_cc))
        self.card_check("mic0", CC=card_cc, PATH=f"{os.getcwd()}:{os.environ['PATH']}")
        assert Path("asked").read_text() == "--machine=62\n-O2\n"
        program = self.program("int main(void) { return 0; }")
        with open(program, "r+b") as f:
            f.seek(18)
            f.write(b"\xb5")
        done = self.card_check("--selftest", program, "mic0")
        self.is_whole(*done, tested=False)
        assert "is built for another machine" in done[2]

    def test_card_check_ssh_hangs(self):
        self.path("mic0/hangs", "")
        text = self.ends_early("copying to the card", 2, "mic0")
        assert re.search("/tmp/knc-card-check.[0-9]+ may be left on mic0", text), text

    def test_card_check_card_hangs(self):
        text = self.ends_early("self-test", 10, "--selftest", self.program(STUCK), "mic0")
        assert "== self-test\nok cpu 0: said\n" in text and "late" not in text, text
        assert os.listdir("mic0") == []

    def test_card_check_refuses(self):
        for words, why in (
                ("mic0;reboot", "no name of a card"), ("-x mic0", "no name of a card"),
                ("mic0 mic1", "mic1: one card at a time"), ("--limit", "--limit: which?"),
                ("--limit 2m mic0", "2m: no number of seconds"),
                ("--selftest /no/such mic0", "/no/such: no such file")):
            self.refuses(why, 2, "card-check", *words.split())
            assert not os.path.exists("card-check-mic0.txt")
