// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that wake from the card's deep idle states.
 *
 * In these states a core loses its registers. The card's idle driver restores the
 * PMU's, except STATUS, before the local APIC's. An overflow between the two finds the
 * LVT entry masked, and its interrupt is lost (1.4.3.9). Then STATUS is not 0, the line
 * does not fall, and there is never another edge: the thread would not sample again. So
 * the driver reads STATUS when a thread leaves such a state.
 *
 * The idle driver has one function per state. kretprobes of these cost nothing when a
 * thread only halts, which is nearly always. With another idle driver this file watches
 * every return from idle. Without an idle driver no state is deep.
 */
#include <linux/cpuidle.h>
#include <linux/irq_work.h>
#include <linux/kprobes.h>
#include <linux/notifier.h>
#include <linux/perf_event.h>

#include <asm/idle.h>

#include "../../knc_pmu.h"
#include "perf_core.h"

/*
 * RCU does not wait for an idle CPU, so the sample's buffer could be freed meanwhile. RCU
 * waits for interrupts: this handles the overflow in one.
 */
static void compat_handle_lost(struct irq_work *work)
{
	struct knc_cpu_pmu *kc = this_cpu_ptr(&knc_pmus);

	if (kc->state == KNC_RUN) {
		enum knc_state state = knc_pmu_disable(kc);

		knc_pmi_replay(kc);
		knc_pmu_restore(kc, state);
	}
}

static DEFINE_PER_CPU(struct irq_work, compat_lost);

static void compat_look_for_lost(void)
{
	struct knc_cpu_pmu *kc = this_cpu_ptr(&knc_pmus);

	if (kc->state == KNC_RUN && knc_filled_slots(kc) && knc_read_status())
		irq_work_queue(this_cpu_ptr(&compat_lost));
}

static int compat_woke(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	compat_look_for_lost();
	return 0;
}

static struct kretprobe compat_core_c6 = {
	.kp.symbol_name = "mic_idle_enter_cc6",
	.handler = compat_woke,
};

static struct kretprobe compat_package_c3 = {
	.kp.symbol_name = "mic_idle_enter_pc3",
	.handler = compat_woke,
};

static struct kretprobe *compat_deep_states[] = {
	&compat_core_c6, &compat_package_c3,
};

static int compat_left_idle(struct notifier_block *self, unsigned long action,
			    void *data)
{
	if (action == IDLE_END)
		compat_look_for_lost();

	return NOTIFY_OK;
}

static struct notifier_block compat_idle_notifier = {
	.notifier_call = compat_left_idle,
};

void compat_watch_idle(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		init_irq_work(&per_cpu(compat_lost, cpu), compat_handle_lost);

	if (register_kretprobes(compat_deep_states, ARRAY_SIZE(compat_deep_states)) &&
	    cpuidle_get_driver())
		idle_notifier_register(&compat_idle_notifier);
}
