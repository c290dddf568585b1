// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module's interface to the perf core of Linux 2.6.38.
 *
 * That perf core offers every event to all PMUs, the last registered one first. So it
 * asks this PMU before the kernel's own driver, and the PMU refuses with an error that
 * ends the search. It is "knc" in sysfs, because "cpu" is the kernel's own driver.
 *
 * A context, of a CPU or of a task, refers to the PMU with which perf core stops and
 * starts the counters. When the module loads it makes all contexts refer to its own PMU,
 * so the kernel's own driver does not write the registers.
 */
#include <linux/err.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/stop_machine.h>
#include <linux/sysfs.h>

#include "../../knc_pmu.h"
#include "perf_core.h"

typeof(perf_event_update_userpage) *compat_update_userpage;
static typeof(perf_event_overflow) *compat_overflow;
static typeof(perf_pmu_register) *compat_register;

static struct pmu compat_pmu;

/* None of these functions is exported. */
int knc_perf_prepare(void)
{
	static const struct {
		const char *name;
		void *pointer;
	} functions[] = {
		{ "perf_event_update_userpage", &compat_update_userpage },
		{ "perf_event_overflow", &compat_overflow },
		{ "perf_pmu_register", &compat_register },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(functions); i++) {
		unsigned long address = kallsyms_lookup_name(functions[i].name);

		if (!address) {
			pr_err("the kernel has no %s\n", functions[i].name);
			return -ENOENT;
		}
		*(unsigned long *)functions[i].pointer = address;
	}

	/* 0 in a kernel without these labels: it has another entry. */
	compat_syscall_begin = kallsyms_lookup_name("system_call");
	compat_syscall_end = kallsyms_lookup_name("system_call_fastpath");

	return 0;
}

int knc_nmi(unsigned int type, struct pt_regs *regs)
{
	return knc_pmi(regs);
}

int knc_perf_event_overflow(struct perf_event *event,
			    struct perf_sample_data *data, struct pt_regs *regs)
{
	return compat_overflow(event, 1, data, regs);
}

static int compat_event_init(struct perf_event *event)
{
	int ret;

	if (!knc_event_is_ours(event))
		return -ENOENT;
	/* Newer perf cores refuse a period that is negative as a signed number. */
	if (!event->attr.freq && (s64)event->attr.sample_period < 0)
		return -EINVAL;

	/* perf core sets it after event_init(); knc_event_config() needs it. */
	event->pmu = &compat_pmu;
	ret = knc_event_init(event);
	if (ret != -ENOENT)
		return ret;

	/*
	 * End the search, or the kernel's own driver gets the event: it has the same
	 * events. A raw event gets here only before this PMU is complete.
	 */
	return event->attr.type == PERF_TYPE_RAW ? -EBUSY : -EINVAL;
}

/* Contexts */

static struct perf_event_context *compat_cpu_context(int cpu)
{
	return &per_cpu_ptr(compat_pmu.pmu_cpu_context, cpu)->ctx;
}

static void compat_adopt_context(struct perf_event_context *ctx, const struct pmu *from)
{
	if (ctx && ctx->pmu == from)
		ctx->pmu = &compat_pmu;
}

/*
 * All CPUs are stopped, none between perf_pmu_disable() and perf_pmu_enable(),
 * where interrupts are off. A new task that is not in the list yet has a context
 * only if it has inherited events, and there are no hardware events at load.
 */
static int compat_adopt_contexts(void *from)
{
	struct task_struct *group, *task;
	int cpu;

	for_each_possible_cpu(cpu)
		compat_adopt_context(compat_cpu_context(cpu), from);
	do_each_thread(group, task)
		compat_adopt_context(task->perf_event_ctxp[perf_hw_context], from);
	while_each_thread(group, task);

	return 0;
}

/*
 * That perf core adds an event to the running task's context, or to this CPU's, without
 * pmu_disable() and pmu_enable() around it: the first event would find the PMU disabled.
 */
static int compat_add(struct perf_event *event, int flags)
{
	int ret = knc_pmu_callbacks.add(event, flags);

	if (!*this_cpu_ptr(compat_pmu.pmu_disable_count))
		knc_pmu_enable(this_cpu_ptr(&knc_pmus));

	return ret;
}

/* For a sample that perf core may read a group's events with interrupts on. */
static void compat_read(struct perf_event *event)
{
	unsigned long flags;

	local_irq_save(flags);
	knc_event_read(event);
	local_irq_restore(flags);
}

struct pmu *knc_perf_register(void)
{
	struct kobject *kobj;
	int ret;

	compat_pmu = knc_pmu_callbacks;
	compat_pmu.event_init = compat_event_init;
	compat_pmu.add = compat_add;
	compat_pmu.read = compat_read;
	ret = compat_register(&compat_pmu, "knc", PERF_TYPE_RAW);
	if (ret)
		return ERR_PTR(ret);

	/* The PMU of the kernel's driver, or ours if the kernel has none */
	stop_machine(compat_adopt_contexts, compat_cpu_context(0)->pmu, NULL);
	compat_watch_idle();

	/* The device removes the directories. */
	kobj = &compat_pmu.dev->kobj;
	if (sysfs_create_group(kobj, &knc_pmu_format_group) ||
	    sysfs_create_group(kobj, &knc_pmu_events_group))
		pr_warn("no names of events in sysfs\n");
	pr_info("count two events at a time: this kernel scales more of them wrongly\n");

	return &compat_pmu;
}
