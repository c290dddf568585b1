# SPDX-License-Identifier: GPL-2.0-only
"""That scripts/check-k1om finds what the chip does not have, and nothing else.

Each instruction is assembled at an address of its own, so that each is known to
be found, and by itself.
"""
import glob
import itertools
import os
import re
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from lines import SCRIPTS, TOP, built, copy, quietly, sources
from knc_scripts import CACHE
import mvex

CHECK = f"{SCRIPTS}/check-k1om"

HOST_HAS = "awk cat cp cut dd dirname grep mktemp nproc od realpath rm sed sh sha256sum tr".split()

LACKS = """
    cmove %eax,%ebx; cmovae (%rax),%rbx; cmovg %cx,%dx
    fcmove %st(1),%st; fcomi %st(1),%st; fcomip %st(1),%st; fucomi %st(1),%st
    fucomip %st(1),%st; fisttpl (%rax)
    movq %mm0,%mm1; movd %eax,%mm2; paddb %mm0,%mm1; emms
    movaps %xmm0,%xmm1; addss %xmm0,%xmm1; movd %eax,%xmm0; cvtsi2sd %eax,%xmm0
    pxor %xmm0,%xmm0; movdqa (%rax),%xmm3
    lfence; mfence; sfence; movnti %eax,(%rbx); clflush (%rax)
    prefetcht0 (%rax); prefetcht1 (%rax); prefetcht2 (%rax); prefetchnta (%rax)
    prefetchw (%rax); nopl 0(%rax); nopw 0(%rax,%rax,1); endbr64
    cmpxchg16b (%rax); lock cmpxchg16b (%rax); sysenter; sysexit; rdtscp
    monitor; mwait; in %dx,%al; in $0x60,%eax; out %al,%dx; insb; outsb
    crc32l %eax,%ebx; xgetbv; xsave (%rax); stac; vzeroupper
    movbe (%rax),%ebx; rdrand %eax; andn %eax,%ebx,%ecx; pause
    popcnt %ecx,%eax; popcnt (%rax),%rbx; lzcnt %eax,%ebx; tzcnt %rax,%rbx; repnz bsf %eax,%ebx
"""
HAS = """
    mov %rax,%rbx; movabs $0x123456789abcdef0,%rcx; movzbl %al,%ecx; movslq %eax,%rdx
    lea 8(%rax,%rbx,4),%rcx; add $1,(%rax); lock incl (%rax); xadd %eax,(%rbx)
    lock cmpxchg %rcx,(%rdx); cmpxchg8b (%rax); xchg %rax,%rbx; bswap %rax
    bsf %rax,%rbx; bsr %rax,%rbx; bts %eax,(%rbx); sete %al; setnbe %bl; je 1f; jnp 1f
    imul $40,%rax,%rbx; div %rcx; shl $40,%rax; shrd $8,%rax,%rbx; cqto; cltq; cwtl
    rep movsb; rep stosq; repnz scasb; push %rbp; pop %rbp; leave; ret; repz ret
    call *%rax; jmp *%rax; int3; iretq; nop; xchg %ax,%ax; cli; sti; hlt; ud2
    rdmsr; wrmsr; rdpmc; rdtsc; cpuid; swapgs; sysretq; invlpg (%rax); mov %cr4,%rax
    fld1; fadd %st(1),%st; fxsave (%rax); ldmxcsr (%rax); stmxcsr (%rax)
    mov %gs:0x10,%rax; rcl $1,%rax; std; cld; pushfq; popfq
"""
# SPFLT and DELAY, of both forms; POPCNT, LZCNT, TZCNT, TZCNTI, of both, two side by side; a number
# with the bytes of a POPCNT, before a call whose other bytes are no instruction
OWN = ("0xc5,0xfb,0xae,0xf0", "0xc5,0xfa,0xae,0xf3",
       "0xc4,0xc1,0x7b,0xae,0xf0", "0xc4,0xc1,0x7a,0xae,0xf7",
       "0xc5,0xfa,0xb8,0xc1", "0xc5,0x7a,0xbd,0xd9", "0xc5,0xfa,0xbc,0xc1", "0xc5,0xfb,0xbc,0xc1",
       "0xc4,0xe1,0xfa,0xb8,0xc1", "0xc4,0x41,0x7a,0xbd,0xc9,0xc5,0xfa,0xbc,0xc1",
       "0xb8,0x90,0xc5,0xfa,0xb8,0xe8,6,6,6,0")

