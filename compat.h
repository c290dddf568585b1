/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the kernels that the driver builds for, and nowhere
 * else: written as the newest kernel has it, with what older ones lack here.
 */
#ifndef _KNC_COMPAT_H
#define _KNC_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(3, 0, 0)
/* The kernel of the cards, 2.6.38, is too far from here for a line now and then. */
#include "compat/2.6.38/compat.h"
#else

#include <linux/device.h>
#include <linux/err.h>
#include <linux/hardirq.h>
#include <linux/hrtimer.h>
#include <linux/perf_event.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#include <linux/cpu.h>
#include <linux/platform_device.h>
#endif

#include <asm/msr.h>
#include <asm/tlbflush.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
/* 6.16 renamed the accessors of 64-bit MSRs. */
#define rdmsrq			rdmsrl
#define rdmsrq_safe		rdmsrl_safe
#define wrmsrq			wrmsrl
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
/* What /proc/interrupts shows has become an array, in 7.2 at the latest. */
#ifndef inc_perf_irq_stat
#define inc_perf_irq_stat()	inc_irq_stat(apic_perf_irqs)
#endif
#endif

/*
 * What is done in between perf core takes to be done in an NMI: it has a set of
 * buffers for each level of interrupts. Interrupts are off. A real NMI may come.
 */
static inline void compat_nmi_level_enter(void)
{
	__preempt_count_add(NMI_OFFSET + HARDIRQ_OFFSET);
}

static inline void compat_nmi_level_exit(void)
{
	__preempt_count_sub(NMI_OFFSET + HARDIRQ_OFFSET);
}

/* The configuration that has no meaning here: newer kernels have more of it. */
static inline u64 compat_attr_unused(const struct perf_event_attr *attr)
{
	u64 bits = attr->config2;

#ifdef PERF_ATTR_SIZE_VER8
	bits |= attr->config3;
#endif
#ifdef PERF_ATTR_SIZE_VER9
	bits |= attr->config4;
#endif
	return bits;
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
/* Zeroed memory for what @object is; some older kernels have it, too. */
#ifndef kzalloc_obj
#define kzalloc_obj(object)	kzalloc(sizeof(object), GFP_KERNEL)
#endif
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
/* Keeps the compiler from zeroing a variable; some older kernels have it, too. */
#ifndef __uninitialized
#define __uninitialized		__attribute__((__uninitialized__))
#endif
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
/*
 * RDPMC for programs, by the module: the kernel must know the counters' width,
 * which takes a hook (scripts/install-in-tree), and give modules access to CR4,
 * which newer ones do for KVM only.
 */
#define COMPAT_USER_RDPMC	IS_MODULE(CONFIG_KNC_PMU)
static inline void compat_set_cr4_pce(bool allowed)
{
	unsigned long flags;

	local_irq_save(flags);
	if (allowed)
		cr4_set_bits_irqsoff(X86_CR4_PCE);
	else
		cr4_clear_bits_irqsoff(X86_CR4_PCE);
	local_irq_restore(flags);
}
#else
/* A module cannot open RDPMC to programs: CR4 is for the kernel and KVM only. */
#define COMPAT_USER_RDPMC	false
static inline void compat_set_cr4_pce(bool allowed)
{
}
#endif

/* The scheduler's tracepoint comes before perf core switches the events. */
#define COMPAT_SWITCH_TOLD_FIRST	true

/* Whether a task has, or once had, a hardware event. Newer kernels have one context. */
static inline bool compat_task_has_context(const struct task_struct *task)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
	return READ_ONCE(task->perf_event_ctxp[perf_hw_context]);
#else
	return READ_ONCE(task->perf_event_ctxp);
#endif
}

/* The task that an event is for */
static inline struct task_struct *compat_event_target(const struct perf_event *event)
{
	return event->hw.target;
}

/* Whether the event's page lets programs read its counter */
static inline bool compat_event_has_rdpmc(const struct perf_event *event)
{
	return event->hw.flags & PERF_EVENT_FLAG_USER_READ_CNT;
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
/* 6.11 turned the number of counters in struct x86_pmu into a mask. */
#define COMPAT_X86_PMU_COUNTERS(n)	.num_counters = (n)
#else
#define COMPAT_X86_PMU_COUNTERS(n)	.cntr_mask64 = GENMASK_ULL((n) - 1, 0)
#endif

/* Registration of a struct pmu for hardware events by a module */

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)

static inline struct pmu *compat_pmu_register(const struct pmu *template,
					      const char *name, int type)
{
	static struct pmu pmu;
	int ret;

	pmu = *template;
	ret = perf_pmu_register(&pmu, name, type);

	return ret ? ERR_PTR(ret) : &pmu;
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#define compat_cpu_context(pmu, cpu)	per_cpu_ptr((pmu)->cpu_pmu_context, cpu)
#else
#define compat_cpu_context(pmu, cpu)	(*per_cpu_ptr((pmu)->cpu_pmu_context, cpu))
#endif

/*
 * perf core frees the timers by which events take turns, and does not cancel them; and
 * a write to this file starts them. There are no events any more that would.
 */
static inline void compat_pmu_unregister(struct pmu *pmu)
{
	static const struct attribute interval = { .name = "perf_event_mux_interval_ms" };
	int cpu;

	sysfs_remove_file(&pmu->dev->kobj, &interval);
	for_each_possible_cpu(cpu)
		hrtimer_cancel(&compat_cpu_context(pmu, cpu)->hrtimer);
	perf_pmu_unregister(pmu);
}

#else /* < 6.2 */

/*
 * Since 6.2 the contexts of events belong to tasks and CPUs, and refer to a PMU
 * only while it has events there. Before, a context belonged to one PMU for as
 * long as its task lived, and stayed with a task that had events once. The
 * struct pmu, and what perf core allocates for it, must then outlive the
 * module. So it lives in a platform device that is never removed, and the
 * module finds it there when it is loaded again.
 */
#define COMPAT_PMU_HOLDER	"knc-pmu-context"

static inline struct pmu *compat_pmu_allocate(const struct pmu *template)
{
	struct platform_device *holder;

	/* It copies the data. */
	holder = platform_device_register_data(NULL, COMPAT_PMU_HOLDER,
					       PLATFORM_DEVID_NONE, template,
					       sizeof(*template));
	if (IS_ERR(holder))
		return ERR_CAST(holder);

	return dev_get_platdata(&holder->dev);
}

static inline int compat_no_event(struct perf_event *event)
{
	return -ENOENT;
}

/*
 * perf_pmu_register() would give the PMU new CPU contexts, while contexts of
 * tasks still refer to the old ones. If another PMU has hardware contexts, it
 * takes those; so for a moment another PMU has the old ones.
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
	perf_pmu_unregister(&keeper);

	return ret;
}

static inline struct pmu *compat_pmu_register(const struct pmu *template,
					      const char *name, int type)
{
	struct device *holder;
	struct pmu copy = *template;
	struct pmu *pmu;
	int ret;

	/* Else the one hardware PMU that is expected cannot be a second time. */
	copy.capabilities |= PERF_PMU_CAP_HETEROGENEOUS_CPUS;

	holder = bus_find_device_by_name(&platform_bus_type, NULL,
					 COMPAT_PMU_HOLDER);
	if (!holder) {
		pmu = compat_pmu_allocate(&copy);
		if (IS_ERR(pmu))
			return pmu;
		ret = perf_pmu_register(pmu, name, type);
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

#define compat_pmu_unregister(pmu)	perf_pmu_unregister(pmu)

#endif

#endif /* 2.6.38 */

#endif /* _KNC_COMPAT_H */
