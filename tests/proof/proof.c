// SPDX-License-Identifier: GPL-2.0-only
/*
 * Induction over the driver's operations: from any state that satisfies the invariant, each
 * of them, with all that may happen at each of its places, ends in a state that satisfies it,
 * and breaks no rule on the way. So does any sequence of them. test_proof.py has the list.
 *
 * Three events are enough: one for each counter, and one that has none. Event 0 is counter
 * 0's, if any is, and event 1 counter 1's: the events differ in nothing else.
 */
#include "kernel.h"

static bool running, in_pmi;

/* What is proved: OPERATION, FROM a state TO a state, of an EVENT; test_proof.py defines them. */
enum operation {
	IDLE, PMI, READER, ENABLE, DISABLE, READ, START, STOP, ADD, DEL, QUIESCE, RESET,
	TICK, PERIOD,
};

static const enum operation operation = OPERATION;

/* Linux 6.16 and later, where events 0 and 1 may be a group: it is throttled together. */
static bool newer, grouped;
static struct perf_event event0, event1, event2;
static struct pmu pmu;

enum { BY_TASK, BY_PMI, BY_REPLAY };

#include "knc_softmask.h"

/* Who writes now, by the table. A reader is the task side. */
static unsigned int writer(void)
{
	return in_pmi ? BY_PMI : nmi_level ? BY_REPLAY : BY_TASK;
}

#include "table.h"

#define TABLE(what) do {						\
	HOLDS(table_##what[writer()] >> knc_pmus.state & 1,		\
	      "table of knc_softmask.h: who writes " #what ", and when"); \
	if (REACH == 2)							\
		broken_##what();					\
} while (0)

#include "knc_pmu.c"
#include "knc_pmi.c"
#if BUILTIN
#include "core.h"
#else
#include "knc_sched.c"
#define is_leaving(e)	false
#endif

static bool was_pending;
static void handled_pmis(void);
static void check_quiesced(void);
static void split_status(void);

#include "hardware.h"
#include "invariant.h"

static const enum knc_state from = FROM, to = TO;
#define target (EVENT == 0 ? &event0 : EVENT == 1 ? &event1 : &event2)

/* --- the rest of the driver, and perf core ------------------------------------------ */

void knc_user_regs(struct pt_regs *user, const struct pt_regs *regs)
{
	user->user = true;
}

unsigned long knc_event_counters(const struct perf_event *e)
{
	return e->counter0 ? 1 : 3;
}

void knc_spflt_reset(struct knc_cpu_pmu *kc)
{
	place();
	TABLE(filters);
}

void knc_spflt_update(struct knc_cpu_pmu *kc)
{
	place();
	TABLE(filters);
	HOLDS(!hw.ctrl, "the filters are written while the counters are stopped");
}

/* The event whose delivery has throttled it */
static struct perf_event *throttled;
static void new_period(struct perf_event *e, bool begins);

static bool is_exact(unsigned int i)
{
	const struct perf_event *e = knc_pmus.event[i];

	return !e || (u64)(e->count.value + uncounted(i)) == counted(e);
}

static void throttle(struct perf_event *e)
{
	e->hw.interrupts = ~0UL;
	e->throttled = true;
}

/*
 * perf core takes a sample, and counts it in hw.interrupts, whose mark wraps. It may change the
 * period, and throttle the event or its group.
 */
int perf_event_overflow(struct perf_event *e, struct perf_sample_data *data, struct pt_regs *regs)
{
	struct perf_event *other = e == &event0 ? &event1 : &event0;

	HOLDS(knc_pmus.state == KNC_PMI, "a sample is taken in KNC_PMI");
	HOLDS(!hw.ctrl, "a sample is taken while the counters are stopped");
	HOLDS(nmi_level, "a sample is taken at NMI level");
	HOLDS(is_over(e), "a sample is taken when the period is over");
	HOLDS(!e->sampled, "a period has one sample");
	HOLDS(data->period == e->hw.last_period, "a sample has the period that is over");
	HOLDS(!e->attr.exclude_kernel || user_mode(regs), "a sample of user mode has no others");
	place();
	HOLDS(is_exact(0) && is_exact(1), "a count that is read with a sample is exact");
	e->sampled = true;
	e->hw.interrupts = nondet_bool() ? 1 : e->hw.interrupts + 1;
	if (nondet_bool())
		new_period(e, false);
	/* Linux 6.16 stops the others of the group. To stop the event itself is to return 1. */
	if (nondet_bool()) {
		if (grouped && e != &event2 && other->hw.idx >= 0) {
			throttle(other);
			other->pmu->stop(other, 0);
		}
		throttle(e);
		throttled = e;
		return 1;
	}
	if (nondet_bool())
		return 0;
	throttled = e;
	return 1;
}

