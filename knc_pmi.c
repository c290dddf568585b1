// SPDX-License-Identifier: GPL-2.0-only
/*
 * The performance monitoring interrupt of Knights Corner.
 *
 * The core raises one 1-bit line to the thread's own APIC, which reacts to a
 * 0->1 transition only, and masks the LVT entry by itself as it delivers. A
 * transition while the entry is masked is lost for good. The line falls when
 * STATUS is 0. So the handler must bring STATUS to 0, with nothing running that
 * could set it again, before it unmasks: 327357-001, 1.4.3.8, 1.4.3.9 and the
 * seven steps of Figure 1-2, which are the seven calls of knc_pmi().
 */
#include <linux/bitops.h>
#include <linux/perf_event.h>

#include "knc_pmu.h"

/*
 * A counter that wrapped is read, loaded for what is left of its period, and
 * reported if the period is over. The counters are stopped, so what is read is
 * what is counted; and nothing comes between two steps in an NMI.
 */
static __always_inline void knc_pmi_reset_counter(struct perf_event *event,
						  struct pt_regs *regs)
{
	unsigned int idx = event->hw.idx;
	/* Large; perf core sets what it uses. */
	struct perf_sample_data data __uninitialized;
	u64 value;
	s64 now;
	bool over;

	/* STATUS may be older than what is on the counter now. */
	now = knc_counter_to_signed(knc_rdpmc(idx));
	if (now < 0)
		return;

	knc_event_account(event, local64_read(&event->hw.prev_count), now);
	over = knc_event_next_period(event, &value);
	knc_write_counter(idx, value);
	knc_event_update_page(event);

	/*
	 * A period longer than the counter takes more than one wrap. And an
	 * event that perf core has throttled just now, with its group, has no
	 * sample: perf core would lose count, and never let the group go.
	 */
	if (!over || event->hw.state & PERF_HES_STOPPED)
		return;

	perf_sample_data_init(&data, 0, event->hw.last_period);
	if (knc_host_overflow(event, &data, regs))
		knc_host_stop(event);
}

/**
 * knc_pmi() - handle a performance monitoring interrupt
 * @regs: the interrupted context
 *
 * Called for every NMI, as an NMI does not say where it comes from. Nothing in
 * it repeats: with the counters stopped, one read of STATUS shows all there is,
 * and an overflow after the last step raises the line anew.
 *
 * Return: 1 if a counter had overflowed, 0 if the interrupt is somebody else's.
 * There is one edge, hence one interrupt, however many counters overflowed.
 */
int knc_pmi(struct pt_regs *regs)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);		/* 1: enter */
	bool running = kc->ctrl;
	unsigned long wrapped;
	u64 status;

	if (!kc->ready)
		return 0;

	/* 2: stop, so that nothing can overflow between 3 and 5 and be missed. */
	knc_stop_counters(kc);

	/* 3: the line told that counters overflowed, only STATUS tells which. */
	status = knc_read_status();
	if (!status)
		goto out;

	/* 4: clear before 5: the line must be 0 for the next edge to be one. */
	knc_clear_status(status);

	/* 5: unmask before the counters run: an edge while masked is lost. */
	knc_unmask_lvtpc();

	/* 6: reset what overflowed, and deliver. */
	inc_perf_irq_stat();
	for (wrapped = status & kc->active; wrapped; wrapped &= wrapped - 1)
		knc_pmi_reset_counter(kc->event[__ffs(wrapped)], regs);

	/*
	 * 7: no EOI is written. Delivery is by NMI, which sets no in-service
	 * bit: an EOI would acknowledge whatever interrupt the NMI fell into.
	 * The IRET at the end of the NMI is the end of this interrupt.
	 */
out:
	/*
	 * Whoever had stopped the counters before will start them, too. Here
	 * nothing comes in between, so once is enough.
	 */
	if (running && kc->active) {
		kc->ctrl = kc->active;
		knc_write_global_ctrl(kc->ctrl);
	}

	return !!status;
}
