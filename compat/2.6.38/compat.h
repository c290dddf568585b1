/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interfaces of newer kernels that the driver uses, made from those of Linux
 * 2.6.38.8+mpss, the kernel of the cards. Headers that only newer kernels have are
 * in linux/ and asm/ beside this file, under the same names. Larger functions are
 * in kernel.c; perf_core.c is for that kernel's perf core.
 */
#ifndef _KNC_COMPAT_2_6_38_H
#define _KNC_COMPAT_2_6_38_H

#include <linux/capability.h>
#include <linux/compiler.h>
#include <linux/device.h>
#include <linux/hardirq.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>

#include <trace/events/sched.h>

#include <asm/atomic.h>
#include <asm/msr.h>
#include <asm/nmi.h>
#include <asm/system.h>

/* The cards execute loads in order, and stores in order. */
#define READ_ONCE(x)			ACCESS_ONCE(x)
#define WRITE_ONCE(x, value)		(ACCESS_ONCE(x) = (value))
#define smp_load_acquire(pointer) ({					\
	typeof(*(pointer)) compat_value = ACCESS_ONCE(*(pointer));	\
	barrier();							\
	compat_value;							\
})
#define smp_store_release(pointer, value)				\
	do {								\
		barrier();						\
		ACCESS_ONCE(*(pointer)) = (value);			\
	} while (0)

/* No compiler for that kernel zeroes variables by itself. */
#define __uninitialized

#define rdmsrq				rdmsrl
#define rdmsrq_safe			rdmsrl_safe
#define wrmsrq				wrmsrl
#define inc_perf_irq_stat()		inc_irq_stat(apic_perf_irqs)

/* 1 if an option is y, else 0: if it is, "0," before "1, 0" makes the 1 the second. */
#define COMPAT_COMMA_1			0,
#define COMPAT_SECOND(first, second, ...)	second
#define COMPAT_IS_Y(comma)		COMPAT_SECOND(comma 1, 0)
#define COMPAT_ENABLED(value)		COMPAT_IS_Y(COMPAT_COMMA_##value)
#define IS_ENABLED(CONFIG_option)	COMPAT_ENABLED(CONFIG_option)

#define sysfs_emit(page, ...)		scnprintf(page, PAGE_SIZE, __VA_ARGS__)

/*
 * That PERF_EVENT_IOC_PERIOD accepts periods of 2^63 and more. They become the longest one: a
 * negative period would load a counter with bit 39 clear, as if it had wrapped.
 */
static inline s64 compat_sample_period(const struct hw_perf_event *hwc)
{
	return min_t(u64, hwc->sample_period, LLONG_MAX);
}

/*
 * Newer perf cores are told that they are in an NMI. This one is told that it is in an
 * interrupt, because that kernel reports a real NMI within an NMI as a bug.
 */
#define __preempt_count_add(level)	add_preempt_count((level) - NMI_OFFSET)
#define __preempt_count_sub(level)	sub_preempt_count((level) - NMI_OFFSET)
#define compat_in_nmi_level()		(in_nmi() || in_irq())

/*
 * Attributes of events. config1 and config2 share their place with those of
 * breakpoints. That perf core refuses attributes that it does not know.
 */
#define config1				bp_addr
#define config2				bp_len
#define config3				config2
#define config4				config2
#define exclude_host			__reserved_1
#define PERF_SAMPLE_BRANCH_STACK	0

/* Whether the current task may count other tasks */
#define perf_allow_cpu()		(capable(CAP_SYS_ADMIN) ? 0 : -EACCES)

/* One more generic event; newer programs know it. */
#define PERF_COUNT_HW_STALLED_CYCLES_FRONTEND (PERF_COUNT_HW_BUS_CYCLES + 1)
#define PERF_COUNT_HW_MAX		(PERF_COUNT_HW_BUS_CYCLES + 2)

#define for_each_sibling_event(sibling, leader)				\
	list_for_each_entry(sibling, &(leader)->sibling_list, group_entry)

/*
 * Newer perf cores hold a mutex, so that a group does not change while an event joins it.
 * RCU keeps the context; a leader that is a software event may move to another one.
 */
static inline struct perf_event_context *compat_lock_group(const struct perf_event *leader)
{
	struct perf_event_context *ctx;

	rcu_read_lock();
	for (;;) {
		ctx = ACCESS_ONCE(leader->ctx);
		raw_spin_lock_irq(&ctx->lock);
		if (ctx == leader->ctx)
			return ctx;
		raw_spin_unlock_irq(&ctx->lock);
	}
}

static inline void compat_unlock_group(struct perf_event_context *ctx)
{
	raw_spin_unlock_irq(&ctx->lock);
	rcu_read_unlock();
}

/* Only a driver that is built in gives programs RDPMC. */
static inline bool compat_event_has_rdpmc(const struct perf_event *event)
{
	return false;
}

/* The PMU's names in sysfs */

struct perf_pmu_events_attr {
	struct device_attribute attr;
	u64 id;
};

#define PMU_EVENT_ATTR(_name, _var, _id, _show)				\
static struct perf_pmu_events_attr _var = {				\
	.attr = __ATTR(_name, 0444, _show, NULL),			\
	.id = _id,							\
};

#define PMU_FORMAT_ATTR(_name, _format)					\
static ssize_t _name##_show(struct device *dev,				\
			    struct device_attribute *attr, char *page)	\
{									\
	return sprintf(page, _format "\n");				\
}									\
static struct device_attribute format_attr_##_name = __ATTR_RO(_name)

/* perf core switches or swaps the events before the tracepoint. */
#define COMPAT_HOOK_BEFORE_EVENTS	false

/* Functions of the kernel that perf_core.c finds by their names */

extern typeof(perf_event_update_userpage) *compat_update_userpage;

int knc_perf_event_overflow(struct perf_event *event, struct perf_sample_data *data,
			    struct pt_regs *regs);

#define perf_event_overflow(event, data, regs)				\
	knc_perf_event_overflow(event, data, regs)
#define perf_event_update_userpage(event)	compat_update_userpage(event)

static inline void compat_sample_data_init(struct perf_sample_data *data,
					   u64 addr, u64 period)
{
	perf_sample_data_init(data, addr);
	data->period = period;
}

#define perf_sample_data_init		compat_sample_data_init

/* In kernel.c: tracepoints have names, and sched_switch passes fewer arguments. */

void compat_visit_tracepoints(void (*visit)(struct tracepoint *tp, void *data),
			      void *data);
int compat_probe_register(struct tracepoint *tp, void *probe);

#define for_each_kernel_tracepoint	compat_visit_tracepoints
#define tracepoint_probe_register(tp, probe, data)			\
	compat_probe_register(tp, probe)
/* compat_probe_register() knows the type. */
#define check_trace_callback_type_sched_switch(probe)	((void)(probe))

/* NMIs, in kernel.c. The first handler that claims an NMI hides it from the others. */
#define COMPAT_PMI_SWALLOWED		true
#define in_hardirq()			in_irq()

#define NMI_DONE			0
#define NMI_HANDLED			1
#define NMI_LOCAL			0

int register_nmi_handler(unsigned int type,
			 int (*handler)(unsigned int type, struct pt_regs *regs),
			 unsigned long flags, const char *name);
void unregister_nmi_handler(unsigned int type, const char *name);

#endif /* _KNC_COMPAT_2_6_38_H */
