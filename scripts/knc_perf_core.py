# SPDX-License-Identifier: GPL-2.0-only
"""Defects of perf core that every PMU has: reports, with a fix where it is short.

A report names the function, the state that it leaves, the kernels, and what was seen. It has no
program that does harm. Each defect was looked for in Linux 7.2. There are no Fixes: tags: the
commits that brought these defects in were not looked up.
"""
import sys
import textwrap

from knc_fixes import changes, format_patches
from knc_scripts import Edit, Refused, write

CORE_C = "kernel/events/core.c"


class Report:
    """What is wrong, and since when; the edits are its fix, and text then is the patch's."""

    def __init__(self, subject, text, *edits):
        self.subject, self.edits = subject, edits
        self.text = textwrap.dedent(text)


REPORTS = (
    Report("perf: Refuse events of a CPU and of a group that are not there",
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
    Report("perf: Enable each PMU that perf_cgroup_switch() has disabled",
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
    Report("perf/x86: Do not let a child of fork() execute RDPMC",
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
    Report("perf/x86: x86_perf_event_update() is off by 2^40 if a PMI reloads the same value",
           """\
           What: x86_perf_event_update() reads prev_count and the counter, and
           exchanges prev_count if it is what it was, to see whether an NMI has
           updated the event in between. If the NMI was a PMI,
           x86_perf_event_set_period() has set prev_count, too: to -left, which with a
           fixed period is the value that it loaded the time before. If nothing has
           updated the event since then, the exchange succeeds. The counter's value is
           from before the reload, and has wrapped or not; its difference is added a
           second time, and is off by 2^cntval_bits.

           Where: arch/x86/events/core.c, all x86 PMUs. The PMI has to come between
           RDPMC and the exchange, two instructions apart, in the first update of a
           period. It is so in 6.1, 6.12 and 7.2.

           Seen: in an emulator that lets the overflow come at each instruction in
           turn, 77 of 301 reads are wrong on 6.1. It was not tried on hardware.

           Fix: none here. Only what the NMI cannot change to the same value would be
           seen, such as a number of reloads in struct hw_perf_event; or the PMI has
           to wait while an event is read.
           """),
    Report("perf: A software sibling outlives the PMU of its leader",
           """\
           What: a software event that joins a group of another PMU belongs to the
           perf_event_pmu_context of that PMU, and stays there when the leader is
           gone. perf_pmu_unregister() detaches the events in pmu->events. These are
           the PMU's own, and the software event is not among them, nor does it hold
           the PMU's module. The next switch of its context calls functions of a
           module that is no more. An unprivileged user can prepare this.

           Since when: before 6.2 the whole context refers to the PMU; from 6.2 on its
           perf_event_pmu_context; it is so in 6.1, 6.12 and 7.2.

           Seen: an oops in perf_pmu_disable(), or in the PMU's add(), at the task's
           first switch after the module had been removed.

           Fix: none here. perf_pmu_unregister() has to move or detach all events
           whose pmu_ctx->pmu is the one that goes.
           """),
)


def write_reports(tree, folder, options):
    """To @folder: a text of each report, and patches where the tree has the lines."""
    patches, texts = [], {}
    for number, report in enumerate(REPORTS, 1):
        name = f"{number}-report.txt"
        write(folder, name, f"{report.subject}\n\n{report.text}")
        try:
            after = dict(texts)
            files = changes(tree, report.edits, after)
        except Refused as why:
            print(f"{name}: no patch for this tree: {why}", file=sys.stderr)
            continue
        texts = after
        if files:
            patches.append((report.subject, report.text, files))
    if patches:
        format_patches(patches, folder, options=options)
