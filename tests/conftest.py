# SPDX-License-Identifier: GPL-2.0-only
"""What pytest has to know: the parts of tests/parts, and how results are printed.

A folder has tests as pytest knows them, or a function cases(run), which yields Cases:
tests whose names come from elsewhere. Cases of one group run on one worker, in their
order: a boot is made once for its group.
"""
import collections
import contextlib
import fnmatch
import glob
import os
import random
import re
import sys
from dataclasses import dataclass

import pytest
from lines import TESTS, TOP, Case, once
from knc_scripts import CACHE

# These take a part of a name.
PARTLY = ("unit", "static")


@dataclass
class Run:
    """A word of tests/parts: what runs, on which kernel, and which of it."""
    folder: str
    kernel: str
    names: list
    keep: str

    @property
    def prefix(self):
        return self.kernel and self.kernel + "/"


def set_default(name, value):
    """Of the environment, which the workers inherit"""
    if name not in os.environ:
        os.environ[name] = str(random.randrange(1, 2 ** 31)) if value == "new" else value
        if value == "new":
            print(f"{name}={os.environ[name]}", file=sys.stderr, flush=True)


def read_runs(words, kernel, keep):
    """What scripts/check has found in tests/parts; on another kernel, if one is named."""
    runs = []
    for word in words:
        if "=" in word:
            set_default(*word.split("="))
            continue
        folder, on, names = re.fullmatch(r"(\w+)@?([\w.-]*):?(\S*)", word).groups()
        if kernel and on and any(run.folder == folder for run in runs):
            # The whole folder runs on that kernel already.
            continue
        runs.append(Run(folder, kernel or on, names.split("+") if names else [], keep))
    return runs


def pytest_addoption(parser):
    parser.addoption("--runs", default="", help="of tests/parts")
    parser.addoption("--kernel", default="", help="another flavour of build-kernel")
    parser.addoption("--keep", metavar="DIR", help="for what each boot leaves")
    parser.addoption("--notes", action="store_true", help="of tests that pass")
    parser.addoption("--list", action="store_true", help="only name the tests")


def pytest_configure(config):
    config.runs = read_runs(config.option.runs.split(), config.option.kernel,
                            config.option.keep and os.path.abspath(config.option.keep))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Results(config), "results")


def pytest_ignore_collect(collection_path, config):
    room = str(collection_path)
    if os.path.dirname(room) == TESTS and os.path.isdir(room):
        return os.path.basename(room) not in {run.folder for run in config.runs}
    return None


def chosen(cases, wanted):
    """Those that are wanted, and those that close their groups."""
    groups = {case.group for case in cases if case.group and wanted(case)}
    return [case for case in cases if wanted(case) or case.closes and case.group in groups]


def pytest_generate_tests(metafunc):
    if "case" not in metafunc.fixturenames:
        return
    folder = os.path.basename(os.path.dirname(metafunc.module.__file__))
    params = []
    for run in metafunc.config.runs:
        if run.folder != folder:
            continue
        # Two runs have a test of a boot that has to be asked for, if TEST does.
        had = {param.id for param in params}
        cases = [case for case in metafunc.module.cases(run) if run.prefix + case.name not in had]
        if run.names:
            cases = chosen(cases, lambda case: {case.name, case.group} & {*run.names})
        for case in cases:
            marks = ()
            if case.group:
                case.group = run.prefix + case.group
                marks = pytest.mark.xdist_group(f"{folder}-{case.group}")
            elif case.timed:
                marks = pytest.mark.xdist_group("timed")
            params.append(pytest.param(case, id=run.prefix + case.name, marks=marks))
    metafunc.parametrize("case", params)


def name_of(nodeid):
    """A test's public name: that of the case, or the function's and its parameters' with dashes"""
    found = re.search(r"::test\[(.*)\]", nodeid)
    return found.group(1) if found else \
        re.sub(r".*::test_|[]@].*", "", nodeid).replace("_", "-").replace("[", "-")


def folder_of(nodeid):
    return nodeid.split("/")[0]


def asked_for(nodeid):
    """The patterns of TEST that match its name, without the kernel that it runs on"""
    name, folder = name_of(nodeid), folder_of(nodeid)
    return [word for word in os.environ.get("TEST", "").split()
            if fnmatch.fnmatch(name.rsplit("/")[-1], word) or folder in PARTLY and word in name]


