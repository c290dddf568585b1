/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: how it counts
 *
 * "How it counts" in Documentation/emulator.rst.  knc_pmu_fold() turns slots,
 * and what generated code counts, into events and adds these to the counters;
 * it runs only when the result is needed.  All is for one ring, as each change
 * of the ring comes with a fold.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "internal.h"

/* A core never issues for one thread in two consecutive cycles. */
#define CYCLES_PER_SLOT         2

/* KncFilter.hits does not overflow: an instruction has fewer than 2^8. */
#define FUEL_MAX                (1 << 24)

/* In slots: how late an observed event of another thread is noticed */
#define LATE                    64

/* Above the number of observed events of one kind that an instruction has */
#define OBSERVED_MAX            512

/*
 * This close to an overflow, a budget that allows for OBSERVED_MAX events per
 * slot would be too small for most blocks: have each access reported instead.
 */
#define OBSERVED_NEAR           (64 * OBSERVED_MAX)

/*
 * Events in count.ring since the last fold, without the @self slots of the
 * executing instruction, which the clock already has
 */
KncPmuEvents knc_pmu_pending(const KncPmuState *s, int self)
{
    KncPmuEvents ev = {};
    uint64_t slots = knc_pmu_slots(s) - self;

    if (s->tb_flags & HF_KNC_OBSERVE_MASK) {
        ev = s->seen.observed;
    }
    ev.n[KNC_INSTRUCTIONS_EXECUTED] = slots - s->count.replays;
    ev.n[KNC_BRANCHES] = s->count.branches;
    ev.n[KNC_CPU_CLK_UNHALTED] = slots * s->count.slot_cycles;
    ev.n[KNC_EXEC_STAGE_CYCLES] = slots;
    ev.n[KNC_FE_STALLED] = s->count.replays * s->count.slot_cycles;
    ev.n[KNC_STALL_BEGINS] = s->count.stalls;
    ev.n[KNC_RING_BEGINS] = s->count.entries;
    if (s->count.ring == KNC_PMU_RING0) {
        uint64_t wakes = s->core->wakes - s->share.wakes;

        ev.n[KNC_CPU_CLK_UNHALTED] += knc_pmu_slept(s);
        ev.n[KNC_UNHALTED_BEGINS] = wakes;
        ev.n[KNC_RING_BEGINS] += wakes;
    }
    return ev;
}

uint64_t knc_pmu_increment(const KncPmuState *s, int n,
                           const KncPmuEvents *ev)
{
    const KncPmuCounter *c = &s->regs.counter[n];
    uint64_t matches = s->share.matches[s->thread][n][s->count.ring];

    if (!(c->rings & (1 << s->count.ring))) {
        return 0;
    }
    switch (c->mode) {
    case KNC_MODE_EVENTS:
        return ev->n[c->event];
    case KNC_MODE_MATCHES:
        return matches;
    case KNC_MODE_CYCLES:
        return ev->n[KNC_CPU_CLK_UNHALTED];
    case KNC_MODE_NO_EVENTS:
        return ev->n[KNC_CPU_CLK_UNHALTED] - ev->n[c->event];
    case KNC_MODE_NO_MATCHES:
        return ev->n[KNC_CPU_CLK_UNHALTED] - matches;
    default:
        return 0;
    }
}

/*
 * The counter, without the @self slots of the executing instruction; above
 * CNTR_MASK if an overflow has not been handled yet
 */
uint64_t knc_pmu_value(CPUX86State *env, int n, int self)
{
    KncPmuState *s = &env->knc_pmu;
    KncPmuCounter *c = &s->regs.counter[n];
    KncPmuEvents ev = knc_pmu_pending(s, self);
    uint64_t value = c->value + knc_pmu_increment(s, n, &ev);

    if (c->any && c->rings) {
        value += knc_pmu_others(env, n, c) - c->others;
    }
    return value;
}

void knc_pmu_count(CPUX86State *env, int n, uint64_t increment)
{
    KncPmuState *s = &env->knc_pmu;
    KncPmuCounter *c = &s->regs.counter[n];

    c->total += increment;
    c->value += increment;
    if (c->value <= CNTR_MASK) {
        return;
    }
    c->value &= CNTR_MASK;
    c->overflows++;
    trace_knc_pmu_overflow(knc_pmu_cpu(env), n);
    s->regs.status |= 1u << n;
    if (s->share.strayed & (1u << n)) {
        s->share.strayed &= ~(1u << n);
        /* Another thread got the interrupt: knc_pmu_stray() */
        return;
    }
    if (c->evtsel & EVTSEL_INT) {
        s->regs.pmi |= 1u << n;
    }
}