/* perf core's mark is gone, and the event starts. */
static void unthrottle(struct perf_event *e, bool start)
{
	e->hw.interrupts = 0;
	e->throttled = false;
	if (start)
		knc_start(e, 0);
}

static void unthrottle_group(struct perf_event *e, bool start)
{
	struct perf_event *other = e == &event0 ? &event1 : &event0;

	unthrottle(e, start);
	if (grouped && e != &event2 && other->hw.idx >= 0)
		unthrottle(other, true);
}

/* The event has a new period, which may begin at once: nothing of the old one is due. */
static void new_period(struct perf_event *e, bool begins)
{
	e->hw.sample_period = nondet_u64();
	ASSUME(e->hw.sample_period >= 1 && e->hw.sample_period < BIT(WIDTH - 2));
	if (begins) {
		e->hw.period_left.value = 0;
		e->sampled = true;
	}
}

/* perf core's tick unthrottles an event, and gives one with a frequency another period. */
static void tick(struct perf_event *e)
{
	bool reload = nondet_bool();

	if (knc_event_is_throttled(e))
		unthrottle_group(e, !e->attr.freq);
	if (!e->attr.freq)
		return;
	knc_stop(e, PERF_EF_UPDATE);
	if (reload)
		new_period(e, nondet_bool());
	knc_start(e, reload ? PERF_EF_RELOAD : 0);
}

/* PERF_EVENT_IOC_PERIOD */
static void set_period(struct perf_event *e)
{
	if (!newer && knc_event_is_throttled(e))
		unthrottle(e, false);
	knc_stop(e, PERF_EF_UPDATE);
	new_period(e, true);
	knc_start(e, PERF_EF_RELOAD);
	if (newer && knc_event_is_throttled(e))
		unthrottle_group(e, false);
}

/* --- where an operation is cut ---------------------------------------------------- */

/*
 * knc_pmu_enable() at the end of another operation is ENABLE, and so is its second round:
 * here the operation ends.
 */
static void before_read(const volatile void *what)
{
	static unsigned char rounds, slots;

	if (operation == READER && what == &knc_pmus.pending) {
		HOLDS(!knc_pmus.pending, "a reader by itself replays nothing");
		knc_pmus.pending = false;	/* as it is: this is for the solver */
	}
	if (!running || in_pmi || knc_pmus.state != KNC_STOP)
		return;
	/* The third slot that is read in STOP is behind knc_pmu_disable(): for the solver. */
	if (from == KNC_RUN && (what == &knc_pmus.event[0] || what == &knc_pmus.event[1]) &&
	    ++slots == 3) {
		HOLDS(!hw.ctrl, "the counters are stopped behind knc_pmu_disable()");
		hw.ctrl = 0;
	}
	if (what == &knc_pmus.pending && ++rounds == (operation == ENABLE ? 2 : 1)) {
		running = false;
		HOLDS(operation != ENABLE || !was_pending, "no round follows a replay");
		invariant(false, KNC_STOP, false, true);
		REACHED(true);
		ASSUME(false);
	}
}

/* --- the cases of an operation ----------------------------------------------------- */

/* What STATUS is when the PMI reads it */
static void split_status(void)
{
	if (STATUS < 4) {
		ASSUME(hw.status == STATUS);
		hw.status = STATUS;
	}
}

/* A counter is nobody's (0), its event is stopped (1), or on it (2); 3 is any of these. */
static void any_slot(unsigned int i, unsigned int slot)
{
	struct perf_event *e = i ? &event1 : &event0;
	bool owned = slot < 3 ? slot : nondet_bool(), on = slot < 3 ? slot == 2 : nondet_bool();

	knc_owners.event[i] = owned ? e : NULL;
	knc_pmus.event[i] = owned && on && from != KNC_OFF ? e : NULL;
}

static void any_event(struct perf_event *e)
{
	any_counts(e);
	e->pmu = &pmu;
	e->attr.exclude_kernel = nondet_bool();
	e->attr.freq = nondet_bool();
	e->hw.config = (u64)nondet_u32();
	e->hw.idx = nondet_u32();
	e->counter0 = nondet_bool();
	e->rdpmc = nondet_bool();
}

