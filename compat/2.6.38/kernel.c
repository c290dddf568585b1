// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interfaces of newer kernels, made from those of Linux 2.6.38: NMIs, CPUs that come
 * online, and the scheduler's tracepoint.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/kdebug.h>
#include <linux/notifier.h>
#include <linux/smp.h>

/* Die notifiers report NMIs. */

static int (*compat_nmi_handler)(unsigned int type, struct pt_regs *regs);

/* A machine check is DIE_NMI, too: its own handlers must see it. */
#define COMPAT_TRAP_NMI		2

static int compat_nmi(struct notifier_block *self, unsigned long reason, void *data)
{
	struct die_args *args = data;

	if (reason == DIE_NMI && args->trapnr == COMPAT_TRAP_NMI &&
	    compat_nmi_handler(NMI_LOCAL, args->regs))
		return NOTIFY_STOP;

	return NOTIFY_DONE;
}

/* Before the kernel's own driver */
static struct notifier_block compat_nmi_notifier = {
	.notifier_call = compat_nmi,
	.priority = NMI_LOCAL_NORMAL_PRIOR,
};

int register_nmi_handler(unsigned int type,
			 int (*handler)(unsigned int type, struct pt_regs *regs),
			 unsigned long flags, const char *name)
{
	compat_nmi_handler = handler;
	return register_die_notifier(&compat_nmi_notifier);
}

void unregister_nmi_handler(unsigned int type, const char *name)
{
	unregister_die_notifier(&compat_nmi_notifier);
	/* The end of a load that failed: wait for NMIs on other CPUs, which have interrupts off. */
	synchronize_sched();
}

/* CPUs that come online */

static int (*compat_startup[COMPAT_CPUHP_STATES])(unsigned int cpu);

static int compat_cpu(struct notifier_block *self, unsigned long action, void *cpu)
{
	int (*startup)(unsigned int cpu) = NULL;

	switch (action & ~CPU_TASKS_FROZEN) {
	case CPU_UP_PREPARE:
		startup = compat_startup[CPUHP_BP_PREPARE_DYN];
		break;
	case CPU_STARTING:
		/* On that CPU, with interrupts off, before it runs tasks */
		startup = compat_startup[CPUHP_AP_ONLINE_DYN];
		break;
	}

	return startup ? notifier_from_errno(startup((unsigned long)cpu)) : NOTIFY_OK;
}

static struct notifier_block compat_cpu_notifier = {
	.notifier_call = compat_cpu,
};

static bool compat_no_startup(void)
{
	unsigned int state;

	for (state = 0; state < COMPAT_CPUHP_STATES; state++)
		if (compat_startup[state])
			return false;

	return true;
}

int cpuhp_setup_state_nocalls(enum cpuhp_state state, const char *name,
			      int (*startup)(unsigned int cpu),
			      int (*teardown)(unsigned int cpu))
{
	bool first = compat_no_startup();
	int ret = 0;

	compat_startup[state] = startup;
	if (first)
		ret = register_cpu_notifier(&compat_cpu_notifier);
	if (ret) {
		compat_startup[state] = NULL;
		return ret;
	}

	return state;
}

static void compat_start_this_cpu(void *state)
{
	compat_startup[(unsigned long)state](smp_processor_id());
}

/* Only for functions that do not fail */
int cpuhp_setup_state(enum cpuhp_state state, const char *name,
		      int (*startup)(unsigned int cpu),
		      int (*teardown)(unsigned int cpu))
{
	int ret = cpuhp_setup_state_nocalls(state, name, startup, teardown);

	/* A CPU that comes online meanwhile calls startup itself. */
	if (ret >= 0)
		on_each_cpu(compat_start_this_cpu, (void *)(unsigned long)state, 1);

	return ret;
}

void cpuhp_remove_state_nocalls(enum cpuhp_state state)
{
	get_online_cpus();
	compat_startup[state] = NULL;
	put_online_cpus();
	if (compat_no_startup())
		unregister_cpu_notifier(&compat_cpu_notifier);
}

/* sched_switch, the only tracepoint */

void compat_visit_tracepoints(void (*visit)(struct tracepoint *tp, void *data),
			      void *data)
{
	struct tracepoint_iter iter;

	tracepoint_iter_reset(&iter);
	tracepoint_iter_start(&iter);
	/* Tracepoints of modules, too, but the scheduler's names are unique. */
	while (iter.tracepoint) {
		visit(*iter.tracepoint, data);
		tracepoint_iter_next(&iter);
	}
	tracepoint_iter_stop(&iter);
}

static void compat_switch(void *probe, struct task_struct *prev,
			  struct task_struct *next)
{
	void (*switched)(void *data, bool preempt, struct task_struct *prev,
			 struct task_struct *next, unsigned int prev_state) = probe;

	switched(NULL, false, prev, next, 0);
}

int compat_probe_register(struct tracepoint *tp, void *probe)
{
	return (tracepoint_probe_register)(tp->name, compat_switch, probe);
}
