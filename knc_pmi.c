// SPDX-License-Identifier: GPL-2.0-only
/*
 * The performance monitoring interrupt (327357-001, 1.4.3.8, 1.4.3.9).
 *
 * The core raises one 1-bit line to the thread's APIC. The APIC reacts only to a 0->1
 * transition, and masks the LVT entry as it delivers. A transition while the entry
 * is masked is lost. The line falls when STATUS is 0. So the handler brings
 * STATUS to 0, with the counters stopped, before it unmasks the entry: the seven steps
 * of Figure 1-2, which are numbered below.
 */
#include <linux/perf_event.h>
#include <linux/preempt.h>

#include <asm/ptrace.h>

#include "knc_counter.h"
#include "knc_pmu.h"

/*
 * An event that excludes the kernel overflowed in user mode, but its PMI came in the kernel. Or
 * perf core throttled the event before this sample: with its group, or in knc_event_stop(),
 * and started it all the same. A sample clears KNC_THROTTLED, which must last until the tick.
 */
static noinline int knc_pmi_deliver_rare(struct perf_event *event,
					 struct perf_sample_data *data,
					 struct pt_regs *regs)
{
	struct pt_regs user;

	if (event->attr.exclude_kernel && !user_mode(regs)) {
		knc_user_regs(&user, regs);
		regs = &user;
	}
	if (!knc_event_is_throttled(event))
		return perf_event_overflow(event, data, regs);

	perf_event_overflow(event, data, regs);
	event->hw.interrupts = KNC_THROTTLED;
	return 1;
}

/* Account; if the counter has wrapped, deliver if the period is over, and load. */
static __always_inline void knc_pmi_reset_counter(struct knc_cpu_pmu *kc, unsigned int idx,
						  struct perf_event *event, struct pt_regs *regs)
{
	/* Not initialized: it is large, and perf core sets the fields that it reads. */
	struct perf_sample_data data __uninitialized;

	if (!event || knc_event_account(event, idx) < 0)
		return;

	/* A period longer than the counter takes more than one wrap. */
	if (local64_read(&event->hw.period_left) <= 0) {
		/* Before the load, which changes last_period. */
		perf_sample_data_init(&data, 0, event->hw.last_period);
		if (unlikely(knc_event_is_throttled(event)) ||
		    (unlikely(event->attr.exclude_kernel) && !user_mode(regs)) ?
		    knc_pmi_deliver_rare(event, &data, regs) :
		    perf_event_overflow(event, &data, regs))
			event->pmu->stop(event, 0);
	}

	/* Not if the delivery has stopped the event. */
	if (kc->event[idx] == event)
		knc_event_load(kc, event, idx);
}

/* Steps 4 to 7, with the counters stopped */
static __always_inline void knc_pmi_handle(struct knc_cpu_pmu *kc, u64 status,
					   struct pt_regs *regs)
{
	struct perf_event *second = kc->event[1];

	/* 4: clear before 5: the line must fall before it can rise again. */
	knc_clear_status(status);
	knc_set_pending(kc, false);

	/* 5: unmask before the counters run: an edge at a masked entry is lost. */
	knc_unmask_lvtpc();

	/* 6: reset each overflow, and deliver; the first sample may stop the second event. */
	inc_perf_irq_stat();
	if (status & BIT(0))
		knc_pmi_reset_counter(kc, 0, kc->event[0], regs);
	if (status & BIT(1))
		knc_pmi_reset_counter(kc, 1, second, regs);

	/*
	 * 7: the IRET ends the NMI. There is no EOI: an NMI sets no in-service bit, so an
	 * EOI would acknowledge the interrupt that the NMI has interrupted.
	 */
}

/*
 * An NMI finds STATUS 0. If the LVT entry is masked, the NMI is a late PMI: an earlier
 * NMI, or a replay, has already handled its overflow.
 */
static noinline int knc_pmi_late(void)
{
	if (!knc_lvtpc_is_masked())
		return 0;

	knc_unmask_lvtpc();
	return 1;
}

/* The PMI is soft-masked: the overflow waits for its replay. */
static noinline int knc_pmi_masked(struct knc_cpu_pmu *kc)
{
	int handled = 1;

	if (kc->state == KNC_OFF)
		return 0;

	knc_write_global_ctrl(0);
	if (knc_read_status()) {
		knc_set_pending(kc, true);
	} else {
		handled = knc_pmi_late();
		if (kc->state == KNC_READ)
			knc_run_counters(kc);
	}

	return handled;
}

/**
 * knc_pmi() - handle a performance monitoring interrupt
 * @regs: the interrupted context
 *
 * The kernel calls this for every NMI, because an NMI does not name its source.
 *
 * Return: 1 if the PMU raised the NMI, for an overflow or late; else 0. Both counters share
 * the line, so two overflows are still one NMI.
 */
int knc_pmi(struct pt_regs *regs)
{
	struct knc_cpu_pmu *kc = this_cpu_ptr(&knc_pmus);		/* 1: enter */
	enum knc_state state = kc->state;
	int handled = 1;
	u64 status;

	/* In KNC_STOP the counters may run still, or already (knc_softmask.h). */
	if (unlikely(state != KNC_RUN) &&
	    !(state == KNC_STOP && knc_read_global_ctrl()))
		return knc_pmi_masked(kc);

	/* Before 2: else a BPF program that reads an event here could start the counters. */
	knc_set_state(kc, KNC_PMI);

	/* 2: stop: an overflow between 3 and 5 would be lost. */
	knc_write_global_ctrl(0);

	/* 3: STATUS shows which counters have overflowed. */
	status = knc_read_status();
	if (likely(status))
		knc_pmi_handle(kc, status, regs);
	else
		handled = knc_pmi_late();
	knc_set_state(kc, state);
	knc_run_counters(kc);

	return handled;
}

/**
 * knc_pmi_replay() - handle an overflow whose PMI is pending, yet to come, or swallowed
 * @kc: the PMU of this hardware thread, in KNC_STOP
 *
 * It does not read STATUS: bit 39 of a counter shows whether it has wrapped. At NMI
 * level perf core uses its buffers for NMIs: those for this context may be in use. A PMI that
 * arrives before STATUS is clear becomes pending, and belongs to the same replay.
 */
noinline void knc_pmi_replay(struct knc_cpu_pmu *kc)
{
	struct pt_regs regs = {};

	perf_fetch_caller_regs(&regs);
	__preempt_count_add(NMI_OFFSET + HARDIRQ_OFFSET);
	knc_set_state(kc, KNC_PMI);
	knc_pmi_handle(kc, KNC_COUNTER_MASK, &regs);
	knc_set_state(kc, KNC_STOP);
	__preempt_count_sub(NMI_OFFSET + HARDIRQ_OFFSET);
}
