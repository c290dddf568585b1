/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: how it counts
 *
 * Generated code counts issue slots and branches, per ring, in
 * KncPmuState.word.  Everything else is worked out when somebody looks:
 * knc_pmu_fold() turns what has accumulated there into events and hands them
 * to the counters.  The slots in the word are a budget, the least number after
 * which a counter could overflow; a block that would exceed it calls
 * helper_knc_pmu_refuel(), which arranges that the next block ends exactly
 * with the overflowing instruction.  So an overflow is seen at the boundary
 * between that instruction and the next one, and never earlier or later.
 *
 * An instruction is counted in the ring, and under the control bits, with
 * which it begins, and only when it has completed.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "exec.h"
#include "internal.h"

/*
 * An in-order core that never issues from the same thread in two consecutive
 * cycles, and takes its threads in turn: a slot costs two cycles, or as many
 * as there are threads that are not halted.
 */
#define CYCLES_PER_SLOT         2

/* Large enough to cost nothing, small enough for the halves of the word. */
#define FUEL_MAX                (1 << 30)

/* What PAUSE takes with a clock that follows what is executed */
#define PAUSE_SLOTS             256

/* More than any instruction can cause of any observed event */
#define OBSERVED_MAX            512

/*
 * With this many to go, a budget of slots for as many as there could be were
 * too small for most blocks.  Each instruction is looked at instead.
 */
#define OBSERVED_NEAR           (64 * OBSERVED_MAX)

/*
 * Events in @ring since the last fold, less @self slots for an instruction
 * that has been charged to the word and is still executing.
 */
KncPmuEvents knc_pmu_pending(const KncPmuState *s, int ring, int self)
{
    int64_t word = qatomic_read(&s->word[ring]);
    uint64_t slots = s->granted[ring] - (word >> 32) + s->delayed[ring] - self;
    KncPmuEvents ev;

    if (s->tb_flags & HF_KNC_OBSERVE_MASK) {
        ev = s->observed[ring];
    } else {
        memset(&ev, 0, sizeof(ev));
    }
    ev.n[KNC_INSTRUCTIONS_EXECUTED] = slots - s->replays[ring];
    ev.n[KNC_BRANCHES] = (uint32_t)word;
    ev.n[KNC_CPU_CLK_UNHALTED] = slots * s->slot_cycles;
    ev.n[KNC_EXEC_STAGE_CYCLES] = slots;
    ev.n[KNC_FE_STALLED] = s->replays[ring] * s->slot_cycles;
    ev.n[KNC_STALL_BEGINS] = s->stalls[ring];
    ev.n[KNC_RING_BEGINS] = s->entries[ring];
    ev.n[KNC_UNHALTED_BEGINS] = 0;
    if (ring == KNC_PMU_RING0 && s->core) {
        uint64_t wakes = qatomic_read(&s->core->wakes) - s->wakes;

        ev.n[KNC_CPU_CLK_UNHALTED] += knc_pmu_slept(s);
        ev.n[KNC_UNHALTED_BEGINS] = wakes;
        ev.n[KNC_RING_BEGINS] += wakes;
    }
    return ev;
}

