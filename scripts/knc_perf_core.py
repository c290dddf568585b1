# SPDX-License-Identifier: GPL-2.0-only
"""Fixes of defects of perf core that every PMU has.

Each names the function, the state that it leaves, the kernels, and what was seen. There are no
Fixes: tags: the commits that brought these defects in were not looked up.
"""
import sys
import textwrap

from knc_fixes import changes, format_patches
from knc_scripts import Edit, Refused

CORE_C = "kernel/events/core.c"

# What is wrong, and since when, as the text of the patch with these edits
FIXES = (
    ("perf: Refuse events of a CPU and of a group that are not there",
        """\
        A CPU-wide event that is opened keeps a pointer to its group's leader after
        the leader is freed, in two cases:

        - The CPU went offline since the leader was opened, and is back. The leader
          was detached (perf_event_exit_cpu_context()), and its state is OFF, not
          EXIT. perf_event_open() lets the new event join, but perf_group_detach()
          returns early for this leader, and does not tell its members.
        - The CPU is on its way up: cpuctx->online is set in CPUHP_PERF_PREPARE,
          long before the CPU takes an IPI. perf_install_in_context() ignores that
          cpu_function_call() has failed, so the event is never installed, and is
          in no list that the leader could look at.

        PERF_EVENT_IOC_RESET of the member's group then writes to freed memory. It
        was seen to set the count of another task's event to 0.

        Refuse both with ENODEV. ctx->mutex is held here. A CPU that is online
        stays so until perf_event_exit_cpu() has had that mutex, and a leader is
        detached under it.

        Seen on 6.1, 6.12 and 7.2.
        """,
        Edit(CORE_C, r"^\t\tif \(!cpuctx->online\) \{\n"
             r"\t\t\terr = -ENODEV;\n\t\t\tgoto err_locked;$",
             "(!cpuctx->online) {", "(!cpuctx->online || !cpu_online(event->cpu)) {"),
        Edit(CORE_C, r"^\t\tif \(group_leader->state <= PERF_EVENT_STATE_EXIT\) \{\n"
             r"\t\t\terr = -ENODEV;\n\t\t\tgoto err_locked;$",
             "(group_leader->state <= PERF_EVENT_STATE_EXIT) {",
             "(group_leader->state <= PERF_EVENT_STATE_EXIT ||\n"
             "\t\t    !(group_leader->attach_state & PERF_ATTACH_GROUP)) {")),
    ("perf: Enable each PMU that perf_cgroup_switch() has disabled",
        """\
        perf_cgroup_switch() disables the PMUs that have cgroup events, switches,
        and enables the PMUs that have cgroup events. In between an event may go: a
        pinned event that finds no counter becomes an ERROR, and one whose
        PERF_EVENT_IOC_REFRESH has run out is disabled when it is taken off. If it
        was the last one of its PMU, pmu_ctx->nr_cgroups is 0 then, and the PMU is
        not enabled: pmu_disable_count stays 1, and nothing counts on that CPU
        until the next boot.

        Disable and enable all PMUs of the context, whatever nr_cgroups is. That
        costs a switch the PMUs without cgroup events; to remember in struct
        perf_event_pmu_context which were disabled would save it.

        Seen on 6.12 and 7.2: perf stat -C then counted 0 on that CPU.
        """,
        Edit(CORE_C, r"^\tWARN_ON_ONCE\(cpuctx->ctx\.nr_cgroups == 0\);\n"
             r"\tperf_ctx_disable\(&cpuctx->ctx, EVENT_CGROUP\);$",
             "nr_cgroups == 0);\n\tperf_ctx_disable(&cpuctx->ctx, EVENT_CGROUP);",
             "nr_cgroups == 0);\n\t/* All: the last cgroup event of one may go in between. */\n"
             "\tperf_ctx_disable(&cpuctx->ctx, 0);"),
        Edit(CORE_C, r"^\tctx_sched_in\(&cpuctx->ctx, NULL, EVENT_ALL\|EVENT_CGROUP\);\n\n"
             r"\tperf_ctx_enable\(&cpuctx->ctx, EVENT_CGROUP\);$",
             "EVENT_CGROUP);\n\n\tperf_ctx_enable(&cpuctx->ctx, EVENT_CGROUP);",
             "EVENT_CGROUP);\n\n\tperf_ctx_enable(&cpuctx->ctx, 0);")),
    ("perf/x86: Do not let a child of fork() execute RDPMC",
        """\
        mm->context.perf_rdpmc_allowed counts the mappings of events that allow
        RDPMC. Such a mapping is VM_DONTCOPY, so a child of fork() has none, but
        dup_mm() copies the number, and nothing sets it to 0. So the child may
        execute RDPMC for as long as it does not call exec(), and reads the
        counters of whatever task or CPU is counted on its CPU.
        x86_pmu_event_unmapped() is not called for it either.

        Set the number to 0 for each new mm.

        This is so since 4.0, which brought the number in. Seen on 6.1, 6.12 and
        7.2: the instruction did not fault in the child.
        """,
        Edit("arch/x86/include/asm/mmu_context.h",
             r"^\tatomic64_set\(&mm->context\.tlb_gen, 0\);$", "tlb_gen, 0);",
             "tlb_gen, 0);\n\t/* Mappings that allow RDPMC are VM_DONTCOPY. */\n"
             "\tatomic_set(&mm->context.perf_rdpmc_allowed, 0);")),
)


def write_fixes(tree, folder, options):
    """To @folder: patches where the tree has the lines"""
    patches, texts = [], {}
    for subject, text, *edits in FIXES:
        after = dict(texts)
        try:
            patches.append((subject, textwrap.dedent(text), changes(tree, edits, after)))
            texts = after
        except Refused as why:
            print(f"{subject}: no patch for this tree: {why}", file=sys.stderr)
    if patches:
        format_patches(patches, folder, options=options)
