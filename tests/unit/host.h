/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel as the module sees it: records what the module registers and releases, and
 * in which order. Any of it can be refused.
 */
#ifndef _KNC_TEST_HOST_H
#define _KNC_TEST_HOST_H

#include <linux/err.h>
#include <linux/perf_event.h>
#include <linux/slab.h>

#include <asm/apic.h>
#include <asm/cpu_entry_area.h>
#include <asm/perf_event.h>

#include <linux/cpuhotplug.h>
#include <linux/kprobes.h>
#include <linux/tracepoint.h>

#include <asm/cpu_device_id.h>
#include <asm/nmi.h>

#include <trace/events/sched.h>

enum host_thing {
	HOST_CPU, HOST_APIC, HOST_MSR_CTRL, HOST_MSR_STATUS, HOST_MSR_SPFLT,
	HOST_PERFCTR0, HOST_PERFCTR1, HOST_EVNTSEL0, HOST_EVNTSEL1,
	HOST_NMI, HOST_PREPARE, HOST_ONLINE, HOST_PMU,
	/* Without these the module loads, with fewer features. */
	HOST_OVERFLOW, HOST_TOOK, HOST_SWITCH,
	HOST_THINGS,
	HOST_MEMORY = HOST_THINGS
};

static struct {
	/* A bit for each thing: what is refused, registered, asked for */
	unsigned long refused;
	unsigned long held;
	unsigned long asked;
	/* Errors: registered twice, or released without being registered */
	unsigned int wrong;
	/* What perf core returns for a raw event before the module has registered */
	int raw_event;
	unsigned int created, released;
	u32 created_type;
	/* What was registered when it removed the NMI handler */
	unsigned long held_at_nmi;
	u32 lvtpc_at_nmi;
	/* What it registered with perf core */
	int type;
	int capabilities;
	unsigned int took;
	/* A perf core that switches the events before the tracepoint */
	bool hook_after_events;
	/* Another handler may swallow a PMI, and this is a tick */
	bool swallows, in_tick;
	/* A CPU that is going up or down, or 0 */
	int offline;
	/* The current task, or NULL for the test's */
	struct task_struct *runs;
	/* This CPU's stacks for the entry from user mode */
	struct cpu_entry_area *entry_area;
} host;

static struct pmu host_pmu = { .type = PERF_TYPE_RAW };

/* Returns true if it exists. */
static bool host_ask(enum host_thing thing)
{
	host.asked |= BIT(thing);
	return !(host.refused & BIT(thing));
}

/* Returns false if it is refused. */
static bool host_take(enum host_thing thing)
{
	if (!host_ask(thing))
		return false;
	if (host.held & BIT(thing))
		host.wrong++;
	host.held |= BIT(thing);
	return true;
}

static void host_give(enum host_thing thing)
{
	if (!(host.held & BIT(thing)))
		host.wrong++;
	host.held &= ~BIT(thing);
}

static int host_rdmsr_safe(u32 msr, u64 *value)
{
	enum host_thing thing = msr == 0x2f ? HOST_MSR_CTRL :
				msr == 0x2d ? HOST_MSR_STATUS : HOST_MSR_SPFLT;

	*value = 0;
	return host_ask(thing) ? 0 : -EIO;
}

static void host_unregister_nmi(void)
{
	host.held_at_nmi = host.held;
	host.lvtpc_at_nmi = record.lvtpc;
	host_give(HOST_NMI);
}

static int host_setup_state(enum cpuhp_state state)
{
	enum host_thing thing = state == CPUHP_BP_PREPARE_DYN ? HOST_PREPARE : HOST_ONLINE;

	return host_take(thing) ? (int)thing : -ENOSPC;
}

static int record_overflow(struct perf_event *event, struct perf_sample_data *data,
			   struct pt_regs *regs);

static void host_sample_took(u64 ns)
{
	host.took++;
}

static enum host_thing host_symbol(const struct kprobe *probe)
{
	return strcmp(probe->symbol_name, "perf_event_overflow") ? HOST_TOOK : HOST_OVERFLOW;
}

