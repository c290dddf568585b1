/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: the functions that QEMU's files call
 *
 * scripts/install-in-qemu adds the calls.  They do nothing without the PMU.
 */
#ifndef I386_KNC_HOOKS_H
#define I386_KNC_HOOKS_H

#include "compat.h"

/* target/i386/cpu.c */
bool knc_pmu_realize(X86CPU *cpu, Error **errp);
void knc_pmu_reset(CPUX86State *env);

/* cpu.h, cpu.c: MXCSR when @value is loaded */
uint32_t knc_mxcsr(CPUX86State *env, uint32_t value);

/* helper.c and tcg/: entries of the TLB are dropped */
void knc_pmu_flush_tlb(CPUX86State *env, bool global);
void knc_pmu_flush_page(CPUX86State *env, uint64_t vaddr);

/* tcg/: registers */
bool knc_pmu_rdmsr(CPUX86State *env, uintptr_t ra);
bool knc_pmu_wrmsr(CPUX86State *env, uintptr_t ra);

uint64_t knc_pmu_tsc(CPUX86State *env, uintptr_t ra);

/* cpu.c: no NMI between MOV SS or POP SS and the next instruction */
static inline bool knc_pmu_in_shadow(CPUX86State *env)
{
    return env->knc_pmu.mov_ss && (env->hflags & HF_INHIBIT_IRQ_MASK);
}

/* tcg/, registers.c: CPUID, and registers that are not of the PMU */
void knc_cpuid(CPUX86State *env, uint32_t *ebx);
bool knc_chip_rdmsr(CPUX86State *env, uint32_t msr, uint64_t *val);
bool knc_chip_wrmsr(CPUX86State *env, uint32_t msr, uint64_t val);

/* cpu.c: a halted thread has something to do */
bool knc_inject_wakes(CPUState *cs);

/* tcg/: interrupts and halts */
void knc_pmu_interrupt(CPUX86State *env);
void knc_pmu_interrupted(CPUX86State *env, bool is_int);
void knc_pmu_into(CPUX86State *env);
void knc_pmu_halt(CPUX86State *env);
void knc_pmu_pause(CPUX86State *env);
int knc_pmu_boundary_nmi(CPUState *cs);
void knc_pmu_before_fault(CPUState *cs, MMUAccessType type);
bool knc_pmu_before_breakpoint(CPUState *cs);

/* tcg/: state is restored in mid-block; @data is from insn_start. */
void knc_pmu_unwind(CPUX86State *env, uint32_t tb_flags, uint64_t data);

/* accel/tcg/: an access that a helper has made */
void knc_pmu_helper_access(CPUState *cs, vaddr addr, uint32_t oi,
                           MMUAccessType type);

static inline bool knc_pmu_observing(CPUX86State *env)
{
    return env->knc_pmu.tb_flags & HF_KNC_OBSERVE_MASK;
}

/* hw/intc/apic.c */
int apic_deliver_perf(DeviceState *dev);
void knc_pmu_lvtpc_written(CPUX86State *env, uint32_t val);
void knc_pmu_eoi_written(CPUX86State *env);

#endif /* I386_KNC_HOOKS_H */
