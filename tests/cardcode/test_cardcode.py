# SPDX-License-Identifier: GPL-2.0-only
"""Programs in a card's code, which this machine runs as well, beside the same programs compiled
as usual; what is put onto a card, and how.
"""
import array
import os
import re
import subprocess

import pytest
from lines import SCRIPTS, TOP, built, none_of, quietly

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = f"{TOP}/Documentation/examples"
MAINLINE, MPSS = "--machine=62", "--machine=181"
# Of each function in numbers.c
VALUES = 5000
# What gcc takes and a card has not, or what would be wrong there
REFUSED = (("vectors", "typedef double v2 __attribute__((vector_size(16)));"
            "v2 f(v2 a) { return a + a; } int main(void) { return 0; }", ()),
           ("SSE", "#include <xmmintrin.h>\n__m128 f(__m128 a) { return _mm_add_ps(a, a); }"
            "int main(void) { return 0; }", ()),
           ("complex", "int main(int c, char **v) { _Complex double z = c; return z * z == 2; }", ()),
           ("128 bits", "int main(int c, char **v) { return (__int128)c / (long)v; }", ()),
           ("a library of this machine", "int main(void) { return 0; }", ("-lgmp",)),
           ("a shared object", "int f(void) { return 0; }", ("-shared",)))
# In a directory that is a card's: the command runs there. uname says what the file "uname" does.
CARD = """#!/bin/sh
cd "$WORK/$1" || exit 255
PATH=$WORK/bin:$PATH
exec sh -c "$(echo "$2" | sed "s|/proc/|$WORK/$1/proc/|g; s|/sys/|$WORK/$1/sys/|g")"
"""


@pytest.fixture(scope="module")
def card_cc():
    return built("build-k1om")


def make(work, *compiler_and_words):
    quietly(*compiler_and_words, "-o", f"{work}/program", cwd=HERE)
    return f"{work}/program"


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def check_k1om(*words):
    quietly(f"{SCRIPTS}/check-k1om", *words)


def test_calls(tmp_path, card_cc):
    """What functions pass and return, and how it is rounded: with each optimisation, and of one
    half with another than of the other"""
    sources = ("main.c", "calls.c")
    want = run(make(tmp_path, "gcc", "-frounding-math", *sources, "-lm")).decode()
    assert want.endswith("\n0\n"), want
    for level in "0123s":
        quietly(card_cc, MAINLINE, "-c", f"-O{level}", "-o", f"{tmp_path}/calls{level}.o",
                "calls.c", cwd=HERE)
    for level, other in ("00", "10", "21", "32", "s3", "0s"):
        program = make(tmp_path, card_cc, MAINLINE, "-Wall", "-Wextra", f"-O{level}", "main.c",
                       f"{tmp_path}/calls{other}.o", "-lm")
        assert run(program).decode() == want, f"-O{level}, -O{other}"
        check_k1om(MAINLINE, program)


def test_numbers_text(tmp_path, card_cc):
    """A million doubles, printed and parsed"""
    want = run(make(tmp_path, "gcc", "-O2", "numbers.c", "-lm"), "text").decode()
    assert len(want.splitlines()) == 20, want
    assert run(make(tmp_path, card_cc, MAINLINE, "-O2", "numbers.c"), "text").decode() == want


def distances(ours, other):
    """How far each function is from another C library's at worst, in units of the last place"""
    def key(bits):
        return bits if bits >= 0 else -(bits & ~(-1 << 63))

    nan = 0x7ff << 52
    worst = []
    for at in range(0, len(other), VALUES):
        pairs = [(key(a), key(b)) for a, b in zip(ours[at:at + VALUES], other[at:at + VALUES])]
        assert all((abs(a) > nan) == (abs(b) > nan) for a, b in pairs), at // VALUES
        worst.append(max(abs(a - b) for a, b in pairs if abs(a) <= nan))
    return worst


def test_numbers_math(tmp_path, card_cc):
    """<math.h> is as near to glibc's as stock musl's is: at most twice as far, and one more."""
    values = []
    for compiler in (("gcc",), ("musl-gcc", "-static"), (card_cc, MAINLINE)):
        numbers = array.array("q")
        numbers.frombytes(run(make(tmp_path, *compiler, "-O2", "-fno-builtin", "numbers.c",
                                   "-lm"), "math"))
        values.append(numbers)
    with open(f"{HERE}/numbers.c", encoding="utf-8") as f:
        names = re.findall(r"\b[FG]\((\w+), \d+\)", f.read())
    assert {len(numbers) for numbers in values} == {VALUES * len(names)}
    glibc, musl, ours = values
    none_of(f"{name}: {got} from glibc's, and stock musl's {may}" for name, got, may in
            zip(names, distances(ours, glibc), distances(musl, glibc)) if got > 2 * may + 1)


def test_refused(tmp_path, card_cc):
    program = f"{tmp_path}/program"
    for what, source, words in REFUSED:
        done = subprocess.run([card_cc, "-x", "c", "-", "-x", "none", "-o", program, *words],
                              input=source, text=True, check=False, stderr=subprocess.PIPE)
        assert done.returncode and not os.path.exists(program), f"{what}: {done.stderr}"


def test_library(tmp_path, card_cc):
    """All of the C library, not only what some program takes from it"""
    whole = f"{tmp_path}/whole"
    quietly("ld", "-r", "--whole-archive", f"{os.path.dirname(card_cc)}/lib/libc.a", "-o", whole)
    check_k1om(MAINLINE, whole)


