/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: a clock that follows what the threads execute
 *
 * It is QEMU_CLOCK_VIRTUAL, with -icount shift=0, which -cpu knc needs, and
 * Documentation/emulator.rst has its rules (Time).  The threads have turns, of
 * which this is one:
 *
 *        reached                  own_time()                turn_end
 *   A ------+----- executes ----------+----- may execute -------+
 *   B -------------+---------------------------+----------------+
 *            other_time               other_time + LOOK    other_time + LEAD
 *
 * what         who writes it       when
 * -----------  ------------------  -------------------------------------------
 * of a thread:
 * time         spend()             its turn ends, or QEMU refills its count
 *              knc_clock_pass()    PAUSE or DELAY is longer than its budget
 *              knc_clock_wake()    it wakes: to the time of who wakes it
 * reached      spend, wake         to time
 *              knc_clock_fits()    to turn_end: it leaves the rest of its turn
 * last_read    knc_clock_tsc()     it reads the TSC
 * of the card:
 * current      pick()              a turn begins, or no thread can have one
 *              knc_clock_forget()  to NULL: the thread has halted
 * turn_end     pick()              a turn begins
 *              end_turn_by()       a timer is set, or another thread wakes
 *              knc_clock_yield()   the thread has taken a line of another core
 *              knc_clock_tsc()     the thread has to wait before it reads
 * other_time   pick(), wake        the time reached of the earliest other
 *                                  thread, which does not change meanwhile
 * previous     knc_clock_begin()   another thread begins to execute
 * latest_read  knc_clock_tsc()     a thread reads the TSC
 *              knc_clock_read()    a device reads the clock for a thread
 * present      run_timers()        the clock jumps to the timer
 *              forget, all_held()  the last thread has halted, or is held
 *
 * One thread of the host executes all threads of the card.  So no two of them
 * change anything at the same time, and the one that has its turn may change
 * the state of the others.
 *
 * The host's time says when input arrives that it sleeps for, and nothing else.
 * If the host interrupts a thread's turn, the same thread continues afterwards.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "cpu.h"
#include "internal.h"

/*
 * LEAD is how far a thread may get ahead of another one.  LOOK is how far what
 * it reads may be ahead of the other's time.  The difference is more than the
 * longest block takes: a thread never reads a value that is LEAD ahead of its
 * own time.
 */
#define LEAD            (10 * SCALE_US)
#define LOOK            (LEAD * 3 / 4)

/* Two reads of a thread differ by 2 ns, as guests may round one away. */
#define BETWEEN_READS   2

/* The longest turn, so that the monitor and the devices are served */
#define LONGEST         (100 * SCALE_MS)

/*
 * After so many jumps that woke no thread the host sleeps for a while: an idle
 * machine must not keep it busy.
 */
#define MOST_JUMPS      100
#define REST_US         10000

static struct {
    QTAILQ_HEAD(, KncClock) awake;
    CPUState *current;      /* has its turn */
    CPUState *previous;     /* has executed last */
    int64_t turn_end;       /* current's */
    int64_t other_time;     /* the earliest that another thread has reached */
    int64_t latest_read;    /* by any thread */
    int64_t present;        /* while timers run, or all threads are asleep */
    bool sleeps;            /* the host does, for what the clock skips */
    bool sleeping;
    int64_t slept_since;    /* the host's time at the present */
    int jumps;
} card = { .awake = QTAILQ_HEAD_INITIALIZER(card.awake) };

void knc_clock_set_sleeps(bool sleeps)
{
    card.sleeps = sleeps;
}

static KncClock *clock_of(CPUState *cs)
{
    return &X86_CPU(cs)->env.knc_pmu.clock;
}

/* What QEMU counts down: instructions that the thread may yet execute */
static int64_t get_left(CPUState *cs)
{
    return knc_icount_low(cs) + cs->icount_extra;
}

static void set_left(CPUState *cs, int64_t left)
{
    knc_icount_low(cs) = MIN(left, UINT16_MAX);
    cs->icount_extra = left - knc_icount_low(cs);
    cs->icount_budget = left;
}

/* What a thread has executed that its clock does not have yet */
static int64_t executed(CPUState *cs)
{
    return clock_of(cs)->budget - get_left(cs);
}

