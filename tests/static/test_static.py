# SPDX-License-Identifier: GPL-2.0-only
"""What can be said about the sources without running them. Any message is a failure.

What has passed is not checked again: the cache has a file for it, named by a hash of
what was checked, and with what.
"""
import concurrent.futures
import contextlib
import functools
import hashlib
import os
import re
import tempfile
from pathlib import Path

import gcc47
import k1om
import order
import pytest
from knc_scripts import CACHE
from lines import TESTS, TOP, Case, built, copy, none_of, quietly, read, sources
from faults import read_faults

HERE = f"{TESTS}/static"
silent = functools.partial(quietly, silent=True)


def scripts(interpreter):
    """Programs in this language, by their first line or their name."""
    return [name for name in sources(r"(?!Documentation|emulator|man).*") if re.match(
        rf"#!.*[/ ]{interpreter}\n", read(name)) or interpreter == "python3" and name.endswith(".py")]


@functools.cache
def version(*command):
    return quietly(*command, "--version")


def unless_passed(check, names, *made_of):
    """Call check() unless it has passed with these files and all else that it is made of."""
    text = "\0".join([*map(str, made_of), *(f"{name}\0{read(name)}" for name in names)])
    passed = f"{CACHE}/passed/{hashlib.sha256(text.encode()).hexdigest()}"
    if not os.path.exists(passed):
        check()
        os.makedirs(os.path.dirname(passed), exist_ok=True)
        with open(passed, "w", encoding="utf-8"):
            pass


# In the order in which they need each other
MODULES = (("", "Kbuild"), ("tests/unit", "tests/unit/Makefile"),
           ("tests/guest/kmod", "tests/guest/kmod/Makefile"))


@contextlib.contextmanager
def checked(make, sparse="sparse"):
    """These arguments of make and, with C=2, that sparse is what checks, and does: newer kernels
    leave an older sparse out."""
    if "C=2" not in make:
        yield make
        return
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as log:
        yield [*make, f"CHECK={HERE}/sparse {log.name} {sparse}"]
        if not re.search(r"\.c$", log.read(), re.M):
            pytest.fail("sparse has checked nothing", pytrace=False)


def compile_modules(flavour, linked, tool, *make):
    """All modules, anew, in a copy. A tree that was only prepared does not link."""
    tree = built("build-kernel", flavour)
    names = sources(r"[^/]*\.[ch]|Kbuild|compat/.*|tests/(unit|guest/kmod)/.*")

    def check():
        with tempfile.TemporaryDirectory(prefix="static.") as work:
            copy(names, work)
            for folder, makefile in MODULES:
                targets = ["modules"] if linked else re.search(
                    r"^obj-.*= *(.*\.o)$", read(makefile), re.M).group(1).split()
                with checked(make) as more:
                    silent("make", "-s", "-C", tree, f"M={work}/{folder}".rstrip("/"), *more,
                           *targets)

    unless_passed(check, names, tree, linked, make, version("gcc"), version(tool))


# Differences from uos.config. Always on: PERF_EVENTS, HOTPLUG_CPU with SMP, EVENT_TRACING with
# TRACEPOINTS.
CONFIGS = """SMP=n
FTRACE=n TRACEPOINTS=n
KPROBES=n
MODULES=n
KALLSYMS=n SMP=n FTRACE=n KPROBES=n PRINTK=n BUG=n SYSFS=n
KPROBE_EVENTS=n UPROBE_EVENTS=n FTRACE_SYSCALLS=n
DYNAMIC_DEBUG=n CGROUPS=n BPF_SYSCALL=n
PREEMPT=y DEBUG_PREEMPT=y
PREEMPT_DYNAMIC=y
PREEMPT_RT=y
PAGE_TABLE_ISOLATION=y RETPOLINE=y CPU_MITIGATIONS=y
X86_KERNEL_IBT=y UNWINDER_ORC=y
FUNCTION_TRACER=y
PARAVIRT=y HYPERVISOR_GUEST=y
FORTIFY_SOURCE=y KNC_PMU_DEBUG=y
PROVE_LOCKING=y DEBUG_KERNEL=y
LTO_CLANG_THIN=y CFI_CLANG=y""".splitlines()
KNC = "arch/x86/events/knc/"
# They define what the driver refers to; no kernel has all.
DEFINE = """{kernel/{cpu,kprobes,tracepoint,smp,up,static_call_inline,capability,events/core,\
printk/printk,sched/build_utility,locking/mutex},lib/{string,dynamic_debug},fs/sysfs/file,\
mm/vmalloc,arch/x86/{mm/cpu_entry_area,lib/msr,events/core,kernel/{irq,nmi,process,setup,\
setup_percpu,cpu/{common,match,perfctr-watchdog}}}}.o"""


