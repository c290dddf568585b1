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
 * struct knc_cpu - the PMU of one hardware thread
 * @active:	counters whose event runs while the PMU is enabled
 * @evtsel:	what each PerfEvtSel holds
 * @enabled:	the host wants the counters in @active to run
 * @busy:	what a PMI must not come into the middle of, KNC_BUSY_*
 * @postponed:	a PMI came there, and waits until it is done
 * @ready:	the registers are the driver's, and were put into a known state
 * @shared:	another driver writes GLOBAL_CTRL, too, see knc_pmu_pause()
 * @filtered:	counters that shall count what SPFLT lets through
 * @filters:	what PERF_SPFLT_CONTROL holds of that
 * @stale:	counters that may hold what an event has left there
 * @event:	the event on each counter; the host says which
 *
 * It belongs to its CPU: code with interrupts off on that CPU, and the PMI, are
 * all that use it. A PMI can come between any two instructions of the others, so
 * there is a rule for whatever both of them change:
 *
 * - Whether counters run. Nothing remembers what was written to GLOBAL_CTRL. The
 *   PMI always stops them, and starts them again if @enabled says so, which is
 *   set before they are started, and cleared before they are stopped. In the PMI
 *   it is clear, so that nothing starts them there.
 * - @active. One instruction adds or removes a counter. The PMI only removes, and
 *   nobody removes a counter that runs.
 * - An event's count, period and counter, and @evtsel. They change only between
 *   knc_enter() and knc_leave(), or in a PMI that came when nobody was there. Any
 *   other PMI stops the counters and leaves the rest to knc_leave(). There is no
 *   copy of a counter. The same holds from where @active is read to where it is
 *   written to GLOBAL_CTRL.
 *
 * All else the PMI does not change. One cache line, shared with nobody.
 */
struct knc_cpu {
	unsigned long active;
	u32 evtsel[KNC_NUM_COUNTERS];
	bool enabled;
	u8 busy;
	bool postponed;
	bool ready;
	bool shared;
	u8 filtered;
	u8 filters;
	u8 stale;
	struct perf_event *event[KNC_NUM_COUNTERS];
} ____cacheline_aligned;

/* Between knc_enter() and knc_leave() */
#define KNC_BUSY_CHANGING	BIT(0)
/* The counters, which are stopped, are about to be started, or just have been. */
#define KNC_BUSY_STARTING	BIT(1)
/* A PMI that was postponed is being handled, which is no NMI. */
#define KNC_BUSY_CATCHING_UP	BIT(2)

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
void knc_pmi_postponed(void);

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

/* attr.config1 */
#define KNC_CONFIG1_SPFLT	BIT_ULL(0)

/*
 * The PMI waits: what is done in between is done as if in one instruction. For a
 * few lines at a time, that do not nest.
 */
static inline void knc_enter(struct knc_cpu *kc)
{
	kc->busy |= KNC_BUSY_CHANGING;
	barrier();
}

static inline void knc_leave(struct knc_cpu *kc)
{
	barrier();
	kc->busy &= ~KNC_BUSY_CHANGING;
	barrier();
	if (unlikely(READ_ONCE(kc->postponed)))
		knc_pmi_postponed();
}

/*
 * Counters run and stop through GLOBAL_CTRL alone: one write for both, and
 * PerfEvtSel keeps its enable bit. The register is the driver's own, so it is
 * never read (1.4.3.7).
 *
 * Unless the kernel has its own driver, too. Then perf core has that one, for
 * events that are ours, clear and set both bits as it reschedules: what was
 * written last is not what is there, and the enable bit of PerfEvtSel is what
 * stops a counter for good.
 *
 * perf core disables the PMU around whatever changes what is on the counters.
 */
static inline void knc_pmu_pause(struct knc_cpu *kc)
{
	/* First: a PMI that comes before the write must not start them again. */
	WRITE_ONCE(kc->enabled, false);
	barrier();
	if (READ_ONCE(kc->active) || kc->shared)
		knc_write_global_ctrl(0);
}

/*
 * The counters are stopped: let them run. A PMI before the write has to wait, as it
 * might take a counter from @active, and starts nothing. One after it does not: there
 * is nothing left to be in the middle of, and with a short period that one would have
 * to wait as well, and so on.
 */
static inline void knc_start_counters(struct knc_cpu *kc)
{
	WRITE_ONCE(kc->busy, KNC_BUSY_STARTING);
	barrier();
	WRITE_ONCE(kc->enabled, true);
	knc_write_global_ctrl(READ_ONCE(kc->active));
	barrier();
	WRITE_ONCE(kc->busy, 0);
	barrier();
}

static inline void knc_pmu_resume(struct knc_cpu *kc)
{
	knc_spflt_resume(kc);
	if (!READ_ONCE(kc->active) && !kc->shared) {
		WRITE_ONCE(kc->enabled, true);
		return;
	}

	knc_start_counters(kc);
	if (unlikely(READ_ONCE(kc->postponed)))
		knc_pmi_postponed();
}

/* Signed, as programs that use RDPMC take a counter to be: it counts up to 0. */
static inline s64 knc_counter_to_signed(u64 value)
{
	return sign_extend64(value, KNC_COUNTER_WIDTH - 1);
}

/* Between knc_enter() and knc_leave(), or in the PMI: bring an event up to date */
static inline void knc_event_account(struct perf_event *event, s64 now)
{
	struct hw_perf_event *hwc = &event->hw;
	u64 delta = (now - local64_read(&hwc->prev_count)) & KNC_COUNTER_BITS;

	local64_set(&hwc->prev_count, now);
	local64_add(delta, &event->count);
	local64_sub(delta, &hwc->period_left);
}

/**
 * knc_event_count() - add to an event what its counter has counted
 * @event: an event on counter @event->hw.idx, running or stopped
 *
 * For those that programs wait for; others call knc_event_update().
 *
 * Return: the counter, 40 bits, sign-extended.
 */
static inline s64 knc_event_count(struct perf_event *event)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);
	s64 now;

	/*
	 * A tracing program may read the event from an NMI, or from a probe in
	 * here, while it is being changed: it gets the count as it was.
	 */
	if (unlikely(kc->busy & KNC_BUSY_CHANGING))
		return local64_read(&event->hw.prev_count);

	knc_enter(kc);
	now = knc_counter_to_signed(knc_rdpmc(event->hw.idx));
	knc_event_account(event, now);
	knc_leave(kc);

	return now;
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
 * Between knc_enter() and knc_leave(), or in the PMI: load an event's counter,
 * which is stopped, for what is left of the period.
 *
 * A program adds what it reads by RDPMC to what the event's page says, so the
 * page is brought up to date with each reload of the counter.
 */
static inline bool knc_event_load(struct perf_event *event)
{
	u64 value;
	bool over = knc_event_next_period(event, &value);

	knc_write_counter(event->hw.idx, value);
	if (compat_event_has_rdpmc(event))
		perf_event_update_userpage(event);

	return over;
}

#endif /* _KNC_PMU_H */
