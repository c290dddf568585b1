// SPDX-License-Identifier: GPL-2.0-only
/* Lines shared by two cores of one thread each */
#include "bare.h"

#define LINE		64
#define LINES		256ul
#define TURNS		1000ul

/* on_cpu() adds a few events: the CPUs share the lines of its flags. */
#define AROUND		12

static u8 shared[LINES * LINE] __attribute__((aligned(4096)));

#define EACH(name, insn)	EACH_LINE(name, shared, sizeof(shared), insn)

EACH(read_all, "movb (%%rax), %%cl")
EACH(write_all, "movb $1, (%%rax)")
/* vprefetche1: the line becomes exclusive, but not modified. */
EACH(prefetch_all, ASM_VPREFETCHE1)
EACH(evict_inner, ASM_CLEVICT0)
EACH(evict_all, ASM_CLEVICT1)

/* What a CPU counts, and executes meanwhile */
static struct {
	u32 event;
	void (*fn)(void);
	u64 count;
} job[2];

static void begin(void)
{
	switch_on(job[this_cpu()].event | SEL_OS, 0);
}

static void end(void)
{
	job[this_cpu()].count = switch_off();
}

static void do_job(void)
{
	begin();
	job[this_cpu()].fn();
	end();
}

static u64 run0(u32 event, void (*fn)(void))
{
	job[0].event = event;
	job[0].fn = fn;
	do_job();
	return job[0].count;
}

static u64 run1(u32 event, void (*fn)(void))
{
	job[1].event = event;
	job[1].fn = fn;
	on_cpu(1, do_job);
	return job[1].count;
}

static void about(const char *name, u64 got, u64 want)
{
	near(name, got, want, AROUND);
}

/* CPU 1 gets all lines from memory; nobody has them before. */
static u64 fill1(u32 event, void (*fn)(void))
{
	run0(EV_L2_READ_MISS, evict_all);
	run1(EV_L2_READ_MISS, evict_all);
	return run1(event, fn);
}

/* Returns what CPU 1 counts while CPU 0 does something to its lines. */
static u64 watched(u32 event1, u32 event0, void (*fn)(void))
{
	job[1].event = event1;
	on_cpu(1, begin);
	run0(event0, fn);
	on_cpu(1, end);
	return job[1].count;
}

static void reads(void)
{
	about("cores: nobody has it: from memory", fill1(EV_L2_DATA_READ_MEM, read_all), LINES);
	about("cores: a clean line is asked for: snoop hits",
	      watched(EV_SNP_HIT, EV_L2_DATA_READ_CACHE, read_all), LINES);
	about("cores: and comes from the other cache", job[0].count, LINES);
	run0(EV_L2_DATA_READ_CACHE, evict_inner);
	about("cores: both have it: shared", run0(EV_L2_READ_HIT_S, read_all), LINES);
	run1(EV_L2_READ_HIT_S, evict_inner);
	about("cores: for the other one, too", run1(EV_L2_READ_HIT_S, read_all), LINES);

	fill1(EV_L2_DATA_READ_MEM, read_all);
	about("cores: not from memory as well", run0(EV_L2_DATA_READ_MEM, read_all), 0);
	run0(EV_L2_READ_HIT_E, evict_inner);
	about("cores: nor exclusive", run0(EV_L2_READ_HIT_E, read_all), 0);
}

static void writes(void)
{
	fill1(EV_L2_DATA_WRITE_MEM, write_all);
	about("cores: modified lines are asked for: snoop hits modified",
	      watched(EV_SNP_HITM, EV_L2_DATA_READ_CACHE, read_all), LINES);
	about("cores: and they come from there", job[0].count, LINES);
	run1(EV_L2_READ_HIT_M, evict_inner);
	about("cores: then they are modified no more", run1(EV_L2_READ_HIT_M, read_all), 0);

	fill1(EV_L2_DATA_WRITE_MEM, write_all);
	about("cores: modified lines are written back",
	      watched(EV_WRITTEN_BACK, EV_L2_DATA_WRITE_CACHE, write_all),
	      LINES);
	about("cores: write misses filled by another cache", job[0].count, LINES);
	about("cores: they have left the one that wrote before",
	      run1(EV_L2_DATA_READ_CACHE, read_all), LINES);

	/* Both have the lines, and one writes. */
	about("cores: writes to shared lines take them from the other one",
	      watched(EV_SNP_HIT, EV_DATA_WRITE_MISS, write_all), LINES);
	about("cores: and are no misses", job[0].count, 0);
	about("cores: which misses them", run1(EV_L2_READ_MISS, read_all), LINES);

	fill1(EV_L2_DATA_READ_MEM, read_all);
	about("cores: a prefetch for writing takes lines",
	      watched(EV_SNP_HIT, EV_L2_DATA_WRITE_CACHE, prefetch_all), LINES);
	about("cores: from the other cache", job[0].count, LINES);
	about("cores: and has them alone", run0(EV_L2_READ_HIT_E, read_all), LINES);
}

/* CPU 1 fetches code that CPU 0 has just run. */
static void fetches(void)
{
	extern void code16k(void);

	run0(EV_L2_CODE_MEM, code16k);
	about("cores: code from another cache", run1(EV_L2_CODE_CACHE, code16k), 16384 / LINE);
}

