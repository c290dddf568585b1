/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: a clock that follows what the threads execute
 *
 * With -icount shift=0,sleep=off and card-clock=on.  One host thread executes
 * all threads in turn.  Each has a time of its own, in cycles, which are
 * nanoseconds; it goes on as CPU_CLK_UNHALTED does, by what each of its issue
 * slots costs.  The thread that is furthest behind is the next to execute,
 * until it is a little ahead of the one that was next to it.  So no thread that
 * executes is far from any other, and a timer is due when all have come there.
 *
 * Who looks at the clock sees his own time, or a little more than what anybody
 * has seen before, if that is later: for nobody does it ever go back.  A halted
 * thread has no time.  It goes on at that of whoever wakes it, and while all
 * are halted the clock jumps to the next timer.
 *
 * Nothing of this asks the host for its time.  A thread whose turn is
 * interrupted by something in the host goes on before any other.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "cpu.h"
#include "accel/tcg/knc-clock.h"
#include "internal.h"

/* So far may a thread get ahead of another one */
#define LEAD            (10 * SCALE_US)

/* The longest turn, for those who look in from outside */
#define LONGEST         (100 * SCALE_MS)

/*
 * So often does the clock jump without any thread waking up before the host
 * gets some rest: a machine that waits for nothing is not to keep it busy.
 */
#define MOST_JUMPS      100
#define REST_US         10000

static struct {
    bool on;
    QTAILQ_HEAD(, KncClock) awake;
    CPUState *current;      /* whose turn it is, */
    int64_t horizon;        /* and until when */
    int jumps;
} card = { .awake = QTAILQ_HEAD_INITIALIZER(card.awake) };

bool knc_clock_on(void)
{
    return card.on;
}

void knc_clock_enable(void)
{
    card.on = true;
}

static KncClock *clock_of(CPUState *cs)
{
    return &X86_CPU(cs)->env.knc_pmu.clock;
}

/* A thread that executes has a time that has not been accounted for yet. */
static int64_t own_time(CPUState *cs)
{
    KncPmuState *s = &X86_CPU(cs)->env.knc_pmu;
    int64_t executed = cs->icount_budget -
                       (knc_icount_low(cs) + cs->icount_extra);

    return s->clock.time + executed * s->slot_cycles;
}

static bool is_executing(CPUState *cs)
{
    return cs && cs->running;
}

/*
 * The time of what happens now: that of the thread that executes, or has just
 * done so and left something to be done, or else a timer's.
 */
static int64_t now(void)
{
    if (is_executing(current_cpu)) {
        return own_time(current_cpu);
    }
    if (card.current) {
        return clock_of(card.current)->time;
    }
    return knc_icount_get();
}

/* The turn of whoever executes ends sooner. */
static void shorten(int64_t horizon)
{
    if (horizon < card.horizon) {
        card.horizon = horizon;
        if (is_executing(card.current)) {
            cpu_exit(card.current);
        }
    }
}

static bool asleep(CPUState *cs)
{
    return cs->halted && !cpu_has_work(cs);
}

void knc_clock_wake(CPUState *cs)
{
    KncClock *c = clock_of(cs);

    if (!card.on) {
        return;
    }
    if (asleep(cs) || !c->awake) {
        c->time = c->reached = MAX(c->time, now());
    }
    if (!c->awake) {
        c->awake = true;
        c->cs = cs;
        QTAILQ_INSERT_TAIL(&card.awake, c, next);
        shorten(c->time + LEAD);
    }
}

void knc_clock_forget(CPUState *cs)
{
    KncClock *c = clock_of(cs);

    if (c->awake) {
        c->awake = false;
        QTAILQ_REMOVE(&card.awake, c, next);
    }
    if (card.current == cs) {
        card.current = NULL;
    }
}

/* The thread that is furthest behind; what the next to it has reached */
static KncClock *last_of_all(int64_t *next)
{
    KncClock *c, *last = NULL;

    *next = INT64_MAX;
    QTAILQ_FOREACH(c, &card.awake, next) {
        if (!last || c->reached < last->reached) {
            *next = last ? last->reached : INT64_MAX;
            last = c;
        } else {
            *next = MIN(*next, c->reached);
        }
    }
    return last;
}

/* When the next timer is due, or INT64_MAX */
static int64_t next_timer(void)
{
    int64_t left = qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL,
                                              QEMU_TIMER_ATTR_ALL);

    return left < 0 ? INT64_MAX : knc_icount_get() + left;
}

/* All have come as far as the next timer.  Returns false if it cannot be. */
static bool run_timers(int64_t when)
{
    card.current = NULL;
    if (when == INT64_MAX || card.jumps >= MOST_JUMPS) {
        return false;
    }
    knc_icount_set(MAX(when, knc_icount_get()));
    qemu_clock_run_timers(QEMU_CLOCK_VIRTUAL);
    return true;
}