uint64_t knc_pmu_increment(const KncPmuState *s, int n, int ring,
                                  const KncPmuEvents *ev)
{
    const KncPmuCounter *c = &s->counter[n];
    uint64_t matches = s->matches[s->thread][n][ring];

    if (!(c->rings & (1 << ring))) {
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
 * The counter, less @self slots for the executing instruction; above CNTR_MASK
 * where an overflow has not been seen yet.
 */
uint64_t knc_pmu_value(CPUX86State *env, int n, int self)
{
    KncPmuState *s = &env->knc_pmu;
    KncPmuCounter *c = &s->counter[n];
    int current = knc_pmu_current_ring(env);
    uint64_t value = c->value;

    for (int ring = 0; ring < KNC_PMU_RINGS; ring++) {
        KncPmuEvents ev = knc_pmu_pending(s, ring,
                                          ring == current ? self : 0);

        value += knc_pmu_increment(s, n, ring, &ev);
    }
    if (c->any && c->rings) {
        value += knc_pmu_others(env, n, c) - c->others;
    }
    return value;
}

/* A counter gets @increment, and may wrap. */
void knc_pmu_count(CPUX86State *env, int n, uint64_t increment)
{
    KncPmuState *s = &env->knc_pmu;
    KncPmuCounter *c = &s->counter[n];

    c->total += increment;
    c->value += increment;
    if (c->value <= CNTR_MASK) {
        return;
    }
    c->value &= CNTR_MASK;
    c->overflows++;
    trace_knc_pmu_overflow(knc_pmu_cpu(env), n);
    s->status |= 1u << n;
    if (qatomic_fetch_and(&s->strayed, ~(1u << n)) & (1u << n)) {
        /* Another thread has had the interrupt. */
        return;
    }
    if (c->evtsel & EVTSEL_INT) {
        s->pmi |= 1u << n;
    }
}

/* The same of another thread, while that goes on */
uint64_t knc_pmu_value_steady(CPUX86State *env, int n)
{
    KncPmuState *s = &env->knc_pmu;
    uint32_t sequence;
    uint64_t value;

    do {
        sequence = qatomic_load_acquire(&s->sequence);
        value = knc_pmu_value(env, n, 0);
        /* As in knc_pmu_ever() */
        smp_rmb();
    } while ((sequence & 1) || sequence != qatomic_read(&s->sequence));
    return value;
}

/*
 * Take what has accumulated in both rings, into the true counts and the time;
 * @increment is what each counter gets of it.
 */
static void knc_pmu_take(CPUX86State *env,
                         uint64_t increment[KNC_PMU_COUNTERS])
{
    KncPmuState *s = &env->knc_pmu;
    int current = knc_pmu_current_ring(env);
    uint64_t cycles = 0;

    if (current != s->ring) {
        s->entries[current]++;
        s->ring = current;
    }
    for (int ring = 0; ring < KNC_PMU_RINGS; ring++) {
        KncPmuEvents ev = knc_pmu_pending(s, ring, 0);
        int64_t left = s->word[ring] >> 32;

        qatomic_set(&s->word[ring], left << 32);
        s->granted[ring] = left;
        s->delayed[ring] = 0;
        s->replays[ring] = 0;
        s->stalls[ring] = 0;
        s->entries[ring] = 0;
        cycles += ev.n[KNC_CPU_CLK_UNHALTED];
        for (int i = 0; i < KNC_EVENTS; i++) {
            s->true_count[ring].n[i] += ev.n[i];
            s->observed[ring].n[i] = 0;
        }
        for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
            increment[n] += knc_pmu_increment(s, n, ring, &ev);
            s->matches[s->thread][n][ring] = 0;
        }
        s->wakes += ev.n[KNC_UNHALTED_BEGINS];
        knc_inject_count(s, ring, ev.n[KNC_INSTRUCTIONS_EXECUTED]);
    }
    knc_pmu_advance(s, cycles);
}

/*
 * Hand all events up to this point to the counters.  Returns true if that
 * raised the interrupt line, or a test wants the thread to leave its block.
 */
bool knc_pmu_fold(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;
    uint64_t increment[KNC_PMU_COUNTERS] = {};
    uint64_t others[KNC_PMU_COUNTERS];
    bool line = s->pmi;
    bool raised = false;

    if (s->tb_flags & HF_KNC_OBSERVE_MASK) {
        knc_pmu_flush_accesses(s);
    }
    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        KncPmuCounter *c = &s->counter[n];

        others[n] = c->any && c->rings ? knc_pmu_others(env, n, c) : c->others;
    }
    /* Nobody who changes his counts waits for somebody else who does. */
    knc_pmu_change_begin(s);
    knc_pmu_take(env, increment);
    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        KncPmuCounter *c = &s->counter[n];

        increment[n] += others[n] - c->others;
        c->others = others[n];
        knc_pmu_count(env, n, increment[n]);
    }
    knc_pmu_change_end(s);
    if (s->granted[0] <= FUEL_SHARED && s->granted[1] <= FUEL_SHARED) {
        raised = knc_pmu_poke_others(env);
    }

    raised |= knc_inject_due(env);

    /* One line for both counters: an overflow of each makes one edge. */
    if (!line && s->pmi) {
        knc_pmu_raise(env);
        raised = true;
    }
    return raised;
}

