// SPDX-License-Identifier: GPL-2.0-only
/*
 * User-controlled counting: the SPFLT instruction and PERF_SPFLT_CONTROL
 * (327357-001, 1.3.1.1, 1.4.2, 1.4.3.4).
 *
 * A program says with SPFLT whether it wants to be counted: the user preference,
 * one bit of each hardware thread. A counter whose filter is enabled counts only
 * while the bit is 1. The hardware knows no tasks, so the bit is kept for each
 * task that has SPFLT events: noted when the task leaves the hardware thread, and
 * set as it was where it runs next, whether or not one of its events is on a
 * counter just then. It is 0 at first.
 *
 * The scheduler's tracepoint tells when tasks come and go; it is on while tasks
 * have SPFLT events. CPU-wide SPFLT events need none of this: they see the bit
 * as it is.
 */
#include <linux/atomic.h>
#include <linux/hashtable.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/tracepoint.h>

#include "knc_pmu.h"

/**
 * struct knc_spflt_task - the user preference of a task that has SPFLT events
 * @node:	in knc_spflt_tasks, by @task
 * @task:	the task; its events hold references to it
 * @events:	how many SPFLT events it has
 * @id:		no other ever has the same, while addresses are used again
 * @preference:	the bit, while the task is not running
 * @rcu:	it is looked up with interrupts off
 */
struct knc_spflt_task {
	struct hlist_node node;
	struct task_struct *task;
	unsigned int events;
	u64 id;
	u64 preference;
	struct rcu_head rcu;
};

static DEFINE_HASHTABLE(knc_spflt_tasks, 6);

/* Protects the table, the identities and the tracepoint. */
static DEFINE_MUTEX(knc_spflt_mutex);
static u64 knc_spflt_last_id;
static struct tracepoint *knc_spflt_tracepoint;

/* How many task events with SPFLT there are */
static atomic_t knc_spflt_events = ATOMIC_INIT(0);

/**
 * struct knc_spflt_cpu - whose preference the hardware thread has
 * @task:	id of the task that runs here, if it has SPFLT events, else 0
 * @outgoing:	the task that ran before; to compare with, it may be gone
 * @of_tasks:	counters that run for SPFLT events of tasks
 * @load:	@preference is still to be set
 * @preference:	the bit of @task, as it comes
 */
struct knc_spflt_cpu {
	u64 task;
	const struct task_struct *outgoing;
	unsigned long of_tasks;
	bool load;
	u64 preference;
};

static DEFINE_PER_CPU(struct knc_spflt_cpu, knc_spflt_cpu);

static bool knc_spflt_wanted(const struct perf_event *event)
{
	return event->attr.config1 & KNC_CONFIG1_SPFLT;
}

static bool knc_spflt_of_task(const struct perf_event *event)
{
	return knc_spflt_wanted(event) && event->attach_state & PERF_ATTACH_TASK;
}

static struct knc_spflt_task *knc_spflt_find(const struct task_struct *task)
{
	struct knc_spflt_task *st;

	hash_for_each_possible_rcu(knc_spflt_tasks, st, node, (unsigned long)task,
				   lockdep_is_held(&knc_spflt_mutex))
		if (st->task == task)
			return st;

	return NULL;
}

/* Changes of the register. The counters it filters are stopped, or not there. */
static void knc_spflt_write(struct knc_cpu *kc, u64 preference)
{
	knc_write_spflt(preference | kc->filtered);
	kc->filters = kc->filtered;
}

static u64 knc_spflt_preference(void)
{
	return knc_read_spflt() & KNC_SPFLT_USER_PREFERENCE;
}

/*
 * The scheduler is about to switch. Counters of @prev still run, in the kernel:
 * while they do, the bit stays as it is, until perf core has taken them off, or
 * made them the counters of @next, and knc_spflt_resume() is called. It may not
 * be where the kernel has another driver: there the bit is set at once.
 */
static void knc_spflt_switch(void *unused, bool preempt, struct task_struct *prev,
			     struct task_struct *next, unsigned int prev_state)
{
	struct knc_spflt_cpu *sc = this_cpu_ptr(&knc_spflt_cpu);
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);
	struct knc_spflt_task *st;

	if (!kc->ready)
		return;

	st = knc_spflt_find(prev);
	if (st && st->id == sc->task && !sc->load)
		WRITE_ONCE(st->preference, knc_spflt_preference());

	st = knc_spflt_find(next);
	sc->outgoing = prev;
	sc->task = st ? st->id : 0;
	sc->load = st;
	if (!st)
		return;

	sc->preference = READ_ONCE(st->preference);
	if (kc->shared || !(sc->of_tasks & kc->active)) {
		knc_spflt_write(kc, sc->preference);
		sc->load = false;
	}
}

/**
 * knc_spflt_reset() - no counter filtered, preference 0
 * @kc: the PMU of this hardware thread
 *
 * INIT leaves both as they were (1.4.4).
 */
void knc_spflt_reset(struct knc_cpu *kc)
{
	struct knc_spflt_cpu *sc = this_cpu_ptr(&knc_spflt_cpu);

	kc->filtered = 0;
	knc_spflt_write(kc, 0);
	*sc = (struct knc_spflt_cpu){};
}

/**
 * knc_spflt_enable() - an event's counter is to run, filtered or not
 * @kc: the PMU of this hardware thread
 * @event: an event on counter @event->hw.idx
 */