static int64_t own_time(CPUState *cs)
{
    KncPmuState *s = &X86_CPU(cs)->env.knc_pmu;

    return s->clock.time + executed(cs) * s->count.slot_cycles;
}

static void spend(CPUState *cs)
{
    KncPmuState *s = &X86_CPU(cs)->env.knc_pmu;
    KncClock *c = &s->clock;
    int64_t slots = executed(cs);

    if (slots) {
        c->budget -= slots;
        c->slots += slots;
        c->time += slots * s->count.slot_cycles;
        c->reached = c->time;
    }
}

static bool is_executing(CPUState *cs)
{
    return cs && cs->running;
}

/* This host thread asks when a timer expires: for it the clock is at 0. */
static __thread bool asking;

/*
 * When the next timer is due, or INT64_MAX.  QEMU does not
 * know since when a timer has been overdue.
 */
static int64_t next_timer(void)
{
    int64_t when;

    asking = true;
    when = timerlist_deadline_ns(main_loop_tlg.tl[QEMU_CLOCK_VIRTUAL]);
    asking = false;
    return when < 0 ? INT64_MAX : when;
}

/*
 * The present: the time of the thread that executes or has the turn, else that
 * of the timer that runs.  While the host sleeps, its time passes, though not
 * beyond the next timer.
 */
static int64_t now(void)
{
    if (is_executing(current_cpu)) {
        return own_time(current_cpu);
    }
    if (card.current) {
        return clock_of(card.current)->time;
    }
    if (card.sleeping) {
        return MIN(card.present + get_clock() - card.slept_since, next_timer());
    }
    return card.present;
}

/* End the current turn at @when if that is sooner. */
static void end_turn_by(int64_t when)
{
    if (when < card.turn_end) {
        card.turn_end = when;
        if (is_executing(card.current)) {
            knc_tcg_exit(card.current);
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

    /* Its own PMI may come with the HLT that it executes. */
    if ((asleep(cs) && !is_executing(cs)) || !QTAILQ_IN_USE(c, next)) {
        c->time = c->reached = MAX(MAX(c->time, now()),
                                   card.latest_read - LOOK);
    }
    if (!QTAILQ_IN_USE(c, next)) {
        c->cs = cs;
        QTAILQ_INSERT_TAIL(&card.awake, c, next);
        card.other_time = MIN(card.other_time, c->reached);
        end_turn_by(c->time + LEAD);
    }
}

static void knc_clock_forget(CPUState *cs)
{
    KncClock *c = clock_of(cs);

    if (QTAILQ_IN_USE(c, next)) {
        QTAILQ_REMOVE(&card.awake, c, next);
        if (QTAILQ_EMPTY(&card.awake)) {
            card.present = MAX(card.present, c->time);
        }
    }
    if (card.current == cs) {
        card.current = NULL;
    }
}

/* QEMU stops all threads; gdb may hold some while others execute. */
static bool is_held(CPUState *cs)
{
    return cs->stop || cpu_is_stopped(cs);
}

/* Returns true if no thread may execute.  No time passes then. */
static bool all_held(void)
{
    CPUState *cs;

    CPU_FOREACH(cs) {
        if (!is_held(cs)) {
            return false;
        }
    }
    if (card.sleeping) {
        card.present = now();
        card.sleeping = false;
    }
    return true;
}

/*
 * Of the threads that may execute, the one with the earliest time; *@other is
 * the next earliest time.
 */
static KncClock *earliest_thread(int64_t *other)
{
    KncClock *c, *first = NULL;

    *other = INT64_MAX;
    QTAILQ_FOREACH(c, &card.awake, next) {
        if (is_held(c->cs)) {
            continue;
        }
        if (!first || c->reached < first->reached) {
            *other = first ? first->reached : INT64_MAX;
            first = c;
        } else {
            *other = MIN(*other, c->reached);
        }
    }
    return first;
}

/* All threads have reached the next timer.  Returns false if it must wait. */
static bool run_timers(int64_t when)
{
    bool sleeping = card.sleeping;

    card.current = NULL;
    if (when == INT64_MAX || card.jumps >= MOST_JUMPS) {
        return false;
    }
    card.slept_since += when - card.present;
    card.present = when;
    /* The host may have slept for longer; the timer does not see that. */
    card.sleeping = false;
    qemu_clock_run_timers(QEMU_CLOCK_VIRTUAL);
    card.sleeping = sleeping;
    return true;
}

/* All threads are asleep: how long the host must sleep before the timer */
static int64_t left_to_sleep(int64_t timer)
{
    if (!card.sleeps) {
        return 0;
    }
    if (!card.sleeping) {
        card.sleeping = true;
        card.slept_since = get_clock();
    }
    return timer - now();
}

static CPUState *pick(void)
{
    for (;;) {
        int64_t timer = next_timer();
        int64_t other;
        KncClock *c = earliest_thread(&other);

        if (c && asleep(c->cs)) {
            knc_clock_forget(c->cs);
        } else if (c && c->reached < timer) {
            card.current = c->cs;
            card.other_time = other;
            card.jumps = 0;
            card.sleeping = false;
            other = MIN(other, c->reached + LONGEST);
            card.turn_end = MIN(timer, other + LEAD);
            return c->cs;
        } else {
            card.jumps += !c;
            if (!c && left_to_sleep(timer) > 0) {
                card.current = NULL;
                return NULL;
            }
            if (!run_timers(timer)) {
                /* It is off while gdb steps, and has to run for the next. */
                qemu_clock_enable(QEMU_CLOCK_VIRTUAL, true);
                return NULL;
            }
        }
    }
}

/*
 * Work may be waiting for a thread that does not have the turn.  QEMU kicks all
 * threads then, but the executing thread's exit_request is already cleared
 * here: look at another thread's.
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
    if (all_held() || (cs && was_kicked(cs))) {
        return NULL;
    }
    cs = cs ? cs : card.current;
    if (cs && asleep(cs)) {
        knc_clock_forget(cs);
    } else if (cs && cs == card.current && !is_held(cs) &&
               clock_of(cs)->reached < card.turn_end) {
        /* QEMU's main loop may have set a timer. */
        end_turn_by(next_timer());
        if (clock_of(cs)->reached < card.turn_end) {
            return cs;
        }
    }
    return pick();
}

