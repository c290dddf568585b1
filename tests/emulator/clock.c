// SPDX-License-Identifier: GPL-2.0-only
/*
 * The card clock, on two cores of four threads each. The times that this prints are
 * the same in each run.
 */
#include "bare.h"

extern code f_int80, f_loop_hlt;

#define TIMES		5000000ul
#define WORK		(2 * 2 * TIMES)	/* in cycles, alone */
#define OTHER_CORE	4
/* One thread may be so many cycles ahead of another. */
#define LEAD		10000

/* A time, which is printed as well */
static void on_time(const char *name, u64 got, u64 want, u64 more)
{
	near(name, got, want, more);
	print("counter %s %ld\n", name, got);
}

/* noinline: the same instructions between the two reads each time */
static void __attribute__((noinline)) look(u64 *tsc, u64 *cycles)
{
	u32 lo, hi, tsc_lo, tsc_hi;

	asm volatile("rdtsc\n\t"
		     "movl %%eax, %0\n\t"
		     "movl %%edx, %1\n\t"
		     "rdpmc"
		     : "=&r"(tsc_lo), "=&r"(tsc_hi), "=&a"(lo), "=&d"(hi)
		     : "c"(0) : "memory");
	*tsc = tsc_lo | (u64)tsc_hi << 32;
	*cycles = lo | (u64)hi << 32;
}

static void work(void)
{
	long_loop(TIMES);
}

static void wait_cycles(u64 cycles)
{
	asm volatile(ASM_DELAY : : "a"(cycles) : "memory");
}

static void pause(u64 times)
{
	for (u64 i = 0; i < times; i++)
		asm volatile("pause");
}

static void copy(u64 count)
{
	u8 *to = pages[0], *from = pages[1];

	asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
}

/* TSC and cycles agree on fn(@n); another thread may have read the TSC up to @ahead. */
static void agree(const char *name, void (*fn)(u64), u64 n, u64 want, u64 more, u64 ahead)
{
	u64 tsc[2], cycles[2];

	switch_on(EV_CYCLES | SEL_OS, 0);
	look(&tsc[0], &cycles[0]);
	fn(n);
	look(&tsc[1], &cycles[1]);
	wrmsr(MSR_GLOBAL, 0);
	on_time(text("%s: cycles", name), cycles[1] - cycles[0], want, more);
	on_time(text("%s: and by the TSC", name), tsc[1] - tsc[0],
		cycles[1] - cycles[0] - ahead, 2 * ahead);
}

/* A halted CPU that only the timer can wake: the clock jumps. */
static void idle(void)
{
	u64 tsc = rdtsc();

	halt_until_timer(1000000000);
	on_time("clock: halted until a timer", rdtsc() - tsc, 1000000000, 3000);
}

static void wait_for_timer(void)
{
	asm volatile("sti");
	while (!ticked)
		;
	asm volatile("cli");
}

/* The timer is on time while CPUs execute. */
static void busy_until_timer(const char *name)
{
	u64 tsc = rdtsc();

	start_timer(1000000);
	wait_for_timer();
	on_time(name, rdtsc() - tsc, 1000000, LEAD + 3000);
}

/*
 * A counter of ring 3 that is about to overflow makes the thread's turn short. In ring 0 it does
 * not count: the clock must not skip the rest of the turn, here until the timer.
 */
static void near_overflow(void)
{
	u64 tsc = rdtsc(), runs, timer;

	handle_ints(ignore);
	start_timer(1000000);
	for (int after = 1; after <= 20; after++) {
		arm_pmi(EV_INSTRUCTIONS | SEL_USR, after, LVT_MASKED);
		user_run(f_int80);
	}
	runs = rdtsc() - tsc;
	wait_for_timer();
	timer = rdtsc() - tsc;
	on_time("clock: into ring 0 near an overflow", runs, 0, 100000);
	on_time("clock: a timer, after that", timer, 1000000, 3000);
	pmu_quiet();
}

