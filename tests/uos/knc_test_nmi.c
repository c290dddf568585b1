// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handles NMIs without another handler, as tests/guest/kmod/knc_test_nmi.c does, on
 * Linux 2.6.38. On request it also does what a card's kernel does: there NMIs go to the
 * RAS module first, which may keep them, and a machine check is announced as an NMI is.
 */
#include <linux/kallsyms.h>
#include <linux/kdebug.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/notifier.h>
#include <linux/sched.h>

#include <asm/ptrace.h>

#define TRAP_NMI		2
#define TRAP_MACHINE_CHECK	18

/* how many: no more than were sent */
static unsigned long taken;
module_param(taken, ulong, 0444);

/* how many NMIs are kept from other handlers */
static unsigned int swallow;
module_param(swallow, uint, 0644);

static int knc_test_nmi(struct notifier_block *self, unsigned long reason, void *data)
{
	if (reason != DIE_NMIUNKNOWN)
		return NOTIFY_DONE;

	taken++;
	return NOTIFY_STOP;
}

/* The last handler: others come first. */
static struct notifier_block knc_test_nmi_notifier = {
	.notifier_call = knc_test_nmi,
	.priority = -1,
};

static int knc_test_swallow(struct notifier_block *self, unsigned long reason, void *data)
{
	struct die_args *args = data;

	if (reason != DIE_NMI || args->trapnr != TRAP_NMI || !swallow)
		return NOTIFY_DONE;

	swallow--;
	return NOTIFY_STOP;
}

static struct notifier_block knc_test_swallow_notifier = {
	.notifier_call = knc_test_swallow,
	.priority = INT_MAX,
};

/* As in do_machine_check(): a write announces one, a read tells who took it. */
static int stopped;

static int knc_test_machine_check(const char *value, const struct kernel_param *param)
{
	typeof(notify_die) *announce = (void *)kallsyms_lookup_name("notify_die");
	unsigned long flags;

	if (!announce)
		return -ENOENT;

	local_irq_save(flags);
	stopped = announce(DIE_NMI, "machine check", task_pt_regs(current), 0,
			   TRAP_MACHINE_CHECK, SIGKILL) == NOTIFY_STOP;
	local_irq_restore(flags);
	return 0;
}

static const struct kernel_param_ops knc_test_machine_check_ops = {
	.set = knc_test_machine_check,
	.get = param_get_int,
};
module_param_cb(machine_check, &knc_test_machine_check_ops, &stopped, 0644);

static int __init knc_test_nmi_init(void)
{
	int ret = register_die_notifier(&knc_test_nmi_notifier);

	if (!ret)
		ret = register_die_notifier(&knc_test_swallow_notifier);
	return ret;
}
module_init(knc_test_nmi_init);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A handler of unknown NMIs, for tests");
