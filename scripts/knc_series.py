# SPDX-License-Identifier: GPL-2.0-only
"""Small patches of the kernel's own driver, on top of the fixes.

The last patch combines the kernel's tables with this driver's functions that are named below,
without the parts for the module, for SPFLT, for the registers of user mode, and for debugging.
Each text that is looked for has to be there once: a driver that has changed is
refused, not cut wrongly.
"""
import re

from knc_fixes import KNC_C, PORT, fixes_of
from knc_scripts import TOP, Refused, read


COVER = f"""\
perf/x86/intel/knc: Lose no sample, and reset the PMU

These are on top of the three fixes, and stand alone otherwise. "make
check-series" of this project measures each of them with an overflow, a
late interrupt, an NMI of another source, or another CPU's access at each
instruction of an operation.

The first three do not change what is lost. With the fourth no sample is
lost or late, and no count is off, at any of the points below. These are
the points with a lost or late sample, in one run on Linux 6.1.192 (gcc
12.2), with the fixes and with the series. On 7.2.13 none is lost either;
on 6.12 the series was compiled, and not run.

  an event is enabled and disabled     89 of 1,694    0 of 1,702
  it is read                           53 of 4,185    0 of 4,185
  it is read with its group            59 of 3,415    0 of 3,405
  its period is changed                 8 of 3,901    0 of 3,905
  another event takes its counter      61 of 2,714    0 of 2,722
  a second event is added              38 of 2,769    0 of 2,781
  events move to other counters        37 of 2,769    0 of 3,708
  an interrupt is handled              42 of 4,809    0 of 4,821
  an NMI of another source comes
    while an event is on and off       55 of 8,402    0 of 8,502
    while a second event is added      35 of 10,087   0 of 10,210
    while an interrupt is handled      85 of 10,669   0 of 10,813
  the x86 core's own race (2^40)       77 of 301      0 of 301

{PORT}

Not in the series, and offered: the chip's SPFLT instruction, with which a
program says which part of it is counted; the program's registers in late
samples that exclude the kernel; and KUnit tests of the order of register
accesses. Tables of the events for tools/perf are a patch for that tree.
"""


def once(text, old, new=""):
    if text.count(old) != 1:
        raise Refused(f"looked for this once, and found it {text.count(old)} times:\n{old}")
    return text.replace(old, new)


def between(text, first, end):
    """Everything from one text up to another, which is not part of it"""
    start = text.find(first)
    stop = text.find(end, start)
    if start < 0 or stop < 0:
        raise Refused(f"looked for what is between \"{first}\" and \"{end}\"")
    return text[start:stop]


def definition(text, name):
    """A function with the comment above it, and the blank line below it"""
    found = re.search(
        r"(?:^/\*(?:[^*]|\*(?!/))*\*/\n)?^(?:\w[^\n;{}#]*\n)?(?:\w[^\n;{}#]*)?"
        rf"\b{name}\([^;{{}}]*\)\n{{\n.*?^}}\n\n?", text, re.M | re.S)
    if not found:
        raise Refused(f"looked for the function {name}()")
    return found.group(0).rstrip("\n") + "\n\n"


def of_driver(name, *functions):
    """These functions of one of our files, without assertions and what is not for this series"""
    text = re.sub(r"^\t+knc_assert\(.*\);\n\n?", "", read(TOP, name), flags=re.M)
    return "".join(definition(text, function) for function in functions)


# --- this kernel's names ----------------------------------------------------------------


def name_as_tree(tree, text):
    """Put what compat.h stands for in this kernel in the place of its names."""
    compat, version = read(TOP, "compat/compat.h"), (*map(int, re.findall(
        r"^(?:VERSION|PATCHLEVEL) = (\d+)$", read(tree, "Makefile"), re.M)),)
    if len(version) != 2:
        raise Refused("Makefile: looked for the kernel's VERSION and PATCHLEVEL")
    older = {name: meaning for major, minor, block in re.findall(
                r"^#if LINUX_VERSION_CODE < KERNEL_VERSION\((\d+), (\d+), 0\)\n(.*?)^#(?:else|endif)",
                compat, re.M | re.S) if version < (int(major), int(minor))
             for name, meaning in re.findall(r"^#define (\w+(?:\(\))?)\t+(.+)$", block, re.M)}
    # Left in the text, it does not compile.
    is_never = older.pop("COMPAT_UNTHROTTLES_STARTED", "")
    added = "this_cpu_read(cpu_hw_events.n_added))"
    header = read(tree, "include/linux/perf_event.h")
    names = {
        "perf_allow_cpu()": "perf_allow_cpu()" if "perf_allow_cpu(void)" in header else
            "perf_allow_cpu(&event->attr)",
        "compat_sample_period(hwc)": "(s64)hwc->sample_period",
        "compat_event_has_rdpmc(event)": "event->hw.flags & PERF_EVENT_FLAG_USER_READ_CNT",
        f" &&\n\t       (!COMPAT_UNTHROTTLES_STARTED || event->attr.freq ||\n\t\t{added}":
            "" if is_never else f" &&\n\t       (event->attr.freq || {added}",
        **older}
    if "__uninitialized" in older:
        text = text.replace(" __uninitialized;", ";")
    for old, new in names.items():
        text = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _, new=new: new, text)
    return text


