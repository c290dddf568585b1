/* SPDX-License-Identifier: GPL-2.0-only */
/* RDPMC for programs, by the module (1.3.2) */
#ifndef _KNC_COMPAT_RDPMC_H
#define _KNC_COMPAT_RDPMC_H

#include "../knc_pmu.h"

#if COMPAT_USER_RDPMC

#include <linux/mutex.h>
#include <linux/smp.h>
#include <linux/tracepoint.h>

#include <asm/mmu.h>
#include <asm/tlbflush.h>

/*
 * The event's page tells programs the counter and its width. The kernel knows the width
 * only if it was configured for this module (scripts/install-in-tree). CR4.PCE is set
 * for address spaces that have mapped such a page.
 */

static struct tracepoint *compat_fork_tracepoint;

/* A child's copy of the address space has no such page. The child has not run yet. */
static inline void compat_fork(void *unused, struct task_struct *parent,
			       struct task_struct *child)
{
	if (child->mm && child->mm != parent->mm)
		atomic_set(&child->mm->context.perf_rdpmc_allowed, 0);
}

static inline void compat_clear_this_cpu(void *unused)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);
	unsigned int idx;

	for (idx = 0; idx < KNC_NUM_COUNTERS; idx++)
		if (kc->state != KNC_OFF && !kc->event[idx])
			knc_write_counter(idx, 0);
}

static DEFINE_MUTEX(compat_rdpmc_mutex);

/*
 * Before the first program can use RDPMC, counters without an event are cleared on all
 * CPUs, and from then on each event that leaves clears its counter. That goes on when the
 * last page is unmapped: to map pages again and again must cost other CPUs nothing.
 */
static inline void compat_open_rdpmc(void)
{
	mutex_lock(&compat_rdpmc_mutex);
	if (!knc_rdpmc_open) {
		WRITE_ONCE(knc_rdpmc_open, true);
		on_each_cpu(compat_clear_this_cpu, NULL, 1);
	}
	mutex_unlock(&compat_rdpmc_mutex);
}

/* On each CPU, with interrupts off */
static inline void compat_rdpmc_update(void *mm)
{
	if (current->active_mm != mm)
		return;
	if (atomic_read(&current->active_mm->context.perf_rdpmc_allowed))
		cr4_set_bits_irqsoff(X86_CR4_PCE);
	else
		cr4_clear_bits_irqsoff(X86_CR4_PCE);
}

static inline void compat_event_mapped(struct perf_event *event, struct mm_struct *mm)
{
	if (!compat_event_has_rdpmc(event))
		return;

	compat_open_rdpmc();
	if (atomic_inc_return(&mm->context.perf_rdpmc_allowed) == 1)
		on_each_cpu_mask(mm_cpumask(mm), compat_rdpmc_update, mm, 1);
}

static inline void compat_event_unmapped(struct perf_event *event, struct mm_struct *mm)
{
	if (!compat_event_has_rdpmc(event))
		return;

	if (atomic_dec_and_test(&mm->context.perf_rdpmc_allowed))
		on_each_cpu_mask(mm_cpumask(mm), compat_rdpmc_update, mm, 1);
}

static inline int compat_event_idx(struct perf_event *event)
{
	if (!compat_event_has_rdpmc(event))
		return 0;

	return event->hw.idx + 1;
}

/* Without a hook to fork() there is no RDPMC for programs. */
static inline void compat_rdpmc_init(struct pmu *pmu)
{
	compat_fork_tracepoint = knc_hook_tracepoint("sched_process_fork", compat_fork);
	if (!compat_fork_tracepoint)
		return;

	pmu->event_mapped = compat_event_mapped;
	pmu->event_unmapped = compat_event_unmapped;
	pmu->event_idx = compat_event_idx;
}

/* knc_spflt_exit() waits until no CPU is in the hook. */
static inline void compat_rdpmc_exit(void)
{
	knc_unhook_tracepoint(compat_fork_tracepoint, compat_fork);
}

/* Not for sampling events: the page would be written at each sample. */
static inline void compat_rdpmc_event_init(struct perf_event *event)
{
	if (compat_fork_tracepoint && !is_sampling_event(event))
		event->hw.flags |= PERF_EVENT_FLAG_USER_READ_CNT;
}

#else

static inline void compat_rdpmc_init(struct pmu *pmu) {}
static inline void compat_rdpmc_exit(void) {}
static inline void compat_rdpmc_event_init(struct perf_event *event) {}

#endif

#endif /* _KNC_COMPAT_RDPMC_H */