def unit_of(item):
    """What is run together: a test, or a group of them"""
    group = item.get_closest_marker("xdist_group")
    return group.args[0] if group else item.nodeid


def seconds_of(item):
    return 70 if item.path.stem == "test_watch" else case_of(item).seconds


def case_of(item):
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return params.get("case", Case(item.name))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    order = os.environ.get("TEST_ORDER")
    if os.environ.get("TEST"):
        groups = {case_of(item).group for item in items if asked_for(item.nodeid)}
        items[:] = [item for item in items if asked_for(item.nodeid) or
                    case_of(item).closes and case_of(item).group in groups]
    # The longest first, and those of knc-host watch, which mostly wait, beside what computes
    items.sort(key=seconds_of, reverse=True)
    if order:
        units = collections.Counter()
        for item in items:
            # Each test of a boot has the seconds of the boot.
            so_far = 0 if case_of(item).group else units[unit_of(item)]
            units[unit_of(item)] = so_far + seconds_of(item)
        draw = random.Random(order)
        # Long ones tend to come early here, too: the last one runs alone.
        place = {unit: draw.random() / (10 + units[unit]) for unit in sorted(units)}
        items.sort(key=lambda item: place[unit_of(item)])


class Results:
    """A line for each test; at the end, their number, and what was not run."""

    def __init__(self, config):
        self.config, self.results, self.wanted = config, {}, None
        # Why runs have ended early, as told; how many tests had no result for that reason
        self.ends, self.untold = set(), 0
        # Processor time: of the tests of a folder, in seconds; and where that of builds begins
        self.seconds, self.builds = collections.Counter(), len(build_times())
        # For each run that run-uos keeps: when it was used last
        self.kept = {entry.name: entry.stat().st_mtime for entry in self.runs()}

    def runs(self):
        folder = os.environ.get("KNC_PMU_RUNS")
        return [*os.scandir(folder)] if folder and os.path.isdir(folder) else []

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self):
        # xdist has no option for this.
        workers = self.config.pluginmanager.get_plugin("terminaldistreporter")
        if workers:
            workers.ensure_show_status = workers.setstatus = lambda *_, **__: None

    def pytest_collection_finish(self, session):
        if session.items:
            self.pytest_xdist_node_collection_finished(
                None, [item.nodeid for item in session.items])

    def pytest_xdist_node_collection_finished(self, node, ids):
        if self.wanted is not None:
            return
        self.wanted = ids
        had = {word for nodeid in ids for word in asked_for(nodeid)}
        missing = [word for word in os.environ.get("TEST", "").split() if word not in had]
        if missing:
            print(f"check: error: no test is called {' '.join(missing)}; scripts/check "
                  "--list names them", file=sys.stderr)
            os._exit(1)
        if self.config.option.list:
            print("\n".join(f"{folder_of(nodeid)}/{name_of(nodeid)}" for nodeid in ids),
                  flush=True)
            os._exit(0)

    def tell(self, verdict, nodeid, why=""):
        if self.results.get(nodeid) != "FAIL":
            self.results[nodeid] = verdict
            first, *more = why.strip().splitlines() or [""]
            print(f"{verdict} {name_of(nodeid)} {first}".rstrip())
            print("".join(f"    {line}\n" for line in more[:60]), end="", flush=True)

    def pytest_runtest_logreport(self, report):
        self.seconds[folder_of(report.nodeid)] += getattr(report, "processor_time", 0)
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = f"{crash.message}\n{report.longrepr}" if crash else str(report.longrepr)
            # pytest 8 begins with the class, also without a traceback.
            why = re.sub(r"^(Failed|AssertionError): ", "", why)
            if why.startswith("no result"):
                if why in self.ends:
                    # An earlier test of the run has said why it ended.
                    self.results[report.nodeid] = "FAIL"
                    self.untold += 1
                    return
                self.ends.add(why)
            self.tell("FAIL", report.nodeid, why)
        elif report.skipped:
            self.tell("skip", report.nodeid, report.longrepr[2].removeprefix("Skipped: "))
        elif report.when == "call":
            self.tell("ok", report.nodeid)
            if self.config.option.notes:
                print("".join(f"    {note}\n" for _, note in report.user_properties), end="",
                      flush=True)

    def pytest_collectreport(self, report):
        if report.failed:
            self.results[report.nodeid] = "FAIL"
            print(f"FAIL {report.nodeid} cannot be read")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        for nodeid in self.wanted or ():
            if nodeid not in self.results:
                self.tell("FAIL", nodeid, "was not run")
        damaged = [*damaged_builds()] if os.environ.get("TEST_ORDER") else []
        if damaged:
            self.tell("FAIL", "cache", "\n".join(["files have changed:", *damaged]))
        counts = list(self.results.values())
        if counts.count("FAIL") or not counts.count("ok"):
            session.exitstatus = 1

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self):
        counts = list(self.results.values())
        if self.untold:
            print(f"{self.untold} more failed, as their runs had ended: failures above say why")
        if self.seconds.total() > 60:
            builds = collections.Counter()
            for seconds, what in (line.split(" ", 1) for line in build_times()[self.builds:]):
                builds[what] += float(seconds)
            print(f"Processor time, seconds: {in_words(self.seconds)}")
            print(f"  of that, and {self.seconds.total():.0f} in all, builds: {in_words(builds)}")
        again = sum(entry.stat().st_mtime > self.kept.get(entry.name, float("inf"))
                    for entry in self.runs())
        if again:
            print(f"{again} boots were not made again: the same emulator, kernel and files have "
                  "succeeded (KNC_PMU_RUNS= makes all)")
        print(f"{counts.count('ok')} passed, {counts.count('FAIL')} failed" +
              (f", {counts.count('skip')} skipped" if counts.count("skip") else ""))


