#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""knc-host watch on two emulated cards, one with perf and one with knc-stat; Debian's
node_exporter reads its file, and Debian's Prometheus asks node_exporter.

The cards run a program whose prefetches are its arguments, and nothing else on them
prefetches so: what Prometheus answers must be their sum. Meanwhile one card goes away. With
TEST_WATCH_SECONDS it is booted again, the other card hangs for some time, and all of that
takes so long; then events take turns.
"""
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SECONDS = int(os.environ.get("TEST_WATCH_SECONDS") or 0)
# Between intervals, and between the questions of Prometheus
INTERVAL = 5 if SECONDS > 300 else 1
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


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Cards:
    """mic0 and mic1. Those of "again" are the same cards after another boot."""

    def __init__(self, work, stack):
        self.work, self.stack = work, stack
        self.sums = {(card, event): 0 for card in ("mic0", "mic1") for event in EVENTS}
        self.config = work / "ssh_config"
        # The first that has a card is the one that ssh takes.
        self.config.write_text(f"Include {work}/again/ssh_config\nInclude {work}/cards/ssh_config\n")
        for name, source in (("prefetch", "tests/guest/tools/prefetch.c"),
                             ("knc-stat", "tools/knc-stat.c")):
            subprocess.run(["gcc", "-O2", "-static", "-o", work / name, TOP / source],
                           check=True)

    def boot(self, name, *cards):
        added = [f"--add={self.work}/{file}:/root/{file}" for file in ("prefetch", "knc-stat")]
        self.stack.callback(self.end, name)
        script("cards", self.work / name, *cards, "--", *added)
        for card in cards:
            counter = "/usr/sbin/perf" if card == "mic0" else "knc-stat"
            self.ssh(card, f"ln -s {counter} counter")

    def end(self, name):
        """What has been ended is not an error."""
        if (self.work / name / "ssh_config").exists():
            subprocess.run([f"{TOP}/scripts/cards", "--end", self.work / name], check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

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

    def emulator(self, card):
        """Its process"""
        port = subprocess.run(["ssh", "-F", self.config, "-G", card], check=True, text=True,
                              capture_output=True).stdout.split("\nport ")[1].split()[0]
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if f"hostfwd=tcp:127.0.0.1:{port}-:22".encode() in path.read_bytes() and \
                        b"qemu-system" in path.read_bytes().split(b"\0")[0]:
                    return int(path.parent.name)
        raise Failed(f"{card} has no emulator")


class Prometheus:
    """Debian's Prometheus and node_exporter, for one directory of files"""

    def __init__(self, work, programs, stack):
        self.port, exporter = free_port(), free_port()
        (work / "textfiles").mkdir()
        (work / "prometheus.yml").write_text(f"""
global:
  scrape_interval: {INTERVAL}s
  evaluation_interval: {INTERVAL}s
rule_files: [{TOP}/Documentation/examples/knc-rules.yml]
scrape_configs:
  - job_name: node
    static_configs: [{{targets: ["127.0.0.1:{exporter}"]}}]
""")
        for command in (
                ["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{exporter}",
                 f"--collector.textfile.directory={work}/textfiles"],
                ["prometheus", f"--web.listen-address=127.0.0.1:{self.port}",
                 f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/tsdb"]):
            with open(work / f"{command[0]}.log", "wb") as log:
                process = subprocess.Popen([f"{programs}/{command[0]}", *command[1:]],
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        until("Prometheus answers", lambda: self.ask("up") == {(): 1})

    def ask(self, query, *by):
        """{values of these labels: value}; in a query there are no others."""
        url = f"http://127.0.0.1:{self.port}/api/v1/query?" + \
            urllib.parse.urlencode({"query": query})
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                result = json.load(answer)["data"]["result"]
        except OSError:
            return None
        return {tuple(row["metric"][name] for name in by): float(row["value"][1])
                for row in result}

    def events(self):
        return self.ask("knc_events_total", "card", "event")

    def is_up(self, card):
        return self.ask(f'knc_up{{card="{card}"}}') == {(): 1}

    def is_down(self, card):
        return self.ask(f'knc_up{{card="{card}"}}') == {(): 0}


class Watch:
    def __init__(self, work, config, stack, *args):
        self.said = work / "said"
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                [f"{TOP}/tools/knc-host", "watch", "--prefix", f"ssh -F {config} {{}}", "--perf",
                 "./counter", "--openmetrics", work / "textfiles/knc.prom", *args],
                stdin=subprocess.DEVNULL, stderr=said)
        stack.callback(self.process.wait)
        stack.callback(self.process.terminate)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(20)
        if status:
            raise Failed(f"watch: status {status}: {self.said.read_text()}")
        return self.said.read_text().splitlines()

    def resident(self):
        """Kilobytes"""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])