# --- the patches ------------------------------------------------------------------------

CONSTRAINTS = ("perf/x86/intel/knc: Keep two more L2 events on counter 0", """\
Events of unit mask 0x10, which the core-ring interface reports, are
counted on counter 0 only. Two of them are not in the list, 0xf0 and 0xf5,
and may be put on counter 1, where they read 0.

Intel's manual (327357-001) does not say which counter an event needs. The
list follows other drivers for the chip, as do these two. No card was at
hand.
""")
ANY = ("perf/x86/intel/knc: Count for all threads of a core with any", """\
Bit 21 of an event select register is thread count mode: the event is
counted for all four hardware threads of the core. The driver drops the
bit. Let users set it, as format/any.

The other threads may run somebody else's program, so it takes the
privilege of a CPU-wide event. An inherited event has its parent's.
""")
RESET = ("perf/x86/intel/knc: Reset the PMU when a CPU starts", """\
INIT leaves the PMU as it was (327357-001, 1.4.4), and so does kexec. A
CPU that comes online may find counters that run for no event, and STATUS
set, so that the line to the local APIC does not rise again.

Stop the counters, set each register to 0, and unmask the LVT entry last.

Model 0 of family 11 is Knights Ferry, whose PMU is another one. Do not
take it for this chip.
""")
MASK = ("perf/x86/intel/knc: Soft-mask the interrupt", """\
The interrupt is an NMI, and comes between any two instructions: while
events are put on counters or taken off, while a count is read, or after
its overflow has been handled. Then a count is off by 2^40, a sample is
lost or late, or equal events of a group differ.

Mask it in software, as powerpc does with its interrupts. The file's
comment has the states, and who writes what in which of them. The driver
knows by slots of its own what is on the counters: the x86 core calls an
event active before its counter is loaded, and after it has left. An event
that has wrapped is handled before it leaves its counter, whether its
interrupt is pending, late, or was claimed by another handler.

The handler has no loop that may be stuck: while the counters are stopped
STATUS cannot change. It returns 1 for both counters, which share one
line, so the NMI core expects no second NMI.

This is one patch, as the handler alone loses more than it fixes.
""")


def constraints(text):
    """0xf0 and 0xf5, each before the constraint that follows it"""
    events = read(TOP, "knc_pmu_events.h")
    for code, after in (("0xf0", "0xf1"), ("0xf5", "0xf6")):
        name = re.search(rf"^E\(CRI, +{code}, (\w+),", events, re.M).group(1)
        line = f"\tINTEL_EVENT_CONSTRAINT({after}, 0x1),"
        text = once(text, line, line.replace(after, code) + f"\t/* {name} */\n" + line)
    return text


def with_any(text):
    text = once(text, 'PMU_FORMAT_ATTR(inv,', 'PMU_FORMAT_ATTR(any,\t"config:21"\t);\n'
                'PMU_FORMAT_ATTR(inv,')
    text = once(text, "\t&format_attr_inv.attr,",
                "\t&format_attr_any.attr,\n\t&format_attr_inv.attr,")
    text = once(text, "= x86_pmu_hw_config,", "= knc_pmu_hw_config,")
    return once(text, "static const struct x86_pmu knc_pmu ", """\
static int knc_pmu_hw_config(struct perf_event *event)
{
	int ret = x86_pmu_hw_config(event);

	if (ret || event->attr.type != event->pmu->type ||
	    !(event->attr.config & ARCH_PERFMON_EVENTSEL_ANY))
		return ret;

	/* It counts the core's other threads. For an inherited event its parent was checked. */
	if (!event->parent) {
		ret = perf_allow_cpu();
		if (ret)
			return ret;
	}
	event->hw.config |= ARCH_PERFMON_EVENTSEL_ANY;

	return 0;
}

static const struct x86_pmu knc_pmu """)


MSR, SOFTMASK, PMI = "knc_pmu_msr.h", "knc_softmask.h", "knc_pmi.c"


