# SPDX-License-Identifier: GPL-2.0-only
"""Which events are counted together, the perf that counts them, and the metrics' arithmetic.
"""
import contextlib
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import knc_card
import knc_format
import knc_overlap
import knc_perf
import knc_tables
from knc_format import mean
from knc_perf import Failed

DURATION, RUNNING = knc_tables.DURATION, knc_tables.RUNNING
DEVICES = "/sys/bus/event_source/devices"
# The part of the time in which two threads of a program may be on one core, such as a shell and
# what it has just begun: what each counts for the core is off by three times that at most.
SIDE_BY_SIDE = 0.01
# Seconds until it is asked whether perf has ended, if others have its pipe
LOOK_AGAIN = 0.2
# What is copied of a standard input that is no file
MOST_INPUT = 1 << 28
# Set by knc-report, which passes on how knc-metrics gets on
PROGRESS = "KNC_METRICS_PROGRESS"
# What perf says first if the kernel does not let this user measure
REFUSED = "Access to performance monitoring"
# CAP_SYS_ADMIN, CAP_PERFMON
PRIVILEGES = 1 << 21 | 1 << 38
# So many events more or less make no difference of two programs: their start has such
FEW = 100
# Of clocks on all CPUs
HALTED = ("a thread that halts reads the clocks of its core, and nothing counts for how long it ran; "
          "-u counts those in which it runs a program, and cpi_core is the core's")
IN_USER_MODE = ("with -u a thread counts the clocks of its core in its own user mode only, and all of "
                "the core's are in none of them")
# A turn, which ends early if one of the processes does
TURN = ("n=$0; while [ $((n -= 1)) -ge 0 ]; do for p; do read -r s </proc/$p/stat || exit 0; "
        "case $s in *') Z '*) exit 0; esac; done; sleep 0.1; done 2>/dev/null")
# Which of the processes cannot be attached to
THERE = """for p; do
	[ -e /proc/$p/environ ] || echo "no process $p"
	[ ! -e /proc/$p/environ -o -r /proc/$p/environ ] || echo "process $p is another user's"
done"""
# What a shell on a card does. The first has the directory, and one session, until its standard
# input ends: when this process does, in any way, or the connection. Then it ends all of the second:
# each runs perf, or a program, which is a process group in a session of its own.
ROOM = """mkdir -m 700 "$0" && read -r _ && echo && cat >/dev/null
cd "$0" && kill [0-9]* 2>/dev/null
rm -rf "$0" "$0"-regions.*"""
HELD = """exec 5<&0
trap '{ kill -TERM -$! || kill -INT $! || exit; } 2>/dev/null' TERM
>"$0/$$" || exit
$(command -v setsid) "$@" <&5 5<&- &
wait $!; status=$?; rm -f "$0/$$"; exit $status"""
# ssh does not end with a signal to all of our process group, but when its input does.
DEAF = ["sh", "-c", "trap '' INT TERM HUP; exec \"$@\"", "sh"]


class Missing(Exception):
    """A metric has no value, and why."""


class Outside(Missing):
    """What was computed is outside of the metric's limits."""


# --- what to count, and together with what --------------------------------------

class Countable:
    """An event, with the terms that a metric wants it with."""

    def __init__(self, event, terms):
        self.event, self.terms = event, terms
        self.counters, self.is_core = event.counters, event.in_core == "core"
        # Does each thread of a core read its clocks, or what all of its threads do?
        self.is_clocks = event.in_core == "once" and "any" not in terms
        self.is_shared = self.is_core or event.in_core == "once" or "any" in terms
        # A name for perf's output, and for an expression
        self.label = re.sub(r"\W+", "_", f"{event.name} {terms}".strip())

    def spelled(self, args, more=""):
        terms = ",".join(filter(None, (self.event.terms(), self.terms, more)))
        return f"{args.pmu}/{terms},name={self.label}/" + "u" * args.user


def countables(metrics, events):
    """{(name, terms): Countable} of all that the metrics need."""
    by_name = {event.name: event for event in events}
    return {(name, terms): Countable(by_name[name], terms)
            for metric in metrics for name, terms in metric.events()}