def work_on(cards, seconds, *names):
    """For that long, with other numbers each time"""
    end, i = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for number, card in enumerate(names):
            cards.prefetch(card, 1000003 + 7 * i + number, 1009 + 3 * i)
        i += 1
        time.sleep(min(INTERVAL, max(0, end - time.monotonic())))


def agree(cards, prometheus):
    """Prometheus answers with the sums, and does so one interval later."""
    until("Prometheus has the sums", lambda: prometheus.events() == cards.sums)
    time.sleep(2 * INTERVAL + 1)
    if prometheus.events() != cards.sums:
        raise Failed(f"Prometheus has more: {prometheus.events()}, not {cards.sums}")


def exact(cards, prometheus):
    """Returns how the messages of watch begin."""
    both = ("mic0", "mic1")
    for card in both:
        until(f"{card} is up", lambda card=card: prometheus.is_up(card))
    work_on(cards, SECONDS / 3 or 5, *both)
    agree(cards, prometheus)

    # One is switched off.
    with contextlib.suppress(Failed):
        cards.ssh("mic1", "kill $(cat /tmp/dropbear.pid)")
    until("mic1 is down", lambda: prometheus.is_down("mic1"))
    work_on(cards, SECONDS / 6 or 2, "mic0")
    agree(cards, prometheus)
    return ["mic1 has gone away:"]


def exact_again(cards, prometheus, watch):
    """It is booted again."""
    both = ("mic0", "mic1")
    cards.boot("again", "mic1")
    until("mic1 is up again", lambda: prometheus.is_up("mic1"))
    work_on(cards, SECONDS / 6, *both)
    agree(cards, prometheus)
    memory = watch.resident()

    # The other hangs.
    emulator = cards.emulator("mic0")
    os.kill(emulator, signal.SIGSTOP)
    try:
        until("mic0 is down", lambda: prometheus.is_down("mic0"))
        if not prometheus.is_up("mic1"):
            raise Failed("mic1 is not counted while mic0 hangs")
        cards.prefetch("mic1", 12345, 678)
    finally:
        os.kill(emulator, signal.SIGCONT)
    until("mic0 is up again", lambda: prometheus.is_up("mic0"))
    # Until what counted there before it hung has ended
    until("one perf on mic0", lambda: cards.ssh("mic0", "pidof perf").count(" ") == 0)
    time.sleep(INTERVAL)
    work_on(cards, SECONDS / 3, *both)
    agree(cards, prometheus)

    more = watch.resident() - memory
    if more > 1000:
        raise Failed(f"watch has grown by {more} kB")
    return ["mic1 counts again", "mic0 has gone away: it is silent", "mic0 counts again"]


def end(cards, prometheus, watch, expected, *there):
    """What was said, and what is left"""
    backward = prometheus.ask("resets(knc_events_total[1h]) + resets(knc_counted_seconds_total[1h])",
                              "card", "event")
    if {*backward.values()} != {0}:
        raise Failed(f"counters went backward: {backward}")
    said = watch.end()
    if len(said) != len(expected) or not all(
            line.startswith(f"knc-host watch: {words}") for line, words in zip(said, expected)):
        raise Failed(f"watch said {said}")
    for card in there:
        left = cards.ssh(card, "ps")
        if "counter stat" in left or "perf stat" in left:
            raise Failed(f"left on {card}: {left}")
    return [f"{card} {event}: {number}, as the card executed"
            for (card, event), number in cards.sums.items()]


