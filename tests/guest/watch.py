#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""knc-host watch on two emulated cards; Debian's node_exporter reads its file, and Debian's
Prometheus asks node_exporter.

The cards run a program whose prefetches are its arguments, and nothing else on them
prefetches so: what Prometheus answers must be their sum. Meanwhile one card goes away.
"""
import contextlib
import json
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
# Between intervals, and between the questions of Prometheus
INTERVAL = 1
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
    """mic0 and mic1"""

    def __init__(self, work, stack):
        self.sums = {(card, event): 0 for card in ("mic0", "mic1") for event in EVENTS}
        self.config = work / "cards/ssh_config"
        subprocess.run(["gcc", "-O2", "-static", "-o", work / "prefetch",
                        TOP / "tests/guest/tools/prefetch.c"], check=True)
        stack.callback(subprocess.run, [f"{TOP}/scripts/cards", "--end", work / "cards"],
                       check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        script("cards", work / "cards", "mic0", "mic1", "--",
               f"--add={work}/prefetch:/root/prefetch")

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

    def is_up(self, card, up=1):
        return self.ask(f'knc_up{{card="{card}"}}') == {(): up}


class Watch:
    def __init__(self, work, config, stack, *args):
        self.said = work / "said"
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                [f"{TOP}/tools/knc-host", "watch", "--prefix", f"ssh -F {config} {{}}",
                 "--openmetrics", work / "textfiles/knc.prom", *args],
                stdin=subprocess.DEVNULL, stderr=said)
        stack.callback(self.process.wait)
        stack.callback(self.process.terminate)

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
    work_on(cards, 5, *both)
    agree(cards, prometheus)

    # One is switched off.
    with contextlib.suppress(Failed):
        cards.ssh("mic1", "kill $(cat /tmp/dropbear.pid)")
    until("mic1 is down", lambda: prometheus.is_up("mic1", 0))
    work_on(cards, 2, "mic0")
    agree(cards, prometheus)
    return ["mic1 has gone away:"]


def end(cards, prometheus, watch, expected):
    """What was said, and what is left"""
    backward = prometheus.ask("resets(knc_events_total[1h]) + resets(knc_counted_seconds_total[1h])",
                              "card", "event")
    if {*backward.values()} != {0}:
        raise Failed(f"counters went backward: {backward}")
    said = watch.end()
    if len(said) != len(expected) or not all(
            line.startswith(f"knc-host watch: {words}") for line, words in zip(said, expected)):
        raise Failed(f"watch said {said}")
    left = cards.ssh("mic0", "ps")
    if "perf stat" in left:
        raise Failed(f"left on mic0: {left}")
    return [f"{card} {event}: {number}, as the card executed"
            for (card, event), number in cards.sums.items()]


def main():
    # What has been started is ended in any case.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    programs = script("build-programs", "prometheus", "prometheus-node-exporter")
    programs += "/usr/bin"
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="watch.")))
        cards = Cards(work, stack)
        prometheus = Prometheus(work, programs, stack)
        watch = Watch(work, cards.config, stack, "mic0", "mic1", "-I", str(500 * INTERVAL),
                      "-e", ",".join(EVENTS))
        said = exact(cards, prometheus)
        print("\n".join(end(cards, prometheus, watch, said)))


if __name__ == "__main__":
    try:
        main()
    except Failed as why:
        sys.exit(f"watch: {why}")
