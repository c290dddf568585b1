// SPDX-License-Identifier: GPL-2.0-only
/*
 * User-controlled counting: the SPFLT instruction and PERF_SPFLT_CONTROL
 * (327357-001, 1.3.1.1, 1.4.2, 1.4.3.4).
 *
 * With SPFLT a program says whether it wants to be counted: it sets the user preference,
 * one bit of every hardware thread. A counter whose filter is enabled counts only while
 * the bit is 1.
 *
 * The driver makes it one bit per task. A task's bit is in one place at a time: in the
 * register while the task runs, and in a bitmap, by its PID, while it does not. The
 * scheduler's hook moves it. Nothing else is needed when a task forks, executes a program,
 * or opens, inherits or swaps events.
 *
 * PIDs are those of the initial namespace. A task that ends leaves no bit in the bitmap,
 * so the next task with its PID begins with 0. exec() by a thread gives it the leader's PID
 * while it runs, and then neither PID has a bit in the bitmap. The idle tasks share PID 0,
 * and their bit stays 0, because the kernel does not execute SPFLT.
 *
 * The driver does this from the first SPFLT event on, when all bits are 0. It registers the
 * hook at load, because that takes cpus_read_lock(). event_init() could deadlock: perf core
 * holds mutexes there, and a CPU that goes offline waits for these.
 */
#include <linux/bitops.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/threads.h>
#include <linux/tracepoint.h>
#include <linux/vmalloc.h>

#include <trace/events/sched.h>

#include "knc_pmu.h"

/*
 * The bits of tasks that do not run; NULL before the first SPFLT event. Only the hook
 * changes a bit, under the run queue's lock, on the CPU that the task leaves or enters. Hooks
 * on other CPUs may change other bits of the same word: the operations are atomic.
 */
static unsigned long *knc_spflt_bits;
/* Held while the first event makes it */
static DEFINE_MUTEX(knc_spflt_mutex);

/**
 * struct knc_spflt_cpu - where a hardware thread's current task has its bit
 * @taken:	no longer in the bitmap: in the register, or here
 * @late:	@bit is not in the register yet
 * @bit:	the bit when the task was switched in
 *
 * The hook, knc_spflt_update(), knc_spflt_reset() and the first event's interrupt write it, on
 * this CPU with interrupts off. An NMI accesses neither this nor the register. The program
 * changes the bit in the register.
 */
struct knc_spflt_cpu {
	bool taken;
	bool late;
	bool bit;
};

static DEFINE_PER_CPU(struct knc_spflt_cpu, knc_spflt_cpu);

static bool knc_spflt_wanted(const struct perf_event *event)
{
	return event && event->attr.config1 & KNC_CONFIG1_SPFLT;
}

static bool knc_spflt_of_task(const struct perf_event *event)
{
	return knc_spflt_wanted(event) && event->attach_state & PERF_ATTACH_TASK;
}

/* Whether perf core stops the counters of the task that leaves only after this switch */
static bool knc_spflt_counts_last(const struct knc_cpu_pmu *kc)
{
	return COMPAT_HOOK_BEFORE_EVENTS && (knc_spflt_of_task(READ_ONCE(kc->event[0])) ||
					     knc_spflt_of_task(READ_ONCE(kc->event[1])));
}

/* The running task's bit */
static bool knc_spflt_bit(const struct knc_spflt_cpu *sc)
{
	return sc->late ? sc->bit : knc_read_spflt() & KNC_SPFLT_USER_PREFERENCE;
}

static void knc_spflt_write(const struct knc_cpu_pmu *kc, struct knc_spflt_cpu *sc)
{
	knc_write_spflt((knc_spflt_bit(sc) ? KNC_SPFLT_USER_PREFERENCE : 0) | kc->filters);
	sc->late = false;
}

/*
 * The scheduler is about to switch from @prev to @next. If counters still run for @prev,
 * @next's bit is late: perf core switches the events next, and then enables the PMU.
 *
 * A task that has called exit_notify() has no bit: its PID may already be another task's.
 */
static void knc_spflt_switch(void *unused, bool preempt, struct task_struct *prev,
			     struct task_struct *next, unsigned int prev_state)
{
	struct knc_spflt_cpu *sc = this_cpu_ptr(&knc_spflt_cpu);
	struct knc_cpu_pmu *kc = this_cpu_ptr(&knc_pmus);
	unsigned long *bits = READ_ONCE(knc_spflt_bits);
	bool last;

	if (!bits || kc->state == KNC_OFF)
		return;

