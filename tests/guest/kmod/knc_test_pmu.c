// SPDX-License-Identifier: GPL-2.0-only
/* A PMU without events that has the name of the driver's: perf core refuses the driver's. */
#include <linux/module.h>
#include <linux/perf_event.h>

static int knc_test_event_init(struct perf_event *event)
{
	return -ENOENT;
}

static struct pmu knc_test_pmu = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_invalid_context,
	.event_init = knc_test_event_init,
};

static int __init knc_test_pmu_init(void)
{
	return perf_pmu_register(&knc_test_pmu, "cpu", -1);
}
module_init(knc_test_pmu_init);

static void __exit knc_test_pmu_exit(void)
{
	perf_pmu_unregister(&knc_test_pmu);
}
module_exit(knc_test_pmu_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A PMU with the driver's name, for tests");
