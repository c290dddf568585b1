# SPDX-License-Identifier: GPL-2.0-only
"""The driver as a series of patches that replaces the kernel's own, built in only.

Each file's last state is the driver's own text, without what is for the module, for SPFLT
and for other kernels. An earlier state is the same without what later patches add. Every cut
names the text that it looks for: a driver that has changed is refused, not cut wrongly.
"""
import re
import time

from knc_fixes import KNC_C, PORT, author, check_commits, fixes_of, format_patches, put
from knc_scripts import TOP, Refused, read

EVENTS = "arch/x86/events"
OURS = f"{EVENTS}/intel/knc"
ABI = "Documentation/ABI/testing/sysfs-bus-event_source-devices-knc"

SOURCES = ("knc_pmu_events.h", "knc_pmu_msr.h", "knc_softmask.h", "knc_counter.h", "knc_pmu.h",
           "knc_config.c", "knc_pmu.c", "knc_pmi.c", "knc_user_regs.c", "knc_builtin.c")
# Of tests/unit; what is not for the series has #ifndef KNC_SERIES.
TESTS = ("knc_pmu_test.c", "record.h", "host.h", "pmi.c", "user.c")

# --- cutting ----------------------------------------------------------------------------


def definition(text, name):
    """A function with the comment above it, and the blank line below it"""
    found = re.search(
        r"(?:^/\*(?:[^*]|\*(?!/))*\*/\n)?^(?:\w[^\n;{}#]*\n)?(?:\w[^\n;{}#]*)?"
        rf"\b{name}\([^;{{}}]*\)\n{{\n.*?^}}\n\n?", text, re.M | re.S)
    if not found:
        raise Refused(f"looked for the function {name}()")
    return found.group(0)


class Files(dict):
    """{name: text}"""

    def change(self, name, *changes):
        """(old, new): each "old" is there once."""
        for old, new in changes:
            if self[name].count(old) != 1:
                raise Refused(f"{name}: looked for this once, and found it "
                              f"{self[name].count(old)} times:\n{old}")
            self[name] = self[name].replace(old, new).rstrip("\n") + "\n"

    def cut(self, name, *texts):
        self.change(name, *((text, "") for text in texts))

    def cut_functions(self, name, *functions):
        for function in functions:
            self.cut(name, definition(self[name], function))

    def cut_lines(self, name, *patterns):
        """The one line that matches each of them"""
        for pattern in patterns:
            self.cut(name, *re.findall(rf"^.*{pattern}.*\n", self[name], re.M) or [pattern])

    def replace(self, name, first, end, new=""):
        """Everything from one text up to another, which stays, or to the end"""
        start = self[name].find(first)
        stop = self[name].find(end, start) if end else len(self[name])
        if start < 0 or stop < 0:
            raise Refused(f"{name}: looked for what is between \"{first}\" and \"{end}\"")
        self[name] = self[name][:start] + new + self[name][stop:]


# --- this kernel's names ----------------------------------------------------------------


def version_of(tree):
    number = re.findall(r"^(?:VERSION|PATCHLEVEL) = (\d+)$", read(tree, "Makefile"), re.M)
    if len(number) != 2:
        raise Refused("Makefile: looked for the kernel's VERSION and PATCHLEVEL")
    if (version := tuple(map(int, number))) < (6, 12):
        raise Refused("the series is for Linux 6.12 or newer; scripts/mainline-fixes mends the "
                      "driver of older ones")
    return version


def names_before(version, compat):
    """What compat.h defines for kernels before this version, or later"""
    return {name: meaning for major, minor, block in re.findall(
                r"^#if LINUX_VERSION_CODE < KERNEL_VERSION\((\d+), (\d+), 0\)\n(.*?)^#(?:else|endif)",
                compat, re.M | re.S) if version < (int(major), int(minor))
            for name, meaning in re.findall(r"^#define (\w+(?:\(\))?)\t+(.+)$", block, re.M)}


