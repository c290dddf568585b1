# SPDX-License-Identifier: GPL-2.0-only
"""The driver on the emulated card: a group of tests for each of boots.py."""
import fnmatch
import os
import re
import shutil
import subprocess
import tempfile

import pytest
from boots import BOARD, BOOTS, OLD, QUICK, WITHOUT_OWN_DRIVER
from lines import SCRIPTS, TESTS, TOP, Case, Lines, built, check_listed, once, quietly
from shell import shell
from watch import watch

HERE = f"{TESTS}/guest"
# Debian's own kernel, which nobody has to build
DEFAULT = "stock"
# How much there is of some tests
SETTINGS = ("TEST_POINT", "TEST_STRIDE", "TEST_SEED", "TEST_PMIS",
            "TEST_FUZZ_SECONDS", "TEST_FUZZ_SEED", "TEST_FUZZ_DELAY")
# Of Debian's packages, for the boots "tools" and "metrics"
PROGRAMS = """/usr/bin/papi_avail /usr/bin/papi_native_avail /usr/bin/stress-ng
    /usr/bin/bpftrace /usr/bin/lua5.3 /usr/bin/likwid-perfctr /usr/bin/likwid-genTopoCfg
    /usr/sbin/likwid-accessD /usr/lib/x86_64-linux-gnu/liblikwid.so
    /usr/share/lua/likwid.lua"""
PHI = "/usr/share/likwid/perfgroups/phi"


@once
def prepared(kernel, driver, strict=False):
    """The guest's /tests, which are in a card's code on 2.6.38-k1om, or if so said."""
    work = tempfile.TemporaryDirectory(prefix="guest.")
    build = [f"{HERE}/build", kernel, driver]
    if kernel.startswith(OLD):
        build = [f"{TESTS}/uos/build", *(["--k1om"] if kernel == BOARD else []), os.environ["KDIR"]]
    build += [work.name, *(["strict"] if strict else [])]
    if subprocess.run(build, check=False, stdin=subprocess.DEVNULL).returncode:
        pytest.fail("a test, or the driver, does not build", pytrace=False)
    return work


