# SPDX-License-Identifier: GPL-2.0-only
"""Random cases of the vector unit, as vectors.py runs them: an encoder, and what each instruction
computes, written from the manual's words and with exact fractions, apart from the emulator."""
import random
import re
import struct
from fractions import Fraction
from pathlib import Path

import vectors

GPRS = {"rax": 0, "rbx": 3, "rbp": 5, "rsi": 6, "r9": 9, "r11": 11, "r14": 14}
# Within each group of four: which element comes to which place
SWIZZLES = ("0123", "1032", "2301", "1203", "0000", "1111", "2222", "3333")
# Conversions of a load by SSS: the format in memory, and how many of them there are
CONVERSIONS = {
    "f": {0: ("f", 16), 1: ("f", 1), 2: ("f", 4), 3: ("e", 16), 4: ("B", 16), 6: ("H", 16),
          7: ("h", 16)},
    "i": {0: ("i", 16), 1: ("i", 1), 2: ("i", 4), 4: ("B", 16), 5: ("b", 16), 6: ("H", 16),
          7: ("h", 16)},
    "d": {0: ("d", 8), 1: ("d", 1), 2: ("d", 4)}, "q": {0: ("q", 8), 1: ("q", 1), 2: ("q", 4)}}
# Bits of the fraction, the bias, how the raw bits are packed, and the sign's place
FLOATS = {"f": (24, 127, "I", 31), "d": (53, 1023, "Q", 63)}
NEAREST, DOWN, UP, TO_ZERO = range(4)


def rounded(x, mode, kind, negative_zero):
    """The float next to a fraction: to nearest even, down, up, or to zero"""
    bits, bias, _, sign = FLOATS[kind]
    if not x:
        return negative_zero << sign
    negative, a = x < 0, abs(x)
    e = a.numerator.bit_length() - a.denominator.bit_length()
    e = max(e - (a < Fraction(2) ** e), 1 - bias)
    n, rest = divmod(a / Fraction(2) ** (e - bits + 1), 1)
    half = Fraction(1, 2)
    n += bool(rest and (mode == (DOWN if negative else UP) or
                        mode == NEAREST and (rest > half or rest == half and n & 1)))
    if n == 1 << bits:
        n, e = n >> 1, e + 1
    if e > bias:
        if mode in (NEAREST, DOWN if negative else UP):
            n, e = 1 << bits - 1, bias + 1
        else:
            n, e = (1 << bits) - 1, bias
    exponent = e + bias if n >> bits - 1 else 0
    return negative << sign | exponent << bits - 1 | n & (1 << bits - 1) - 1


def value(raw, kind):
    return Fraction(struct.unpack("<" + kind, struct.pack("<" + FLOATS[kind][2], raw))[0])


def is_negative(raw, kind):
    return raw >> FLOATS[kind][3]


def minus(a, kind):
    return a ^ 1 << FLOATS[kind][3]


def fused(a, b, c, mode, kind):
    """a * b + c; zeros of both signs give +0, or -0 when rounding down"""
    product = value(a, kind) * value(b, kind)
    sign = is_negative(a, kind) ^ is_negative(b, kind)
    signs = sign + is_negative(c, kind)
    zero = signs == 2 if product == 0 == value(c, kind) and signs != 1 else mode == DOWN
    return rounded(product + value(c, kind), mode, kind, zero)


def added(a, b, mode, kind):
    bits, bias, *_ = FLOATS[kind]
    return fused(a, bias << bits - 1, b, mode, kind)


def signed(a):
    return a - (a >> 31 << 32)


