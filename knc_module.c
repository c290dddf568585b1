// SPDX-License-Identifier: GPL-2.0-only
/*
 * Host of the Knights Corner PMU backend: a loadable module with a struct pmu
 * of its own, as struct x86_pmu can be neither reached nor replaced by one.
 *
 * Where nothing else counts on this CPU, the PMU is registered as "cpu", of
 * PERF_TYPE_RAW, and takes perf's generic events, too. Where the kernel's own
 * driver has that place, it is registered as "knc", and shares the counters
 * with the other through the kernel's reservations.
 */
#define pr_fmt(fmt) "knc_pmu: " fmt

#include <linux/cpuhotplug.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/ratelimit.h>
#include <linux/tracepoint.h>

#include <asm/cpu_device_id.h>
#include <asm/nmi.h>
#include <asm/processor.h>

#include "knc_module.h"
#include "knc_pmu.h"

/* Set once perf core is done with registering it */
static struct pmu *knc_pmu;
static bool knc_is_cpu_pmu;

static void knc_stop(struct perf_event *event, int flags);

void knc_host_stop(struct perf_event *event)
{
	knc_stop(event, 0);
}

/*
 * Ownership of the registers. The "cpu" PMU has them for as long as it is
 * registered, the "knc" PMU for as long as it has events.
 */

static DEFINE_MUTEX(knc_owners_mutex);
static int knc_owners;

static void knc_release_counters(unsigned int counters)
{
	while (counters--) {
		release_evntsel_nmi(knc_evntsel_msr(counters));
		release_perfctr_nmi(knc_perfctr_msr(counters));
	}
}

static int knc_reserve_counters(void)
{
	unsigned int idx;

	for (idx = 0; idx < KNC_NUM_COUNTERS; idx++) {
		if (!reserve_perfctr_nmi(knc_perfctr_msr(idx)))
			goto fail;
		if (!reserve_evntsel_nmi(knc_evntsel_msr(idx))) {
			release_perfctr_nmi(knc_perfctr_msr(idx));
			goto fail;
		}
	}

	return 0;

fail:
	knc_release_counters(idx);
	pr_warn_ratelimited("counters are held by the kernel's built-in PMU driver (events of its \"cpu\" PMU, or the NMI watchdog)\n");
	return -EBUSY;
}

static void knc_reset_cpu(struct knc_cpu *kc)
{
	knc_pmu_reset(kc);
	kc->shared = !knc_is_cpu_pmu;
}

static void knc_reset_this_cpu(void *unused)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);

	if (!kc->ready)
		knc_reset_cpu(kc);
}

static int knc_get_registers(void)
{
	int ret = 0;

	mutex_lock(&knc_owners_mutex);
	if (!knc_owners)
		ret = knc_reserve_counters();
	/* A CPU that comes online from here on does so for itself. */
	if (!ret && !knc_owners++)
		on_each_cpu(knc_reset_this_cpu, NULL, 1);
	mutex_unlock(&knc_owners_mutex);

	return ret;
}

static void knc_quiesce_this_cpu(void *unused)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);

	if (kc->ready)
		knc_pmu_quiesce(kc);
}

static void knc_put_registers(void)
{
	mutex_lock(&knc_owners_mutex);
	if (!--knc_owners) {
		on_each_cpu(knc_quiesce_this_cpu, NULL, 1);
		knc_release_counters(KNC_NUM_COUNTERS);
	}
	mutex_unlock(&knc_owners_mutex);
}

void knc_event_destroy(struct perf_event *event)
{
	knc_spflt_event_destroy(event);
	knc_put_registers();
}

/* Which event is on which counter */

static unsigned long knc_free_counters(struct knc_cpu *kc)
{
	unsigned long free = 0;
	unsigned int idx;

	for (idx = 0; idx < KNC_NUM_COUNTERS; idx++)
		if (!kc->event[idx])
			free |= BIT(idx);

	return free;
}

/* A counter that is programmed for the event already saves a write. */
static int knc_pick_counter(struct knc_cpu *kc, struct perf_event *event,
			    unsigned long counters)
{
	unsigned long idx;

	for_each_set_bit(idx, &counters, KNC_NUM_COUNTERS)
		if (kc->evtsel[idx] == event->hw.config)
			return idx;

	/* Counter 0 last: some events have no other. */
	return __fls(counters);
}

static void knc_place(struct knc_cpu *kc, struct perf_event *event, int idx)
{
	kc->event[idx] = event;
	event->hw.idx = idx;
}

static void knc_unplace(struct knc_cpu *kc, struct perf_event *event)
{
	kc->event[event->hw.idx] = NULL;
	kc->stale |= BIT(event->hw.idx);
}

