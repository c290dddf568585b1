# SPDX-License-Identifier: GPL-2.0-only
"""The protocol, proved on the driver's sources (proof.c): a test for each obligation."""
import itertools
import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from lines import TESTS, TOP, Case, built, copy, none_of, quietly, read, sources
from faults import read_faults

HERE = f"{TESTS}/proof"
STATES = ("OFF", "STOP", "RUN", "READ", "PMI")
WRITERS = {"task side": 0, "PMI": 1, "replay": 2, "quiesce": 0}
# 3 is any slot, 4 any STATUS.
DEFAULTS = {"NARROW": 1, "READERS": 0, "SWALLOWED": 0, "EVENT": 0, "BUILTIN": 0, "SLOT0": 3,
            "SLOT1": 3, "STATUS": 4, "OWN": "nondet_bool()", "LATE": "nondet_bool()"}
# CBMC's own checks, in obligations whose numbers have all their bits. Signed overflow is none: the
# kernel's compiler is told that such numbers wrap (-fno-strict-overflow).
CHECKS = "--bounds-check", "--pointer-check", "--undefined-shift-check"


def obligations():
    """{name: macros}: each operation from each state, and by cases where it is large"""
    for state in STATES[:3]:
        yield f"idle-{state}", f"IDLE {state}"
    yield "disable", "DISABLE RUN STOP"
    yield "enable", "ENABLE STOP RUN"
    # On Linux 2.6.38
    yield "enable-swallowed", "ENABLE STOP RUN SWALLOWED=1"
    yield "read-RUN-0-swallowed", "READ RUN SWALLOWED=1"
    yield "quiesce", "QUIESCE STOP OFF"
    yield "quiesce-run", "QUIESCE RUN OFF"
    yield "quiesce-off", "QUIESCE OFF"
    yield "reset", "RESET OFF STOP"
    yield "add-off", "ADD OFF STOP EVENT=2"
    for state, event in itertools.product(("STOP", "RUN"), range(3)):
        for name in ("READ", "STOP", "START", "ADD", "DEL"):
            if event < 2 or name in ("READ", "STOP", "ADD"):
                yield f"{name.lower()}-{state}-{event}", f"{name} {state} EVENT={event}"
    for event in range(3):
        yield f"reader-{event}", f"READER STOP EVENT={event}"
    for event in range(2):
        yield f"tick-{event}", f"TICK STOP EVENT={event}"
        yield f"period-{event}", f"PERIOD STOP EVENT={event}"
    for name, macros in (
            ("enable", "ENABLE STOP RUN"), ("pmi-RUN-201", "PMI RUN SLOT0=2 SLOT1=0 STATUS=1"),
            ("pmi-RUN-223", "PMI RUN SLOT0=2 SLOT1=2 STATUS=3 OWN=0 LATE=0"),
            *((f"{name.lower()}-{event}", f"{name} STOP EVENT={event}")
              for name in ("TICK", "PERIOD", "ADD", "DEL") for event in range(2))):
        yield f"builtin-{name}", f"{macros} BUILTIN=1"
    for name in ("SWITCH", "UPDATE", "RESET", "FIRST", "INTERRUPT", "PROGRAM"):
        yield f"spflt-{name.lower()}", f"{name} OFF NARROW=0"
    # With readers at any place; and counters of 40 bits
    for name, macros in (("disable", "DISABLE RUN STOP"), ("start-STOP-0", "START STOP"),
                         ("pmi-RUN-201", "PMI RUN SLOT0=2 SLOT1=0 STATUS=1")):
        yield f"{name}-readers", f"{macros} READERS=1"
        yield f"{name}-wide", f"{macros} NARROW=0"
    for name, macros in (("read-STOP-0", "READ STOP"), ("read-RUN-0", "READ RUN")):
        yield f"{name}-readers", f"{macros} READERS=1"
    for slot in range(2):
        yield f"stop-STOP-0-readers-2{slot}", f"STOP STOP READERS=1 SLOT0=2 SLOT1={slot}"
    yield "read-STOP-0-wide", "READ STOP NARROW=0"
    yield "reader-0-wide", "READER STOP NARROW=0"
    # By what each counter is (free, its event stopped, or on it), and what STATUS is
    for state, *slots, status in itertools.product(("RUN", "STOP"), range(3), range(3), range(4)):
        on = sum(1 << i for i in range(2) if slots[i] == 2)
        if status & ~on or state == "STOP" and not on:
            continue
        case = f"PMI {state} SLOT0={slots[0]} SLOT1={slots[1]} STATUS={status}"
        for more in ("OWN=0 LATE=0", "OWN=0 LATE=1", "OWN=1 LATE=0", "OWN=1 LATE=1") \
                if status == 3 else ("",):
            name = f"pmi-{state}-{slots[0]}{slots[1]}{status}-{re.sub('[^01]', '', more)}"
            yield name.rstrip("-"), f"{case} {more}"


