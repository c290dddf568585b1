/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An event on its counter: periods, and how the counter is loaded and read. The counter
 * is stopped, or the PMI is soft-masked (knc_softmask.h).
 */
#ifndef _KNC_COUNTER_H
#define _KNC_COUNTER_H

#include <linux/bitops.h>
#include <linux/minmax.h>
#include <linux/perf_event.h>

#include "knc_softmask.h"

/* hw.interrupts of an event that perf core has throttled: MAX_INTERRUPTS of its core.c */
#define KNC_THROTTLED		(~0ULL)

static inline bool knc_event_is_throttled(const struct perf_event *event)
{
	return event->hw.interrupts == KNC_THROTTLED;
}

/**
 * knc_event_account() - add a counter's new counts to its event
 * @event: the event in slot @idx
 * @idx: its counter
 *
 * While the counter is stopped an NMI may account for the same event between any two of
 * these instructions. Because they exchange prev_count, every count is added only once.
 *
 * Return: the counter, sign-extended as by programs that use RDPMC: negative until it wraps.
 */
static inline s64 knc_event_account(struct perf_event *event, unsigned int idx)
{
	struct hw_perf_event *hwc = &event->hw;
	s64 now = sign_extend64(knc_read_counter(idx), KNC_COUNTER_WIDTH - 1);
	u64 delta = (now - local64_xchg(&hwc->prev_count, now)) & KNC_COUNTER_BITS;

	knc_assert(knc_may_account(this_cpu_ptr(&knc_pmus)));
	local64_add(delta, &event->count);
	local64_sub(delta, &hwc->period_left);

	return now;
}

/**
 * knc_event_next_period() - compute the value to load into an event's counter
 * @event: an event whose count is up to date, in no slot
 *
 * To overflow on the N-th event a counter starts at 2^40 - N. A period that does
 * not fit is counted in parts.
 *
 * Return: the counter, sign-extended.
 */
static inline s64 knc_event_next_period(struct perf_event *event)
{
	struct hw_perf_event *hwc = &event->hw;
	s64 left = local64_read(&hwc->period_left);
	s64 period = compat_sample_period(hwc);

	if (left <= 0) {
		/* At least a whole period late: drop the missed periods. */
		if (left <= -period)
			left = 0;
		left += period;
		local64_set(&hwc->period_left, left);
		hwc->last_period = period;
	}

	return -min_t(s64, left, KNC_MAX_PERIOD);
}

/**
 * knc_event_load() - put an event on its counter, for the rest of its period
 * @kc: the PMU of this hardware thread, in KNC_STOP or KNC_PMI
 * @event: the event; the counter's PerfEvtSel has its code
 * @idx: a counter whose slot is empty or has @event
 *
 * A program that uses RDPMC adds the counter to the offset in the event's page, so every
 * load updates the page.
 */
static inline void knc_event_load(struct knc_cpu_pmu *kc, struct perf_event *event,
				  unsigned int idx)
{
	s64 value;

	/* With the slot empty, an NMI that reads the event gets its last count. */
	knc_fill_slot(kc, idx, NULL);
	value = knc_event_next_period(event);
	local64_set(&event->hw.prev_count, value);
	knc_write_counter(idx, value);
	knc_fill_slot(kc, idx, event);

	if (compat_event_has_rdpmc(event))
		perf_event_update_userpage(event);
}

#endif /* _KNC_COUNTER_H */