def name_as_tree(tree, files):
    """Put what compat.h stands for in this kernel in the place of its names."""
    compat = read(TOP, "compat/compat.h")
    older = names_before(version_of(tree), compat)
    sizes = read(tree, "include/uapi/linux/perf_event.h")
    unused = re.findall(r"(?:#ifdef (\w+)\n\tbits \|=|u64 bits =) (attr->config\d)", compat)
    # Where it is a macro it assigns.
    if re.search(r"^#define rdmsr[lq]\(", read(tree, "arch/x86/include/asm/msr.h"), re.M):
        files.change("knc_pmu_msr.h", ("return compat_rdmsrq(msr);",
                                       "u64 value;\n\n\trdmsrq(msr, value);\n\treturn value;"))
        files.change("knc_user_regs.c", (" = compat_rdmsrq(MSR_LSTAR);\n",
                                         ";\n\n\trdmsrq(MSR_LSTAR, entry);"))
    started = " || this_cpu_read(cpu_hw_events.n_added)"
    header = read(tree, "include/linux/perf_event.h")
    names = {
        "compat_allow_cpu(event)": "perf_allow_cpu()" if "perf_allow_cpu(void)" in header else
            "perf_allow_cpu(&event->attr)",
        "compat_attr_unused(attr)": " || ".join(bits for size, bits in unused if size in sizes),
        "compat_sample_period(hwc)": "hwc->sample_period",
        "compat_event_has_rdpmc(event)": "event->hw.flags & PERF_EVENT_FLAG_USER_READ_CNT",
        "COMPAT_X86_PMU_COUNTERS(KNC_NUM_COUNTERS)": ".cntr_mask64\t\t= KNC_COUNTER_MASK",
        f" &&\n\t       (!COMPAT_UNTHROTTLES_STARTED{started})":
            "" if "COMPAT_UNTHROTTLES_STARTED" in older else started.replace("||", "&&"),
        "compat_rdmsrq": "rdmsrq", "compat_in_nmi_level": "knc_in_nmi",
        "compat_nmi_level_enter()": "__preempt_count_add(NMI_OFFSET + HARDIRQ_OFFSET)",
        "compat_nmi_level_exit()": "__preempt_count_sub(NMI_OFFSET + HARDIRQ_OFFSET)", **older}
    for name, text in files.items():
        for old, new in names.items():
            text = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", new, text)
        files[name] = text


# --- the states of the driver -----------------------------------------------------------


def without_spflt(files):
    """SPFLT waits until the rest is in: the cover letter says why."""
    files.cut_lines("knc_config.c", r"PMU_FORMAT_ATTR\(spflt")
    files.change("knc_config.c", ("&format_attr_spflt.attr, NULL", "NULL"),
                 ("attr->config1 & ~KNC_CONFIG1_SPFLT", "attr->config1"))
    files.cut_lines("knc_pmu.c", r"knc_spflt_update\(")
    files.change("knc_pmu.c", (
        "\tknc_spflt_reset(kc);\n",
        "\t/* No filters: INIT leaves them as they were (1.4.4). */\n\tknc_write_spflt(0);\n"))
    files.replace("knc_pmu_msr.h", "/* PERF_SPFLT_CONTROL, Table 1-7;", "/* The unit tests have")
    files.cut_functions("knc_pmu_msr.h", "knc_read_spflt")
    files.cut_lines("knc_softmask.h", r" \* @filters", "\tu8 filters;", r" \* filters ")
    # knc_hw_config() is left with nothing but RDPMC, which the change of the PMI is about.
    files.cut_functions("knc_builtin.c", "knc_hw_config", "knc_follow_tasks")
    files.cut_lines("knc_builtin.c", "device_initcall")
    files.change("knc_builtin.c", ("= knc_hw_config", "= knc_event_config"))


