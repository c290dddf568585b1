// SPDX-License-Identifier: GPL-2.0-only
/*
 * User-controlled counting: the SPFLT instruction and PERF_SPFLT_CONTROL
 * (327357-001, 1.3.1.1, 1.4.2, 1.4.3.4).
 *
 * With SPFLT a program says whether it wants to be counted: it sets the user preference,
 * one bit of each hardware thread. A counter whose filter is enabled counts only while
 * the bit is 1.
 *
 * The driver follows a task that has an SPFLT event: it saves the task's bit when the task
 * leaves a hardware thread, and sets it where the task runs next. The bit is 0 at first,
 * and survives exec(). It is kept for the task and not for its events, because perf core
 * may swap the events of clones. CPU-wide SPFLT events count by the bit as it is.
 *
 * event_init() enters the task in a table, and changes nothing else: perf core may still
 * refuse the event. Once perf core has accepted it, the task is followed from when it next
 * comes to a CPU, or from when the event is first on a counter. A task that opens an event
 * on itself is followed at once, since it may use SPFLT before either. If the event is
 * refused, the task gets its bit back.
 *
 * The scheduler's hooks are registered at load, because that takes cpus_read_lock().
 * event_init() could deadlock: perf core holds mutexes there that a CPU which goes offline
 * waits for.
 */
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/tracepoint.h>

#include "knc_pmu.h"

/**
 * struct knc_spflt_task - the user preference of a task
 * @rcu:	frees it when nobody looks it up any more
 * @node:	in knc_spflt_tasks, while @task is not NULL
 * @task:	the task; it is only compared, so there is no reference. NULL before the entry is
 *		in the table, and after
 * @event:	the event that made this entry, until that event is freed; NULL for one that is
 *		inherited, which perf core accepts in any case
 * @events:	the task's SPFLT events that refer to this entry
 * @followed:	the bit is kept: an event was accepted before the task came, or it opened one
 * @before:	the bit when the task opened @event on itself
 * @preference:	the task's bit while it does not run; only the CPU that it leaves writes it
 *
 * The rest is written under knc_spflt_lock. Until perf core has accepted an event of a task,
 * each event that is opened for the task makes an entry. Later events refer to the entry
 * of the accepted one.
 */
struct knc_spflt_task {
	struct rcu_head rcu;
	struct list_head node;
	const struct task_struct *task;
	const struct perf_event *event;
	unsigned int events;
	bool followed;
	u64 before;
	u64 preference;
};

#define KNC_SPFLT_HASH_BITS	12

static struct list_head knc_spflt_tasks[1 << KNC_SPFLT_HASH_BITS];
static unsigned int knc_spflt_entries;

/* Taken with interrupts off, also under a run queue's lock */
static DEFINE_RAW_SPINLOCK(knc_spflt_lock);

/**
 * struct knc_spflt_cpu - whose bit the hardware thread has
 * @task:	the task that runs here if it is followed, else NULL
 * @leaving:	the task that the scheduler last switched from; NULL if there was nothing to do
 * @load:	@preference is not in the register yet
 * @preference:	the bit of @task when it came
 *
 * Used on this CPU with interrupts off, and never by an NMI.
 */
struct knc_spflt_cpu {
	const struct task_struct *task;
	const struct task_struct *leaving;
	bool load;
	u64 preference;
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

static struct list_head *knc_spflt_bucket(const struct task_struct *task)
{
	return &knc_spflt_tasks[hash_ptr(task, KNC_SPFLT_HASH_BITS)];
}

/* perf core sets event->ctx once nothing can refuse the event any more. */
static bool knc_spflt_accepted(const struct knc_spflt_task *st)
{
	return !st->event || READ_ONCE(st->event->ctx);
}

/* The entry of a task of which perf core has accepted an event; the caller has the lock. */
static struct knc_spflt_task *knc_spflt_accepted_entry(const struct task_struct *task)
{
	struct knc_spflt_task *st;

	list_for_each_entry(st, knc_spflt_bucket(task), node)
		if (st->task == task && knc_spflt_accepted(st))
			return st;