OBLIGATIONS = dict(obligations())
# With a table that lacks what one of these does, that obligation fails.
BREAKING = "reset", "enable", "read-RUN-0", "start-STOP-0", "pmi-RUN-201", "pmi-STOP-201"


# --- what is proved ------------------------------------------------------------------


ROW = re.compile(r"^ \* (\w*) +((?:(?:task side|PMI|replay|quiesce)(?:, )?)+) {2,}"
                 r"((?:(?:OFF|STOP|RUN|READ|PMI)(?:, )?)+)(;.*)?$", re.M)


def masks(cells):
    """For each writer a bit for each state in which it may write"""
    return [sum({1 << STATES.index(state) for who, state in cells if WRITERS[who] == writer})
            for writer in range(3)]


def table(softmask):
    """(the table of knc_softmask.h in C, what it allows). For each of its variables there is an
    assertion for each state of each writer: that of a table without it, which must fail."""
    rows, what = {}, ""
    for name, who, states, rest in ROW.findall(softmask.partition("who writes it")[2]):
        what = name or what
        to = "".join(re.findall(r" to (true|false)", rest))
        rows.setdefault(what + (to and f"_to_{to}"), []).extend(
            itertools.product(who.split(", "), states.split(", ")))
    text, allowed = "", []
    for what, cells in rows.items():
        text += (f"static const u32 table_{what}[] = {{ {str(masks(cells))[1:-1]} }};\n"
                 f"static void broken_{what}(void) {{\n")
        for who, state in cells:
            without = masks([cell for cell in cells if cell != (who, state)])
            said = f"{what}: {who} in {state}"
            text += (f"static const u32 without_{len(allowed)}[] = {{ {str(without)[1:-1]} }};\n"
                     f'BROKEN(without_{len(allowed)}[writer()] >> knc_pmus.state & 1, "{said}");\n')
            allowed.append(said)
        text += "}\n"
    return text, allowed


def prepare(work, top):
    """Beside the driver's own files: empty headers of the kernel, and the table"""
    for file in Path(top).glob("*.[ch]"):
        for header in re.findall(r"#include <(.*)>", file.read_text()):
            os.makedirs(os.path.dirname(f"{work}/{header}"), exist_ok=True)
            Path(work, header).touch()
    # What core.h and spflt.c call of these files
    Path(work, "perf_event.h").touch()
    for name, others in (("builtin", r"^static int knc_hw_config.*?^}|^static const struct attr.*"),
                         ("spflt", r"^static void knc_spflt_find.*?^}|^void knc_spflt_init.*?^}")):
        Path(work, f"{name}.inc").write_text(re.sub(
            others, "", Path(*Path(top).glob(f"*{name}.c")).read_text(), flags=re.M | re.S))
    Path(work, "table.h").write_text(table(Path(top, "knc_softmask.h").read_text())[0])


def run(top, name, reach, *options):
    """What CBMC says of an obligation"""
    operation, state, *more = OBLIGATIONS[name].split()
    to = more.pop(0) if more and more[0] in STATES else state
    defines = {**DEFAULTS, "OPERATION": operation, "FROM": f"KNC_{state}", "TO": f"KNC_{to}",
               "REACH": reach, **dict(word.split("=") for word in more)}
    source = "spflt.c" if name.startswith("spflt") else "proof.c"
    with tempfile.TemporaryDirectory(prefix="proof.") as work:
        prepare(work, top)
        quietly("gcc", "-E", *(f"-D{macro}={value}" for macro, value in defines.items()),
                f"-I{work}", f"-I{work}/linux", f"-I{top}", f"{HERE}/{source}",
                "-o", f"{work}/proof.i")
        done = subprocess.run(
            [built("fetch-program", "cbmc"), "--no-standard-checks", "--object-bits", "10",
             "--unwind", "4", *CHECKS * (defines["NARROW"] == "0"), *options, f"{work}/proof.i"],
            check=False, text=True, capture_output=True)
    return done.stdout if done.returncode in (0, 10) else done.stdout + done.stderr


