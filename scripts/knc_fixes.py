# SPDX-License-Identifier: GPL-2.0-only
"""Fixes of the kernel's own driver, and how patches of a tree are written.

Every edit names the line that it looks for, so that it holds over many kernel versions.
"""
import os
import re
import subprocess
import sys
import tempfile
import textwrap

from knc_scripts import TOP, Edit, apply, read, write

KNC_C = "arch/x86/events/intel/knc.c"
# The commits that brought the defects in
COMMITS = {
    "e717bf4e4fe8": "perf/x86: Add support for Intel Xeon-Phi Knights Corner PMU",
    "e4074b3049f9": "perf/x86: Enable overflow on Intel KNC with a custom "
                    "knc_pmu_handle_irq()"}


class Fix:
    """A fix of what this commit has brought in, as a patch that can be sent alone"""

    def __init__(self, commit, subject, body, *edits):
        self.commit, self.subject, self.edits = commit, subject, edits
        self.body = textwrap.dedent(body) + (
            f'\nFixes: {commit} ("{COMMITS[commit]}")\nCc: stable@vger.kernel.org\n')


FIXES = (
    Fix("e717bf4e4fe8",
        "perf/x86/intel/knc: Write the event select register of the counter",
        """\
        hw_perf_event::config_base is the address of the counter's own event
        select register: x86_assign_hw_event() has added the index to it. The
        driver adds the index a second time, and writes MSR 0x2a for counter 1,
        which is no PMU register. Counter 1 never counts. Whether the write
        faults on a card is not known; if so, the _safe accessor hides it.

        In Linux 2.6.38, which Intel's software for the card has, config_base is
        the bare base address, and each user adds the index. So the line was
        right there, and is not in any kernel that has this file.

        This is from a 3120A card with Linux 7.2
        (https://github.com/Lasimeri/Intel-Phi-3120A, card/examples/phiperf.md):

          raw 0x2a (cycles)         27557970377       100%
          raw 0x16 (instructions)             0       100%

        The counts of three events or more are wrong, too: perf scales by the
        time for which an event had a counter, whether or not that one counted.

        Use the address as it is.
        """,
        Edit(KNC_C, r"^\t\(void\)wrmsr[lq]_safe\(hwc->config_base \+ hwc->idx, val\);$",
             "(hwc->config_base + hwc->idx, val)", "(hwc->config_base, val)", 2)),
    Fix("e4074b3049f9",
        "perf/x86/intel/knc: Unmask the LVT entry in the interrupt handler",
        """\
        The local APIC sets the mask bit of the performance counter LVT entry
        when it delivers the interrupt, and the bit stays until software clears
        it (Intel 327357-001, 1.4.3.9). The handler never does: each CPU gets
        one PMI and no more until another event is put on it, and
        perf_events_lapic_init() writes the entry. "perf record" gets a few
        samples, if not one.

        In Linux 2.6.38 perf_event_nmi_handler() unmasks the entry before it calls
        any handler. Later each handler does so, as x86_pmu_handle_irq() and
        intel_pmu_handle_irq() do. This one came after that, and was not told.

        Unmask the entry after the status was cleared, and before the counters
        run again: a transition of the line while the entry is masked is lost.
        """,
        Edit(KNC_C, r"^#include <asm/hardirq\.h>$", "#include <asm/hardirq.h>",
             "#include <asm/apic.h>\n#include <asm/hardirq.h>"),
        Edit(KNC_C, r"^done:\n\t/\* Only restore PMU state when it's active\.", "done:\n",
             "done:\n\t/* Masked by the delivery; a line that rises before this is lost. */\n"
             "\tapic_write(APIC_LVTPC, APIC_DM_NMI);\n\n")),
    Fix("e4074b3049f9",
        "perf/x86/intel/knc: Do not start a disabled PMU in the NMI handler",
        """\
        The handler is called for NMIs of other sources, too. When no counter
        has overflowed it starts the counters, whether or not perf core has
        disabled the PMU. If perf core is putting events on counters, or is
        reading those of a group, they count what they must not, and a counter
        that overflows then delivers a sample of an event that is half set up.

        That path does not unmask the LVT entry either. An overflow may be
        handled in an NMI of another source, before its own NMI is delivered.
        The delivery masks the entry, and the handler finds no status.

        Leave by the common exit, which unmasks the entry, and starts the
        counters only if the PMU is enabled.
        """,
        Edit(KNC_C, r"^\tif \(!status\) \{\n\t\tknc_pmu_enable_all\(0\);\n"
             r"\t\treturn handled;\n\t\}$",
             "if (!status) {\n\t\tknc_pmu_enable_all(0);\n\t\treturn handled;\n\t}",
             "if (!status)\n\t\tgoto done;")),
)

