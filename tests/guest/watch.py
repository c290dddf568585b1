# SPDX-License-Identifier: GPL-2.0-only
"""knc-host watch on two emulated cards.

They run a program whose prefetches are its arguments, and nothing else there prefetches so: the
file must have their sum, while one card reboots, and a CPU of the other goes away. Before,
the driver comes late, and a person on the card measures as if watch did not.
"""
import contextlib
import re
import signal
import subprocess
import time
from pathlib import Path

import lines
from boots import WITHOUT_OWN_DRIVER
from lines import SCRIPTS, TESTS, TOP, quietly

HOST = f"{TOP}/tools/knc-host"
INTERVAL = 0.5
EVENTS = ("l1_data_pf1", "l1_data_pf2")


def until(what, holds):
    lines.until(holds, 120, lambda: f"not in 120 s: {what}")


class Cards:
    """mic0 and mic1"""

    def __init__(self, work, stack):
        self.sums = {(card, event): 0 for card in ("mic0", "mic1") for event in EVENTS}
        self.config = work / "cards/ssh_config"
        quietly("gcc", "-O2", "-static", "-o", work / "prefetch", f"{TESTS}/guest/tools/prefetch.c")
        stack.callback(subprocess.run, [f"{SCRIPTS}/cards", "--end", work / "cards"],
                       check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        quietly(f"{SCRIPTS}/cards", work / "cards", "mic0", "mic1", "--", "--no-load",
                *WITHOUT_OWN_DRIVER.split(), f"--add={work}/prefetch:/root/prefetch",
                "--qemu-arg=-action", "--qemu-arg=reboot=reset")

    def ssh(self, card, command):
        return quietly("ssh", "-F", self.config, card, command)

    def prefetch(self, card, *numbers):
        self.ssh(card, "./prefetch {} {}".format(*numbers))
        for event, number in zip(EVENTS, numbers):
            self.sums[card, event] += number


class Watch:
    def __init__(self, work, config, stack, *args):
        self.said, self.file = work / "said", work / "knc.prom"
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                [HOST, "watch", "--prefix", f"ssh -F {config} {{}}", "--textfile", self.file, *args],
                stdin=subprocess.DEVNULL, stderr=said)
        stack.callback(self.process.wait)
        stack.callback(self.process.terminate)

    def events(self):
        return {found[:2]: float(found[2]) for found in re.findall(
            r'^knc_events_total\{card="(.*)",event="(.*)"\} (.+)$', self.file.read_text(), re.M)}

    def has_said(self, words):
        return words in self.said.read_text()

    def is_up(self, card, up=1):
        return self.file.exists() and f'knc_up{{card="{card}"}} {up}.0\n' in self.file.read_text()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0, self.said.read_text()
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
    assert watch.events() == cards.sums, f"the file has more: {watch.events()}, not {cards.sums}"


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


def reboots(cards, watch):
    """mic1, which has its driver late again, and another key"""
    cards.ssh("mic1", "(sleep 1; reboot -f) >/dev/null 2>&1 &")
    until("mic1 is down", lambda: watch.is_up("mic1", 0))
    (cards.config.parent / "known_hosts").unlink()
    work_on(cards, 2, "mic0")
    until("mic1 is there", lambda: subprocess.run(
        ["ssh", "-F", cards.config, "mic1", "modprobe knc_pmu"], check=False).returncode == 0)
    until("mic1 is up", lambda: watch.is_up("mic1"))
    work_on(cards, 2, "mic0", "mic1")
    agree(cards, watch)


def end(cards, watch):
    """What was said, and what is left"""
    said = watch.end()
    assert [line.partition(" watch: ")[2][:20] for line in said] == [
        f"{card} {what}" for card in ("mic0", "mic1")
        for what in ("does not count:", "counts again")], said
    assert "perf stat" not in cards.ssh("mic0", "ps"), "perf is left on mic0"
    return [f"{card} {event}: {number}, as the card executed"
            for (card, event), number in cards.sums.items()]


def leaves_room(cards, watch):
    """Without the driver at first; while another process has events open, and after it"""
    until("it is refused", lambda: watch.has_said("mic0: cycles:u is not supported"))
    for card in "mic0", "mic1":
        cards.ssh(card, "modprobe knc_pmu")
    until("mic0 is up", lambda: watch.is_up("mic0"))
    with subprocess.Popen(["ssh", "-F", cards.config, "mic0", "perf stat -e cycles cat"],
                          stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as other:
        until("it is seen", lambda: watch.has_said("mic0: another process counts there"))
        other.stdin.close()
    for _ in range(3):
        said = cards.ssh("mic0", "perf stat -x, -e '{cycles:u,instructions:u}' ./workload 2>&1")
        assert len(re.findall(r"^[1-9]\d*,,.*:u,\d+,100.00,", said, re.M)) == 2, said
    said = cards.ssh("mic0", "perf record -o /tmp/x -c 1000000 -e instructions:u ./workload 2>&1")
    assert re.search(r"\(\d+ samples\)", said), said


def watch(folder):
    """What knc-host watch has written, beside what the cards executed"""
    with contextlib.ExitStack() as stack:
        work = Path(folder)
        cards = Cards(work, stack)
        first = Watch(work, cards.config, stack, "mic0", "-I", "1000")
        leaves_room(cards, first)
        first.end()
        second = Watch(work, cards.config, stack, "mic0", "mic1", "-I", str(int(1000 * INTERVAL)),
                       "-e", ",".join(EVENTS), "--all")
        exact(cards, second)
        reboots(cards, second)
        return end(cards, second)