/* After a kick knc_clock_next() returned early: the clock has yet to jump. */
bool knc_clock_idle(void)
{
    int64_t timer, left;

    if (all_held()) {
        return false;
    }
    timer = next_timer();
    if (timer == INT64_MAX) {
        return false;
    }
    left = left_to_sleep(timer);
    if (left > 0) {
        qemu_cond_timedwait_bql(first_cpu->halt_cond,
                                DIV_ROUND_UP(MIN(left, LONGEST), SCALE_MS));
        return true;
    }
    if (card.jumps >= MOST_JUMPS) {
        card.jumps = 0;
        bql_unlock();
        g_usleep(REST_US);
        bql_lock();
    }
    return true;
}

uint64_t knc_clock_slots(const CPUX86State *env)
{
    CPUState *cs = env_cpu((CPUX86State *)env);

    return env->knc_pmu.clock.slots + executed(cs);
}

/* Slots until a counter may overflow */
static int64_t to_overflow(const KncPmuState *s)
{
    const CPUX86State *env = container_of(s, CPUX86State, knc_pmu);

    return s->tb_flags ? s->count.stop - knc_clock_slots(env) : INT64_MAX;
}

/* Let the turn end after at most @slots. */
static void limit_to(CPUState *cs, int64_t slots)
{
    int64_t over = get_left(cs) - slots;

    if (over > 0) {
        clock_of(cs)->budget -= over;
        set_left(cs, slots);
    }
}

/* A counter may overflow before the turn ends: shorten the turn. */
void knc_clock_limit(CPUX86State *env)
{
    limit_to(env_cpu(env), MAX(to_overflow(&env->knc_pmu), 0));
}

/* The turn ends @cycles from now, but not behind the next earliest thread. */
void knc_clock_yield(CPUX86State *env, int64_t cycles)
{
    CPUState *cs = env_cpu(env);
    int64_t now = own_time(cs), end = MAX(now + cycles, card.other_time);

    if (cs == card.current && end < card.turn_end) {
        card.turn_end = end;
        limit_to(cs, DIV_ROUND_UP(end - now, env->knc_pmu.count.slot_cycles));
    }
}

