// SPDX-License-Identifier: GPL-2.0-only
/*
 * The performance monitoring interrupt of Knights Corner.
 *
 * The core raises one 1-bit line to the thread's own APIC, which reacts to a
 * 0->1 transition only, and masks the LVT entry by itself as it delivers. A
 * transition while the entry is masked is lost for good. The line falls when
 * STATUS is 0. So the handler must bring STATUS to 0, with nothing running that
 * could set it again, before it unmasks: 327357-001, 1.4.3.8, 1.4.3.9 and the
 * seven steps of Figure 1-2, which are numbered below.
 */
#include <linux/bitops.h>
#include <linux/perf_event.h>
#include <linux/sched.h>

#include <asm/processor.h>
#include <asm/ptrace.h>
#include <asm/segment.h>

#include "knc_pmu.h"

/*
 * Whether the kernel has just been entered by SYSCALL, or is about to be left, and
 * what the program had is not on the stack, or no more: then RCX has its address.
 */
static bool knc_in_syscall_gap(const struct pt_regs *regs)
{
	const struct pt_regs *saved = task_pt_regs(current);

	return regs->sp < TASK_SIZE_MAX || compat_syscall_unsaved(regs) ||
	       (regs->sp > (unsigned long)&saved->ip &&
		regs->sp <= (unsigned long)(saved + 1));
}

/*
 * An event that counts in user mode alone has overflowed there. If the interrupt
 * falls into the kernel, as it is late or has to wait, that place is not for the
 * program to know: its sample is of where it was when it left user mode. A thread of
 * the kernel never was there.
 */
static noinline int knc_pmi_deliver_user(struct perf_event *event,
					 struct perf_sample_data *data,
					 struct pt_regs *regs)
{
	struct pt_regs user = {};

	if (!(current->flags & PF_KTHREAD)) {
		user = *task_pt_regs(current);
		if (knc_in_syscall_gap(regs))
			user.ip = regs->cx;
	}
	if (!user_mode(&user))
		user.cs = __USER_CS;

	return knc_host_overflow(event, data, &user);
}

static __always_inline int knc_pmi_deliver(struct perf_event *event,
					   struct perf_sample_data *data,
					   struct pt_regs *regs)
{
	if (!user_mode(regs) && unlikely(event->attr.exclude_kernel))
		return knc_pmi_deliver_user(event, data, regs);

	return knc_host_overflow(event, data, regs);
}

/*
 * A counter that wrapped is read, reported if the period is over, and loaded for
 * what comes next. The counters are stopped, so what is read is what is counted;
 * and nothing comes between two steps in an NMI.
 */
static __always_inline void knc_pmi_reset_counter(struct perf_event *event,
						  struct pt_regs *regs)
{
	struct hw_perf_event *hwc = &event->hw;
	/* Large; perf core sets what it uses. */
	struct perf_sample_data data __uninitialized;
	s64 now;

	/* STATUS may be older than what is on the counter now. */
	now = knc_counter_to_signed(knc_rdpmc(hwc->idx));
	if (now < 0)
		return;

	knc_event_account(event, now);

	/*
	 * A period longer than the counter takes more than one wrap. And an
	 * event that perf core has throttled just now, with its group, has no
	 * sample: perf core would lose count, and never let the group go.
	 */
	if (local64_read(&hwc->period_left) <= 0 && !(hwc->state & PERF_HES_STOPPED)) {
		/* Before the next period: it may be of another length. */
		perf_sample_data_init(&data, 0, hwc->last_period);
		if (knc_pmi_deliver(event, &data, regs))
			knc_host_stop(event);
	}

	knc_event_load(event);
}

/*
 * Nothing in it repeats: with the counters stopped, one read of STATUS shows all
 * there is, and an overflow after the last step raises the line anew.
 */
static int knc_pmi_steps(struct knc_cpu *kc, struct pt_regs *regs)
{
	bool enabled = kc->enabled;
	unsigned long wrapped;
	u64 status;

	/* 2: stop, so that nothing can overflow between 3 and 5 and be missed. */
	knc_write_global_ctrl(0);

	/* 3: the line told that counters overflowed, only STATUS tells which. */
	status = knc_read_status();
	if (!status)
		goto out;

	WRITE_ONCE(kc->enabled, false);

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
	WRITE_ONCE(kc->enabled, enabled);
out:
	/* Whoever had disabled the PMU will start the counters, too. */
	if (enabled && kc->active)
		knc_write_global_ctrl(kc->active);

	return !!status;
}

/*
 * Somebody is at work on an event: let him finish. The line stays up, the entry
 * masked and the counters stopped: there is no edge to lose.
 */
static noinline int knc_pmi_postpone(struct knc_cpu *kc, struct pt_regs *regs)
{
	bool starting = kc->busy == KNC_BUSY_STARTING;

	if (starting && knc_read_global_ctrl())
		return knc_pmi_steps(kc, regs);

	knc_write_global_ctrl(0);
	if (knc_read_status()) {
		WRITE_ONCE(kc->postponed, true);
		return 1;
	}

	/* Somebody else's NMI. The counters go on, if nobody is about to see to it. */
	if (kc->enabled && kc->active && !starting)
		knc_write_global_ctrl(kc->active);

	return 0;
}

/**
 * knc_pmi() - handle a performance monitoring interrupt
 * @regs: the interrupted context
 *
 * Called for every NMI, as an NMI does not say where it comes from.
 *
 * Return: 1 if a counter had overflowed, 0 if the interrupt is somebody else's.
 * There is one edge, hence one interrupt, however many counters overflowed.
 */
int knc_pmi(struct pt_regs *regs)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);		/* 1: enter */

	if (!kc->ready)
		return 0;
	if (unlikely(kc->busy))
		return knc_pmi_postpone(kc, regs);

	return knc_pmi_steps(kc, regs);
}

/*
 * To perf core it comes as in the NMI that it is of, with the buffers of that level:
 * those of this one may be in use by whoever reads the event.
 *
 * This is no NMI. So another one can come, even one that was on its way to here
 * already: in the middle of this it has to wait as the first one had, and it leaves
 * the counters stopped.
 */
static void knc_pmi_catch_up(struct knc_cpu *kc, struct pt_regs *regs)
{
	bool enabled;

	compat_nmi_level_enter();
	WRITE_ONCE(kc->busy, KNC_BUSY_CATCHING_UP);
	barrier();
	enabled = kc->enabled;
	WRITE_ONCE(kc->enabled, false);
	barrier();
	knc_pmi_steps(kc, regs);
	/* With the counters stopped: what came up to now was in STATUS, and is done. */
	WRITE_ONCE(kc->postponed, knc_read_status());
	barrier();
	compat_nmi_level_exit();

	if (enabled) {
		knc_start_counters(kc);
		return;
	}
	WRITE_ONCE(kc->busy, 0);
	barrier();
}

/**
 * knc_pmi_postponed() - handle an interrupt that came where it had to wait
 *
 * Called with interrupts off. The line is still up, and the event has counted to the
 * last one, but for the counters being stopped meanwhile. The sample is of this very
 * place, a few instructions on.
 *
 * Only an NMI that was on its way already has it repeat. The counters are started as
 * the last thing, so that the next overflow interrupts as ever: with a short period it
 * may come with the next instruction.
 */
noinline void knc_pmi_postponed(void)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);
	struct pt_regs regs = {};

	/* Delivery reads other events of the group. */
	if (kc->busy & KNC_BUSY_CATCHING_UP)
		return;

	perf_fetch_caller_regs(&regs);
	do
		knc_pmi_catch_up(kc, &regs);
	while (READ_ONCE(kc->postponed));
}
