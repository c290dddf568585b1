// SPDX-License-Identifier: GPL-2.0-only
/* Several hardware threads, INIT, and reset */
#include "bare.h"

#define RESET_CONTROL	0xcf9

/* The registers of a CPU, and the bits that any of them has */
static u64 seen[VALUES], seen_bits;
static u32 seen_lvt;

static void look(void)
{
	seen_bits = 0;
	for (int i = 0; i < VALUES; i++) {
		seen[i] = rdmsr(pmu_registers[i]);
		seen_bits |= seen[i];
	}
	seen_lvt = apic_read(APIC_LVTPC);
}

/* Set every register, STATUS by an overflow, such that nothing counts. */
static void set_all(void)
{
	pmu_quiet();
	wrmsr(MSR_SEL1, EV_CYCLES | SEL_OS | SEL_EN);
	wrmsr(MSR_CNT1, WRAP - 1);
	wrmsr(MSR_GLOBAL, 2);
	wrmsr(MSR_GLOBAL, 0);
	wrmsr(MSR_SEL1, EV_CYCLES | SEL_USR | SEL_INT);
	wrmsr(MSR_SEL0, EV_BRANCHES | SEL_USR | SEL_EN);
	wrmsr(MSR_CNT0, 0x1111111111);
	wrmsr(MSR_CNT1, 0x2222222222);
	wrmsr(MSR_SPFLT, SPFLT_PREF | 1);
	wrmsr(MSR_GLOBAL, 3);
	apic_write(APIC_LVTPC, LVT_NMI);
}

static int as_set(void)
{
	return seen[0] == 0x1111111111 && seen[1] == 0x2222222222 &&
	       seen[2] == (EV_BRANCHES | SEL_USR | SEL_EN) &&
	       seen[3] == (EV_CYCLES | SEL_USR | SEL_INT) &&
	       seen[4] == (SPFLT_PREF | 1) && seen[5] == 2 && seen[6] == 3;
}

static void count_on(void)
{
	switch_on(EV_INSTRUCTIONS | SEL_OS, 0);
}

static void init_keeps(void)
{
	u64 before;

	on_cpu(1, set_all);
	on_cpu(1, look);
	result(as_set(), "init: set beforehand", "it is not");
	check("init: LVTPC set beforehand", seen_lvt, LVT_NMI);
	init_cpu(1);
	on_cpu(1, look);
	result(as_set(), "init: keeps every PMU register", "it does not");
	check("init: masks LVTPC", seen_lvt, LVT_MASKED);

	on_cpu(1, count_on);
	on_cpu(1, look);
	before = seen[0];
	init_cpu(1);
	on_cpu(1, look);
	result(before && seen[0] > before,
	       "init: a counter goes on counting", "0x%lx, 0x%lx", before,
	       seen[0]);
	on_cpu(1, pmu_quiet);
}

/* INIT is no instruction, and a thread that waits for a SIPI is halted. */
static void count_and_init(void)
{
	switch_on(EV_INSTRUCTIONS | SEL_OS, 0);
	apic_write(APIC_ICR2, this_cpu() << 24);
	apic_write(APIC_ICR, 0x4500);
}

/* For 10 ms: INIT comes before the next instruction. */
static void count_and_wait(void)
{
	switch_on(EV_INSTRUCTIONS | SEL_OS, 0);
	asm volatile(ASM_DELAY : : "a"(10000000));
	for (;;)
		relax();
}

static void count_cycles(void)
{
	switch_on(EV_CYCLES | SEL_OS, 0);
	for (;;)
		relax();
}

/* What the thread counts in @fn until an INIT, its own or this one, starts it again */
static u64 until_init(void (*fn)(void))
{
	u64 insns;

	mark();
	on_cpu_start(1, fn);
	delay(1000000);
	stop_cpu(1);
	delay(20000000);
	insns = since(1, ITEM_INSNS0);
	init_cpu(1);
	on_cpu(1, pmu_quiet);
	return insns;
}

static void init_counts(void)
{
	u64 cycles;

	near("init: of itself, what it has executed", until_init(count_and_init), 2, 17);
	near("init: after a DELAY, what it has executed", until_init(count_and_wait), 2, 17);

	on_cpu_start(1, count_cycles);
	delay(1000000);
	stop_cpu(1);
	cycles = item(1, ITEM_CYCLES0);
	delay(1000000);
	cycles = item(1, ITEM_CYCLES0) - cycles;
	/* Each thread's time may be 10 us behind what another one reads. */
	near("init: while it waits, cycles of the core", cycles, 980000, 120000);
	init_cpu(1);
	on_cpu(1, pmu_quiet);
}

/* The registers of one thread do not affect another's. */
static void separate(void)
{
	pmu_quiet();
	others_quiet();
	on_cpu(1, set_all);
	look();
	check("threads: registers of their own", seen_bits, 0);
	on_cpu(1, pmu_quiet);
}

static u64 tsc_seen;

