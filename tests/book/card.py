# SPDX-License-Identifier: GPL-2.0-only
"""An emulated card that stays, and is given one command after another: over a serial
line of its own, as ssh would by a network.

As a program: card.py SOCKET COMMAND... runs one, as "ssh CARD COMMAND..." does, and
"card.py SOCKET --copy FILE..." puts files into the card's /root, as scp does.
"""
import base64
import fcntl
import gzip
import os
import shlex
import socket
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What the serial line's buffer in the card surely holds
CHUNK = 3000
# On the card: what is to be run comes in pieces, each of which is acknowledged, and
# what it has printed goes back, packed, since the line is slow.
SERVER = """
stty -F /dev/ttyS3 raw -echo
exec 3<>/dev/ttyS3
cd /root
echo ready >&3
while read -r what text <&3; do
	case $what in
	add)
		echo "$text" >>/tmp/.card
		echo more >&3 ;;
	run)
		base64 -d /tmp/.card >/tmp/.command
		rm /tmp/.card
		sh /tmp/.command </dev/null >/tmp/.out 2>/tmp/.err
		status=$?
		gzip -c1 /tmp/.out | base64 >&3
		echo . >&3
		gzip -c1 /tmp/.err | base64 >&3
		echo ". $status" >&3 ;;
	end)
		exit 0 ;;
	esac
done
"""


class Line:
    """The serial line of a card, for one of us at a time."""

    def __init__(self, path, timeout):
        self.lock = open(path + ".lock", "wb")  # pylint: disable=consider-using-with
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()
        self.lock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, line):
        self.socket.sendall(line.encode() + b"\n")

    def receive(self):
        line = self.file.readline()
        if not line.endswith(b"\n"):
            raise OSError("the card is gone")
        return line.decode().strip()

    def packed(self):
        """What a program has printed, and what follows the mark behind it."""
        text = ""
        while True:
            line = self.receive()
            if line.startswith("."):
                return gzip.decompress(base64.b64decode(text)), line[1:].strip()
            text += line

    def run(self, command):
        """Status, standard output and standard error."""
        text = base64.b64encode(command.encode()).decode()
        for at in range(0, len(text), CHUNK):
            self.send("add " + text[at:at + CHUNK])
            if self.receive() != "more":
                raise OSError("the card has lost the thread")
        self.send("run")
        out, _ = self.packed()
        err, status = self.packed()
        return int(status), out, err

    def put(self, path):
        with open(path, "rb") as f:
            packed = base64.encodebytes(gzip.compress(f.read())).decode()
        there = shlex.quote("/root/" + os.path.basename(path))
        return self.run(f"base64 -d <<EOF | gzip -dc >{there}\n{packed}EOF\n")


class Card:
    """One that is booted, and its socket."""

    def __init__(self, path, *options, timeout=900):
        self.path, self.timeout = path, timeout
        self.qemu = subprocess.Popen(  # pylint: disable=consider-using-with
            [f"{TOP}/scripts/run-uos", "--timeout", "3000", *options,
             "--qemu-arg=-chardev",
             f"--qemu-arg=socket,id=card,path={path},server=on,wait=on",
             "--qemu-arg=-device",
             "--qemu-arg=isa-serial,index=3,iobase=0x2e8,irq=5,chardev=card",
             "--", SERVER],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def wait(self):
        """Until it listens. QEMU waits for us before it boots."""
        end = time.monotonic() + self.timeout
        while not os.path.exists(self.path):
            if self.qemu.poll() is not None or time.monotonic() > end:
                raise OSError(f"no card: {self.qemu.stdout.read().decode()}")
            time.sleep(0.1)
        # Whoever leaves the line ends nothing: QEMU goes on listening.
        with Line(self.path, self.timeout) as line:
            while line.receive() != "ready":
                pass

    def run(self, command):
        with Line(self.path, self.timeout) as line:
            return line.run(command)

    def end(self):
        """Its status, and what run-uos had to say."""
        if self.qemu.poll() is None and os.path.exists(self.path):
            try:
                with Line(self.path, 10) as line:
                    line.send("end")
                    self.qemu.wait(60)
            except (OSError, subprocess.TimeoutExpired):
                self.qemu.terminate()
        said = self.qemu.stdout.read().decode(errors="replace")
        return self.qemu.wait(), said


def main():
    path, words = sys.argv[1], sys.argv[2:]
    with Line(path, 900) as line:
        if words[0] != "--copy":
            status, out, err = line.run(" ".join(words))
            sys.stdout.buffer.write(out)
            sys.stderr.buffer.write(err)
            return status
        for name in words[1:]:
            status, _, err = line.put(name)
            sys.stderr.buffer.write(err)
            if status:
                return status
        return 0


if __name__ == "__main__":
    sys.exit(main())
