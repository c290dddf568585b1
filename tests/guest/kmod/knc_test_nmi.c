// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handles NMIs without another handler: the emulator sends some, and the kernel would
 * complain.
 */
#include <linux/module.h>

#include <asm/nmi.h>

/* how many: no more than were sent */
static unsigned long taken;
module_param(taken, ulong, 0444);

static int knc_test_nmi(unsigned int type, struct pt_regs *regs)
{
	taken++;
	return NMI_HANDLED;
}

static int __init knc_test_nmi_init(void)
{
	return register_nmi_handler(NMI_UNKNOWN, knc_test_nmi, 0, "knc_test_nmi");
}
module_init(knc_test_nmi_init);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A handler of unknown NMIs, for tests");
