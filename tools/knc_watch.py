# SPDX-License-Identifier: GPL-2.0-only
"""Count events on cards for weeks, for the textfile collector of Prometheus' node_exporter.

perf stat runs on each card as long as ssh does, and prints what it has counted
in each interval. That is added up, and FILE is written anew:

  knc_events_total                     events that were counted, on all CPUs of the card
  knc_counted_seconds_total            seconds for which the event was counted: the mean of
                                       the card's CPUs
  knc_up                               1 if the card counts, or 0
  knc_last_interval_timestamp_seconds  when its last counts came, by this machine's clock

Events that do not fit the two counters take turns, except on Linux 2.6.38, where they
are refused. Nothing is scaled: what is in knc_events_total was counted. Events a second are

  rate(knc_events_total[5m]) / rate(knc_counted_seconds_total[5m])

A card that has gone away, or is silent, keeps its counts, and is tried again.

  knc-host watch mic0 mic1 --openmetrics /var/lib/prometheus/node-exporter/knc.prom
"""
import argparse
import contextlib
import fcntl
import os
import re
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import time

import knc_card
import knc_perf

# Seconds that a card may take more than three intervals, at first and later
CONNECT, LATE = 60, 15
LONGEST_PAUSE = 60
# Seconds for perf to end
ENDING = 5
LINE, TAIL = 1 << 16, 1 << 12
# knc_perf reads numbers as floats.
EXACT = 2 ** 53
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NSEC = 10 ** 9

# The Prometheus text format. OpenMetrics, which node_exporter does not read, has the name in
# TYPE without _total.
METRICS = (
    ("knc_events_total", "counter", "Events that were counted, on all CPUs of the card."),
    ("knc_counted_seconds_total", "counter",
     "Seconds for which the event was counted, the mean of the card's CPUs."),
    ("knc_up", "gauge", "1 if the card counts, or 0."),
    ("knc_last_interval_timestamp_seconds", "gauge",
     "When the card's last counts came, in seconds since 1970."),
)


class Gone(Exception):
    """Of a card, and why"""


def say(text):
    # A log that is full is no reason to end.
    with contextlib.suppress(OSError):
        print(f"knc-host watch: {text}", file=sys.stderr, flush=True)


