// SPDX-License-Identifier: GPL-2.0-only
/* The module registers with perf core, from Linux 6.1 on. */
#include <linux/err.h>
#include <linux/perf_event.h>

#include "knc_pmu.h"

/* If perf core knows raw events, another driver has registered them. */
int knc_perf_prepare(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_RAW,
		.size = sizeof(attr),
		.disabled = 1,
	};
	struct perf_event *event;

	event = perf_event_create_kernel_counter(&attr, 0, NULL, NULL, NULL);
	if (event == ERR_PTR(-ENOENT))
		return 0;
	if (event == ERR_PTR(-ENOMEM))
		return -ENOMEM;
	if (!IS_ERR(event))
		perf_event_release_kernel(event);
	pr_err("the kernel's own driver has the counters: boot with initcall_blacklist=init_hw_perf_events\n");

	return -EBUSY;
}

static const struct attribute_group *knc_pmu_groups[] = {
	&knc_pmu_format_group,
	&knc_pmu_events_group,
	NULL
};

struct pmu *knc_perf_register(void)
{
	static struct pmu pmu;
	int ret;

	pmu = knc_pmu_callbacks;
	pmu.attr_groups = knc_pmu_groups;
	pmu.event_init = knc_event_init;
	if (!knc_find_overflow())
		pmu.capabilities |= PERF_PMU_CAP_NO_INTERRUPT;
	ret = perf_pmu_register(&pmu, "cpu", PERF_TYPE_RAW);

	return ret ? ERR_PTR(ret) : &pmu;
}