static void read_tsc(void)
{
	tsc_seen = rdtsc();
}

static void set_tsc(void)
{
	wrmsr(MSR_TSC, 1ul << 55);
}

static void shared_tsc(void)
{
	on_cpu(1, set_tsc);
	on_cpu(2, read_tsc);
	result(tsc_seen >= 1ul << 55, "threads: one TSC for the core", "0x%lx", tsc_seen);
}

/*
 * Sampling in ring 3 alone, where the handler does not count: the totals are exact. With its
 * seven steps (327357-001 section 1.4.3.9) no interrupt may be lost.
 */
#define ROUNDS		((u64)SAMPLED_ROUNDS)

extern code sampled_loop;

static const u64 periods[2] = { 1009, 1511 };
static u64 samples[2], totals[2];

static void load(int counter)
{
	wrmsr(MSR_CNT0 + counter, WRAP - periods[counter]);
}

static void sample(struct regs *r)
{
	u64 status;

	wrmsr(MSR_GLOBAL, 0);
	status = rdmsr(MSR_STATUS);
	wrmsr(MSR_OVF, status);
	apic_write(APIC_LVTPC, LVT_NMI);
	for (int i = 0; i < 2; i++) {
		if (status & BIT(i)) {
			samples[i]++;
			load(i);
		}
	}
	wrmsr(MSR_GLOBAL, 3);
}

static void sampling(void)
{
	program(EV_INSTRUCTIONS | SEL_USR | SEL_INT, EV_BRANCHES | SEL_USR | SEL_INT);
	for (int i = 0; i < 2; i++) {
		load(i);
		samples[i] = 0;
	}
	apic_write(APIC_LVTPC, LVT_NMI);
	user_run(sampled_loop);
	for (int i = 0; i < 2; i++)
		totals[i] = samples[i] * periods[i] +
			    rdmsr(MSR_CNT0 + i) - (WRAP - periods[i]);
	pmu_quiet();
}

static void sample_all(void)
{
	u64 overflows, edges;

	handlers[2] = sample;
	for (int n = 0; n < ncpus(); n++) {
		mark();
		if (n)
			on_cpu(n, sampling);
		else
			sampling();
		edges = since(n, ITEM_EDGES);
		overflows = samples[0] + samples[1];
		check("threads: instructions sampled in ring 3", totals[0], 2 * ROUNDS + 2 + 2);
		check("threads: branches sampled in ring 3", totals[1], ROUNDS + 1 + 2);
		check("threads: as many samples as periods", samples[0],
		      (2 * ROUNDS + 4) / periods[0]);
		check("threads: no interrupt lost", since(n, ITEM_LOST), 0);
		check("threads: every edge delivered", since(n, ITEM_DELIVERED), edges);
		result(edges <= overflows && edges > overflows / 2,
		       "threads: an edge for one or two overflows",
		       "%ld edges, %ld overflows", edges, overflows);
	}
	handlers[2] = 0;
}

/* Cores of one number in two dies or modules: each half of the CPUs is one. */
static void count_anybody(void)
{
	switch_on(EV_INSTRUCTIONS | SEL_USR | SEL_ANY, 0);
}

static void user_nops(void)
{
	delay(20000000);
	user_run(f_nops);
}

SUITE(test_apart, "apart")
{
	/* CPUID reports the CPUs of one die only. */
	start_so_many_cpus(4);
	on_cpu(3, count_anybody);
	on_cpu(1, user_nops);
	on_cpu(3, look);
	check("apart: a thread of another core is not counted", seen[0], 0);
	on_cpu(3, count_anybody);
	on_cpu(2, user_nops);
	on_cpu(3, look);
	check("apart: one of the same is", seen[0], 103);
	on_cpu(1, set_tsc);
	on_cpu(2, read_tsc);
	result(tsc_seen < 1ul << 55, "apart: each core has its own TSC", "0x%lx", tsc_seen);
}

SUITE(test_threads, "threads")
{
	start_cpus();
	separate();
	shared_tsc();
	init_keeps();
	init_counts();
	sample_all();
}

/* Reset. A word in memory that no image overwrites says that it was. */
#define MARKER		0x5245534554ul

SUITE(test_reset, "reset")
{
	u64 sum, *marker = (void *)0x3000000, again = *marker == MARKER;

	look();
	sum = seen_bits | (seen_lvt ^ LVT_MASKED);
	start_cpus();
	on_cpu(1, look);
	sum |= seen_bits | (seen_lvt ^ LVT_MASKED);
	result(!sum, again ? "reset: registers" : "reset: power-on",
	       "a register is not 0: 0x%lx", sum);

	set_all();
	on_cpu(1, set_all);
	on_cpu(1, look);
	if (!as_set())
		result(0, "reset: registers set beforehand", "they are not");
	if (again)
		return;
	*marker = MARKER;
	outb(RESET_CONTROL, 2);
	outb(RESET_CONTROL, 6);
	for (;;)
		asm volatile("hlt");
}