/* The halt itself overflows a counter, and the PMI ends it. */
static void halt_at_overflow(void)
{
	u64 tsc = rdtsc(), insns = 200000 + 3;

	arm_pmi(EV_INSTRUCTIONS | SEL_OS | SEL_INT, insns, LVT_NMI);
	measure0(f_loop_hlt);
	on_time("clock: a halt that overflows a counter", rdtsc() - tsc, 2 * insns, 3000);
	check("clock: the PMI that ends it", pmi.count, 1);
	pmu_quiet();
}

/* CPU 0 and CPUs @first to @last work. */
static void together(const char *name, int first, int last, u64 want)
{
	u64 tsc = rdtsc();

	for (int n = first; n <= last; n++)
		on_cpu_start(n, work);
	work();
	for (int n = first; n <= last; n++)
		on_cpu_wait(n);
	on_time(name, rdtsc() - tsc, want, want / 100 + LEAD);
}

/* DELAY, and the TSC in the same block: another core must not see it jump. */
static volatile int watching, delayed;
static volatile u64 longest;

static void watch(void)
{
	u64 tsc, last = rdtsc();

	longest = 0;
	watching = 1;
	while (!delayed) {
		tsc = rdtsc();
		if (tsc - last > longest)
			longest = tsc - last;
		last = tsc;
	}
}

static void delay_beside(u64 cycles)
{
	u32 lo, hi;
	u64 tsc;

	on_cpu_start(OTHER_CORE, watch);
	while (!watching)
		relax();
	tsc = rdtsc();
	asm volatile(ASM_DELAY "\n\trdtsc"
		     : "=a"(lo), "=d"(hi) : "a"(cycles) : "memory");
	delayed = 1;
	on_cpu_wait(OTHER_CORE);
	on_time("clock: delay, beside another core", (lo | (u64)hi << 32) - tsc,
		cycles - LEAD, 2 * LEAD);
	on_time("clock: another core sees no jump", longest, 0, LEAD + 1000);
}

/* Each thread compares its TSC with what the thread before it read. */
static volatile int lock;
static volatile u64 last_seen;
static volatile u64 backwards, stood_still;

static void look_around(void)
{
	for (int i = 0; i < 5000; i++) {
		u64 tsc;

		while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
			;
		tsc = rdtsc();
		if (tsc < last_seen)
			backwards++;
		last_seen = rdtsc();
		if (last_seen <= tsc)
			stood_still++;
		__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	}
}

static void monotonic(void)
{
	for (int n = 1; n <= OTHER_CORE; n++)
		on_cpu_start(n, look_around);
	look_around();
	for (int n = 1; n <= OTHER_CORE; n++)
		on_cpu_wait(n);
	check("clock: never goes back for any reader", backwards, 0);
	check("clock: never stands still", stood_still, 0);
}

/*
 * All threads read the TSC all the time: no one's look moves the clock of the others, and
 * a timer comes. The loops end without it as well.
 */
#define LOOKS		100000
static u64 ahead[MAX_CPUS];

static void look_often(void)
{
	u64 tsc[2], cycles[2];

	switch_on(EV_CYCLES | SEL_OS, 0);
	look(&tsc[0], &cycles[0]);
	for (int i = 0; i < LOOKS; i++)
		rdtsc();
	look(&tsc[1], &cycles[1]);
	wrmsr(MSR_GLOBAL, 0);
	ahead[this_cpu()] = tsc[1] - tsc[0] - (cycles[1] - cycles[0]) + LEAD;
}

static void all_look(void)
{
	u64 tsc;

	for (int n = 1; n < ncpus(); n++)
		on_cpu_start(n, look_often);
	tsc = rdtsc();
	start_timer(100000);
	asm volatile("sti");
	for (int i = 0; !ticked && i < LOOKS; i++)
		rdtsc();
	asm volatile("cli");
	tsc = rdtsc() - tsc;
	on_time("clock: a timer, with all threads reading the TSC", tsc, 100000, LEAD + 3000);
	for (int n = 1; n < ncpus(); n++) {
		on_cpu_wait(n);
		result(ahead[n] <= 2 * LEAD, "clock: all read the TSC, which goes with the cycles",
		       "CPU %d: %ld ahead", n, ahead[n] - LEAD);
	}
}

