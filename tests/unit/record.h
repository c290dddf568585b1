/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Registers in place of the hardware, which record each access and know which accesses
 * the manual forbids. If they are told to run, a counter that wraps interrupts (1.4.3.8
 * and 1.4.3.9), when model.c says so.
 */
#ifndef _KNC_TEST_RECORD_H
#define _KNC_TEST_RECORD_H

#include <kunit/test.h>
#include <linux/hash.h>
#include <linux/types.h>

enum access_kind { RDMSR, WRMSR, RDPMC, LVTPC, READ_LVTPC };

struct access {
	enum access_kind kind;
	u32 reg;
	u64 value;
};

#define RECORD_MAX	64

static struct {
	unsigned int count, with_irqs;
	struct access log[RECORD_MAX];
	/* A hash of what the code that runs has read: model.c */
	u64 history;
	u64 msr[0x30], lvtpc;
	unsigned int forbidden;
	/* Rules of knc_softmask.h that were broken */
	unsigned int broken;

	/* The running hardware */
	bool runs;
	bool accessed;		/* since the last place */
	bool line;
	bool pending;		/* the interrupt is on its way */
	bool mask_late;		/* the entry is masked at the interrupt, not at the edge */
	unsigned int lost;
	u64 counted[2];
	struct kunit *prints;	/* the test that prints each access, or NULL */
} record;

#define knc_assert(rule)	(record.broken += !(rule))

/* Called before each access to a register (NULL) or to shared state: model.c */
static void record_place(const char *place);

static void record_saw(u64 value)
{
	record.history = (record.history ^ value) * GOLDEN_RATIO_64;
	record.history ^= record.history >> 32;
}

/* Registers of an interrupt that may be anywhere */
static struct pt_regs nowhere;

static const char *const record_names[] = {
	"RDMSR", "WRMSR", "RDPMC", "write LVTPC", "read LVTPC",
};

static void record_access(enum access_kind kind, u32 reg, u64 value)
{
	if (record.count < RECORD_MAX)
		record.log[record.count] = (struct access){ kind, reg, value };
	record.count++;
	record.with_irqs += !arch_irqs_disabled();
	if (record.prints)
		kunit_info(record.prints, "%s %#x: %#llx", record_names[kind], reg, value);
}

static void record_restart(void)
{
	record.count = 0;
	record.with_irqs = 0;
}

/* The line to the APIC: an edge is seen unless the entry is masked. */
static void record_line(void)
{
	bool line = record.msr[0x2d];
	bool edge = line && !record.line;

	record.line = line;
	if (!edge)
		return;
	if (record.lvtpc & 0x10000) {
		record.lost++;
		return;
	}
	if (!record.mask_late)
		record.lvtpc |= 0x10000;
	/* An NMI is latched once. */
	record.pending = true;
}

/* What is counted until a write of GLOBAL_CTRL: one event on each counter that runs */
static void record_tick(void)
{
	unsigned int i;

	for (i = 0; i < 2 && record.runs; i++) {
		if (!(record.msr[0x2f] & BIT(i)) || !(record.msr[0x28 + i] & BIT(22)))
			continue;
		record.counted[i]++;
		record.msr[0x20 + i] = (record.msr[0x20 + i] + 1) & GENMASK_ULL(39, 0);
		if (!record.msr[0x20 + i])
			record.msr[0x2d] |= BIT(i);
	}
}

static void record_after(void)
{
	if (record.runs)
		record_line();
	record.accessed = true;
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

	record_place(NULL);
	record_access(WRMSR, msr, value);
	if (msr == 0x2f)
		record_tick();
	record.forbidden += !writable || value & ~writable;
	if (!writable)
		return;
	if (msr == 0x2e) {
		record_stopped();
		record.msr[0x2d] &= ~value;
	} else {
		record.msr[msr] = value;
	}
	record_after();
}

static u64 record_read(enum access_kind kind, u32 reg, const u64 *place)
{
	u64 value;

	record_place(NULL);
	value = *place;
	record_access(kind, reg, value);
	record_saw(value);
	record_after();
	return value;
}

static u64 knc_rdmsr(u32 msr)
{
	/* STATUS can be read, CLEAR cannot. */
	bool readable = msr == 0x2d || (msr != 0x2e && record_writable(msr));

	record.forbidden += !readable;
	return record_read(RDMSR, msr, &record.msr[readable ? msr : 0]);
}

static u64 knc_rdpmc(u32 idx)
{
	record.forbidden += idx > 1;
	return record_read(RDPMC, idx, &record.msr[idx > 1 ? 0 : 0x20 + idx]);
}

static u32 knc_read_lvtpc(void)
{
	return record_read(READ_LVTPC, 0, &record.lvtpc);
}

static void knc_write_lvtpc(u32 value)
{
	record_place(NULL);
	record_access(LVTPC, 0, value);
	if (!(value & 0x10000))
		record_stopped();
	record.lvtpc = value;
	record_after();
}

/* Files of tests/data, as text; knc_pmu_test.c includes them. */
extern const char knc_events[], knc_events_extra[];

static void record_compare(struct kunit *test, const struct access *expected,
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

#define record_expect(test, ...) do {					\
	static const struct access expected_[] = { __VA_ARGS__ };	\
	record_compare(test, expected_, ARRAY_SIZE(expected_));		\
} while (0)

#endif /* _KNC_TEST_RECORD_H */
