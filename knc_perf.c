// SPDX-License-Identifier: GPL-2.0-only
/* The module and the perf core of today: registration, samples, RDPMC for programs. */
#define pr_fmt(fmt) "knc_pmu: " fmt

#include <linux/err.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/smp.h>
#include <linux/sched/clock.h>
#include <linux/static_call.h>
#include <linux/tracepoint.h>

#include <asm/mmu.h>

#include "knc_pmu.h"

/* perf_event_overflow() is not exported. A direct call to it is patched in at load. */
static int knc_overflow_unknown(struct perf_event *event,
				struct perf_sample_data *data,
				struct pt_regs *regs)
{
	/* Not reached: without delivery no sampling event is accepted. */
	WARN_ON_ONCE(1);
	return 1;
}

DEFINE_STATIC_CALL(knc_perf_event_overflow, knc_overflow_unknown);

/* Keeps sampling below kernel.perf_cpu_time_max_percent; not exported, either */
DEFINE_STATIC_CALL_NULL(knc_perf_sample_event_took, perf_sample_event_took);

/* A kprobe finds symbols that the module loader does not give out. */
static void *knc_find_symbol(const char *name)
{
	struct kprobe probe = { .symbol_name = name };
	void *address;
	int ret;

	ret = register_kprobe(&probe);
	if (ret)
		return ERR_PTR(ret);

	address = probe.addr;
	unregister_kprobe(&probe);

	return address;
}

static bool knc_find_overflow(void)
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

static bool knc_can_sample;

/* Ask perf core: if it knows raw events, another driver has them. */
static bool knc_others_have_cpu(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_RAW,
		.size = sizeof(attr),
		.disabled = 1,
	};
	struct perf_event *event;

	event = perf_event_create_kernel_counter(&attr, 0, NULL, NULL, NULL);
	if (!IS_ERR(event))
		perf_event_release_kernel(event);

	return PTR_ERR_OR_ZERO(event) != -ENOENT;
}

int knc_perf_prepare(void)
{
	if (knc_others_have_cpu()) {
		pr_err("the kernel's own driver has the counters: boot with initcall_blacklist=init_hw_perf_events\n");
		return -EBUSY;
	}

	knc_can_sample = knc_find_overflow();
	return 0;
}

/* One interrupt in so many is timed: a look at the clock costs much in an NMI. */
#define KNC_TIMED_PMIS		16
static DEFINE_PER_CPU(unsigned int, knc_pmis);

static int knc_timed_pmi(struct pt_regs *regs)
{
	u64 start = sched_clock();
	int handled = knc_pmi(regs);

	if (handled)
		static_call_cond(knc_perf_sample_event_took)(sched_clock() - start);

	return handled;
}

int knc_perf_pmi(struct pt_regs *regs)
{
	if (this_cpu_inc_return(knc_pmis) % KNC_TIMED_PMIS)
		return knc_pmi(regs);

	return knc_timed_pmi(regs);
}

/*
 * RDPMC for programs (1.3.2). The event's mapped page tells the counter, and how wide
 * counters are; the kernel knows that only if it was configured for this module
 * (scripts/install-in-tree). CR4.PCE is set for address spaces that have such a page.
 */

bool knc_rdpmc_open;
static struct tracepoint *knc_fork_tracepoint;

/* A child's address space is a copy that has no page. The child has not run yet. */
static void knc_fork(void *unused, struct task_struct *parent,
		     struct task_struct *child)
{
	if (child->mm && child->mm != parent->mm)
		atomic_set(&child->mm->context.perf_rdpmc_allowed, 0);
}

static void knc_clear_this_cpu(void *unused)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);
	unsigned int idx;

	for (idx = 0; idx < KNC_NUM_COUNTERS; idx++)
		if (kc->state != KNC_OFF && !kc->event[idx])
			knc_write_counter(idx, 0);
}

static DEFINE_MUTEX(knc_rdpmc_mutex);

/*
 * What events have left on the counters is cleared on all CPUs before the first program
 * can read it, and from then on as events leave. That stays so without a page: to map
 * one again and again must cost the other CPUs nothing.
 */
static void knc_open_rdpmc(void)
{
	mutex_lock(&knc_rdpmc_mutex);
	if (!knc_rdpmc_open) {
		WRITE_ONCE(knc_rdpmc_open, true);
		on_each_cpu(knc_clear_this_cpu, NULL, 1);
	}
	mutex_unlock(&knc_rdpmc_mutex);
}

static void knc_rdpmc_update(void *mm)
{
	if (current->active_mm == mm)
		compat_set_cr4_pce(atomic_read(&current->active_mm->context.perf_rdpmc_allowed));
}

static void knc_event_mapped(struct perf_event *event, struct mm_struct *mm)
{
	if (!(event->hw.flags & PERF_EVENT_FLAG_USER_READ_CNT))
		return;

	knc_open_rdpmc();
	if (atomic_inc_return(&mm->context.perf_rdpmc_allowed) == 1)
		on_each_cpu_mask(mm_cpumask(mm), knc_rdpmc_update, mm, 1);
}

static void knc_event_unmapped(struct perf_event *event, struct mm_struct *mm)
{
	if (!(event->hw.flags & PERF_EVENT_FLAG_USER_READ_CNT))
		return;

	if (atomic_dec_and_test(&mm->context.perf_rdpmc_allowed))
		on_each_cpu_mask(mm_cpumask(mm), knc_rdpmc_update, mm, 1);
}

static int knc_event_idx(struct perf_event *event)
{
	if (!(event->hw.flags & PERF_EVENT_FLAG_USER_READ_CNT))
		return 0;

	return event->hw.idx + 1;
}

static int knc_perf_event_init(struct perf_event *event)
{
	int ret = knc_event_init(event);

	/* A page to be written anew at each sample would cost every sample. */
	if (!ret && knc_fork_tracepoint && !is_sampling_event(event))
		event->hw.flags |= PERF_EVENT_FLAG_USER_READ_CNT;

	return ret;
}

static const struct attribute_group *knc_pmu_groups[] = {
	&knc_pmu_format_group,
	&knc_pmu_events_group,
	NULL
};

/* Without a hook to fork() there is no RDPMC for programs. */
static void knc_setup_rdpmc(struct pmu *pmu)
{
	if (!COMPAT_USER_RDPMC)
		return;

	knc_fork_tracepoint = knc_hook_tracepoint("sched_process_fork", knc_fork);
	if (!knc_fork_tracepoint)
		return;

	pmu->event_mapped = knc_event_mapped;
	pmu->event_unmapped = knc_event_unmapped;
	pmu->event_idx = knc_event_idx;
}

static void knc_remove_rdpmc(void)
{
	knc_unhook_tracepoint(knc_fork_tracepoint, knc_fork);
	tracepoint_synchronize_unregister();
}

struct pmu *knc_perf_register(void)
{
	struct pmu template = knc_pmu_callbacks;
	struct pmu *pmu;

	template.module = THIS_MODULE;
	template.attr_groups = knc_pmu_groups;
	template.event_init = knc_perf_event_init;
	if (!knc_can_sample)
		template.capabilities |= PERF_PMU_CAP_NO_INTERRUPT;

	knc_setup_rdpmc(&template);
	pmu = compat_pmu_register(&template, "cpu", PERF_TYPE_RAW);
	if (IS_ERR(pmu))
		knc_remove_rdpmc();

	return pmu;
}

void knc_perf_unregister(struct pmu *pmu)
{
	compat_pmu_unregister(pmu);
	knc_remove_rdpmc();
}
