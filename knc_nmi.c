// SPDX-License-Identifier: GPL-2.0-only
/* A module's NMI handler, and delivery of its samples, from Linux 6.1 on */
#include <linux/err.h>
#include <linux/kprobes.h>
#include <linux/perf_event.h>
#include <linux/sched/clock.h>
#include <linux/static_call.h>

#include <asm/nmi.h>

#include "knc_pmu.h"

/*
 * perf_event_overflow() is not exported. The module patches in a direct call to it at load.
 * If it is not found, perf core refuses events that sample, and others just count on.
 */
static int knc_overflow_unknown(struct perf_event *event,
				struct perf_sample_data *data,
				struct pt_regs *regs)
{
	return is_sampling_event(event);
}

DEFINE_STATIC_CALL(knc_perf_event_overflow, knc_overflow_unknown);

/* Keeps sampling below kernel.perf_cpu_time_max_percent. Not exported either. */
DEFINE_STATIC_CALL_NULL(knc_perf_sample_event_took, perf_sample_event_took);

/* A kprobe finds symbols that are not exported. It is disabled, so it patches no code. */
static void *knc_find_symbol(const char *name)
{
	struct kprobe probe = { .symbol_name = name, .flags = KPROBE_FLAG_DISABLED };
	int ret = register_kprobe(&probe);
	void *address;

	if (ret)
		return ERR_PTR(ret);

	address = probe.addr;
	unregister_kprobe(&probe);

	return address;
}

bool knc_find_overflow(void)
{
	typeof(perf_event_overflow) *overflow = knc_find_symbol("perf_event_overflow");
	typeof(perf_sample_event_took) *took;

	if (IS_ERR(overflow)) {
		pr_warn("perf_event_overflow not found (%pe): counting only, no sampling\n",
			overflow);
		return false;
	}
	static_call_update(knc_perf_event_overflow, overflow);

	took = knc_find_symbol("perf_sample_event_took");
	if (!IS_ERR(took))
		static_call_update(knc_perf_sample_event_took, took);

	return true;
}

/* Time only one PMI in so many, because reading the clock is expensive in an NMI. */
#define KNC_TIMED_PMIS		16
static DEFINE_PER_CPU(unsigned int, knc_pmis);

int knc_nmi(unsigned int type, struct pt_regs *regs)
{
	int handled;
	u64 start;

	BUILD_BUG_ON(NMI_DONE != 0 || NMI_HANDLED != 1);

	if (this_cpu_inc_return(knc_pmis) % KNC_TIMED_PMIS)
		return knc_pmi(regs);

	start = sched_clock();
	handled = knc_pmi(regs);
	if (handled)
		static_call_cond(knc_perf_sample_event_took)(sched_clock() - start);

	return handled;
}
