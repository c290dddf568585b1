# SPDX-License-Identifier: GPL-2.0-only
"""Cases of the vector unit, each one instruction, or a loop of a gather, with all of the state
before and after it: the program of cases.c runs them on the emulator. vector-cases says what a
file of them looks like.
"""
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
# Of struct image
VECTORS, MASKS, REGISTERS, FLAGS, MXCSR, MEMORY, CHUNK, SIZE = \
    0, 2048, 2080, 2208, 2216, 2304, 64, 3328
MEMORY_AT = 0x40000000 + 4 * 4096
NAMES = "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()
FLAG_BITS = {"cf": 0, "pf": 2, "af": 4, "zf": 6, "sf": 7, "of": 11}
FLAGS_GIVEN = 1 << 32
FAULTS = {"#UD": 6, "#NM": 7, "#GP": 13, "#PF": 14}
NO_FAULT = 0xffffffff
DUE = 0x200000
# So many at a time, in seconds of the guest's time, and of the host's for a busy one
MOST, LIMIT, HOST_LIMIT = 10000, 120, 1800


DEFAULT_MEMORY = bytes((7 * i + 13 * (i >> 6) + 3) & 0xff for i in range(1024))
DEFAULTS = b"".join((
    bytes((37 * r + 11 * i + 0x5a) & 0xff for r in range(32) for i in range(64)),
    struct.pack("<8I", *(0x5a5a ^ 0x1111 * n for n in range(8))),
    struct.pack("<16Q", *(0x0123456789abcdef ^ n << 32 for n in range(16))),
    struct.pack("<QI84x", 0, DUE), DEFAULT_MEMORY))


def register(value):
    if isinstance(value, list):
        return MEMORY_AT + value[1]
    return value & (1 << 64) - 1


def patches(state):
    """(place in the image, bytes) of what a case gives"""
    for n, text in state.get("zmm", {}).items():
        yield VECTORS + 64 * int(n), bytes.fromhex(text)
    for n, value in state.get("k", {}).items():
        yield MASKS + 4 * int(n), struct.pack("<I", value)
    for name, value in state.get("gpr", {}).items():
        yield REGISTERS + 8 * NAMES.index(name), struct.pack("<Q", register(value))
    if "mxcsr" in state:
        yield MXCSR, struct.pack("<I", state["mxcsr"])
    if "flags" in state:
        yield FLAGS, struct.pack("<Q", FLAGS_GIVEN | sum(
            value << FLAG_BITS[name] for name, value in state["flags"].items()))
    for at, text in state.get("mem", []):
        yield MEMORY + at, bytes.fromhex(text)


def packed(case):
    """As cases.c reads it"""
    before, after = ([*patches(case[state])] for state in ("in", "out"))
    body = bytes.fromhex(case["code"])
    rest = body + bytes(-len(body) % 4)
    for at, data in before + after:
        rest += struct.pack("<HH", at, len(data)) + data + bytes(-len(data) % 4)
    return struct.pack("<4I", 16 + len(rest), len(body), len(before), len(after)) + rest


def image(case, *states):
    found = bytearray(DEFAULTS)
    for state in states:
        for at, data in patches(case[state]):
            found[at:at + len(data)] = data
    return bytes(found)


def near(got, want, most):
    """Whether floats of 32 bits differ by so many units in the last place at most"""
    for g, w in zip(struct.unpack("<16I", got), struct.unpack("<16I", want)):
        special = w & 0x7fffffff in (0, 0x7f800000) or w & 0x7fffffff > 0x7f800000
        if g != w and (special or g >> 31 != w >> 31 or abs(g - w) > most):
            return False
    return True


