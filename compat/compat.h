/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels. The driver is written for the newest one; Kbuild includes
 * this before every file of the driver.
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

/*
 * Between these two calls perf core uses its buffers for NMIs. Interrupts are off; a
 * real NMI may arrive.
 */
static inline void compat_nmi_level_enter(void)
{
	__preempt_count_add(NMI_OFFSET + HARDIRQ_OFFSET);
}

static inline void compat_nmi_level_exit(void)
{
	__preempt_count_sub(NMI_OFFSET + HARDIRQ_OFFSET);
}

#define compat_in_nmi_level()	in_nmi()

#ifdef MODULE
/* Not exported: knc_register.c finds it, and patches in a direct call. */
DECLARE_STATIC_CALL(knc_perf_event_overflow, perf_event_overflow);
#define perf_event_overflow(event, data, regs)				\
	static_call(knc_perf_event_overflow)(event, data, regs)
#endif

#define compat_sample_period(hwc)	((s64)(hwc)->sample_period)

/* perf core holds a mutex: no other event joins or leaves the group. */
#define compat_lock_group(leader)	NULL
#define compat_unlock_group(ctx)	((void)(ctx))

/*
 * Whether the current task may count other tasks. perf core checks this for events of a CPU. A
 * module cannot, because kernel.perf_event_paranoid and the LSMs' hook are not exported.
 */
static inline int compat_allow_cpu(struct perf_event *event)
{
#ifdef MODULE
	return event->attach_state & PERF_ATTACH_TASK && !perfmon_capable() ? -EACCES : 0;
#else
	/* 6.15 and a release of 6.12 removed the argument. */
#define COMPAT_NO_ARG	__builtin_types_compatible_p(typeof(perf_allow_cpu), int (void))
	int (*allow_attr)(struct perf_event_attr *attr);
	int (*allow)(void);

	allow = __builtin_choose_expr(COMPAT_NO_ARG, perf_allow_cpu, NULL);
	allow_attr = __builtin_choose_expr(COMPAT_NO_ARG, NULL, perf_allow_cpu);

	return allow ? allow() : allow_attr(&event->attr);
#endif
}

/* Fields of struct perf_event_attr that have no meaning here */
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

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#ifndef __uninitialized
#define __uninitialized		__attribute__((__uninitialized__))
#endif
#endif

/* All handlers see every NMI, so no other one swallows a PMI. */
#define COMPAT_PMI_SWALLOWED		false

/* The message if the counters are reserved: by whom, and what to do */
#define COMPAT_COUNTERS_USER	"another module has the counters: unload it, then load again"

/* perf core switches the events after the scheduler's tracepoint. */
#define COMPAT_HOOK_BEFORE_EVENTS	true

/* Whether the event's page lets programs read its counter: the x86 perf core decides. */
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

/* Before 6.2 perf core warns if hardware PMUs are registered twice without this. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define COMPAT_PMU_CAPABILITIES		PERF_PMU_CAP_HETEROGENEOUS_CPUS
#else
#define COMPAT_PMU_CAPABILITIES		0
#endif

#ifdef rdmsrq
/* The macro assigns. A patch series of June 2026 makes it a function, which returns. */
static __always_inline u64 compat_rdmsrq(u32 msr)
{
	u64 value;

	rdmsrq(msr, value);
	return value;
}
#else
#define compat_rdmsrq(msr)	rdmsrq(msr)
#endif

#endif /* _KNC_COMPAT_H */
