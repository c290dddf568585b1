# SPDX-License-Identifier: GPL-2.0-only
"""Advice for a metric above its threshold, from the hot place and other metrics, beyond
knc_pmu_tables.ini; and the emulated card's limits.
"""
import re

from knc_format import number

# Functions in which threads wait, of libgomp, Intel's and LLVM's OpenMP, pthread, and the kernel
WAITING = re.compile(r"_*((gomp|GOMP|omp|kmp)_\w*(barrier|wait|dock|sleep)|kmp_(hyper|fork|join|flag)|"
                     r"pthread_(barrier|cond|spin|join)|do_spin$|do_wait$|(do_)?futex|cpu_idle|"
                     r"mwait_idle|default_idle|sched_yield)")
# "x[columns[p]]", in Fortran "x(columns(p))": an index out of memory
INDIRECT = re.compile(r"\w\s*\[[^\]\[]*\w\s*\[")
FORTRAN = re.compile(r"\w\s*\([^()]*\b(?!(?:min|max|mod|int|nint|abs)\b)\w+\s*\(", re.I)
MISSES, WALKS = {"l1_read_miss_ratio", "l1_write_miss_ratio"}, {"l1_tlb_miss_ratio", "l2_tlb_miss_ratio"}
# The part of the L1 misses that the L2 must have for the data to fit there
FITS = 75
# What costs a card time, and the emulated card none, from how many percent on
COSTS = {"l1_read_miss_ratio": "of the reads miss the L1 cache",
         "l1_write_miss_ratio": "of the writes miss the L1 cache",
         "branch_mispredict_ratio": "of the branches are predicted wrongly"}
LEAST = 1

WAIT = ("The threads wait here for others: give all of them the same work (OpenMP: "
        "schedule(dynamic), or smaller parts), or use fewer threads",
        "libgomp's manual, \"Barriers\"; Documentation/uneven.rst")
GATHER = ("Number the elements so that neighbours have near numbers, or sort by the index: it comes "
          "from memory, so another order of the loops does not help. Pages of 2 MiB help the TLB",
          "E. Cuthill and J. McKee, \"Reducing the bandwidth of sparse symmetric matrices\" (1969)")
CONFLICT = ("If rows are a multiple of 4096 bytes apart, make each longer by what the loop reads of one "
            "before it goes to the next, in lines of 64 bytes: {}. Now the same place of all rows has "
            "only 8 of the 512 lines of the L1 cache. Otherwise work on blocks of 32 KiB, or let the "
            "inner loop go along a row. The L2 cache has nearly all of the lines, and few accesses "
            "miss the TLB, so it is the L1 that loses them", "the L1 cache's 64 sets of 8 lines of "
            "64 bytes (Intel, \"Xeon Phi Coprocessor System Software Developers Guide\", 328207)")


def longer(missing):
    """By how much, if so many percent of the accesses miss: more than one of a line are of a row"""
    reads = round(100 / missing)
    return "64 bytes, as nearly each access is of another line here" if reads < 2 else (
        f"64 bytes if these are the {reads} accesses that a line has here, {64 * 4} if they are "
        f"{reads * 4} beside each other, and so on")


def is_waiting(row):
    return bool(row and WAITING.match(row.get("function") or ""))


def advice(metric, values, row, source):
    """(what to do, who says so) about @metric; @row has most of it, @values are all metrics"""
    rule = metric["exceeded"][0]
    name = metric["metric"].partition(" in ")[0]
    if is_waiting(row):
        return WAIT
    is_fortran = re.search(r"\.f(or|\d*)$", row.get("file") or "", re.I) if row else None
    if name in MISSES | WALKS and (FORTRAN if is_fortran else INDIRECT).search(source):
        return GATHER
    if name in MISSES and (values.get("l1_misses_in_l2") or 0) > FITS and \
            (values.get("l1_tlb_miss_ratio") or 0) < 1.6:
        return CONFLICT[0].format(longer(metric["value"])), CONFLICT[1]
    return rule["advice"], rule["advisor"]


def waits_for(functions):
    """For whom threads wait, by the functions of the program, the one with most samples first"""
    for row, part in functions:
        if not is_waiting(row) and not (row.get("object") or "").startswith("[kernel"):
            return f"They wait for those in {row['function']}, which has {number(100 * part)} %."
    return ""


def unjudged(values):
    """What no threshold says on the emulated card"""
    found = [f"{number(values[name])} % {what}" for name, what in COSTS.items()
             if (values.get(name) or 0) >= LEAST]
    costs = f" On a card these cost time: {'; '.join(found)}." if found else ""
    return ("The emulated card does not wait for memory, nor after a wrong prediction, so cpi_thread "
            f"cannot exceed its threshold here.{costs}")