def tests():
    """The unit tests, with the module's scheduler in the place of the x86 core's"""
    texts = {name: re.sub(r"\n{3,}", "\n\n", re.sub(
        r"^#ifndef KNC_SERIES\n.*?^(?:#else\n(.*?)^)?#endif\n", r"\1", read(
            TOP, f"tests/unit/{name}").replace('"../../', '"../'), flags=re.M | re.S))
        for name in TESTS}
    texts["knc_sched.c"] = read(TOP, "knc_sched.c").replace('"knc_pmu.h"', '"../knc_pmu.h"')
    for name in ("knc_events.csv", "knc_events_extra.csv"):
        texts[name] = read(TOP, f"tests/data/{name}")
    texts["Makefile"] = ("# SPDX-License-Identifier: GPL-2.0-only\n"
                         "obj-$(CONFIG_KNC_PMU_KUNIT_TEST) += knc_pmu_test.o\n"
                         'CFLAGS_knc_pmu_test.o += -DKNC_TEST_DATA=\\"$(src)\\"\n')
    return {f"tests/{name}": text for name, text in texts.items()}


def with_tests(tree):
    """The driver after the last patch"""
    files = Files({name: read(TOP, name) for name in (*SOURCES, "Kconfig")})
    without_spflt(files)
    files.update(tests())
    name_as_tree(tree, files)
    files.replace("knc_pmu.h", "/* spflt.c: user", "#endif /* _KNC_PMU_H */")
    files.cut("knc_pmu.h", ", or compat/2.6.38/user_regs.c")
    files["knc.c"] = files.pop("knc_builtin.c").replace('"../perf_event.h"', '"../../perf_event.h"')
    files.cut_lines("knc_pmu_msr.h", r"Newer kernels do not export apic_write\(\)")
    files.change("knc_pmu_msr.h", ("native_apic_mem_write(", "apic_write("),
                 ("native_apic_mem_read(", "apic_read("))
    files.change("knc_softmask.h", (
        "/* The unit tests have their own. */\n", "/* The unit tests have their own of these. */\n"
        "#ifndef knc_in_nmi\n#define knc_in_nmi()\t\tin_nmi()\n#endif\n\n"))
    files.change("knc_config.c", ('"event refused:', '"knc_pmu: event refused:'))
    files.cut_lines("knc_config.c", "perf_event_context ", "compat_lock_group", "compat_unlock_group")
    files["Makefile"] = ("# SPDX-License-Identifier: GPL-2.0-only\n"
                         "obj-y\t+= knc_config.o knc.o knc_pmu.o knc_pmi.o knc_user_regs.o\n"
                         "obj-$(CONFIG_KNC_PMU_KUNIT_TEST)\t+= tests/\n")
    # The driver is there wherever Intel's are.
    there = "depends on PERF_EVENTS && CPU_SUP_INTEL && X86_64"
    files.replace("Kconfig", "config KNC_PMU\n", "config KNC_PMU_DEBUG\n")
    files.change("Kconfig", ("depends on KNC_PMU\n", f"{there}\n"),
                 ("depends on KNC_PMU && KUNIT\n", f"{there} && KUNIT && m\n"))
    return files


def without_tests(files):
    files = Files({name: text for name, text in files.items()
                   if not name.startswith(("tests/", "Kconfig"))})
    files.cut_lines("Makefile", "tests/")
    return files


def without_user_regs(files):
    files = Files({name: text for name, text in files.items() if name != "knc_user_regs.c"})
    files.cut("Makefile", " knc_user_regs.o")
    files.cut_lines("knc_pmu.c", r"knc_find_syscall\(")
    files.replace("knc_pmu.h", "/* knc_user_regs.c:", "#endif /* _KNC_PMU_H */")
    files.cut_functions("knc_pmi.c", "knc_pmi_deliver_user")
    files.replace("knc_pmi.c", "\t\tif (unlikely(event->attr.exclude_kernel)",
                  "\t\t\tevent->pmu->stop(event, 0);",
                  "\t\tif (perf_event_overflow(event, &data, regs))\n")
    return files


