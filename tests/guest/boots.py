# SPDX-License-Identifier: GPL-2.0-only
"""The boots of the emulated card, and the tests of each in the order in which they run."""
import fnmatch
import re
from dataclasses import dataclass, field
from pathlib import Path


def without(tests, patterns):
    return " ".join(test for test in tests.split()
                    if not any(fnmatch.fnmatch(test, p) for p in patterns.split()))


# What the tests in C are written in
TEXTS = "".join(path.read_text() for path in sorted(Path(__file__).parent.glob("*.c")))
# Of each kind one
QUICK = """count-exact count-both count-kernel count-truth sample-one sample-two sample-throttle
    multiplex constraints groups-refused wrap-period group-read task-switch inherit cpu-wide
    spflt-region spflt-switch"""
# As long as all that is in MAIN: CPUs come and go, and random tests
LIFE = """modprobe spflt-first refuse-reason card-check selftest-in-use fuzz soak hotplug
    hotplug-group hotplug-spflt-group hotplug-reset first-event unload-left fault-open fault-hotplug"""

# An overflow, a late one, another NMI, or another thread's access between any two
# instructions: at one in so many points (TEST_STRIDE), or at one alone (TEST_POINT=n)
RACES = " ".join(re.findall(r'^(?:RACE|TEST)\("(race-[^"]+)"', TEXTS, re.M))

# Tests of other boots: run by name, or on kernels that are named
OTHERS = """idle-* interrupts-balance load-beside machine-check nmi-swallowed nosym pmi-storm
    strict-user card-perf* take-over watchdog witness wrong-cpu"""
# All others, 2 cores x 4 threads: first those that find the driver not loaded; late those from
# which on a task's switch is also that of its SPFLT bit
FIRST = "load-owned selftest-unloaded reset-state"
MAIN = f"{FIRST} " + " ".join(sorted(without(
    " ".join(re.findall(r'^TEST\("([^"]+)"', TEXTS, re.M)),
    f"{FIRST} {LIFE} race-* {OTHERS}").split(), key=lambda test: bool(re.search("spflt|marks", test)))
    ) + " perf-stat perf-record perf-list perf-tools"

# Of all kinds of tests, in a card's code: where the chip's instructions are all there are
STRICT = """strict-user count-exact count-both count-truth sample-one sample-two multiplex
    group-read inherit spflt-region spflt-switch task-switch"""

# What Debian's 6.1 does in all boots, on a newer kernel that leaves its own driver out
ALONE = "count-exact count-both sample-two multiplex inherit cpu-wide"

# Programs of Debian's, perf with tables of this chip; knc-metrics and knc-report
TOOLS = "likwid perf-tables perf-metrics papi stress-ng bpftrace"
METRICS = """knc-metrics knc-report metrics-truth metrics-where metrics-threads metrics-regions
    metrics-kernels vector-programs"""

# A module gives programs no RDPMC.
RDPMC = "rdpmc* regions-rdpmc race-map race-nmi-map"

# Linux 2.6.38, which the cards have: not what needs a program of Debian's, or what that perf
# core does not have (Documentation/card.rst); not opens-quiet, as it patches code on all CPUs for
# the first event of a task, and after the last. It hangs where a file is closed while a CPU goes.
# card-check has an idle driver there, with which interrupts are lost.
OLD = "2.6.38"
NEW = f"(?!{OLD}).*"
# Where the driver is a module, without debugging
MODULE = "stock|uos.*"
OLD_MAIN = without(f"{MAIN} {LIFE}", """modprobe sample-cpu-time page-times
    spflt-hotplug perf-* bpf-* opens-quiet refuse-reason card-check
    hotplug* first-event fault-* spflt-first vector-*""")
OLD_RACES = "take-over " + without(RACES, "race-stop-offline") + " nmi-swallowed machine-check"
# The same kernel in a card's own code, on a card's board: 4 threads, and all 244. Left out beside
# what OLD_MAIN leaves out are
#   card-check, a shell script, as there is no shell in a card's code here; selftest is its
#       program alone;
#   wrong-cpu, as the board has no other CPU.
# On 244 threads one test of each kind, with those that go to all threads.
BOARD = f"{OLD}-k1om"
BOARD_MAIN = OLD_MAIN + " selftest"
BOARD_CARD = """count-exact count-both count-kernel sample-one sample-all sample-two multiplex
    groups-refused group-read inherit spflt-region spflt-switch spflt-inherit
    cpu-wide sample-wide task-switch selftest pmi-storm
    hotplug hotplug-reset spflt-hotplug"""

WITHOUT_OWN_DRIVER = "--append initcall_blacklist=init_hw_perf_events"
# The cards' cpufreq driver hangs when the second CPU comes back (Documentation/board.rst).
WITHOUT_CPUFREQ = "--append micpm=cpufreq_off"