@functools.cache
def trees():
    work = tempfile.TemporaryDirectory(prefix="configs.", dir=CACHE)
    # 6.1 has PREEMPT_RT for no architecture.
    quietly("sh", "-ec", f"""mkdir build; cp -al {built("build-kernel", "source")} source
        sed -i '/^config X86_64$/a select ARCH_SUPPORTS_RT' source/arch/x86/Kconfig
        {TOP}/scripts/install-in-tree source""", cwd=work.name)
    return work


def check_config(config):
    def check():
        run = functools.partial(quietly, "bash", "-c", cwd=f"{trees().name}/build")
        make = "make -s -C ../source O=$PWD W=1 -j$(nproc) " + "LLVM=-19 " * ("LTO" in config)
        run(f"rm -f {DEFINE}")
        for form in "y" if config == "MODULES=n" else "my":
            options = f"{config} KNC_PMU={form}"
            run(f"(cat {TOP}/uos/uos.config; printf 'CONFIG_%s\\n' {options}) >config\n"
                f"rm -rf {KNC}; {make} KCONFIG_ALLCONFIG=config allnoconfig prepare")
            on = re.findall(r"^CONFIG_(\w+=[my])$", run("cat .config"), re.M)
            none_of(f"dropped: {option}" for option in options.split()
                    if (option.replace("=n", "=y") in on) == option.endswith("n"))
            none_of(run(make + KNC).splitlines())
            if "=n" in config:
                run(f"{make} -k {DEFINE} || :")
                there = run("find . -name '*.o' | xargs nm --defined-only").split()
                needed = run(f"nm -u {KNC}{'knc_pmu' if form == 'm' else '*'}.o")
                none_of(f"KNC_PMU={form}: no {name}" for name in re.findall(r"U (\S+)", needed)
                        if "__ksymtab_" * (form == "m") + name not in there)

    unless_passed(check, sources(r"[^/]*\.[ch]|K[^/]*|compat/.*|uos/.*|scripts/install.*"), config,
                  built("build-kernel", "source"), version("gcc"))


# What the kernel has and programs do not; macros that name functions or assert, casts
# for printf(), errno as it is, memory that signal handlers and other processes write
PROGRAM = ("PREFER_KERNEL_TYPES,PREFER_DEFINED_ATTRIBUTE_MACRO,BIT_MACRO,MACRO_ARG_REUSE,"
           "TYPECAST_INT_CONSTANT,ENOSYS,VOLATILE")
# One header and its example are for C++ as well.
CPLUSPLUS = ("SPACING,MULTISTATEMENT_MACRO_USE_DO_WHILE,EMBEDDED_FILENAME,AVOID_EXTERNS,"
             "FUNCTION_ARGUMENTS")