def without_soft_masking(files):
    """A PMI is handled whenever it comes."""
    files = Files({name: re.sub(r"^\t+knc_assert\(.*\);\n\n?", "", text, flags=re.M)
                   for name, text in files.items()})
    softmask, pmi, pmu = "knc_softmask.h", "knc_pmi.c", "knc_pmu.c"
    files.replace(softmask, "/*\n * The PMU of one", "#ifndef _KNC_SOFTMASK_H",
                  "/* The PMU of one hardware thread */\n")
    files.replace(softmask, "/* The unit tests have their own", "/* An NMI on this CPU sees")
    files.cut_functions(softmask, "knc_set_pending")
    files.cut_lines(softmask, "linux/bug.h", "linux/hardirq.h", "linux/irqflags.h", "KNC_READ,",
                    "KNC_PMI,", "@pending:", "bool pending;")
    files.change("knc_counter.h", (", or the PMI is soft-masked (knc_softmask.h).", "."),
                 ("in KNC_STOP or KNC_PMI", "in KNC_STOP"))

    files.cut_functions(pmi, "knc_pmi_masked", "knc_pmi_replay")
    files.cut_lines(pmi, r"knc_set_pending\(", "linux/preempt.h")
    files.replace(pmi, "\t/* In KNC_STOP the counters may run", "\n\t/* 2: stop:", """\
	if (state == KNC_OFF)
		return 0;

	/* Else an event that is throttled here would start the others. */
	knc_set_state(kc, KNC_STOP);
""")
    files.change(pmi, ("\tknc_run_counters(kc);\n\n\treturn",
                       "\tif (state == KNC_RUN)\n\t\tknc_run_counters(kc);\n\n\treturn"),
                 ("an earlier NMI or a replay\n * has handled", "an earlier NMI has\n * handled"))
    files.cut_lines("knc_pmu.h", r"knc_pmi_replay\(")
    files.replace("knc_pmu_msr.h", "/* What a PMI or a reader", "static __always_inline u64 knc_read_status")

    files.replace(pmu, " *\n * A PMI before the write", " */\nvoid knc_pmu_enable(")
    files.replace(pmu, "\tfor (;;) {", "/**\n * knc_event_start()", """\
	/* In this order: a PMI between the two starts the counters. */
	knc_set_state(kc, KNC_RUN);
	knc_run_counters(kc);
}

""")
    files.replace(pmu, " * If the counter has wrapped", " *\n * Return: true if",
                  " * PerfEvtSel is kept: the same event is likely to come back.\n")
    files.replace(pmu, "\t\tif (knc_event_account(", "\t\tcounted =",
                  "\t\tknc_event_account(event, idx);\n")
    files.cut(pmu, ", and its last overflow has not stopped it", "\tkc->pending = false;\n")
    files.replace(pmu, " *\n * A BPF program may read", " */\nvoid knc_event_read(")
    files.replace(pmu, "\tstruct knc_cpu *kc = this_cpu_ptr(&knc_cpu);\n\n\tif (likely(kc->state",
                  "", "\tknc_account_slot(this_cpu_ptr(&knc_cpu), event);\n}\n")

    # An overflow that a stop handles throttles no event.
    files.cut_functions("knc.c", "knc_must_stay_stopped")
    files.replace("knc.c", "\tif (knc_must_stay_stopped(event))", "\t\tknc_event_start(event);")
    files.change("knc.c", ("\t\tknc_event_start(event);", "\tknc_event_start(event);"))
    files.replace("knc.c", "\t/*\n\t * If the event's last overflow", "\tknc_event_stop(event);")
    files.cut_functions("knc_pmu.h", "knc_event_is_throttled")
    return files


