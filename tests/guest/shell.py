#!/usr/bin/env python3
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
import sys
import tempfile
import termios
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROMPT = b"~ # "
LINES, COLUMNS = 41, 133


class Failed(Exception):
    pass


class Terminal:
    def __init__(self, command, cwd, timeout):
        self.deadline, self.seen = time.monotonic() + timeout, b""
        self.child, self.fd = pty.fork()
        if not self.child:
            fcntl.ioctl(0, termios.TIOCSWINSZ,
                        struct.pack("HHHH", LINES, COLUMNS, 0, 0))
            os.chdir(cwd)
            os.environ["TERM"] = "xterm-256color"
            os.execv(command[0], command)

    def read(self):
        """What has come; False at the end."""
        left = self.deadline - time.monotonic()
        if left <= 0 or not select.select([self.fd], [], [], left)[0]:
            raise Failed(f"out of time after: {self.seen[-300:]!r}")
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.seen += data
        return bool(data)

    def until(self, what):
        while what not in self.seen:
            if not self.read():
                raise Failed(f"ended before {what!r}: {self.seen[-300:]!r}")
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
    if not re.search(pattern, found):
        raise Failed(f"{what}: {found!r}")


def session(work):
    # The guest has the host's clock, and the host may be busy: it takes half a minute.
    there = Terminal([os.path.join(TOP, "scripts", "shell")], work, 3600)
    opening = there.until(PROMPT)
    noise = [line for line in opening.splitlines()
             if re.search(r"\] |Error|error", line)]
    if noise:
        raise Failed(f"it opens with {len(noise)} lines of the kernel's: {noise[0]}")
    want("welcome", opening, r"Try: perf stat")
    want("stty size", there.type("stty size"), rf"^{LINES} {COLUMNS}$")
    want("TERM", there.type("echo $TERM"), "^xterm-256color$")
    want("errors at boot", there.type("dmesg | grep -c 'ACPI.*Error'"), "^0$")
    want("perf record", there.type("perf record -q -c 100000 -e instructions ./workload"),
         "primes below")
    for asked, named in (("-e VPU_ELEMENTS_ACTIVE/u,cycles", "vpu_elements_active"),
                         ("-M v_pipe_share", "v_pipe_share"), ("-M pairing", "pairing")):
        want("what has no model", there.type(f"perf stat {asked} true"),
             f"^perf: not modelled by the emulator, so a 0 is not a count: {named}\n(?!perf: not)")
    want("knc-metrics", there.type("knc-metrics -u -M ipc ./workload"), r"\nipc +0\.[45]\d+")
    size = there.type("wc -c <perf.data")
    want("save", there.type("save perf.data nosuch"), "^save: nosuch: no such file$")
    status = there.finish("poweroff")
    if status:
        raise Failed(f"status {status}: {there.seen[-300:]!r}")
    if os.path.getsize(os.path.join(work, "perf.data")) != int(size):
        raise Failed("the saved file is not the guest's")


def main():
    with tempfile.TemporaryDirectory() as work:
        try:
            session(work)
        except (Failed, OSError, ValueError) as why:
            print(f"FAIL shell {why}")
            return 1
    print("ok shell")
    return 0


if __name__ == "__main__":
    sys.exit(main())