static void knc_start(struct perf_event *event, int flags);

/*
 * The counters are stopped, so nothing is lost on the way. One that is throttled
 * is loaded, too: perf core lets it go on from what it has on the counter.
 */
static void knc_move(struct knc_cpu *kc, struct perf_event *event, int idx)
{
	bool stopped = event->hw.state & PERF_HES_STOPPED;

	knc_stop(event, PERF_EF_UPDATE);
	knc_unplace(kc, event);
	knc_place(kc, event, idx);
	knc_event_set_period(event);
	if (!stopped)
		knc_start(event, 0);
}

/* With two counters, moving one event aside is all that there is to solve. */
static int knc_find_counter(struct knc_cpu *kc, struct perf_event *event)
{
	unsigned long counters = knc_event_counters(event);
	unsigned long free = knc_free_counters(kc);
	struct perf_event *other;
	int idx;

	if (counters & free)
		return knc_pick_counter(kc, event, counters & free);
	if (!free)
		return -EAGAIN;

	idx = __ffs(counters);
	other = kc->event[idx];
	if (!(knc_event_counters(other) & free))
		return -EAGAIN;

	knc_move(kc, other, __ffs(free));
	return idx;
}

/* The callbacks of struct pmu, with interrupts off but for event_init */

static bool knc_is_ours(const struct perf_event *event)
{
	switch (event->attr.type) {
	case PERF_TYPE_HARDWARE:
	case PERF_TYPE_HW_CACHE:
		return knc_is_cpu_pmu;
	default:
		return event->attr.type == event->pmu->type;
	}
}

int knc_event_init(struct perf_event *event)
{
	int ret;

	/* perf core finds the PMU, by its type, before it is complete. */
	if (!smp_load_acquire(&knc_pmu) || !knc_is_ours(event))
		return -ENOENT;

	ret = knc_event_config(event);
	if (ret)
		return ret;

	ret = knc_get_registers();
	if (ret)
		return ret;

	ret = knc_spflt_event_init(event);
	if (ret) {
		knc_put_registers();
		return ret;
	}

	event->hw.idx = -1;
	event->destroy = knc_event_destroy;

	return 0;
}

/* The side that knows perf core sets it, see knc_module.h. */
bool knc_rdpmc_open;

static void knc_pmu_disable(struct pmu *pmu)
{
	knc_pmu_pause(this_cpu_ptr(&knc_cpu));
}

static void knc_pmu_enable(struct pmu *pmu)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);

	if (READ_ONCE(knc_rdpmc_open) && kc->ready)
		knc_pmu_clear_stale(kc);
	knc_pmu_resume(kc);
}

static void knc_start(struct perf_event *event, int flags)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);
	struct hw_perf_event *hwc = &event->hw;

	if (!(hwc->state & PERF_HES_STOPPED))
		return;

	if (flags & PERF_EF_RELOAD)
		knc_event_set_period(event);

	hwc->state = 0;
	knc_event_enable(event);

	/* As of one moment: a reload by the PMI writes the page, too. */
	knc_enter(kc);
	perf_event_update_userpage(event);
	knc_leave(kc);
}

static void knc_stop(struct perf_event *event, int flags)
{
	struct hw_perf_event *hwc = &event->hw;

	if (!(hwc->state & PERF_HES_STOPPED)) {
		knc_event_disable(event);
		hwc->state |= PERF_HES_STOPPED;
	}

	if (flags & PERF_EF_UPDATE && !(hwc->state & PERF_HES_UPTODATE)) {
		knc_event_update(event);
		hwc->state |= PERF_HES_UPTODATE;
	}
}

static int knc_add(struct perf_event *event, int flags)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);
	struct hw_perf_event *hwc = &event->hw;
	int idx;

	/* A CPU on its way up may run tasks before knc_cpu_online(). */
	if (!kc->ready)
		knc_reset_cpu(kc);

	idx = knc_find_counter(kc, event);
	if (idx < 0)
		return idx;

	knc_place(kc, event, idx);
	hwc->state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		knc_start(event, PERF_EF_RELOAD);

	return 0;
}

static void knc_del(struct perf_event *event, int flags)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);

	knc_stop(event, PERF_EF_UPDATE);
	knc_unplace(kc, event);
	event->hw.idx = -1;
	perf_event_update_userpage(event);
}

static void knc_read(struct perf_event *event)
{
	knc_event_count(event);
}

const struct pmu knc_pmu_callbacks = {
	.task_ctx_nr	= perf_hw_context,
	.pmu_enable	= knc_pmu_enable,
	.pmu_disable	= knc_pmu_disable,
	.add		= knc_add,
	.del		= knc_del,
	.start		= knc_start,
	.stop		= knc_stop,
	.read		= knc_read,
};