class Plan:
    """Which of the metrics can be counted here, from which runs, and why others cannot."""

    def __init__(self, args, metrics, events, reasons=()):
        blank = {event.name for event in events if args.emulated and not event.emulated}
        self.args, self.events, self.metrics, self.reasons = args, events, metrics, dict(reasons)
        self.overlap = None
        for metric in metrics:
            lacks = [name for name, _ in metric.events() if name in blank]
            if lacks:
                self.reasons[metric] = f"the emulator has no model of {', '.join(lacks)}"
        possible = [metric for metric in metrics if metric not in self.reasons]
        self.needed = countables(possible, events)
        self.runs = plan_runs(possible, self.needed)
        self.formulas = {metric: Formula(metric, self.needed) for metric in possible}
        # Is there a metric that needs to know how long it took?
        args.seconds, args.is_timed = {}, any(DURATION in metric.expr for metric in possible)

    def each(self):
        """The runs, as often as they are repeated"""
        runs = self.runs * self.args.repeat
        if self.args.command and (len(runs) > 1 or self.args.by):
            self.args.replay = rewindable()
        for at, run in enumerate(runs, 1):
            if (os.isatty(2) or PROGRESS in os.environ) and len(runs) > 1:
                print(f"knc-metrics: {self.args.what} {at} of {len(runs)}", file=sys.stderr)
            self.args.status = 0
            if at > 1 and attached(self.args):
                print(f"knc-metrics: {attached(self.args)} any more: {at - 1} of {len(runs)} turns were "
                      "counted", file=sys.stderr)
                return
            yield run
            if at == 1 and len(runs) > 1 and self.fails():
                return

    def fails(self):
        """Has the program failed in its first run? Then it is not run again."""
        if self.args.status:
            print(f"knc-metrics: {self.args.command[0]} has ended with status {self.args.status}, and "
                  "is not run again; if that is its usual status, type sh -c '...; true'",
                  file=sys.stderr)
        return self.args.status

    def check(self, metric, counts):
        """Is a sum over threads what the metric is made of?"""
        args = self.args
        for key in self.formulas[metric].keys:
            # Samples are of the thread that runs.
            if self.needed[key].is_clocks and args.all_cpus and not args.by and \
                    metric.of_thread != args.user:
                raise Missing(IN_USER_MODE if args.user else HALTED)
            if self.needed[key].is_core and any(key in run.values for run in counts):
                why = self.side_by_side()
                if why:
                    raise Missing(f"each thread counts {key[0]} for its core, and {why}")

    def side_by_side(self):
        """Why the threads' sum may have what a core does several times, if so"""
        if self.args.all_cpus:
            return "a sample does not show which one's it was" if self.args.by else ""
        if self.overlap is None:
            try:
                part = knc_overlap.measure(self.args, record, file_there(self.args, "/proc/cpuinfo"))
                self.overlap = (f"two of a core ran at the same time in {100 * part:.0f} % of the time: "
                                "the sum is too high. " + (
                                    "Run the program with one thread on each core" if self.args.regions else
                                    "-a counts by one thread of each core")) \
                    if part > SIDE_BY_SIDE else ""
            except knc_overlap.Unknown as why:
                self.overlap = f"it is not known whether two of a core ran at the same time: {why}"
        return self.overlap

    def notes(self, status):
        if self.args.all_cpus and any(each.is_core for each in self.needed.values()):
            yield "what each thread counts for its core is counted by one thread of each core"
        yield from broken(self.args, status)

    def failed(self, *reasons):
        """Nothing was counted, for the first of these reasons or that of a metric."""
        return Failed(next(filter(None, (attached(self.args), *reasons, *self.reasons.values())),
                           "nothing was counted"))

    def missing(self):
        return {metric.name: reason for metric, reason in self.reasons.items()}

    def head(self, **more):
        # A user who may not count the kernel is denied it in the first run only.
        return {"command": self.args.command, **more,
                "context": {**(self.args.context or {}), "user": self.args.user},
                "runs": [[spoken(key) for key in run] for run in self.runs]}


def spoken(key):
    """An event with its terms, as a reader has it"""
    return " ".join(key).strip()


def plan_runs(metrics, needed):
    """Pairs: each metric of two events has them from one run, and each event is in a run"""
    wanted, runs = [metric.events() for metric in metrics], []
    for keys in wanted:
        if len(keys) == 2 and {*keys} not in map(set, runs) and \
                knc_tables.fit(*map(needed.get, keys)):
            runs.append(keys)
    alone = [key for keys in wanted if len(keys) == 1 for key in keys]
    left = [key for key in dict.fromkeys([*alone, *needed]) if not any(key in run for run in runs)]
    # Those that only one counter has find a companion first.
    left.sort(key=lambda key: len(needed[key].counters))
    while left:
        key = left.pop(0)
        fits = [other for other in left if knc_tables.fit(needed[key], needed[other])][-1:]
        left = [other for other in left if other not in fits]
        runs.append([key, *fits])
    return runs


