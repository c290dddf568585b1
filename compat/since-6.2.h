/* SPDX-License-Identifier: GPL-2.0-only */
/* Registration of a struct pmu by a module, from Linux 6.2 on; compat.h includes it. */
#ifndef _KNC_COMPAT_SINCE_6_2_H
#define _KNC_COMPAT_SINCE_6_2_H

static inline struct pmu *compat_pmu_register(const struct pmu *template,
					      const char *name, int type)
{
	static struct pmu pmu;
	int ret;

	pmu = *template;
	ret = perf_pmu_register(&pmu, name, type);

	return ret ? ERR_PTR(ret) : &pmu;
}

/* perf core frees its timers for multiplexing and does not cancel them. */
static inline void compat_pmu_unregister(struct pmu *pmu)
{
	int cpu;

	compat_remove_interval(pmu);
	for_each_possible_cpu(cpu)
		hrtimer_cancel(&compat_cpu_context(pmu, cpu)->hrtimer);
	perf_pmu_unregister(pmu);
}

/* Whether the PMU's part of a CPU's context, or of a task's, has events. */

static inline bool compat_cpu_has_events(struct pmu *pmu, int cpu)
{
	return READ_ONCE(compat_cpu_context(pmu, cpu)->epc.nr_events);
}

static inline bool compat_task_has_events(struct pmu *pmu, const struct task_struct *task)
{
	struct perf_event_context *ctx = READ_ONCE(task->perf_event_ctxp);
	struct perf_event_pmu_context *epc;
	bool has = false;

	if (!ctx)
		return false;

	raw_spin_lock_irq(&ctx->lock);
	list_for_each_entry(epc, &ctx->pmu_ctx_list, pmu_ctx_entry)
		if (epc->pmu == pmu && epc->nr_events)
			has = true;
	raw_spin_unlock_irq(&ctx->lock);

	return has;
}

#endif /* _KNC_COMPAT_SINCE_6_2_H */
