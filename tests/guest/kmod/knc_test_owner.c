// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tells by its error at load whether the counters are reserved: EBUSY, or ENXIO if they
 * are free. With hold=1 it loads, and reserves one register until it is unloaded.
 */
#include <linux/bits.h>
#include <linux/module.h>

#include <asm/nmi.h>
#include <asm/perf_event.h>

static int hold;
module_param(hold, int, 0444);

/* The last register that a driver reserves: it must release the others. */
#define HELD	0x29

/* PerfCtr0, PerfCtr1, PerfEvtSel0, PerfEvtSel1 */
static int __init knc_test_owner_init(void)
{
	unsigned int perfctr = 0x20, evntsel = 0x28;
	int ret = -ENXIO;

	if (hold)
		return reserve_evntsel_nmi(HELD) ? 0 : -EBUSY;

	for (; perfctr <= 0x21; perfctr++, evntsel++) {
		if (reserve_perfctr_nmi(perfctr))
			release_perfctr_nmi(perfctr);
		else
			ret = -EBUSY;
		if (reserve_evntsel_nmi(evntsel))
			release_evntsel_nmi(evntsel);
		else
			ret = -EBUSY;
	}
	return ret;
}
module_init(knc_test_owner_init);

/* loaded: the register stays reserved */
static void __exit knc_test_owner_exit(void)
{
	release_evntsel_nmi(HELD);
}
module_exit(knc_test_owner_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Tells whether the counters have an owner, for tests");
