/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The backend's interior: what knc_pmu.c, knc_pmi.c and spflt.c share with each
 * other and with their two hosts, knc_module.c and knc_builtin.c.
 */
#ifndef _KNC_PMU_H
#define _KNC_PMU_H

#include <linux/bitops.h>
#include <linux/cache.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/static_call.h>

#include "knc_pmu_msr.h"

struct pt_regs;
struct tracepoint;

/**
 * struct knc_cpu - the PMU of one hardware thread, as the driver left it
 * @active:	counters whose event runs; GLOBAL_CTRL holds this, or 0 while stopped
 * @ctrl:	what GLOBAL_CTRL holds
 * @value:	what each stopped counter holds, valid for the counters in @known
 * @evtsel:	what each PerfEvtSel holds
 * @known:	counters whose @value is that of the register
 * @filtered:	counters that shall count what SPFLT lets through
 * @filters:	what PERF_SPFLT_CONTROL holds of that
 * @enabled:	the host wants the counters in @active to run
 * @ready:	the registers are the driver's, and were put into a known state
 * @shared:	another driver writes GLOBAL_CTRL, too, see knc_stop_counters()
 * @event:	the event on each counter; the host says which
 *
 * It spares the driver every read of a register and every write that would not
 * change one. It belongs to its CPU: the PMI and code with interrupts off on
 * that CPU are all that use it. The PMI changes what belongs to counters in
 * @active only, everyone else what belongs to the others only; a counter enters
 * and leaves @active by one instruction. One cache line, shared with nobody.
 */
struct knc_cpu {
	unsigned long active;
	u32 ctrl;
	u64 value[KNC_NUM_COUNTERS];
	u32 evtsel[KNC_NUM_COUNTERS];
	u8 known;
	u8 filtered;
	u8 filters;
	bool enabled;
	bool ready;
	bool shared;
	struct perf_event *event[KNC_NUM_COUNTERS];
} ____cacheline_aligned;

DECLARE_PER_CPU_ALIGNED(struct knc_cpu, knc_cpu);

/* knc_pmu.c: the backend */
extern const struct attribute_group knc_pmu_format_group;
extern const struct attribute_group knc_pmu_events_group;

int knc_pmu_probe(void);
void knc_pmu_reset(struct knc_cpu *kc);
void knc_pmu_quiesce(struct knc_cpu *kc);
void knc_pmu_clear_stale(struct knc_cpu *kc);

int knc_event_config(struct perf_event *event);
unsigned long knc_event_counters(const struct perf_event *event);
void knc_event_enable(struct perf_event *event);
void knc_event_disable(struct perf_event *event);
u64 knc_event_update(struct perf_event *event);
bool knc_event_set_period(struct perf_event *event);

/* knc_pmi.c: the interrupt */
int knc_pmi(struct pt_regs *regs);

/* spflt.c: user-controlled counting */
int knc_spflt_event_init(struct perf_event *event);
void knc_spflt_event_destroy(struct perf_event *event);
void knc_spflt_enable(struct knc_cpu *kc, struct perf_event *event);
void knc_spflt_disable(struct perf_event *event);
void knc_spflt_resume(struct knc_cpu *kc);
void knc_spflt_reset(struct knc_cpu *kc);
void knc_spflt_exit(void);
struct tracepoint *knc_find_tracepoint(const char *name);

/* Supplied by the host. A sample's delivery is perf core's, a direct call. */
#ifdef MODULE
DECLARE_STATIC_CALL(knc_perf_event_overflow, perf_event_overflow);
#define knc_host_overflow	static_call(knc_perf_event_overflow)
#else
#define knc_host_overflow	perf_event_overflow
#endif
void knc_host_stop(struct perf_event *event);
bool knc_host_may_count_any(const struct perf_event *event);

/* attr.config1 */
#define KNC_CONFIG1_SPFLT	BIT_ULL(0)

/*
 * Counters run and stop through GLOBAL_CTRL alone: one write for both, and
 * PerfEvtSel keeps its enable bit. The register is the driver's own, so it is
 * never read (1.4.3.7).
 *
 * Unless the kernel has its own driver, too. Then perf core has that one, for
 * events that are ours, clear and set both bits as it reschedules: what was
 * written last is not what is there, and the enable bit of PerfEvtSel is what
 * stops a counter for good.
 */
static inline void knc_stop_counters(struct knc_cpu *kc)
{
	if (!kc->ctrl && !kc->shared)
		return;

	knc_write_global_ctrl(0);
	kc->ctrl = 0;
}

static inline void knc_start_counters(struct knc_cpu *kc)
{
	unsigned long active;

	/*
	 * A PMI that hits between the read of @active and the write may have
	 * throttled an event, and its counter must not run again.
	 */
	do {
		active = READ_ONCE(kc->active);
		if (active == kc->ctrl && !kc->shared)
			return;
		kc->known &= ~active;
		kc->ctrl = active;
		knc_write_global_ctrl(active);
	} while (unlikely(active != READ_ONCE(kc->active)));
}

/* Signed, as programs that use RDPMC take a counter to be: it counts up to 0. */
static inline s64 knc_counter_to_signed(u64 value)
{
	return sign_extend64(value, KNC_COUNTER_WIDTH - 1);
}

/* What the event's counter has counted from one reading of it to the next */
static inline void knc_event_account(struct perf_event *event, s64 before, s64 now)
{
	u64 delta = (now - before) & KNC_COUNTER_BITS;

	local64_add(delta, &event->count);
	local64_sub(delta, &event->hw.period_left);
}

/**
 * knc_event_next_period() - work out what an event's counter is to be loaded with
 * @event: an event whose count is up to date
 * @value: the 40 bits for the counter
 *
 * To overflow on the N-th event a counter starts at 2^40 - N. A period that
 * does not fit is counted in parts.
 *
 * Return: true if a period is over and a new one begins.
 */
static inline bool knc_event_next_period(struct perf_event *event, u64 *value)
{
	struct hw_perf_event *hwc = &event->hw;
	s64 left = local64_read(&hwc->period_left);
	s64 period = hwc->sample_period;
	bool over = left <= 0;

	if (over) {
		/* More than a whole period late: begin anew. */
		if (left <= -period)
			left = 0;
		left += period;
		local64_set(&hwc->period_left, left);
		hwc->last_period = period;
	}

	left = min_t(s64, left, KNC_MAX_PERIOD);
	local64_set(&hwc->prev_count, -left);
	*value = (u64)-left & KNC_COUNTER_BITS;

	return over;
}

/*
 * A program adds what it reads by RDPMC to what the event's page says, so the
 * page is brought up to date with each reload of the counter.
 */
static inline void knc_event_update_page(struct perf_event *event)
{
	if (event->hw.flags & PERF_EVENT_FLAG_USER_READ_CNT)
		perf_event_update_userpage(event);
}

/* perf core disables the PMU around whatever changes what is on the counters. */
static inline void knc_pmu_pause(struct knc_cpu *kc)
{
	kc->enabled = false;
	knc_stop_counters(kc);
}

static inline void knc_pmu_resume(struct knc_cpu *kc)
{
	knc_spflt_resume(kc);
	kc->enabled = true;
	knc_start_counters(kc);
}

#endif /* _KNC_PMU_H */
