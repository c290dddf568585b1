// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes NMIs that nobody else wants, as tests/guest/kmod/knc_test_nmi.c does, by
 * what Linux 2.6.38 has for it.
 */
#include <linux/kdebug.h>
#include <linux/module.h>
#include <linux/notifier.h>

/* How many: no more than were sent */
static unsigned long taken;
module_param(taken, ulong, 0444);

static int knc_test_nmi(struct notifier_block *self, unsigned long reason, void *data)
{
	if (reason != DIE_NMIUNKNOWN)
		return NOTIFY_DONE;

	taken++;
	return NOTIFY_STOP;
}

/* Whoever has a use for one comes before. */
static struct notifier_block knc_test_nmi_notifier = {
	.notifier_call = knc_test_nmi,
	.priority = -1,
};

static int __init knc_test_nmi_init(void)
{
	return register_die_notifier(&knc_test_nmi_notifier);
}
module_init(knc_test_nmi_init);

static void __exit knc_test_nmi_exit(void)
{
	unregister_die_notifier(&knc_test_nmi_notifier);
}
module_exit(knc_test_nmi_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A handler of unknown NMIs, for tests");
