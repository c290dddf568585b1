// SPDX-License-Identifier: GPL-2.0-only
/*
 * User-controlled counting: the SPFLT instruction and PERF_SPFLT_CONTROL
 * (327357-001, 1.3.1.1, 1.4.2, 1.4.3.4).
 *
 * With SPFLT a program says whether it wants to be counted: it sets the user preference,
 * one bit of each hardware thread. A counter whose filter is enabled counts only while
 * the bit is 1.
 *
 * The driver follows a task from its first SPFLT event until the task ends. The task's
 * bit is 0 at first. It is saved when the task leaves a hardware thread, and set where
 * the task runs next. It is kept for the task and not for its events, because perf core
 * may swap the events of clones. CPU-wide SPFLT events count by the bit as it is.
 *
 * The scheduler's hooks are registered at load, because that takes cpus_read_lock().
 * event_init() could deadlock: perf core holds mutexes there that a CPU which goes offline
 * waits for.
 */
#include <linux/perf_event.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/tracepoint.h>

#include "knc_pmu.h"

/**
 * struct knc_spflt_task - the user preference of a task that is followed
 * @rcu:	frees it when nobody looks it up any more
 * @node:	in knc_spflt_tasks, by @task
 * @task:	the task; it is only compared, so there is no reference
 * @preference:	the task's bit while it does not run
 *
 * A fork() that fails leaves its entry behind. A later task at the same address uses it,
 * which is right: the bit is still 0.
 */
struct knc_spflt_task {
	struct rcu_head rcu;
	struct rhash_head node;
	const struct task_struct *task;
	u64 preference;
};

static const struct rhashtable_params knc_spflt_params = {
	.head_offset = offsetof(struct knc_spflt_task, node),
	.key_offset = offsetof(struct knc_spflt_task, task),
	.key_len = sizeof(struct task_struct *),
	.automatic_shrinking = true,
};

static struct rhashtable knc_spflt_tasks;

/**
 * struct knc_spflt_cpu - whose bit the hardware thread has
 * @task:	the task that runs here if it is followed, else NULL
 * @outgoing:	@prev of the last call of the switch hook
 * @load:	@preference is not in the register yet
 * @preference:	the bit of @task when it came
 *
 * Used on this CPU with interrupts off, and never by an NMI.
 */
struct knc_spflt_cpu {
	const struct task_struct *task;
	const struct task_struct *outgoing;
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

static struct knc_spflt_task *knc_spflt_find(const struct task_struct *task)
{
	return rhashtable_lookup_fast(&knc_spflt_tasks, &task, knc_spflt_params);
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

	sc->outgoing = NULL;
	if (!sc->task && !compat_task_has_context(next))
		return;
	if (kc->state == KNC_OFF)
		return;

	st = sc->task == prev && !sc->load ? knc_spflt_find(prev) : NULL;
	if (st)
		WRITE_ONCE(st->preference, knc_spflt_preference());

	sc->outgoing = prev;
	sc->task = NULL;
	sc->load = false;
	st = knc_spflt_find(next);
	if (st)
		knc_spflt_come(kc, next, READ_ONCE(st->preference),
			       !COMPAT_SWITCH_TOLD_FIRST || !knc_spflt_counts_task(kc));
}

/* No filters, and the bit 0: INIT leaves both as they were (1.4.4). */
void knc_spflt_reset(struct knc_cpu *kc)
{
	kc->filters = 0;
	knc_spflt_write(kc, 0);
	*this_cpu_ptr(&knc_spflt_cpu) = (struct knc_spflt_cpu){};
}

/*
 * Set the bit of a task that the switch hook skipped, because the task had no context of
 * perf's yet or the PMU was not ready. Not of the outgoing task, which is about to leave.
 */
static void knc_spflt_catch_up(struct knc_cpu *kc)
{
	struct knc_spflt_cpu *sc = this_cpu_ptr(&knc_spflt_cpu);
	struct knc_spflt_task *st;

	if (sc->task == current || sc->outgoing == current)
		return;

	st = knc_spflt_find(current);
	if (st)
		knc_spflt_come(kc, current, READ_ONCE(st->preference), false);
}

/**
 * knc_spflt_update() - update PERF_SPFLT_CONTROL before the counters run
 * @kc: the PMU of this hardware thread, in KNC_STOP
 */
void knc_spflt_update(struct knc_cpu *kc)
{
	struct knc_spflt_cpu *sc;
	u8 filters = kc->filters;
	int idx;

	/* A counter without an event keeps its filter: the event is likely to come back. */
	for (idx = 0; idx < KNC_NUM_COUNTERS; idx++) {
		if (knc_spflt_wanted(kc->event[idx]))
			filters |= BIT(idx);
		else if (kc->event[idx])
			filters &= ~BIT(idx);
	}

	if (atomic_read(&knc_spflt_tasks.nelems))
		knc_spflt_catch_up(kc);
	sc = this_cpu_ptr(&knc_spflt_cpu);
	if (filters == kc->filters && !sc->load)
		return;

	kc->filters = filters;
	knc_spflt_write(kc, sc->load ? sc->preference : knc_spflt_preference());
	sc->load = false;
}

/* The task has got its first SPFLT event, and ran on this CPU. */
static void knc_spflt_adopt(void *task)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);

	/* Not if another event of the task has set its bit already */
	if (current == task && kc->state != KNC_OFF &&
	    this_cpu_ptr(&knc_spflt_cpu)->task != task)
		knc_spflt_come(kc, task, 0, true);
}

