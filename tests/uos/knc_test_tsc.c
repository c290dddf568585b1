// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a card's cpufreq driver brings about at its first change of the clock: the kernel
 * does not trust the TSC any more. Before that, a CPU of a k1om kernel does not come back
 * online: another one waits for it to compare their TSCs (arch/x86/kernel/tsc_sync.c),
 * which code for k1om leaves out.
 */
#include <linux/module.h>

#include <asm/tsc.h>

static int __init knc_test_tsc_init(void)
{
	mark_tsc_unstable("cpufreq changes");
	return 0;
}
module_init(knc_test_tsc_init);

MODULE_LICENSE("GPL");
