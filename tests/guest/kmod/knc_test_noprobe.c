// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes the kernel refuse kprobes on perf_event_overflow from now until it
 * restarts, as a kernel whose function cannot be found that way does.
 *
 * The kernel keeps such a list and lets modules add their own functions to it;
 * the function that adds one is not exported, and found with a kprobe itself.
 */
#include <linux/kprobes.h>
#include <linux/module.h>

static unsigned long address_of(const char *symbol)
{
	struct kprobe kp = { .symbol_name = symbol };
	unsigned long address;
	int ret;

	ret = register_kprobe(&kp);
	if (ret) {
		pr_err("no kprobe on %s: %d\n", symbol, ret);
		return 0;
	}
	address = (unsigned long)kp.addr;
	unregister_kprobe(&kp);
	return address;
}

static int __init knc_test_noprobe_init(void)
{
	unsigned long overflow = address_of("perf_event_overflow");
	int (*add)(unsigned long address);
	struct kprobe kp = { .symbol_name = "perf_event_overflow" };

	add = (void *)address_of("kprobe_add_ksym_blacklist");
	if (!overflow || !add)
		return -ENOENT;
	if (add(overflow) < 0)
		return -EIO;
	if (!register_kprobe(&kp)) {
		unregister_kprobe(&kp);
		pr_err("perf_event_overflow can still be probed\n");
		return -EIO;
	}
	return 0;
}
module_init(knc_test_noprobe_init);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Forbids kprobes on perf_event_overflow, for tests");
