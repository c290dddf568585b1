// SPDX-License-Identifier: GPL-2.0-only
/* Front end of the Knights Corner PMU: built in, called by the kernel's x86 perf core */
#include <linux/init.h>
#include <linux/perf_event.h>

#include <asm/processor.h>

#include "../perf_event.h"
#include "knc_counter.h"
#include "knc_pmu.h"

static void knc_disable_all(void)
{
	knc_pmu_disable(this_cpu_ptr(&knc_pmus));
}

static void knc_enable_all(int added)
{
	knc_pmu_enable(this_cpu_ptr(&knc_pmus));
}

static int knc_hw_config(struct perf_event *event)
{
	int ret = knc_event_config(event);

	if (ret)
		return ret;

	/*
	 * No RDPMC for sampling events, because every sample would write the page. This is
	 * the only flag with which the x86 core denies RDPMC. It has no other effect here.
	 */
	if (is_sampling_event(event))
		event->hw.flags |= PERF_X86_EVENT_LARGE_PEBS;

	return knc_spflt_event_init(event);
}

/* .enable loads the counter; perf core may call .set_period for a stopped event, too. */
static int knc_set_period(struct perf_event *event)
{
	return 0;
}

/*
 * Stopping an event handles its last overflow, which may throttle the event. perf core starts
 * it all the same if it was moved or has a new period, and starts it again at the tick: an
 * error for the x86 core. So the event stays stopped until the tick. The exception is a new
 * period (n_added is 0) if perf core unthrottles the event right after this start. It does not
 * do so when the tick has given an event with a frequency a new period.
 */
static bool knc_must_stay_stopped(const struct perf_event *event)
{
	return knc_event_is_throttled(event) &&
	       (!COMPAT_UNTHROTTLES_STARTED || event->attr.freq ||
		this_cpu_read(cpu_hw_events.n_added));
}

static void knc_enable_event(struct perf_event *event)
{
	if (knc_must_stay_stopped(event))
		x86_pmu_stop(event, PERF_EF_UPDATE);
	else
		knc_event_start(event);
}

static void knc_disable_event(struct perf_event *event)
{
	/*
	 * If the event's last overflow throttles it, perf core calls x86_pmu_stop(), which
	 * does nothing without this bit.
	 */
	__clear_bit(event->hw.idx, this_cpu_ptr(&cpu_hw_events)->active_mask);
	knc_event_stop(event);
}

/* .disable has accounted for the event. */
static u64 knc_update(struct perf_event *event)
{
	return 0;
}

static struct event_constraint *
knc_get_event_constraints(struct cpu_hw_events *cpuc, int idx,
			  struct perf_event *event)
{
	static struct event_constraint counter0 = EVENT_CONSTRAINT(0, BIT(0), 0);

	if (knc_event_counters(event) == BIT(0))
		return &counter0;

	return &unconstrained;
}

static void knc_cpu_starting(int cpu)
{
	knc_pmu_reset(this_cpu_ptr(&knc_pmus));
}

static void knc_cpu_dying(int cpu)
{
	knc_pmu_quiesce(this_cpu_ptr(&knc_pmus));
}

static const struct attribute_group *knc_attr_update[] = {
	&knc_pmu_events_group,
	NULL
};

static const struct x86_pmu knc_x86_pmu __initconst = {
	.name			= "knc",
	.handle_irq		= knc_pmi,
	.disable_all		= knc_disable_all,
	.enable_all		= knc_enable_all,
	.enable			= knc_enable_event,
	.disable		= knc_disable_event,
	.hw_config		= knc_hw_config,
	.schedule_events	= x86_schedule_events,
	.get_event_constraints	= knc_get_event_constraints,
	.set_period		= knc_set_period,
	.update			= knc_update,
	.read			= knc_event_read,
	.cpu_starting		= knc_cpu_starting,
	.cpu_dying		= knc_cpu_dying,
	.eventsel		= KNC_MSR_EVNTSEL0,
	.perfctr		= KNC_MSR_PERFCTR0,
	.apic			= 1,
	.max_period		= KNC_MAX_PERIOD,
	COMPAT_X86_PMU_COUNTERS(KNC_NUM_COUNTERS),
	.cntval_bits		= KNC_COUNTER_WIDTH,
	.cntval_mask		= KNC_COUNTER_BITS,
	.attr_update		= knc_attr_update,
};

/**
 * knc_pmu_init() - give the x86 perf core the PMU; intel_pmu_init() calls it
 *
 * Return: 0, or -ENODEV if this is not a Knights Corner or has no registers.
 */
__init int knc_pmu_init(void)
{
	/* Model 0 is Knights Ferry, another PMU. */
	if (boot_cpu_data.x86_model != KNC_MODEL || knc_pmu_probe())
		return -ENODEV;

	/* INIT and kexec leave counters running, which the x86 core takes for an error. */
	knc_pmu_quiesce(this_cpu_ptr(&knc_pmus));

	x86_pmu = knc_x86_pmu;
	x86_pmu.format_attrs = knc_pmu_format_group.attrs;

	return 0;
}

static __init int knc_follow_tasks(void)
{
	if (x86_pmu.handle_irq == knc_pmi)
		knc_spflt_init();

	return 0;
}
device_initcall(knc_follow_tasks);
