// SPDX-License-Identifier: GPL-2.0-only
/* Front end of the Knights Corner PMU: a module, with its own struct pmu */
#include <linux/cpuhotplug.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/perf_event.h>

#include <asm/cpu_device_id.h>
#include <asm/nmi.h>
#include <asm/processor.h>

#include "knc_pmu.h"

/* True when perf core has registered the PMU */
static bool knc_registered;

/* The registers are reserved from load on. */

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
			break;
		if (!reserve_evntsel_nmi(knc_evntsel_msr(idx))) {
			release_perfctr_nmi(knc_perfctr_msr(idx));
			break;
		}
	}
	if (idx == KNC_NUM_COUNTERS)
		return 0;

	knc_release_counters(idx);
	pr_err("another driver has the counters: unload it, or end the programs that use its events, then load again\n");
	return -EBUSY;
}

static void knc_quiesce_this_cpu(void *unused)
{
	knc_pmu_quiesce(this_cpu_ptr(&knc_pmus));
}

/* Events of other types are for other PMUs. */
bool knc_event_is_ours(const struct perf_event *event)
{
	return event->attr.type == PERF_TYPE_HARDWARE || event->attr.type == PERF_TYPE_HW_CACHE ||
	       event->attr.type == PERF_TYPE_RAW;
}

int knc_event_init(struct perf_event *event)
{
	int ret;

	/* perf core calls this before perf_pmu_register() returns. */
	if (!smp_load_acquire(&knc_registered) || !knc_event_is_ours(event))
		return -ENOENT;

	ret = knc_event_config(event);
	if (ret)
		return ret;

	event->hw.idx = -1;

	return knc_spflt_event_init(event);
}

/* CPU hotplug. The registers of a CPU that comes online have unknown values. */
static enum cpuhp_state knc_prepare_state;
static enum cpuhp_state knc_online_state;

static int knc_cpu_prepare(unsigned int cpu)
{
	per_cpu(knc_pmus, cpu).state = KNC_OFF;
	return 0;
}

static int knc_cpu_online(unsigned int cpu)
{
	struct knc_cpu_pmu *kc = this_cpu_ptr(&knc_pmus);
	unsigned long flags;

	local_irq_save(flags);
	if (kc->state == KNC_OFF)
		knc_pmu_reset(kc);
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

static const struct x86_cpu_id knc_cpu_ids[] = {
	X86_MATCH_VENDOR_FAM_MODEL(INTEL, 11, KNC_MODEL, NULL),
	{}
};
MODULE_DEVICE_TABLE(x86cpu, knc_cpu_ids);

static int __init knc_module_init(void)
{
	struct pmu *pmu;
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

	ret = knc_reserve_counters();
	if (ret)
		return ret;

	ret = register_nmi_handler(NMI_LOCAL, knc_nmi, 0, "knc_pmu");
	if (ret)
		goto release_counters;

	ret = knc_setup_hotplug();
	if (ret)
		goto unregister_nmi;

	pmu = knc_perf_register();
	if (IS_ERR(pmu)) {
		ret = PTR_ERR(pmu);
		goto remove_hotplug;
	}

	/* Nothing below fails. */
	knc_spflt_init();
	/* Pairs with knc_event_init(). */
	smp_store_release(&knc_registered, true);
	pr_info("%u counters of %u bits for each hardware thread, registered as \"%s\"\n",
		KNC_NUM_COUNTERS, KNC_COUNTER_WIDTH, pmu->name);

	return 0;

remove_hotplug:
	cpuhp_remove_state(knc_online_state);
	cpuhp_remove_state_nocalls(knc_prepare_state);
	/* Quiesce first: the handler must stay as long as a PMI may arrive. */
	on_each_cpu(knc_quiesce_this_cpu, NULL, 1);
unregister_nmi:
	unregister_nmi_handler(NMI_LOCAL, "knc_pmu");
release_counters:
	knc_release_counters(KNC_NUM_COUNTERS);
	return ret;
}
module_init(knc_module_init);

/*
 * There is no module_exit(). A software event that was in a group with an event of this driver
 * refers to the PMU until it is closed, and no version of perf core lets it hold the module.
 */

MODULE_DESCRIPTION("Intel Xeon Phi (Knights Corner) core PMU");
MODULE_LICENSE("GPL");