# Which kernel runs on a card, and where patches were tested
PORT = """\
As Knights Corner has neither CMOV nor SSE2, a current kernel needs a port
to run there. There is one, of Linux 7.2 for the 3120A card, and it uses
this file as it is:

  https://github.com/Lasimeri/Intel-Phi-3120A

The patches have not run on hardware. They were tested on an emulated card,
which has the PMU's registers, the line to the local APIC, and the mask bit
of the LVT entry as Intel's manual (327357-001) has them."""
COVER = f"""\
perf/x86/intel/knc: Count on both counters, and sample

Linux has had a driver for the PMU of Knights Corner, the first Xeon Phi,
since 3.7. One of the two counters never counts, each CPU gets one counter
interrupt until an event is put on it again, and an NMI of another source
starts a PMU that is disabled. Each patch fixes one of these, and the third
needs the second.

{PORT}

They are for stable, as counts of two events are wrong without any error,
and perf record does not work. The changes are three lines and a branch, in
a file that no other CPU uses. 6.1 and 6.12 have other names for the
accessors (wrmsrl); patches for these are at hand.

With them all counts and samples of the tests are right as long as nothing
comes at a bad moment. A second series makes the interrupt wait, and then
no sample is lost. It has the numbers.
"""


def has(tree, fix):
    """Whether a tree has this fix already"""
    return all(edit.new in read(tree, edit.path) for edit in fix.edits)


def changes(tree, edits, texts):
    """[(path, text before, text)] of edits, on what those before have left in @texts"""
    before = {}
    for edit in edits:
        text = texts.get(edit.path) or read(tree, edit.path)
        before.setdefault(edit.path, text)
        texts[edit.path] = apply([edit], text)
    return [(path, old, texts[path]) for path, old in before.items()]


def fixes_of(tree):
    """[(subject, body, changes)], each on what the one before leaves"""
    patches, texts = [], {}
    for fix in FIXES:
        if has(tree, fix):
            print(f"{tree} has it already: {fix.subject}", file=sys.stderr)
            continue
        patches.append((fix.subject, fix.body, changes(tree, fix.edits, texts)))
    return patches


def author():
    """"NAME <ADDRESS>" of who has written the patches: this project"""
    return re.search(r"^M:\t(.*)", read(TOP, "MAINTAINERS"), re.M).group(1)


def format_patches(patches, folder, cover="", options=()):
    """Of (subject, body, [(path, text before or None, text)]), by git. Nobody has signed them
    off: the sender does, with -s. Git has to know who that is: a cover letter has a sender.
    """
    with tempfile.TemporaryDirectory() as tmp:
        def git(*args):
            subprocess.run(["git", "-C", tmp, "-c", "user.useConfigOnly=true",
                            "-c", "commit.gpgsign=false", *args], check=True)

        def commit(message, files):
            for path, text in files:
                write(tmp, path, text)
            git("add", ".")
            git("commit", "-q", "--author", author(), "-m", message)

        base = {}
        for _, _, files in patches:
            for path, before, _ in files:
                base.setdefault(path, before)
        git("init", "-q", "-b", "series")
        commit("base", [item for item in base.items() if item[1] is not None])
        git("tag", "base")
        for subject, body, files in patches:
            commit(f"{subject}\n\n{body}", [(path, text) for path, _, text in files])
        if cover:
            git("config", "branch.series.description", cover)
            options = ("--cover-letter", "--cover-from-description=subject", *options)
        git("format-patch", "-o", os.path.abspath(folder), *options, "base")
