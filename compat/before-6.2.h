/* SPDX-License-Identifier: GPL-2.0-only */
/* Registration of a struct pmu by a module, before Linux 6.2; compat.h includes it. */
#ifndef _KNC_COMPAT_BEFORE_6_2_H
#define _KNC_COMPAT_BEFORE_6_2_H

#include <linux/cpu.h>
#include <linux/platform_device.h>

/*
 * Before 6.2 a context of events refers to its PMU for as long as its task lives,
 * with events or without. So the struct pmu, and what perf core allocates for it,
 * must outlive the module. Once perf core has registered the PMU they stay in a platform
 * device, where the module finds them when it is loaded again.
 */
#define COMPAT_PMU_HOLDER	"knc-pmu-context"

static inline void compat_pmu_unregister(struct pmu *pmu)
{
	compat_remove_interval(pmu);
	perf_pmu_unregister(pmu);
}

/* Whether a CPU's context of hardware events, or a task's, has events. */

static inline bool compat_cpu_has_events(struct pmu *pmu, int cpu)
{
	return READ_ONCE(per_cpu_ptr(pmu->pmu_cpu_context, cpu)->ctx.nr_events);
}

static inline bool compat_task_has_events(struct pmu *pmu, const struct task_struct *task)
{
	struct perf_event_context *ctx = READ_ONCE(task->perf_event_ctxp[perf_hw_context]);

	return ctx && READ_ONCE(ctx->nr_events);
}

static inline int compat_no_event(struct perf_event *event)
{
	return -ENOENT;
}

/*
 * perf_pmu_register() would allocate new CPU contexts, while contexts of tasks
 * still refer to the old ones. But it takes the CPU contexts of another hardware
 * PMU if there is one, so for a moment there is one that has the old ones.
 */
static inline int compat_pmu_register_again(struct pmu *pmu, const char *name,
					    int type)
{
	struct perf_cpu_context __percpu *contexts = pmu->pmu_cpu_context;
	struct pmu keeper = {
		.task_ctx_nr = perf_hw_context,
		.capabilities = PERF_PMU_CAP_HETEROGENEOUS_CPUS,
		.event_init = compat_no_event,
	};
	int cpu, ret;

	ret = perf_pmu_register(&keeper, "knc-handover", -1);
	if (ret)
		return ret;

	/* A CPU that comes or goes walks through the contexts of all PMUs. */
	cpus_read_lock();
	/* The kernel's own PMU, if there is one, had them before. */
	if (keeper.pmu_cpu_context != contexts) {
		free_percpu(keeper.pmu_cpu_context);
		keeper.pmu_cpu_context = contexts;
	}
	for_each_possible_cpu(cpu)
		per_cpu_ptr(contexts, cpu)->online = cpu_online(cpu);
	ret = perf_pmu_register(pmu, name, type);
	cpus_read_unlock();
	compat_pmu_unregister(&keeper);

	return ret;
}

static inline struct pmu *compat_pmu_register(const struct pmu *template,
					      const char *name, int type)
{
	struct platform_device *first;
	struct device *holder;
	struct pmu copy = *template;
	struct pmu *pmu;
	int ret;

	/* perf core warns of a second hardware PMU without this. */
	copy.capabilities |= PERF_PMU_CAP_HETEROGENEOUS_CPUS;

	holder = bus_find_device_by_name(&platform_bus_type, NULL,
					 COMPAT_PMU_HOLDER);
	if (!holder) {
		/* It copies the data. */
		first = platform_device_register_data(NULL, COMPAT_PMU_HOLDER,
						      PLATFORM_DEVID_NONE, &copy,
						      sizeof(copy));
		if (IS_ERR(first))
			return ERR_CAST(first);
		pmu = dev_get_platdata(&first->dev);
		ret = perf_pmu_register(pmu, name, type);
		/* No context refers to it yet. */
		if (ret)
			platform_device_unregister(first);
	} else {
		pmu = dev_get_platdata(holder);
		put_device(holder);
		copy.pmu_cpu_context = pmu->pmu_cpu_context;
		*pmu = copy;
		if (pmu->pmu_cpu_context)
			ret = compat_pmu_register_again(pmu, name, type);
		else
			ret = perf_pmu_register(pmu, name, type);
	}

	return ret ? ERR_PTR(ret) : pmu;
}

#endif /* _KNC_COMPAT_BEFORE_6_2_H */