# A program without a library: symbols of the assembler and the linker, and functions
# called like the instructions that they are
BARE = "AVOID_EXTERNS,EMBEDDED_FUNCTION_NAME,LEADING_SPACE"
# The list of events is an X-macro: macros that are lists, and arguments unused.
LISTS = "COMPLEX_MACRO,MACRO_ARG_REUSE,MACRO_ARG_UNUSED"
# <asm/nmi.h> and <asm/processor.h> are not what <linux/...> has by these names.
X86 = "ARCH_INCLUDE_LINUX"
# What checkpatch is not asked about: the first that matches
STYLES = (
    # The one place that may ask for the kernel's version
    (r"compat/compat\.h", "LINUX_VERSION_CODE,CONSTANT_COMPARISON"),
    # What is deprecated was not then; and an attribute is a whole definition.
    (r"compat/2\.6\.38/.*", f"{LISTS},{X86},DEPRECATED_API,TRAILING_SEMICOLON,MEMORY_BARRIER"),
    # Names of perf's events have dashes, and are no differences.
    (r"knc_pmu_events\.h", f"{LISTS},SPACING"),
    (r"tests/guest/kmod/.*", f"{X86},INCLUDE_LINUX"),
    (r"tests/emulator/.*", f"{PROGRAM},{BARE}"),
    # Lists of instructions, and of what is per CPU; and a header of perf's own
    (r"tests/(guest/(bpf|tools/families)|proof/spflt)\.c", f"{PROGRAM},COMPLEX_MACRO"),
    (r"tests/guest/late\.c", f"{PROGRAM},INCLUDE_LINUX,AVOID_EXTERNS"),
    (r"tests/unit/.*", f"{LISTS},{X86}"),
    # Complex numbers, and hexadecimal floating-point ones; libdw's names; lists of functions
    (r"(scripts/k1om/.*|tests/cardcode/.*)\.[ch]",
     f"{PROGRAM},{LISTS},CAMELCASE,NEW_TYPEDEFS,SPACING,ARRAY_SIZE,LINE_SPACING,"
     "MULTISTATEMENT_MACRO_USE_DO_WHILE,TRAILING_SEMICOLON"),
    (r"(tests|scripts|tools|uos)/.*", PROGRAM),
    # likwid's names, which are not ours to choose
    (r"include/likwid-marker\.h", f"{PROGRAM},{CPLUSPLUS},CAMELCASE"),
    # An attribute is no value.
    (r"(include|Documentation)/.*", f"{PROGRAM},{CPLUSPLUS},COMPLEX_MACRO"),
    (r".*", f"{LISTS},{X86}"))


def in_kernel(name):
    """Where a file would be in a kernel tree: what may be included depends on it."""
    driver = "/" not in name or name.startswith(("tests/unit/", "compat/"))
    return f"arch/x86/events/knc/{name}" if driver else name


def checkpatch():
    source = built("build-kernel", "source")
    # emulator/ is in QEMU's style, and tests/emulator looks after it.
    names = sources(r"(?!emulator/|tests/proof/kernel\.h).*\.[chS]")
    # Without a repository: in one, checkpatch asks spdxcheck.py about licences, which
    # wants a Python module that is not everywhere; "licence" looks after them.
    env = {**os.environ, "GIT_DIR": "none"}

    def style(name):
        ignored = next(types for pattern, types in STYLES if re.fullmatch(pattern, name))
        try:
            unless_passed(lambda: silent(
                "perl", f"{source}/scripts/checkpatch.pl", "--strict", "--quiet",
                "--no-summary", "--show-types", "--terse", f"--ignore={ignored}", "--file",
                in_kernel(name), cwd=work, env=env), [name], source, ignored)
        except pytest.fail.Exception as why:
            return str(why).partition("\n")[2]
        return ""

    with tempfile.TemporaryDirectory(prefix="static.") as work:
        copy(names, work, in_kernel)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            wrong = "".join(pool.map(style, names))
    none_of(wrong.splitlines())


def shellcheck():
    names = scripts("(ba)?sh")
    unless_passed(lambda: silent("shellcheck", "-S", "warning", "-x", "-P", "SCRIPTDIR",
                                 *names, cwd=TOP),
                  names + ["scripts/lib.sh", "tests/guest/lib.sh"], version("shellcheck"))


def pyflakes():
    silent("/usr/bin/python3", "-m", "pyflakes", *scripts("python3"), cwd=TOP)


def licence():
    """In the first two lines; but data, which has no comments."""
    none_of(f"{name}: no SPDX line" for name in sources(r"(?!COPYING$|.*\.csv$|.*\.expected$).*")
            if not re.match("(.*\n)?.*SPDX-License-Identifier: GPL-2.0", read(name)))


def in_tree(test, series, flavour, *make):
    source = built("build-kernel", "source" + suffix(series))
    tree = built("build-kernel", flavour) if test == "patch_series" else "none"
    sparse = built("build-sparse") if "C=2" in make and series == "newest" else "sparse"

    def check():
        with checked(make, sparse) as more:
            silent(f"{HERE}/in-tree", test, source, tree, *more)

    unless_passed(check, sources(r"[^/]*\.[ch]|K[^/]*|(compat|scripts|tools|tests/unit)/.*|"
                          r"tests/static/in-tree"),
                  test, source, tree, make, sparse, version("gcc"))