	return NULL;
}

static void knc_spflt_insert(struct knc_spflt_task *st, const struct task_struct *task)
{
	st->task = task;
	list_add_rcu(&st->node, knc_spflt_bucket(task));
	WRITE_ONCE(knc_spflt_entries, knc_spflt_entries + 1);
}

static void knc_spflt_remove(struct knc_spflt_task *st)
{
	WRITE_ONCE(st->task, NULL);
	list_del_rcu(&st->node);
	WRITE_ONCE(knc_spflt_entries, knc_spflt_entries - 1);
}

/*
 * Find the entry of a task that is followed, or is from now on. The task runs here, or is
 * about to. Interrupts are off, so the entry is not freed until they are on.
 */
static struct knc_spflt_task *knc_spflt_find(const struct task_struct *task)
{
	struct knc_spflt_task *st;
	bool entered = false;

	list_for_each_entry_rcu(st, knc_spflt_bucket(task), node) {
		if (READ_ONCE(st->task) != task)
			continue;
		if (READ_ONCE(st->followed))
			return st;
		entered = true;
	}
	if (!entered)
		return NULL;

	/* Under the lock no event is freed that st->event refers to. */
	raw_spin_lock(&knc_spflt_lock);
	st = knc_spflt_accepted_entry(task);
	if (st)
		WRITE_ONCE(st->followed, true);
	raw_spin_unlock(&knc_spflt_lock);

	return st;
}

static void knc_spflt_write(struct knc_cpu *kc, u64 preference)
{
	knc_write_spflt(preference | kc->filters);
}

static u64 knc_spflt_preference(void)
{
	return knc_read_spflt() & KNC_SPFLT_USER_PREFERENCE;
}

/* A task comes: set its bit, now or in the next knc_spflt_update(). */
static void knc_spflt_come(struct knc_cpu *kc, const struct task_struct *task,
			   u64 preference, bool now)
{
	struct knc_spflt_cpu *sc = this_cpu_ptr(&knc_spflt_cpu);

	sc->task = task;
	sc->preference = preference;
	sc->load = !now;
	if (now)
		knc_spflt_write(kc, preference);
}

static bool knc_spflt_counts_task(struct knc_cpu *kc)
{
	return knc_spflt_of_task(READ_ONCE(kc->event[0])) ||
	       knc_spflt_of_task(READ_ONCE(kc->event[1]));
}

/*
 * The scheduler is about to switch from @prev to @next. If counters still run for @prev,
 * @next's bit waits until perf core has switched the events and enables the PMU. If no
 * such counter runs, or perf core has switched already, the bit is set at once.
 */
static void knc_spflt_switch(void *unused, bool preempt, struct task_struct *prev,
			     struct task_struct *next, unsigned int prev_state)
{
	struct knc_spflt_cpu *sc = this_cpu_ptr(&knc_spflt_cpu);
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);
	struct knc_spflt_task *st;

	sc->leaving = NULL;
	if (!READ_ONCE(knc_spflt_entries) || kc->state == KNC_OFF)
		return;

	st = sc->task == prev && !sc->load ? knc_spflt_find(prev) : NULL;
	if (st)
		WRITE_ONCE(st->preference, knc_spflt_preference());

	sc->leaving = prev;
	sc->task = NULL;
	sc->load = false;
	st = knc_spflt_find(next);
	if (st)
		knc_spflt_come(kc, next, READ_ONCE(st->preference),
			       !knc_spflt_counts_task(kc));
}

/* No filters, and the bit 0: INIT leaves both as they were (1.4.4). */
void knc_spflt_reset(struct knc_cpu *kc)
{
	kc->filters = 0;
	knc_spflt_write(kc, 0);
	*this_cpu_ptr(&knc_spflt_cpu) = (struct knc_spflt_cpu){};
}

/*
 * perf core does not tell for which task an event is inherited: it is the current one when
 * the event is first on a counter.
 */
static struct knc_spflt_task *knc_spflt_claim(struct knc_cpu *kc)
{
	struct perf_event *event = NULL;
	struct knc_spflt_task *st;
	int idx;

