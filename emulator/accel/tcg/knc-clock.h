/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: the card clock (target/i386/knc/clock.c), for QEMU's files
 *
 * With another CPU these functions leave QEMU's behaviour as it is.
 */
#ifndef ACCEL_TCG_KNC_CLOCK_H
#define ACCEL_TCG_KNC_CLOCK_H

bool knc_clock_on(void);

/* The CPU that executes after @cpu: maybe @cpu again, or NULL for none */
CPUState *knc_clock_next(CPUState *cpu);

/* All threads are idle, but the clock can still jump to a timer. */
bool knc_clock_idle(void);

/* Instructions that @cpu may execute now; @budget without the card clock */
int64_t knc_clock_budget(CPUState *cpu, int64_t budget);

/* @left, or 0 if it is not enough for a block of @needed instructions */
int knc_clock_fits(CPUState *cpu, int left, int needed);

/* @cpu has executed so many instructions.  Returns what QEMU's clock gains. */
int64_t knc_clock_spend(CPUState *cpu, int64_t executed);

/* The next timer has changed.  Returns true if the card clock handled it. */
bool knc_clock_armed(void);

#endif /* ACCEL_TCG_KNC_CLOCK_H */