# --- perf ------------------------------------------------------------------------

class Counts:
    """Of a run: {key: count}, why others are missing, its time, that of all threads, its status."""

    def __init__(self):
        self.values, self.reasons, self.duration = {}, {}, None
        self.running, self.status = 0, 0

    def take(self, record, labels, in_turn=False):
        """Note a record of perf's, if it is about one of these events, which may take turns."""
        if DURATION in record.event and record.value:
            self.duration = record.value / 1e9
        key = labels.get(record.event)
        if key is None:
            return
        if record.value is None:
            # Of no time perf says 100 %.
            self.reasons[key] = record.why if record.why != "not counted" else (
                "not counted: something else has the counters (another perf, the NMI watchdog)"
                if record.share < 100 else
                "not counted: nothing ran (it slept or has ended, or the CPU is offline)")
        elif record.share < 100 and not in_turn:
            self.reasons[key] = (f"counted for {record.share:g} % of the time: something "
                                 "else has a counter (another perf, the NMI watchdog)")
        else:
            self.values[key], self.running = int(record.value), record.running / 1e9

    def lack(self, keys, why):
        """The reason for those that have no count, and none yet"""
        for key in keys:
            if key not in self.values:
                self.reasons.setdefault(key, why)


def until_end(pipe, process):
    """What comes through a pipe until a process ends, also if others have it open then"""
    while True:
        has_ended = process.poll() is not None
        if select.select([pipe], [], [], 0 if has_ended else LOOK_AGAIN)[0]:
            data = os.read(pipe, 65536)
            if not data:
                return
            yield data
        elif has_ended:
            return


def perf_reason(text):
    """The first line in which perf says something, or which of its settings refuses"""
    first = next((line.strip() for line in text.split("\n")
                  if line.strip() not in ("", "Error:")), "perf failed")
    level = re.search(r"perf_event_paranoid setting is (-?\d+)", text)
    return only_root(int(level[1])) if first.startswith(REFUSED) and level else first


def only_root(level):
    """What kernel.perf_event_paranoid forbids, and what to type"""
    what, least = ("to measure", 2) if level > 2 else \
        ("to count on all CPUs, or for other threads (any)", 0)
    return (f"kernel.perf_event_paranoid is {level}, which allows only root {what}: as root, "
            f"type \"sysctl kernel.perf_event_paranoid={least}\"")


def paranoid(args):
    """What the kernel's setting forbids to the program's user: it opens its events itself."""
    level = file_there(args, "/proc/sys/kernel/perf_event_paranoid")
    mask = re.search(r"^CapEff:\s*(\w+)", file_there(args, "/proc/self/status"), re.M)
    return -1 if not (level and mask) or int(mask[1], 16) & PRIVILEGES else int(level)


def forbidden(args, metrics):
    """{metric: why} of those that this user may not measure. A perf of 7.2 or newer only says of
    their events that they are not supported.
    """
    level = paranoid(args)
    if level > 2 or level > 0 and args.all_cpus:
        raise Failed(only_root(level))
    if level == 2 and not args.user:
        only_user_mode(args)
    return {metric: only_root(level) for metric in metrics
            if level > 0 and any("any" in terms for _, terms in metric.events())}


class Said:
    """perf's stderr, passed on at once, except why perf fails before the program begins."""

    FAILURES = b"Error:\n", b"Workload failed: "

    def __init__(self):
        self.kept, self.last = b"", b""

    def read(self, perf):
        for data in until_end(perf.stderr.fileno(), perf):
            self.kept += data
            if self.last or not self.kept.startswith(self.FAILURES):
                self.pass_on()

    def pass_on(self):
        os.write(2, self.kept)
        self.last = (self.last + self.kept)[-4096:]
        self.kept = b""

    def reason(self):
        return perf_reason((self.kept or self.last).decode(errors="replace"))

    def killed(self, program):
        """The status of a program that a signal has ended, which perf's last words say, or 0"""
        return next((128 + number for number in signal.valid_signals()
                     if self.last.endswith(
                         f"{program}: {signal.strsignal(number)}\n".encode())), 0)


def is_by_ssh(args):
    return any(os.path.basename(word) == "ssh" for word in args.perf[:-1])