def registers(*functions):
    """Constants, and these accessors; the others are there with MASK."""
    text = read(TOP, MSR)
    constants = between(text, "/* Of CPUID's family 11;", "/* IA32_PerfEvtSelX, Table 1-5 */")
    functions = of_driver(MSR, *functions)
    for old, new in (("native_apic_mem_", "apic_"),
                     (" Newer kernels do not export apic_write().", "")):
        functions = functions.replace(old, new)
    return constants + functions


RESETTING = ("knc_wrmsr", "knc_write_lvtpc", "knc_perfctr_msr", "knc_evntsel_msr",
             "knc_write_counter", "knc_write_evntsel", "knc_write_global_ctrl", "knc_clear_status",
             "knc_write_spflt", "knc_unmask_lvtpc", "knc_mask_lvtpc")
READING = ("knc_rdmsr", "knc_read_counter", "knc_read_lvtpc", "knc_read_global_ctrl",
           "knc_read_status", "knc_lvtpc_is_masked")


def quiesce():
    text = of_driver("knc_pmu.c", "knc_pmu_quiesce", "knc_pmu_reset")
    return once(text.replace("\nvoid ", "\nstatic void "), "\tknc_spflt_reset(kc);\n", """\
	/* No filters: INIT leaves them as they were (1.4.4). */
	knc_write_spflt(0);
""")


STARTING = """\
static void knc_cpu_starting(int cpu)
{
	%s;
}

static void knc_cpu_dying(int cpu)
{
	%s;
}

"""


def with_reset(text):
    text = once(text, "#define MSR_KNC_IA32_PERF_GLOBAL_STATUS", registers(*RESETTING) +
                "#define MSR_KNC_IA32_PERF_GLOBAL_STATUS")
    functions = re.sub(r"^.*\b(?:kc->|knc_set_state\().*\n|^ \* @kc: .*\n", "", quiesce(), flags=re.M)
    functions = functions.replace("struct knc_cpu_pmu *kc", "void").replace("(kc)", "()")
    for old, new in (("\t/* Before the entry is masked: a late PMI would unmask it. */\n", ""),
                     ("\t/* Before the entry is unmasked: in KNC_OFF a late PMI would leave it "
                      "masked. */\n", "")):
        functions = once(functions, old, new)
    text = once(text, "static const struct x86_pmu knc_pmu ", functions +
                STARTING % ("knc_pmu_reset()", "knc_pmu_quiesce()") +
                "static const struct x86_pmu knc_pmu ")
    text = once(text, "\t.eventsel\t", "\t.cpu_starting\t\t= knc_cpu_starting,\n"
                "\t.cpu_dying\t\t= knc_cpu_dying,\n\t.eventsel\t")
    return once(text, "{\n\tx86_pmu = knc_pmu;", """\
{
	/* Model 0 is Knights Ferry, another PMU. */
	if (boot_cpu_data.x86_model != KNC_MODEL)
		return -ENODEV;

	/* INIT and kexec leave counters running, which the x86 core takes for an error. */
	knc_pmu_quiesce();

	x86_pmu = knc_pmu;""")


