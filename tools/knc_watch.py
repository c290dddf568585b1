# SPDX-License-Identifier: GPL-2.0-only
"""Count events on cards for weeks, for the textfile collector of node_exporter.

perf stat runs on every card for a tenth of every interval, a second at most,
and not while another process there has events open. knc-host rewrites FILE with
the sums.

perf multiplexes events that do not fit the two counters. On Linux 2.6.38
knc-host refuses them. knc_events_total is not scaled. Events per second are

  rate(knc_events_total[5m]) / rate(knc_counted_seconds_total[5m])

  knc-host watch mic0 mic1 --textfile /var/lib/prometheus/node-exporter/knc.prom
"""
import knc_python

knc_python.check()

import argparse
import asyncio
import contextlib
import errno
import fcntl
import hashlib
import math
import os
import random
import re
import shlex
import signal
import socket
import sys
import time

import knc_card
import knc_perf

# Seconds that a card may take more than three intervals, at first and later
CONNECT, LATE = 60, 15
LONGEST_PAUSE = 60
# Seconds for perf to end
ENDING = 5
# Seconds until a card that others use is asked again, and until perf that lacks counts begins anew
QUIET, RETRY = 60, 60
# perf's status if it does not know an event or an option
USAGE = 129
TAIL = 1 << 12
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NSEC = 10 ** 9

ONLINE = "echo cpus $(cat /sys/devices/system/cpu/online)"
# An ordinary user sees the user's own processes only.
OTHERS = r"ls -l /proc/[0-9]*/fd 2>/dev/null | grep -q 'perf_event\]$'"
RULES = os.path.join(os.path.dirname(os.path.realpath(__file__)), "knc_rules.yml")

METRICS = {
    "knc_events_total": "Events that were counted, the sum of the card's CPUs.",
    "knc_counted_seconds_total": "Seconds for which the event was counted, the mean of the card's CPUs.",
    "knc_up": "1 if the card counts, or 0.",
    "knc_last_interval_timestamp_seconds": "When the event's last counts came, in seconds since 1970.",
}


class Gone(Exception):
    """Of a card, and why"""


class Wrong(Exception):
    """What -e or --perf has is refused, by perf, too"""


def fail(text):
    sys.exit(f"knc-host watch: error: {text}")


def say(text):
    # A log that is full is no reason to end.
    with contextlib.suppress(OSError):
        print(f"{time.strftime('%F %T')} knc-host watch: {text}", file=sys.stderr, flush=True)


def number_of(cpus):
    """In a list such as 0-2,4"""
    return sum(int(last or first) - int(first) + 1
               for first, last in re.findall(r"(\d+)(?:-(\d+))?", cpus))


class Count:
    """Of an event on a card: sums, when its last counts came, and what was said if it has none"""

    def __init__(self):
        self.events, self.running, self.when, self.why = 0, 0, None, ""

    def add(self, events, running):
        # Without the first interval: increase() needs a counter that begins with 0.
        if self.when:
            self.events += events
            self.running += running
        self.when = time.time()


