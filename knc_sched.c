// SPDX-License-Identifier: GPL-2.0-only
/*
 * Front end of the Knights Corner PMU: how a module schedules events on two counters. Built
 * in, the kernel's x86 perf core does.
 */
#include <linux/perf_event.h>

#include "knc_pmu.h"

/* The event that owns each counter. It keeps the counter while it is stopped. */
struct knc_owners {
	struct perf_event *event[KNC_NUM_COUNTERS];
};

static DEFINE_PER_CPU(struct knc_owners, knc_owners);

/* Prefer a counter whose PerfEvtSel has this event already: that saves a write. */
static int knc_pick_counter(const struct perf_event *event, unsigned long counters)
{
	const struct knc_cpu_pmu *kc = this_cpu_ptr(&knc_pmus);
	unsigned long idx;

	for_each_set_bit(idx, &counters, KNC_NUM_COUNTERS)
		if (kc->evtsel[idx] == event->hw.config)
			return idx;

	/* Counter 1 first: some events can only use counter 0. */
	return __fls(counters);
}

static void knc_give_counter(struct knc_owners *owners, struct perf_event *event, int idx)
{
	owners->event[idx] = event;
	event->hw.idx = idx;
}

/* The counters are stopped, so no count is lost. */
static void knc_move(struct knc_owners *owners, struct perf_event *event, int idx)
{
	bool counts = knc_event_stop(event);

	knc_give_counter(owners, event, idx);
	if (counts)
		knc_event_start(event);
}

/* With two counters, at most one event has to move. */
static int knc_find_counter(struct knc_owners *owners, struct perf_event *event)
{
	unsigned long counters = knc_event_counters(event);
	unsigned long free = (owners->event[0] ? 0 : BIT(0)) | (owners->event[1] ? 0 : BIT(1));
	struct perf_event *other;
	int idx;

	if (counters & free)
		return knc_pick_counter(event, counters & free);
	if (!free)
		return -EAGAIN;

	idx = __ffs(counters);
	other = owners->event[idx];
	if (!(knc_event_counters(other) & free))
		return -EAGAIN;

	knc_move(owners, other, __ffs(free));
	return idx;
}

/* The callbacks of struct pmu. Interrupts are off in all of them. */

static void knc_disable_all(struct pmu *pmu)
{
	knc_pmu_disable(this_cpu_ptr(&knc_pmus));
}

static void knc_enable_all(struct pmu *pmu)
{
	knc_pmu_enable(this_cpu_ptr(&knc_pmus));
}

static void knc_stop(struct perf_event *event, int flags)
{
	knc_event_stop(event);
}

static void knc_start(struct perf_event *event, int flags)
{
	if (knc_find_slot(this_cpu_ptr(&knc_pmus), event) >= 0)
		return;

	knc_event_start(event);
	perf_event_update_userpage(event);
}

static int knc_add(struct perf_event *event, int flags)
{
	struct knc_owners *owners = this_cpu_ptr(&knc_owners);
	struct knc_cpu_pmu *kc = this_cpu_ptr(&knc_pmus);
	int idx;

	/* A CPU that comes online may run tasks before knc_cpu_online(). */
	if (kc->state == KNC_OFF)
		knc_pmu_reset(kc);

	idx = knc_find_counter(owners, event);
	if (idx < 0)
		return idx;

	knc_give_counter(owners, event, idx);
	if (flags & PERF_EF_START)
		knc_start(event, PERF_EF_RELOAD);

	return 0;
}

static void knc_del(struct perf_event *event, int flags)
{
	knc_event_stop(event);
	this_cpu_ptr(&knc_owners)->event[event->hw.idx] = NULL;
	event->hw.idx = -1;
	perf_event_update_userpage(event);
}

const struct pmu knc_pmu_callbacks = {
	.task_ctx_nr	= perf_hw_context,
	.pmu_enable	= knc_enable_all,
	.pmu_disable	= knc_disable_all,
	.add		= knc_add,
	.del		= knc_del,
	.start		= knc_start,
	.stop		= knc_stop,
	.read		= knc_event_read,
};
