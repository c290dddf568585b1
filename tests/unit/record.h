/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Registers in place of the hardware, which record each access and know which accesses
 * the manual forbids. If they are told to run, each access is an event on every counter
 * that counts, and a counter that wraps interrupts (1.4.3.8 and 1.4.3.9).
 */
#ifndef _KNC_TEST_RECORD_H
#define _KNC_TEST_RECORD_H

#include <kunit/test.h>
#include <linux/types.h>

enum access_kind { RDMSR, WRMSR, RDPMC, LVTPC, READ_LVTPC };

struct access {
	enum access_kind kind;
	u32 reg;
	u64 value;
};

#define RECORD_MAX	64

static struct {
	unsigned int count;
	struct access log[RECORD_MAX];
	u64 msr[0x30], lvtpc;
	unsigned int forbidden;
	/* Rules of knc_softmask.h that were broken */
	unsigned int broken;

	/* The running hardware */
	bool runs;
	bool line, in_nmi;
	/* Times are in places: before and after each access */
	unsigned int pending;		/* places until the interrupt comes */
	unsigned int late;		/* places from an overflow to its interrupt */
	bool mask_late;			/* the entry is masked at the interrupt, not at the edge */
	unsigned int stranger;		/* places until an NMI of another source */
	unsigned int swallow;		/* which interrupt another NMI takes the place of */
	unsigned int interrupts, lost, unclaimed;
	u64 counted[2];
	void (*on_stranger)(void);

	/* Called once, before or after the next access of this kind */
	struct record_hook {
		enum access_kind kind;
		u32 reg;
		bool after;
		void (*happens)(void);
	} hook;
} record;

#define knc_assert(rule)	(record.broken += !(rule))

int knc_pmi(struct pt_regs *regs);

/* Registers of an interrupt that may be anywhere */
static struct pt_regs nowhere;

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

/* An NMI of the PMU or of another source: both call all handlers. */
static void record_nmi(bool own)
{
	record.in_nmi = true;
	if (!own && record.on_stranger)
		record.on_stranger();
	if (!knc_pmi(&nowhere) && own)
		record.unclaimed++;
	if (!own && record.on_stranger)
		record.on_stranger();
	record.in_nmi = false;
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
	record.interrupts++;
	/* An NMI is latched once. */
	if (!record.pending)
		record.pending = record.late + 1;
}

/* Each access is an event; that of a WRMSR counts under the old values. */
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

/* The interrupts that are due, before or after an access */
static void record_nmis(void)
{
	if (!record.runs || record.in_nmi)
		return;
	if (record.stranger && !--record.stranger)
		record_nmi(false);
	if (!record.pending || --record.pending)
		return;
	if (record.mask_late)
		record.lvtpc |= 0x10000;
	/* Another handler may have claimed the NMI for both. */
	if (!record.swallow || --record.swallow)
		record_nmi(true);
}

static void record_hook(enum access_kind kind, u32 reg, bool after, void (*happens)(void))
{
	record.hook = (struct record_hook){ kind, reg, after, happens };
}

static void record_call_hook(enum access_kind kind, u32 reg, bool after)
{
	struct record_hook hook = record.hook;

	if (!hook.happens || hook.kind != kind || hook.reg != reg || hook.after != after)
		return;
	record.hook.happens = NULL;
	hook.happens();
}

static void record_before(enum access_kind kind, u32 reg)
{
	record_call_hook(kind, reg, false);
	record_nmis();
}

static void record_after(enum access_kind kind, u32 reg)
{
	record_call_hook(kind, reg, true);
	if (record.runs)
		record_line();
	record_nmis();
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

static void knc_wrmsr(u32 msr, u64 value)
{
	u64 writable = record_writable(msr);

	record_before(WRMSR, msr);
	record_access(WRMSR, msr, value);
	record_tick();
	record.forbidden += !writable || value & ~writable;
	if (!writable)
		return;
	if (msr == 0x2e)
		record.msr[0x2d] &= ~value;
	else
		record.msr[msr] = value;
	record_after(WRMSR, msr);
}

static u64 record_read(enum access_kind kind, u32 reg, const u64 *place)
{
	u64 value;

	record_before(kind, reg);
	value = *place;
	record_access(kind, reg, value);
	record_tick();
	record_after(kind, reg);
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
	record_before(LVTPC, 0);
	record_access(LVTPC, 0, value);
	record.lvtpc = value;
	record_tick();
	record_after(LVTPC, 0);
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