/*
 * INIT is pending: for QEMU it clears what is left of the turn, which would
 * count as executed.  Leave nothing.
 */
void knc_clock_init(CPUState *cs)
{
    if (is_executing(cs)) {
        limit_to(cs, 0);
    }
}

void knc_clock_begin(CPUState *cs)
{
    KncPmuState *s = &X86_CPU(cs)->env.knc_pmu;
    int64_t left;

    if (cs != card.previous) {
        if (card.previous) {
            knc_observer_end_turn(&X86_CPU(card.previous)->env.knc_pmu);
        }
        card.previous = cs;
        knc_observer_begin_turn(s);
    }
    if (s->tb_flags) {
        knc_pmu_boundary(&X86_CPU(cs)->env);
    } else {
        s->count.slot_cycles = knc_pmu_slot_cost(&X86_CPU(cs)->env);
    }
    left = cs == card.current ? card.turn_end - s->clock.time : 0;
    left = DIV_ROUND_UP(left, s->count.slot_cycles);
    left = MAX(MIN(left, to_overflow(s)), 1);
    s->clock.budget = cs->interrupt_request & CPU_INTERRUPT_INIT ? 0 : left;
    set_left(cs, s->clock.budget);
}

void knc_clock_end(CPUState *cs)
{
    spend(cs);
    clock_of(cs)->budget = 0;
    set_left(cs, 0);
}

/*
 * End the turn with the previous block rather than translate a shorter block
 * for the rest, unless a counter may overflow there.  The thread has the rest
 * in its next turn.
 */
int knc_clock_fits(CPUState *cs, int left, int needed)
{
    KncPmuState *s = &X86_CPU(cs)->env.knc_pmu;
    KncClock *c = &s->clock;

    if (!X86_CPU(cs)->env.knc.pmu) {
        return left;
    }
    spend(cs);
    if (left >= needed || to_overflow(s) == left) {
        return left;
    }
    /* An overflow may have made the turn short, in the ring that it was in. */
    if (cs != card.current ||
        c->time + left * s->count.slot_cycles >= card.turn_end) {
        c->reached = MAX(c->reached, card.turn_end);
    }
    knc_clock_end(cs);
    return 0;
}

/* For devices: never later than LEAD after the earliest thread */
int64_t knc_clock_read(void)
{
    if (asking) {
        return 0;
    }
    if (is_executing(current_cpu)) {
        card.latest_read = MAX(card.latest_read, own_time(current_cpu));
        return card.latest_read;
    }
    return now();
}

/*
 * For an instruction that ends its block.  If this thread has to wait for
 * another one, end its turn before the instruction.
 */
uint64_t knc_clock_tsc(CPUX86State *env, uintptr_t ra)
{
    CPUState *cs = env_cpu(env);
    KncClock *c = clock_of(cs);
    int64_t time = own_time(cs);
    int64_t began = time - env->knc_pmu.count.slot_cycles;
    int64_t value = MAX(MAX(time, card.latest_read),
                        c->last_read + BETWEEN_READS);

    began = began > c->time ? began : c->reached;
    if (began > card.other_time && value > card.other_time + LOOK) {
        card.turn_end = began;
        knc_tcg_wait(env, ra);
    }
    c->last_read = card.latest_read = value;
    return value;
}

void knc_clock_armed(void)
{
    if (is_executing(card.current)) {
        end_turn_by(next_timer());
    }
}

/* Let @slots pass without an instruction, also beyond the end of the turn. */
void knc_clock_pass(CPUX86State *env, uint64_t slots)
{
    CPUState *cs = env_cpu(env);
    uint64_t low = MIN(slots, knc_icount_low(cs));
    uint64_t extra = MIN(slots - low, cs->icount_extra);

    knc_icount_low(cs) -= low;
    cs->icount_extra -= extra;
    slots -= low + extra;
    env->knc_pmu.clock.slots += slots;
    env->knc_pmu.clock.time += slots * env->knc_pmu.count.slot_cycles;
}
