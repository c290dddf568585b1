/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A software event that was in a group with one of the driver's stays in the PMU's part of
 * its context when the driver's event is closed, and does not hold the module. perf core
 * would call the PMU's functions at the next switch of the task, after they are unloaded.
 */
#ifndef _KNC_COMPAT_LEFT_OVER_H
#define _KNC_COMPAT_LEFT_OVER_H

#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>

static bool compat_events_left_over(struct pmu *pmu)
{
	struct task_struct *group, *task;
	bool left = false;
	int cpu;

	for_each_possible_cpu(cpu)
		left |= compat_cpu_has_events(pmu, cpu);

	rcu_read_lock();
	for_each_process_thread(group, task)
		left |= compat_task_has_events(pmu, task);
	rcu_read_unlock();

	return left;
}

/* The driver has no events any more, so no new ones can be left over. */
static void compat_wait_for_left_over(struct pmu *pmu)
{
	if (!compat_events_left_over(pmu))
		return;

	pr_info("waiting for the end of software events that were in a group with the driver's\n");
	do {
		msleep(20);
	} while (compat_events_left_over(pmu));
}

#endif /* _KNC_COMPAT_LEFT_OVER_H */
