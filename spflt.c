// SPDX-License-Identifier: GPL-2.0-only
/*
 * User-controlled counting: the SPFLT instruction and PERF_SPFLT_CONTROL
 * (327357-001, 1.3.1.1, 1.4.2, 1.4.3.4).
 *
 * A program says with SPFLT whether it wants to be counted: the user preference,
 * one bit of each hardware thread. A counter whose filter is enabled counts only
 * while the bit is 1. The hardware knows no tasks, so the driver follows those
 * that an SPFLT event was opened for: the bit is noted when the task leaves the
 * hardware thread, and set as it was where it runs next. It is 0 at first.
 *
 * It belongs to the task that has said it, for as long as that lives and is
 * followed, and not to events: perf core lets clones swap theirs at a switch, and
 * an event may be freed long before or after the task that it was opened for.
 *
 * The scheduler's tracepoint tells when tasks come and go. To have it on and off
 * is dear (code is changed, on all CPUs), so it goes on with the first event for
 * a task, and off when there has been none for a while; then no task is followed
 * any more. CPU-wide SPFLT events need none of this: they see the bit as it is.
 */
#include <linux/hashtable.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>

#include "knc_pmu.h"

/* As long as perf core leaves its own hooks of the scheduler on */
#define KNC_SPFLT_LINGER	HZ

/**
 * struct knc_spflt_task - the user preference of a task that is followed
 * @node:	in knc_spflt_tasks, by @task
 * @task:	the task, referenced, so that no other is ever at its address
 * @unborn:	@task has not run yet, and there is no reference: a fork() that fails
 *		frees it all the same. Who clears this, by one xchg(), decides: the
 *		hook, as @task first runs, takes a reference then; of one that
 *		knc_spflt_forget() finds unborn there is none to give back
 * @events:	how many SPFLT events there are that were opened for it
 * @inherited:	some of them by its parent's fork(): how many there are is not how
 *		many it has, as clones swap theirs
 * @preference:	the bit, while the task is not running; the scheduler's hook
 *		changes it, on the CPU that the task leaves
 * @rcu:	it is looked up with interrupts off
 */
struct knc_spflt_task {
	struct hlist_node node;
	struct task_struct *task;
	int unborn;
	unsigned int events;
	bool inherited;
	u64 preference;
	struct rcu_head rcu;
};

static DEFINE_HASHTABLE(knc_spflt_tasks, 6);

/* Protects changes of the table, and the next three. */
static DEFINE_MUTEX(knc_spflt_mutex);
static struct tracepoint *knc_spflt_tracepoint;
static unsigned int knc_spflt_events;		/* of tasks */
static bool knc_spflt_following;		/* read anywhere, as a hint */

/**
 * struct knc_spflt_cpu - whose preference the hardware thread has
 * @task:	the task that runs here, if it is followed, else NULL
 * @outgoing:	the task that ran before; to compare with, it may be gone
 * @of_tasks:	counters that run for SPFLT events of tasks; a PMI may remove one,
 *		by one instruction
 * @load:	@preference is still to be set
 * @preference:	the bit of @task, as it comes
 */
struct knc_spflt_cpu {
	const struct task_struct *task;
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
 * be where the kernel has another driver, nor where perf core has done all that
 * before the scheduler tells us: there the bit is set at once.
 */
static void knc_spflt_switch(void *unused, bool preempt, struct task_struct *prev,
			     struct task_struct *next, unsigned int prev_state)
{
	struct knc_spflt_cpu *sc = this_cpu_ptr(&knc_spflt_cpu);
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);
	struct knc_spflt_task *coming = knc_spflt_find(next), *st;

	if (coming && unlikely(READ_ONCE(coming->unborn)) && xchg(&coming->unborn, 0))
		get_task_struct(next);
	if (!kc->ready)
		return;

	st = knc_spflt_find(prev);
	if (st && sc->task == prev && !sc->load)
		WRITE_ONCE(st->preference, knc_spflt_preference());

	st = coming;
	sc->outgoing = prev;
	sc->task = st ? next : NULL;
	sc->load = st;
	if (!st)
		return;

	sc->preference = READ_ONCE(st->preference);
	if (kc->shared || !COMPAT_SWITCH_TOLD_FIRST || !(sc->of_tasks & kc->active)) {
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

	if (same && !READ_ONCE(knc_spflt_following))
		return;

	/*
	 * It came while the registers were not the driver's yet. Between the
	 * scheduler's decision and the switch it is about to leave.
	 */
	sc = this_cpu_ptr(&knc_spflt_cpu);
	st = current == sc->outgoing ? NULL : knc_spflt_find(current);
	if (st && sc->task != current) {
		sc->task = current;
		sc->preference = READ_ONCE(st->preference);
		sc->load = true;
	}

	if (same && !sc->load)
		return;

	knc_spflt_write(kc, sc->load ? sc->preference : knc_spflt_preference());
	sc->load = false;
}

/*
 * A task gets its first SPFLT event. From here on it is followed, and may say
 * what it likes before the event is enabled. Called where it runs, if it runs.
 */
static void knc_spflt_adopt(void *data)
{
	struct knc_spflt_cpu *sc = this_cpu_ptr(&knc_spflt_cpu);
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);
	struct knc_spflt_task *st = data;

	WRITE_ONCE(st->preference, 0);
	if (current != st->task || !kc->ready)
		return;

	sc->task = current;
	sc->load = false;
	knc_spflt_write(kc, 0);
}

/* Whom to follow */