# Name: map, pp, W, opcode, kind of elements, and what it computes of the destination, the
# register in vvvv and the last operand, with a rounding mode
BINARY = {
    "vaddps": (1, 0, 0, 0x58, "f", lambda d, a, b, m: added(a, b, m, "f")),
    "vaddpd": (1, 1, 1, 0x58, "d", lambda d, a, b, m: added(a, b, m, "d")),
    "vsubps": (1, 0, 0, 0x5c, "f", lambda d, a, b, m: added(a, minus(b, "f"), m, "f")),
    "vsubrps": (2, 1, 0, 0x6d, "f", lambda d, a, b, m: added(b, minus(a, "f"), m, "f")),
    "vmulps": (1, 0, 0, 0x59, "f", lambda d, a, b, m: rounded(
        value(a, "f") * value(b, "f"), m, "f", is_negative(a, "f") ^ is_negative(b, "f"))),
    "vmulpd": (1, 1, 1, 0x59, "d", lambda d, a, b, m: rounded(
        value(a, "d") * value(b, "d"), m, "d", is_negative(a, "d") ^ is_negative(b, "d"))),
    "vfmadd132pd": (2, 1, 1, 0x98, "d", lambda d, a, b, m: fused(d, b, a, m, "d")),
    "vfmadd213ps": (2, 1, 0, 0xa8, "f", lambda d, a, b, m: fused(a, d, b, m, "f")),
    "vfmadd231ps": (2, 1, 0, 0xb8, "f", lambda d, a, b, m: fused(a, b, d, m, "f")),
    "vfnmadd213ps": (2, 1, 0, 0xac, "f",
                     lambda d, a, b, m: fused(minus(a, "f"), d, b, m, "f")),
    "vpaddd": (1, 1, 0, 0xfe, "i", lambda d, a, b, m: a + b),
    "vpsubd": (1, 1, 0, 0xfa, "i", lambda d, a, b, m: a - b),
    "vpsubrd": (2, 1, 0, 0x6c, "i", lambda d, a, b, m: b - a),
    "vpmulld": (2, 1, 0, 0x40, "i", lambda d, a, b, m: a * b),
    "vpmulhd": (2, 1, 0, 0x87, "i", lambda d, a, b, m: signed(a) * signed(b) >> 32),
    "vpmulhud": (2, 1, 0, 0x86, "i", lambda d, a, b, m: a * b >> 32),
    "vpandd": (1, 1, 0, 0xdb, "i", lambda d, a, b, m: a & b),
    "vpandq": (1, 1, 1, 0xdb, "q", lambda d, a, b, m: a & b),
    "vpandnd": (1, 1, 0, 0xdf, "i", lambda d, a, b, m: ~a & b),
    "vpord": (1, 1, 0, 0xeb, "i", lambda d, a, b, m: a | b),
    "vpxord": (1, 1, 0, 0xef, "i", lambda d, a, b, m: a ^ b),
    "vpminsd": (2, 1, 0, 0x39, "i", lambda d, a, b, m: min(a, b, key=signed)),
    "vpmaxud": (2, 1, 0, 0x3f, "i", lambda d, a, b, m: max(a, b)),
    "vpsllvd": (2, 1, 0, 0x47, "i", lambda d, a, b, m: a << b if b < 32 else 0),
    "vpsrlvd": (2, 1, 0, 0x45, "i", lambda d, a, b, m: a >> b if b < 32 else 0),
    "vpsravd": (2, 1, 0, 0x46, "i", lambda d, a, b, m: signed(a) >> min(b, 31)),
}
MASKS = {
    "kand": (0x41, lambda a, b: a & b), "kandn": (0x42, lambda a, b: ~a & b),
    "kandnr": (0x43, lambda a, b: a & ~b), "knot": (0x44, lambda a, b: ~b),
    "kor": (0x45, lambda a, b: a | b), "kxnor": (0x46, lambda a, b: ~(a ^ b)),
    "kxor": (0x47, lambda a, b: a ^ b),
    "kmerge2l1h": (0x48, lambda a, b: (b & 0xff) << 8 | a >> 8),
    "kmerge2l1l": (0x49, lambda a, b: (b & 0xff) << 8 | a & 0xff), "kmov": (0x90, lambda a, b: b)}


def mvex(map_, pp, w, opcode, reg, vvvv, rm, k=0, sss=0, eh=0, disp8=None, index=None, scale=0,
         imm=b""):
    """An instruction. With a displacement rm is the base of an operand in memory."""
    v = vvvv if index is None else index & 16
    x = (rm >> 4 if disp8 is None else (index or 0) >> 3) & 1
    p0 = 0xf0 ^ (reg >> 3 & 1) << 7 ^ x << 6 ^ (rm >> 3 & 1) << 5 ^ (reg >> 4) << 4 | map_
    p1 = w << 7 | (~v & 15) << 3 | pp
    p2 = eh << 7 | sss << 4 | (~v >> 4 & 1) << 3 | k
    mod = 0xc0 if disp8 is None else 0x40
    tail = b"" if disp8 is None else struct.pack("b", disp8)
    if index is not None:
        return bytes((0x62, p0, p1, p2, opcode, mod | (reg & 7) << 3 | 4,
                      scale << 6 | (index & 7) << 3 | rm & 7)) + tail
    return bytes((0x62, p0, p1, p2, opcode, mod | (reg & 7) << 3 | rm & 7)) + tail + imm


