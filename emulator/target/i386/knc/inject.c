/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: an interruption at a chosen instruction
 *
 * For tests, by hw/i386/knc-pmu-testdev.c: after so many instructions, which
 * are counted from now on or from an access to a register, something happens to
 * the hardware thread, between that instruction and the next one.  A thread
 * without an order for one does nothing here.
 */
#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "cpu.h"
#include "internal.h"

/* The longest that a thread is stopped */
#define STOP_MS 20

/* Blocks of a thread that counts down are those that count. */
uint32_t knc_inject_needs(const KncPmuState *s)
{
    return s->inject.counting || s->inject.in_flight ? HF_KNC_PMU_MASK : 0;
}

/* As for a counter that is going to overflow, the block must end in time. */
uint64_t knc_inject_fuel(const KncPmuState *s, int ring, uint64_t fuel)
{
    const KncInject *i = &s->inject;

    if (i->counting && i->rings & (1 << ring)) {
        fuel = MIN(fuel, MAX(i->left, 1));
    }
    if (i->in_flight) {
        fuel = MIN(fuel, MAX(i->skid_left, 1));
    }
    return fuel;
}

void knc_inject_count(KncPmuState *s, int ring, uint64_t instructions)
{
    KncInject *i = &s->inject;

    if (i->counting && (i->rings & (1 << ring))) {
        i->left -= MIN(i->left, instructions);
    }
    if (i->in_flight) {
        i->skid_left -= MIN(i->skid_left, instructions);
    }
}

/*
 * Of the order, or of the skid if there is none; less what has not been
 * handed on yet
 */
uint64_t knc_inject_left(const KncPmuState *s)
{
    const KncInject *i = &s->inject;
    bool skid = !i->action;
    bool counting = skid ? i->in_flight : i->counting;
    uint64_t left = skid ? i->skid_left : i->left;

    for (int ring = 0; counting && ring < KNC_PMU_RINGS; ring++) {
        if (skid || i->rings & (1 << ring)) {
            KncPmuEvents ev = knc_pmu_pending(s, ring, 0);

            left -= MIN(left, ev.n[KNC_INSTRUCTIONS_EXECUTED]);
        }
    }
    return left;
}

static void knc_inject_release(CPUState *cs, run_on_cpu_data data)
{
    if (knc_inject_stopped(cs)) {
        knc_clock_wake(cs);
        cs->halted = 0;
    }
    X86_CPU(cs)->env.knc_pmu.inject.stopped = false;
}

/* Whoever was to come may himself wait for what this thread holds. */
static void knc_inject_too_long(void *opaque)
{
    async_run_on_cpu(opaque, knc_inject_release, RUN_ON_CPU_NULL);
}

static void knc_inject_stop(CPUState *cs, run_on_cpu_data data)
{
    KncPmuState *s = &X86_CPU(cs)->env.knc_pmu;

    /* An interrupt that is there already is what it was to wait for. */
    if (cs->interrupt_request) {
        return;
    }
    if (!s->inject_timer) {
        s->inject_timer = timer_new_ms(QEMU_CLOCK_VIRTUAL,
                                       knc_inject_too_long, cs);
    }
    timer_mod(s->inject_timer,
              qemu_clock_get_ms(QEMU_CLOCK_VIRTUAL) + STOP_MS);
    qatomic_set(&s->inject.stopped, true);
    cs->halted = 1;
}

/* A stopped thread goes on when an interrupt is there, masked or not. */
bool knc_inject_wakes(CPUState *cs)
{
    return X86_CPU(cs)->env.knc_pmu.inject.stopped && cs->interrupt_request;
}

bool knc_inject_stopped(CPUState *cs)
{
    return qatomic_read(&X86_CPU(cs)->env.knc_pmu.inject.stopped) &&
           qatomic_read(&cs->halted);
}

/* This is a halt of the thread's own. */
void knc_inject_halt(CPUX86State *env)
{
    env->knc_pmu.inject.stopped = false;
}

/* All events of a period that is far from over, in one go */
static void knc_inject_overflow(CPUX86State *env, int n)
{
    KncPmuCounter *c = &env->knc_pmu.counter[n];

    if (c->rings) {
        knc_pmu_change_begin(&env->knc_pmu);
        knc_pmu_count(env, n, CNTR_MASK + 1 - c->value);
        knc_pmu_change_end(&env->knc_pmu);
        env->knc_pmu.inject.fired++;
    }
}

/* The PMI that was in flight arrives. */
static void knc_inject_arrive(CPUX86State *env)
{
    KncInject *i = &env->knc_pmu.inject;

    i->in_flight = false;
    i->late++;
    trace_knc_pmu_inject(knc_pmu_cpu(env), KNC_INJECT_SKID);
    knc_pmu_deliver(env);
}

static bool knc_inject_ordered(CPUX86State *env)
{
    KncInject *i = &env->knc_pmu.inject;

    if (!i->counting || i->left) {
        return false;
    }
    i->counting = false;
    trace_knc_pmu_inject(knc_pmu_cpu(env), i->action);
    switch (i->action) {
    case KNC_INJECT_NMI:
        i->fired++;
        knc_tcg_nmi(env);
        return true;
    case KNC_INJECT_OVERFLOW:
        knc_inject_overflow(env, i->counter);
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
 * Called by knc_pmu_fold().  Returns true if there is an interrupt, or the
 * thread must leave its block.  An overflow is left to the caller.
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
 * Called for an edge.  Returns true if it is to be delivered later.  With one
 * in flight already it is the same interrupt: an NMI is pending or is not.
 */
bool knc_inject_holds(CPUX86State *env)
{
    KncInject *i = &env->knc_pmu.inject;

    if (i->in_flight) {
        env->knc_pmu.delivered++;
        return true;
    }
    if (!i->skid) {
        return false;
    }
    i->skid_left = i->skid;
    /* The caller is about to work out again what has to be counted. */
    i->in_flight = true;
    return true;
}

/* From now on each PMI is that late, and one that was in flight arrives. */
static void knc_inject_skid(CPUX86State *env, uint32_t after)
{
    KncInject *i = &env->knc_pmu.inject;

    if (i->in_flight) {
        knc_inject_arrive(env);
    }
    i->skid = after;
    i->skid_left = after;
}

/* An access to a register, by an instruction that has not completed */
void knc_inject_access(CPUX86State *env, uint32_t access)
{
    KncInject *i = &env->knc_pmu.inject;

    if (i->access != access || i->counting || !i->after) {
        return;
    }
    if (i->skip) {
        i->skip--;
        return;
    }
    /* What was before, and this instruction, is not to count. */
    knc_pmu_fold(env);
    i->access = 0;
    i->left = i->after;
    i->counting = true;
    knc_pmu_configure(env);
}

/*
 * For the test device: what @order says, @after instructions from now on, or
 * from an access to a register on.  It replaces what was ordered before, but
 * for the skid, which only another one replaces, and an order for nothing.
 */
void knc_inject_order(CPUX86State *env, uint32_t after, uint32_t access,
                      uint32_t order)
{
    KncInject *i = &env->knc_pmu.inject;

    knc_inject_release(env_cpu(env), RUN_ON_CPU_NULL);
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
    i->counter = order >> 4 & 1;
    i->rings = order >> 8 & 3;
    i->after = i->left = after;
    i->access = access & 0xffff;
    i->skip = access >> 16;
    i->counting = i->action && !i->access;
    knc_pmu_configure(env);
}