def escaped(text):
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class Card:
    """A card, the ssh that runs, and what was counted in all."""

    def __init__(self, name, args, selector):
        self.name, self.args, self.selector = name, args, selector
        # {event: [events, nanoseconds]}
        self.totals, self.names = {}, set()
        self.process, self.last, self.up = None, None, False
        self.pause, self.due, self.told = 1, time.monotonic(), False

    def start(self):
        args = self.args
        # perf ends with cat, and cat when its input does: when this process ends in any way,
        # or the connection.
        command = ("echo cpus $(grep -c ^processor /proc/cpuinfo); echo kernel $(uname -r); "
                   f"grep -m 1 '^model name' /proc/cpuinfo; LC_ALL=C {args.perf} stat "
                   f"-a -I {args.interval} --no-scale -x ';' --log-fd 3 "
                   f"-e {shlex.quote(args.events)} cat 3>&1 >/dev/null")
        self.rest, self.said = b"", b""
        self.cpus, self.time, self.pending, self.is_old = None, None, {}, False
        self.models = knc_card.Models("")
        self.due = time.monotonic() + CONNECT + 3 * args.interval / 1000
        try:
            # In a session without a terminal ssh cannot ask for a password.
            self.process = subprocess.Popen(
                [*(word.replace("{}", self.name) for word in args.prefix), command], bufsize=0, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"})
        except OSError as e:
            self.has_gone(f"{args.prefix[0]}: {e.strerror}")
            return
        for pipe, read in ((self.process.stdout, self.read), (self.process.stderr, self.listen)):
            os.set_blocking(pipe.fileno(), False)
            self.selector.register(pipe, selectors.EVENT_READ, (self, read))

    def listen(self):
        """To messages, of which the last is of interest"""
        got = self.process.stderr.read(LINE)
        self.said = (self.said + (got or b""))[-TAIL:]
        if got == b"":
            self.selector.unregister(self.process.stderr)

    def read(self):
        got = self.process.stdout.read(LINE)
        if got is None:
            return
        *lines, self.rest = (self.rest + got).split(b"\n")
        for line in lines:
            self.take(line.decode(errors="replace"))
        if len(self.rest) > LINE:
            raise Gone("it prints no lines")
        if not got:
            raise Gone

    def take(self, line):
        """A line, which may be anything"""
        found = re.fullmatch(r"cpus ([1-9]\d{0,5})", line)
        if found and not self.cpus:
            self.cpus = int(found[1])
        self.is_old |= line.startswith("kernel 2.6.")
        if line.startswith("model name"):
            self.models = knc_card.Models(line, self.args.events)
        for record in knc_perf.read([line], ";"):
            if record.event and record.time is not None and self.cpus:
                self.note(self.models.record(record))

    def note(self, record):
        """A count of the interval that ended at that time"""
        if record.time != self.time:
            self.add()
            self.time = record.time
        if record.event in self.pending:
            raise Gone(f"{record.event} stands twice in -e")
        # A CPU that sleeps takes no turns there: one event would have all of its time.
        if self.is_old and record.share < 99:
            raise Gone(f"{record.event} takes turns, which Linux 2.6.38 counts wrongly: -e may "
                       "have two events, and one of those that are on counter 0 only")
        if record.unit or record.value is not None and (
                record.value % 1 or record.value >= EXACT or not record.running):
            raise Gone(f"{record.event}: perf prints no number of events")
        self.pending[record.event] = record
        self.names.add(record.event)
        if len(self.names) > self.args.expected:
            raise Gone(f"perf prints more events than -e has, {record.event} among them")
        if len(self.pending) == self.args.expected:
            self.add()

    def add(self):
        """What was counted in an interval"""
        for event, record in self.pending.items():
            if record.value is None:
                if event not in self.totals:
                    self.totals[event] = None
                    say(f"{self.name}: {event} is {record.why}")
                continue
            total = self.totals.get(event) or [0, 0]
            self.totals[event] = [total[0] + int(record.value),
                                  total[1] + record.running // self.cpus]
            self.last, self.up, self.pause = time.time(), True, 1
        if self.pending:
            self.due = time.monotonic() + 3 * self.args.interval / 1000 + LATE
        self.pending = {}
        if self.up and self.told:
            say(f"{self.name} counts again")
            self.told = False

    def end(self):
        """perf prints its last counts, and ends."""
        self.process.stdin.close()

    def clear(self, patience):
        """Returns the status, and the last message."""
        self.add()
        self.end()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        watched = self.selector.get_map()
        if self.process.stderr in watched:
            self.listen()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe in watched:
                self.selector.unregister(pipe)
            pipe.close()
        lines = self.said.decode(errors="replace").split("\n")
        status, self.process, self.up = self.process.returncode, None, False
        return status, next((line.strip() for line in reversed(lines) if line.strip()), "")

    def has_gone(self, why=""):
        if self.process:
            # At the end of its output ssh ends, too, and may have a message.
            status, message = self.clear(0 if why else 1)
            why = why or message or f"status {status}"
        self.due = time.monotonic() + self.pause
        self.pause = min(2 * self.pause, LONGEST_PAUSE)
        if not self.told:
            say(f"{self.name} has gone away: {why}; trying again")
            self.told = True

    def is_due(self):
        """The card is to be tried again, or is silent."""
        if time.monotonic() < self.due:
            return
        if self.process:
            self.has_gone("it is silent")
        else:
            self.start()


class File:
    """What node_exporter reads. Who has written the file that is there holds its lock."""

    def __init__(self, path):
        self.path, self.file, self.failed = path, None, False
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as old:
            fcntl.flock(old, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def write(self, cards):
        """Replace it as a whole; the collector does not read the name in between."""
        between = f"{self.path}.tmp"
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(open(between, "w", encoding="utf-8"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.write(text_of(cards))
            file.flush()
            os.replace(between, self.path)
            stack.pop_all()
        if self.file:
            self.file.close()
        self.file = file

    def try_to_write(self, cards):
        try:
            self.write(cards)
        except OSError as e:
            if not self.failed:
                say(f"{self.path}: {e.strerror}; counting goes on")
            self.failed = True
            return
        if self.failed:
            say(f"{self.path} is written again")
        self.failed = False


def text_of(cards):
    lines = {name: [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
             for name, kind, text in METRICS}

    def put(name, value, **labels):
        of = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
        lines[name].append(f"{name}{{{of}}} {value}")

    for card in cards:
        for event, total in card.totals.items():
            if total:
                put("knc_events_total", total[0], card=card.name, event=event)
                put("knc_counted_seconds_total", f"{total[1] // NSEC}.{total[1] % NSEC:09}",
                    card=card.name, event=event)
        put("knc_up", int(card.up), card=card.name)
        if card.last:
            put("knc_last_interval_timestamp_seconds", f"{card.last:.3f}", card=card.name)
    return "".join(f"{line}\n" for name in lines for line in lines[name])


def watch(cards, file, selector, signals):
    """Until there is a signal"""
    ending = None
    while ending is None or any(card.process for card in cards):
        due = [card.due for card in cards] if ending is None else [ending]
        before = [(card.last, card.up) for card in cards]
        for key, _ in selector.select(max(min(due) - time.monotonic(), 0)):
            if key.fileobj is signals:
                ending = time.monotonic() + ENDING
                selector.unregister(signals)
                for card in cards:
                    if card.process:
                        card.end()
                continue
            card, read = key.data
            # It may have gone by what was read just before.
            if card.process:
                try:
                    read()
                except Gone as why:
                    if ending is None:
                        card.has_gone(str(why))
                    else:
                        card.clear(1)
        if ending is None:
            for card in cards:
                card.is_due()
        elif time.monotonic() >= ending:
            break
        if [(card.last, card.up) for card in cards] != before:
            file.try_to_write(cards)
    for card in cards:
        if card.process:
            card.clear(0)
    file.try_to_write(cards)


def arguments():
    parser = argparse.ArgumentParser(
        prog="knc-host watch", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cards", metavar="CARD", nargs="+")
    parser.add_argument("--openmetrics", metavar="FILE", required=True,
                        help="what is written; node_exporter wants NAME.prom")
    parser.add_argument("-e", dest="events", metavar="EVENT,...", action="append",
                        help="as perf has them; those in {} are counted at the same time "
                        "(cycles,instructions)")
    parser.add_argument("-I", dest="interval", metavar="MS", type=int, default=10000,
                        help="the interval, 100 to 3600000 ms (10000)")
    parser.add_argument("--prefix", metavar="WORDS", default="ssh {}",
                        help="what a command line for a card's shell is added to; {} is the "
                        "card's name (ssh {})")
    parser.add_argument("--perf", metavar="COMMAND", default="perf",
                        help="what perf is called there (perf)")
    args = parser.parse_args()
    for card in args.cards:
        if not re.fullmatch(r"[\w.@][\w.@-]*", card, re.A):
            parser.error(f"{card}: no name of a card")
        if args.cards.count(card) > 1:
            parser.error(f"{card} stands twice")
    if not 100 <= args.interval <= 3600000:
        parser.error("-I: 100 to 3600000 ms")
    args.events = ",".join(args.events or ["cycles,instructions"])
    args.expected = re.sub("/[^/]*/", "", args.events).count(",") + 1
    try:
        args.prefix = shlex.split(args.prefix)
    except ValueError as e:
        parser.error(f"--prefix: {e}")
    if not args.prefix:
        parser.error("--prefix: which?")
    if len(args.cards) > 1 and "{}" not in "".join(args.prefix):
        parser.error("several cards: --prefix needs {}, which is a card's name")
    return args


def main():
    args = arguments()
    signals, wakeup = socket.socketpair()
    with selectors.DefaultSelector() as selector, signals, wakeup:
        cards = [Card(name, args, selector) for name in args.cards]
        try:
            file = File(args.openmetrics)
            file.write(cards)
        except BlockingIOError:
            sys.exit(f"knc-host watch: error: {args.openmetrics}: another watch writes it")
        except OSError as e:
            sys.exit(f"knc-host watch: error: {args.openmetrics}: {e.strerror}")
        selector.register(signals, selectors.EVENT_READ)
        wakeup.setblocking(False)
        signal.set_wakeup_fd(wakeup.fileno())
        for number in SIGNALS:
            # A shell's job in the background ignores SIGINT, and nohup's SIGHUP.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda *_: None)
        watch(cards, file, selector, signals)


if __name__ == "__main__":
    main()
