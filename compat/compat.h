/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels. The driver uses the names of the newest one, which this file
 * defines for older ones. What the driver calls compat_* has no name there: beside each is the
 * difference. Kbuild includes this before every file of the driver.
 */
#ifndef _KNC_COMPAT_H
#define _KNC_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "The driver is for Linux 6.1 and newer, and for the cards' Linux 2.6.38."
#endif

#include <linux/capability.h>
#include <linux/hardirq.h>
#include <linux/perf_event.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/static_call.h>

#include <asm/msr.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
/* 6.16 renamed the accessors of 64-bit MSRs. */
#define rdmsrq			rdmsrl
#define rdmsrq_safe		rdmsrl_safe
#define wrmsrq			wrmsrl
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
/* The counts of /proc/interrupts have become an array, in 7.2 at the latest. */
#ifndef inc_perf_irq_stat
#define inc_perf_irq_stat()	inc_irq_stat(apic_perf_irqs)
#endif
#endif

/* On 2.6.38 a replay is at the level of an interrupt. */
#define compat_in_nmi_level()	in_nmi()

#ifdef MODULE
/* Not exported: knc_nmi.c finds it, and patches in a direct call. */
DECLARE_STATIC_CALL(knc_perf_event_overflow, perf_event_overflow);
#define perf_event_overflow(event, data, regs)				\
	static_call(knc_perf_event_overflow)(event, data, regs)
#endif

/* 2.6.38 accepts periods of 2^63 and more. */
#define compat_sample_period(hwc)	((s64)(hwc)->sample_period)

/* perf core, unlike that of 2.6.38, holds a mutex: no event joins or leaves the group. */
#define compat_lock_group(leader)	NULL
#define compat_unlock_group(ctx)	((void)(ctx))

#ifdef MODULE
/* Not exported, nor are kernel.perf_event_paranoid and the LSMs' hook. */
#define perf_allow_cpu()	(perfmon_capable() ? 0 : -EACCES)
#else
/* 6.15 and a release of 6.12 removed the argument: the caller's @event is meant. */
static inline int compat_allow_cpu(struct perf_event_attr *attr)
{
#define COMPAT_NO_ARG	__builtin_types_compatible_p(typeof(perf_allow_cpu), int (void))
	int (*allow_attr)(struct perf_event_attr *attr);
	int (*allow)(void);

	allow = __builtin_choose_expr(COMPAT_NO_ARG, perf_allow_cpu, NULL);
	allow_attr = __builtin_choose_expr(COMPAT_NO_ARG, NULL, perf_allow_cpu);

	return allow ? allow() : allow_attr(attr);
}

#define perf_allow_cpu()	compat_allow_cpu(&event->attr)
#endif

/* Older kernels lack these fields of struct perf_event_attr. */
#ifndef PERF_ATTR_SIZE_VER8
#define config3			config2
#endif
#ifndef PERF_ATTR_SIZE_VER9
#define config4			config2
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#ifndef __uninitialized
#define __uninitialized		__attribute__((__uninitialized__))
#endif
#endif

/* All handlers see every NMI, so no other one swallows a PMI. */
#define COMPAT_PMI_SWALLOWED		false

/* perf core switches the events after the scheduler's tracepoint. */
#define COMPAT_HOOK_BEFORE_EVENTS	true

/* Whether the x86 perf core lets programs read the event's counter. 2.6.38 has no hw.flags. */
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

/* From 6.16 on PERF_EVENT_IOC_PERIOD starts an event before it unthrottles it. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define COMPAT_UNTHROTTLES_STARTED	false
#else
#define COMPAT_UNTHROTTLES_STARTED	true
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
/* perf core warns if hardware PMUs are registered twice without this capability. */
static inline int compat_pmu_register(struct pmu *pmu, const char *name, int type)
{
	pmu->capabilities |= PERF_PMU_CAP_HETEROGENEOUS_CPUS;
	return perf_pmu_register(pmu, name, type);
}

#define perf_pmu_register	compat_pmu_register
#endif

#endif /* _KNC_COMPAT_H */