class Card:
    """A card, the ssh that runs, and what was counted in all; @changed() is called as it changes."""

    def __init__(self, name, args, changed):
        self.name, self.args, self.changed = name, args, changed
        self.counts, self.process, self.interval = {}, None, args.interval / 1000
        self.up = self.told = self.is_ending = False

    def command(self):
        """What the card's shell runs. It reads a line for each interval, and ends with its input:
        when this process ends in any way, or the connection."""
        args = self.args
        perf = (f"LC_ALL=C {args.perf} stat $form -a --no-scale --log-fd 3 "
                f"-e {shlex.quote(args.events)} -I ")
        about = (f"case $({args.perf} stat --list-opts 2>&1) in *json*) form=-j;; *) form='-x;';; esac; "
                 "echo kernel $(uname -r); echo driver $(ls -d /sys/bus/event_source/devices/*"
                 "/events/data_read 2>/dev/null | wc -l); "
                 f"grep -s -m 1 '^model name' /proc/cpuinfo; {ONLINE}; ")
        if args.all:
            return (f"{about}{perf}{args.interval} sh -c 'while read -r _; do {ONLINE} >&3; done' "
                    "3>&1 >/dev/null")
        return (f"{about}while read -r _; do if {OTHERS}; then echo others; continue; fi; {ONLINE}; "
                f"{perf}{min(args.interval // 10, 1000)} --interval-count 1 "
                f"3>&1 >/dev/null </dev/null || exit; {ONLINE}; done")

    async def run(self):
        """A session after the other"""
        pause = 1
        while not self.is_ending:
            began = time.monotonic()
            try:
                await self.session()
            except Gone as why:
                if self.is_ending:
                    return
                self.tell(f"{self.name} does not count: {why}; trying again")
                self.changed()
                if time.monotonic() > began + LONGEST_PAUSE:
                    pause = 1
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    async def session(self):
        """Until the card has gone, or perf is to begin anew"""
        self.said, why = b"", ""
        self.online, self.time, self.pending, self.is_old = None, None, {}, False
        self.has_driver, self.lacks = False, False
        self.models = knc_card.Models("")
        self.began, self.turn = time.monotonic(), math.inf
        self.due = self.began + CONNECT + 3 * self.interval
        words = [word.replace("{}", self.name) for word in self.args.prefix]
        try:
            reading, writing = os.pipe()
            self.input = open(writing, "wb", buffering=0)
            with open(reading, "rb") as its_input, contextlib.ExitStack() as failing:
                failing.callback(self.input.close)
                # In a session without a terminal ssh cannot ask for a password.
                self.process = await asyncio.create_subprocess_exec(
                    *words, self.command(), stdin=its_input, stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE, start_new_session=True,
                    env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"})
                failing.pop_all()
        except OSError as e:
            raise Gone(f"{words[0]}: {e.strerror}") from e
        self.listening = asyncio.create_task(self.listen(self.process.stderr))
        if not self.args.all:
            self.ask()
        try:
            if await self.read(self.process.stdout):
                await self.clear(1)
                return
        except Gone as gone:
            why = str(gone)
        # At the end of its output ssh ends, too, and may have a message.
        status, message = await self.clear(0 if why else 1)
        # Without the driver perf does not know its events yet.
        if not why and status == USAGE and self.has_driver and b"Usage: " in self.said:
            raise Wrong(f"{self.name}: {message}")
        raise Gone(why or message or f"status {status}")

    async def listen(self, pipe):
        """To messages, of which the last is of interest"""
        while not pipe.at_eof():
            self.said = (self.said + await pipe.read(TAIL))[-TAIL:]

    async def read(self, pipe):
        """Lines, and ask for more in time. True if perf is to begin anew, for what it lacks"""
        while True:
            renewal = self.began + RETRY if self.args.all and self.lacks else math.inf
            next_one = min(self.turn, renewal, self.due)
            try:
                line = await asyncio.wait_for(pipe.readline(), max(next_one - time.monotonic(), 0))
            except asyncio.TimeoutError:
                if next_one == self.turn:
                    self.ask()
                elif next_one == renewal:
                    return True
                else:
                    raise Gone("it is silent") from None
                continue
            except ValueError as e:
                raise Gone("it prints no lines") from e
            if not line.endswith(b"\n"):
                raise Gone
            self.take(line.decode(errors="replace").rstrip("\n"))
            self.changed()

    def ask(self):
        """For the counts of a while, or with --all for the CPUs that are online"""
        self.asked, self.turn = time.monotonic(), math.inf
        # One that has ended has a message, or a status.
        with contextlib.suppress(BrokenPipeError):
            if not self.is_ending:
                self.input.write(b"\n")

    def answered(self, pause=0):
        """It asks again at a random moment of an interval: what the card does may have its period."""
        now = time.monotonic()
        if not self.args.all:
            self.turn = now = max(now, self.asked + self.interval * random.uniform(0.5, 1.5)) + pause
        self.due = now + 3 * self.interval + LATE

    def take(self, line):
        """A line, which may be anything"""
        found = re.fullmatch(r"cpus (\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*)", line)
        if found and number_of(found[1]) > 0:
            self.see(found[1])
        self.is_old |= line.startswith("kernel 2.6.")
        self.has_driver |= line == "driver 1"
        if line == "others":
            self.up = False
            self.tell(f"{self.name}: another process counts there; its counters are left to it")
            self.answered(QUIET)
        if line.startswith("model name"):
            self.models = knc_card.Models(line, self.args.events)
        for record in knc_perf.read([line]):
            if record.event and record.time is not None and self.online:
                self.note(record if self.models.has(record.event) else
                          record._replace(value=None, why=knc_card.WHY))

    def see(self, online):
        """Which CPUs are online. If they are others than before, it is not known how many have
        counted meanwhile; perf counts on those on which it has begun."""
        if online == self.online:
            self.add()
            return
        if self.online and self.args.all:
            self.pending = {}
            raise Gone(f"CPUs {online} are online now")
        if self.pending:
            self.pending = {}
            self.answered()
        self.online, self.cpus = online, number_of(online)

    def note(self, record):
        if record.time != self.time:
            self.add()
            self.time = record.time
        if record.event in self.pending:
            raise Wrong(f"{record.event} stands twice in -e")
        # A CPU that sleeps takes no turns there: one event would have all of its time.
        if self.is_old and record.share < 99:
            raise Gone(f"{record.event} takes turns, which Linux 2.6.38 counts wrongly: -e may "
                       "have two events, and one of those that are on counter 0 only")
        # perf 7.2 and newer print a time without a unit.
        if record.unit or re.search(r"\b(duration|user|system)_time\b", record.event):
            raise Gone(f"{record.event}: perf prints no number of events")
        self.pending[record.event] = record
        if len(self.pending) == self.args.expected and self.args.all:
            self.ask()

    def add(self):
        if not self.pending:
            return
        self.up = self.lacks = False
        for event, record in self.pending.items():
            count = self.counts.setdefault(event, Count())
            if record.value is None:
                self.lacks |= record.why != knc_card.WHY
                # A turn may come later.
                if count.why != record.why and not (
                        count.when and time.time() < count.when + 3 * self.interval + LATE):
                    say(f"{self.name}: {event} is {record.why}")
                    count.why = record.why
                continue
            if count.why:
                say(f"{self.name}: {event} is counted")
                count.why = ""
            count.add(int(record.value), record.running // self.cpus)
            self.up = True
        self.pending = {}
        self.answered()
        if self.up and self.told:
            say(f"{self.name} counts again")
            self.told = False

    def tell(self, text):
        """Once, until it counts again"""
        if not self.told:
            say(text)
        self.told = True

    def end(self):
        """perf prints its last counts, and ends."""
        self.is_ending = True
        if self.process:
            self.input.close()

    async def clear(self, patience):
        """Returns the status, and the last message."""
        self.add()
        process, self.process, self.up = self.process, None, False
        self.input.close()
        ended = asyncio.create_task(process.wait())
        await asyncio.wait([ended], timeout=patience)
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        # A process that goes on may have its pipes.
        await asyncio.wait([ended, self.listening], timeout=1)
        ended.cancel()
        self.listening.cancel()
        lines = [line.strip() for line in self.said.decode(errors="replace").split("\n")
                 if line.strip()]
        # Behind perf's error stands what usage it has.
        return process.returncode, next((line for line in lines if re.search(
            r"\berror: \S", line, re.I)), lines[-1] if lines else "")


def lock(args):
    """Until this process ends no other one watches these cards, nor for this folder's collector"""
    folder = os.path.dirname(os.path.realpath(args.textfile))
    for card in args.cards:
        for name in (*args.prefix, card), (folder, card):
            holds = socket.socket(socket.AF_UNIX)
            try:
                # An address without a file, for all users
                holds.bind("\0knc-host watch " + hashlib.sha256(repr(name).encode()).hexdigest())
            except OSError as e:
                fail(f"{card}: " + ("another watch counts on it" if e.errno == errno.EADDRINUSE
                                    else e.strerror))
            holds.detach()


class File:
    """What node_exporter reads, under another user. It is replaced, so FILE.lock has the lock."""

    def __init__(self, path):
        self.path, self.cards, self.text, self.failed = path, [], b"", False
        # until the process ends
        self.lock = os.open(f"{path}.lock", os.O_WRONLY | os.O_CREAT)
        fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def collect(self):
        """For prometheus_client. It writes doubles, as node_exporter reads: exact to 2^53 ns, 104 days"""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        families = events, seconds, up, last = [
            (CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily)(
                name, text, labels=["card"] if name == "knc_up" else ["card", "event"])
            for name, text in METRICS.items()]
        for card in self.cards:
            up.add_metric([card.name], card.up)
            for event, count in card.counts.items():
                if count.when:
                    events.add_metric([card.name, event], count.events)
                    seconds.add_metric([card.name, event], count.running / NSEC)
                    last.add_metric([card.name, event], round(count.when, 3))
        return families

    def write(self):
        """Replace it as a whole; the collector does not read the name in between."""
        from prometheus_client import generate_latest

        text, between = generate_latest(self), f"{self.path}.tmp"
        if text == self.text:
            return
        with open(between, "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(text)
        os.replace(between, self.path)
        self.text = text

    def update(self):
        why = ""
        try:
            self.write()
        except OSError as e:
            why = e.strerror
        if bool(why) != self.failed:
            say(f"{self.path}: {why}; counting goes on" if why else f"{self.path} is written again")
        self.failed = bool(why)


async def watch(cards):
    """Until there is a signal"""
    ending = asyncio.Event()
    for number in SIGNALS:
        # A shell's job in the background ignores SIGINT, and nohup's SIGHUP.
        if signal.getsignal(number) != signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, ending.set)
    tasks = [asyncio.create_task(card.run()) for card in cards]
    try:
        await asyncio.wait([asyncio.create_task(ending.wait()), *tasks],
                           return_when=asyncio.FIRST_COMPLETED)
        for card, task in zip(cards, tasks):
            if task.done():
                task.result()
            card.end()
            if not card.process:
                task.cancel()
        await asyncio.wait(tasks, timeout=ENDING)
    finally:
        for card, task in zip(cards, tasks):
            task.cancel()
            if card.process:
                await card.clear(0)


def rules(interval):
    """With a window of five intervals or more: each has several counts in it."""
    minutes = max(5, math.ceil(5 * interval / 60000))
    window = f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}m"
    with open(RULES, encoding="utf-8") as f:
        return f.read().replace("WINDOW", window).replace("SECONDS", str(60 * minutes))


def arguments():
    parser = argparse.ArgumentParser(
        prog="knc-host watch", description=__doc__ + "\nMetrics:\n" + "".join(
            f"  {name}\n      {text}\n" for name, text in METRICS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("cards", metavar="CARD", nargs="*")
    add("--textfile", metavar="FILE", help="the file to write; node_exporter wants NAME.prom")
    add("--rules", action="store_true", help="only print rules for Prometheus")
    add("--all", action="store_true",
        help="count all the time; nobody else on the card can count then")
    add("-e", dest="events", metavar="EVENT,...", action="append",
        help="as perf has them; those in {} are counted at the same time (cycles:u,instructions:u)")
    add("-I", dest="interval", metavar="MS", type=int, default=10000,
        help="the interval, 1000 to 3600000 ms (10000); with --all 100 or more")
    add("--prefix", metavar="WORDS", type=shlex.split, default=["ssh", "{}"],
        help="runs a command line, added as one word, in a card's shell; {} is the card's name "
        "(ssh {})")
    add("--perf", metavar="COMMAND", default="perf", help="perf's name on the card (perf)")
    args = parser.parse_args()
    for card in args.cards:
        if not re.fullmatch(r"[\w.@][\w.@-]*", card, re.A):
            parser.error(f"{card}: no name of a card")
        if args.cards.count(card) > 1:
            parser.error(f"{card} stands twice")
    if not (100 if args.all else 1000) <= args.interval <= 3600000:
        parser.error("-I: 1000 to 3600000 ms, or 100 with --all")
    if args.rules:
        return args
    if not args.cards or not args.textfile:
        parser.error("which CARD, and which --textfile?")
    if os.path.isdir(args.textfile):
        parser.error(f"{args.textfile}: Is a directory")
    args.events = ",".join(args.events or ["cycles:u,instructions:u"])
    # A comma between terms ends no event.
    events = re.findall("(?:/[^/]*/|[^,{}])+", args.events)
    args.expected = len(events)
    twice = next((event for event in events if events.count(event) > 1), None)
    if twice:
        parser.error(f"-e: {twice} stands twice")
    if len(args.cards) > 1 and "{}" not in "".join(args.prefix):
        parser.error("several cards: --prefix needs {}, which is a card's name")
    return args


def main():
    args = arguments()
    if args.rules:
        print(rules(args.interval), end="")
        return
    try:
        lock(args)
        file = File(args.textfile)
        file.cards = [Card(name, args, file.update) for name in args.cards]
        file.write()
    except ImportError as e:
        fail(f"needs the package python3-prometheus-client: {e}")
    except BlockingIOError:
        fail(f"{args.textfile}: another watch writes it")
    except OSError as e:
        fail(f"{args.textfile}: {e.strerror}")
    try:
        asyncio.run(watch(file.cards))
    except Wrong as why:
        fail(why)
    finally:
        file.update()


if __name__ == "__main__":
    main()