/* Not if the task has ended: nothing would remove the entry. */
static int knc_spflt_insert(struct knc_spflt_task *st)
{
	int ret = -ESRCH;

	rcu_read_lock();
	if (!READ_ONCE(st->task->exit_state))
		ret = rhashtable_lookup_insert_fast(&knc_spflt_tasks, &st->node,
						    knc_spflt_params);
	rcu_read_unlock();

	return ret;
}

/* Once more if the task has moved to another CPU meanwhile */
static void knc_spflt_adopt_running(struct task_struct *task)
{
	int cpu;

	do {
		preempt_disable();
		cpu = task_cpu(task);
		smp_call_function_single(cpu, knc_spflt_adopt, task, 1);
		preempt_enable();
	} while (cpu != task_cpu(task));
}

static int knc_spflt_follow(struct task_struct *task, bool runs)
{
	struct knc_spflt_task *st = kzalloc_obj(*st);
	int ret;

	if (!st)
		return -ENOMEM;

	st->task = task;
	ret = knc_spflt_insert(st);
	if (ret)
		kfree(st);
	else if (runs)
		knc_spflt_adopt_running(task);

	/* -EEXIST: another event was opened for the task at the same time. */
	return ret == -EEXIST ? 0 : ret;
}

/* The task has ended, and its memory is about to be freed. */
static void knc_spflt_free_task(void *unused, struct task_struct *task)
{
	struct knc_spflt_task *st;

	if (!atomic_read(&knc_spflt_tasks.nelems))
		return;

	rcu_read_lock();
	st = knc_spflt_find(task);
	if (st && !rhashtable_remove_fast(&knc_spflt_tasks, &st->node, knc_spflt_params))
		kfree_rcu(st, rcu);
	rcu_read_unlock();
}

static struct tracepoint *knc_switch_tracepoint;
static struct tracepoint *knc_free_tracepoint;

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
 * knc_hook_tracepoint() - have a function called at a tracepoint that is not exported
 * @name: the tracepoint, as in its TRACE_EVENT()
 * @probe: the function
 *
 * Return: the tracepoint, or NULL in a kernel that does not have it.
 */
struct tracepoint *knc_hook_tracepoint(const char *name, void *probe)
{
	struct knc_tracepoint_search search = { .name = name };

	for_each_kernel_tracepoint(knc_match_tracepoint, &search);
	if (search.found && tracepoint_probe_register(search.found, probe, NULL))
		return NULL;

	return search.found;
}

/* The caller waits for CPUs that are in the function. */
void knc_unhook_tracepoint(struct tracepoint *tp, void *probe)
{
	if (tp)
		tracepoint_probe_unregister(tp, probe, NULL);
}

/* Hook into the scheduler; without the hooks SPFLT events of tasks are refused. */
void knc_spflt_init(void)
{
	if (rhashtable_init(&knc_spflt_tasks, &knc_spflt_params))
		return;

	knc_free_tracepoint = knc_hook_tracepoint("sched_process_free", knc_spflt_free_task);
	if (knc_free_tracepoint)
		knc_switch_tracepoint = knc_hook_tracepoint("sched_switch", knc_spflt_switch);
}

static void knc_spflt_free(void *st, void *unused)
{
	kfree(st);
}

/* After the last event */
void knc_spflt_exit(void)
{
	knc_unhook_tracepoint(knc_switch_tracepoint, knc_spflt_switch);
	knc_unhook_tracepoint(knc_free_tracepoint, knc_spflt_free_task);
	tracepoint_synchronize_unregister();
	if (knc_spflt_tasks.tbl)
		rhashtable_free_and_destroy(&knc_spflt_tasks, knc_spflt_free, NULL);
}

/**
 * knc_spflt_event_init() - prepare for an event that may be an SPFLT event
 * @event: a new event
 *
 * Return: 0; -EOPNOTSUPP where the kernel lacks the hooks, and the bit could not follow
 * the task; -EACCES for another user's task; -ESRCH for a task that has ended; -ENOMEM.
 */
int knc_spflt_event_init(const struct perf_event *event)
{
	struct task_struct *task;

	if (!knc_spflt_of_task(event))
		return 0;
	if (!knc_switch_tracepoint)
		return -EOPNOTSUPP;

	/* A task that inherits the event has not run yet. */
	task = compat_event_target(event);
	if (knc_spflt_find(task))
		return 0;
	/* perf core checks this after event_init(). */
	if (!event->parent && !compat_may_follow(task))
		return -EACCES;

	return knc_spflt_follow(task, !event->parent);
}
