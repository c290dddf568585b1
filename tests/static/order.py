# SPDX-License-Identifier: GPL-2.0-only
"""That compilers keep the order in which the driver writes what an NMI sees.

knc_pmu.c and knc_pmi.c are compiled, and each function of their headers is followed on all of its
ways, and into the functions of its object. An MSR is told by what ECX has, the fields of struct
knc_cpu_pmu by size and offset. Two accesses of which one may come after the other must be in ORDER.
"""
import itertools
import re
import tempfile

from lines import built, copy, quietly, read, sources

OBJECTS = "knc_pmu_backend.o", "knc_pmi.o"

# What may come after what. "stop" and "run" are writes of GLOBAL_CTRL, "set" is one of a register
# of a counter; an event's counts are accounted for or loaded; "mark" is that of an event that is
# throttled; "back" is the state before.
ORDER = {first: after.split(", ") for first, after in re.findall(r"(\S+): (.*)", """
    begin: OFF, STOP, READ, PMI, stop, CTRL?, set, slot=0, rdpmc, filters, replay, unmask, end
    OFF: stop
    READ: rdpmc, RUN
    PMI: stop, clear
    STOP: stop, set, slot=0, rdpmc, filters, replay, unmask, end
    stop: STATUS?, mask, set, slot=0, rdpmc, filters, replay, end
    STATUS?: clear, pending=1, unmask, back, run, end
    clear: pending=0
    pending=0: unmask, STOP, end
    pending=1: end
    unmask: rdpmc, back, STOP, run, end
    rdpmc: account
    account: account, sample, slot=0, rdpmc, replay, back, STOP, RUN, end
    sample: slot=0, rdpmc, back, STOP, mark
    mark: slot=0, rdpmc, back, STOP
    set: set, evtsel, slot=event
    evtsel: slot=0
    slot=0: load, set, filters, replay, end
    load: load, set
    slot=event: rdpmc, filters, replay, back, STOP, end
    filters: run, RUN, clear
    replay: filters, slot=0
    back: run, end
    run: RUN, end
    RUN: STOP, filters, replay, end
    CTRL?: stop, PMI, rdpmc, end
    mask: set
""")}
STATES = "OFF", "STOP", "RUN", "READ", "PMI"
MSRS = {0x2d: "STATUS", 0x2e: "clear", 0x2f: "CTRL"}
# Of struct knc_cpu_pmu, by size and offset; elsewhere 8 bytes are of an event
FIELDS = {(4, 0): "state", (1, 4): "pending=", (4, 8): "evtsel", (4, 12): "evtsel",
          (8, 16): "slot=", (8, 24): "slot="}
CALLS = {"knc_pmi_replay": "replay", "knc_spflt_update": "filters", "knc_spflt_reset": "filters",
         "__SCT__knc_perf_event_overflow": "sample"}
SIZES = {"b": 1, "w": 2, "l": 4, "q": 8}
REGISTERS = {name: (names[0], size) for names in map(str.split, (
    *(f"r{i}x e{i}x {i}x {i}l" for i in "abcd"),
    *(f"r{i} e{i} {i} {i}l" for i in ("si", "di", "bp", "sp")),
    *(f"r{i} r{i}d r{i}w r{i}b" for i in range(8, 16)))) for name, size in zip(names, (8, 4, 2, 1))}
KEPT = "rbx", "rbp", "r12", "r13", "r14", "r15"