# What scripts/k1om/k1om.s rewrites: conditions, operands, and pieces that leave a result in RAX
CONDITIONS = "a ae b be c e g ge l le nb nc ne no np ns o p s".split()
OPERANDS = """%ecx,%eax; %rcx,%rax; %cx,%ax; (%r8),%eax; 8(%r8),%rax; 7(%r8,%r9),%rax;
    (%r8, %r9, 8), %eax; (,%r10,8),%rax; words+8(%rip),%eax"""
# As clang writes them
SIZED = "w %cx,%ax; l 8(%r8),%eax; q %rcx,%rax"
TOP_TO_RAX = "push %rax; fistpq (%rsp); pop %rax"
FLOATS = """fld1; fldz; OP %st(1),%st; TOP; fstp %st(0)
    fldz; fld1; OP %st(1),%st; TOP; fstp %st(0)
    fld1; fld1; OP %st(1),%st; TOP; fstp %st(0)
    fldz; fldz; fdiv %st(1),%st; OP %st(1),%st; TOP; fstp %st(0)
    fld1; fldz; OPp %st(1),%st; TOP
    fldz; fld1; OPp %st(1),%st; TOP"""
ARITHMETIC, COMPARISON = 0x8d5, 0x45
FUNCTION = """
{prefix}{i}:
	mov	$0x1111111111111111, %rax
	mov	$0x2222222222222222, %rcx
	lea	words(%rip), %r8
	mov	$1, %r9d
	mov	%r8, %r10
	shr	$3, %r10
	push	%rdi
	popf
	{code}
	pushf
	pop	%rdx
	and	${flags}, %edx
	mov	%rax, (%rsi)
	mov	%rdx, 8(%rsi)
	ret
	.section .rodata
	.quad	{prefix}{i}
	.text
"""
DRIVER = """
#include <stdio.h>
extern void (*const chip[])(unsigned long, unsigned long *), (*const ours[])(unsigned long, unsigned long *);
int main(void)
{
	unsigned long a[2], b[2], flags;
	int i, j;

	for (i = 0; chip[i]; i++) {
		for (j = 0; j < 32; j++) {
			flags = 2 | (j & 1) | (j & 2) << 1 | (j & 4) << 4 | (j & 8) << 4 | (j & 16) << 7;
			chip[i](flags, a);
			ours[i](flags, b);
			if (a[0] != b[0] || a[1] != b[1])
				printf("%d\\n", i);
		}
	}
	return 0;
}
"""


def instructions(text):
    return [i.strip() for i in re.split(r"[;\n]", text) if i.strip()]


# What a card with MPSS loads, and one with mainline
MPSS, MAINLINE = 181, 62


def assemble(work, name, lines, machine=MPSS, apart="\t.balign 32, 0xcc\n"):
    """An object with each line at a multiple of 32; between them is int3, as NOPs
    would be long ones."""
    source, target = Path(work, f"{name}.s"), Path(work, f"{name}.o")
    source.write_text("".join(f"{apart}\t{line}\n" for line in lines) + "1:\tnop\n")
    quietly("as", "-o", target, source)
    code = target.read_bytes()
    target.write_bytes(code[:18] + bytes([machine, 0]) + code[20:])
    return target