def soft_masking():
    """The driver, from its registers to what the x86 core calls"""
    softmask = read(TOP, SOFTMASK)
    comment = between(softmask, "/*\n * The PMU of one", "#ifndef _KNC_SOFTMASK_H")
    comment = once(comment, *re.findall(r"^ \* filters .*\n", comment, re.M))
    comment = once(comment, *re.findall(r"^ \* With CONFIG_KNC_PMU_DEBUG .*\n \*\n", comment, re.M))
    struct = between(softmask, "enum knc_state {", "DECLARE_PER_CPU_ALIGNED(")
    struct = re.sub(r"^ \* @filters:.*\n|^\tu8 filters;\n", "", struct, flags=re.M)
    text = registers(*RESETTING, *READING) + comment + struct
    text += "static DEFINE_PER_CPU_ALIGNED(struct knc_cpu_pmu, knc_pmus);\n\n"
    text += of_driver(SOFTMASK, "knc_set_state", "knc_set_pending", "knc_fill_slot", "knc_find_slot",
                      "knc_filled_slots", "knc_run_counters")
    counter = read(TOP, "knc_counter.h")
    text += between(counter, "/* hw.interrupts of", "static inline bool knc_event_is_throttled")
    text += of_driver("knc_counter.h", "knc_event_is_throttled", "knc_event_account",
                      "knc_event_next_period", "knc_event_load")
    text += between(read(TOP, PMI), "/*\n * The performance monitoring interrupt", "#include") + "\n"
    pmi = of_driver(PMI, "knc_pmi_deliver_rare", "knc_pmi_reset_counter", "knc_pmi_handle",
                    "knc_pmi_late", "knc_pmi_masked", "knc_pmi", "knc_pmi_replay")
    pmi = once(pmi, between(pmi, " * An event that excludes", " * perf core throttled"))
    pmi = once(pmi, between(pmi, "\tstruct pt_regs user;", "\tperf_event_overflow("))
    text += once(pmi, """ ||
		    (unlikely(event->attr.exclude_kernel) && !user_mode(regs)) ?
""", " ?\n")
    text += of_driver(SOFTMASK, "knc_pmu_disable")
    pmu = quiesce() + of_driver("knc_pmu.c", "knc_pmu_enable") + of_driver(SOFTMASK, "knc_pmu_restore")
    pmu += of_driver("knc_pmu.c", "knc_event_start", "knc_event_stop", "knc_account_slot",
                     "knc_event_read")
    for old, new in (("\t\tknc_spflt_update(kc);\n", ""),
                     # Of Linux 2.6.38
                     (between(pmu, "\t/* Each tick looks", "\tfor (;;)"), ""),
                     ("\t\t\tif (COMPAT_PMI_SWALLOWED)\n\t\t\t\tknc_pmi_replay(kc);\n", ""),
                     (" || (COMPAT_PMI_SWALLOWED && wrapped)", ""), ("\tbool wrapped;\n", ""),
                     ("wrapped = knc_account_slot", "knc_account_slot"),
                     ("/* Returns true if the counter has wrapped. */\n", ""),
                     ("inline bool knc_account", "inline void knc_account"),
                     ("\treturn idx >= 0 && knc_event_account(event, idx) >= 0;",
                      "\tif (idx >= 0)\n\t\tknc_event_account(event, idx);")):
        pmu = once(pmu, old, new)
    text += once(pmu, "u32 evtsel = event->hw.config;",
                 "u32 evtsel = event->hw.config | ARCH_PERFMON_EVENTSEL_ENABLE;")
    text += of_driver("knc_builtin.c", "knc_disable_all", "knc_enable_all", "knc_set_period",
                      "knc_must_stay_stopped", "knc_enable_event", "knc_disable_event", "knc_update")
    text = text.replace(" (knc_softmask.h)", "")
    return re.sub(r"^((?:noinline |)(?:void|int|bool) knc_)", r"static \1", text, flags=re.M)


def with_soft_masking(text):
    text = once(text, between(text, definition(text, "knc_pmu_quiesce"), "static const struct x86_pmu"),
                STARTING % ("knc_pmu_reset(this_cpu_ptr(&knc_pmus))",
                            "knc_pmu_quiesce(this_cpu_ptr(&knc_pmus))"))
    text = once(text, between(text, "/* Of CPUID's family 11;", "PMU_FORMAT_ATTR(event,"),
                soft_masking())
    for old, new in (("knc_pmu_handle_irq,", "knc_pmi,"), ("= knc_pmu_disable_all,", "= knc_disable_all,"),
                     ("= knc_pmu_enable_all,", "= knc_enable_all,"),
                     ("= knc_pmu_enable_event,", "= knc_enable_event,"),
                     ("= knc_pmu_disable_event,", "= knc_disable_event,"),
                     ("\t.cpu_starting\t", "\t.set_period\t\t= knc_set_period,\n\t.update\t\t\t= knc_update,\n"
                      "\t.read\t\t\t= knc_event_read,\n\t.cpu_starting\t"),
                     ("\tknc_pmu_quiesce();", "\tknc_pmu_quiesce(this_cpu_ptr(&knc_pmus));")):
        text = once(text, old, new)
    head = between(text, "#include <linux/perf_event.h>", '#include "../perf_event.h"')
    includes = {f"#include <linux/{name}.h>" for name in (
        "bitops", "bits", "cache", "hardirq", "minmax", "percpu", "preempt")}
    includes |= set(re.findall("^#include.*", head, re.M)) | {"#include <asm/msr.h>", "#include <asm/ptrace.h>"}
    ordered = [sorted(i for i in includes if f"<{part}/" in i) for part in ("linux", "asm")]
    return once(text, head, "\n\n".join("\n".join(part) for part in ordered) + "\n\n")


STEPS = ((CONSTRAINTS, constraints), (ANY, with_any), (RESET, with_reset), (MASK, with_soft_masking))


def series_of(tree):
    """(subject, body, [(path, text before, text)]) of each patch, on what the fixes leave"""
    fixed = fixes_of(tree)
    text = fixed[-1][2][0][2] if fixed else read(tree, KNC_C)
    patches = []
    for (subject, body), step in STEPS:
        before, text = text, name_as_tree(tree, step(text))
        patches.append((subject, body, [(KNC_C, before, text)]))
    return patches