class Code:
    """An object: {address: (instruction, what it is relocated by, the next address)}"""

    def __init__(self, file):
        found, self.functions = [], {}
        for line in quietly("objdump", "-dr", "--no-show-raw-insn", "-j", ".text",
                            file).splitlines():
            if match := re.match(r"([0-9a-f]+) <(.+)>:", line):
                self.functions[match[2]] = int(match[1], 16)
            elif match := re.match(r"\s+\w+: R_X86_64_\w+\s+(\S+?)([-+]0x\w+)?$", line):
                found[-1][2] = match[1]
            elif match := re.match(r"\s+(\w+):\s+(?:lock |data16 |repz )*(.*?)\s*(#.*)?$", line):
                found.append([int(match[1], 16), match[2], ""])
        self.lines = {at: (text, symbol, after[0]) for (at, text, symbol), after in
                      zip(found, [*found[1:], (None,)])}

    @staticmethod
    def written(operation, value, size, where):
        """What a write to memory is: an access, or "" """
        offset, base = re.fullmatch(r"(?:%\w+:)?(-?0x\w+|)(?:\((%\w+)?.*\))?", where).groups()
        offset = int(offset or "0", 16)
        if not base and offset >> 32:
            return "mask" if value == 0x10400 else "unmask"
        if not base or base in ("%rsp", "%rip") or where[0] == "%" or offset < 0:
            return ""
        if operation.startswith(("add", "sub", "xchg")):
            return "account"
        if (size, value) == (8, 0xffffffff):
            return "mark"
        name = FIELDS.get((size, offset), "load")
        if name == "state":
            return "back" if value is None else STATES[value]
        return name + ("event" if value is None else str(value)) * name.endswith("=")

    def step(self, at, registers):
        """(the access or "", registers, addresses after it, whether it is a call)"""
        text, symbol, after = self.lines[at]
        operation, _, rest = text.partition(" ")
        if operation in ("ret", "ud2") or symbol == "__stack_chk_fail":
            return "", registers, [], False
        if operation[0] == "j" or operation == "call":
            to = self.functions.get(symbol) if symbol or "*" in rest else int(rest.split()[0], 16)
            if operation == "call":
                registers = {name: registers[name] for name in registers if name in KEPT}
            return CALLS.get(symbol, ""), registers, \
                [to] * (to is not None) + [after] * (operation != "jmp"), \
                to is not None and operation == "call"
        if operation == "wrmsr":
            access = MSRS.get(registers.get("rcx"), "set")
            if access == "CTRL":
                access = "stop" if registers.get("rax") == 0 else "run"
            return access, registers, [after], False
        if operation in ("rdmsr", "rdpmc"):
            access = f"{MSRS.get(registers.get('rcx'))}?" if operation == "rdmsr" else operation
            return access, {**registers, "rax": None, "rdx": None}, [after], False
        source, target = ["", "", *re.findall(r"[^,(]*\([^)]*\)|[^,]+", rest.strip())][-2:]
        value = int(source[1:], 16) & 0xffffffff if source[:1] == "$" and not symbol else \
            registers.get(REGISTERS.get(source[1:], ("",))[0])
        if not target or re.match(r"test|cmp|nop|push|bt[lq]?$", operation):
            return "", registers, [after], False
        if target[1:] not in REGISTERS:
            size = REGISTERS.get(source[1:], ("", SIZES.get(operation[-1])))[1]
            return self.written(operation, value, size, target), registers, [after], False
        name, size = REGISTERS[target[1:]]
        if operation == "xor" and source == target:
            value = 0
        elif not operation.startswith("mov") or "(" in source or size < 4:
            value = None
        return "", {**registers, name: value}, [after], False

    def pairs(self, function):
        """All (access, the next one) of it, on any way"""
        todo, seen, found = [(self.functions[function], (), "begin", ())], set(), set()
        while todo:
            state = todo.pop()
            if state in seen:
                continue
            seen.add(state)
            at, stack, last, registers = state
            access, after, to, is_call = self.step(at, dict(registers))
            if access:
                found.add((last, access))
                last = access
            after = tuple(sorted(item for item in after.items() if item[1] is not None))
            if is_call:
                to, stack, after = to[:1], (*stack, (to[1], after)), registers
            elif not to and stack:
                *stack, (back, after) = stack
                to, stack = [back], tuple(stack)
            elif not to:
                found.add((last, "end"))
            todo += [(address, stack, last, after) for address in to]
        return found


def wrong_pairs(work):
    """What is not in ORDER of two objects, or never comes though ORDER has it"""
    header, found = read("knc_pmu.h") + read("knc_softmask.h"), set()
    for code in [Code(f"{work}/{file}") for file in OBJECTS]:
        for function in code.functions:
            if re.search(rf"\b{function}\(", header) and function != "knc_pmu_probe":
                new = code.pairs(function)
                found |= new
                for first, after in sorted(new):
                    if after not in ORDER.get(first, ()):
                        yield f"{function}(): {after} after {first}"
    for lost in sorted({*ORDER} - {first for first, _ in found}):
        yield f"{lost} is nowhere"


def wrong():
    """What is wrong with both objects, of each compiler"""
    for flavour, option in itertools.product(("prepared", "clang"), ("-O2", "-O3")):
        with tempfile.TemporaryDirectory(prefix="order.") as work:
            copy(sources(r"[^/]*\.[ch]|Kbuild|compat/.*"), work)
            quietly("make", "-s", "-C", built("build-kernel", flavour), f"M={work}",
                    f"KCFLAGS={option}", *["CC=clang"] * (flavour == "clang"), *OBJECTS)
            yield from (f"{flavour} {option}: {what}" for what in wrong_pairs(work))
