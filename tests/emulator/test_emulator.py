# SPDX-License-Identifier: GPL-2.0-only
"""The emulator alone: a bare program, with no kernel and no driver, drives the emulated
PMU and checks each row of its registers. A test for each suite of the program, and a few
that look at the emulator from outside. With --notes each prints its results, one a line.

QEMU in the environment is the emulator; without it, what scripts/build-qemu has built, if
QEMU_SANITIZED is not empty the one with sanitizers.
"""
import collections
import contextlib
import difflib
import json
import os
import re
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import mvex
import pytest
import vectors
from lines import SCRIPTS, TESTS, TOP, Case, built, once, quietly
import knc_tables
from knc_listing import decoded, zydis

HERE = f"{TESTS}/emulator"
SANITIZED = os.environ.get("QEMU_SANITIZED")
# What is freed is soon to be used again, as without them, and what is left when QEMU
# ends is nobody's business.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=4",
               "UBSAN_OPTIONS": "print_stacktrace=1"}
# In seconds of the host, which may be busy: a suite takes one to ten of them
LIMIT = 12000 if SANITIZED else 1200
COMPLAINT = re.compile("runtime error:|ERROR: AddressSanitizer")
# Of a fuzzed QEMU, which takes one or two. Status 124 is the guest's limit alone.
FUZZ_TIMEOUT = ["timeout", "-s", "KILL", str(LIMIT // 10)]
# A program that goes astray may execute all of the memory, each instruction once. With little
# memory, and room for little of what it is translated to, that is soon done.
FUZZED = ["-no-reboot", "-accel", "tcg,thread=single,tb-size=32"]


@dataclass
class Boot:
    """The program runs @suite on so many @threads. The @label stands before each result.
    If it is @modest it takes no more memory than a suite that does nothing of the kind.
    QEMU knows the @options @since this version, and @before that one. While all threads are halted the host
    has to @sleep, or it goes on at once."""
    label: str
    suite: str
    threads: int = 1
    cpu: str = "knc"
    options: str = ""
    modest: bool = False
    since: tuple = ()
    before: tuple = (99,)
    sleep: str = "off"


ICOUNT = ("-icount", "shift=0,sleep=off")
TWO_CORES = "-smp {},sockets=1,cores=2,threads={}".format
# A CPU for which QEMU adds CPUID leaf 0x1f does not get past the firmware of 10.0.
# Lines of 64 bytes in a row: a miss for each
PLAIN = "knc,knc-prefetcher=off"
APART = {"threads": 4, "cpu": "knc,full-cpuid-auto-level=off"}
SUITES = {
    **{name: [Boot("four threads", name, 4), Boot("one thread", name)]
       for name in ("registers", "gates", "counts", "overflow", "instructions")},
    "memory": [Boot("four threads", "memory", 4, cpu=PLAIN),
               Boot("one thread", "memory", cpu=PLAIN)],
    "prefetcher": [Boot("one thread", "prefetcher"),
                   Boot("two cores", "streams", options=TWO_CORES(2, 1))],
    **{name: [Boot("one core", name, 4)] for name in ("inject", "any", "halt", "threads")},
    "cores": [Boot("two cores", "cores", cpu=PLAIN, options=TWO_CORES(2, 1))],
    # Cores that differ in nothing but what they are part of
    "apart": [Boot("dies", "apart", **APART,
                   options="-smp 4,sockets=1,dies=2,cores=1,threads=2"),
              Boot("modules", "apart", **APART, since=(9, 1),
                   options="-smp 4,sockets=1,modules=2,cores=1,threads=2")],
    # Of more than two threads any of those that execute may be the one.
    "stray": [Boot("two threads", "stray", 2, cpu="knc,pmu-stray=on")],
    "clock": [Boot("clock", "clock", 8, options=TWO_CORES(8, 4))],
    "sleeps": [Boot("one thread", "sleeps", sleep="on")],
    "reset": [Boot("two threads", "reset", 2)],
    # QEMU takes in what a guest keeps doing without growing.
    "hostile": [Boot("one core", "hostile", 4, modest=True),
                Boot("two cores", "hostile", 4, options=TWO_CORES(4, 2), modest=True)],
    "plain": [Boot("qemu64", "plain", cpu="qemu64")],
    # Machine types that choose no version of a CPU model have the PMU as well. The last of them
    # was in 10.1.
    "machines": [Boot("pc-i440fx-4.0", "gates", options="-M pc-i440fx-4.0", before=(10, 2)),
                 Boot("pc", "gates", options="-M pc")],
    # The chip's own instruction set. With -cpu knc that of suite "strict" which ordinary
    # programs are made of runs; on the strict one everything else is counted alike.
    "strict": [Boot("knc", "strict"),
               Boot("strict-user", "strict ring3", cpu="knc,strict-user=on"),
               *(Boot("knc-strict", suite, 4 if suite == "threads" else 1, cpu="knc-strict")
                 for suite in ("strict", "registers", "counts", "overflow", "instructions",
                               "prefetcher", "threads")),
               Boot("knc-strict", "memory", cpu=PLAIN.replace("knc,", "knc-strict,"))],
}


def result(name, why=""):
    return f"FAIL {name}: {why}" if why else f"ok {name}"


def ended(name, done, status, told):
    """Of a QEMU that has to end with this status, and say this"""
    return result(name, (done.returncode != status or told not in done.stderr) and
                  f"status {done.returncode}: {done.stderr}")


def tail(*texts):
    return "\n".join(line for text in texts for line in text.splitlines()[-5:])


def differ(old, new):
    return subprocess.run(["diff", "-r", old, new], check=False, text=True,
                          stdout=subprocess.PIPE).stdout


def as_expected(name, want, got):
    return result(name, "\n".join(difflib.unified_diff(want, got, lineterm="", n=0)))


class Machine:
    """QEMU and the program. @lines, and @peak in KiB, are of the last boot."""

    def __init__(self, release, program, work):
        self.qemu, self.program, self.work = Path(qemu(release)), program, Path(work)
        self.lines, self.peak = [], 0
        self.timeout = ["timeout", str(LIMIT)]

    def command(self, suite, *options):
        return [*self.timeout, self.qemu, "-L", "/usr/share/seabios",
                "-L", "/usr/share/qemu", "-m", "128", "-display", "none", "-nic", "none",
                "-device", "knc-pmu-testdev", "-kernel", self.program, "-append", suite,
                *options]

    def run(self, *options, typed="", **instead):
        return subprocess.run(self.command(*options, **instead), env=ENVIRONMENT, check=False,
                              text=True, errors="replace", input=typed,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def start(self, *options):
        return subprocess.Popen(self.command(*options), env=ENVIRONMENT, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def is_since(self, version):
        said = quietly(self.qemu, "--version")
        return tuple(map(int, re.search(r" version (\d+)\.(\d+)", said).groups())) >= version

    def boot(self, boot, *options):
        """The results of its suite, and a failure if there is more to say of the run"""
        threads = f"{boot.threads},sockets=1,cores=1,threads={boot.threads}"
        command = self.command(
            boot.suite, "-M", "pc", "-cpu", boot.cpu,
            "-icount", f"shift=0,sleep={boot.sleep}", "-smp", threads,
            "-serial", "stdio", "-monitor", "none", "-device", "isa-debug-exit,iobase=0xf4",
            *boot.options.split(), *options)
        out, err = self.work / "out", self.work / "err"
        with open(out, "wb") as stdout, open(err, "wb") as stderr, \
                subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                                 stdout=stdout, stderr=stderr) as process:
            _, process.returncode, used = os.wait4(process.pid, 0)
        self.peak = used.ru_maxrss
        said, complaints = (path.read_text(errors="replace") for path in (out, err))
        # The firmware writes to the port as well, and without line ends.
        self.lines = re.findall("(?:ok|FAIL|done|counter) .*", said)
        results = [line.replace(" ", f" {boot.label}: ", 1) for line in self.lines
                   if re.match("ok|FAIL", line)]
        name = f"{boot.label}: suite {boot.suite}"
        if COMPLAINT.search(complaints):
            results.append(result(name, complaints))
        if not any(line.startswith("done 1 ") for line in self.lines):
            results.append(result(name, "did not come to its end\n" + tail(said, complaints)))
        return results


def suite(name, machine):
    for boot in SUITES[name]:
        if boot.since and not machine.is_since(boot.since) or machine.is_since(boot.before):
            continue
        if boot.modest:
            machine.boot(Boot("", "gates", boot.threads))
            without = machine.peak
        yield from machine.boot(boot)
        if boot.modest:
            yield result(f"{boot.label}: {name}: takes no memory",
                         machine.peak - without >= 50000 and
                         f"{machine.peak} KiB, not {without}")


def clock(machine):
    """A run depends on nothing of the host: the next one prints the same times."""
    yield from suite("clock", machine)
    first = machine.lines
    yield from (line for line in suite("clock", machine) if line.startswith("FAIL"))
    times = sum(line.startswith("counter") for line in first)
    yield as_expected("clock: the same again", first,
                      machine.lines if 20 <= times < 30 else [f"{times} times"])


def limit(machine):
    """The test device ends a program at a limit of the guest's time, of which a halted one has ten
    minutes in a second, or sleeps for them."""
    for label, suite_name, seconds, sleep in (("busy", "busy", 1, "off"),
                                              ("halted", "asleep", 600, "off"),
                                              ("halted beside a timer", "ticking", 3, "off"),
                                              ("busy, sleeping", "busy", 1, "on"),
                                              ("halted, sleeping", "asleep", 3, "on")):
        began = time.monotonic()
        done = machine.run(suite_name, "-cpu", "knc", "-icount", f"shift=0,sleep={sleep}",
                           "-global", f"knc-pmu-testdev.limit={seconds}")
        yield ended(f"limit: {label}", done, 124, f"the guest's limit of {seconds} s has come")
        if label == "halted, sleeping":
            took = time.monotonic() - began
            yield result("limit: the host sleeps while the guest does",
                         took < seconds - 1 and f"{took} s of the host")


def stopped(machine):
    """While the monitor has stopped the machine no time passes, also if it sleeps."""
    serial = machine.work / "serial"
    serial.touch()
    with machine.start("asleep", "-cpu", "knc", "-icount", "shift=0,sleep=on",
                       "-global", "knc-pmu-testdev.limit=2",
                       "-serial", f"file:{serial}", "-monitor", "stdio") as process:
        while process.poll() is None and "asleep" not in serial.read_text(errors="replace"):
            time.sleep(0.1)
        for order, seconds in (("stop", 2), ("cont", 0)):
            process.stdin.write(f"{order}\n")
            process.stdin.flush()
            time.sleep(seconds)
        began = time.monotonic()
        status = process.wait()
    left = time.monotonic() - began
    yield result("stopped: the time for which it is stopped is not the guest's",
                 (status != 124 or left < 0.5) and f"status {status}, {left} s later")


def typed(machine):
    """What QEMU's main loop sets a timer for is on time."""
    with machine.start("typed", "-cpu", "knc", *ICOUNT, "-serial", "stdio",
                       "-device", "isa-debug-exit,iobase=0xf4") as process:
        until(process.stdout, "type")
        said = process.communicate("xx")[0]
    yield from (line.replace(" ", " typed: ", 1) for line in said.splitlines()
                if re.match("ok|FAIL", line))
    if "done 1 " not in said:
        yield result("typed", f"did not come to its end: {said}")


def until(stream, text):
    for line in stream:
        if text in line:
            return


def gdb(machine):
    """gdb executes an instruction of one thread, and of the other, while it holds the rest."""
    path = machine.work / "gdb"
    machine.timeout = []
    with machine.start("busy", "-cpu", "knc", *ICOUNT, "-smp",
                       "2,sockets=1,cores=1,threads=2", "-serial", "stdio",
                       "-gdb", f"unix:{path},server=on,wait=off") as process:
        until(process.stdout, "busy")
        with socket.socket(socket.AF_UNIX) as stub:
            stub.settimeout(20)
            stub.connect(str(path))
            ask(stub, "qSupported:multiprocess+")
            ask(stub, "?")
            for thread in (2, 1, 2):
                # QEMU may say only now that it has stopped when gdb came.
                here = f"thread:p01.0{thread};"
                said = ask(stub, f"vCont;s:p1.{thread}", f"[^#]*{here}")
                yield result(f"gdb: a step of thread {thread}",
                             here not in said and f"said: {said}")
        process.kill()


def ask(stub, packet, begins=""):
    """The answer to a packet of gdb's remote protocol, or what there was of it"""
    answer = re.compile(rf"\${begins}[^#]*#..".encode())
    stub.sendall(f"${packet}#{sum(packet.encode()) % 256:02x}".encode())
    said = b""
    with contextlib.suppress(OSError):
        while not answer.search(said) and (more := stub.recv(4096)):
            said += more
        stub.sendall(b"+")
    return said.decode()


def refused(machine):
    log = machine.work / "replay"
    for name, options, told in (
            ("no -icount", "", "knc-pmu needs -icount shift=0"),
            ("another shift", "-icount shift=1,sleep=off", "knc-pmu needs -icount shift=0"),
            ("threads of the host", f"{' '.join(ICOUNT)} -accel tcg,thread=multi",
             "No MTTCG when icount is enabled"),
            ("more than 64 cores", f"{' '.join(ICOUNT)} -smp 65,cores=65",
             "the largest card has 61"),
            ("record", f"{' '.join(ICOUNT)},rr=record,rrfile={log}",
             "knc-pmu goes with neither record nor replay")):
        done = machine.run("gates", "-cpu", "knc", *options.split())
        yield ended(f"refused: {name}", done, 1, told)


def hotplug(machine):
    """A CPU cannot be added while the machine runs, and the monitor says so."""
    done = machine.run(
        "asleep", "-cpu", "knc", *ICOUNT, "-smp", "1,sockets=2,maxcpus=2",
        "-serial", "none", "-monitor", "stdio",
        typed="device_add knc-x86_64-cpu,socket-id=1,core-id=0,thread-id=0\nquit\n")
    told = re.search("^Error: .*(a pluggable device type|does not support hotplugging)\r?$",
                     done.stdout, re.M)
    yield result("hotplug: refused", (done.returncode or not told) and
                 f"status {done.returncode}: {done.stdout}")


def trace(machine):
    """The accesses of suite "trace", from its first mark to its last: order, numbers and all"""
    log = machine.work / "trace"
    yield from machine.boot(Boot("trace", "trace"), "-trace", "knc_pmu_*", "-D", log)
    # How many instructions ring 0 takes is the compiler's affair.
    said = re.sub("ring=0 insn=[0-9]*", "ring=0", log.read_text())
    marked = re.findall("^.*mark.*value=1\n(?:.*\n)*?.*mark.*value=3$", said, re.M)
    want = Path(HERE, "trace.expected").read_text().splitlines()[1:]
    yield as_expected("trace: every access, in order", want, "\n".join(marked).splitlines())


def compare(machine):
    """What the emulator has counted from the first instruction of the firmware to the hlt
    at the end of suite "compare", against QEMU's own plugins in the same run. A plugin sees
    every round of a rep as an instruction: EXEC_STAGE_CYCLES. It sees two halves of a
    descriptor, and none of the slots of a PAUSE. Without its timer the machine takes no
    interrupt, whose accesses a plugin may or may not take for those of an instruction.
    Without VGA it copies nothing to a device, for which a plugin counts reads twice."""
    beside = machine.qemu.parent
    folder = next(path for path in (beside / "tests/tcg/plugins", beside / "tests/plugin",
                                    beside) if path.is_dir())
    serial, log = machine.work / "serial", machine.work / "plugin"
    serial.touch()
    with machine.start("compare", "-M", "pc,pit=off", "-vga", "none",
                       "-cpu", "knc,pmu-observe=on", *ICOUNT, "-smp", "1",
                       "-serial", f"file:{serial}",
                       "-monitor", "stdio", "-plugin", f"{folder}/libinsn.so",
                       "-plugin", f"{folder}/libmem.so,callback=on",
                       "-d", "plugin", "-D", log) as process:
        while process.poll() is None and not re.search(
                "^done", serial.read_text(errors="replace"), re.M):
            time.sleep(0.2)
        # For the hlt, on a busy host as well
        time.sleep(2)
        said = process.communicate("info knc-pmu\nqom-get /machine/unattached/device[0] knc-pmu\n"
                                   "quit\n")[0].replace("\r", "")

    found = re.findall("(total insns|mem accesses): +([0-9]+)$",
                       log.read_text() if log.exists() else "", re.M)
    found += re.findall("^ *(\\w+) +([0-9]+) +([0-9]+)$", said, re.M)
    sums = collections.Counter({name: sum(map(int, numbers)) for name, *numbers in found})
    insns = sums["total insns"] + sums["waits"]
    accesses = sums["mem accesses"] - sums["descriptors"]
    for name, got, want in (
            ("instructions, with the plugin", sums["EXEC_STAGE_CYCLES"], insns),
            ("rounds of rep are no instructions",
             sums["INSTRUCTIONS_EXECUTED"] + sums["FE_STALLED"] // 2, insns),
            ("accesses to memory, with the plugin", sums["DATA_READ_OR_WRITE"], accesses),
            ("reads and writes", sums["DATA_READ"] + sums["DATA_WRITE"], accesses)):
        yield result(f"compare: {name}: {got}", (got != want or not got) and f"not {want}")
    shown = re.findall("^ *([A-Z][A-Z0-9_]+) +[0-9]+ +[0-9]+$", said, re.M)
    yield as_expected("compare: the monitor has the events of the documentation",
                      sorted(name for name, _ in documented()[0]), sorted(shown))
    by_qom = re.search('^"CPU#0.*"$', said, re.M)
    yield result("compare: a CPU's property has the same", not by_qom or
                 json.loads(by_qom[0]) not in said)
    if not sums["EXEC_STAGE_CYCLES"] or not insns:
        yield result("compare: suite compare",
                     "no counts\n" + tail(serial.read_text(errors="replace"), said))


def documented():
    """The lists of Documentation/emulator.rst: (event, what it stands for) of those that
    count, (event, why it does not) of the others"""
    counting, others = Path(TOP, "Documentation/emulator.rst").read_text("utf-8").split(
        "\nThese are not modelled, ")
    return [re.findall(r"^- ([A-Z0-9_]+):(?: (.*))?$", text, re.M) for text in (counting, others)]


def events(_machine):
    """Documentation/emulator.rst has each event of the tables once, and each has a text. "compare"
    has those that count; tests/tools compares the tables with the manual's, and with the model."""
    rows, never = documented()
    listed = sorted(name for name, _ in rows + never)
    yield result("events: each event is in the documentation, once",
                 listed != sorted(event.name for event in knc_tables.load()[0]) and f"{listed}")
    yield result("events: what counts is explained, and why the others do not",
                 [name for name, text in rows + never if not text] or not never)


def style(machine):
    """QEMU's own checkpatch.pl; newer ones accept our licence, and would rather have another."""
    for path in sorted(Path(TOP, "emulator").rglob("*.*")):
        if path.suffix in (".c", ".h", ".inc"):
            said = subprocess.run(
                ["perl", machine.qemu.parent / "checkpatch.pl", "--no-tree", "--no-summary",
                 "-q", "-f", path], check=False, text=True, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT).stdout
            yield result(f"style: {path.relative_to(f'{TOP}/emulator')}", re.sub(
                "^(WARNING: Saw acceptable license 'GPL-2.0-only.*)?\n", "", said, flags=re.M))


def seeds():
    """One after another, TEST_FUZZ_SEED first, until TEST_FUZZ_SECONDS have passed"""
    end = time.monotonic() + int(os.environ.get("TEST_FUZZ_SECONDS", 1))
    yield (seed := int(os.environ.get("TEST_FUZZ_SEED", 1)))
    while time.monotonic() < end:
        yield (seed := seed + 1)


def fuzz(boot):
    """QEMU neither crashes nor hangs, whatever the program does."""
    whole = []
    for seed in seeds():
        done = boot(f"fuzz seed={seed} rounds=200")
        # To QEMU a kernel without a TSS is a reason to abort.
        if (done.returncode not in (0, 124) and "invalid tss" not in done.stderr or
                COMPLAINT.search(done.stderr)):
            yield result(f"fuzz: TEST_FUZZ_SEED={seed}", f"status {done.returncode}\n"
                         f"{done.stderr}")
        whole.append("ok fuzz" in done.stdout)
    # A DELAY of seconds brings the guest's limit as well.
    yield result(f"fuzz: {sum(whole)} of {len(whole)} seeds up to {seed} had all rounds of ring 3",
                 2 * sum(whole) <= len(whole))


def fuzz_pc(machine):
    machine.timeout = FUZZ_TIMEOUT
    return fuzz(lambda words: machine.run(
        words, *FUZZED, "-m", "32", "-nodefaults", "-cpu", "knc", *ICOUNT, "-serial", "stdio",
        "-global", "knc-pmu-testdev.limit=1"))


def same(machine):
    """What a random program computes does not depend on what it is sampled by."""
    for seed in seeds():
        yield from machine.boot(Boot(f"TEST_FUZZ_SEED={seed}", f"same seed={seed} rounds=100"))


def none_left(tree, name, pattern):
    """Where QEMU as it is released ends, or lets a guest past a check, the lines have to be gone: a
    test that makes it do so would be a recipe."""
    files = list(tree.rglob(name))
    left = [f"{path}: {found}\n" for path in files
            for found in re.findall(pattern, path.read_text("utf-8"))]
    return result(f"install: fixed in {name}", "".join(left) or (not files and "no such file"))


def vector_cases(machine):
    """What a PC and the board compute of random cases of the vector unit, with and without the
    model of the memory. Of a case that is changed by a bit vectors.py says so."""
    seed = int(os.environ.get("TEST_FUZZ_SEED", 1))
    cases = mvex.Random(seed).some(1000)
    for cpu in ("knc", "knc,pmu-observe=on", "board"):
        program = vectors.build_program(machine.work, cpu)
        wrong = [f"{case['text']}, {case}: {why}"
                 for case, told in vectors.run(machine.qemu, cpu, program, cases, True)
                 for why in told]
        yield result(f"vector-cases: {cpu}, TEST_FUZZ_SEED={seed}",
                     "\n".join(wrong[:10]) or len(cases) != 1000)
    text = json.dumps(next(case for case in cases if case["text"] == "vpaddd"))
    for name, old, new in (("a result", '"out": {"zmm": {"', '"out": {"k": {"1": 3}, "zmm": {"'),
                           ("a fault", '"out": {', '"out": {"fault": "#GP", '),
                           ("a count", '"active": ', '"active": 1')):
        changed = json.loads(text.replace(old, new))
        told = [why for _, why in vectors.run(machine.qemu, cpu, program, [changed], True)]
        yield result(f"vector-cases: told of {name}", not told[0] and f"{changed}")


def decoder(machine):
    """Random encodings with MVEX are valid, and as long, as libZydis says. It accepts k0, and other
    conversions, where the emulator does not (Documentation/emulator.rst)."""
    seed = int(os.environ.get("TEST_FUZZ_SEED", 1))
    more = re.compile("gather|scatter|v(f|p)madd233|v(p?)addset")
    cases, wrong = [], []
    for code in mvex.encodings(seed, 3000):
        (_, text), (end, _), *_ = decoded(zydis(), code, 0)
        valid = text != "(bad)"
        # An instruction behind it shows where it ends.
        cases.append({
            "text": text, "code": (code[:end] + b"\xb8\1\0\0\0" if valid else code).hex(),
            "in": {"zmm": {str(n): "00" * 64 for n in range(32)}, "gpr": {"rax": ["mem", 0]}},
            "out": {"gpr": {"rax": 1}} if valid else {"fault": "#UD"}})
    program = vectors.build_program(machine.work, "knc")
    for case, told in vectors.run(machine.qemu, "knc", program, cases):
        said = " ".join(why for why in told if why.startswith(("ring 0", "the emulator")))
        if "fault" in case["out"] or "the emulator" in said:
            bad = said
        elif ": #UD, not" in said:
            bad = not more.search(case["text"])
        else:
            # Of another fault, such as that of an address, the length is not known.
            bad = " rax " in said and not re.search(": (#|1[0-9])", said)
        if bad:
            wrong.append(f"{case['code']} {case['text']}: {said}")
    accepted = sum("fault" not in case["out"] for case in cases)
    yield result(f"decoder: TEST_FUZZ_SEED={seed}: {accepted} valid, {len(cases) - accepted} not",
                 "\n".join(wrong[:10]) or not 500 < accepted < 2500)


def install(machine):
    """install-in-qemu, on those of QEMU's files that it changes: once undone it is as if it
    had never been, twice is as good as once, and where a line is missing that it looks for,
    nothing is touched."""
    plain, tree, installed = (machine.qemu.parent / "plain", machine.work / "qemu",
                              machine.work / "installed")
    if not plain.is_dir():
        yield result("install", f"no {plain}; scripts/build-qemu makes it")
        return

    def in_qemu(*options):
        done = subprocess.run([f"{SCRIPTS}/install-in-qemu", *options, tree], check=False,
                              text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return done.stderr + (f"status {done.returncode}" if done.returncode else "")

    shutil.copytree(plain, tree)
    said = in_qemu()
    shutil.copytree(tree, installed)
    yield result("install: twice is as good as once",
                 said + in_qemu() + differ(installed, tree))
    places = len(re.findall(r"^\d.*[acd]\d", differ(plain, tree), re.M))
    yield result(f"install: it changes {places} places, and few", places > 65)
    said = in_qemu("--undo")
    yield result("install: undone", said + differ(plain, tree))
    yield none_left(installed, "misc_helper.c", r"SVM_EXIT_ERR, ")
    if (plain / "VERSION").read_text("utf-8").startswith("7."):
        yield none_left(installed, "seg_helper.c", r"if \(new_eflags & VM_MASK\) \{\n +goto")
        yield none_left(installed, "translator.c", r"assert\(phys_page != -1\)")
        yield none_left(installed, "translate.c",
                        r"bt_op:\n(?! +if \(mod == 3 && \(s->prefix & PREFIX_LOCK\)\))")

    name = "target/i386/cpu.h"
    text = (plain / name).read_text("utf-8")
    for what, changed, told in (
            ("QEMU has a flag in one of our bits", f"{text}#define HF_NEW_SHIFT 29\n",
             "has a flag in one of the bits"),
            ("a line is missing that it looks for", text.replace("} CPUX86State;", "gone"),
             f"install-in-qemu: {name}: looked for ")):
        (tree / name).write_text(changed, "utf-8")
        said = in_qemu()
        why = "" if told in said else f"said: {said}"
        if (tree / name).read_text("utf-8") != changed:
            why += "and changed it"
        shutil.copy(plain / name, tree / name)
        yield result(f"install: refused where {what}", why + differ(plain, tree))


# What pytest asks for

@pytest.fixture(scope="session")
def bare(tmp_path_factory):
    """The program that QEMU boots"""
    return vectors.build_program(tmp_path_factory.mktemp("bare"), "knc")


@once
def qemu(release):
    if os.environ.get("QEMU"):
        return os.environ["QEMU"]
    options = ["--suite", release] if release else []
    if SANITIZED:
        options.append("--sanitized")
    return built("build-qemu", *options) + "/qemu-system-x86_64"


def cases(run):
    checks = {name: partial(suite, name) for name in SUITES}
    checks |= {check.__name__: check for check in (
        clock, limit, stopped, typed, gdb, refused, hotplug, trace, compare, events, style, same,
        install)}
    checks |= {"vector-cases": vector_cases, "vector-decoder": decoder, "fuzz": fuzz_pc}
    for name, check in checks.items():
        yield Case(name, lambda *on, check=check: check(Machine(run.kernel, *on)), seconds=20)


def judge(results, record_property):
    failed = [line for line in results if line.startswith("FAIL")]
    if failed or not results:
        pytest.fail("\n".join([f"{len(failed)} of {len(results)} results", *failed]), pytrace=False)
    for line in results:
        record_property("note", line)


def test(case, bare, tmp_path, record_property):
    judge([*case.check(bare, tmp_path)], record_property)