void knc_spflt_enable(struct knc_cpu *kc, struct perf_event *event)
{
	struct knc_spflt_cpu *sc = this_cpu_ptr(&knc_spflt_cpu);
	u8 counter = BIT(event->hw.idx);

	if (!knc_spflt_wanted(event)) {
		kc->filtered &= ~counter;
		return;
	}

	kc->filtered |= counter;
	if (knc_spflt_of_task(event))
		__set_bit(event->hw.idx, &sc->of_tasks);
}

/**
 * knc_spflt_disable() - an event's counter has stopped
 * @event: an event on counter @event->hw.idx
 *
 * Its filter stays as it is: the event is likely to come back.
 */
void knc_spflt_disable(struct perf_event *event)
{
	if (knc_spflt_of_task(event))
		__clear_bit(event->hw.idx, &this_cpu_ptr(&knc_spflt_cpu)->of_tasks);
}

/**
 * knc_spflt_resume() - bring the register up to date before counters run
 * @kc: the PMU of this hardware thread
 *
 * Called with the counters stopped and interrupts off whenever the PMU is
 * enabled. The program may change the bit at any time but now.
 */
void knc_spflt_resume(struct knc_cpu *kc)
{
	bool same = !((kc->filtered ^ kc->filters) & kc->active);
	struct knc_spflt_cpu *sc;
	struct knc_spflt_task *st;

	if (same && !atomic_read(&knc_spflt_events))
		return;

	/* The running task has got its first SPFLT event just now. */
	sc = this_cpu_ptr(&knc_spflt_cpu);
	st = current == sc->outgoing ? NULL : knc_spflt_find(current);
	if (st && st->id != sc->task) {
		sc->task = st->id;
		sc->preference = READ_ONCE(st->preference);
		sc->load = true;
	}

	if (same && !sc->load)
		return;

	knc_spflt_write(kc, sc->load ? sc->preference : knc_spflt_preference());
	sc->load = false;
}

/*
 * A running task gets its first SPFLT event. From here on it is followed, and
 * may say what it likes before the event is enabled.
 */
static void knc_spflt_adopt(void *task)
{
	struct knc_spflt_cpu *sc = this_cpu_ptr(&knc_spflt_cpu);
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);
	struct knc_spflt_task *st = knc_spflt_find(current);

	if (current != task || !st || !kc->ready || st->id == sc->task)
		return;

	sc->task = st->id;
	sc->load = false;
	knc_spflt_write(kc, READ_ONCE(st->preference));
}

/* Events come and go */

static void knc_spflt_match_tracepoint(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "sched_switch"))
		knc_spflt_tracepoint = tp;
}

/* The tracepoint's own symbol is not exported to modules. */
static int knc_spflt_follow_tasks(void)
{
	if (!knc_spflt_tracepoint)
		for_each_kernel_tracepoint(knc_spflt_match_tracepoint, NULL);
	if (!knc_spflt_tracepoint)
		return -EOPNOTSUPP;

	return tracepoint_probe_register(knc_spflt_tracepoint, knc_spflt_switch, NULL);
}

/* Returns 1 if it is the task's first, 0 if not, or an error. */
static int knc_spflt_get_task(struct task_struct *task)
{
	struct knc_spflt_task *st;

	lockdep_assert_held(&knc_spflt_mutex);

	st = knc_spflt_find(task);
	if (st) {
		st->events++;
		return 0;
	}

	st = kzalloc(sizeof(*st), GFP_KERNEL);
	if (!st)
		return -ENOMEM;

	st->task = task;
	st->events = 1;
	st->id = ++knc_spflt_last_id;
	hash_add_rcu(knc_spflt_tasks, &st->node, (unsigned long)task);

	return 1;
}

static void knc_spflt_put_task(struct task_struct *task)
{
	struct knc_spflt_task *st;

	lockdep_assert_held(&knc_spflt_mutex);

	st = knc_spflt_find(task);
	if (--st->events)
		return;

	hash_del_rcu(&st->node);
	kfree_rcu(st, rcu);
}

/**
 * knc_spflt_event_init() - prepare for an event that may be an SPFLT event
 * @event: a new event
 *
 * Return: 0; -EOPNOTSUPP where the kernel has no tracepoints, and the bit could
 * not follow the task; -ENOMEM. If 0, knc_spflt_event_destroy() undoes it.
 */
int knc_spflt_event_init(struct perf_event *event)
{
	struct task_struct *task = event->hw.target;
	int ret, first;

	if (!knc_spflt_of_task(event))
		return 0;

	mutex_lock(&knc_spflt_mutex);
	first = knc_spflt_get_task(task);
	ret = min(first, 0);
	if (ret)
		goto unlock;

	if (!atomic_read(&knc_spflt_events)) {
		ret = knc_spflt_follow_tasks();
		if (ret) {
			knc_spflt_put_task(task);
			goto unlock;
		}
	}
	atomic_inc(&knc_spflt_events);

	/* Should it move meanwhile, the switch takes care of it. */
	if (first)
		smp_call_function_single(task_cpu(task), knc_spflt_adopt, task, 1);
unlock:
	mutex_unlock(&knc_spflt_mutex);

	return ret;
}

/**
 * knc_spflt_event_destroy() - an event goes that knc_spflt_event_init() has seen
 * @event: the event
 */
void knc_spflt_event_destroy(struct perf_event *event)
{
	if (!knc_spflt_of_task(event))
		return;

	mutex_lock(&knc_spflt_mutex);
	if (atomic_dec_and_test(&knc_spflt_events))
		tracepoint_probe_unregister(knc_spflt_tracepoint, knc_spflt_switch,
					    NULL);
	knc_spflt_put_task(event->hw.target);
	mutex_unlock(&knc_spflt_mutex);
}
