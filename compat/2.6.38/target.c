// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which task an event is for. That perf core does not tell until the PMU has
 * accepted the event, but the driver follows the task from then on.
 *
 * For an event that is opened the system call's arguments tell it. An event that is
 * inherited is for the new task that perf_event_init_task() was called for.
 */
#include <linux/kprobes.h>
#include <linux/list.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include <asm/ptrace.h>
#include <asm/unistd.h>

#include "../../knc_pmu.h"
#include "perf_core.h"

/* The forks that are in perf_event_init_task() */
struct compat_fork {
	struct list_head entry;
	struct task_struct *parent;
	struct task_struct *child;
};

static LIST_HEAD(compat_forks);
static DEFINE_SPINLOCK(compat_forks_lock);

static int compat_fork_begins(struct kretprobe_instance *instance,
			      struct pt_regs *regs)
{
	struct compat_fork *fork = (struct compat_fork *)instance->data;
	unsigned long flags;

	fork->parent = current;
	fork->child = (struct task_struct *)regs->di;
	spin_lock_irqsave(&compat_forks_lock, flags);
	list_add(&fork->entry, &compat_forks);
	spin_unlock_irqrestore(&compat_forks_lock, flags);

	return 0;
}

static int compat_fork_ends(struct kretprobe_instance *instance,
			    struct pt_regs *regs)
{
	struct compat_fork *fork = (struct compat_fork *)instance->data;
	unsigned long flags;

	spin_lock_irqsave(&compat_forks_lock, flags);
	list_del(&fork->entry);
	spin_unlock_irqrestore(&compat_forks_lock, flags);

	return 0;
}

/* More at once than there are CPUs: perf_event_init_task() may sleep. */
#define COMPAT_FORKS	1024

static struct kretprobe compat_fork_probe = {
	.kp.symbol_name = "perf_event_init_task",
	.entry_handler = compat_fork_begins,
	.handler = compat_fork_ends,
	.data_size = sizeof(struct compat_fork),
	.maxactive = COMPAT_FORKS,
};

static bool compat_forks_watched;

/* At load: to register a probe while an event is opened could deadlock. */
void compat_watch_forks(void)
{
	compat_forks_watched = !register_kretprobe(&compat_fork_probe);
}

void compat_unwatch_forks(void)
{
	if (compat_forks_watched)
		unregister_kretprobe(&compat_fork_probe);
}

static struct task_struct *compat_forked(void)
{
	struct task_struct *child = NULL;
	struct compat_fork *fork;
	unsigned long flags;

	spin_lock_irqsave(&compat_forks_lock, flags);
	list_for_each_entry(fork, &compat_forks, entry) {
		if (fork->parent == current) {
			child = fork->child;
			get_task_struct(child);
			break;
		}
	}
	spin_unlock_irqrestore(&compat_forks_lock, flags);

	return child;
}

/* perf_event_open(attr, pid, cpu, group, flags) */
static struct task_struct *compat_opened_for(void)
{
	struct pt_regs *regs = task_pt_regs(current);
	struct task_struct *task = current;
	pid_t pid = regs->si;

	if (regs->orig_ax != __NR_perf_event_open)
		return NULL;

	rcu_read_lock();
	if (pid)
		task = pid_task(find_vpid(pid), PIDTYPE_PID);
	if (task)
		get_task_struct(task);
	rcu_read_unlock();

	return task;
}

/**
 * compat_get_target() - find out which task an SPFLT event is for
 * @event: an event that is being opened or inherited
 *
 * Return: 0, with a reference to the task if there is one, which
 * compat_put_target() gives back; -EOPNOTSUPP if it cannot be told.
 */
int compat_get_target(struct perf_event *event)
{
	struct task_struct *task;

	event->hw.event_base = 0;
	if (!(event->attr.config1 & KNC_CONFIG1_SPFLT) ||
	    !(event->attach_state & PERF_ATTACH_TASK))
		return 0;

	if (event->parent)
		task = compat_forked();
	else if (event->attr.inherit && !compat_forks_watched)
		task = NULL;
	else
		task = compat_opened_for();
	if (!task)
		return -EOPNOTSUPP;

	event->hw.event_base = (unsigned long)task;
	return 0;
}

void compat_put_target(const struct perf_event *event)
{
	struct task_struct *task = compat_event_target(event);

	if (task)
		put_task_struct(task);
}
