# SPDX-License-Identifier: GPL-2.0-only
"""The instructions of a function in a program of the card.

objdump lists them, and libZydis those that only MPSS's objdump knows: vector instructions (MVEX), and
those of masks. Other objdumps are given a program in the card's own code (k1om) as one of machine 62,
which has all of its other instructions.
"""
import contextlib
import re
import shutil
import tempfile
from pathlib import Path

from knc_perf import captured

try:
    import ctypes
except ImportError:
    # A small Python, as on a card
    ctypes = None

# Of the ELF header; and which machine each objdump reads
MACHINE_AT = 18
OBJDUMPS = {"k1om-mpss-linux-objdump": 181, "objdump": 62}
LINE = re.compile(r"^ *([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *\t(.*?)\s*$", re.M)
# What an MVEX instruction begins with
MVEX = "62 "
ZYDIS = "libZydis.so.4.0", "libZydis.so.4", "libZydis.so.4.1"
# Of Zydis 4: ZYDIS_STACK_WIDTH_64, ZYDIS_DECODER_MODE_KNC; and bytes of ZydisDecodedInstruction,
# which begins with two enums
WIDTH_64, MODE_KNC = 2, 2
LENGTH_AT, VISIBLE_OPERANDS_AT = 8, 25
# More than each of its structures has
ROOM = 8192


def zydis():
    for name in ZYDIS if ctypes else ():
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    return None


def decoded(library, code, address):
    """(address, text) of each instruction"""
    decoder, formatter, instruction, operands, text = (
        ctypes.create_string_buffer(ROOM) for _ in range(5))
    library.ZydisDecoderInit(decoder, 0, WIDTH_64)
    library.ZydisDecoderEnableMode(decoder, MODE_KNC, ctypes.c_uint8(1))
    library.ZydisFormatterInit(formatter, 0)
    at = 0
    while at < len(code):
        rest = code[at:at + 16]
        if library.ZydisDecoderDecodeFull(
                decoder, rest, ctypes.c_size_t(len(rest)), instruction, operands) < 0:
            yield address + at, "(bad)"
            at += 1
            continue
        library.ZydisFormatterFormatInstruction(
            formatter, instruction, operands, ctypes.c_uint8(instruction.raw[VISIBLE_OPERANDS_AT]),
            text, ctypes.c_size_t(ROOM), ctypes.c_uint64(address + at), None)
        yield address + at, re.sub("0x0*([0-9A-F]+)", lambda found: f"0x{found[1].lower()}",
                                   text.value.decode())
        at += instruction.raw[LENGTH_AT]


def for_objdump(path, machine, folder):
    """A copy of a program, as one of this machine"""
    data = bytearray(Path(path).read_bytes())
    data[MACHINE_AT:MACHINE_AT + 2] = machine.to_bytes(2, "little")
    copy = Path(folder, "program")
    copy.write_bytes(data)
    return copy


def instructions(path, function):
    """([(address, instruction)] of a function, why there are none)"""
    objdump = next(filter(shutil.which, OBJDUMPS), None)
    if not objdump:
        return [], "the instructions need objdump, which is not here (Debian: binutils)"
    with tempfile.TemporaryDirectory(prefix="knc-listing.") as folder:
        text = captured([objdump, "-d", "-C", "-w", "-z", f"--disassemble={function}",
                         for_objdump(path, OBJDUMPS[objdump], folder)]).stdout
    found = LINE.findall(text)
    # Of two functions of one name it is not known which it was.
    if not found or len(re.findall(r"^[0-9a-f]+ <.*>:$", text, re.M)) != 1:
        return [], f"objdump finds no function {function} in {path}, or more than one"
    listed = [(int(address, 16), words) for address, _, words in found]
    if not any("(bad)" in words or code.startswith(MVEX) and OBJDUMPS[objdump] == 62
               for _, code, words in found):
        return listed, ""
    library = zydis()
    if not library:
        return [], ("there are instructions that only this chip has: k1om-mpss-linux-objdump (MPSS) "
                    "or libZydis (Debian: zydis-tools) lists them, and neither is here")
    code = bytes.fromhex("".join(code for _, code, _ in found))
    return [*decoded(library, code, listed[0][0])], ""