# What is known of the mainline driver: counter 1 never counts, and one PMI is all that
# comes until an event is put on the CPU anew.
MAINLINE = {
    "mainline-counter-0": ("count-exact", "ok"),
    "mainline-counter-1": ("count-both", "FAIL counter 1 never counts"),
    "mainline-one-pmi": ("sample-one", "FAIL 1 thread: [1-9] samples, want 200")}

# With the fixes it passes what follows: not what is about names, SPFLT, refusals and the
# module, nor what MAINLINE_WRONG has.
MAINLINE_FIXED = without(MAIN, """load-* selftest-unloaded reset-state sample-freq*
    sample-throttle-group constraints refuse-* user-bits names spflt-* rdpmc-refused
    regions-spflt regions-marks perf-stat perf-list move-throttled
    sample-entry sample-syscall* bpf-read-* sample-user-only""")
# What it does wrong nevertheless (Documentation/knc-pmu.rst): samples are lost or late, and counts
# are right; at how many points depends on TEST_STRIDE
LOSES = "race-disable race-read race-read-group"
LOSES_AT_SOME = """race-period race-replace race-add race-move race-pmi race-switch race-map
    race-nmi-disable race-nmi-read race-nmi-period race-nmi-add race-nmi-move race-nmi-pmi
    race-nmi-switch race-nmi-map"""
RIGHT_RACES = "race-stop-read race-stop-period race-stop-toggle race-stop-wide"
POINTS = r"FAIL \d+ of \d+ points, "
MAINLINE_WRONG = {
    "race-read-again": POINTS + r".*: events counted \d{13}, ",
    "sample-user-only": r"FAIL \d+ of \d+ user mode samples are outside the program",
    "sample-entry": r"FAIL \d+ of \d+ samples, .*: wrong place"}
MAINLINE_LOSES = {**MAINLINE_WRONG, **{test: POINTS + "0 miscounted, " for test in LOSES.split()},
                  **{test: f"ok|{POINTS}0 miscounted, " for test in LOSES_AT_SOME.split()}}
CONSTRAINTS = {"constraints": "FAIL either, then 0xf0: the first is on counter 0"}


def known(prefix, wrong):
    return {f"{prefix}wrong-{test}": (test, why) for test, why in wrong.items()}


@dataclass
class Boot:
    """With run-uos's @options, on the @kernels that this pattern matches, or then @on
    another one. The @prefix stands before the tests' names. @known has more tests, whose results
    are known. @seconds is a guess. A boot that has to be @asked for runs by name only. On a
    @strict one programs have the chip's instructions alone."""
    name: str
    tests: str
    options: str = "--cores 1"
    kernels: str = NEW
    on: str = ""
    seconds: int = 60
    asked: bool = False
    strict: bool = False
    prefix: str = ""
    known: dict = field(default_factory=dict)

    def kernel(self, kernel):
        # In newer kernels than Debian's own it is the uOS kernel with mainline's driver.
        series = kernel.removeprefix("stock").removeprefix("uos")
        on = "mainline" if self.on == "stock" and series else self.on
        return on + series if on else kernel

    def driver(self, kernel):
        builtin = kernel.startswith("builtin") or "mainline" in self.on
        return "builtin" if builtin else "module"

    def tests_on(self, kernel):
        left_out = RDPMC if self.driver(kernel) == "module" else ""
        # These use AVX themselves, and are started without what saves the vector unit.
        if kernel.endswith("newest"):
            left_out += " vector-*"
        # A debug kernel can make allocations fail.
        if not re.match("(builtin-)?debug", kernel):
            left_out += " fault-*"
        return without(self.tests, left_out).split()


