/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: the interrupt line
 *
 * One bit for both counters, connected to the thread's local APIC, which sees
 * rising edges only: apic.c
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "internal.h"

void knc_pmu_raise(CPUX86State *env)
{
    env->knc_pmu.tally.edges++;
    trace_knc_pmu_raise(knc_pmu_cpu(env));
    if (!knc_inject_holds(env)) {
        knc_pmu_deliver(env);
    }
}

void knc_pmu_deliver(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;
    int mode = knc_tcg_interrupt(env, true);

    if (mode < 0) {
        s->tally.lost++;
        trace_knc_pmu_lost(knc_pmu_cpu(env));
    } else {
        s->tally.delivered++;
        trace_knc_pmu_deliver(knc_pmu_cpu(env), mode);
    }
}

void knc_pmu_clear_status(CPUX86State *env, uint32_t mask)
{
    KncPmuState *s = &env->knc_pmu;
    bool line = s->regs.pmi;

    s->regs.status &= ~mask;
    s->regs.pmi &= s->regs.status;
    if (line && !s->regs.pmi) {
        trace_knc_pmu_lower(knc_pmu_cpu(env));
    }
}
