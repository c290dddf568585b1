/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A register file in the place of the hardware, which writes down each access.
 * It knows nothing of the PMU but which accesses the manual forbids.
 */
#ifndef _KNC_TEST_RECORD_H
#define _KNC_TEST_RECORD_H

#include <kunit/test.h>
#include <linux/types.h>

enum access_kind { RDMSR, WRMSR, RDPMC, LVTPC };

struct access {
	enum access_kind kind;
	u32 reg;
	u64 value;
};

#define RECORD_MAX	64

static struct {
	unsigned int count;
	struct access log[RECORD_MAX];
	u64 msr[0x30];
	u32 lvtpc;
	unsigned int forbidden;
} record;

static void record_access(enum access_kind kind, u32 reg, u64 value)
{
	if (record.count < RECORD_MAX)
		record.log[record.count] = (struct access){ kind, reg, value };
	record.count++;
}

static void record_restart(void)
{
	record.count = 0;
}

static void knc_wrmsr(u32 msr, u64 value)
{
	record_access(WRMSR, msr, value);
	switch (msr) {
	case 0x20: case 0x21:
		if (value >> 40)
			record.forbidden++;
		break;
	case 0x28: case 0x29:
		if (value >> 32 || value & (1 << 19))
			record.forbidden++;
		break;
	case 0x2c:
		if (value & ~((1ULL << 63) | 3))
			record.forbidden++;
		break;
	case 0x2e:
		if (value & ~3ULL)
			record.forbidden++;
		record.msr[0x2d] &= ~value;
		return;
	case 0x2f:
		if (value & ~3ULL)
			record.forbidden++;
		break;
	default:
		record.forbidden++;
		return;
	}
	record.msr[msr] = value;
}

static u64 knc_rdmsr(u32 msr)
{
	u64 value = 0;

	switch (msr) {
	case 0x20: case 0x21: case 0x28: case 0x29:
	case 0x2c: case 0x2d: case 0x2f:
		value = record.msr[msr];
		break;
	default:
		record.forbidden++;
	}
	record_access(RDMSR, msr, value);
	return value;
}

static u64 knc_rdpmc(u32 idx)
{
	u64 value = 0;

	if (idx < 2)
		value = record.msr[0x20 + idx];
	else
		record.forbidden++;
	record_access(RDPMC, idx, value);
	return value;
}

static void knc_write_lvtpc(u32 value)
{
	record_access(LVTPC, 0, value);
	record.lvtpc = value;
}

/* Files of tests/data, as text; knc_pmu_test.c includes them. */
extern const char knc_events[], knc_events_extra[];

/* What was recorded is exactly this, in this order. */
static void record_expect(struct kunit *test, const struct access *expected,
			  unsigned int count)
{
	unsigned int i;

	KUNIT_ASSERT_EQ(test, record.count, count);
	for (i = 0; i < count; i++) {
		KUNIT_EXPECT_EQ_MSG(test, record.log[i].kind, expected[i].kind,
				    "access %u", i);
		KUNIT_EXPECT_EQ_MSG(test, record.log[i].reg, expected[i].reg,
				    "access %u", i);
		KUNIT_EXPECT_EQ_MSG(test, record.log[i].value, expected[i].value,
				    "access %u", i);
	}
}

#endif /* _KNC_TEST_RECORD_H */