BOOTS = (
    Boot("main", MAIN, "--cores 2", seconds=240),
    # A CPU that goes waits for many RCU grace periods, and tasks are busy all that time.
    Boot("life", LIFE, "--cores 2 --append rcupdate.rcu_expedited=1", seconds=240),
    Boot("races", RACES, seconds=200),
    # From 7.0 on a kernel is preempted lazily, as above, or at once.
    Boot("races-full", RACES, "--cores 1 --append preempt=full", kernels="uos-newest", seconds=200,
         prefix="full-"),
    # With page table isolation, which this CPU does not need, entries and exits change stacks.
    Boot("pti", "sample-entry sample-syscall-regs", "--append pti=on", kernels="stock",
         prefix="pti-"),
    # Where perf core's function for samples is not found
    Boot("nosym", "nosym", kernels=MODULE, seconds=20),
    Boot("storm", "pmi-storm", "--cores 2", kernels=".*", seconds=90),
    # A kernel with the driver built in has an NMI watchdog.
    Boot("watchdog", "watchdog", "--cores 1 --expect-splat LOCKUP", kernels="builtin.*"),
    # With the mainline driver built in, the module does not load.
    Boot("beside", "load-beside", kernels=MODULE, on="stock"),
    Boot("alone", ALONE, f"--cores 1 {WITHOUT_OWN_DRIVER}", kernels="uos-.*", on="stock",
         prefix="alone-"),
    # On one CPU, by its clock of instructions: QEMU's threads run at once without it, where some
    # boots hang.
    Boot("other", "wrong-cpu", "--cpu qemu64 --append maxcpus=1 --qemu-arg=-icount "
         "--qemu-arg=shift=0,sleep=off", kernels=f"{MODULE}|{OLD}"),
    Boot("strict", STRICT, kernels="stock", prefix="strict-", strict=True),
    # perf for a card, in its own code, and on the kernel that the cards have
    Boot("perf", "card-perf card-perf-record", kernels="stock", asked=True, strict=True,
         prefix="strict-"),
    Boot("perf", "card-perf card-perf-record", kernels=OLD, asked=True),
    Boot("perf-k1om", "card-perf card-perf-record", kernels=BOARD, asked=True),
    # Two boots, which have to be the same
    Boot("again", "same-again", "--cores 2", kernels="stock", seconds=90),
    Boot("tools", TOOLS, kernels="stock", seconds=150),
    Boot("metrics", METRICS, kernels="stock", seconds=300),
    Boot("eight", "metrics-threads", "--cores 8", kernels="stock", prefix="eight-"),
    # The newest perf with our tables, on its own kernel
    Boot("newest", "perf-newest", kernels="uos-newest"),
    # Debian's fuzzers, which are fetched for it
    Boot("strangers", "trinity stress", "--cores 2", asked=True),
    # A whole card, 244 threads on one host thread
    Boot("card", "card", "--cores 61", seconds=600, asked=True),
    Boot("mainline", "", kernels=MODULE, on="mainline", asked=True, known=MAINLINE),
    Boot("mainline-fixed", MAINLINE_FIXED, "--cores 2", kernels=MODULE,
         on="mainline-fixed", asked=True, prefix="mainline-fixed-"),
    Boot("mainline-races", RIGHT_RACES, kernels="stock|uos.*", on="mainline-fixed", asked=True,
         prefix="mainline-fixed-", known=known("mainline-", {**MAINLINE_LOSES, **CONSTRAINTS})),
    # With the patches of mainline-fixes --series, one after the other
    *(Boot(f"series-{step}", f"{tests} {RIGHT_RACES}", kernels="stock|uos.*",
           on=f"mainline-{step}", asked=True, prefix=f"series-{step}-",
           known=known(f"series-{step}-", MAINLINE_LOSES))
      for step, tests in (("constraints", "constraints"), ("any", "constraints refuse-any"),
                          ("reset", "constraints refuse-any hotplug-reset"))),
    Boot("series-masked", f"{MAINLINE_FIXED} constraints refuse-any hotplug-reset "
         f"sample-throttle-group move-throttled bpf-read-add bpf-read-del {RIGHT_RACES} {LOSES} "
         f"{LOSES_AT_SOME} race-read-again race-skid-group",
         kernels="stock|uos.*", on="mainline-masked", asked=True, prefix="series-masked-"),
    Boot("main", OLD_MAIN, "--cores 2", kernels=OLD, seconds=240),
    Boot("races", OLD_RACES, "--cores 2", kernels=OLD, seconds=200),
    # In which an interrupt is lost
    Boot("idle", "idle-lost card-check", "--cores 2", kernels=OLD),
    Boot("cpus", "spflt-first first-event hotplug-reset spflt-hotplug", "--cores 2", kernels=OLD),
    # On one core: a CPU that comes up has two seconds for it there, or the kernel panics,
    # with its own driver as well; and the busy others take turns with it.
    Boot("hotplug", "hotplug", kernels=OLD),
    Boot("main", BOARD_MAIN, kernels=BOARD, seconds=240),
    Boot("races", OLD_RACES, kernels=BOARD, seconds=200),
    Boot("idle", "idle-lost", kernels=BOARD),
    Boot("idle-other", "idle-lost-other", kernels=f"{OLD}.*"),
    Boot("cpus", "spflt-first first-event hotplug hotplug-reset spflt-hotplug", WITHOUT_CPUFREQ,
         kernels=BOARD, seconds=200),
    Boot("card", BOARD_CARD, f"--cores 61 {WITHOUT_CPUFREQ}", kernels=BOARD, seconds=600,
         prefix="card-"),
)
