/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How perf core and its x86 part call the callbacks of knc_builtin.c: what they do with two
 * counters, and what they warn of.
 */
struct event_constraint {
	unsigned long counters;
};

#define EVENT_CONSTRAINT(code, counters, mask) { counters }
static struct event_constraint unconstrained = { 3 };

static struct knc_owners {
	struct perf_event *event[2];
	unsigned long active_mask[1];
	int n_added;
} knc_owners;

#define cpu_hw_events	knc_owners
#define this_cpu_read(x) (x)
#define __clear_bit(bit, mask) (*(mask) &= ~BIT(bit))
#define COMPAT_UNTHROTTLES_STARTED newer
#define is_leaving(e)	(!is_active(e))
#define is_active(e)	((e)->hw.idx >= 0 && knc_owners.active_mask[0] >> (e)->hw.idx & 1)

static void x86_pmu_stop(struct perf_event *e, int flags);
static void unthrottle(struct perf_event *e, bool start);

#include "builtin.inc"

static void x86_pmu_stop(struct perf_event *e, int flags)
{
	if (is_active(e)) {
		knc_disable_event(e);
		__clear_bit(e->hw.idx, knc_owners.active_mask);
		HOLDS(!e->stopped, "the x86 core stops an event once");
		e->stopped = true;
	}
	e->uptodate |= flags & PERF_EF_UPDATE;
}

static void x86_pmu_start(struct perf_event *e, int flags)
{
	HOLDS(e->stopped, "the x86 core starts an event that is stopped");
	HOLDS(e->uptodate || !(flags & PERF_EF_RELOAD), "it loads one that is up to date");
	e->stopped = false;
	e->uptodate = false;
	knc_owners.active_mask[0] |= BIT(e->hw.idx);
	knc_enable_event(e);
	perf_event_update_userpage(e);
}

static bool may_have(struct perf_event *e, int idx)
{
	return knc_get_event_constraints(&knc_owners, 0, e)->counters >> idx & 1;
}

#define knc_start	x86_pmu_start
#define knc_stop	x86_pmu_stop
#define knc_enable_all(pmu) knc_enable_all(0)

/* Add an event, or a group of two. If its counter has an event, that one moves first. */
static int knc_add(struct perf_event *e, int flags)
{
	struct perf_event *other = knc_owners.event[0] ?: knc_owners.event[1];
	int idx = nondet_bool();

	ASSUME(!knc_owners.event[0] || !knc_owners.event[1]);
	ASSUME(!grouped || e == &event2 || (e == &event0 && event1.hw.idx < 0));
	if (grouped && e == &event0) {
		ASSUME(!other);
		other = &event1;
	}
	ASSUME(may_have(e, idx) && (!other || may_have(other, !idx)));
	knc_owners.n_added = 1;
	if (other && other->hw.idx != !idx) {
		bool stopped = other->hw.idx >= 0 && other->stopped;

		if (other->hw.idx >= 0) {
			x86_pmu_stop(other, PERF_EF_UPDATE);
			knc_owners.event[idx] = NULL;
		} else {
			unthrottle(other, false);
			other->uptodate = true;
		}
		other->hw.idx = !idx;
		knc_owners.event[!idx] = other;
		if (!stopped)
			x86_pmu_start(other, PERF_EF_RELOAD);
	}
	unthrottle(e, false);
	e->uptodate = true;
	e->hw.idx = idx;
	knc_owners.event[idx] = e;
	x86_pmu_start(e, PERF_EF_RELOAD);
	knc_owners.n_added = 0;
	return 0;
}

static void knc_del(struct perf_event *e, int flags)
{
	x86_pmu_stop(e, PERF_EF_UPDATE);
	knc_owners.event[e->hw.idx] = NULL;
	e->hw.idx = -1;
}