def build_times():
    """What "logged" of scripts/lib.sh has noted: seconds, and of what"""
    with contextlib.suppress(FileNotFoundError), open(f"{CACHE}/times", encoding="utf-8") as f:
        return f.read().splitlines()
    return []


def in_words(seconds):
    return ", ".join(f"{what} {n:.0f}" for what, n in seconds.most_common() if n >= 1)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    item.begun = sum(os.times()[:4])
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "teardown":
        outcome.get_result().processor_time = sum(os.times()[:4]) - item.begun


def damaged_builds():
    """Files of builds in the cache that are not as "once" of scripts/lib.sh has listed them"""
    for listed in glob.glob(f"{CACHE}/*/*.files"):
        with open(listed, encoding="utf-8") as f:
            for size, name in (line.rstrip("\n").split(" ", 1) for line in f):
                path = os.path.join(listed.removesuffix(".files"), name)
                if not os.path.lexists(path) or os.lstat(path).st_size != int(size):
                    yield path


def surroundings():
    """What no test may change: the environment; and with TEST_ORDER the files of the checkout,
    which a person may edit meanwhile"""
    found = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    if os.environ.get("TEST_ORDER"):
        for folder, folders, names in os.walk(TOP):
            folders[:] = {*folders} - {".git", "__pycache__"}
            found.update((path, os.lstat(path).st_mtime_ns)
                         for path in (os.path.join(folder, name) for name in names))
    return found.items()


@pytest.fixture(autouse=True)
def leaves_no_trace():
    before = surroundings()
    yield
    changed = {name for name, _ in before ^ surroundings()}
    assert not changed, f"the test has changed {', '.join(sorted(changed))}"


@pytest.fixture(autouse=True)
def room(request, tmp_path, monkeypatch):
    """Each test of scripts and tools runs in a folder of its own."""
    if request.path.parent.name in ("scripts", "tools"):
        monkeypatch.chdir(tmp_path)


def pytest_report_teststatus():
    return "", "", ""


@pytest.fixture(scope="session")
def running(request):
    """running(case): the program that the tests of the case's group share. The first
    begins it, by case.check(names of those that run), and it ends with the session."""
    with contextlib.ExitStack() as stack:
        @once
        def begin(group, start):
            return stack.enter_context(start(
                [case_of(item).name for item in request.session.items
                 if case_of(item).group == group]))

        def get(case):
            try:
                return begin(case.group, case.check)
            except pytest.fail.Exception as e:
                why = str(e)
            # Not within "except": pytest 8 would print both exceptions.
            pytest.fail(f"no result: {why}", pytrace=False)

        yield get
