# SPDX-License-Identifier: GPL-2.0-only
"""That what is compiled for the cards' kernel is C that gcc 4.7 takes, and calls what is there.

That compiler, of Intel's SDK, is not to be had any more. So this looks for what came
to gcc after it, up to the 12 that compiles the driver here: words, attributes and built-in
functions, each with the version that brought it (gcc's own lists of changes), and for the
C99 that its default, gnu89, does not know. Each entry of the table has a line in which it
must be found.
"""
import os
import re

from lines import read, sources

# Words, by the version that brought them
WORDS = {
    "4.8": "__builtin_bswap16 __builtin_cpu_init __builtin_cpu_is __builtin_cpu_supports",
    "4.9": "_Generic __auto_type _Atomic _Thread_local",
    "5": "__has_attribute __has_include check_add_overflow check_sub_overflow check_mul_overflow",
    "8": "__VA_OPT__",
    "9": "static_assert __builtin_speculation_safe_value",
    "10": "__has_builtin"}
# What, since when, and a line that has it
NEWER = (
    *((rf"\b({'|'.join(words.split())})\b", since, words) for since, words in WORDS.items()),
    (r"\b_Static_assert\s*\([^,]*\)", "9", "_Static_assert(1);"),
    (r"^\s*fallthrough;|\b(__)?fallthrough(__)?\s*\)", "7", "\tfallthrough;"),
    (r"\basm\s+(volatile\s+|goto\s+)*(__)?inline(__)?\b", "9", "asm inline (\"nop\");"),
    (r"\"=@cc", "6", "asm(\"test\" : \"=@ccz\" (x));"),
    (r"\basm\s+(volatile\s+)?goto\s*\((?!\s*\"[^:]*:\s*:)", "11",
     "asm goto(\"jmp %l1\" : \"=r\" (x) : : : out);"),
    (r"\b__builtin_\w+_overflow(_p)?\b", "5", "__builtin_add_overflow(a, b, &c);"),
    (r"__attribute__\s*\(\([^)]*\b(__)?(assume_aligned|returns_nonnull|no_sanitize\w*|noipa|"
     r"designated_init|nonstring|copy|access|uninitialized|no_stack_protector)(__)?\b", "4.8",
     "int x __attribute__((__nonstring__));"),
)
# C99, which is not its default; programs can ask for it, and the header for them does.
C99 = (
    (r"\bfor\s*\(\s*(const\s+|unsigned\s+|struct\s+)*[a-z_]\w*[\s*]+\w+\s*(=|;|,)", "5, by default",
     "for (int i = 0; i < n; i++)"),
    (r"\brestrict\b", "5, by default", "int f(int *restrict x);"),
)
# Names of macros of Linux 2.6.38's own, and of ours, that look like one of these
NOT_MEANT = re.compile(r"__uninitialized\b")

# What the driver calls of that kernel, as it compiles there, and pointers to functions of its own
KNOWN = set("""
    ACCESS_ONCE ALIGN ARRAY_SIZE BIT DECLARE_PER_CPU_ALIGNED DEFINE_PER_CPU_ALIGNED ERR_PTR
    IS_ERR MODULE_DESCRIPTION MODULE_DEVICE_TABLE MODULE_LICENSE PTR_ERR WARN_ON_ONCE __ATTR
    __ATTR_RO __ffs __fls _show add add_preempt_count barrier boot_cpu_has capable clear_bit
    compat_overflow compat_register compat_update_userpage container_of cpu_online
    cpuidle_get_driver do_each_thread for_each_possible_cpu for_each_set_bit get_cpu_gdt_table
    get_online_cpus idle_notifier_register in_irq in_nmi inc_irq_stat init_irq_work
    irq_work_queue irqs_disabled is_sampling_event is_software_event kallsyms_lookup_name likely
    list_for_each_entry local64_add local64_read local64_set local64_sub local64_xchg
    local_irq_restore local_irq_save min_t module_init mutex_lock mutex_unlock
    native_apic_mem_read native_apic_mem_write notifier_from_errno on_each_cpu per_cpu
    per_cpu_ptr perf_fetch_caller_regs pr_debug pr_err pr_info pr_warn put_online_cpus
    raw_spin_lock_irq raw_spin_unlock_irq rcu_read_lock rcu_read_unlock register_cpu_notifier
    register_die_notifier register_kretprobes release_evntsel_nmi release_perfctr_nmi
    reserve_evntsel_nmi reserve_perfctr_nmi scnprintf set_bit smp_processor_id sprintf stop
    stop_machine strcmp sub_preempt_count synchronize_sched sysfs_create_group task_pt_regs
    test_bit this_cpu_ptr this_cpu_read tracepoint_iter_next tracepoint_iter_reset
    tracepoint_iter_start tracepoint_iter_stop unlikely unregister_cpu_notifier
    unregister_die_notifier user_mode vzalloc while_each_thread x2apic_enabled
    C G for if int return sizeof switch void volatile while""".split())
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
# Macros, functions where they begin, and pointers to functions
DEFINED = (r"^\s*#\s*define\s+(\w+)", r"^[A-Za-z_][^;={}#]*?\b(\w+)\s*\([^;{}]*\)[^;{}]*\{",
           r"^[a-z][^=(\n]*[ *](\w+)\([^{}]*?\);", r"\(\*(\w+)\)\(")


def unknown(names):
    """What the files call, and neither define nor find in that kernel"""
    texts = {name: STRING.sub("", strip_comments(read(name))) for name in names}
    ours = KNOWN.union(*(re.findall(pattern, text, re.M)
                         for text in texts.values() for pattern in DEFINED))
    for name, text in texts.items():
        for call in {*re.findall(r"\b([A-Za-z_]\w*)\s*\(", text)} - ours:
            yield f"{name}: {call}(): is it in Linux 2.6.38 (KNOWN), or in need of compat/2.6.38?"


def find(text, table):
    """What a piece of text has of a table: (line, what, since)."""
    for number, line in enumerate(text.split("\n"), 1):
        line = NOT_MEANT.sub("", line)
        for pattern, since, _ in table:
            found = re.search(pattern, line)
            if found:
                yield number, found.group(0).strip(), since


COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.S)


def strip_comments(text):
    """Each line stays where it is."""
    return COMMENT.sub(lambda found: found.group() if found.group()[0] == '"' else
                       "\n" * found.group().count("\n"), text)


def wrong():
    for entry in NEWER + C99:
        if not list(find(entry[2], [entry])):
            yield f"{entry[0]} does not find: {entry[2]}"
    # All that Kbuild compiles for that kernel, and what a program includes
    names = sources(r"(?!knc_builtin|knc_nmi|knc_register|knc_user_regs)(knc_[^/]*|spflt)\.[ch]|"
                    r"compat/2\.6\.38/.*\.[ch]|include/.*\.h|tools/.*\.c")
    lacks = {"", "compat/2.6.38", "include", "tools"} - {os.path.dirname(name) for name in names}
    yield from (f"nothing was looked at in {folder or 'the top'}" for folder in lacks)
    yield from unknown([name for name in names if not name.startswith(("include/", "tools/"))])
    for name in names:
        text = strip_comments(read(name))
        table = NEWER if name.startswith("include/") else NEWER + C99
        for number, what, since in find(text, table):
            yield f"{name}:{number}: {what}: in gcc since {since}"