static int knc_nmi(unsigned int type, struct pt_regs *regs)
{
	BUILD_BUG_ON(NMI_DONE != 0 || NMI_HANDLED != 1);

	return knc_perf_pmi(regs);
}

/*
 * CPU hotplug. By the time a CPU dies, perf core has taken the last event off
 * it and GLOBAL_CTRL is 0; but what the registers hold when it comes back is
 * anybody's guess.
 */

static enum cpuhp_state knc_prepare_state;
static enum cpuhp_state knc_online_state;

static int knc_cpu_prepare(unsigned int cpu)
{
	per_cpu(knc_cpu, cpu).ready = false;
	return 0;
}

static int knc_cpu_online(unsigned int cpu)
{
	unsigned long flags;

	local_irq_save(flags);
	if (READ_ONCE(knc_owners))
		knc_reset_this_cpu(NULL);
	local_irq_restore(flags);

	return 0;
}

static int knc_setup_hotplug(void)
{
	int ret;

	ret = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "perf/x86/knc:prepare",
					knc_cpu_prepare, NULL);
	if (ret < 0)
		return ret;
	knc_prepare_state = ret;

	ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "perf/x86/knc:online",
				knc_cpu_online, NULL);
	if (ret < 0) {
		cpuhp_remove_state_nocalls(knc_prepare_state);
		return ret;
	}
	knc_online_state = ret;

	return 0;
}

static void knc_remove_hotplug(void)
{
	cpuhp_remove_state(knc_online_state);
	cpuhp_remove_state_nocalls(knc_prepare_state);
}

static int knc_register_pmu(void)
{
	struct pmu *pmu = knc_perf_register(knc_is_cpu_pmu);

	if (IS_ERR(pmu))
		return PTR_ERR(pmu);

	/* Pairs with knc_event_init(). */
	smp_store_release(&knc_pmu, pmu);
	pr_info("%u counters of %u bits for each hardware thread, registered as \"%s\"\n",
		KNC_NUM_COUNTERS, KNC_COUNTER_WIDTH, pmu->name);
	/* Typed as ever, these give numbers, and no sign that they are not ours. */
	if (!knc_is_cpu_pmu)
		pr_warn("cycles, instructions and other generic events still are the kernel's own driver's, which counts them wrongly: use knc/cpu-cycles/, knc/instructions/, ... (perf list knc), or boot with initcall_blacklist=init_hw_perf_events\n");

	return 0;
}

static const struct x86_cpu_id knc_cpu_ids[] = {
	X86_MATCH_VENDOR_FAM_MODEL(INTEL, KNC_FAMILY, KNC_MODEL, NULL),
	{}
};
MODULE_DEVICE_TABLE(x86cpu, knc_cpu_ids);

static int __init knc_module_init(void)
{
	int ret;

	if (!x86_match_cpu(knc_cpu_ids)) {
		pr_info("not a Knights Corner: found %s family %u model %u\n",
			boot_cpu_data.x86_vendor_id, boot_cpu_data.x86,
			boot_cpu_data.x86_model);
		return -ENODEV;
	}

	ret = knc_pmu_probe();
	if (ret) {
		pr_err("the PMU's registers cannot be read\n");
		return ret;
	}

	ret = knc_perf_prepare();
	if (ret)
		return ret;

	knc_is_cpu_pmu = knc_perf_is_cpu_pmu();
	if (knc_is_cpu_pmu) {
		ret = knc_get_registers();
		if (ret)
			return ret;
	}

	ret = register_nmi_handler(NMI_LOCAL, knc_nmi, 0, "knc_pmu");
	if (ret)
		goto put_registers;

	ret = knc_setup_hotplug();
	if (ret)
		goto unregister_nmi;

	ret = knc_register_pmu();
	if (ret)
		goto remove_hotplug;

	return 0;

remove_hotplug:
	knc_remove_hotplug();
unregister_nmi:
	unregister_nmi_handler(NMI_LOCAL, "knc_pmu");
put_registers:
	if (knc_is_cpu_pmu)
		knc_put_registers();
	return ret;
}
module_init(knc_module_init);

static void __exit knc_module_exit(void)
{
	knc_perf_unregister(knc_pmu);
	knc_spflt_exit();
	tracepoint_synchronize_unregister();
	knc_remove_hotplug();
	/* Quiesce first: an interrupt on its way still needs its handler. */
	if (knc_is_cpu_pmu)
		knc_put_registers();
	unregister_nmi_handler(NMI_LOCAL, "knc_pmu");
}
module_exit(knc_module_exit);

MODULE_DESCRIPTION("Intel Xeon Phi (Knights Corner) core PMU");
MODULE_LICENSE("GPL");