def turns(cards, prometheus, work, stack):
    """Events that take turns, with the rules of the example: the part of the prefetches that
    was counted is about the part of the time for which they were."""
    both = ("mic0", "mic1")
    # A card whose threads are all busy with the model of the memory is slow: its intervals take
    # long by this machine's clock.
    watch = Watch(work, cards.config, stack, *both, "-I", "500", "-e", "{cycles,instructions}",
                  "-e", "l2_data_read_miss_mem_fill,l2_data_write_miss_mem_fill,hwp_l2miss",
                  "-e", "l1_data_pf1")
    query = 'knc_last_interval_timestamp_seconds and on (card) knc_events_total{event="cycles"}'
    until("turns are counted", lambda: len(prometheus.ask(query, "card") or ()) == 2)
    for card in both:
        cards.ssh(card, "while [ ! -e stop ]; do ./prefetch 100000 0; echo; done "
                  ">runs 2>&1 </dev/null &")
    time.sleep(5)

    def now():
        """{card: [its time, executed, counted, seconds counted]}. Its clock may be faster
        than this machine's when its threads are busy."""
        found = {}
        for card in both:
            told = prometheus.ask('{__name__=~"knc_(events|counted_seconds)_total",card="%s",'
                                  'event="l1_data_pf1"}' % card, "__name__")
            uptime, runs = cards.ssh(card, "cut -d ' ' -f 1 /proc/uptime; wc -l <runs").split()
            found[card] = [float(uptime), 100000 * int(runs), told["knc_events_total",],
                           told["knc_counted_seconds_total",]]
        return found

    began = now()
    until("some seconds pass", lambda: time.sleep(5) or
          min(now()[card][3] - began[card][3] for card in both) > 2, 600)
    ended = now()
    for card in both:
        cards.ssh(card, "touch stop")
    ratios = prometheus.ask("card:knc_cycles_per_instruction:rate5m", "card")
    fills = prometheus.ask("card:knc_memory_read_bytes:rate5m", "card")
    said = watch.end()
    notes = []
    for card in both:
        whole, executed, counted, seconds = (x - y for x, y in zip(ended[card], began[card]))
        notes.append(f"{card}: counted {counted:.0f} of {executed} prefetches in {seconds:.1f} of "
                     f"{whole:.1f} s; {ratios[card,]:.2f} cycles for each instruction")
        # While an event of the memory's model is programmed the emulator executes less. If
        # perf scaled, there would be more than half of them.
        share = seconds / whole
        if share > 0.6 or not 0.3 * share < counted / executed < 1.4 * share:
            raise Failed(notes[-1])
        # An instruction takes two cycles, which all four threads of the core read.
        if not 2 < ratios[card,] < 12 or fills[card,] < 0:
            raise Failed(notes[-1])
    if said:
        raise Failed(f"watch said {said}")
    return notes


def main():
    # What has been started is ended in any case.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    programs = script("build-programs", "prometheus", "prometheus-node-exporter")
    programs += "/usr/bin"
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="watch.")))
        cards = Cards(work, stack)
        cards.boot("cards", "mic0", "mic1")
        prometheus = Prometheus(work, programs, stack)
        watch = Watch(work, cards.config, stack, "mic0", "mic1", "-I", str(500 * INTERVAL),
                      "-e", ",".join(EVENTS))
        said = exact(cards, prometheus)
        if SECONDS:
            said += exact_again(cards, prometheus, watch)
        there = ("mic0", "mic1") if SECONDS else ("mic0",)
        print("\n".join(end(cards, prometheus, watch, said, *there)), flush=True)
        if SECONDS:
            print("\n".join(turns(cards, prometheus, work, stack)))


if __name__ == "__main__":
    try:
        main()
    except Failed as why:
        sys.exit(f"watch: {why}")
