/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: the core's time, and thread count mode, in which a
 * counter counts the events of all threads of its core
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "internal.h"

/* The latest time of a thread; one that wakes continues there. */
static uint64_t knc_pmu_core_time(const KncPmuState *s)
{
    const KncPmuState *t = s;
    uint64_t time = s->core->clock;

    do {
        if (!t->share.asleep) {
            time = MAX(time, t->share.time +
                             t->count.slot_cycles * knc_pmu_slots(t));
        }
        t = &t->next->knc_pmu;
    } while (t != s);
    return time;
}

/* For a halted thread: cycles of the core since its last fold */
uint64_t knc_pmu_slept(const KncPmuState *s)
{
    uint64_t now;

    if (!s->share.asleep) {
        return 0;
    }
    now = knc_pmu_core_time(s);
    return now > s->share.time ? now - s->share.time : 0;
}

void knc_pmu_advance(KncPmuState *s, uint64_t cycles)
{
    s->share.time += cycles;
    s->core->clock = MAX(s->core->clock, s->share.time);
}

/* A thread starts to count, at the time of the core. */
static void knc_pmu_join(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;

    s->share.time = knc_pmu_core_time(s);
    s->share.wakes = s->core->wakes;
    s->count.folded = knc_clock_slots(env);
    s->count.branches = s->count.uncounted = s->count.replays = 0;
    s->count.stalls = s->count.stalling = 0;
    s->count.ring = knc_pmu_current_ring(env);
}

/* Events in @rings since reset, without the executing instruction's @self */
uint64_t knc_pmu_ever(CPUX86State *env, int self, int rings, KncPmuEvent event)
{
    KncPmuState *s = &env->knc_pmu;
    KncPmuEvents ev = knc_pmu_pending(s, self);
    uint64_t sum = rings & (1 << s->count.ring) ? ev.n[event] : 0;

    for (int ring = 0; ring < KNC_PMU_RINGS; ring++) {
        if (rings & (1 << ring)) {
            sum += s->tally.true_count[ring].n[event];
        }
    }
    return sum;
}

/* The sum of the other threads' events for counter @n as set up in @c */
uint64_t knc_pmu_others(CPUX86State *env, int n, const KncPmuCounter *c)
{
    int thread = env->knc_pmu.thread;
    CPUX86State *other;
    uint64_t sum = 0;

    KNC_FOREACH_OTHER(other, env) {
        if (knc_pmu_matches(c)) {
            for (int ring = 0; ring < KNC_PMU_RINGS; ring++) {
                if (c->rings & (1 << ring)) {
                    sum += other->knc_pmu.share.matches[thread][n][ring];
                }
            }
        } else {
            sum += knc_pmu_ever(other, 0, c->rings, c->event);
        }
    }
    return sum;
}

/* Count a match for each counter of the core whose CMASK @ev reaches. */
void knc_pmu_match(KncPmuState *s, const KncPmuEvents *ev)
{
    const KncPmuState *t = s;

    do {
        for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
            const KncPmuCounter *c = &t->regs.counter[n];

            if (knc_pmu_matches(c) && (t == s || c->any) &&
                ev->n[c->event] >= c->threshold) {
                s->share.matches[t->thread][n][s->count.ring]++;
            }
        }
        t = &t->next->knc_pmu;
    } while (t != s);
}

/* Another thread's counter has wrapped, but that thread has not seen it yet. */
static bool knc_pmu_due(CPUX86State *env, int n)
{
    KncPmuState *s = &env->knc_pmu;

    return (s->regs.counter[n].any || s->share.asleep) &&
           knc_pmu_value(env, n, 0) > CNTR_MASK;
}

/*
 * Cycles of the core overflow a halted thread's counter while this one
 * executes.  1.4.3.8: the PMI is "routed to whichever thread happens to be in
 * the execution stage"; the halted thread finds its STATUS when it wakes.
 * Returns true if pmu-stray=on asks for that and this thread got the PMI.
 */
static bool knc_pmu_stray(CPUX86State *env, CPUX86State *other, int n)
{
    if (!env->knc.stray || !other->knc_pmu.share.asleep ||
        !(other->knc_pmu.regs.counter[n].evtsel & EVTSEL_INT)) {
        return false;
    }
    if (!(other->knc_pmu.share.strayed & (1u << n))) {
        other->knc_pmu.share.strayed |= 1u << n;
        knc_pmu_raise(env);
    }
    return true;
}

static bool knc_pmu_fold_other(CPUX86State *env, CPUX86State *other)
{
    bool raised = false;

    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        if (!knc_pmu_due(other, n)) {
            continue;
        }
        if (!knc_pmu_stray(env, other, n)) {
            knc_pmu_fold(other);
            knc_pmu_configure(other);
            break;
        }
        raised = true;
    }
    return raised;
}

/*
 * This thread's events may have overflowed counters of other threads.  Returns
 * true if this thread got the PMI for one.
 */
bool knc_pmu_fold_others(CPUX86State *env)
{
    CPUX86State *other;
    bool raised = false;

    KNC_FOREACH_OTHER(other, env) {
        if (other->knc_pmu.share.wanted) {
            raised |= knc_pmu_fold_other(env, other);
        }
    }
    return raised;
}

/*
 * Work out what this thread has to count.  That selects the flags of its
 * blocks, so no block may be chained to one with other flags.
 */
void knc_pmu_serve(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;
    CPUX86State *other;
    uint32_t flags;

    s->share.serves = s->share.needs;
    KNC_FOREACH_OTHER(other, env) {
        s->share.serves |= other->knc_pmu.share.wanted;
    }
    flags = s->share.serves & ~NEEDS_MATCHES;
    if (flags && !s->tb_flags) {
        knc_pmu_join(env);
    }
    if ((flags ^ s->tb_flags) & HF_KNC_OBSERVE_MASK) {
        knc_observer_start(s);
    }
    s->tb_flags = flags;
    env->hflags = (env->hflags & ~HF_KNC_MASK) | flags;
}

/* The others must count @wanted for this thread. */
void knc_pmu_want(CPUX86State *env, uint32_t wanted)
{
    CPUX86State *other;

    env->knc_pmu.share.wanted = wanted;
    KNC_FOREACH_OTHER(other, env) {
        /* They notice at their next turn what is no longer wanted. */
        if (wanted & ~other->knc_pmu.share.serves) {
            knc_pmu_fold(other);
            knc_pmu_serve(other);
            knc_pmu_refuel(other);
        }
    }
}

/* Threads of the core that are not halted, this one at least */
int knc_pmu_running(CPUX86State *env)
{
    CPUX86State *other;
    int running = 1;

    KNC_FOREACH_OTHER(other, env) {
        running += !env_cpu(other)->halted;
    }
    return running;
}