def check_k1om(*words, **options):
    done = subprocess.run(["sh", CHECK, *words], check=False, text=True, **options,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def not_found(lines, said):
    """Those of which check-k1om has said nothing"""
    found = {int(a, 16) // 32 for a in re.findall(r"\.text\+0x([0-9a-f]+): ", said)}
    return [f"not found: {line}" for i, line in enumerate(lines) if i not in found]


def instruction_set(work, env=None, machine=MPSS):
    """Each instruction that the chip lacks is found, and none that it has"""
    check = partial(check_k1om, f"--machine={machine}", env=env)
    lines = instructions(LACKS)
    status, said = check(assemble(work, "lacks", lines, machine))
    if status != 1:
        yield f"status {status} for what the chip does not have"
    yield from not_found(lines, said)
    lines = instructions(HAS) + [f".byte {own}" for own in OWN]
    status, said = check(assemble(work, "has", lines, machine))
    if status:
        yield f"status {status} for what the chip has: {said}"


def without_python(work):
    """Hosts with an objdump for k1om, without Python and cache: Debian's shell and awk, others"""
    quietly(f"{SCRIPTS}/apt-fetch", "--unpack", f"{work}/root", "gawk", "libsigsegv2")
    # Those that were used last, unless this machine has them: an older run may have left others.
    fetched = max(glob.glob(f"{CACHE}/binutils-k1om/*/usr"), default="",
                  key=lambda usr: os.path.getmtime(os.path.dirname(usr)))
    objdump = "k1om-mpss-linux-objdump"
    for shell, awk in (("dash", "mawk"), ("bash", f"{work}/root/usr/bin/gawk")):
        path = f"{work}/{shell}"
        os.mkdir(path)
        for name in HOST_HAS:
            os.symlink(shutil.which({"sh": shell, "awk": awk}.get(name, name)), f"{path}/{name}")
        os.symlink(shutil.which(objdump) or f"{fetched}/bin/x86_64-linux-gnu-objdump",
                   f"{path}/{objdump}")
        env = dict(os.environ, PATH=path, KNC_PMU_CACHE=work, LD_LIBRARY_PATH=":".join(
            f"{usr}/lib/x86_64-linux-gnu" for usr in (f"{work}/root/usr", fetched)))
        yield from instruction_set(work, env)


# No jump labels: objtool, which makes NOPs of them, has other NOPs in a card's tree.
MAKE = "make", "-s", "OBJECT_FILES_NON_STANDARD=y"
# Padding in code would be NOPs with operands. From gcc 14 on, -Os alone switches all of it off.
COMPILERS = {"gcc": ("prepared", "-Os -falign-functions=1"),
             "clang": ("clang", "-fno-integrated-as -Os -falign-loops=1")}


def modules(work):
    """The driver for a card with mainline, whose compiler leaves CMOV out. Mainline's __ffs() is
    TZCNT; a port has BSF there. There is nothing else that the chip lacks."""
    for compiler, (flavour, flags) in COMPILERS.items():
        tree = f"{work}/{compiler}"
        copy(sources(r"[^/]*\.[ch]|Kbuild|compat/.*"), tree)
        quietly(*MAKE, "-C", built("build-kernel", flavour), f"M={tree}", f"CC={compiler}",
                f"KCFLAGS={flags}", "knc_pmu.o")
        status, said = check_k1om("--machine=62", f"{tree}/knc_pmu.o")
        if status > 1 or re.search(r": (?!cmov|tzcnt)[a-z]+[^:]*$", said, re.M):
            yield f"{compiler}: status {status}: {said}"


def others(work):
    """What a card's kernel does not load, or of which nothing can be said, is refused."""
    tree = f"{work}/tree/scripts/mod"
    os.makedirs(tree)
    shutil.copy(assemble(work, "call", ["call f"], MAINLINE), f"{tree}/empty.o")
    call, module = ["call f"], ["call f", '.section .modinfo,"a"', ".byte 0"]
    for name, lines, machine in (("call", call, MPSS), ("module", module, MPSS),
                                 ("other", module, MAINLINE)):
        assemble(work, name, lines, machine)
    Path(work, "text").write_text("no object\n")
    kernel = f"--kernel={work}/tree"
    for words, want, why in (
            ("call.o", 0, "all of which"), ("module.o", 2, "has R_X86_64_PLT32"),
            ("other.o", 2, "for machine 62"), ("text", 2, "no 64-bit ELF file"),
            ("absent", 2, "No such file"), (f"{kernel} other.o", 0, "all of which"),
            (f"{kernel} module.o", 2, "for machine 181"),
            ("--kernel=call.o module.o", 2, "has R_X86_64_PLT32"),
            ("--machine=3 other.o", 2, "3: a card's machine")):
        status, said = check_k1om(*words.split(), cwd=work)
        if status != want or why not in said:
            yield f"{words}: status {status}: {said}"


def vectors(work):
    """A program may have vector instructions, one behind another or between others, and a module
    not; each undefined form is found, and AVX's masks."""
    cases = mvex.Random(1).some(200)
    refused = [case for case in cases if case["out"].get("fault") == "#UD"]
    code = {name: [".byte " + ",".join(f"{b:#x}" for b in bytes.fromhex(case["code"]))
                   for case in some] for name, some in (
                       ("bad", refused), ("good", [case for case in cases if case not in refused]))}
    for name, lines in code.items():
        assemble(work, name, lines)
    assemble(work, "dense", code["good"], apart="\tadd $1, %rax\n")
    assemble(work, "with", [*code["good"], '.section .modinfo,"a"', ".byte 0"])
    for name in ("good", "dense"):
        status, said = check_k1om(f"{work}/{name}.o")
        if status:
            yield f"{name}: status {status}: {said}"
    for name, lines in (("bad", code["bad"]), ("with", code["good"])):
        said = check_k1om(f"{work}/{name}.o")[1]
        yield from not_found(lines, said)
    if not re.search(r": vaddps, but the kernel does not save ", said):
        yield said


def rewritten():
    """Each piece of code, and the flags that have to be the same after it"""
    for condition, operands in itertools.product(
            CONDITIONS, [*(f" {each}" for each in instructions(OPERANDS)), *instructions(SIZED)]):
        yield f"cmov{condition}{operands}", ARITHMETIC
    for name in ("fcomi", "fucomi"):
        for code in FLOATS.split("\n"):
            yield code.strip().replace("TOP", TOP_TO_RAX).replace("OP", name), COMPARISON
    for condition in ("b", "be", "e", "u", "nb", "nbe", "ne", "nu"):
        yield f"fldz; fld1; fcmov{condition} %st(1),%st; {TOP_TO_RAX}; fstp %st(0)", ARITHMETIC
    for name in ("lfence", "mfence", "sfence", "pause", "rep bsfl %ecx,%eax", "rep bsf (%r8),%rax",
                 "xor %ecx,%ecx; rep movsb", "xor %ecx,%ecx; rep; stosb %al,%es:(%rdi)"):
        yield name, 0


def macros(work):
    """Programs for the card do with what they have what an x86-64 does."""
    pieces = [*rewritten()]
    for prefix, first in (("chip", []), ("ours", [f"{TOP}/scripts/k1om/k1om.s"])):
        functions = "".join(FUNCTION.format(prefix=f"{prefix}_", i=i, code=code, flags=flags)
                            for i, (code, flags) in enumerate(pieces))
        Path(work, f"{prefix}.s").write_text(
            f"\t.section .rodata\n\t.globl {prefix}\n{prefix}:\n\t.text\n{functions}"
            "\t.section .rodata\n\t.quad 0\n"
            "words:\n\t.quad 0x3333333333333333, 0x4444444444444444\n"
            "\t.section .note.GNU-stack, \"\", @progbits\n")
        quietly("as", "-o", f"{work}/{prefix}.o", *first, f"{work}/{prefix}.s")
    yield from re.findall("[^\t]*(?:cmov|comi|fence|pause|tzcnt).*",
                          quietly("objdump", "-d", f"{work}/ours.o"))
    Path(work, "driver.c").write_text(DRIVER)
    quietly("gcc", "-O2", "-no-pie", "-mno-red-zone", "-o", f"{work}/driver",
            *(f"{work}/{name}" for name in ("driver.c", "chip.o", "ours.o")))
    for i in {*quietly(f"{work}/driver").split()}:
        yield f"is something else as macros: {pieces[int(i)][0]}"


def wrong():
    with tempfile.TemporaryDirectory(prefix="k1om.") as work:
        for test in (instruction_set, vectors, partial(instruction_set, machine=MAINLINE),
                     without_python, modules, others, macros):
            yield from test(work)
