#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""knc-host watch on two emulated cards.

The cards run a program whose prefetches are its arguments, and nothing else on them
prefetches so: the file must have their sum. Meanwhile one card hangs, and goes away, and a CPU of
the other. Before, the driver comes late, and watch counts now and then: a person on the card
measures as if it did not.
"""
import contextlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from boots import WITHOUT_OWN_DRIVER

TOP = Path(__file__).resolve().parents[2]
INTERVAL = 0.5
EVENTS = ("l1_data_pf1", "l1_data_pf2")
PATIENCE = 120


class Failed(Exception):
    pass


def until(what, holds, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"not in {seconds} s: {what}")
        time.sleep(0.2)


def script(name, *args):
    done = subprocess.run([f"{TOP}/scripts/{name}", *args], check=False, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode:
        raise Failed(f"{name}: {done.stderr[-2000:]}")
    return done.stdout.strip()


class Cards:
    """mic0 and mic1"""

    def __init__(self, work, stack):
        self.sums = {(card, event): 0 for card in ("mic0", "mic1") for event in EVENTS}
        self.config = work / "cards/ssh_config"
        subprocess.run(["gcc", "-O2", "-static", "-o", work / "prefetch",
                        TOP / "tests/guest/tools/prefetch.c"], check=True)
        stack.callback(subprocess.run, [f"{TOP}/scripts/cards", "--end", work / "cards"],
                       check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        script("cards", work / "cards", "mic0", "mic1", "--", "--no-load",
               *WITHOUT_OWN_DRIVER.split(), f"--add={work}/prefetch:/root/prefetch")

    def ssh(self, card, command):
        done = subprocess.run(["ssh", "-F", self.config, card, command], check=False, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode:
            raise Failed(f"{card}: {command}: {done.stderr}")
        return done.stdout

    def prefetch(self, card, *numbers):
        self.ssh(card, "./prefetch {} {}".format(*numbers))
        for event, number in zip(EVENTS, numbers):
            self.sums[card, event] += number


class Watch:
    def __init__(self, work, config, stack, *args):
        self.said, self.file = work / "said", work / "knc.prom"
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                [f"{TOP}/tools/knc-host", "watch", "--prefix", f"ssh -F {config} {{}}",
                 "--textfile", self.file, *args],
                stdin=subprocess.DEVNULL, stderr=said)
        stack.callback(self.process.wait)
        stack.callback(self.process.terminate)

    def events(self):
        return {found[:2]: int(found[2]) for found in re.findall(
            r'^knc_events_total\{card="(.*)",event="(.*)"\} (\d+)$', self.file.read_text(), re.M)}

    def has_said(self, words):
        return words in self.said.read_text()

    def is_up(self, card, up=1):
        return self.file.exists() and f'knc_up{{card="{card}"}} {up}\n' in self.file.read_text()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(20)
        if status:
            raise Failed(f"watch: status {status}: {self.said.read_text()}")
        return self.said.read_text().splitlines()


def work_on(cards, seconds, *names):
    """For that long, with other numbers each time"""
    end, i = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for number, card in enumerate(names):
            cards.prefetch(card, 1000003 + 7 * i + number, 1009 + 3 * i)
        i += 1
        time.sleep(min(INTERVAL, max(0, end - time.monotonic())))


def agree(cards, watch):
    """The file has the sums, and has them some intervals later."""
    until("the file has the sums", lambda: watch.events() == cards.sums)
    time.sleep(5 * INTERVAL)
    if watch.events() != cards.sums:
        raise Failed(f"the file has more: {watch.events()}, not {cards.sums}")


def exact(cards, watch):
    both = ("mic0", "mic1")
    for card in both:
        until(f"{card} is up", lambda card=card: watch.is_up(card))
    work_on(cards, 5, *both)
    agree(cards, watch)

    # perf does not notice that a CPU has come or gone.
    cards.ssh("mic0", "echo 0 >/sys/devices/system/cpu/cpu3/online")
    until("a CPU is missed", lambda: watch.has_said("mic0 does not count: CPUs 0-2 are online"))
    until("mic0 counts", lambda: watch.has_said("mic0 counts again"))
    work_on(cards, 2, *both)
    agree(cards, watch)

    # One hangs, so that its ssh is silent.
    cards.ssh("mic1", "(sleep 1; kill -STOP $(pidof dropbear); sleep 20; kill -CONT $(pidof "
              "dropbear)) >/dev/null 2>&1 &")
    until("mic1 is silent", lambda: watch.has_said("mic1 does not count: it is silent"))
    work_on(cards, 2, "mic0")
    until("mic1 counts", lambda: watch.has_said("mic1 counts again"))
    until("the old perf ends", lambda: len(cards.ssh("mic1", "pidof perf").split()) == 1)
    work_on(cards, 2, *both)
    agree(cards, watch)

    # One is switched off.
    with contextlib.suppress(Failed):
        cards.ssh("mic1", "kill $(cat /tmp/dropbear.pid)")
    until("mic1 is down", lambda: watch.is_up("mic1", 0))
    work_on(cards, 2, "mic0")
    agree(cards, watch)


def end(cards, watch):
    """What was said, and what is left"""
    said = watch.end()
    if [line.partition(" watch: ")[2][:20] for line in said] != [
            "mic0 does not count:", "mic0 counts again", "mic1 does not count:",
            "mic1 counts again", "mic1 does not count:"]:
        raise Failed(f"watch said {said}")
    left = cards.ssh("mic0", "ps")
    if "perf stat" in left:
        raise Failed(f"left on mic0: {left}")
    return [f"{card} {event}: {number}, as the card executed"
            for (card, event), number in cards.sums.items()]


def leaves_room(cards, watch):
    """Without the driver at first; while another process has events open, and after it"""
    until("it is refused", lambda: watch.has_said("mic0: cycles is not supported"))
    for card in "mic0", "mic1":
        cards.ssh(card, "modprobe knc_pmu")
    until("mic0 is up", lambda: watch.is_up("mic0"))
    with subprocess.Popen(["ssh", "-F", cards.config, "mic0", "perf stat -e cycles cat"],
                          stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as other:
        until("it is seen", lambda: watch.has_said("mic0: another process counts there"))
        other.stdin.close()
    for _ in range(3):
        said = cards.ssh("mic0", "perf stat -x, -e '{cycles:u,instructions:u}' ./workload 2>&1")
        if len(re.findall(r"^[1-9]\d*,,.*:u,\d+,100.00,", said, re.M)) != 2:
            raise Failed(f"a person counted {said}")
    said = cards.ssh("mic0", "perf record -o /tmp/x -c 1000000 -e instructions:u ./workload 2>&1")
    if not re.search(r"\(\d+ samples\)", said):
        raise Failed(f"a person recorded {said}")


def main():
    # What has been started is ended in any case.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="watch.")))
        cards = Cards(work, stack)
        watch = Watch(work, cards.config, stack, "mic0", "-I", "1000")
        leaves_room(cards, watch)
        watch.end()
        watch = Watch(work, cards.config, stack, "mic0", "mic1", "-I", str(int(1000 * INTERVAL)),
                      "-e", ",".join(EVENTS), "--all")
        exact(cards, watch)
        print("\n".join(end(cards, watch)))


if __name__ == "__main__":
    try:
        main()
    except Failed as why:
        sys.exit(f"watch: {why}")
