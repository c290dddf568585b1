/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The PMU of one hardware thread, and soft-masking of its interrupt.
 *
 * The PMI is an NMI: it can arrive between any two instructions, late, or not at all. The
 * driver soft-masks it while it changes or reads the counters: knc_pmi() only stops them,
 * sets pending, and leaves STATUS and the LVT entry as they are. No edge can be lost,
 * because the line stays up (1.4.3.9). The driver replays the PMI.
 *
 *            knc_pmu_enable()              knc_event_read()
 *   OFF      STOP ------------------> RUN ------------------> READ
 *    |        ^  <------------------   |  <------------------   |
 *    '------->|    knc_pmu_disable()   |                        |
 *     reset   |                        |                        |
 *           replay                 PMI: handle         PMI: pending, replayed
 *             v                        v               when the read is over
 *            PMI                      PMI
 *
 * quiesce leads to OFF from STOP and RUN. "Task side" is code that runs with interrupts off
 * on this CPU, outside of NMIs.
 *
 * what     who writes it  in which state
 * -------  -------------  -----------------------------------------------------------
 * state    task side      OFF, STOP, RUN, READ; before GLOBAL_CTRL is cleared, after it
 *                         is set
 *          PMI            RUN, STOP, PMI; before GLOBAL_CTRL is cleared, then back
 *          replay         STOP, PMI
 * pending  PMI            STOP, READ, PMI; to true
 *          PMI, replay    PMI; to false, after STATUS has been cleared
 *          quiesce        OFF; to false
 * event    task side      STOP
 *          PMI, replay    PMI
 * evtsel   task side      STOP, OFF
 * filters  task side      STOP, OFF
 * counts   task side      STOP, READ; READ is a reader, in knc_event_read()
 *          PMI, replay    PMI
 *
 * Hotplug sets the state to OFF before the CPU comes online.
 *
 * With CONFIG_KNC_PMU_DEBUG the driver warns when code breaks a rule of this table.
 *
 * An event is on a counter if and only if it is in the counter's slot: then the counter
 * is loaded, and PerfEvtSel has the event's code. An event in no slot is neither read nor
 * sampled. While an event is in a slot, count, prev_count and period_left are each changed
 * by one instruction, because an NMI may read the event in STOP.
 *
 * GLOBAL_CTRL is 0 in OFF, STOP and PMI. In RUN and READ it has a bit for each filled
 * slot, or is 0 while a PMI is pending. There are two exceptions in STOP, because
 * one instruction cannot write both the state and GLOBAL_CTRL: knc_pmu_disable() has set
 * STOP and not yet cleared GLOBAL_CTRL, and knc_pmu_enable() has set GLOBAL_CTRL and is
 * still in STOP. In both the counters run.
 */
#ifndef _KNC_SOFTMASK_H
#define _KNC_SOFTMASK_H

#include <linux/bug.h>
#include <linux/cache.h>
#include <linux/hardirq.h>
#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>

#include "knc_pmu_msr.h"

enum knc_state {
	KNC_OFF,	/* the driver does not use the registers, or not yet */
	KNC_STOP,	/* the counters are stopped, to be changed */
	KNC_RUN,	/* the counters run */
	KNC_READ,	/* they run, and the task side reads one */
	KNC_PMI,	/* they are stopped while an overflow is handled */
};

/**
 * struct knc_cpu_pmu - the PMU of one hardware thread
 * @state:	see above
 * @pending:	a PMI was soft-masked and has to be replayed
 * @filters:	the filter bits in PERF_SPFLT_CONTROL (1.4.3.4)
 * @evtsel:	the value of each PerfEvtSel
 * @event:	the slots: the event on each counter, or NULL
 */
struct knc_cpu_pmu {
	enum knc_state state;
	bool pending;
	u8 filters;
	u32 evtsel[KNC_NUM_COUNTERS];
	struct perf_event *event[KNC_NUM_COUNTERS];
} ____cacheline_aligned;

DECLARE_PER_CPU_ALIGNED(struct knc_cpu_pmu, knc_pmus);

/* The unit tests have their own. */
#ifndef knc_assert
#ifdef CONFIG_KNC_PMU_DEBUG
#define knc_assert(rule)	WARN_ON_ONCE(!(rule))
#else
#define knc_assert(rule)	((void)sizeof(rule))
#endif
#endif

