// SPDX-License-Identifier: GPL-2.0-only
/*
 * Says by the error with which it does not load whether the counters have an
 * owner: EBUSY, or ENXIO if they are free.
 */
#include <linux/bits.h>
#include <linux/module.h>

#include <asm/nmi.h>
#include <asm/perf_event.h>

/* PerfCtr0, PerfCtr1, PerfEvtSel0, PerfEvtSel1 */
static int __init knc_test_owner_init(void)
{
	static const unsigned int perfctr[] = { 0x20, 0x21 }, evntsel[] = { 0x28, 0x29 };
	int ret = -ENXIO;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(perfctr); i++) {
		if (reserve_perfctr_nmi(perfctr[i]))
			release_perfctr_nmi(perfctr[i]);
		else
			ret = -EBUSY;
		if (reserve_evntsel_nmi(evntsel[i]))
			release_evntsel_nmi(evntsel[i]);
		else
			ret = -EBUSY;
	}
	return ret;
}
module_init(knc_test_owner_init);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Tells whether the counters have an owner, for tests");
