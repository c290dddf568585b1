/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: the functions that QEMU's files call
 *
 * scripts/install-in-qemu adds the calls.  They do nothing without the PMU.
 */
#ifndef I386_KNC_HOOKS_H
#define I386_KNC_HOOKS_H

#include "compat.h"
#include "hw/core/cpu.h"

typedef struct CPUArchState CPUX86State;

/* target/i386/: the flag of AVX; a thread waits */
void knc_sync_avx(CPUX86State *env);
void knc_pmu_pause(CPUX86State *env);

/* accel/tcg/: @left, or 0 if a block has more instructions than that */
int knc_clock_fits(CPUState *cs, int left, int needed);

/* accel/tcg/: an access that waits; one that a helper has made */
void knc_pmu_wait_for_device(CPUState *cs);
void knc_pmu_helper_access(CPUState *cs, vaddr addr, uint32_t oi,
                           MMUAccessType type);

#endif /* I386_KNC_HOOKS_H */