	last = knc_spflt_bit(sc);
	if (sc->taken && !READ_ONCE(prev->exit_state)) {
		knc_assert(!test_bit(prev->pid, bits));
		if (last)
			set_bit(prev->pid, bits);
	}

	sc->bit = !READ_ONCE(next->exit_state) && test_bit(next->pid, bits);
	if (sc->bit)
		clear_bit(next->pid, bits);
	sc->taken = true;

	sc->late |= sc->bit != last;
	if (sc->late && !knc_spflt_counts_last(kc))
		knc_spflt_write(kc, sc);
}

/*
 * Clear the filters and the bit: INIT leaves both as they were (1.4.4). No task's bit is lost:
 * a CPU that comes up or goes down runs no program, and at load there are no SPFLT events.
 */
void knc_spflt_reset(struct knc_cpu_pmu *kc)
{
	kc->filters = 0;
	knc_write_spflt(0);
	*this_cpu_ptr(&knc_spflt_cpu) = (struct knc_spflt_cpu){};
}

/**
 * knc_spflt_update() - update PERF_SPFLT_CONTROL before the counters run
 * @kc: the PMU of this hardware thread, in KNC_STOP
 */
void knc_spflt_update(struct knc_cpu_pmu *kc)
{
	struct knc_spflt_cpu *sc = this_cpu_ptr(&knc_spflt_cpu);
	u8 filters = kc->filters;
	int idx;

	/* A counter without an event keeps its filter: the event is likely to come back. */
	for (idx = 0; idx < KNC_NUM_COUNTERS; idx++) {
		if (knc_spflt_wanted(kc->event[idx]))
			filters |= BIT(idx);
		else if (kc->event[idx])
			filters &= ~BIT(idx);
	}
	if (filters == kc->filters && !sc->late)
		return;

	knc_assert(knc_may_set_up(kc));
	kc->filters = filters;
	knc_spflt_write(kc, sc);
}

/* Whether the hook is registered */
static bool knc_spflt_hooked;

/* sched_switch is not exported. */
static void knc_spflt_find_tracepoint(struct tracepoint *tp, void *found)
{
	if (!strcmp(tp->name, "sched_switch"))
		*(struct tracepoint **)found = tp;
}

/* Hook into the scheduler; without the hook the driver refuses SPFLT events. */
void knc_spflt_init(void)
{
	struct tracepoint *found = NULL;

	/* A kernel without tracepoints lacks these functions. */
	if (!IS_ENABLED(CONFIG_TRACEPOINTS))
		return;

	check_trace_callback_type_sched_switch(knc_spflt_switch);
	for_each_kernel_tracepoint(knc_spflt_find_tracepoint, &found);
	if (found && !tracepoint_probe_register(found, knc_spflt_switch, NULL))
		WRITE_ONCE(knc_spflt_hooked, true);
}

/*
 * Until now the register may have another task's bit. A CPU that switches, or comes online,
 * before this interrupt has the right bit from its first switch on.
 */
static void knc_spflt_begin_cpu(void *unused)
{
	struct knc_spflt_cpu *sc = this_cpu_ptr(&knc_spflt_cpu);

	if (sc->taken || this_cpu_read(knc_pmus.state) == KNC_OFF)
		return;

	/* There was no SPFLT event, so there is no filter. */
	knc_write_spflt(0);
	sc->taken = true;
}

static int knc_spflt_begin(void)
{
	unsigned long *bits = vzalloc(PID_MAX_LIMIT / BITS_PER_BYTE);

	if (!bits)
		return -ENOMEM;

	/* The zeros first: the hook reads the pointer at any time. */
	smp_store_release(&knc_spflt_bits, bits);
	on_each_cpu(knc_spflt_begin_cpu, NULL, 1);
	return 0;
}

/**
 * knc_spflt_event_init() - prepare for an event that may be an SPFLT event
 * @event: a new event
 *
 * When this returns, no later event changes a task's bit.
 *
 * Return: 0; -EOPNOTSUPP without the hook, because the bit could not follow its task;
 * -ENOMEM.
 */
int knc_spflt_event_init(struct perf_event *event)
{
	int ret = 0;

	/* The parent of an inherited event was prepared for. */
	if (!knc_spflt_wanted(event) || event->parent)
		return 0;
	if (!READ_ONCE(knc_spflt_hooked))
		return -EOPNOTSUPP;

	mutex_lock(&knc_spflt_mutex);
	if (!knc_spflt_bits)
		ret = knc_spflt_begin();
	mutex_unlock(&knc_spflt_mutex);

	return ret;
}