/* Halted until an NMI from another thread */
static volatile u64 woken[MAX_CPUS];

static void take_nmi(struct regs *r)
{
	woken[this_cpu()] = rdtsc();
}

static u64 wake(int n)
{
	u64 tsc = rdtsc();

	wake_up(n);
	return woken[n] - tsc;
}

SUITE(test_clock, "clock")
{
	agree("clock: alone", long_loop, TIMES, WORK, 100, 0);
	agree("clock: delay", wait_cycles, 1000001, 1000002, 100, 0);
	agree("clock: the longest delay", wait_cycles, -1, 1ul << 32, 100, 0);
	agree("clock: pause", pause, 1000, 1000 * 512, 10000, 0);
	agree("clock: rep", copy, 4096, 2 * 4096, 200, 0);
	idle();
	busy_until_timer("clock: a timer, alone");
	near_overflow();
	halt_at_overflow();

	handlers[2] = take_nmi;
	start_cpus();
	for (int n = 1; n < ncpus(); n++)
		send_to_sleep(n, wait_for_nmi);
	on_time("clock: woken by another thread", wake(OTHER_CORE), 0, LEAD);
	together("clock: two cores", OTHER_CORE, OTHER_CORE, WORK);
	busy_until_timer("clock: a timer, with another core busy");
	delay_beside(100000000);
	agree("clock: beside another core", long_loop, TIMES, WORK, 100, LEAD);
	wake(1);
	together("clock: two threads of a core", 1, 1, WORK);
	wake(2);
	wake(3);
	together("clock: four threads of a core", 1, 3, 2 * WORK);
	agree("clock: in a core of four", long_loop, TIMES, 2 * WORK, 200, LEAD);
	monotonic();
	for (int n = OTHER_CORE + 1; n < ncpus(); n++)
		wake(n);
	all_look();
}

/* The host sleeps for what the clock skips, and often for longer. */
SUITE(test_sleeps, "sleeps")
{
	for (int i = 0; i < 20; i++) {
		u64 tsc = rdtsc();

		halt_until_timer(1000000);
		on_time("clock: the host sleeps, until a timer", rdtsc() - tsc, 1000000, 3000);
	}
}

/* QEMU's main loop sets a timer for a FIFO that is not full: 40 bits at 115200 a second. */
#define COM1_FIFO	0x3fa
#define FIFO_ON		0xc3		/* empty, interrupts at 14 bytes */
#define FIFO_TIMEOUT	0xc

SUITE(test_typed, "typed")
{
	u64 tsc;

	outb(0x3fb, 0x80);
	outb(0x3f8, 1);
	outb(0x3f9, 0);
	outb(0x3fb, 3);
	outb(0x3f9, 1);
	outb(COM1_FIFO, FIFO_ON);
	print("type\n");
	while (!(inb(0x3fd) & 1))
		;
	tsc = rdtsc();
	while ((inb(COM1_FIFO) & 0xf) != FIFO_TIMEOUT)
		;
	tsc = rdtsc() - tsc;
	result(tsc < 2000000, "clock: a timer of QEMU's main loop", "after %ld", tsc);
}

SUITE(never_ends, "busy")
{
	start_cpus();
	print("busy\n");
	for (;;)
		relax();
}

/* The timer is as fast as can be, and interrupts nothing. */
SUITE(never_wakes_beside_timer, "ticking")
{
	apic_write(APIC_DIVIDE, 0xb);
	apic_write(APIC_LVTT, VEC_TIMER | LVT_PERIODIC);
	apic_write(APIC_TIMER, 1);
	for (;;)
		asm volatile("cli; hlt");
}

SUITE(never_wakes, "asleep")
{
	print("asleep\n");
	for (;;)
		asm volatile("cli; hlt");
}