def vex(opcode, reg, rm, vvvv=0):
    return bytes((0xc5, 0x80 | (~vvvv & 15) << 3, opcode, 0xc0 | reg << 3 | rm))


def raw(lanes, kind="i"):
    """In hex, as the registers of a case"""
    return b"".join(lane.to_bytes(8 if kind in "dq" else 4, "little") for lane in lanes).hex()


class Random:
    """A generator of cases"""

    def __init__(self, seed):
        self.seed, self.draw, self.count = seed, random.Random(seed), 0

    def case(self, name, code, before, after, active=None, **more):
        self.count += 1
        found = {"id": f"{self.seed}-{self.count}", "text": name, "code": code.hex(),
                 "in": {"mxcsr": vectors.DUE, **before}, "out": after, **more}
        return found | ({"active": active} if active is not None else {})

    def number(self, kind):
        """Raw; floats have no NaN and no infinity"""
        if kind in FLOATS:
            if self.draw.random() < 0.1:
                return self.draw.choice((0, 1)) << FLOATS[kind][3]
            x = self.draw.choice((1.0, -1.0)) * self.draw.uniform(1, 2) * \
                2.0 ** self.draw.choice((0, 1, -1, self.draw.randrange(-60, 60)))
            return int.from_bytes(struct.pack("<" + kind, x), "little")
        if self.draw.random() < 0.3:
            return self.draw.randrange(40)
        return self.draw.getrandbits(64 if kind == "q" else 32)

    def vector(self, kind):
        return [self.number(kind) for _ in range(8 if kind in "dq" else 16)]

    def mask(self):
        """A register's number, its value, and the case's part of it; 0 is none"""
        k = self.draw.randrange(8)
        bits = self.draw.choice((0, 1, 0xff, 0xffff, self.draw.getrandbits(16)))
        return k, bits if k else 0xffff, {str(k): bits} if k else {}

    def binary(self):
        name, (map_, pp, w, opcode, kind, compute) = self.draw.choice([*BINARY.items()])
        lanes = 8 if kind in "dq" else 16
        size = 512 // lanes
        d, a = self.draw.sample(range(32), 2)
        k, bits, masks = self.mask()
        dest, left = self.vector(kind), self.vector(kind)
        before = {"zmm": {str(d): raw(dest, kind), str(a): raw(left, kind)}, "k": masks}
        mode, options = NEAREST, {}
        if self.draw.random() < 0.5:
            rm = self.draw.choice([r for r in range(32) if r not in (a, d)])
            right = self.vector(kind)
            before["zmm"][str(rm)] = raw(right, kind)
            options["sss"] = self.draw.randrange(8)
            if kind in FLOATS and self.draw.random() < 0.5:
                options["eh"], mode = 1, options["sss"] & 3
            elif self.draw.random() < 0.8:
                right = [right[i & ~3 | int(SWIZZLES[options["sss"]][i & 3])] for i in range(lanes)]
            else:
                options["sss"] = 0
        else:
            options["sss"], right, rm, options["disp8"] = self.memory(kind, before)
        after = [compute(*lane, mode) & (1 << size) - 1 if bits >> i & 1 else dest[i]
                 for i, lane in enumerate(zip(dest, left, right))]
        code = mvex(map_, pp, w, opcode, d, a, rm, k, **options)
        return self.case(name, code, before, {"zmm": {str(d): raw(after, kind)}},
                         bin(bits & (1 << lanes) - 1).count("1"))

    def memory(self, kind, before):
        """An operand in memory: SSS, its lanes, its base and displacement"""
        sss, (fmt, count) = self.draw.choice([*CONVERSIONS[kind].items()])
        if fmt in "fd":
            data = raw([self.number(kind) for _ in range(count)], kind)
        elif fmt == "e":
            data = struct.pack(f"<{count}e", *(self.draw.randrange(-999, 999) / 8
                                               for _ in range(count))).hex()
        else:
            data = self.draw.randbytes(count * struct.calcsize(fmt)).hex()
        size = len(data) // 2
        numbers = struct.unpack(f"<{count}{fmt}", bytes.fromhex(data))
        lanes = [int.from_bytes(struct.pack("<" + kind, n), "little") if kind in FLOATS else
                 n & (1 << (64 if kind == "q" else 32)) - 1 for n in numbers]
        at, disp8 = size * self.draw.randrange(1024 // size), self.draw.randrange(-128, 128)
        base = self.draw.choice([*GPRS])
        before |= {"gpr": {base: ["mem", at - disp8 * size]}, "mem": [[at, data]]}
        return sss, lanes * ((8 if kind in "dq" else 16) // count), GPRS[base], disp8

    def compare(self):
        kind = self.draw.choice("fi")
        a, rm = self.draw.sample(range(32), 2)
        left, right = self.vector(kind), self.vector(kind)
        right = [self.draw.choice(pair) for pair in zip(left, right)]
        k, bits, masks = self.mask()
        dest, how = self.draw.randrange(8), self.draw.choice((0, 1, 2, 4, 5, 6))
        order = signed if kind == "i" else lambda raw_: value(raw_, "f")
        tests = (lambda x, y: x == y, lambda x, y: x < y, lambda x, y: x <= y, None,
                 lambda x, y: x != y, lambda x, y: x >= y, lambda x, y: x > y)
        found = sum(tests[how](order(x), order(y)) << i
                    for i, (x, y) in enumerate(zip(left, right))) & bits
        name, *opcode = ("vpcmpd", 3, 1, 0, 0x1f) if kind == "i" else ("vcmpps", 1, 0, 0, 0xc2)
        return self.case(name, mvex(*opcode, dest, a, rm, k, imm=bytes([how])),
                         {"zmm": {str(a): raw(left), str(rm): raw(right)}, "k": masks},
                         {"k": {str(dest): found}}, bin(bits).count("1"))

    def masks(self):
        name, (opcode, compute) = self.draw.choice([*MASKS.items()])
        a, b = self.draw.sample(range(8), 2)
        x, y = self.draw.getrandbits(16), self.draw.getrandbits(16)
        return self.case(name, vex(opcode, a, b), {"k": {str(a): x, str(b): y}},
                         {"k": {str(a): compute(x, y) & 0xffff}})

    def flushed(self):
        """FZ: the product is less than the least normal number, which it is rounded to, or not."""
        mode = self.draw.randrange(4)
        return self.case(
            "vmulps, FZ", mvex(1, 0, 0, 0x59, 1, 2, 3),
            {"zmm": {"2": raw([0x20000400] * 16), "3": raw([0x1ffff800] * 16)},
             "mxcsr": vectors.DUE | 1 << 15 | mode << 13},
            {"zmm": {"1": raw([0x800000 * (mode in (NEAREST, UP))] * 16)}}, 16)

    def unaligned(self):
        """A load-unpack, or a pack-store, and its other half at any address"""
        load = self.draw.random() < 0.5
        d, at = self.draw.randrange(32), 4 * self.draw.randrange(16, 224)
        k, bits, masks = self.mask()
        base, old = self.draw.choice([*GPRS]), self.vector("i")
        before = {"zmm": {str(d): raw(old)}, "k": masks, "gpr": {base: ["mem", at]}}
        code = b"".join(mvex(2, 0 if load else 1, 0, opcode, d, 0, GPRS[base], k, disp8=disp8)
                        for opcode, disp8 in ((0xd0, 0), (0xd4, 16)))
        places = [i for i in range(16) if bits >> i & 1]
        if load:
            there = struct.unpack_from("<16I", vectors.DEFAULT_MEMORY, at)
            new = [*old]
            for n, i in enumerate(places):
                new[i] = there[n]
            after = {"zmm": {str(d): raw(new)}}
        else:
            after = {"mem": [[at, raw([old[i] for i in places])]]}
        return self.case("vloadunpack" if load else "vpackstore", code, before, after)

    def gather(self):
        """Twice in a loop, as compilers have it: jkzd, the gather again, jknzd"""
        scatter = self.draw.random() < 0.5
        d, index = self.draw.sample(range(32), 2)
        k, bits = self.draw.randrange(1, 8), self.draw.getrandbits(16)
        base, scale = self.draw.choice([*GPRS]), self.draw.randrange(4)
        # No two elements of a scatter meet.
        step = max(1, 4 >> scale)
        at = [n * step for n in self.draw.sample(range(-16, 16), 16)]
        old = self.vector("i")
        before = {"zmm": {str(d): raw(old), str(index): raw(n & 0xffffffff for n in at)},
                  "k": {str(k): bits}, "gpr": {base: ["mem", 512]}}
        one = mvex(2, 1, 0, 0xa0 if scatter else 0x90, d, 0, GPRS[base], k, disp8=0, index=index,
                   scale=scale)
        size = len(one)
        code = one + bytes((0xc4, 0xe0, (~k & 15) << 3, 0x74, size + 5)) + one + \
            bytes((0xc4, 0xe0, (~k & 15) << 3, 0x75, 256 - 2 * size - 10))
        memory, new = bytearray(vectors.DEFAULT_MEMORY), [*old]
        for i in range(16):
            place = 512 + (at[i] << scale)
            if bits >> i & 1 and scatter:
                struct.pack_into("<I", memory, place, old[i])
            elif bits >> i & 1:
                new[i] = struct.unpack_from("<I", memory, place)[0]
        after = {"k": {str(k): 0}, **({"mem": [[0, memory.hex()]]} if scatter else
                                      {"zmm": {str(d): raw(new)}})}
        return self.case("vpscatterdd" if scatter else "vpgatherdd", code, before, after)

    def refused(self):
        """A reserved conversion, EVEX, VEX.L = 1, a register that is not used, an address"""
        good = bytearray(mvex(1, 0, 0, 0x58, 1, 2, 0, disp8=0))
        sort = self.draw.randrange(5)
        if sort == 0:
            good[3] |= 0x50
        elif sort == 1:
            good[2] |= 4
        elif sort == 2:
            good = bytearray(vex(0x41, 1, 2))
            good[1] |= 4
        elif sort == 3:
            good = bytearray(mvex(1, 0, 0, 0x28, 1, self.draw.randrange(1, 32), 0, disp8=0))
        at = 128 + (4 * self.draw.randrange(1, 16) if sort == 4 else 0)
        return self.case(f"refused, {sort}", bytes(good), {"gpr": {"rax": ["mem", at]}},
                         {"fault": "#GP" if sort == 4 else "#UD"})

    def some(self, count):
        makers = [self.binary] * 8 + [self.compare, self.masks, self.flushed, self.unaligned, self.gather,
                                      self.refused]
        return [self.draw.choice(makers)() for _ in range(count)]


def encodings(seed, count):
    """Random instructions with MVEX, most of them of an opcode that there is, with [rax] or a
    register"""
    draw = random.Random(seed)
    known = re.findall(r"^(?:MOVE|VECTOR)\(\w+, (\d), (\w+), (\w+), (0x\w+)(?: . DIGIT\((.)\))?", Path(
        vectors.HERE.parent.parent, "emulator/target/i386/knc/vector-insns.h.inc").read_text(), re.M)
    for _ in range(count):
        map_, pp, w, opcode, digit = draw.choice(known)
        opcode = int(opcode, 16) if draw.random() < 0.9 else draw.getrandbits(8)
        modrm = draw.choice((0, 0, 0x40, 0xc0, 0xc0 | draw.randrange(8))) | 8 * (
            int(digit) if digit else draw.randrange(8))
        vvvv = 31 if draw.random() < 0.5 else draw.getrandbits(5)
        yield bytes((
            0x62, (0xf0 if draw.random() < 0.5 else draw.choice((0x70, 0xe0, 0xd0, 0xb0))) |
            int(map_) | 0x20 * (modrm < 0xc0),
            {"W0": 0, "W1": 0x80}.get(w, draw.choice((0, 0x80))) | (vvvv & 15) << 3 |
            ("NP", "P66", "PF3", "PF2").index(pp),
            draw.choice((0, draw.getrandbits(4) << 4)) | vvvv >> 4 << 3 | draw.randrange(8),
            opcode, modrm, *draw.choices(range(128), k=2), *bytes(8)))
