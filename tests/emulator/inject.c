// SPDX-License-Identifier: GPL-2.0-only
/*
 * A test orders an NMI, an overflow, a stop or a skid from the test device (order()). The
 * emulator carries it out at the right instruction.
 */
#include "bare.h"

enum { NOTHING, NMI, OVERFLOW, STOP, SKID };

#define RING0		(1 << 8)
#define RING3		(2 << 8)

static struct {
	int count;
	u64 rip, status;
} nmi;

static void take_nmi(struct regs *r)
{
	if (!nmi.count++)
		nmi.rip = r->rip;
	nmi.status = rdmsr(MSR_STATUS);
}

static void order(u32 what, u32 after, u32 msr)
{
	nmi.count = 0;
	nmi.rip = 0;
	handlers[2] = take_nmi;
	outl(TESTDEV + 0x10, after);
	outl(TESTDEV + 0x14, msr);
	outl(TESTDEV + 0x18, what);
}

/* The nops with an order from their start on: measure0() starts with this write. */
static void run_nops(u32 what, u32 after)
{
	order(what, after, MSR_GLOBAL);
	measure0(f_nops);
}

static void few_nops(void)
{
	asm volatile("nop\n\tnop\n\tnop\n\tnop" : : : "memory");
}

/* One NMI, after @n instructions: the call, and nops */
static int came_after(int n, u64 status)
{
	return nmi.count == 1 && nmi.rip == (u64)f_nops + n - 1 &&
	       nmi.status == status;
}

static void nmis(void)
{
	int wrong = 0;

	mark();
	for (int n = 1; n <= 101; n++) {
		pmu_quiet();
		run_nops(NMI | RING0, n);
		wrong += !came_after(n, 0);
	}
	check("nmi: after any of 101 instructions", wrong, 0);
	check("nmi: each was counted", since(0, ITEM_INJECTED), 101);

	pmu_quiet();
	run_nops(NMI | RING3, 10);
	check("nmi: only instructions of the ring count", nmi.count, 0);
	check("nmi: what is left", item(0, ITEM_INJECT_LEFT), 10);
	order(NMI | RING0, 1000000, 0);
	order(NOTHING, 0, 0);
	measure0(f_nops);
	check("nmi: an order is taken back", nmi.count, 0);

	order(NMI | RING0, 1, MSR_OVF);
	wrmsr(MSR_SPFLT, 0);
	check("nmi: not another register", nmi.count, 0);
	wrmsr(MSR_OVF, 0);
	few_nops();
	check("nmi: from its write on", nmi.count, 1);
}

static void arm(u64 after)
{
	overflow_after(after, EV_INSTRUCTIONS | SEL_OS | SEL_INT, LVT_NMI);
}

static void overflows(void)
{
	int wrong = 0;

	for (int n = 1; n <= 101; n++) {
		u64 total = item(0, ITEM_TOTAL0);

		arm(1 << 20);
		run_nops(OVERFLOW | RING0, n);
		wrong += !came_after(n, 1);
		/* The total and the counter have all events of the order. */
		wrong += item(0, ITEM_TOTAL0) - total !=
			 WRAP + rdmsr(MSR_CNT0) - (WRAP - (1 << 20));
		wrmsr(MSR_OVF, 1);
	}
	check("overflow: after any of 101 instructions", wrong, 0);

	arm(1 << 20);
	wrmsr(MSR_SEL0, 0);
	run_nops(OVERFLOW | RING0, 50);
	check("overflow: not of a counter that is off", nmi.count, 0);
	check("overflow: nor in STATUS", rdmsr(MSR_STATUS), 0);
}

static void skid(void)
{
	int wrong = 0;

	mark();
	for (int n = 1; n <= 80; n++) {
		arm(10);
		order(SKID, n, 0);
		measure0(f_nops);
		wrong += !came_after(10 + n, 1);
		wrmsr(MSR_OVF, 1);
	}
	check("skid: any number of 80 instructions", wrong, 0);
	check("skid: one edge each", since(0, ITEM_EDGES), 80);

	arm(10);
	order(SKID, 1000000, 0);
	measure0(f_nops);
	check("skid: not yet", nmi.count, 0);
	check("skid: but in STATUS", rdmsr(MSR_STATUS), 1);
	order(NOTHING, 0, 0);
	few_nops();
	check("skid: with the order gone it comes", nmi.count, 1);
	check("skid: no edge lost", since(0, ITEM_LOST), 0);
}

/* A second overflow while a PMI is in flight makes no second PMI. */
static void overflow_before_skid(void)
{
	mark();
	arm(10);
	order(SKID, 1000000, 0);
	wrmsr(MSR_GLOBAL, 1);
	few_nops();
	few_nops();
	few_nops();
	wrmsr(MSR_GLOBAL, 0);
	wrmsr(MSR_OVF, 1);
	wrmsr(MSR_CNT0, WRAP - 4);
	wrmsr(MSR_GLOBAL, 1);
	few_nops();
	wrmsr(MSR_GLOBAL, 0);
	check("skid: a second overflow meanwhile", rdmsr(MSR_STATUS), 1);
	check("skid: has not come yet", nmi.count, 0);
	order(NOTHING, 0, 0);
	few_nops();
	check("skid: comes with the first one", nmi.count, 1);
	check("skid: both count as delivered", since(0, ITEM_DELIVERED), 2);
}

static void stops(void)
{
	mark();
	arm(1 << 20);
	run_nops(STOP | RING0, 50);
	check("stop: goes on after a while", since(0, ITEM_INJECTED), 1);
	check("stop: is not counted", rdmsr(MSR_CNT0), WRAP - (1 << 20) + 106);
}

/* An order makes blocks count, also the one that always comes after the OUT. */
static u64 __attribute__((noinline)) loop_after_out(u32 what)
{
	u32 rounds = 1000;

	mark();
	asm volatile("outl %1, %w2\n"
		     "1:\tdecl %0\n\t"
		     "jnz 1b"
		     : "+r"(rounds) : "a"(what), "d"(TESTDEV + 0x18) : "cc", "memory");
	return since(0, ITEM_BRANCHES0);
}

static void chained(void)
{
	pmu_quiet();
	outl(TESTDEV + 0x10, 1000000);
	outl(TESTDEV + 0x14, 0);
	check("chained: no order, no count", loop_after_out(NOTHING), 0);
	check("chained: an order, and all branches", loop_after_out(NMI | RING3) >= 1000, 1);
}

SUITE(test_inject, "inject")
{
	nmis();
	overflows();
	skid();
	overflow_before_skid();
	stops();
	chained();
	order(NOTHING, 0, 0);
}