static int host_register_kprobe(struct kprobe *probe)
{
	enum host_thing thing = host_symbol(probe);

	if (!host_take(thing))
		return -EINVAL;
	host.wrong += probe->flags != KPROBE_FLAG_DISABLED;
	probe->addr = thing == HOST_TOOK ? (void *)host_sample_took : (void *)record_overflow;
	return 0;
}

static int host_register_pmu(struct pmu *pmu, const char *name, int type)
{
	host.type = type;
	host.capabilities = pmu->capabilities;
	pmu->name = name;
	return host_take(HOST_PMU) ? 0 : -ENOMEM;
}

/* An event, or the error that it is refused with */
static struct perf_event *host_create_counter(const struct perf_event_attr *attr)
{
	host.created++;
	host.created_type = attr->type;
	if (attr->size != sizeof(*attr) || !attr->disabled)
		host.wrong++;
	return host.raw_event ? ERR_PTR(host.raw_event) : (struct perf_event *)&host;
}

static int host_release_kernel(struct perf_event *event)
{
	if (event != (struct perf_event *)&host)
		host.wrong++;
	host.released++;
	return 0;
}

static void *host_vzalloc(size_t size)
{
	if (host.refused & BIT(HOST_MEMORY))
		return NULL;
	return __vmalloc(size, GFP_KERNEL | __GFP_ZERO);
}

#undef rdmsrq_safe
#undef cpu_online
#undef COMPAT_HOOK_BEFORE_EVENTS
#undef COMPAT_PMI_SWALLOWED
#undef in_hardirq
#undef register_nmi_handler
#undef vzalloc
#define rdmsrq_safe(msr, value)			host_rdmsr_safe(msr, value)
#define reserve_perfctr_nmi(msr)		host_take(HOST_PERFCTR0 + (msr) - 0x20)
#define reserve_evntsel_nmi(msr)		host_take(HOST_EVNTSEL0 + (msr) - 0x28)
#define release_perfctr_nmi(msr)		host_give(HOST_PERFCTR0 + (msr) - 0x20)
#define release_evntsel_nmi(msr)		host_give(HOST_EVNTSEL0 + (msr) - 0x28)
#define register_nmi_handler(t, fn, fl, n)	((void)(fn), host_take(HOST_NMI) ? 0 : -ENOMEM)
#define unregister_nmi_handler(type, name)	host_unregister_nmi()
#define cpuhp_setup_state(st, n, up, down)	((void)(up), host_setup_state(st))
#define cpuhp_setup_state_nocalls(st, n, up, dn) ((void)(up), host_setup_state(st))
#define cpuhp_remove_state(state)		host_give((int)(state))
#define cpuhp_remove_state_nocalls(state)	host_give((int)(state))
#define register_kprobe(probe)			host_register_kprobe(probe)
#define unregister_kprobe(probe)		host_give(host_symbol(probe))
#define perf_pmu_register(pmu, name, type)	host_register_pmu(pmu, name, type)
#define perf_event_create_kernel_counter(a, c, t, o, x) host_create_counter(a)
#define perf_event_release_kernel(event)	host_release_kernel(event)
#define tracepoint_probe_register(t, fn, d) \
	((void)(t), (void)(fn), host_take(HOST_SWITCH) ? 0 : -ENOMEM)
#define x86_match_cpu(ids)			((void)(ids), host_ask(HOST_CPU))
#define x2apic_enabled()			(!host_ask(HOST_APIC))
#define vzalloc(size)				host_vzalloc(size)
#define COMPAT_HOOK_BEFORE_EVENTS		(!host.hook_after_events)
#define COMPAT_PMI_SWALLOWED			host.swallows
#define in_hardirq()				host.in_tick
#define cpu_online(cpu)				(!host.offline || (cpu) != host.offline)

#undef irqs_disabled
#undef compat_in_nmi_level
#undef current
#define get_cpu_entry_area(cpu)			host.entry_area
/* No test has interrupts on, and a test that calls knc_pmi() is no NMI. */
#define irqs_disabled()				true
#define compat_in_nmi_level()			true
#define current					(host.runs ?: get_current())

#endif /* _KNC_TEST_HOST_H */