def broken(args, status):
    """What there is to say of a status that ssh has if its connection breaks"""
    if status == 255 and is_by_ssh(args):
        yield ("! ssh has ended with status 255: if its connection broke, and the program does not "
               "end so, the last run was counted in part")


def there(args, words, program=None):
    """The command for perf, or another program there; ssh joins words for a shell"""
    if is_by_ssh(args):
        words = [shlex.quote(word) for word in words]
    return [*args.perf[:-1], program or args.perf[-1], *words]


@contextlib.contextmanager
def room(args):
    """A directory where perf is, for what it writes there. By ssh, what is held() ends with it."""
    args.room = f"/tmp/knc-{os.urandom(8).hex()}"
    if not is_by_ssh(args):
        ask(args, "mkdir", "-m", "700", args.room)
        try:
            yield args.room
        finally:
            ask(args, "sh", "-c", f"rm -rf {args.room} {args.room}-regions.*")
        return
    with subprocess.Popen([*DEAF, *there(args, ["-c", ROOM, args.room], "sh")],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, bufsize=0) as shell:
        with contextlib.suppress(BrokenPipeError):
            shell.stdin.write(b"\n")
        if not shell.stdout.read(1):
            raise Failed(f"{shlex.join(args.perf[:-1])}: no shell there has a standard input and /tmp")
        try:
            yield args.room
        finally:
            shell.stdin.close()
            shell.wait()


def held(args, program, *words):
    return there(args, ["-c", HELD, args.room, program, *words], "sh") if is_by_ssh(args) else \
        there(args, words, program)


def ask(args, program, *words):
    """What a program prints on the machine that perf is called on; "" if there is none"""
    return subprocess.run(there(args, words, program), check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          errors="backslashreplace").stdout


def file_there(args, name):
    """Of a file that does not change"""
    known = vars(args).setdefault("contents", {})
    if name not in known:
        known[name] = ask(args, "cat", name)
    return known[name]


def check_perf(args):
    """Fail at once without a perf or a machine, or if its shell says more than answers; choose JSON or -x"""
    # No pipe: somebody else may have that on.
    with tempfile.TemporaryFile("w+", errors="backslashreplace") as out, \
            tempfile.TemporaryFile("w+", errors="backslashreplace") as err:
        status = subprocess.run(there(args, ["--version"]), check=False, stdin=subprocess.DEVNULL,
                                stdout=out, stderr=err).returncode
        out.seek(0)
        err.seek(0)
        said = err.read().strip().split("\n")[-1] or f"status {status}"
        first, found, version = out.read().partition("perf version")
    if status:
        raise Failed(f"{shlex.join(args.perf)}: {said}")
    if found and first:
        raise Failed(f"the card's shell prints \"{knc_perf.printable(first.strip())}\" before its "
                     "answers: it must print nothing in such sessions")
    args.form = ["-j"] if re.match(r" ([1-9]\d|[7-9]|6\.[1-9])", version) else ["-x;"]


def positive(kind):
    def check(text):
        value = kind(text)
        if not value > 0:
            raise ValueError
        return value
    check.__name__ = "number above 0"
    return check


def pids(text):
    """As perf takes them; pidof has blanks in between"""
    if not text.strip():
        raise ValueError
    return ",".join(re.split(r"[,\s]+", text.strip()))


pids.__name__ = "list of PIDs"


def attached(args):
    """Why a process cannot be attached to, or "" """
    return ask(args, "sh", "-c", THERE, "sh", *args.pid.split(",")).partition("\n")[0] if args.pid else ""


def pmu_there(args):
    for pmu in ("knc", "cpu"):
        if file_there(args, f"{DEVICES}/{pmu}/type"):
            return pmu
    # If its files cannot be read, perf has to find out.
    if knc_card.is_card(file_there(args, "/proc/cpuinfo")):
        raise Failed("no driver has the counters: as root, type \"insmod knc_pmu.ko\" on the card "
                     "(\"dmesg | grep knc_pmu\" has the reason if that fails)")
    return "cpu"


def context(args):
    """Where a result is from, and how it was counted: what knc_compare looks at"""
    said = ask(args, "sh", "-c", "uname -n; uname -r; (cd /sys/module/knc_pmu && { cat "
               "srcversion || cat initstate; }) 2>/dev/null || echo; "
               f"{shlex.quote(args.perf[-1])} --version").split("\n")
    machine, kernel, driver, perf = (line.strip() for line in [*said, "", "", "", ""][:4])
    # Only some kernels' modules have a version of their source; only a module has a state.
    driver = driver and f"the module {driver}".removesuffix(" live")
    return {"machine": machine, "emulated": args.emulated, "kernel": kernel,
            "driver": driver or "built in, or another one", "perf": perf,
            "pmu": args.pmu, "date": time.strftime("%Y-%m-%d %H:%M:%S %z"), "turns": args.turns}


