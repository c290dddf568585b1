// SPDX-License-Identifier: GPL-2.0-only
/*
 * Intel Knights Corner core PMU: how counters are started, stopped and read. Section
 * numbers are those of Intel document 327357-001.
 */
#include <linux/errno.h>
#include <linux/perf_event.h>

#include <asm/cpufeature.h>

#include "knc_counter.h"
#include "knc_pmu.h"

DEFINE_PER_CPU_ALIGNED(struct knc_cpu_pmu, knc_pmus);

/**
 * knc_pmu_probe() - check that the PMU's registers exist
 *
 * Called once, at load. Later accesses do not check for faults.
 *
 * Return: 0, or -ENODEV if an access faults, or if the local APIC is off, or in a mode
 * that the chip lacks.
 */
int knc_pmu_probe(void)
{
	u64 value;

	if (!boot_cpu_has(X86_FEATURE_APIC) || x2apic_enabled() ||
	    rdmsrq_safe(KNC_MSR_GLOBAL_CTRL, &value) ||
	    rdmsrq_safe(KNC_MSR_GLOBAL_STATUS, &value) ||
	    rdmsrq_safe(KNC_MSR_SPFLT_CONTROL, &value))
		return -ENODEV;

	knc_find_syscall();
	return 0;
}

/**
 * knc_pmu_quiesce() - stop the PMU of this hardware thread
 * @kc: its PMU
 *
 * Sets all registers to 0, and masks the LVT entry. Interrupts are off, except at boot. All
 * functions below need them off.
 */
void knc_pmu_quiesce(struct knc_cpu_pmu *kc)
{
	unsigned int idx;

	/* Before the entry is masked: a late PMI would unmask it. */
	knc_set_state(kc, KNC_OFF);
	knc_write_global_ctrl(0);
	knc_mask_lvtpc();

	for (idx = 0; idx < KNC_NUM_COUNTERS; idx++) {
		knc_write_evntsel(idx, 0);
		knc_write_counter(idx, 0);
		kc->evtsel[idx] = 0;
		kc->event[idx] = NULL;
	}
	knc_spflt_reset(kc);

	/* Last: no counter sets STATUS again. */
	knc_clear_status(KNC_COUNTER_MASK);
	kc->pending = false;
}

/**
 * knc_pmu_reset() - put the registers into a known state, with the counters stopped
 * @kc: the PMU of this hardware thread
 *
 * INIT leaves the PMU as it was (1.4.4): a thread that comes online may find counters
 * running and overflows pending from before.
 */
void knc_pmu_reset(struct knc_cpu_pmu *kc)
{
	knc_pmu_quiesce(kc);
	/* Before the entry is unmasked: in KNC_OFF a late PMI would leave it masked. */
	knc_set_state(kc, KNC_STOP);
	knc_unmask_lvtpc();
}

/**
 * knc_pmu_enable() - start the counters of this CPU
 * @kc: the PMU of this hardware thread
 *
 * A PMI before the write of GLOBAL_CTRL becomes pending, and the next round replays it. A PMI
 * after the write is handled at once. There is no third round, because no counter runs
 * between the replay and the second write.
 */
void knc_pmu_enable(struct knc_cpu_pmu *kc)
{
	if (kc->state != KNC_STOP)
		return;

	/* Each tick looks for an overflow whose PMI another handler claimed. */
	if (COMPAT_PMI_SWALLOWED && in_hardirq() && knc_read_status())
		knc_pmi_replay(kc);

	for (;;) {
		if (unlikely(READ_ONCE(kc->pending)))
			knc_pmi_replay(kc);
		knc_spflt_update(kc);
		knc_run_counters(kc);
		knc_set_state(kc, KNC_RUN);
		if (likely(!READ_ONCE(kc->pending)))
			return;
		knc_pmu_disable(kc);
	}
}

/**
 * knc_event_start() - let an event count
 * @event: the owner of the counter @event->hw.idx
 *
 * It counts at once if the CPU's counters run, else from knc_pmu_enable() on.
 */
void knc_event_start(struct perf_event *event)
{
	struct knc_cpu_pmu *kc = this_cpu_ptr(&knc_pmus);
	enum knc_state state = knc_pmu_disable(kc);
	u32 evtsel = event->hw.config;
	int idx = event->hw.idx;

	if (kc->evtsel[idx] != evtsel) {
		knc_assert(knc_may_set_up(kc));
		knc_write_evntsel(idx, evtsel);
		kc->evtsel[idx] = evtsel;
	}
	knc_event_load(kc, event, idx);
	knc_pmu_restore(kc, state);
}

/**
 * knc_event_stop() - account for an event, and take it off its counter
 * @event: any event
 *
 * If the counter has wrapped, its PMI is pending, yet to come, or swallowed. A replay handles
 * the overflow, with its sample, before the event leaves. In KNC_PMI a sample stops the event, or
 * the other one, whose overflow is next. PerfEvtSel keeps its value: often the event returns.
 *
 * Return: true if the event was counting, and its last overflow has not stopped it.
 */
bool knc_event_stop(struct perf_event *event)
{
	struct knc_cpu_pmu *kc = this_cpu_ptr(&knc_pmus);
	enum knc_state state = knc_pmu_disable(kc);
	int idx = knc_find_slot(kc, event);
	bool counted = false;

	if (idx >= 0) {
		if (knc_event_account(event, idx) >= 0 && kc->state == KNC_STOP)
			knc_pmi_replay(kc);
		counted = kc->event[idx] == event;
		knc_fill_slot(kc, idx, NULL);
	}
	knc_pmu_restore(kc, state);

	return counted;
}

/* Returns true if the counter has wrapped. */
static __always_inline bool knc_account_slot(const struct knc_cpu_pmu *kc,
					     struct perf_event *event)
{
	int idx = knc_find_slot(kc, event);

	return idx >= 0 && knc_event_account(event, idx) >= 0;
}

/**
 * knc_event_read() - bring an event's count up to date
 * @event: any event; one that is on no counter keeps its last count
 *
 * A BPF program may read an event at any instruction. It gets the last count within another
 * read, and in KNC_STOP while the counters run, because a PMI could interrupt it there.
 */
void knc_event_read(struct perf_event *event)
{
	struct knc_cpu_pmu *kc = this_cpu_ptr(&knc_pmus);
	bool wrapped;

	if (likely(kc->state == KNC_RUN)) {
		knc_set_state(kc, KNC_READ);
		wrapped = knc_account_slot(kc, event);
		knc_set_state(kc, KNC_RUN);
		if (unlikely(READ_ONCE(kc->pending)) || (COMPAT_PMI_SWALLOWED && wrapped)) {
			knc_pmu_disable(kc);
			if (COMPAT_PMI_SWALLOWED)
				knc_pmi_replay(kc);
			knc_pmu_enable(kc);
		}
	} else if (kc->state == KNC_PMI ||
		   (kc->state == KNC_STOP && !knc_read_global_ctrl())) {
		knc_account_slot(kc, event);
	}
}
