/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel as the module sees it: records what the module registers and releases, and
 * in which order. Any of it can be refused.
 */
#ifndef _KNC_TEST_FAKE_H
#define _KNC_TEST_FAKE_H

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

enum fake_thing {
	FAKE_CPU, FAKE_APIC, FAKE_MSR_CTRL, FAKE_MSR_STATUS, FAKE_MSR_SPFLT,
	FAKE_PERFCTR0, FAKE_PERFCTR1, FAKE_EVNTSEL0, FAKE_EVNTSEL1,
	FAKE_NMI, FAKE_PREPARE, FAKE_ONLINE, FAKE_PMU,
	/* Without these the module loads, with fewer features. */
	FAKE_OVERFLOW, FAKE_TOOK, FAKE_SWITCH,
	FAKE_THINGS,
	FAKE_MEMORY = FAKE_THINGS
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
	int capabilities;
	unsigned int took;
	/* Another handler may swallow a PMI, and this is a tick */
	bool swallows, in_tick;
	/* A CPU that is going up or down, or 0 */
	int offline;
	/* The current task, or NULL for the test's */
	struct task_struct *runs;
	/* This CPU's stacks for the entry from user mode */
	struct cpu_entry_area *entry_area;
} fake;

static struct pmu fake_pmu = { .type = PERF_TYPE_RAW };

/* Returns true if it exists. */
static bool fake_ask(enum fake_thing thing)
{
	fake.asked |= BIT(thing);
	return !(fake.refused & BIT(thing));
}

/* Returns false if it is refused. */
static bool fake_take(enum fake_thing thing)
{
	if (!fake_ask(thing))
		return false;
	if (fake.held & BIT(thing))
		fake.wrong++;
	fake.held |= BIT(thing);
	return true;
}

static void fake_give(enum fake_thing thing)
{
	if (!(fake.held & BIT(thing)))
		fake.wrong++;
	fake.held &= ~BIT(thing);
}

static int fake_rdmsr_safe(u32 msr, u64 *value)
{
	enum fake_thing thing = msr == 0x2f ? FAKE_MSR_CTRL :
				msr == 0x2d ? FAKE_MSR_STATUS : FAKE_MSR_SPFLT;

	*value = 0;
	return fake_ask(thing) ? 0 : -EIO;
}

static void fake_unregister_nmi(void)
{
	fake.held_at_nmi = fake.held;
	fake.lvtpc_at_nmi = record.lvtpc;
	fake_give(FAKE_NMI);
}

static int fake_setup_state(enum cpuhp_state state)
{
	enum fake_thing thing = state == CPUHP_BP_PREPARE_DYN ? FAKE_PREPARE : FAKE_ONLINE;

	return fake_take(thing) ? (int)thing : -ENOSPC;
}

static int record_overflow(struct perf_event *event, struct perf_sample_data *data,
			   struct pt_regs *regs);

static void fake_sample_took(u64 ns)
{
	fake.took++;
}

static enum fake_thing fake_symbol(const struct kprobe *probe)
{
	return strcmp(probe->symbol_name, "perf_event_overflow") ? FAKE_TOOK : FAKE_OVERFLOW;
}

static int fake_register_kprobe(struct kprobe *probe)
{
	enum fake_thing thing = fake_symbol(probe);

	if (!fake_take(thing))
		return -EINVAL;
	fake.wrong += probe->flags != KPROBE_FLAG_DISABLED;
	probe->addr = thing == FAKE_TOOK ? (void *)fake_sample_took : (void *)record_overflow;
	return 0;
}

static int fake_register_pmu(struct pmu *pmu, const char *name, int type)
{
	fake.capabilities = pmu->capabilities;
	pmu->name = name;
	return fake_take(FAKE_PMU) ? 0 : -ENOMEM;
}

/* An event, or the error that it is refused with */
static struct perf_event *fake_create_counter(const struct perf_event_attr *attr)
{
	fake.created++;
	fake.created_type = attr->type;
	if (attr->size != sizeof(*attr) || !attr->disabled)
		fake.wrong++;
	return fake.raw_event ? ERR_PTR(fake.raw_event) : (struct perf_event *)&fake;
}

static int fake_release_kernel(struct perf_event *event)
{
	if (event != (struct perf_event *)&fake)
		fake.wrong++;
	fake.released++;
	return 0;
}

static void *fake_vzalloc(size_t size)
{
	if (fake.refused & BIT(FAKE_MEMORY))
		return NULL;
	return __vmalloc(size, GFP_KERNEL | __GFP_ZERO);
}

#undef rdmsrq_safe
#undef cpu_online
#undef register_nmi_handler
#undef perf_pmu_register
#undef vzalloc
#undef COMPAT_PMI_SWALLOWED
#undef in_hardirq
#define rdmsrq_safe(msr, value)			fake_rdmsr_safe(msr, value)
#define reserve_perfctr_nmi(msr)		fake_take(FAKE_PERFCTR0 + (msr) - 0x20)
#define reserve_evntsel_nmi(msr)		fake_take(FAKE_EVNTSEL0 + (msr) - 0x28)
#define release_perfctr_nmi(msr)		fake_give(FAKE_PERFCTR0 + (msr) - 0x20)
#define release_evntsel_nmi(msr)		fake_give(FAKE_EVNTSEL0 + (msr) - 0x28)
#define register_nmi_handler(t, fn, fl, n)	((void)(fn), fake_take(FAKE_NMI) ? 0 : -ENOMEM)
#define unregister_nmi_handler(type, name)	fake_unregister_nmi()
#define cpuhp_setup_state(st, n, up, down)	((void)(up), fake_setup_state(st))
#define cpuhp_setup_state_nocalls(st, n, up, dn) ((void)(up), fake_setup_state(st))
#define cpuhp_remove_state(state)		fake_give((int)(state))
#define cpuhp_remove_state_nocalls(state)	fake_give((int)(state))
#define register_kprobe(probe)			fake_register_kprobe(probe)
#define unregister_kprobe(probe)		fake_give(fake_symbol(probe))
#define perf_pmu_register(pmu, name, type)	fake_register_pmu(pmu, name, type)
#define perf_event_create_kernel_counter(a, c, t, o, x) fake_create_counter(a)
#define perf_event_release_kernel(event)	fake_release_kernel(event)
#define tracepoint_probe_register(t, fn, d) \
	((void)(t), (void)(fn), fake_take(FAKE_SWITCH) ? 0 : -ENOMEM)
#define x86_match_cpu(ids)			((void)(ids), fake_ask(FAKE_CPU))
#define x2apic_enabled()			(!fake_ask(FAKE_APIC))
#define vzalloc(size)				fake_vzalloc(size)
#define COMPAT_PMI_SWALLOWED			fake.swallows
#define in_hardirq()				fake.in_tick
#define cpu_online(cpu)				(!fake.offline || (cpu) != fake.offline)

#undef irqs_disabled
#undef compat_in_nmi_level
#undef current
#define get_cpu_entry_area(cpu)			fake.entry_area
/* No test has interrupts on, and a test that calls knc_pmi() is no NMI. */
#define irqs_disabled()				true
#define compat_in_nmi_level()			true
#define current					(fake.runs ?: get_current())

#endif /* _KNC_TEST_FAKE_H */