/* The arrows of the picture, and which code may follow each */
static inline bool knc_may_change(enum knc_state from, enum knc_state to)
{
	static const u8 arrows[] = {
		[KNC_OFF] = BIT(KNC_OFF) | BIT(KNC_STOP),
		[KNC_STOP] = BIT(KNC_OFF) | BIT(KNC_RUN) | BIT(KNC_PMI),
		[KNC_RUN] = BIT(KNC_OFF) | BIT(KNC_STOP) | BIT(KNC_READ) | BIT(KNC_PMI),
		[KNC_READ] = BIT(KNC_RUN),
		[KNC_PMI] = BIT(KNC_STOP) | BIT(KNC_RUN),
	};

	if (!(arrows[from] & BIT(to)))
		return false;
	/* At boot interrupts are on. */
	if (from != KNC_OFF && !irqs_disabled())
		return false;
	if (from == KNC_PMI || to == KNC_PMI)
		return compat_in_nmi_level();

	/* An NMI of another source may run a reader. */
	return from == KNC_READ || to == KNC_READ || !in_nmi();
}

/* Whether the events on the counters may change */
static inline bool knc_may_set_up(const struct knc_cpu_pmu *kc)
{
	return (kc->state == KNC_STOP || kc->state == KNC_OFF) && !in_nmi();
}

/* Whether an event's counts may change */
static inline bool knc_may_account(const struct knc_cpu_pmu *kc)
{
	return kc->state == KNC_STOP || kc->state == KNC_READ || kc->state == KNC_PMI;
}

/* An NMI on this CPU sees these writes in program order. */
static inline void knc_set_state(struct knc_cpu_pmu *kc, enum knc_state state)
{
	knc_assert(knc_may_change(kc->state, state));
	barrier();
	WRITE_ONCE(kc->state, state);
	barrier();
}

static inline void knc_set_pending(struct knc_cpu_pmu *kc, bool pending)
{
	knc_assert(pending ? knc_may_account(kc) && compat_in_nmi_level() : kc->state == KNC_PMI);
	WRITE_ONCE(kc->pending, pending);
}

static inline void knc_fill_slot(struct knc_cpu_pmu *kc, unsigned int idx,
				 struct perf_event *event)
{
	knc_assert(kc->state == KNC_PMI || knc_may_set_up(kc));
	barrier();
	WRITE_ONCE(kc->event[idx], event);
	barrier();
}

static inline int knc_find_slot(const struct knc_cpu_pmu *kc, const struct perf_event *event)
{
	if (READ_ONCE(kc->event[1]) == event)
		return 1;

	return READ_ONCE(kc->event[0]) == event ? 0 : -1;
}

static inline u32 knc_filled_slots(const struct knc_cpu_pmu *kc)
{
	u32 filled = !!READ_ONCE(kc->event[0]);

	if (READ_ONCE(kc->event[1]))
		filled |= BIT(1);

	return filled;
}

static inline void knc_run_counters(const struct knc_cpu_pmu *kc)
{
	u32 filled = knc_filled_slots(kc);

	if (filled)
		knc_write_global_ctrl(filled);
}

/**
 * knc_pmu_disable() - stop the counters of this CPU
 * @kc: the PMU of this hardware thread
 *
 * Return: the state before, for knc_pmu_restore().
 */
static inline enum knc_state knc_pmu_disable(struct knc_cpu_pmu *kc)
{
	enum knc_state state = kc->state;

	if (state == KNC_RUN) {
		/* Before the write, so that a PMI after it leaves the counters stopped. */
		knc_set_state(kc, KNC_STOP);
		if (knc_filled_slots(kc))
			knc_write_global_ctrl(0);
	}

	return state;
}

void knc_pmu_enable(struct knc_cpu_pmu *kc);

/* The counters run again if they did before knc_pmu_disable(), which returned @state. */
static inline void knc_pmu_restore(struct knc_cpu_pmu *kc, enum knc_state state)
{
	if (state == KNC_RUN)
		knc_pmu_enable(kc);
}

#endif /* _KNC_SOFTMASK_H */
