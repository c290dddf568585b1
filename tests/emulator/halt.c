// SPDX-License-Identifier: GPL-2.0-only
/* Cycles of the core: halted threads, and edges */
#include "bare.h"

extern code f_int80, f_rep_movsb, delayed, user_stub;

/* These and all behind them */
static void others_asleep(int first)
{
	for (int n = first; n < 4; n++)
		send_to_sleep(n, wait_for_nmi);
}

/* An issue slot costs as many cycles as threads run, but at least two. */
static void cost(void)
{
	others_asleep(1);
	for (int running = 1; running <= 4; running++) {
		int slot = running;

		if (slot < 2)
			slot = 2;
		program(EV_CYCLES | SEL_OS, EV_INSTRUCTIONS | SEL_OS);
		measure0(f_nops);
		check(text("halt: cycles, running: %d", running), rdmsr(MSR_CNT0), 106 * slot);
		check("halt: instructions beside them", rdmsr(MSR_CNT1), 106);
		if (running < 4)
			wake_up(running);
	}
}

/*
 * Thread 1 counts while it is halted and thread 0 runs: at least what thread 0
 * counts meanwhile, at most what thread 0 counts in all, and thread 1's own cycles.
 */
static volatile u64 its_cycles, its_second, its_status;
static u64 second_event;

static void count_halted(void)
{
	switch_on(EV_CYCLES | SEL_OS, second_event);
	wait_for_nmi();
	its_cycles = switch_off();
	its_second = rdmsr(MSR_CNT1);
}

static void around(void)
{
	u64 start, a, b, end;

	second_event = EV_INSTRUCTIONS | SEL_OS;
	switch_on(EV_CYCLES | SEL_OS, 0);
	start = rdmsr(MSR_CNT0);
	send_to_sleep(1, count_halted);
	a = rdmsr(MSR_CNT0);
	long_loop(10000000);
	b = rdmsr(MSR_CNT0);
	wake_up(1);
	end = rdmsr(MSR_CNT0);
	result(its_cycles >= b - a && b - a >= 2 * 20000000,
	       "halt: cycles of the core while another thread runs",
	       "%ld, less than %ld", its_cycles, b - a);
	result(its_cycles <= end - start + 2 * its_second,
	       "halt: and not more of them", "%ld, more than %ld and %ld",
	       its_cycles, end - start, 2 * its_second);
	result(its_second < 100000, "halt: and no instructions", "%ld", its_second);

	second_event = EV_CYCLES | SEL_USR;
	send_to_sleep(1, count_halted);
	long_loop(10000000);
	wake_up(1);
	check("halt: a halted thread is in ring 0", its_second, 0);
	wrmsr(MSR_GLOBAL, 0);
}

/* The overflow of a halted thread's counter wakes it. */
static void take_pmi(struct regs *r)
{
	wrmsr(MSR_GLOBAL, 0);
	trapped++;
	stay_awake();
}

static void overflow_halted(void)
{
	overflow_after(300000000, EV_CYCLES | SEL_OS | SEL_INT, LVT_NMI);
	wrmsr(MSR_GLOBAL, 1);
	wait_for_nmi();
	its_cycles = rdmsr(MSR_CNT0);
	its_status = rdmsr(MSR_STATUS);
	wrmsr(MSR_GLOBAL, 0);
}

static void woken_by_pmi(void)
{
	/* The last NMI of wake_up() may come when the thread next runs. */
	on_cpu(1, pmu_quiet);
	mark();
	handlers[2] = take_pmi;
	trapped = 0;
	send_to_sleep(1, overflow_halted);
	for (int i = 0; i < 100 && !on_cpu_done(1); i++)
		long_loop(10000000);
	on_cpu_wait(1);
	handlers[2] = ignore;
	check("halt: the interrupt of its counter wakes a thread", trapped, 1);
	/* At most 10000 slots of the other thread late, and the wake-up */
	result(its_cycles < 10000000, "halt: and not much too late", "%ld", its_cycles);
	check("halt: none lost", since(1, ITEM_LOST), 0);
}

/* With pmu-stray=on an interrupt of no thread goes to one that executes (1.4.3.8). */
static volatile int stray_taken;
static u64 stray_status;

static void take_stray(struct regs *r)
{
	if (this_cpu() == 0) {
		stray_taken++;
		stray_status = rdmsr(MSR_STATUS);
	}
}

SUITE(test_stray, "stray")
{
	start_cpus();
	others_quiet();
	pmu_quiet();
	apic_write(APIC_LVTPC, LVT_NMI);
	handlers[2] = take_stray;
	mark();
	send_to_sleep(1, overflow_halted);
	for (int i = 0; i < 100 && !stray_taken; i++)
		long_loop(10000000);
	long_loop(10000000);
	check("stray: the interrupt comes to the thread that executes, once", stray_taken, 1);
	check("stray: which finds STATUS 0", stray_status, 0);
	check("stray: with its own LVTPC", apic_read(APIC_LVTPC), LVT_NMI | LVT_MASKED);
	check("stray: the halted one sleeps on", on_cpu_done(1), 0);
	wake_up(1);
	check("stray: and finds its STATUS when it wakes", its_status, 1);
	check("stray: one edge there", since(0, ITEM_EDGES), 1);
	check("stray: none here", since(1, ITEM_EDGES), 0);
}