def only_events(files):
    """What is new is what can be counted; the registers are written as they were."""
    files = Files({name: files[name] for name in (
        "Makefile", "knc_pmu_events.h", "knc_pmu_msr.h", "knc_pmu.h", "knc_config.c")})
    files.cut("Makefile", " knc.o knc_pmu.o knc_pmi.o")
    files.cut("knc_pmu.h", "struct pt_regs;\n\n")
    files.replace("knc_pmu.h", "/* knc_pmu.c: starts", "#endif /* _KNC_PMU_H */")
    files.change("knc_pmu.h", ("knc_softmask.h", "knc_pmu_msr.h"))
    return files


def without_any(files):
    files = Files(files)
    files.cut_lines("knc_config.c", r"PMU_FORMAT_ATTR\(any,")
    files.replace("knc_config.c", "\t/* It counts the core's other threads", "\t*config = raw")
    files.change("knc_config.c", ("\tu64 raw = event->attr.config;\n\tint ret;\n",
                                  "\tu64 raw = event->attr.config;\n"))
    files.cut("knc_config.c", "&format_attr_any.attr, ", " KNC_EVNTSEL_ANY |",
              " -EACCES for thread count mode without privilege;")
    files.cut_lines("knc_pmu_msr.h", "KNC_EVNTSEL_ANY")
    return files


def mainline_with_events(mainline, driver):
    """The kernel's own driver, which asks knc_config.c what can be counted"""
    files = Files({KNC_C: mainline})
    files.replace(KNC_C, "static const u64 knc_perfmon_event_map[]",
                  "#define MSR_KNC_IA32_PERF_GLOBAL_STATUS")
    files.replace(KNC_C, "PMU_FORMAT_ATTR(event,", "static const struct x86_pmu knc_pmu ", (
        definition(driver, "knc_get_event_constraints") +
        re.search(r"^[^\n]* \*knc_attr_update\[\] = {\n.*?^};\n\n", driver, re.M | re.S).group(0)))
    files.replace(KNC_C, "\t.event_map\t", "\t.apic\t")
    files.cut_lines(KNC_C, r"\.event_constraints\t")
    files.replace(KNC_C, "\n\tmemcpy(hw_cache_event_ids", "\n\treturn 0;\n}\n",
                  "\tx86_pmu.format_attrs = knc_pmu_format_group.attrs;\n")
    files.change(KNC_C, ("perf_event.h\"\n", "perf_event.h\"\n#include \"knc/knc_pmu.h\"\n"),
                 ("= x86_pmu_hw_config,", "= knc_event_config,"),
                 ("= x86_get_event_constraints,", "= knc_get_event_constraints,"),
                 (".format_attrs\t\t= intel_knc_formats_attr,", ".attr_update\t\t= knc_attr_update,"))
    return re.sub(r"\n{3,}", "\n\n", files[KNC_C])


# --- the rest of the tree ---------------------------------------------------------------

MAINTAINERS_ENTRY = """\
INTEL KNIGHTS CORNER PERFORMANCE EVENTS
M:	{who}
L:	linux-perf-users@vger.kernel.org
S:	Maintained
F:	{folder}/

"""

ABI_TEXT = """\
What:		/sys/bus/event_source/devices/cpu/format/any
Date:		{date}
KernelVersion:	{major}.{minor}
Contact:	{who}
Description:	Read-only. On Knights Corner: the bit of perf_event_attr::config
		with which an event is counted for all four hardware threads of
		the core (thread count mode), not only for the one that the
		event is on. It takes the privilege of a CPU-wide event, as the
		other threads may run somebody else's program.
"""


def maintained(who, text):
    """MAINTAINERS with our entry, in its place in the alphabet."""
    entry = MAINTAINERS_ENTRY.format(who=who, folder=OURS)
    title = entry.splitlines()[0]
    for found in re.finditer(r"^([A-Z0-9].*)\n[A-Z]:\t", text, re.M):
        if found.group(1).startswith("INTEL ") and found.group(1) > title:
            return text[:found.start()] + entry + text[found.start():]
    raise Refused("MAINTAINERS: looked for entries of Intel's")


# --- the patches ------------------------------------------------------------------------

