/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An event on its counter: periods, and how a counter is loaded and read. The
 * counter is stopped, or soft-masking keeps the PMI out (knc_softmask.h).
 */
#ifndef _KNC_COUNTER_H
#define _KNC_COUNTER_H

#include <linux/bitops.h>
#include <linux/minmax.h>
#include <linux/perf_event.h>

#include "knc_softmask.h"

/* Signed, as programs that use RDPMC take a counter to be: it counts up to 0. */
static inline s64 knc_counter_to_signed(u64 value)
{
	return sign_extend64(value, KNC_COUNTER_WIDTH - 1);
}

/**
 * knc_event_account() - add to an event what its counter has counted
 * @event: the event in slot @idx
 * @idx: its counter
 *
 * An NMI may do the same between any two instructions while the counter is stopped:
 * what one has added the other finds in prev_count.
 *
 * Return: the counter, sign-extended; it is negative until it wraps.
 */
static inline s64 knc_event_account(struct perf_event *event, unsigned int idx)
{
	struct hw_perf_event *hwc = &event->hw;
	s64 now = knc_counter_to_signed(knc_rdpmc(idx));
	u64 delta = (now - local64_xchg(&hwc->prev_count, now)) & KNC_COUNTER_BITS;

	local64_add(delta, &event->count);
	local64_sub(delta, &hwc->period_left);

	return now;
}

/**
 * knc_event_next_period() - work out what an event's counter is to be loaded with
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
	s64 period = hwc->sample_period;

	if (left <= 0) {
		/* More than a whole period late: begin anew. */
		if (left <= -period)
			left = 0;
		left += period;
		local64_set(&hwc->period_left, left);
		hwc->last_period = period;
	}

	return -min_t(s64, left, KNC_MAX_PERIOD);
}

/**
 * knc_event_load() - put an event on its counter, for what is left of its period
 * @kc: the PMU of this hardware thread, in KNC_STOP or KNC_PMI
 * @event: the event; the counter's PerfEvtSel is its own
 * @idx: a counter whose slot is empty or has @event
 *
 * A program adds what it reads by RDPMC to what the event's page says, so the page
 * is brought up to date with each load.
 */
static inline void knc_event_load(struct knc_cpu *kc, struct perf_event *event,
				  unsigned int idx)
{
	s64 value;

	/* While it is written, an NMI that reads the event gets its last count. */
	knc_fill_slot(kc, idx, NULL);
	value = knc_event_next_period(event);
	local64_set(&event->hw.prev_count, value);
	knc_write_counter(idx, value);
	knc_fill_slot(kc, idx, event);

	if (compat_event_has_rdpmc(event))
		perf_event_update_userpage(event);
}

#endif /* _KNC_COUNTER_H */