/* Both write words in turn. The turn's own line costs each a modified line, too. */
static struct {
	volatile u64 turn __attribute__((aligned(LINE)));
	volatile u64 word[2 * LINE / 8] __attribute__((aligned(LINE)));
} ball;
static u64 apart;	/* from one word to the other */

static void take_turns(void)
{
	u64 me = this_cpu();
	volatile u64 *mine = &ball.word[me * apart];

	begin();
	for (u64 i = 0; i < TURNS; i++) {
		while (ball.turn != me)
			relax();
		++*mine;
		ball.turn = !me;
	}
	end();
}

/*
 * Both write all the time. The core that has taken the line keeps it for TRANSFER cycles, and
 * a round is three instructions of two cycles.
 */
#define ROUNDS		100000ul
#define TRANSFER	250
#define TAKEN		(2 * ROUNDS * 6 / TRANSFER)

static void keep_writing(void)
{
	u64 rounds = ROUNDS;

	begin();
	asm volatile("1: incq (%1); decq %0; jnz 1b"
		     : "+r"(rounds) : "r"(&ball.word[this_cpu() * apart])
		     : "memory", "cc");
	end();
}

static void both(const char *name, void (*fn)(void), u32 event, u64 words, u64 want, u64 off)
{
	apart = words;
	ball.turn = 0;
	job[0].event = event;
	job[1].event = event;
	on_cpu_start(1, fn);
	fn();
	on_cpu_wait(1);
	near(name, job[0].count + job[1].count, want - off, 2 * off);
}

static void false_sharing(void)
{
	both("cores: false sharing: each turn two", take_turns, EV_SNP_HITM, 1,
	     4 * TURNS, TURNS / 50);
	both("cores: a line for each: only the turn itself", take_turns, EV_SNP_HITM,
	     LINE / 8, 2 * TURNS, TURNS / 50);
	both("cores: false sharing, without turns", keep_writing, EV_DATA_MISS, 1,
	     TAKEN, TAKEN / 10);
	both("cores: a line for each, without turns", keep_writing, EV_DATA_MISS,
	     LINE / 8, AROUND, AROUND);
}

/* Snoops overflow a counter as other events do, and reach no CMASK above 1. */
static void begin_sampling(void)
{
	arm_pmi(EV_SNP_HIT | SEL_OS | SEL_INT, LINES / 2, LVT_NMI);
	wrmsr(MSR_GLOBAL, 1);
}

static void overflow(void)
{
	fill1(EV_L2_DATA_READ_MEM, read_all);
	on_cpu(1, begin_sampling);
	run0(EV_L2_DATA_READ_CACHE, read_all);
	on_cpu(1, end);
	check("cores: snoops overflow a counter", pmi.count, 1);

	fill1(EV_L2_DATA_READ_MEM, read_all);
	about("cores: snoops, cmask 1",
	      watched(EV_SNP_HIT | SEL_CMASK(1), EV_L2_READ_MISS, read_all),
	      LINES);
	about("cores: snoops, cmask 2",
	      watched(EV_SNP_HIT | SEL_CMASK(2), EV_L2_READ_MISS, write_all),
	      0);
}

/* CPU 1 reads what CPU 0 has just written: accesses are seen in their order. */
static u8 fresh[LINE] __attribute__((aligned(LINE)));
static volatile int written;
static u64 from_cache;

static void read_written(void)
{
	u64 before;

	switch_on(EV_L2_DATA_READ_CACHE | SEL_OS, 0);
	while (!written)
		;
	before = rdmsr(MSR_CNT0);
	asm volatile("movb %0, %%al" : : "m"(fresh) : "rax");
	from_cache = rdmsr(MSR_CNT0) - before;
	switch_off();
}

static void in_order(void)
{
	switch_on(EV_L2_READ_MISS | SEL_OS, 0);
	on_cpu_start(1, read_written);
	delay(100000);
	asm volatile("movb $1, %0\n\tmovl $1, %1" : "=m"(fresh), "=m"(written));
	on_cpu_wait(1);
	switch_off();
	check("cores: a line that was written just before", from_cache, 1);
}

SUITE(test_cores, "cores")
{
	start_cpus();
	reads();
	writes();
	fetches();
	false_sharing();
	overflow();
	in_order();
}

/* With the hardware prefetcher: all lines of a page but two come by a prefetch. */
SUITE(test_streams, "streams")
{
	u64 fetched = LINES - 2 * (sizeof(shared) >> 12);

	start_cpus();
	/* One that reads, and then the write, would ask the other core twice. */
	fill1(EV_L2_DATA_READ_MEM, read_all);
	about("cores: a stream that writes takes lines at once",
	      watched(EV_SNP_HIT, EV_HWP_L2MISS, write_all), LINES);
	about("cores: by prefetches", job[0].count, fetched);
	run0(EV_L2_WRITE_HIT, evict_inner);
	about("cores: and has written them", run0(EV_L2_READ_HIT_M, read_all), LINES);

	fill1(EV_L2_DATA_READ_MEM, read_all);
	about("cores: a stream that reads", run0(EV_HWP_L2MISS, read_all), fetched);
	run0(EV_L2_READ_HIT_S, evict_inner);
	about("cores: leaves the other core its lines", run0(EV_L2_READ_HIT_S, read_all), LINES);
}
