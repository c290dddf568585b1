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

/* target/i386/cpu.h: MXCSR when @value is loaded */
uint32_t knc_mxcsr(CPUX86State *env, uint32_t value);

/* tcg/fpu_helper.c: raise #GP for reserved bits; FXRSTOR of the chip */
void knc_check_mxcsr(CPUX86State *env, uint32_t value, uintptr_t ra);
void knc_check_fxrstor(CPUX86State *env, uint64_t image, uintptr_t ra);
bool knc_fxrstor(CPUX86State *env);
void knc_xsave(CPUX86State *env, uint64_t area, uint64_t which, uintptr_t ra);
void knc_xrstor(CPUX86State *env, uint64_t area, uint64_t which, uintptr_t ra);

/* tcg/: registers, and entries of the TLB */
bool knc_pmu_rdmsr(CPUX86State *env, uintptr_t ra);
bool knc_pmu_wrmsr(CPUX86State *env, uintptr_t ra);
uint64_t knc_pmu_tsc(CPUX86State *env, uintptr_t ra);
void knc_cpuid(CPUX86State *env, uint32_t *eax, uint32_t *ebx, uint32_t *ecx,
               uint32_t *edx);
void knc_sync_avx(CPUX86State *env);    /* helper.c */
void knc_pmu_write_cr(CPUX86State *env, int reg, uint64_t val);
void knc_pmu_flush_page(CPUX86State *env, uint64_t vaddr);

/* tcg/: a thread waits */
void knc_pmu_pause(CPUX86State *env);

/* accel/tcg/: @left, or 0 if a block has more instructions than that */
int knc_clock_fits(CPUState *cs, int left, int needed);

/* accel/tcg/: an access that waits; one that a helper has made */
void knc_pmu_wait_for_device(CPUState *cs);
void knc_pmu_helper_access(CPUState *cs, vaddr addr, uint32_t oi,
                           MMUAccessType type);

#endif /* I386_KNC_HOOKS_H */