/* The most by which a counter can grow with each slot */
static int knc_pmu_per_slot(KncPmuState *s, KncPmuCounter *c)
{
    switch (c->mode) {
    case KNC_MODE_EVENTS:
    case KNC_MODE_MATCHES:
        switch (c->event) {
        case KNC_CPU_CLK_UNHALTED:
        case KNC_FE_STALLED:
            return s->slot_cycles;
        case KNC_UNHALTED_BEGINS:
        case KNC_RING_BEGINS:
            /* They come with a new ring, which starts with a refuel. */
            return 0;
        default:
            return c->event >= KNC_OBSERVED ? OBSERVED_MAX : 1;
        }
    case KNC_MODE_CYCLES:
    case KNC_MODE_NO_EVENTS:
    case KNC_MODE_NO_MATCHES:
        return s->slot_cycles;
    default:
        return 0;
    }
}

/* An observed event may soon overflow this counter. */
static bool knc_pmu_near(const KncPmuCounter *c)
{
    return (c->mode == KNC_MODE_EVENTS || c->mode == KNC_MODE_MATCHES) &&
           c->event >= KNC_OBSERVED && c->value > CNTR_MASK - OBSERVED_NEAR;
}

/* In cycles */
int knc_pmu_slot_cost(CPUX86State *env)
{
    return MAX(knc_pmu_running(env), CYCLES_PER_SLOT);
}

/*
 * Work out how many slots the current ring can use before a counter may
 * overflow.  The other ring starts with a call of helper_knc_pmu_refuel().
 */
void knc_pmu_refuel(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;
    int ring = knc_pmu_current_ring(env);
    uint64_t fuel = knc_pmu_others_want(env) ? FUEL_SHARED : FUEL_MAX;
    bool careful = false;

    knc_pmu_change_begin(s);
    s->slot_cycles = knc_pmu_slot_cost(env);
    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        KncPmuCounter *c = &s->counter[n];
        int per_slot = knc_pmu_per_slot(s, c);

        if (!(c->rings & (1 << ring))) {
            continue;
        }
        if (knc_pmu_near(c)) {
            careful = true;
        } else if (per_slot) {
            fuel = MIN(fuel,
                       DIV_ROUND_UP(CNTR_MASK + 1 - c->value, per_slot));
        }
        if (c->any) {
            fuel = MIN(fuel, FUEL_SHARED);
        }
    }
    fuel = knc_inject_fuel(s, ring, fuel);
    knc_observer_careful(s, careful || (s->serves & NEEDS_ORDER));
    for (int i = 0; i < KNC_PMU_RINGS; i++) {
        s->granted[i] = i == ring ? fuel : -1;
        qatomic_set(&s->word[i], (int64_t)s->granted[i] << 32);
    }
    knc_pmu_change_end(s);
}

/*
 * The slots with which the executing instruction, the last one of its block,
 * has already been charged.
 */
int knc_pmu_self(KncPmuState *s)
{
    return s->tb_flags ? 1 : 0;
}

/* Nothing is issued in so many slots. */
static void knc_pmu_delay(CPUX86State *env, uint64_t slots)
{
    KncPmuState *s = &env->knc_pmu;
    int ring = knc_pmu_current_ring(env);
    int fuel = MIN(slots, FUEL_MAX);

    knc_clock_pass(env, slots);
    if (!s->tb_flags) {
        return;
    }
    knc_pmu_change_begin(s);
    s->delayed[ring] += slots;
    s->replays[ring] += slots;
    s->stalls[ring] += slots != 0;
    /* The budget gets smaller by them, and nothing is counted twice. */
    s->granted[ring] -= fuel;
    s->word[ring] -= (int64_t)fuel << 32;
    knc_pmu_change_end(s);
}

