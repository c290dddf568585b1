// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that wake from the card's deep idle state.
 *
 * There a core loses its registers. The card's idle driver saves and restores
 * those of the PMU, but STATUS, and gives back the local APIC's after them: an
 * overflow between the two finds the LVT entry masked, and its interrupt is lost
 * (1.4.3.9). STATUS is not 0 then and the line does not fall, so there is never
 * another edge: the thread would sample no more. So whoever leaves idle looks.
 */
#include <linux/notifier.h>
#include <linux/perf_event.h>

#include <asm/idle.h>

#include "../../knc_pmu.h"
#include "perf_core.h"

static int compat_idle(struct notifier_block *self, unsigned long action, void *data)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);
	unsigned long flags;

	if (action != IDLE_END || !kc->ready || !kc->active)
		return NOTIFY_OK;

	local_irq_save(flags);
	if (knc_read_status())
		knc_pmi_postponed();
	local_irq_restore(flags);

	return NOTIFY_OK;
}

static struct notifier_block compat_idle_notifier = {
	.notifier_call = compat_idle,
};

void compat_watch_idle(void)
{
	idle_notifier_register(&compat_idle_notifier);
}

void compat_unwatch_idle(void)
{
	idle_notifier_unregister(&compat_idle_notifier);
}