def rewindable():
    """Where standard input begins, for each run; None for a terminal. A pipe is copied to a file"""
    if sys.stdin is None or os.isatty(0):
        return None
    with contextlib.suppress(OSError):
        return os.lseek(0, 0, os.SEEK_CUR)
    if not select.select([0], [], [], 1)[0]:
        print("knc-metrics: waiting for the end of standard input, which each run is to "
              "read; \"</dev/null\" if the program reads none", file=sys.stderr)
    with tempfile.TemporaryFile() as copy, open(0, "rb", closefd=False) as pipe:
        while data := pipe.read(MOST_INPUT):
            copy.write(data)
            if copy.tell() >= MOST_INPUT:
                raise Failed(f"standard input has more than {MOST_INPUT >> 20} MiB, which each run "
                             "is to read: give it as a file")
        copy.flush()
        os.dup2(copy.fileno(), 0)
    return 0


def program(args):
    """The one that is run, or what takes the time of a turn"""
    if args.command:
        return args.command
    return ["sh", "-c", TURN, f"{max(10 * args.turn, 1):.0f}", *args.pid.split(",")] if args.pid else \
        ["sleep", f"{args.turn:g}"]


def target(args):
    what = ["-a"] if args.all_cpus else ["-p", args.pid] if args.pid else []
    return [*what, "--", *program(args)]


def events_of(args, needed, run):
    """For perf's -e: the events as a group; and whose each is, by the names in its report"""
    return (",".join(needed[key].spelled(args) for key in run),
            {needed[key].label: key for key in run})


def rewind(args):
    """The program is to read what it has read before."""
    if args.replay is not None:
        os.lseek(0, args.replay, os.SEEK_SET)


def run_perf(args, command, **pipes):
    """Run perf once, with the program: what it has said, and its status"""
    said = Said()
    rewind(args)
    with subprocess.Popen(command, stderr=subprocess.PIPE, **pipes) as perf:
        said.read(perf)
    return said, perf.returncode


def record(args, data, *options):
    """Have perf record into @data, by a pipe from another machine; why there is nothing, if so"""
    with open(data, "wb") as out:
        said, _ = run_perf(args, held(
            args, args.perf[-1], "record", "-q", "-B", "-o", "-" if args.remote else data, *options,
            *target(args)),
            stdout=out if args.remote else None)
    return said.reason() if said.kept or not os.path.getsize(data) else ""


def run_stat(args, events, more=()):
    """Run perf once for these events: its records, what else it has said, and its status"""
    report = f"{args.room}/stat"
    said, status = run_perf(args, held(
        args, args.perf[-1], "stat", *args.form, "-o", report, *(["-e", f"{{{events}}}"] if events else []),
        "-e", DURATION, *more, *target(args)))
    text = ask(args, "sh", "-c", f"cat {report}; rm -f {report}")
    return [*as_named(args, knc_perf.read(text.split("\n")))], said, status


def time_of(args):
    """Seconds of the program, in a run of its own: perf 7.2 and newer have no duration_time of one
    unless its events begin later, here after a millisecond.
    """
    program = (*args.command,)
    if program not in args.seconds:
        records, _, _ = run_stat(args, "", ["-D", "1"])
        args.seconds[program] = next((record.value / 1e9 + 1e-3 for record in records
                                      if DURATION in record.event and record.value), None)
    return args.seconds[program]


def as_named(args, records):
    """perf's records by our names: where this user may not count the kernel, perf appends ":u" """
    for record in records:
        name = re.sub(":u$", "", record.event)
        if name != record.event and not args.user:
            only_user_mode(args)
        yield record._replace(event=name)


def only_user_mode(args):
    args.user = True
    print("knc-metrics: counts in user mode only, as with -u: kernel.perf_event_paranoid is 2",
          file=sys.stderr)


def settle(args, said, status, counted):
    """Pass on what perf has said, and return the program's status, or fail."""
    if counted:
        status = status or (said.killed(args.command[0]) if args.command else 0)
        said.pass_on()
    elif said.reason().startswith("Workload failed: "):
        raise Failed(f"{args.command[0]}: {said.reason().partition(': ')[2]}")
    args.status = status if counted else 0
    return args.status