	for (idx = 0; idx < KNC_NUM_COUNTERS && !event; idx++)
		if (knc_spflt_of_task(kc->event[idx]))
			event = kc->event[idx];
	st = event ? *compat_event_private(event) : NULL;
	if (!st || st->followed)
		return NULL;

	/* A clone that is not followed yet could get this event, and would look followed. */
	compat_pin_context(event);

	raw_spin_lock(&knc_spflt_lock);
	knc_spflt_insert(st, current);
	st->followed = true;
	raw_spin_unlock(&knc_spflt_lock);

	return st;
}

/**
 * knc_spflt_update() - update PERF_SPFLT_CONTROL before the counters run
 * @kc: the PMU of this hardware thread, in KNC_STOP
 */
void knc_spflt_update(struct knc_cpu *kc)
{
	struct knc_spflt_cpu *sc = this_cpu_ptr(&knc_spflt_cpu);
	struct knc_spflt_task *st = NULL;
	u8 filters = kc->filters;
	int idx;

	/* A counter without an event keeps its filter: the event is likely to come back. */
	for (idx = 0; idx < KNC_NUM_COUNTERS; idx++) {
		if (knc_spflt_wanted(kc->event[idx]))
			filters |= BIT(idx);
		else if (kc->event[idx])
			filters &= ~BIT(idx);
	}

	/*
	 * The switch hook skips a task if perf core has not accepted an event of the task yet,
	 * or the PMU is off. Between the hook and the switch, current still is the task that
	 * leaves.
	 */
	if (sc->task != current && sc->leaving != current) {
		if (READ_ONCE(knc_spflt_entries))
			st = knc_spflt_find(current);
		if (!st && COMPAT_TARGET_UNKNOWN)
			st = knc_spflt_claim(kc);
		if (st)
			knc_spflt_come(kc, current, READ_ONCE(st->preference), false);
	}
	if (filters == kc->filters && !sc->load)
		return;

	knc_assert(knc_may_set_up(kc));
	kc->filters = filters;
	knc_spflt_write(kc, sc->load ? sc->preference : knc_spflt_preference());
	sc->load = false;
}

/* The task has ended, and its memory is about to be freed. */
static void knc_spflt_free_task(void *unused, struct task_struct *task)
{
	struct knc_spflt_task *st, *next, *dead = NULL;
	unsigned long flags;

	if (!READ_ONCE(knc_spflt_entries))
		return;

	raw_spin_lock_irqsave(&knc_spflt_lock, flags);
	list_for_each_entry_safe(st, next, knc_spflt_bucket(task), node) {
		if (st->task != task)
			continue;
		knc_spflt_remove(st);
		/* Only the entry that is followed may have no events. */
		if (!st->events)
			dead = st;
	}
	raw_spin_unlock_irqrestore(&knc_spflt_lock, flags);
	/* Not under the lock: it may wake a task up, and a run queue's lock comes first. */
	if (dead)
		kfree_rcu(dead, rcu);
}

static struct tracepoint *knc_switch_tracepoint;
static struct tracepoint *knc_free_tracepoint;
static bool knc_spflt_hooked;

/* They are not exported. */
static void knc_spflt_find_tracepoint(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "sched_switch"))
		knc_switch_tracepoint = tp;
	else if (!strcmp(tp->name, "sched_process_free"))
		knc_free_tracepoint = tp;
}

/* Hook into the scheduler; without the hooks SPFLT events of tasks are refused. */
void knc_spflt_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(knc_spflt_tasks); i++)
		INIT_LIST_HEAD(&knc_spflt_tasks[i]);

	for_each_kernel_tracepoint(knc_spflt_find_tracepoint, NULL);
	if (!knc_switch_tracepoint || !knc_free_tracepoint ||
	    tracepoint_probe_register(knc_free_tracepoint, knc_spflt_free_task, NULL))
		return;
	if (tracepoint_probe_register(knc_switch_tracepoint, knc_spflt_switch, NULL))
		tracepoint_probe_unregister(knc_free_tracepoint, knc_spflt_free_task, NULL);
	else
		knc_spflt_hooked = true;
}