/*
 * Move the events into the true counts and the time; @increment is each
 * counter's share.
 */
static void knc_pmu_take(CPUX86State *env,
                         uint64_t increment[KNC_PMU_COUNTERS])
{
    KncPmuState *s = &env->knc_pmu;
    int ring = s->count.ring;
    KncPmuEvents ev = knc_pmu_pending(s, 0);

    s->seen.alone &= !knc_pmu_slots(s);
    s->count.folded = knc_clock_slots(env);
    s->count.branches = 0;
    s->count.uncounted = 0;
    s->count.replays = 0;
    s->count.stalls = 0;
    s->count.entries = 0;
    memset(&s->seen.observed, 0, sizeof(s->seen.observed));
    for (int i = 0; i < KNC_EVENTS; i++) {
        s->tally.true_count[ring].n[i] += ev.n[i];
    }
    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        increment[n] += knc_pmu_increment(s, n, &ev);
        s->share.matches[s->thread][n][ring] = 0;
    }
    s->share.wakes += ev.n[KNC_UNHALTED_BEGINS];
    knc_inject_count(s, ev.n[KNC_INSTRUCTIONS_EXECUTED]);
    knc_pmu_advance(s, ev.n[KNC_CPU_CLK_UNHALTED]);
    if (knc_pmu_current_ring(env) != ring) {
        s->count.ring = knc_pmu_current_ring(env);
        s->count.entries = 1;
        knc_pmu_take(env, increment);
    }
}

/*
 * Add all events up to this point to the counters.  Returns true if that raised
 * the interrupt line, or if a test wants the thread to leave its block.
 */
bool knc_pmu_fold(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;
    uint64_t increment[KNC_PMU_COUNTERS] = {};
    uint64_t others[KNC_PMU_COUNTERS];
    bool line = s->regs.pmi;
    bool raised = false;

    if (s->tb_flags & HF_KNC_OBSERVE_MASK) {
        knc_pmu_resolve_branch(env);
        knc_pmu_flush_accesses(s);
    }
    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        KncPmuCounter *c = &s->regs.counter[n];

        others[n] = c->any && c->rings ? knc_pmu_others(env, n, c) : c->others;
    }
    knc_pmu_take(env, increment);
    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        KncPmuCounter *c = &s->regs.counter[n];

        increment[n] += others[n] - c->others;
        c->others = others[n];
        knc_pmu_count(env, n, increment[n]);
    }
    raised |= knc_pmu_fold_others(env);
    raised |= knc_inject_due(env);

    /* One line for both counters: two overflows make one edge. */
    if (!line && s->regs.pmi) {
        knc_pmu_raise(env);
        raised = true;
    }
    return raised;
}

/* The counter has events of the model, and not cycles without them. */
static bool knc_pmu_observes(const KncPmuCounter *c)
{
    return (c->mode == KNC_MODE_EVENTS || c->mode == KNC_MODE_MATCHES) &&
           c->event >= KNC_OBSERVED;
}

/* Accesses that do not change the model count as well: KncFilter */
static bool knc_pmu_counts_hits(const KncPmuCounter *c)
{
    return c->mode == KNC_MODE_EVENTS &&
           (c->event == KNC_DATA_READ || c->event == KNC_DATA_WRITE ||
            c->event == KNC_DATA_READ_OR_WRITE || c->event == KNC_CODE_READ);
}

/* The most by which a counter can grow with each access that is reported */
static int knc_pmu_per_access(const KncPmuCounter *c)
{
    if (c->mode == KNC_MODE_MATCHES || c->event < KNC_SEVERAL) {
        return 1;
    }
    switch (c->event) {
    case KNC_HWP_L2HIT:
    case KNC_HWP_L2MISS:
    case KNC_L2_VICTIM_REQ_WITH_DATA:
        /* Each of its two lines may have four more prefetched. */
        return 10;
    case KNC_VPU_ELEMENTS_ACTIVE:
        return 16;
    default:
        /* It may be in two lines, and evict one from each of the caches. */
        return 4;
    }
}

/*
 * So many reported accesses cannot overflow a counter; @all: what does not
 * change the model is reported as well.
 */
int knc_pmu_may_wait(const KncPmuState *s, bool all)
{
    int64_t accesses = INT_MAX;

    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        const KncPmuCounter *c = &s->regs.counter[n];
        int64_t left = CNTR_MASK - c->value;

        if (!knc_pmu_observes(c) || (!all && knc_pmu_counts_hits(c))) {
            continue;
        }
        left -= knc_pmu_increment(s, n, &s->seen.observed);
        accesses = MIN(accesses, left / knc_pmu_per_access(c));
    }
    return accesses;
}