static CPUState *pick(void)
{
    for (;;) {
        int64_t timer = next_timer();
        int64_t next;
        KncClock *c = last_of_all(&next);

        if (c && asleep(c->cs)) {
            knc_clock_forget(c->cs);
        } else if (c && c->reached < timer) {
            card.current = c->cs;
            card.jumps = 0;
            next = MIN(next, c->reached + LONGEST);
            card.horizon = MIN(timer, next + LEAD);
            return c->cs;
        } else {
            card.jumps += !c;
            if (!run_timers(timer)) {
                return NULL;
            }
        }
    }
}

/*
 * There may be work for a thread whose turn it is not.  Whoever has some kicks
 * all threads, and the one that executes has forgotten that when it comes here.
 */
static bool was_kicked(CPUState *cs)
{
    CPUState *other = cs == first_cpu ? CPU_NEXT(cs) : first_cpu;

    if (!other || !qatomic_read(&other->exit_request)) {
        return false;
    }
    qatomic_set(&other->exit_request, 0);
    return true;
}

CPUState *knc_clock_next(CPUState *cs)
{
    if (!card.on) {
        return cs ? CPU_NEXT(cs) : first_cpu;
    }
    if (cs && (cs->stop || cpu_is_stopped(cs))) {
        return CPU_NEXT(cs);
    }
    if (cs && was_kicked(cs)) {
        return NULL;
    }
    cs = cs ? cs : card.current;
    if (cs && asleep(cs)) {
        knc_clock_forget(cs);
    } else if (cs && cs == card.current &&
               clock_of(cs)->reached < card.horizon) {
        return cs;
    }
    return pick();
}

/* Whoever was kicked has had no turn, and so the clock has not jumped yet. */
bool knc_clock_idle(void)
{
    if (!card.on || next_timer() == INT64_MAX) {
        return false;
    }
    if (card.jumps >= MOST_JUMPS) {
        card.jumps = 0;
        bql_unlock();
        g_usleep(REST_US);
        bql_lock();
    }
    return true;
}

/* The others of the core may have been halted, or woken. */
static void share_core(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;

    if (knc_pmu_slot_cost(env) != s->slot_cycles) {
        if (s->tb_flags) {
            knc_pmu_boundary(env);
        } else {
            s->slot_cycles = knc_pmu_slot_cost(env);
        }
    }
}

int64_t knc_clock_budget(CPUState *cs, int64_t budget)
{
    KncPmuState *s = &X86_CPU(cs)->env.knc_pmu;
    int64_t left;

    if (!card.on) {
        return budget;
    }
    share_core(&X86_CPU(cs)->env);
    left = cs == card.current ? card.horizon - s->clock.time : 0;
    return MAX(DIV_ROUND_UP(left, s->slot_cycles), 1);
}

/*
 * The turn ends with the block before, instead of a block that is made to end
 * there.  What is left is had with the next one.
 */
int knc_clock_fits(CPUState *cs, int left, int needed)
{
    if (!card.on || left >= needed) {
        return left;
    }
    clock_of(cs)->reached = MAX(clock_of(cs)->reached, card.horizon);
    cs->icount_budget = 0;
    cs->icount_extra = 0;
    knc_icount_low(cs) = 0;
    return 0;
}

int64_t knc_clock_spend(CPUState *cs, int64_t executed)
{
    if (!card.on) {
        return executed;
    }
    if (executed) {
        clock_of(cs)->time += executed * X86_CPU(cs)->env.knc_pmu.slot_cycles;
        clock_of(cs)->reached = clock_of(cs)->time;
    }
    return 0;
}

/*
 * For whoever is behind what others have seen the clock does not stand still:
 * what he did between two looks took some time, also for a guest that rounds a
 * nanosecond away.
 */
int64_t knc_clock_read(CPUState *cs, int64_t now)
{
    int64_t time = clock_of(cs)->time;

    return card.on && time != now ? MAX(time, now + 2) : now;
}

bool knc_clock_armed(void)
{
    if (card.on && is_executing(card.current)) {
        shorten(next_timer());
    }
    return card.on;
}

/* Nothing is issued in so many slots: the rest of the turn, and maybe more. */
void knc_clock_pass(CPUX86State *env, uint64_t slots)
{
    CPUState *cs = env_cpu(env);
    uint64_t low, extra;

    if (card.on) {
        low = MIN(slots, knc_icount_low(cs));
        extra = MIN(slots - low, cs->icount_extra);
        knc_icount_low(cs) -= low;
        cs->icount_extra -= extra;
        env->knc_pmu.clock.time += (slots - low - extra) *
                                   env->knc_pmu.slot_cycles;
    }
}