EVENTS_PATCH = ("perf/x86/intel/knc: Name all events, and refuse what the PMU cannot count", """\
The driver knows six generic events and no names. It drops bits of a raw
event that have no meaning, and counts something else than was asked for.
It accepts groups that do not fit the two counters. Of the events of unit
mask 0x10, which are on counter 0 only, it puts 0xf0 and 0xf5 on counter 1
as well. Its dTLB-load-misses are page walks of reads and writes together.

Add the 59 events of Intel's manual (327357-001, table 1-6), and four
more that other tools for the chip know, as one list, from which the names
in sysfs and the generic events are made. Refuse cache events for which the
chip has no event, reserved bits, precise samples, branch records,
exclude_host, and groups that do not fit the counters; with dynamic debug
the kernel's log has the reason. Registers are written as before.
""")

ANY_PATCH = ("perf/x86/intel/knc: Count for all threads of a core with any", """\
Bit 21 of an event select register is thread count mode: the event is
counted for all four hardware threads of the core. Let users set it, as
format/any. The other threads may run somebody else's program, so it takes
the privilege of a CPU-wide event, as with Intel's other PMUs.
""")

PMI_PATCH = ("perf/x86/intel/knc: Handle the interrupt in the manual's seven steps", """\
Write the registers anew, from Intel's manual (327357-001, 1.4.3.9). An
event is on a counter if and only if it is in the counter's slot: the x86
core calls an event active before its counter is loaded, and after it has
left. The handler stops the counters, reads STATUS, clears it, unmasks the
LVT entry, and then delivers samples. There is no loop that may be stuck:
while the counters are stopped STATUS cannot change. An NMI whose overflow
an earlier one has handled is claimed. A CPU that comes online has its
registers reset, as INIT and kexec leave counters running (1.4.4). Model 0
of this family is Knights Ferry, which has another PMU.

RDPMC stays allowed for events that sample, as with every x86 PMU: the
event's page is written each time its counter is loaded. To deny it would
save that write, but the only flag that does so is
PERF_X86_EVENT_LARGE_PEBS, which says something else.

32-bit kernels have no driver for this PMU any more: what an interrupt
shares with the code that it interrupts is changed by one 64-bit
instruction. The kernels of these cards are 64-bit ones.
""")

MASK_PATCH = ("perf/x86/intel/knc: Soft-mask the interrupt", """\
The interrupt is an NMI, and comes between any two instructions: while
events are put on counters or taken off, while a count is read, or after
its overflow has been handled. Then a count is off by 2^40, a sample is
lost or is one of the wrong event, or equal events of a group differ.

Mask it in software, as powerpc does with its interrupts. An interrupt that
comes while the driver changes or reads what is on the counters stops them,
is noted as pending, and leaves STATUS and the LVT entry as they are: the
line stays up, so no edge can be lost (327357-001, 1.4.3.9). It is replayed
when the change is over. An event that has wrapped is handled before it
leaves its counter, whether its interrupt is pending, late, or was claimed
by another handler.
""")

REGS_PATCH = ("perf/x86/intel/knc: Sample a program's registers if the kernel is excluded", """\
An event that excludes the kernel may overflow in the last instructions
before a system call or an interrupt. Its own interrupt comes later, and
finds the kernel. The sample then shows the kernel's registers to a user
who may not see them, and names no place in the program.

Take the program's registers: from task_pt_regs(), or, during the kernel's
entry and exit, some from where they have been pushed already, and the
others from the processor.
""")

TESTS_PATCH = ("perf/x86/intel/knc: Add KUnit tests, and checks of the driver's state", """\
Test how events are encoded and refused, periods, the order of accesses to
registers, and the program's registers at each instruction of the kernel's
entry and exit, against registers that record each access: no Knights
Corner is needed. The interrupt comes at each access to a register or to
memory that an NMI shares. The tests bring the driver's source along, so
they are a module. With CONFIG_KNC_PMU_DEBUG the driver warns when code
breaks a rule of the table in knc_softmask.h.
""")

