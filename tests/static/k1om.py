# SPDX-License-Identifier: GPL-2.0-only
"""That scripts/check-k1om finds what the chip does not have, and nothing else.

Each instruction is assembled at an address of its own, so that each is known to
be found, and by itself. And what our programs for the card are made of passes.
"""
import glob
import os
import re
import shutil
import subprocess
import tempfile

from lines import SCRIPTS, TOP
from knc_scripts import CACHE

CHECK = f"{SCRIPTS}/check-k1om"

HOST_HAS = "awk cp cut dd dirname grep mktemp nproc od rm sed sh sha256sum tr".split()

LACKS = """
    cmove %eax,%ebx; cmovae (%rax),%rbx; cmovg %cx,%dx
    fcmove %st(1),%st; fcomi %st(1),%st; fcomip %st(1),%st; fucomi %st(1),%st
    fucomip %st(1),%st; fisttpl (%rax)
    movq %mm0,%mm1; movd %eax,%mm2; paddb %mm0,%mm1; emms
    movaps %xmm0,%xmm1; addss %xmm0,%xmm1; movd %eax,%xmm0; cvtsi2sd %eax,%xmm0
    pxor %xmm0,%xmm0; movdqa (%rax),%xmm3
    lfence; mfence; sfence; pause; movnti %eax,(%rbx); clflush (%rax)
    prefetcht0 (%rax); prefetcht1 (%rax); prefetcht2 (%rax); prefetchnta (%rax)
    prefetchw (%rax); nopl 0(%rax); nopw 0(%rax,%rax,1); endbr64
    cmpxchg16b (%rax); lock cmpxchg16b (%rax); sysenter; sysexit; rdtscp
    monitor; mwait; in %dx,%al; in $0x60,%eax; out %al,%dx; insb; outsb
    crc32l %eax,%ebx; xgetbv; xsave (%rax); stac; vzeroupper
    movbe (%rax),%ebx; rdrand %eax; andn %eax,%ebx,%ecx
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
    popcnt %eax,%ebx; lzcnt %eax,%ebx
    tzcnt %eax,%ebx; mov %gs:0x10,%rax; rcl $1,%rax; std; cld; pushfq; popfq
"""
# SPFLT and DELAY, of both forms
OWN = ("0xc5,0xfb,0xae,0xf0", "0xc5,0xfa,0xae,0xf3",
       "0xc4,0xc1,0x7b,0xae,0xf0", "0xc4,0xc1,0x7a,0xae,0xf7")

USER = """
#include "knc_pmu_user.h"
#include "knc_pmu_regions.h"

uint64_t all(const volatile struct perf_event_mmap_page *page)
{
	uint64_t value = 0;

	spflt_on();
	spflt_region
		value = knc_rdtsc();
	spflt_off();
	knc_rdpmc(page, &value);
	return value + knc_cpu();
}
"""


def instructions(text):
    return [i.strip() for i in re.split(r"[;\n]", text) if i.strip()]


def assemble(work, name, lines):
    """An object with each line at a multiple of 32; between them is int3, as NOPs
    would be long ones."""
    source, target = f"{work}/{name}.s", f"{work}/{name}.o"
    with open(source, "w", encoding="utf-8") as f:
        f.write("".join(f"\t.balign 32, 0xcc\n\t{line}\n" for line in lines))
        f.write("1:\tnop\n")
    subprocess.run([CHECK, "--assemble", target, source], check=True)
    return target


def check_k1om(*files, env=None):
    done = subprocess.run(["sh", CHECK, *files], check=False, text=True, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def lacks(work, env=None):
    lines = instructions(LACKS)
    status, said = check_k1om(assemble(work, "lacks", lines), env=env)
    found = {int(a, 16) // 32 for a in re.findall(r"\.text\+0x([0-9a-f]+):", said)}
    if status != 1:
        yield f"status {status} for what the chip does not have"
    for i, line in enumerate(lines):
        if i not in found:
            yield f"not found: {line}"


def has(work, env=None):
    lines = instructions(HAS) + [f".byte {own}" for own in OWN]
    status, said = check_k1om(assemble(work, "has", lines), env=env)
    if status:
        yield f"status {status} for what the chip has: {said}"


def sources(work):
    """Without optimisation, all that is there is what the sources say."""
    with open(f"{work}/user.c", "w", encoding="utf-8") as f:
        f.write(USER)
    for source in (f"{work}/user.c", f"{TOP}/tools/knc-stat.c", f"{TOP}/tools/selftest.c"):
        subprocess.run(["gcc", "-std=gnu99", "-O0", "-S", "-mno-sse", "-mno-mmx",
                        "-mno-80387", "-fcf-protection=none", "-I", f"{TOP}/include",
                        "-o", f"{work}/own.s", source], check=True)
        subprocess.run([CHECK, "--assemble", f"{work}/own.o", f"{work}/own.s"], check=True)
        status, said = check_k1om(f"{work}/own.o")
        if status:
            yield f"{source}: status {status}: {said}"


def without_python(work):
    """Hosts with an objdump for k1om, without Python and cache: Debian's shell and awk, others"""
    subprocess.run([f"{SCRIPTS}/apt-fetch", "--unpack", f"{work}/root", "gawk", "libsigsegv2"],
                   check=True, stdout=subprocess.DEVNULL)
    binutils, = glob.glob(f"{CACHE}/binutils-k1om/*/usr")
    for shell, awk in (("dash", "mawk"), ("bash", f"{work}/root/usr/bin/gawk")):
        path = f"{work}/{shell}"
        os.mkdir(path)
        for name in HOST_HAS:
            os.symlink(shutil.which({"sh": shell, "awk": awk}.get(name, name)),
                       f"{path}/{name}")
        os.symlink(f"{binutils}/bin/x86_64-linux-gnu-objdump", f"{path}/k1om-mpss-linux-objdump")
        env = dict(os.environ, PATH=path, KNC_PMU_CACHE=work, LD_LIBRARY_PATH=":".join(
            f"{usr}/lib/x86_64-linux-gnu" for usr in (f"{work}/root/usr", binutils)))
        yield from lacks(work, env)
        yield from has(work, env)


def others(work):
    """Files of which nothing can be said are refused, and not passed."""
    subprocess.run(["gcc", "-c", "-O2", "-o", f"{work}/other.o", "-x", "c", "-"],
                   input="int f(int a, int b) { return a > b ? a : b; }",
                   text=True, check=True)
    with open(f"{work}/text", "w", encoding="utf-8") as f:
        f.write("no object\n")
    for name, why in (("other.o", "for machine 62"), ("text", "no 64-bit ELF file"),
                      ("absent", "No such file")):
        status, said = check_k1om(f"{work}/{name}")
        if status != 2 or why not in said:
            yield f"{name}: status {status}: {said}"


def wrong():
    """What is not as it should be"""
    with tempfile.TemporaryDirectory(prefix="k1om.") as work:
        for test in (lacks, has, without_python, sources, others):
            yield from test(work)