class Judge:
    """What the program says of each case"""

    def __init__(self, cases, counts):
        self.cases, self.counts = cases, counts
        self.wrong, self.rings = [[] for _ in cases], [0] * len(cases)

    def line(self, text):
        kind, n, ring, *rest = text.split()
        n = int(n)
        if kind == "case":
            self.ran(n, int(ring), rest)
            return
        chunk, *values = rest
        self.wrong[n] += [f"ring {ring}: {why}" for why in self.differs(
            self.cases[n], int(chunk), struct.pack("<8Q", *(int(v, 16) for v in values)))]

    def ran(self, n, ring, rest):
        case, told = self.cases[n], self.wrong[n].append
        self.rings[n] += 1
        if rest[0] == "no-state":
            told(f"ring {ring}: the state before cannot be loaded: exception {rest[1]}")
            return
        fault, error, outside, elements, count = map(int, rest[1:])
        want = FAULTS[case["out"]["fault"]] if "fault" in case["out"] else NO_FAULT
        names = {number: name for name, number in FAULTS.items()} | {NO_FAULT: "no fault"}
        if fault != want:
            told(f"ring {ring}: {names.get(fault, fault)}, not {names[want]}")
        elif error and fault == FAULTS["#GP"]:
            told(f"ring {ring}: #GP({error:#x}), not #GP(0)")
        if outside:
            told(f"ring {ring}: memory behind the {len(DEFAULT_MEMORY)} bytes has changed")
        if self.counts and ring and "active" in case and not case.get("loop") and \
                (elements, count) != (case["active"], 1):
            told(f"{elements} active elements in {count} instructions, not {case['active']} in 1")

    @staticmethod
    def differs(case, chunk, got):
        want = image(case, "in", *["out"] * ("fault" not in case["out"]))
        at = chunk * CHUNK
        want = want[at:at + CHUNK]
        if at < MASKS:
            if not ("ulp" in case and near(got, want, case["ulp"])):
                yield f"zmm{chunk} {got.hex()}, not {want.hex()}"
        elif at >= MEMORY:
            yield f"memory from byte {at - MEMORY} on {got.hex()}, not {want.hex()}"
        else:
            names = [(MASKS + 4 * n, 4, f"k{n}") for n in range(8)] + \
                [(REGISTERS + 8 * n, 8, name) for n, name in enumerate(NAMES) if name != "rsp"] + \
                [(MXCSR, 4, "mxcsr")]
            for place, size, name in names:
                g, w = (int.from_bytes(data[place - at:place - at + size], "little")
                        for data in (got, want))
                if at <= place < at + CHUNK and (g ^ w) & (~0x3f if name == "mxcsr" else ~0):
                    yield f"{name} {g:#x}, not {w:#x}"
            # A loop has a kortest.
            if at <= FLAGS < at + CHUNK and not case.get("loop"):
                flags = int.from_bytes(got[FLAGS - at:FLAGS - at + 8], "little")
                wrong = [f"{name} {flags >> bit & 1}" for name, bit in FLAG_BITS.items()
                         if case["out"].get("flags", {}).get(name, flags >> bit & 1) !=
                         flags >> bit & 1]
                if wrong or "flags" not in case["out"] and flags not in (0, 0x8d5):
                    yield f"flags {flags:#x}: {' '.join(wrong)}"


def command(qemu, cpu, program, blob):
    """cpu: of a PC, or "board" """
    board = cpu == "board"
    machine = ["-M", "knc", "-cpu", "knc-strict", "-smp", "4,cores=1,threads=4"] if board else \
        ["-M", "pc", "-cpu", cpu, "-smp", "1", "-device", "isa-debug-exit,iobase=0xf4"]
    return ["timeout", str(HOST_LIMIT), qemu, *machine, "-L", "/usr/share/seabios",
            "-L", "/usr/share/qemu", "-m", "512", "-display", "none", "-nic", "none",
            "-icount", "shift=0,sleep=off", "-accel", "tcg,thread=single", "-serial", "stdio",
            "-monitor", "none", "-device", f"knc-pmu-testdev,limit={LIMIT}",
            "-kernel", program, "-initrd", blob, "-append", "cases"]


def boot(qemu, cpu, program, cases, counts):
    """Returns what is wrong with each of them, and how many have run; those behind one that
    ends the emulator have not."""
    judge = Judge(cases, counts)
    with tempfile.NamedTemporaryFile() as blob:
        blob.write(struct.pack("<4sI", b"VCAS", len(cases)) + DEFAULTS +
                   b"".join(map(packed, cases)))
        blob.flush()
        done = subprocess.run(command(qemu, cpu, program, blob.name), check=False, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, errors="replace")
    # The firmware writes to the port as well, and without line ends.
    for text in re.findall(r"(?:case|differs) \d+ [03] .+", done.stdout):
        judge.line(text)
    ran = next((i for i, rings in enumerate(judge.rings) if rings != 2), len(cases))
    if ran < len(cases):
        said = (done.stdout.splitlines() + done.stderr.splitlines())[-3:]
        judge.wrong[ran].append("the emulator ended here: " +
                                "; ".join([f"status {done.returncode}", *said]))
        ran += 1
    return judge.wrong[:ran], ran


def run(qemu, cpu, program, cases, counts=False):
    """(case, what is wrong with it) of each"""
    while cases:
        wrong, ran = boot(qemu, cpu, program, cases[:MOST], counts)
        yield from zip(cases, wrong)
        cases = cases[ran:]


def build_program(work, cpu):
    subprocess.run([HERE / "build", f"{work}/program", *["board"] * (cpu == "board")], check=True,
                   stdout=sys.stderr)
    return f"{work}/program"


def find_qemu():
    if os.environ.get("QEMU"):
        return os.environ["QEMU"]
    done = subprocess.run([HERE.parent.parent / "scripts/build-qemu"], check=True, text=True,
                          stdout=subprocess.PIPE)
    return done.stdout.split()[-1] + "/qemu-system-x86_64"