COVER = f"""\
perf/x86/intel/knc: A driver that counts right

Linux has had a driver for the PMU of Knights Corner, the first Xeon Phi,
since 3.7. It counts on one of two counters, and samples until the first
interrupt. The first patches mend that, for stable, unless they are in.
Even then some samples are lost, counts are off when an interrupt comes at
a bad moment, and few events have names. The others replace the driver.
Each compiles without those after it.

{PORT} There all
counts are exact, to the event, and no sample is lost while an overflow or
an NMI of another source comes at any instruction of enabling, disabling,
reading, adding and moving events.

The chip's SPFLT instruction, with which a program says which part of it is
counted, is not in this series. Its bit belongs to the hardware thread, so
it has to follow the task, also while the task's events are off or wait for
a counter. x86_pmu::sched_task is called on a CPU on which
perf_sched_cb_inc() was called, which is for events that are on a counter.
To have it called always, each switch of tasks on a machine with any event
would stop and start the PMU, for an instruction that few programs use.
"""


def commits(tree, plain):
    """The fixes; {path: text} of what they leave; and (message, {path: text, or None if there
    is no such file}) of each commit after them
    """
    fixed = fixes_of(tree)
    paths = {name: f"{EVENTS}/{name}" for name in ("Kconfig", "intel/core.c", "intel/Makefile")}
    before = Files({path: plain(path) for path in ("MAINTAINERS", *paths.values())})
    before[KNC_C] = fixed[-1][2][0][2] if fixed else plain(KNC_C)
    tested = with_tests(tree)
    final = without_tests(tested)
    masked = without_user_regs(final)
    bare = without_soft_masking(masked)
    with_any = only_events(bare)

    who = author()
    major, minor = version_of(tree)
    abi = {ABI: ABI_TEXT.format(who=who, date=time.strftime("%B %Y"), major=major, minor=minor + 1)}
    beside = Files(before)
    beside["MAINTAINERS"] = maintained(who, before["MAINTAINERS"])
    alone = Files({**beside, **abi, KNC_C: None})
    beside[KNC_C] = mainline_with_events(before[KNC_C], final["knc.c"])
    beside.change(paths["intel/Makefile"], ("+= ds.o knc.o\n", "+= ds.o knc.o knc/\n"))
    alone.change(paths["intel/Makefile"],
                 ("+= ds.o knc.o\n", "+= ds.o\nobj-$(CONFIG_X86_64)\t\t\t+= knc/\n"))
    alone.change(paths["intel/core.c"], ("return knc_pmu_init();", "return IS_ENABLED("
                                         "CONFIG_X86_64) ? knc_pmu_init() : -ENODEV;"))
    menu = Files(alone)
    menu.change(paths["Kconfig"], ("\nendmenu\n", f'\nsource "{OURS}/Kconfig"\n\nendmenu\n'))

    return fixed, before, [
        (message, {**others, **{f"{OURS}/{name}": text for name, text in ours.items()}})
        for message, others, ours in (
            (EVENTS_PATCH, beside, without_any(with_any)),
            (ANY_PATCH, {**beside, **abi}, with_any), (PMI_PATCH, alone, bare),
            (MASK_PATCH, alone, masked), (REGS_PATCH, alone, final), (TESTS_PATCH, menu, tested))]


def write_series(tree, plain, folder, more, applied):
    """The fixes, the driver, and more patches, as format_patches() takes them. plain(path)
    reads a file as it is without what install-in-tree writes. The driver is also written
    to @applied, if that is a tree.
    """
    check_commits(tree)
    patches, before, later = commits(tree, plain)
    for message, after in later:
        patches.append((*message, [(path, before.get(path), text) for path, text in after.items()
                                   if text != before.get(path)]))
        before.update(after)
    format_patches(tree, patches + more, folder, COVER)
    for path, text in before.items() if applied else ():
        put(applied, path, text)