# --- a counterexample, to be read ---------------------------------------------------------

SHOWN = re.compile(r"hw\.(?!line|\$)\w+(\[\dl\])?|knc_pmus\.(state|pending|event\[\dl\])|"
                   r"event\d\.(hw\.(period_left|prev_count)|count)\.value")
HAPPENS = {"deliver_nmi": "an NMI comes", "handled_pmis": "PMIs may be handled",
           "account": "a BPF program reads the event in a slot",
           "perf_event_overflow": "perf core takes a sample"}


def steps(trace, top):
    """What happened: places of the driver, and what is other than it was there"""
    said, stack, now = [], [], {}
    for step in trace:
        kind, where = step["stepType"], step.get("sourceLocation", {})
        if kind == "function-call":
            stack.append((step["function"]["displayName"], where))
            name = stack[-1][0]
            if name in HAPPENS:
                said.append(f"--> {HAPPENS[name]}")
            ours = [at for _, at in stack if re.fullmatch(
                r".*\bknc_(p|c|m)\w*(?<!_msr)\.[ch]", at.get("file", ""))]
            if name == "place" and ours:
                said.append(source(top, **ours[-1]))
        elif kind == "function-return":
            stack.pop()
        elif kind == "failure":
            said.append(f"FAILED: {step['reason']}")
        elif kind == "assignment" and SHOWN.fullmatch(step.get("lhs", "")):
            name, value = step["lhs"].replace("l]", "]"), step["value"].get("data", "")
            if now.get(name) != value and len(stack) > 1:
                said.append(f"    {name.removesuffix('.value')} = "
                            f"{re.sub('.*(enum.*/|struct.*)', '', value).strip(')')}")
            now[name] = value
    return said


def source(top, file, line, function, **_):
    name = os.path.basename(file)
    code = Path(top, name).read_text().splitlines()[int(line) - 1]
    return f"{name}:{line} {function}(): {code.strip()}"


# --- the tests ----------------------------------------------------------------------------


def prove(name, top=TOP):
    """(why an obligation does not hold, if so, and its size)"""
    said = run(top, name, 0, "--unwinding-assertions", "--slice-formula", "--stop-on-fail",
               "--trace", "--json-ui", "--verbosity", "8")
    if '"cProverStatus": "success"' in said:
        return None, "".join(re.findall(r"\d+ variables, \d+ clauses", said)[-1:])
    trace = [part["trace"] for part in json.loads(said) if "trace" in part] \
        if '"cProverStatus": "failure"' in said else []
    return "\n".join([OBLIGATIONS[name], *steps(trace[0], top)]) if trace else said, ""


def broken_rows(name):
    """What an obligation does that a table without it would not allow"""
    return {*re.findall(r"^\[broken_.*\] line \d+ (.*): FAILURE$", run(TOP, name, 2), re.M)}


def check(name):
    start = time.time()
    why, size = prove(name)
    if why:
        pytest.fail(why, pytrace=False)
    took = time.time() - start
    assert re.search(r"^\[\S+coverage\S+ .*: SATISFIED$", run(TOP, name, 1, "--cover", "cover"), re.M), \
        "its end is not reached: it proves nothing"
    return f"{took:.1f} s, {size or 'trivial'}"


def check_fault(fault):
    """A fault of tests/mutants/faults.txt breaks each obligation that it names."""
    with tempfile.TemporaryDirectory(prefix="proof.") as top:
        copy(sources(r"\w+\.[ch]"), top)
        Path(top, fault.file).write_text(fault.apply(read(fault.file)))
        results = {name: prove(name, top)[0] or "it holds" for name in fault.tests["proof"]}
    none_of(f"{name}: {why}" for name, why in results.items() if "FAILED: " not in why)
    return ", ".join(why.splitlines()[-1] for why in results.values())


def check_table():
    """Without any writer, or state, in a row of the table of knc_softmask.h a rule is broken."""
    allowed = table(read("knc_softmask.h"))[1]
    none_of({*allowed}.difference(*map(broken_rows, BREAKING)))
    return f"{len(allowed)} ways to break it"


def cases(_run):
    for name in OBLIGATIONS:
        yield Case(name, lambda name=name: check(name), seconds=20)
    yield Case("table", check_table, seconds=30)
    for fault in read_faults():
        if "proof" in fault.tests:
            yield Case(f"fault-{fault.name}", lambda fault=fault: check_fault(fault), seconds=10)


def test(case, record_property):
    record_property("note", case.check())