def test_card_cc(tmp_path):
    """Also programs that are marked, with our headers"""
    for words in (("main.c", "calls.c"), (f"{EXAMPLES}/matmul.c",),
                  ("-DLIKWID_PERFMON", f"{EXAMPLES}/marked.c")):
        program = make(tmp_path, f"{SCRIPTS}/card-cc", "-pipe", f"-I{TOP}/include", *words)
        check_k1om(MPSS, program)
    assert "--machine= is 181 or 62" in subprocess.run(
        [f"{SCRIPTS}/card-cc", "--machine=3"], text=True, check=False,
        stderr=subprocess.PIPE).stderr


def test_addr2line(tmp_path):
    """Functions, lines, and where they are inlined, as binutils' has them"""
    program = make(tmp_path, "gcc", "-O2", "-g", "main.c", "calls.c", "-lm")
    addresses = [address for name in ("main", "variadic_list", "turn") for address in re.findall(
        "^ +([0-9a-f]+):", quietly("objdump", f"--disassemble={name}", program), re.M)]
    assert len(addresses) > 200

    def places(addr2line):
        return subprocess.run([addr2line, "-e", program, "-i", "-f"], check=True, text=True,
                              input=",\n".join(f"{address}\n" for address in addresses),
                              stdout=subprocess.PIPE).stdout

    want = re.sub(r" \(discriminator \d+\)", "", places("addr2line"))
    assert places(f"{built('build-card-perf')}/addr2line") == want


def test_tarballs_again(tmp_path):
    """The same files make the same tarballs."""
    for name in "ab":
        quietly(f"{SCRIPTS}/build-card", tmp_path / name)
    for machine in ("k1om", "mainline"):
        quietly("cmp", *(tmp_path / name / f"knc-pmu-card-{machine}.tar.gz" for name in "ab"))


class Card:
    """A directory that is a card, and what is for it"""

    def __init__(self, work, machine, uname):
        quietly(f"{SCRIPTS}/build-card", work)
        self.tree, self.home = work / f"knc-pmu-card-{machine}", work / "mic0"
        (work / "bin").mkdir()
        for name, text in (("ssh", CARD), ("bin/uname", f"[ $1 = -m ] && echo {uname} || echo 1.2"),
                           ("bin/insmod", "echo inserted $1 >>log")):
            (work / name).write_text(text if text[0] == "#" else f"#!/bin/sh\n{text}\n")
            (work / name).chmod(0o755)
        (self.home / "proc").mkdir(parents=True)
        (self.home / "proc/cpuinfo").write_text("cpu family\t: 11\n")
        (self.home / "proc/modules").write_text("")
        self.work = work

    def install(self, *words):
        done = subprocess.run([self.tree / "install-on-card", *words, self.work / "ssh", "mic0"],
                              env={**os.environ, "WORK": str(self.work)}, text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return done.returncode, done.stdout


def test_install(tmp_path, card_cc):
    card = Card(tmp_path, "mainline", "x86_64")
    status, said = card.install()
    assert status == 0 and "no driver: build it for 1.2" in said, said
    assert sorted(os.listdir(card.home / "knc-pmu")) == ["addr2line", "perf", "selftest"]
    assert said.endswith(" knc-pmu/perf stat -e cycles,instructions <a program there>\n")
    assert "perf version 6.1" in quietly(card.home / "knc-pmu/perf", "--version")
    listed = re.findall("^   ([a-z-]+) ", quietly(card.home / "knc-pmu/perf", "--help"), re.M)
    assert "record" in listed
    for command in listed:
        said = subprocess.run([card.home / "knc-pmu/perf", command, "-h"], check=False,
                              capture_output=True).stderr
        assert b"is not a perf-command" not in said, said
    # What has changed there is copied again, and nothing else.
    with open(card.home / "knc-pmu/selftest", "ab") as f:
        f.write(b"x")
    said = card.install()[1]
    assert said.count(": is there") == 2 and "selftest: copied" in said, said
    module = tmp_path / "knc_pmu.ko"
    (tmp_path / "m.c").write_text('const char m[] = "vermagic=1.2 SMP";')
    quietly(card_cc, MAINLINE, "-c", "-o", module, tmp_path / "m.c")
    status, said = card.install("--module", module)
    assert status == 0 and "the driver has been loaded" in said, said
    assert (card.home / "log").read_text() == "inserted knc-pmu/knc_pmu.ko\n"
    (card.home / "proc/modules").write_text("knc_pmu 1 - Live\n")
    assert "the driver is loaded" in card.install("--module", module)[1]


def test_install_refused(tmp_path, card_cc):
    """Nothing is copied to another machine, or with a driver for another kernel."""
    card = Card(tmp_path, "k1om", "k1om")
    module = tmp_path / "m.c"
    module.write_text('const char m[] = "vermagic=1.3 SMP";')
    quietly(card_cc, "-c", "-o", tmp_path / "m.ko", module)
    assert "m.ko is for 1.3, and the card's kernel is 1.2" in \
        card.install("--module", tmp_path / "m.ko")[1]
    (card.home / "proc/cpuinfo").write_text("cpu family\t: 6\n")
    assert "no Knights Corner" in card.install()[1]
    (tmp_path / "bin/uname").write_text("#!/bin/sh\necho x86_64\n")
    (card.home / "proc/cpuinfo").write_text("cpu family\t: 11\n")
    assert "its machine is x86_64, and these programs are for k1om" in card.install()[1]
    card.home.rename(tmp_path / "gone")
    assert "no answer from a card" in card.install()[1]
    assert not (tmp_path / "gone/knc-pmu").exists()