/* The most by which a counter can grow with each slot */
static int knc_pmu_per_slot(const KncPmuState *s, const KncPmuCounter *c)
{
    switch (c->mode) {
    case KNC_MODE_EVENTS:
    case KNC_MODE_MATCHES:
        switch (c->event) {
        case KNC_CPU_CLK_UNHALTED:
        case KNC_FE_STALLED:
            return s->count.slot_cycles;
        case KNC_UNHALTED_BEGINS:
        case KNC_RING_BEGINS:
            /* They come with a change of ring, which calls refuel. */
            return 0;
        default:
            return knc_pmu_counts_hits(c) ? OBSERVED_MAX :
                   c->event < KNC_OBSERVED;
        }
    case KNC_MODE_CYCLES:
    case KNC_MODE_NO_EVENTS:
    case KNC_MODE_NO_MATCHES:
        return s->count.slot_cycles;
    default:
        return 0;
    }
}

int knc_pmu_slot_cost(CPUX86State *env)
{
    return MAX(knc_pmu_running(env), CYCLES_PER_SLOT);
}

/*
 * After how many slots this thread can overflow a counter of @other, which
 * counts this one's events, or cycles while halted; for events of the model, or
 * a little later
 */
static uint64_t knc_pmu_fuel_of(CPUX86State *env, CPUX86State *other,
                                uint64_t fuel)
{
    KncPmuState *s = &env->knc_pmu;

    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        const KncPmuCounter *c = &other->knc_pmu.regs.counter[n];
        int per_slot = knc_pmu_observes(c) ? OBSERVED_MAX :
                       knc_pmu_per_slot(s, c);
        int64_t left = CNTR_MASK + 1 - knc_pmu_value(other, n, 0);
        bool grows = c->any ? c->rings & (1 << s->count.ring) :
                     other->knc_pmu.share.asleep && knc_pmu_counts_asleep(c);

        /* One that has wrapped waits for its thread: knc_pmu_stray() */
        if (grows && per_slot && left > 0) {
            left = DIV_ROUND_UP(left, per_slot);
            fuel = MIN(fuel, per_slot == OBSERVED_MAX ? MAX(left, LATE) : left);
        }
    }
    return fuel;
}

/*
 * Work out after how many slots a counter may overflow: the clock ends the turn
 * there.
 */
void knc_pmu_refuel(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;
    CPUX86State *other;
    uint64_t fuel = FUEL_MAX;
    bool near = false;

    s->count.slot_cycles = knc_pmu_slot_cost(env);
    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        KncPmuCounter *c = &s->regs.counter[n];
        int per_slot = knc_pmu_per_slot(s, c);

        if (!(c->rings & (1 << s->count.ring))) {
            continue;
        }
        if (knc_pmu_counts_hits(c) && c->value > CNTR_MASK - OBSERVED_NEAR) {
            near = true;
        } else if (per_slot) {
            fuel = MIN(fuel,
                       DIV_ROUND_UP(CNTR_MASK + 1 - c->value, per_slot));
        }
    }
    KNC_FOREACH_OTHER(other, env) {
        if (other->knc_pmu.share.wanted) {
            fuel = knc_pmu_fuel_of(env, other, fuel);
        }
    }
    fuel = s->seen.alone ? 1 : knc_inject_fuel(s, fuel);
    if (s->tb_flags & HF_KNC_OBSERVE_MASK) {
        knc_observer_refuel(s, near);
    }
    s->count.stop = knc_clock_slots(env) + fuel;
    knc_clock_limit(env);
}

/* The thread has entered another ring. */
uint32_t knc_pmu_change_ring(CPUX86State *env)
{
    knc_pmu_fold(env);
    knc_pmu_refuel(env);
    return env->hflags;
}

/* End the turn here: the next one begins with a fold. */
void knc_pmu_stop(CPUX86State *env)
{
    env->knc_pmu.count.stop = knc_clock_slots(env);
    knc_clock_limit(env);
}

/* The slot of the executing instruction, which must end its block */
int knc_pmu_self(KncPmuState *s)
{
    return s->tb_flags ? 1 : 0;
}

/* Returns true if observed events since the last fold overflow a counter. */
bool knc_pmu_observed_overflow(const KncPmuState *s)
{
    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        const KncPmuCounter *c = &s->regs.counter[n];
        uint64_t value = c->value;

        if (knc_pmu_observes(c)) {
            value += knc_pmu_increment(s, n, &s->seen.observed);
        }
        if (value > CNTR_MASK) {
            return true;
        }
    }
    return false;
}
