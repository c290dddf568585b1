# SPDX-License-Identifier: GPL-2.0-only
"""The board alone: a bare program in the form of a bzImage checks what the card's kernel
relies on, and prints its results to the virtual console. Nothing of the kernel is needed.
"""
import itertools
import re
import shutil
import string
from functools import partial

import pytest
import vectors
from lines import Case
from test_emulator import FUZZ_TIMEOUT, FUZZED, Machine, ended, fuzz, judge, result, tail

MIB = 320
CPU = ["-cpu", "knc-strict", "-icount", "shift=0,sleep=off", "-accel", "tcg,thread=single"]
# What the program expects at its console: more than the ring holds
TYPED = "begin\n" + "".join(itertools.islice(itertools.cycle(string.ascii_lowercase), 9994))
OUTPUT = [f"line {n:04} of the console's ring, as wide as that" for n in range(1500)]


class Board(Machine):
    def command(self, *options, **instead):
        """QEMU with -M knc and these options; a value of None leaves one out."""
        given = {"m": MIB, "kernel": self.program, "smp": "4,cores=1,threads=4",
                 "serial": "stdio", "monitor": "none", **instead}
        command = [*self.timeout, self.qemu, "-M", "knc", "-display", "none", "-nic", "none"]
        for name, value in given.items():
            command += [f"-{name}", str(value)] if value is not None else []
        return [*command, *options]

    def card(self, threads, words, *options):
        initrd = self.work / "initrd"
        initrd.write_text("initrd")
        return self.run(*CPU, "-device", "knc-pmu-testdev,limit=1000", "-initrd", initrd, "-append",
                        f"ram={MIB << 20:#x} threads={threads:#x} {words}", *options,
                        smp=f"{threads},cores={threads // 4},threads=4", typed=TYPED)


def program(board, threads, words, *options):
    """Its results; all output comes; the system ends as the doorbell, or the POST code, says."""
    done = board.card(threads, words, *options)
    label = f"{threads} threads"
    lines = done.stdout.splitlines()
    yield from (line.replace(" ", f" {label}: ", 1) for line in lines
                if line.startswith(("ok ", "FAIL ")))
    yield result(f"{label}: came to its end", "" if not done.returncode and
                 lines and re.fullmatch(r"done \d+ 0", lines[-1]) else
                 f"status {done.returncode}\n" + tail(done.stdout, done.stderr))
    if words != "board":
        output = [line for line in lines if line.startswith("line")]
        yield result(f"{label}: each line of output", output != OUTPUT and f"{len(output)} lines")


def mainline(board):
    """What a mainline kernel finds; the last thread but three boots. POST codes are traced."""
    log = board.work / "trace"
    yield from program(board, 8, "mainline", "-M", "mainline=on", "-rtc",
                       "base=2020-01-01,clock=vm", "-trace", "knc_board_post", "-D", log)
    said = re.findall("knc_board_post code=(..)", log.read_text())
    yield result("mainline: POST codes", said != ["K0", "KH"] and f"{said}")


def crash(board):
    """Doorbell or POST code tell of a crash, which QEMU's -action can make an error."""
    for name, *options in (("doorbell",), ("POST code", "-M", "mainline=on")):
        done = board.run(*CPU, "-action", "panic=exit-failure", *options, append="crash")
        yield result(f"crash: the {name} tells", done.returncode != 1 and
                     f"status {done.returncode}: {done.stderr}")


def unknown(board):
    log = board.work / "log"
    board.run(*CPU, "-d", "unimp", "-D", log, append="ram=0x14000000 threads=0x4 board")
    said = log.read_text()
    for what in ("read of 0x0010", "write of 0xffffffff to 0x0010", "IN from port 0x3f8",
                 "OUT to port 0x3f8"):
        yield result(f"unknown: {what}", what not in said and tail(said))


def monitor(board):
    """It reads the board's memory, where no thread does, and says that the board cannot migrate."""
    done = board.run(*CPU, "-S", serial="none", monitor="stdio", typed="".join(
        f"xp /1wx {address:#x}\n"
        for address in (0xfee00020, 0x8007d0000 + 0xab30, 0x8001000000)) + "info migrate\nquit\n")
    for name, said in (("no local APIC", ": 0xffffffff"), ("the SBOX", ": 0x2800e6cf"),
                       ("the console's header", ": 0x0000bad0"), *(
                           (f"{device} does not migrate", f"non-migratable device: {device}\n")
                           for device in ("knc-console", "knc-sbox", "knc-lapic", "knc-pmu"))):
        yield result(f"monitor: {name}", said not in done.stdout.replace("\r", "") and
                     f"status {done.returncode}: {done.stdout}{done.stderr}")


def refusals(board):
    elf, big, kernel = f"{board.program}.elf", board.work / "big", board.work / "kernel"
    shutil.copy(board.program, kernel)
    for path in big, kernel:
        with open(path, "ab") as file:
            file.truncate(MIB << 20)
    for name, told, options in (
            ("no kernel", "needs a -kernel", {"kernel": None}),
            ("not a bzImage", "is not a bzImage", {"kernel": elf}),
            ("no such file", "No such file", {"kernel": "/nonexistent"}),
            ("three threads a core", "1 to 62 cores", {"smp": "3,cores=1,threads=3"}),
            ("two packages", "1 to 62 cores", {"smp": "8,sockets=2,cores=1,threads=4"}),
            ("too little memory", "needs -m 64 to 16384", {"m": 32}),
            ("too much memory", "needs -m 64 to 16384", {
                "m": "17G", "machine": "memory-backend=ram",
                "object": "memory-backend-ram,id=ram,size=17G,reserve=off"}),
            ("no room for the kernel", f"the limit is {MIB << 20:#x}\n", {"kernel": kernel}),
            ("no room for the initrd", "does not fit", {"initrd": big}),
            ("a long command line", "longer than", {"append": "x" * 4096}),
            ("no room for the ring", "needs -m 257", {"M": "knc,mainline=on", "m": 256}),
            ("another CPU", "its CPU is knc-strict", {"cpu": "knc"})):
        yield ended(f"refusals: {name}", board.run(
            *CPU[:0 if "cpu" in options else 2], *CPU[2:], **options), 1, told)


def fuzz_board(board):
    board.timeout = FUZZ_TIMEOUT
    return fuzz(lambda words: board.run(*CPU[:-2], *FUZZED, "-device", "knc-pmu-testdev,limit=1",
                                        m=64, append=words, typed=TYPED))


@pytest.fixture(scope="session")
def image(tmp_path_factory):
    return vectors.build_program(tmp_path_factory.mktemp("board"), "board")


def cases(run):
    for name, check in (("board", partial(program, threads=4, words="board vectors")),
                        ("board-244", partial(program, threads=244, words="board")),
                        ("board-mainline", mainline), ("board-crash", crash),
                        ("board-unknown", unknown), ("board-monitor", monitor),
                        ("board-refusals", refusals), ("board-fuzz", fuzz_board)):
        yield Case(name, lambda *on, check=check: check(Board(run.kernel, *on)), seconds=10)


def test(case, image, tmp_path, record_property):
    judge([*case.check(image, tmp_path)], record_property)