/* DELAY: as many cycles as its operand says, of which 32 bits count */
void helper_knc_delay(CPUX86State *env, target_ulong cycles)
{
    int slot_cycles = env->knc_pmu.slot_cycles;

    knc_pmu_delay(env, DIV_ROUND_UP(MIN(cycles, UINT32_MAX),
                                    (uint64_t)slot_cycles));
}

/*
 * PAUSE, with a clock that follows what is executed: it takes a while, so that
 * who waits has not to be looked at so often, and his turn goes on.
 */
void knc_pmu_pause(CPUX86State *env)
{
    CPUState *cs = env_cpu(env);

    if (knc_clock_on()) {
        knc_pmu_delay(env, PAUSE_SLOTS);
        cs->exception_index = -1;
        cpu_loop_exit(cs);
    }
}

/*
 * Called at the start of a block that is charged with @word but might overrun
 * its budget with its @insns instructions.  Either there turns out to be
 * enough, or the block is left in favour of one that ends with the overflow.
 */
void helper_knc_pmu_refuel(CPUX86State *env, int64_t word, uint32_t insns)
{
    KncPmuState *s = &env->knc_pmu;
    int ring = knc_pmu_current_ring(env);
    uint32_t flags = s->tb_flags;
    bool raised;
    int64_t fuel;

    /* None of the block has been executed yet. */
    s->word[ring] -= word;
    knc_pmu_resolve_branch(env);
    raised = knc_pmu_fold(env);
    knc_pmu_serve(env);
    knc_pmu_refuel(env);
    fuel = s->granted[ring];

    /* Leaving the block takes the charge back, staying needs it anyway. */
    s->word[ring] += word;
    if (!raised && fuel >= insns && s->tb_flags == flags) {
        return;
    }
    s->token = 0;
    knc_tcg_leave_block(env, !raised && fuel < insns ? fuel : 0, !raised,
                        GETPC());
}

/*
 * An observed event of an instruction before this one overflows a counter,
 * which will be found out when the budget is used up.
 */
bool knc_pmu_observed_overflow(const KncPmuState *s)
{
    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        const KncPmuCounter *c = &s->counter[n];
        uint64_t value = c->value;

        for (int ring = 0; knc_pmu_near(c) && ring < KNC_PMU_RINGS; ring++) {
            value += knc_pmu_increment(s, n, ring, &s->observed[ring]);
        }
        if (value > CNTR_MASK) {
            return true;
        }
    }
    return false;
}

/* An interrupt or exception is about to be delivered. */
void knc_pmu_interrupt(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;

    s->interrupted = knc_pmu_current_ring(env);
    /* A repeated string instruction goes on later, if at all. */
    s->stalls[s->interrupted] += s->stalling;
    s->stalling = 0;
    if (s->tb_flags & HF_KNC_OBSERVE_MASK) {
        knc_pmu_flush_accesses(s);
        knc_pmu_resolve_branch(env);
        knc_pmu_flush_pipeline(env);
        s->token = 0;
    }
}

/* A branch that generated code does not count by itself */
static void knc_pmu_retire_branch(CPUX86State *env, int ring)
{
    if (env->knc_pmu.tb_flags) {
        env->knc_pmu.word[ring] += knc_pmu_word(1, 1);
    }
}

/* It has been delivered; with @is_int it is an instruction. */
void knc_pmu_interrupted(CPUX86State *env, bool is_int)
{
    if (is_int) {
        knc_pmu_retire_branch(env, env->knc_pmu.interrupted);
    }
}

/* INTO that does nothing */
void knc_pmu_into(CPUX86State *env)
{
    knc_pmu_retire_branch(env, knc_pmu_current_ring(env));
}