/* After the last event */
void knc_spflt_exit(void)
{
	struct knc_spflt_task *st, *next;
	unsigned int i;

	if (!knc_spflt_hooked)
		return;

	tracepoint_probe_unregister(knc_switch_tracepoint, knc_spflt_switch, NULL);
	tracepoint_probe_unregister(knc_free_tracepoint, knc_spflt_free_task, NULL);
	tracepoint_synchronize_unregister();
	knc_spflt_hooked = false;
	for (i = 0; i < ARRAY_SIZE(knc_spflt_tasks); i++)
		list_for_each_entry_safe(st, next, &knc_spflt_tasks[i], node)
			kfree(st);
	knc_spflt_entries = 0;
}

/* The current task opens an event, and may use SPFLT before perf core calls again. */
static void knc_spflt_follow_current(struct knc_spflt_task *st)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);

	st->followed = true;
	if (kc->state == KNC_OFF)
		return;

	st->before = knc_spflt_preference();
	knc_spflt_come(kc, st->task, 0, true);
}

/* perf core has refused the event with which the current task was to be followed. */
static void knc_spflt_unfollow_current(struct knc_spflt_task *st)
{
	struct knc_spflt_cpu *sc = this_cpu_ptr(&knc_spflt_cpu);
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);

	if (sc->task != st->task)
		return;

	sc->task = NULL;
	sc->load = false;
	knc_spflt_write(kc, st->before);
}

/* Return false if the task has ended: nothing would remove the entry. */
static bool knc_spflt_enter(struct perf_event *event, struct task_struct *task,
			    struct knc_spflt_task *new)
{
	struct knc_spflt_task *st = task ? knc_spflt_accepted_entry(task) : NULL;

	if (task && READ_ONCE(task->exit_state))
		return false;

	if (!st) {
		st = new;
		st->event = event->parent ? NULL : event;
		if (task)
			knc_spflt_insert(st, task);
	}
	if (task == current && !st->followed)
		knc_spflt_follow_current(st);
	st->events++;
	*compat_event_private(event) = st;

	return true;
}

/**
 * knc_spflt_event_init() - prepare for an event that may be an SPFLT event
 * @event: a new event; the caller has its destroy() call knc_spflt_event_destroy()
 *
 * Return: 0; -EOPNOTSUPP where the kernel lacks the hooks, and the bit could not follow
 * the task; -ESRCH for a task that has ended; -ENOMEM.
 */
int knc_spflt_event_init(struct perf_event *event)
{
	struct knc_spflt_task *new;
	unsigned long flags;
	bool entered;

	if (!knc_spflt_of_task(event))
		return 0;
	if (!knc_spflt_hooked)
		return -EOPNOTSUPP;

	new = kzalloc_obj(*new);
	if (!new)
		return -ENOMEM;

	raw_spin_lock_irqsave(&knc_spflt_lock, flags);
	entered = knc_spflt_enter(event, compat_event_target(event), new);
	raw_spin_unlock_irqrestore(&knc_spflt_lock, flags);
	if (*compat_event_private(event) != new)
		kfree(new);

	return entered ? 0 : -ESRCH;
}

/**
 * knc_spflt_event_destroy() - an event is freed, or was refused after it had been prepared
 * @event: any event of this PMU
 *
 * A task that was followed stays so until it ends: its events may be a clone's meanwhile.
 */
void knc_spflt_event_destroy(struct perf_event *event)
{
	struct knc_spflt_task *st = *compat_event_private(event);
	bool refused, unused;
	unsigned long flags;

	if (!st)
		return;

	raw_spin_lock_irqsave(&knc_spflt_lock, flags);
	refused = st->event == event && !event->ctx;
	if (st->event == event)
		st->event = NULL;
	unused = !--st->events;
	if (unused && st->task && (refused || !st->followed)) {
		if (st->followed)
			knc_spflt_unfollow_current(st);
		knc_spflt_remove(st);
	}
	unused &= !st->task;
	raw_spin_unlock_irqrestore(&knc_spflt_lock, flags);
	if (unused)
		kfree_rcu(st, rcu);
}