def check_k1om():
    trees = built("build-kernel", "prepared"), built("build-kernel", "clang")
    unless_passed(lambda: none_of(k1om.wrong()),
                  sources(r"[^/]*\.[ch]|Kbuild|compat/.*|scripts/k1om/(k1om\.s|own\.awk)|"
                          r"scripts/(check-k1om|apt-fetch|lib\.sh)|tests/static/k1om\.py|"
                          r"tests/emulator/(mvex|vectors)\.py|.*/vector-insns\.h\.inc"),
                  *trees, *map(version, ("gcc", "clang", "as")))


def check_order():
    trees = built("build-kernel", "prepared"), built("build-kernel", "clang")
    unless_passed(lambda: none_of(order.wrong()),
                  sources(r"[^/]*\.[ch]|Kbuild|compat/.*|tests/static/order\.py"),
                  *trees, *map(version, ("gcc", "clang")))


# Each field, in a value of its own, by shifts
BITS = """
#include <linux/types.h>
typedef __u64 u64;
typedef __s64 s64;
#include "bits.h"
int main(void)
{
	for (int low = 0; low < 64; low++)
		for (int high = low; high < 64; high++) {
			u64 mask = COMPAT_GENMASK_ULL(high, low), sign = COMPAT_BIT_ULL(high);
			u64 value = 0x9e3779b97f4a7c15 * (64 * low + high + 1);
			u64 field = value << (63 - high) >> (63 - high);

			if (mask >> low << low != mask || __builtin_popcountll(mask) != high - low + 1 ||
			    mask >> high != 1 || sign >> high != 1 ||
			    COMPAT_FIELD_GET(mask, value) != field >> low ||
			    compat_sign_extend64(value, high) != (s64)(field - 2 * (value & sign)))
				return 1;
		}
	return 0;
}
"""


def compat_bits():
    """Fields and signs as compat/2.6.38 has them, for all bits"""
    with tempfile.TemporaryDirectory(prefix="static.") as work:
        Path(work, "bits.c").write_text(BITS)
        quietly("gcc", "-Wall", f"-I{TOP}/compat/2.6.38", "-o", f"{work}/bits", f"{work}/bits.c")
        quietly(f"{work}/bits")


def anchors():
    """The lines of each fault are in the driver."""
    for fault in read_faults():
        fault.apply(read(fault.file))


def suffix(series):
    return "" if series == "6.1" else f"-{series}"


def of_series(series, flavour, linked):
    """What is asked of each kernel; with one that is only prepared, nothing is linked."""
    yield Case(f"gcc-W1-{series}",
               lambda: compile_modules(flavour, linked, "gcc", "W=1"), seconds=60)
    for name, test in (("in-tree", "install_in_tree"), ("series", "patch_series"),
                       ("fixes", "mainline_fixes")):
        sparse = ["C=2"] if name == "series" else []
        yield Case(f"{name}-{series}", lambda test=test, more=sparse: in_tree(
            test, series, flavour, *more), seconds=40)


def cases(run):
    if run.kernel:
        yield from of_series(run.kernel, "uos" + suffix(run.kernel), True)
        return
    yield from of_series("6.1", "prepared", False)
    usual = {
        "clang-W1": lambda: compile_modules("clang", False, "clang", "CC=clang", "W=1"),
        "sparse": lambda: compile_modules("prepared", False, "sparse", "C=2"),
        "checkpatch": checkpatch, "shellcheck": shellcheck, "pyflakes": pyflakes,
        "licence": licence, "k1om": check_k1om, "order": check_order,
        "gcc47": lambda: none_of(gcc47.wrong()), "anchors": anchors, "compat-bits": compat_bits}
    if run.names:
        # Of check-compile: kernels that nothing else here needs
        yield from of_series("6.12", "prepared-6.12", False)
        usual["series-clang"] = lambda: in_tree("patch_series", "6.1", "clang", "CC=clang")
        usual["series-i386"] = lambda: in_tree("patch_series", "6.1", "i386")
        usual["series-lto"] = lambda: in_tree("patch_series", "6.12", "lto-6.12", "LLVM=-19")
        usual["series-rt"] = lambda: in_tree("patch_series", "6.12", "rt-6.12")
    # "make check" has one: functions of tracepoints have no stubs.
    for config in CONFIGS if run.names else CONFIGS[1:2]:
        yield Case(f"config-{config.split()[0]}", functools.partial(check_config, config),
                   "configs", 50)
    for name, check in usual.items():
        yield Case(name, check, seconds=100 if name == "checkpatch" else 30)


def test(case):
    case.check()
