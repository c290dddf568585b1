# SPDX-License-Identifier: GPL-2.0-only
"""scripts/shell, as somebody at a terminal has it: how it opens, the size of the
terminal, perf, knc-metrics, and a file that is taken home.
"""
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

from lines import SCRIPTS

PROMPT = b"~ # "
LINES, COLUMNS = 41, 133


class Terminal:
    def __init__(self, command, cwd, timeout):
        self.deadline, self.seen = time.monotonic() + timeout, b""
        self.child, self.fd = pty.fork()
        if not self.child:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
            os.chdir(cwd)
            os.environ["TERM"] = "xterm-256color"
            os.execv(command[0], command)

    def read(self):
        """What has come; False at the end."""
        left = self.deadline - time.monotonic()
        assert left > 0 and select.select([self.fd], [], [], left)[0], \
            f"out of time after: {self.seen[-300:]!r}"
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.seen += data
        return bool(data)

    def until(self, what):
        while what not in self.seen:
            assert self.read(), f"ended before {what!r}: {self.seen[-300:]!r}"
        text, self.seen = self.seen.split(what, 1)
        return text.decode(errors="replace").replace("\r", "")

    def type(self, line):
        """What a command prints, without its echo."""
        os.write(self.fd, line.encode() + b"\n")
        return self.until(PROMPT).partition("\n")[2].strip()

    def finish(self, line):
        os.write(self.fd, line.encode() + b"\n")
        while self.read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])


def want(what, found, pattern):
    assert re.search(pattern, found), f"{what}: {found!r}"


def shell(work):
    # The guest has the host's clock, and the host may be busy: it takes half a minute.
    there = Terminal([f"{SCRIPTS}/shell"], work, 3600)
    opening = there.until(PROMPT)
    noise = [line for line in opening.splitlines() if re.search(r"\] |Error|error", line)]
    assert not noise, f"it opens with lines of the kernel's: {noise}"
    want("welcome", opening, r"Try: perf stat")
    want("stty size", there.type("stty size"), rf"^{LINES} {COLUMNS}$")
    want("TERM", there.type("echo $TERM"), "^xterm-256color$")
    want("errors at boot", there.type("dmesg | grep -c 'ACPI.*Error'"), "^0$")
    want("perf record", there.type("perf record -q -c 100000 -e instructions ./workload"),
         "primes below")
    for asked, named in (("-e VPU_STALL_REG/u,cycles", "vpu_stall_reg"),
                         ("-M v_pipe_share", "v_pipe_share"), ("-M pairing", "pairing")):
        want("what has no model", there.type(f"perf stat {asked} true"),
             f"^perf: not modelled by the emulator, so a 0 is not a count: {named}\n(?!perf: not)")
    want("knc-metrics", there.type("knc-metrics -u -M ipc ./workload"), r"\nipc +0\.[45]\d+")
    size = there.type("wc -c <perf.data")
    want("save", there.type("save perf.data nosuch"), "^save: nosuch: no such file$")
    status = there.finish("poweroff")
    assert status == 0, f"status {status}: {there.seen[-300:]!r}"
    assert os.path.getsize(f"{work}/perf.data") == int(size), "the saved file is not the guest's"