def count(args, needed, run):
    events, labels = events_of(args, needed, run)
    counts = Counts()
    records, said, status = run_stat(args, events)
    for record in records:
        counts.take(record, labels)
    counts.status = settle(args, said, status, counts.values or counts.reasons)
    if counts.values and args.is_timed and not (counts.duration or args.turns or counts.status):
        counts.duration = time_of(args)
    counts.lack(run, said.reason())
    return counts


# --- arithmetic --------------------------------------------------------------------

def d_ratio(above, below):
    if below == 0:
        raise Missing("nothing to divide by: the count is 0")
    return above / below


class Formula:
    """A metric's expression, as Python's, and what is in it."""

    def __init__(self, metric, needed):
        self.metric, self.keys = metric, metric.events()
        self.labels = {needed[key].label: key for key in self.keys}
        text = knc_tables.TERMS.sub(
            lambda m: needed[tuple(m[1].replace("\\", "").split(",", 1))].label,
            metric.expr)
        self.code = compile(text, metric.name, "eval")

    def runs(self, counts):
        """One run that has all of it, or each run that has some of it."""
        keys = {*self.keys}
        return [run for run in counts if keys <= {*run.values}][:1] or \
            [run for run in counts if keys & {*run.values}]

    def value(self, counts, turns):
        """In its unit, and from how many runs. Turns differ in length: their rates are compared"""
        used = self.runs(counts)
        durations = [run.duration for run in used if run.duration]
        span = mean(durations)
        times = {DURATION: span, RUNNING: used and used[0].running}

        def of(name):
            if name in times:
                if not times[name]:
                    raise Missing("it is not known how long it took")
                return times[name]
            key = self.labels[name]
            found = [run.values[key] * (span / run.duration if turns else 1)
                     for run in used if key in run.values]
            if not found:
                raise Missing(next((run.reasons[key] for run in counts
                                    if key in run.reasons), "not counted"))
            return mean(found)

        # Of our own table: numbers, events and these functions
        functions = {"__builtins__": {}, "d_ratio": d_ratio}
        counted = {name: of(name) for name in self.code.co_names if name not in functions}
        return self.metric.scale * eval(self.code, functions, counted), len(used)

    def moved(self, counts, turns, values, key, more):
        """How far the value is moved by so many more of an event in one of the runs"""
        exact, value = values[key], self.value(counts, turns)[0]
        values[key] += more
        value -= self.value(counts, turns)[0]
        values[key] = exact
        return value

    def few(self, counts, turns):
        """What FEW of each event make of the value"""
        return sum(abs(self.moved(counts, turns, run.values, key, FEW))
                   for run in self.runs(counts) for key in {*self.keys} & {*run.values})


def check_limits(metric, value):
    if not metric.least <= value <= metric.most:
        raise Outside(f"{knc_format.quantity(value, metric.unit)} is outside of {metric.limits}: its events do "
                      "not count the same things here, or were counted in runs that differ")


def exceeded(metric, value):
    """The first threshold that a value, in the unit that is shown, exceeds: it says most"""
    return [{"threshold": t.text, "meaning": t.meaning, "source": t.source,
             "advice": metric.advice, "advisor": metric.advisor}
            for t in metric.thresholds if value is not None and t.holds(value)][:1]


class Result:
    """What came of a metric of a place: a value for each repetition."""

    def __init__(self, plan, metric, repetitions):
        self.metric, self.values, self.runs, self.few = metric, [], 0, 0.0
        self.reason = plan.reasons.get(metric, "")
        for counts in repetitions if metric in plan.formulas else ():
            try:
                plan.check(metric, counts)
                value, self.runs = plan.formulas[metric].value(counts, plan.args.turns)
                check_limits(metric, value)
                self.values.append(value)
                self.few = max(self.few, plan.formulas[metric].few(counts, plan.args.turns))
            except Missing as why:
                self.reason = str(why)
                # The mean of the others would be too high, or too low.
                if isinstance(why, Outside):
                    self.values, self.runs = [], 0
                    break
        self.value = mean(self.values)

    def entry(self, **more):
        return knc_format.entry(self.metric.name, self.value, self.metric.unit, spread=self.values,
                               runs=self.runs, reason=self.reason, **more)

    def described(self):
        """With what there is to say of the value"""
        m = self.metric
        return self.entry(exceeded=exceeded(m, self.value), groups=m.groups, description=m.brief,
                          values=self.values, few=self.few)
