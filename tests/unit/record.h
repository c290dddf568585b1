/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Registers in place of the hardware, which count accesses, and know which of them the
 * manual forbids.
 */
#ifndef _KNC_TEST_RECORD_H
#define _KNC_TEST_RECORD_H

#include <kunit/test.h>
#include <linux/types.h>

static struct {
	/* Accesses: all, and those with interrupts on */
	unsigned int count, with_irqs;
	u64 msr[0x30], lvtpc;
	unsigned int forbidden;
	/* Rules of knc_softmask.h that were broken */
	unsigned int broken;
} record;

#define knc_assert(rule)	(record.broken += !(rule))

/* Registers of an interrupt that may be anywhere */
static struct pt_regs nowhere;

static void record_access(void)
{
	record.count++;
	record.with_irqs += !arch_irqs_disabled();
}

static void record_restart(void)
{
	record.count = 0;
	record.with_irqs = 0;
}

/* The bits that the manual allows to write; 0: there is no such register. */
static u64 record_writable(u32 msr)
{
	switch (msr) {
	case 0x20: case 0x21:
		return GENMASK_ULL(39, 0);
	case 0x28: case 0x29:
		return GENMASK_ULL(31, 0) & ~BIT_ULL(19);
	case 0x2c:
		return BIT_ULL(63) | 3;
	case 0x2e: case 0x2f:
		return 3;
	default:
		return 0;
	}
}

/* STATUS is cleared and the LVT entry unmasked while the counters are stopped (1.4.3.9). */
static void record_stopped(void)
{
	record.forbidden += !!record.msr[0x2f];
}

static void knc_wrmsr(u32 msr, u64 value)
{
	u64 writable = record_writable(msr);

	record_access();
	record.forbidden += !writable || value & ~writable;
	if (!writable)
		return;
	record.msr[msr] = value;
	if (msr == 0x2e) {
		record_stopped();
		record.msr[0x2d] &= ~value;
	}
}

static u64 knc_rdmsr(u32 msr)
{
	/* STATUS can be read, CLEAR cannot. */
	bool readable = msr == 0x2d || (msr != 0x2e && record_writable(msr));

	record_access();
	record.forbidden += !readable;
	return record.msr[readable ? msr : 0];
}

static u64 knc_read_counter(u32 idx)
{
	record_access();
	record.forbidden += idx > 1;
	return record.msr[idx > 1 ? 0 : 0x20 + idx];
}

static u32 knc_read_lvtpc(void)
{
	record_access();
	return record.lvtpc;
}

static void knc_write_lvtpc(u32 value)
{
	record_access();
	if (!(value & 0x10000))
		record_stopped();
	record.lvtpc = value;
}

#endif /* _KNC_TEST_RECORD_H */