static void knc_spflt_forget(struct knc_spflt_task *st)
{
	hash_del_rcu(&st->node);
	if (!xchg(&st->unborn, 0))
		put_task_struct(st->task);
	kfree_rcu(st, rcu);
}

/*
 * Each task that comes clears away the dead that it finds in its place. What is
 * left of one on its way out has no events any more.
 */
static struct knc_spflt_task *knc_spflt_follow(struct task_struct *task, bool unborn)
{
	struct knc_spflt_task *st;
	struct hlist_node *next;

	hash_for_each_possible_safe(knc_spflt_tasks, st, next, node,
				    (unsigned long)task)
		if (READ_ONCE(st->task->exit_state))
			knc_spflt_forget(st);

	st = kzalloc_obj(*st);
	if (!st)
		return NULL;

	st->task = task;
	st->unborn = unborn;
	if (!unborn)
		get_task_struct(task);
	hash_add_rcu(knc_spflt_tasks, &st->node, (unsigned long)task);

	return st;
}

/* The hook */

struct knc_tracepoint_search {
	const char *name;
	struct tracepoint *found;
};

static void knc_match_tracepoint(struct tracepoint *tp, void *data)
{
	struct knc_tracepoint_search *search = data;

	if (!strcmp(tp->name, search->name))
		search->found = tp;
}

/**
 * knc_find_tracepoint() - one of the kernel's tracepoints
 * @name: as it is called in its TRACE_EVENT()
 *
 * Their own symbols are not exported to modules.
 *
 * Return: the tracepoint, or NULL in a kernel that does not have it.
 */
struct tracepoint *knc_find_tracepoint(const char *name)
{
	struct knc_tracepoint_search search = { .name = name };

	for_each_kernel_tracepoint(knc_match_tracepoint, &search);

	return search.found;
}

static int knc_spflt_start_following(void)
{
	int ret;

	if (knc_spflt_following)
		return 0;
	if (!knc_spflt_tracepoint)
		knc_spflt_tracepoint = knc_find_tracepoint("sched_switch");
	if (!knc_spflt_tracepoint)
		return -EOPNOTSUPP;

	ret = tracepoint_probe_register(knc_spflt_tracepoint, knc_spflt_switch, NULL);
	if (!ret)
		WRITE_ONCE(knc_spflt_following, true);

	return ret;
}

static void knc_spflt_forget_this_cpu(void *unused)
{
	struct knc_spflt_cpu *sc = this_cpu_ptr(&knc_spflt_cpu);

	sc->task = NULL;
	sc->outgoing = NULL;
	sc->load = false;
}

static void knc_spflt_stop_following(void)
{
	struct knc_spflt_task *st;
	struct hlist_node *next;
	int bucket;

	tracepoint_probe_unregister(knc_spflt_tracepoint, knc_spflt_switch, NULL);
	/* The hook may still run somewhere, and note something down. */
	tracepoint_synchronize_unregister();
	WRITE_ONCE(knc_spflt_following, false);
	on_each_cpu(knc_spflt_forget_this_cpu, NULL, 1);

	hash_for_each_safe(knc_spflt_tasks, bucket, next, st, node)
		knc_spflt_forget(st);
}

static void knc_spflt_rest(struct work_struct *work)
{
	mutex_lock(&knc_spflt_mutex);
	if (knc_spflt_following && !knc_spflt_events)
		knc_spflt_stop_following();
	mutex_unlock(&knc_spflt_mutex);
}

static DECLARE_DELAYED_WORK(knc_spflt_idle_work, knc_spflt_rest);

/* An inherited event is for a task that has not run yet. */
static int knc_spflt_get_target(const struct perf_event *event)
{
	struct task_struct *task = compat_event_target(event);
	struct knc_spflt_task *st;
	int ret;

	lockdep_assert_held(&knc_spflt_mutex);

	ret = knc_spflt_start_following();
	if (ret)
		return ret;

	st = knc_spflt_find(task) ?: knc_spflt_follow(task, event->parent);
	if (!st)
		return -ENOMEM;

	if (event->parent)
		st->inherited = true;
	/* Should it move meanwhile, the hook sees it. */
	if (!st->events++ && !st->inherited)
		smp_call_function_single(task_cpu(task), knc_spflt_adopt, st, 1);

	return 0;
}

static void knc_spflt_put_target(const struct perf_event *event)
{
	struct knc_spflt_task *st = knc_spflt_find(compat_event_target(event));

	/* A task that is gone may have been forgotten. */
	if (!st)
		return;
	/* The last one, of a fork() that fails: the task is about to be freed. */
	if (!--st->events && READ_ONCE(st->unborn))
		knc_spflt_forget(st);
}

/* perf core does the same to its own hooks, for the same reason. */
static void knc_spflt_linger(void)
{
	if (!knc_spflt_events)
		schedule_delayed_work(&knc_spflt_idle_work, KNC_SPFLT_LINGER);
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
	int ret;

	if (!knc_spflt_of_task(event))
		return 0;

	mutex_lock(&knc_spflt_mutex);
	ret = knc_spflt_get_target(event);
	if (!ret)
		knc_spflt_events++;
	else
		knc_spflt_linger();
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
	knc_spflt_put_target(event);
	knc_spflt_events--;
	knc_spflt_linger();
	mutex_unlock(&knc_spflt_mutex);
}

/**
 * knc_spflt_exit() - follow no task any more
 *
 * For a host that goes, after its last event.
 */
void knc_spflt_exit(void)
{
	cancel_delayed_work_sync(&knc_spflt_idle_work);
	knc_spflt_rest(NULL);
}
