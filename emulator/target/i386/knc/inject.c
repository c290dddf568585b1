/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: an interruption at a chosen instruction
 *
 * Tests order it through hw/i386/knc-pmu-testdev.c: an NMI, an overflow or a
 * stop comes after so many instructions, counted from now on or from the write
 * of a register, between that instruction and the next.
 */
#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "cpu.h"
#include "internal.h"

/* The longest time for which a thread is stopped */
#define STOP_MS 20

uint32_t knc_inject_needs(const KncPmuState *s)
{
    return s->inject.counting || s->inject.in_flight ? HF_KNC_PMU_MASK : 0;
}

/* The block must end with the chosen instruction, as for an overflow. */
uint64_t knc_inject_fuel(const KncPmuState *s, uint64_t fuel)
{
    const KncInject *i = &s->inject;

    if (i->counting && i->rings & (1 << s->count.ring)) {
        fuel = MIN(fuel, MAX(i->left, 1));
    }
    if (i->in_flight) {
        fuel = MIN(fuel, MAX(i->skid_left, 1));
    }
    return fuel;
}

void knc_inject_count(KncPmuState *s, uint64_t instructions)
{
    KncInject *i = &s->inject;

    if (i->counting && (i->rings & (1 << s->count.ring))) {
        i->left -= MIN(i->left, instructions);
    }
    if (i->in_flight) {
        i->skid_left -= MIN(i->skid_left, instructions);
    }
}

/* Instructions left for the order, or without an order for the skid */
uint64_t knc_inject_left(const KncPmuState *s)
{
    const KncInject *i = &s->inject;
    bool skid = !i->action;
    bool counting = skid ? i->in_flight : i->counting;
    uint64_t left = skid ? i->skid_left : i->left;

    if (counting && (skid || i->rings & (1 << s->count.ring))) {
        KncPmuEvents ev = knc_pmu_pending(s, 0);

        left -= MIN(left, ev.n[KNC_INSTRUCTIONS_EXECUTED]);
    }
    return left;
}

/* A stopped thread continues when an interrupt is pending, masked or not. */
void knc_inject_release(CPUState *cs)
{
    if (knc_inject_stopped(cs)) {
        knc_clock_wake(cs);
        cs->halted = 0;
    }
    X86_CPU(cs)->env.knc_pmu.inject.stopped = false;
}

/* The sender of the interrupt may itself wait for the stopped thread. */
static void knc_inject_too_long(void *opaque)
{
    knc_inject_release(opaque);
}

static void knc_inject_stop(CPUState *cs, run_on_cpu_data data)
{
    KncPmuState *s = &X86_CPU(cs)->env.knc_pmu;

    /* The interrupt to wait for has come already. */
    if (cs->interrupt_request) {
        return;
    }
    if (!s->inject_timer) {
        s->inject_timer = timer_new_ms(QEMU_CLOCK_VIRTUAL,
                                       knc_inject_too_long, cs);
    }
    timer_mod(s->inject_timer,
              qemu_clock_get_ms(QEMU_CLOCK_VIRTUAL) + STOP_MS);
    s->inject.stopped = true;
    cs->halted = 1;
}

bool knc_inject_stopped(CPUState *cs)
{
    return X86_CPU(cs)->env.knc_pmu.inject.stopped && cs->halted;
}

/* The delayed PMI arrives. */
static void knc_inject_arrive(CPUX86State *env)
{
    KncInject *i = &env->knc_pmu.inject;

    i->in_flight = false;
    trace_knc_pmu_inject(knc_pmu_cpu(env), KNC_INJECT_SKID);
    knc_pmu_deliver(env);
}

static bool knc_inject_ordered(CPUX86State *env)
{
    const KncPmuCounter *c = &env->knc_pmu.regs.counter[0];
    KncInject *i = &env->knc_pmu.inject;

    if (!i->counting || i->left) {
        return false;
    }
    i->counting = false;
    trace_knc_pmu_inject(knc_pmu_cpu(env), i->action);
    switch (i->action) {
    case KNC_INJECT_NMI:
        i->fired++;
        knc_tcg_interrupt(env, false);
        return true;
    case KNC_INJECT_OVERFLOW:
        /* Give the counter the rest of its period at once. */
        if (c->rings) {
            knc_pmu_count(env, 0, CNTR_MASK + 1 - c->value);
            i->fired++;
        }
        return false;
    case KNC_INJECT_STOP:
        i->fired++;
        async_run_on_cpu(env_cpu(env), knc_inject_stop, RUN_ON_CPU_NULL);
        return true;
    default:
        return false;
    }
}

/*
 * Called by knc_pmu_fold(), which handles an overflow itself.  Returns true if
 * there is an interrupt, or if the thread must leave its block.
 */
bool knc_inject_due(CPUX86State *env)
{
    KncInject *i = &env->knc_pmu.inject;
    bool arrives = i->in_flight && !i->skid_left;

    if (arrives) {
        knc_inject_arrive(env);
    }
    return knc_inject_ordered(env) || arrives;
}

/*
 * Called for an edge.  Returns true if it is delivered later.  With a PMI in
 * flight both edges make one interrupt, as an NMI is pending only once.
 */
bool knc_inject_holds(CPUX86State *env)
{
    KncInject *i = &env->knc_pmu.inject;

    if (i->in_flight) {
        env->knc_pmu.tally.delivered++;
        return true;
    }
    if (!i->skid) {
        return false;
    }
    i->skid_left = i->skid;
    /* knc_pmu_refuel() follows, and limits the budget to the skid. */
    i->in_flight = true;
    return true;
}

/* Delay each PMI by @after instructions; one that is in flight arrives now. */
static void knc_inject_skid(CPUX86State *env, uint32_t after)
{
    KncInject *i = &env->knc_pmu.inject;

    if (i->in_flight) {
        knc_inject_arrive(env);
    }
    i->skid = after;
    i->skid_left = after;
}

/* The executing instruction has written a register. */
void knc_inject_written(CPUX86State *env, uint32_t msr)
{
    KncInject *i = &env->knc_pmu.inject;

    if (i->msr != msr) {
        return;
    }
    /* Count from the next instruction on. */
    knc_pmu_fold(env);
    i->msr = 0;
    i->counting = true;
    knc_pmu_configure(env);
}

/*
 * For the test device: carry out @order after @after instructions, from now or
 * from the next write of @msr on.  It replaces the previous order.  Only an
 * order for a skid, or for nothing, replaces a skid.
 */
void knc_inject_order(CPUX86State *env, uint32_t after, uint32_t msr,
                      uint32_t order)
{
    KncInject *i = &env->knc_pmu.inject;

    knc_inject_release(env_cpu(env));
    knc_pmu_fold(env);
    if ((order & 0xf) == KNC_INJECT_SKID) {
        knc_inject_skid(env, after);
        knc_pmu_configure(env);
        return;
    }
    i->action = order & 0xf;
    if (!i->action) {
        knc_inject_skid(env, 0);
    }
    i->rings = order >> 8 & 3;
    i->left = after;
    i->msr = msr;
    i->counting = i->action && !i->msr;
    knc_pmu_configure(env);
}