def with_libraries(programs, root):
    """run-uos's options for programs of this machine, and what they are linked with"""
    files = set(programs.split())
    for program in programs.split():
        said = subprocess.run(["ldd", program], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        files.update(re.findall(r"(?:=> |^\s+)(/\S+)", said, re.M))
    for file in files:
        os.makedirs(root + os.path.dirname(file), exist_ok=True)
        shutil.copy(file, root + file)
    return [word for name in os.listdir(root) for word in ("--add-dir", f"{root}/{name}:/{name}")]


def tools(work):
    """Programs of this machine with the libraries that they are linked with; our own."""
    root, ours = f"{work}/root", f"{work}/programs"
    shutil.copytree(PHI, root + PHI)
    os.mkdir(ours)
    # Programs that are the same wherever they are built, so that the boot is the same
    maps = ["-g", f"-ffile-prefix-map={ours}=."]
    quietly("gcc", *maps, "-c", "-o", f"{work}/loops.o", f"{HERE}/loops.S")
    for program, *libraries in (["walk"], ["where"], ["calls"], ["vpu"], ["papi", "-lpapi", "-lpfm"]):
        quietly("gcc", "-O2", *maps, "-Wall", "-Wextra", "-static", "-o", f"{ours}/{program}",
                f"{HERE}/tools/{program}.c", f"{work}/loops.o", *libraries)
    # The tutorial's, and its source
    examples, include = f"{TOP}/Documentation/examples", f"{TOP}/include"
    shutil.copy(f"{examples}/columns.c", ours)
    quietly("gcc", "-O2", *maps, "-static", "-Wl,--eh-frame-hdr", "-o", f"{ours}/columns",
            "columns.c", cwd=ours)
    # As a program of MPSS's, too
    for cc, end in (("gcc", ""), (built("build-k1om"), "-card")):
        quietly(cc, "-O2", "-Wall", "-Wextra", "-static", "-o", f"{ours}/families{end}",
                f"{HERE}/tools/families.c")
    for program, folder in (("marked", examples), ("kernels", f"{HERE}/tools")):
        quietly("gcc", "-O2", "-Wall", "-Wextra", "-pthread", "-static", "-DLIKWID_PERFMON",
                f"-I{include}", "-o", f"{ours}/{program}", f"{folder}/{program}.c")
    quietly("gcc", "-O2", "-Wall", "-Wextra", "-c", "-o", f"{work}/regions.o", "-x", "c",
            f"{include}/knc_pmu_regions.h")
    quietly("gfortran", "-std=f2003", "-O2", "-Wall", "-Wextra", "-pthread", "-static", f"-J{work}",
            "-o", f"{ours}/marked-fortran", f"{include}/knc_pmu_regions.f90",
            f"{examples}/marked.f90", f"{work}/regions.o")
    return ["--add", f"{built('build-perf')}:/usr/bin/perf", "--add-dir", f"{ours}:/tests",
            *with_libraries(PROGRAMS, root)]


def newest(work):
    """The newest perf, and a program"""
    quietly("gcc", "-O2", "-static", "-o", f"{work}/walk", f"{HERE}/tools/walk.c",
            f"{HERE}/loops.S")
    return ["--add", f"{built('build-perf', 'newest')}:/usr/bin/perf", "--add",
            f"{work}/walk:/tests/walk"]


def workload(_work):
    return ["--add", f"{built('build-workload')}:/tests/workload"]


def card_perf(work, kind, machine):
    """What make card has for this kind of card, and the demo's program for it"""
    built("build-card", f"{work}/card")
    program = f"{work}/card/workload"
    quietly(built("build-k1om"), f"--machine={machine}", "-O2", "-g", "-o", program,
            f"{TOP}/uos/workload.c")
    return ["--add-dir", f"{work}/card/knc-pmu-card-{kind}:/tests",
            "--add", f"{program}:/tests/workload"]


# More options of some boots
OPTIONS = {
    "again": workload, "tools": tools, "metrics": tools, "eight": tools,
    "newest": newest,
    "perf": lambda work: card_perf(work, "mainline", 62),
    "perf-k1om": lambda work: card_perf(work, "k1om", 181),
    "strangers": lambda _: ["--add-dir", f"{built('build-programs')}:/strangers"]}


def options_of(boot, flavour, settings, work, tests):
    """run-uos's, for this boot on a flavour of build-kernel, or on Linux 2.6.38"""
    slow = re.search("debug|kcsan", flavour)
    every = re.search("races|series", boot.name) and settings["TEST_STRIDE"] == "1"
    # Of the guest's time, of which most boots take less than a minute
    limit = (7200 if slow or every else 600) + 4 * int(settings.get("TEST_FUZZ_SECONDS", 0))
    options = ["--timeout", str(limit), *boot.options.split()]
    if boot.name in OPTIONS:
        options += OPTIONS[boot.name](work)
    if slow:
        options += ["--expect-splat", "perf:.interrupt.took.too.long"]
    if re.match("stock|mainline", flavour) and not boot.on:
        options += WITHOUT_OWN_DRIVER.split()
    if flavour.startswith(OLD):
        with open(f"{tests}/append", encoding="utf-8") as f:
            options += ["--init", f"{tests}/init", "--append", f.read().strip()]
    if boot.strict:
        options += ["--strict-user", "--init", f"{tests}/init"]
    if flavour == BOARD:
        options.append("--board")
    return options


class Guest(Lines):
    """A boot, with these of its tests; what it leaves is in @out."""

    def __init__(self, run, boot, names, folder=""):
        self.made_of, self.boot = (run, boot, names), boot
        self.work = tempfile.TemporaryDirectory(prefix="guest.")
        self.out = f"{run.keep or self.work.name}/{run.prefix}{folder or boot.name}"
        flavour = run.kernel or DEFAULT
        kernel, driver = boot.kernel(flavour), boot.driver(flavour)
        settings = {"TEST_STRIDE": "311" if "debug" in flavour else "97",
                    **{name: os.environ[name] for name in SETTINGS if os.environ.get(name)},
                    "TEST_SCALE": 20 if re.search("debug|kcsan", flavour) else 1,
                    "TEST_PREFIX": boot.prefix, "TEST_DRIVER": driver}
        tests = [boot.known[name][0] if name in boot.known else name.removeprefix(boot.prefix)
                 for name in names if not name.startswith("boot-")]
        made = prepared(kernel, driver, boot.strict).name
        super().__init__(
            names, f"{SCRIPTS}/run-uos", "--out", self.out, "--add-dir", f"{made}:/tests",
            "--kernel", os.environ["IMAGE"] if kernel.startswith(OLD) else kernel,
            *options_of(boot, flavour, settings, self.work.name, made), "--",
            " ".join([*(f"{name}={value}" for name, value in settings.items()),
                      "/tests/run", boot.name, *tests]), stderr=subprocess.STDOUT,
            env={**os.environ, "KNC_PMU_RUNS": ""} if folder else None)

    def __exit__(self, *why):
        super().__exit__(*why)
        self.work.cleanup()

    def check(self, name):
        if name not in self.boot.known:
            notes = super().check(name)
            if name == "same-again":
                compare_boots(self)
            return notes
        test, want = self.boot.known[name]
        test = self.boot.prefix + test
        self.read_until(test)
        told = [f"{verdict} {why}" for verdict, why, _ in self.found.get(test, [])]
        assert len(told) == 1 and re.match(want, told[0]), f"{told}, not as known: {want}"
        return told


def compare_boots(guest):
    """Counts, samples, times, and each line of the console. The second one is made now, whatever
    run-uos keeps: this shows that it may."""
    guest.check_whole()
    with Guest(*guest.made_of, "again-again") as second:
        second.check_whole()
        for name in ("results", "console.log"):
            quietly("diff", "-a", f"{guest.out}/{name}", f"{second.out}/{name}")


# From outside

def get(work):
    """Any byte there is, over the serial line; with as little memory as there may be. The
    emulator's trace has what the kernel's own driver looks at."""
    said = quietly(f"{SCRIPTS}/run-uos", "--memory", "384M", "--get", f"bytes:{work}/bytes",
                   "--get", f"/proc/version:{work}/version", "--trace", f"{work}/trace",
                   "--", "head -c 300000 /dev/urandom >bytes && sha256sum <bytes")
    quietly("grep", "-q", "knc_pmu_rdmsr", f"{work}/trace")
    assert quietly("sha256sum", f"{work}/bytes").split()[0] in said, said
    assert quietly("cat", f"{work}/version").startswith("Linux version ")


def perf_selftest(_work):
    """perf's own tests of its tables, with ours. The card would take minutes."""
    perf = built("build-perf")
    # By its number: perf would look for a name in those of the test's parts, too.
    number = re.search(r"^ *(\d+): PMU events$", quietly(perf, "test", "list"), re.M).group(1)
    said = quietly(perf, "test", number)
    assert len(re.findall(": Ok$", said, re.M)) == 4 and not re.search("FAILED|Skip", said), said


def warnings(kernel):
    """What the compiler minds about the driver, for Linux 2.6.38"""
    with open(f"{prepared(kernel, 'module').name}/warnings", encoding="utf-8") as f:
        said = f.read()
    assert not said, said


# Of the cards' kernels, and how to give one
NEEDS = {OLD: "needs a card's kernel: make check-uos KDIR=<build tree, x86_64> IMAGE=<bzImage>",
         BOARD: "needs a card's kernel, and its compiler: make check-board IMAGE=<bzImage> "
                "KDIR=<build tree, k1om> CROSS_COMPILE=<what its compiler's name begins with>"}


def from_outside(function):
    with tempfile.TemporaryDirectory(prefix="guest.") as work:
        return function(work)


# What pytest asks for

def cases(run):
    kernel = run.kernel or DEFAULT
    if kernel.startswith(OLD) and not (os.environ.get("KDIR") and os.environ.get("IMAGE")):
        yield Case("all", lambda: pytest.skip(NEEDS[kernel]))
        return
    if "quick" in run.names:
        run.names += QUICK.split()
    asked = {*run.names, *os.environ.get("TEST", "").split()}
    for boot in BOOTS:
        def start(names, boot=boot):
            return Guest(run, boot, names)

        names = [boot.prefix + test for test in boot.tests_on(kernel)] + [*boot.known]
        end = [] if boot.known else [f"boot-{boot.name}"]
        if re.fullmatch(boot.kernels, kernel) and (
                not boot.asked or any(fnmatch.filter([boot.name, *names, *end], word)
                                      for word in asked)):
            for name in names + end:
                yield Case(name, start, boot.name, boot.seconds, name in end)
    if kernel.startswith(OLD):
        yield Case("warnings", lambda: warnings(kernel))
    if kernel == DEFAULT:
        yield Case("from-host", lambda: quietly(f"{HERE}/from-host") and None, seconds=60, timed=True)
        for function in (get, shell, watch, perf_selftest):
            yield Case(function.__name__.replace("_", "-"),
                       lambda function=function: from_outside(function), seconds=60, timed=True)


def test(case, running, record_property):
    if not case.group:
        for note in case.check() or ():
            record_property("note", note)
        return
    if case.closes:
        running(case).check(case.name)
    check_listed(case, running, record_property)
