/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: a clock that follows what the threads execute
 *
 * What QEMU's own files ask of target/i386/knc/clock.c.  Where the machine does
 * not have that clock, all is as it would be without.
 */
#ifndef ACCEL_TCG_KNC_CLOCK_H
#define ACCEL_TCG_KNC_CLOCK_H

bool knc_clock_on(void);

/* Whose turn it is after @cpu, which may be its own, or NULL */
CPUState *knc_clock_next(CPUState *cpu);

/* All threads are idle, and yet the clock has somewhere to go. */
bool knc_clock_idle(void);

/* How many instructions @cpu may execute now; with another clock, @budget */
int64_t knc_clock_budget(CPUState *cpu, int64_t budget);

/* A block of @needed instructions does not fit any more: none of them then. */
int knc_clock_fits(CPUState *cpu, int left, int needed);

/*
 * @cpu has executed that many.  Returns by how much that brings the clock
 * forward that all have in common.
 */
int64_t knc_clock_spend(CPUState *cpu, int64_t executed);

/* @cpu looks at the clock, which was never later than @now. */
int64_t knc_clock_read(CPUState *cpu, int64_t now);

/* @cpu is about to have an interrupt. */
void knc_clock_wake(CPUState *cpu);

/* The next timer is another one.  Returns true if that has been seen to. */
bool knc_clock_armed(void);

/* accel/tcg/knc-icount.c.inc: is it -icount shift=0,sleep=off? */
bool knc_icount_is_ours(void);

/* The time that was never read later, in ns */
int64_t knc_icount_get(void);
void knc_icount_set(int64_t now);

#endif /* ACCEL_TCG_KNC_CLOCK_H */