/* Any state that satisfies the invariant */
static void begin(void)
{
	bool runs = from == KNC_RUN || operation == PMI;

	hw.mask_late = LATE;
	any_registers();
	hw.evtsel[0] = (u64)nondet_u32();
	hw.evtsel[1] = (u64)nondet_u32();
	knc_pmus.evtsel[0] = hw.evtsel[0];
	knc_pmus.evtsel[1] = hw.evtsel[1];
	any_event(&event0);
	any_event(&event1);
	any_event(&event2);
	pmu.stop = knc_stop;
	newer = nondet_bool();
	grouped = newer && nondet_bool();
	any_slot(0, SLOT0);
	any_slot(1, SLOT1);
	knc_pmus.state = from;
	was_pending = (from == KNC_STOP || operation == PMI || operation == DISABLE ||
		       operation == READ) && nondet_bool();
	knc_pmus.pending = was_pending;
	hw.ctrl = runs && (!knc_pmus.pending || from == KNC_STOP || nondet_bool()) ? filled() : 0;
	invariant(true, from, runs, true);
	if (operation == PMI && from == KNC_STOP)
		ASSUME(hw.ctrl);	/* beside a write of GLOBAL_CTRL */
	if (operation == RESET) {
		/* INIT leaves the registers as they were (1.4.4), and edges may have been lost. */
		any_registers();
		hw.swallowed = true;
		hw.ctrl = nondet_u32() & 3;
		hw.evtsel[0] = nondet_u32();
		hw.evtsel[1] = nondet_u32();
		knc_pmus.pending = nondet_bool();
		was_pending = knc_pmus.pending;
	}
}

/* In any state, of any events: one reader does what read_anywhere() does. */
static void prove_reader(void)
{
	unsigned int i = is_on(target, 0) ? 0 : 1;
	struct perf_event was;
	bool reads;

	any_counts(target);
	hw.ctrl = nondet_u32() & 3;
	knc_pmus.state = nondet_u32() % (KNC_PMI + 1);
	knc_pmus.pending &= knc_pmus.state != KNC_RUN;
	was = *target;
	reads = (may_read() || knc_pmus.state == KNC_RUN) && is_on(target, i);
	if (reads) {
		u64 more = uncounted(i);

		was.count.value += more;
		was.hw.period_left.value -= more;
		was.hw.prev_count.value = counter(i);
	}
	nmi_level = knc_pmus.state == KNC_PMI;
	knc_event_read(target);
	HOLDS(target->count.value == was.count.value, "a reader adds what was not counted");
	HOLDS(target->hw.period_left.value == was.hw.period_left.value, "... off the period");
	HOLDS(target->hw.prev_count.value == was.hw.prev_count.value, "... and notes the counter");
}

int main(void)
{
	struct before was;
	u64 most;
	bool own, stopped;

	begin();
	was = before();
	if (operation == READER) {
		prove_reader();
		REACHED(true);
		return 0;
	}
	running = true;
	switch (operation) {
	case PMI:
		own = OWN;
		ASSUME(!own || hw.coming);
		deliver_nmi(own);
		running = false;
		rules_of_pmis(false, &was);
		invariant(false, from, true, false);
		REACHED(true);
		return 0;
	case ENABLE:
		knc_enable_all(NULL);
		break;
	case DISABLE:
		knc_pmu_disable(&knc_pmus);
		break;
	case READ:
		most = counted(target);
		knc_event_read(target);
		HOLDS((s64)(target->count.value - most) >= 0, "a read has all that was counted");
		break;
	case START:
		ASSUME(target->hw.idx >= 0);
		knc_start(target, PERF_EF_RELOAD);
		break;
	case STOP:
		stopped = knc_event_stop(target);
		HOLDS(!is_on(target, 0) && !is_on(target, 1), "a stopped event is in no slot");
		HOLDS(!stopped || was.cpu.event[0] == target || was.cpu.event[1] == target,
		      "knc_event_stop() tells whether the event was on a counter");
		HOLDS(!stopped || throttled != target, "... and not if that has throttled it");
		break;
	case ADD:
		ASSUME(target->hw.idx < 0);
		knc_add(target, PERF_EF_START);
		break;
	case DEL:
		ASSUME(target->hw.idx >= 0);
		knc_del(target, 0);
		HOLDS(target->hw.idx == -1, "a deleted event has no counter");
		break;
	case TICK:
	case PERIOD:
		ASSUME(target->hw.idx >= 0);
		if (operation == TICK)
			tick(target);
		else
			set_period(target);
		break;
	case QUIESCE:
		ASSUME(!filled());	/* perf core has taken the events off */
		knc_pmu_quiesce(&knc_pmus);
		break;
	case RESET:
		knc_pmu_reset(&knc_pmus);
		break;
	}
	place();
	running = false;
	invariant(false, to, to == KNC_RUN, to == KNC_STOP);
	REACHED(true);
	return 0;
}