static void naps(u64 sel0, u64 sel1)
{
	switch_on(sel0, sel1);
	halt_until_timer(20000000);
	halt_until_timer(20000000);
	wrmsr(MSR_GLOBAL, 0);
}

/* What an access to a device takes */
#define DEVICE_SLOTS	128

/* All threads are halted, and so the core is, except to set the timer and end its interrupt. */
static void whole_core(void)
{
	others_asleep(1);
	naps(EV_CYCLES | SEL_OS, EV_INSTRUCTIONS | SEL_OS);
	check("halt: no cycles while the whole core is halted",
	      rdmsr(MSR_CNT0), 2 * (rdmsr(MSR_CNT1) + 8 * DEVICE_SLOTS));
	naps(EV_CYCLES | SEL_OS | SEL_CMASK(1) | SEL_INV,
	     EV_CYCLES | SEL_OS | SEL_CMASK(2) | SEL_INV);
	check("halt: none of them inverted either", rdmsr(MSR_CNT0), 0);
	naps(EV_CYCLES | SEL_OS | SEL_USR | SEL_E, EV_CYCLES | SEL_OS | SEL_E);
	check("edge: the core leaves its halt twice", rdmsr(MSR_CNT0), 2);
	check("edge: the same for one ring", rdmsr(MSR_CNT1), 2);
	wake_up(1);
	naps(EV_CYCLES | SEL_OS | SEL_USR | SEL_E, EV_CYCLES | SEL_OS | SEL_E);
	check("edge: none while another thread runs", rdmsr(MSR_CNT0), 0);
	check("edge: nor for one ring", rdmsr(MSR_CNT1), 0);
	wake_up(2);
	wake_up(3);
}

static u64 rip_of_pmi, count_at_pmi;

static void look_at_pmi(struct regs *r)
{
	count_at_pmi = rdmsr(MSR_CNT1);
	rip_of_pmi = r->rip;
	wrmsr(MSR_OVF, 3);
}

static u64 edges3(code *fn, u64 sel)
{
	program(sel | SEL_E, 0);
	user_run(fn);
	return rdmsr(MSR_CNT0);
}

static const struct counting edge_cases[] = {
	{ "edge: ring 3 is entered once", f_nops, EV_CYCLES | SEL_USR, 1 },
	{ "edge: and left once", f_nops, EV_CYCLES | SEL_OS, 1 },
	{ "edge: with two traps three times", f_int80, EV_CYCLES | SEL_USR, 3 },
	{ "edge: and left as often", f_int80, EV_CYCLES | SEL_OS, 3 },
	{ "edge: the core goes on for both rings", f_int80, EV_CYCLES | SEL_USR | SEL_OS, 0 },
	{ "edge: with cmask 1", f_int80, EV_CYCLES | SEL_USR | SEL_CMASK(1), 3 },
	{ "edge: with cmask 2", f_int80, EV_CYCLES | SEL_USR | SEL_CMASK(2), 0 },
	{ "edge: a rep stalls once", f_rep_movsb, EV_FE_STALLED | SEL_USR, 1 },
	{ "edge: and so does delay", delayed, EV_FE_STALLED | SEL_USR, 1 },
	{ "edge: and pause", INSN(0xf3, 0x90), EV_FE_STALLED | SEL_USR, 1 },
	{ "edge: nothing else does", f_nops, EV_FE_STALLED | SEL_USR, 0 },
	{ "edge: inverted: a rep goes on once", f_rep_movsb,
	  EV_FE_STALLED | SEL_USR | SEL_CMASK(1) | SEL_INV, 1 },
	{ "edge: inverted: nothing else does", f_nops,
	  EV_FE_STALLED | SEL_USR | SEL_CMASK(1) | SEL_INV, 0 },
	{ "edge: inverted: cmask 2", f_rep_movsb,
	  EV_FE_STALLED | SEL_USR | SEL_CMASK(2) | SEL_INV, 0 },
};

static void edges(void)
{
	handle_ints(ignore);
	count_each(edges3, edge_cases, ARRAY_SIZE(edge_cases));
	handle_ints(0);

	handlers[2] = look_at_pmi;
	program(EV_CYCLES | SEL_USR | SEL_E | SEL_INT, EV_INSTRUCTIONS | SEL_USR);
	wrmsr(MSR_CNT0, WRAP - 1);
	apic_write(APIC_LVTPC, LVT_NMI);
	user_run(f_nops);
	check("edge: interrupt before the first instruction of the ring",
	      rip_of_pmi, (u64)user_stub);
	check("edge: which has not been counted", count_at_pmi, 0);
	handlers[2] = ignore;
}

SUITE(test_halt, "halt")
{
	start_cpus();
	others_quiet();
	handlers[2] = ignore;
	cost();
	edges();
	whole_core();
	others_asleep(2);
	around();
	woken_by_pmi();
}
