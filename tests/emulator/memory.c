// SPDX-License-Identifier: GPL-2.0-only
/* Accesses to memory, caches, TLBs, fetches and predictions */
#include "bare.h"

extern code walk_read, walk_write, walk_strong, walk_masked, walk_weak;
extern code ten_loads, mixed, lines16, code16k, code48k, hops, alternating, two_targets,
	delayed, delayed_longest, chained, ten_lines, saved, cold_rdpmc,
	cold_invlpg, cold_fxsave;
extern char at_saved[], after_rdpmc[], after_invlpg[], after_fxsave[];
extern code f_fault_push, f_rep_movsb, f_loop, f_call,
	f_int80, f_syscall, f_fault_ud;
extern u64 walk_from, walk_to, walk_step, chained_to;
extern u8 buffer[];

/* user_run adds a write, of the call. */
static void accesses(const struct entry *e, const struct entry *end)
{
	for (; e < end; e++) {
		u64 r, w, sum;

		program(EV_DATA_READ | SEL_USR, EV_DATA_WRITE | SEL_USR);
		user_run(e->fn);
		r = rdmsr(MSR_CNT0);
		w = rdmsr(MSR_CNT1);
		result(r == e->reads && w == e->writes + 1, text("memory: %s", e->name),
		       "%ld reads, not %ld; %ld writes, not %ld", r, e->reads, w,
		       e->writes + 1);
		sum = count3(e->fn, EV_DATA_READ_OR_WRITE);
		if (sum != r + w)
			result(0, text("memory: sum: %s", e->name), "%ld", sum);
	}
}

/* The accesses of an instruction that is restarted count once. */
static void restarted(void)
{
	handlers[14] = map_and_retry;
	trapped = 0;
	map_page(0, 0);
	map_page(1, 0);
	program(EV_DATA_READ | SEL_USR, EV_DATA_WRITE | SEL_USR);
	user_run(f_fault_push);
	check("memory: push restarted twice, reads", rdmsr(MSR_CNT0), 2);
	check("memory: push restarted twice, writes", rdmsr(MSR_CNT1), 2);
	check("memory: faults taken", trapped, 2);
	handlers[14] = 0;
}

static void precise(void)
{
	int wrong = 0;

	for (int n = 1; n <= 10; n++)
		wrong += misses((char *)ten_loads + 5 + 2 * n, ten_loads, EV_DATA_READ, n);
	check("memory: no skid after any of 10 loads", wrong, 0);

	/* The call has one write. */
	for (int n = 2; n <= 20; n++)
		wrong += misses(at_saved, saved, EV_DATA_WRITE, n);
	check("memory: no skid after fxsave", wrong, 0);
}

static const struct counting mask_cases[] = {
	/* 25 accesses, the call's and the ret's */
	{ "memory: mask: none", mixed, EV_DATA_READ_OR_WRITE, 27 },
	{ "memory: mask: cmask 1", mixed, EV_DATA_READ_OR_WRITE | SEL_CMASK(1), 17 },
	{ "memory: mask: cmask 2", mixed, EV_DATA_READ_OR_WRITE | SEL_CMASK(2), 10 },
	{ "memory: mask: edge", mixed, EV_DATA_READ_OR_WRITE | SEL_E, 17 },
	/* 18 instructions in ring 3: 36 cycles */
	{ "memory: mask: cmask 2, inverted", mixed,
	  EV_DATA_READ_OR_WRITE | SEL_CMASK(2) | SEL_INV, 36 - 10 },
	{ "memory: mask: inverted without cmask", mixed,
	  EV_DATA_READ_OR_WRITE | SEL_INV, 27 },
};

/* What walk_read and walk_write go over */
static void walk_over(u64 from, u64 size, u64 step)
{
	walk_from = from;
	walk_to = from + size;
	walk_step = step;
}

/* @event in a third round; measure0() and @fn add a few accesses: allow for 2 %. */
static void walk(const char *name, code *fn, u32 event, u64 from, u64 size, u64 step, u64 want)
{
	walk_over(from, size, step);
	program(event | SEL_OS, (fn == walk_read ? EV_DATA_READ :
				 EV_DATA_WRITE) | SEL_OS);
	measure0(fn);
	measure0(fn);
	wrmsr(MSR_CNT0, 0);
	wrmsr(MSR_CNT1, 0);
	measure0(fn);
	near(name, rdmsr(MSR_CNT0), want - want / 50,
	     want ? want / 25 : rdmsr(MSR_CNT1) / 50);
}

#define KB	1024
#define MB	(1024 * KB)
#define PAGE	(4 * KB)

#define BUFFER	((u64)buffer)
#define LARGE	(64 * MB)

/* Walks over @size bytes by @step, and how often @event comes */
static const struct {
	const char *name;
	code *fn;
	u32 event;
	u64 from;
	u32 size, step, want;
} walks[] = {
	{ "16 KiB by 8, read misses", walk_read, EV_DATA_READ_MISS, BUFFER, 16 * KB, 8, 0 },
	{ "64 KiB by 8, read misses", walk_read, EV_DATA_READ_MISS, BUFFER, 64 * KB, 8, 1024 },
	{ "64 KiB by 64, either miss", walk_read, EV_DATA_MISS, BUFFER, 64 * KB, 64, 1024 },
	{ "256 KiB, L2 read misses", walk_read, EV_L2_READ_MISS, BUFFER, 256 * KB, 64, 0 },
	{ "1 MiB by 8, L2 read misses", walk_read, EV_L2_READ_MISS, BUFFER, MB, 8, 16384 },
	{ "1 MiB, filled from memory", walk_read, EV_L2_DATA_READ_MEM, BUFFER, MB, 64, 16384 },
	{ "the prefetcher is off", walk_read, EV_HWP_L2MISS, BUFFER, MB, 64, 0 },
	{ "reads leave nothing to write", walk_read, EV_L2_VICTIM, BUFFER, MB, 64, 0 },
	{ "16 KiB, write misses", walk_write, EV_DATA_WRITE_MISS, BUFFER, 16 * KB, 64, 0 },
	{ "16 KiB, written back", walk_write, EV_WRITTEN_BACK, BUFFER, 16 * KB, 64, 0 },
	{ "64 KiB by 8, write misses", walk_write, EV_DATA_WRITE_MISS, BUFFER, 64 * KB, 8, 1024 },
	{ "64 KiB by 8, written back", walk_write, EV_WRITTEN_BACK, BUFFER, 64 * KB, 8, 1024 },
	{ "256 KiB, L2 write hits", walk_write, EV_L2_WRITE_HIT, BUFFER, 256 * KB, 64, 4096 },
	{ "256 KiB, L2 keeps it", walk_write, EV_L2_VICTIM, BUFFER, 256 * KB, 64, 0 },
	{ "what was written", walk_read, EV_L2_READ_HIT_M, BUFFER, 256 * KB, 64, 4096 },
	{ "1 MiB, L2 write hits", walk_write, EV_L2_WRITE_HIT, BUFFER, MB, 64, 0 },
	{ "1 MiB, fetched for writing", walk_write, EV_L2_DATA_WRITE_MEM, BUFFER, MB, 64, 16384 },
	{ "1 MiB, L2 writes to memory", walk_write, EV_L2_VICTIM, BUFFER, MB, 64, 16384 },
	{ "unmodified lines of the L2", walk_read, EV_L2_READ_HIT_E, BUFFER, 256 * KB, 64, 4096 },
	{ "none is modified", walk_read, EV_L2_READ_HIT_M, BUFFER, 256 * KB, 64, 0 },
	/* A store of a whole line, vmovnrapd or vmovnrngoapd, does not read it from memory. */
	{ "256 KiB, streamed", walk_strong, EV_L2_STRONG_MISS, BUFFER, 256 * KB, 64, 0 },
	{ "1 MiB, streamed", walk_strong, EV_L2_STRONG_MISS, BUFFER, MB, 64, 16384 },
	{ "it is not fetched", walk_strong, EV_L2_DATA_WRITE_MEM, BUFFER, MB, 64, 0 },
	{ "it is written to memory", walk_strong, EV_L2_VICTIM, BUFFER, MB, 64, 16384 },
	{ "1 MiB, weakly ordered", walk_weak, EV_L2_WEAK_MISS, BUFFER, MB, 64, 16384 },
	{ "nor fetched", walk_weak, EV_L2_DATA_WRITE_MEM, BUFFER, MB, 64, 0 },
	{ "half of a line is fetched", walk_masked, EV_L2_DATA_WRITE_MEM, BUFFER, MB, 64, 16384 },
	{ "half of a line streams not", walk_masked, EV_L2_STRONG_MISS, BUFFER, MB, 64, 0 },
	{ "with one core nothing is shared", walk_read, EV_L2_READ_HIT_S, BUFFER, 256 * KB, 64, 0 },
	{ "nor from another cache", walk_read, EV_L2_DATA_READ_CACHE, BUFFER, MB, 64, 0 },

	/* The stack and the variables take three of 64 entries of the TLB. */
	{ "32 pages, walks", walk_read, EV_DATA_PAGE_WALK, PAGED_AREA, 32 * PAGE, PAGE, 0 },
	{ "128 pages, walks", walk_read, EV_DATA_PAGE_WALK, PAGED_AREA, 128 * PAGE, PAGE, 128 },
	{ "by 64, walks", walk_read, EV_DATA_PAGE_WALK, PAGED_AREA, 128 * PAGE, 64, 128 },
	/* An entry of the second level is for the 2 MiB that they are in. */
	{ "long ones", walk_read, EV_LONG_DATA_PAGE_WALK, PAGED_AREA, 128 * PAGE, PAGE, 0 },
	/* With 8 entries, stack and variables miss as well. */
	{ "32 large pages, walks", walk_read, EV_DATA_PAGE_WALK, LARGE, 64 * MB, 2 * MB, 32 + 2 },
	{ "32 of them, long ones", walk_read, EV_LONG_DATA_PAGE_WALK, LARGE, 64 * MB, 2 * MB, 0 },
	/* Twice as many as there is room for: none stays */
	{ "128 of them, long ones", walk_read, EV_LONG_DATA_PAGE_WALK, LARGE, 256 * MB, 2 * MB,
	  128 + 2 },
};

static void caches(void)
{
	/* In a set of the L1 that neither the stack is in, in half a page around, nor walk_from */
	u64 b = BUFFER + ((u64)__builtin_frame_address(0) + PAGE / 2) % PAGE / 64 * 64;

	if ((b ^ (u64)&walk_from) % PAGE < 128)
		b += 256;

	/* 128 pages of 4 KiB, over the same 16 of memory */
	for (int n = 0; n < 128; n++)
		paged_table[n] = (u64)pages[n % 16] | 7;
	write_cr3(read_cr3());
	for (u32 i = 0; i < ARRAY_SIZE(walks); i++)
		walk(text("walk: %s", walks[i].name), walks[i].fn, walks[i].event,
		     walks[i].from, walks[i].size, walks[i].step, walks[i].want);
	walk("cache: 8 lines of one set", walk_read, EV_DATA_READ_MISS, b,
	     8 * PAGE, PAGE, 0);
	for (int n = 0; n < 16; n++)
		asm volatile(ASM_CLEVICT1 : : "a"(b + n * PAGE) : "memory");
	/* Each time around one more stays, up to four: those that are used are not replaced. */
	walk("cache: 9 lines of one set, the third time", walk_read, EV_DATA_READ_MISS, b,
	     9 * PAGE, PAGE, 7);
	walk("cache: 16 lines of one set", walk_read, EV_DATA_READ_MISS, b, 16 * PAGE, PAGE, 16);

	program(EV_DATA_WRITE_MISS | SEL_OS, 0);
	walk_over(b, 64, 64);
	measure0(walk_write);
	walk_over(b + PAGE, 8 * PAGE, PAGE);
	measure0(walk_read);
	walk_over(b, 64, 64);
	wrmsr(MSR_CNT0, 0);
	measure0(walk_write);
	check("cache: a written line that reads have evicted", rdmsr(MSR_CNT0), 1);
}

/* Events from outside the core reach counter 0 only. */
static void counter0(void)
{
	walk_over(LARGE, 2 * MB, 64);
	program(EV_L2_READ_MISS | SEL_OS, EV_L2_READ_MISS | SEL_OS);
	measure0(walk_read);
	check("unit mask 0x10: counter 0 counts", rdmsr(MSR_CNT0) > 0, 1);
	check("unit mask 0x10: counter 1 does not", rdmsr(MSR_CNT1), 0);
}

/* vprefetch* and clevict* of LINES lines; the bytes after the first, of operand (%rax) */
#define LINES	64
#define HINTS(name, bytes) \
	EACH_LINE(name, hint_from, 64 * LINES, ".byte 0xc5, " bytes)

static u64 hint_from;

HINTS(vprefetchnta, "0xf8, 0x18, 0x00")
HINTS(vprefetch0, "0xf8, 0x18, 0x08")
HINTS(vprefetch1, "0xf8, 0x18, 0x10")
HINTS(vprefetch2, "0xf8, 0x18, 0x18")
HINTS(vprefetchenta, "0xf8, 0x18, 0x20")
HINTS(vprefetche0, "0xf8, 0x18, 0x28")
HINTS(vprefetche1, "0xf8, 0x18, 0x30")
HINTS(vprefetche2, "0xf8, 0x18, 0x38")
HINTS(clevict0, "0xfb, 0xae, 0x38")
HINTS(clevict1, "0xfa, 0xae, 0x38")

static void nothing(void)
{
}

/* Returns the number of @event in @fn after @before. */
static u64 hinted(u32 event, code *before, code *fn)
{
	count0(before, EV_L2_READ_MISS);
	return count0(fn, event);
}

/*
 * The last ten events are misses of loads that end at @at and each @step bytes later. What is
 * between them gives the model the accesses before its time.
 */
static void misses_between(const char *name, code *fn, char *at, int step)
{
	int wrong = 0;
	u64 events;

	hint_from = (u64)buffer + MB;
	clevict1();
	events = count0(fn, EV_DATA_MISS);
	for (int n = 0; n < 10; n++) {
		clevict1();
		wrong += misses(at + n * step, fn, EV_DATA_MISS, events - 9 + n);
	}
	check(name, wrong, 0);
}

static void misses_among_others(void)
{
	misses_between("memory: no skid after misses, between RDPMCs", cold_rdpmc,
		       after_rdpmc, 8);
	misses_between("memory: no skid after misses, between INVLPGs", cold_invlpg,
		       after_invlpg, 9);
	misses_between("memory: no skid after misses, behind fxsave", cold_fxsave,
		       after_fxsave, 6);
}

/* @event comes once for each line, or never, in fn() after before(). */
static const struct {
	const char *name;
	u32 event;
	code *before, *fn;
	u32 each_line;
} hints[] = {
	{ "vprefetch0", EV_L1_PF1, nothing, vprefetch0, 1 },
	{ "vprefetchnta", EV_L1_PF1, nothing, vprefetchnta, 1 },
	{ "vprefetchenta", EV_L1_PF1, nothing, vprefetchenta, 1 },
	{ "vprefetche0", EV_L1_PF1, nothing, vprefetche0, 1 },
	{ "vprefetch0, L1 misses", EV_L1_PF1_MISS, clevict1, vprefetch0, 1 },
	{ "vprefetch0 again", EV_L1_PF1_MISS, vprefetch0, vprefetch0, 0 },
	{ "vprefetch0, L2 misses", EV_L2_PF1_MISS, clevict1, vprefetch0, 1 },
	{ "vprefetch0 from the L2", EV_L2_PF1_MISS, clevict0, vprefetch0, 0 },
	{ "vprefetch0 reads memory", EV_L2_DATA_READ_MEM, clevict1, vprefetch0, 1 },
	{ "vprefetche0 is for writing", EV_L2_DATA_WRITE_MEM, clevict1, vprefetche0, 1 },
	{ "vprefetch1", EV_L1_PF2, nothing, vprefetch1, 1 },
	{ "vprefetche1", EV_L1_PF2, nothing, vprefetche1, 1 },
	{ "vprefetch2", EV_L1_PF2, nothing, vprefetch2, 1 },
	{ "vprefetch1 at the L2", EV_L2_PF2, nothing, vprefetch1, 1 },
	{ "vprefetch1, L2 misses", EV_L2_PF2_MISS, clevict1, vprefetch1, 1 },
	{ "vprefetch1 again", EV_L2_PF2_MISS, vprefetch1, vprefetch1, 0 },
	{ "vprefetch2, L2 misses", EV_L2_PF2_DROP, clevict1, vprefetch2, 1 },
	{ "vprefetche2, L2 misses", EV_L2_PF2_DROP, clevict1, vprefetche2, 1 },
	/* The walks have the same lines. */
	{ "read after vprefetch0", EV_DATA_READ_MISS, vprefetch0, walk_read, 0 },
	{ "read after vprefetch1", EV_L2_READ_HIT_E, vprefetch1, walk_read, 1 },
	{ "write after vprefetche0", EV_DATA_WRITE_MISS, vprefetche0, walk_write, 0 },
	{ "clevict0 writes back", EV_WRITTEN_BACK, walk_write, clevict0, 1 },
	{ "clevict0 leaves it in the L2", EV_L2_READ_HIT_M, clevict0, walk_read, 1 },
	{ "clevict1 writes to memory", EV_L2_VICTIM, walk_write, clevict1, 1 },
	{ "clevict1 empties the L1, too", EV_L2_READ_MISS, clevict1, walk_read, 1 },
};

static void prefetches(void)
{
	hint_from = (u64)buffer + MB;
	walk_over(hint_from, 64 * LINES, 64);
	for (u32 i = 0; i < ARRAY_SIZE(hints); i++) {
		u64 got;

		/* The L1 must not have the lines. */
		if (hints[i].event == EV_L2_READ_HIT_E)
			hinted(EV_L2_READ_MISS, walk_read, clevict1);
		got = hinted(hints[i].event, hints[i].before, hints[i].fn);
		/* measure0() and the walks add a few accesses. */
		near(text("hint: %s", hints[i].name), got, hints[i].each_line * LINES, 4);
	}
}

/* An interrupt after the load that misses for the nth time */
static void precise_misses(const char *name, u64 offset, u32 event, int each)
{
	int wrong = 0;

	hint_from = (u64)buffer;
	walk_from = (u64)buffer + offset;
	for (int n = 1; n <= 10 * each; n++) {
		/* Apart from those lines all is in the cache. */
		count0(ten_lines, event);
		count0(clevict1, event);
		wrong += misses((char *)ten_lines + 7 + 6 * ((n + each - 1) / each), ten_lines,
				event, n);
	}
	check(name, wrong, 0);
}

/* Of device memory, and of a page that is not mapped */
static void prefetches_of_nothing(void)
{
	hint_from = APIC;
	check("hint: vprefetch0 of a device is dropped", count0(vprefetch0, EV_L1_PF1_DROP), LINES);
	check("hint: vprefetch1 of a device, in the core", count0(vprefetch1, EV_L1_PF2), LINES);
	check("hint: vprefetch1 of a device, at the L2", count0(vprefetch1, EV_L2_PF2), 0);
	map_page(0, 0);
	hint_from = PAGED_AREA;
	check("hint: vprefetch0 of no page", count0(vprefetch0, EV_L1_PF1), 0);
	check("hint: clevict1 of no page", count0(clevict1, EV_WRITTEN_BACK), 0);
	map_page(0, 1);
	/* The loop reads hint_from, each time and once more. */
	hint_from = (u64)buffer;
	check("hint: is no read of data",
	      hinted(EV_DATA_READ, vprefetch0, vprefetch0) -
	      hinted(EV_DATA_READ, nothing, nothing), LINES + 1);
}

static void tlbs(void)
{
	walk_over(PAGED_AREA, 16 * PAGE, PAGE);
	program(EV_DATA_PAGE_WALK | SEL_OS, 0);
	measure0(walk_read);
	wrmsr(MSR_CNT0, 0);
	asm volatile("invlpg (%0)" : : "r"(PAGED_AREA + 4 * 4096ul));
	measure0(walk_read);
	check("tlb: invlpg drops one page", rdmsr(MSR_CNT0), 1);
	wrmsr(MSR_CNT0, 0);
	write_cr3(read_cr3());
	measure0(walk_read);
	near("tlb: loading cr3 drops all", rdmsr(MSR_CNT0), 16, 4);
}

/* The last of three runs in ring 3. This code's page is in none of the TLB's full sets. */
static __attribute__((aligned(8 * PAGE))) u64 third(code *fn, u64 event)
{
	program(event | SEL_USR, 0);
	user_run(fn);
	user_run(fn);
	wrmsr(MSR_CNT0, 0);
	user_run(fn);
	return rdmsr(MSR_CNT0);
}

static const struct counting thirds[] = {
	/* user_run()'s stub adds its line before the function and after it. */
	{ "code: 17 lines one after the other", lines16, EV_CODE_READ, 17 + 2 },
	{ "code: a loop within a line", f_loop, EV_CODE_READ, 1 + 2 },
	{ "code: 16 KiB, misses", code16k, EV_CODE_MISS, 0 },
	{ "code: 48 KiB, L2 misses", code48k, EV_L2_CODE_MEM, 0 },
	/* In sets of 4: two of six stay, and none of seven, which are in two sets. */
	{ "code: 49 pages and the stub's, walks", hops, EV_CODE_PAGE_WALK, 6 * 4 + 2 * 7 + 2 },
	{ "code: 49 pages, long walks", hops, EV_LONG_CODE_PAGE_WALK, 0 },

	/* The stub's branches and the ret are the same each time. */
	{ "branches: the end of a loop is not foreseen", f_loop, EV_MISPREDICTED, 1 },
	{ "branches: 100 nops", f_nops, EV_MISPREDICTED, 0 },
	{ "branches: taken every other time", alternating, EV_MISPREDICTED, 500 + 1 },
	/* The call is mispredicted each time, the loop once. */
	{ "branches: two targets in turn", two_targets, EV_MISPREDICTED, 1000 + 1 },
	{ "branches: calls of one function", f_call, EV_MISPREDICTED, 1 },

	/* Each run in ring 3 ends with an interrupt, which is a flush. */
	{ "flushes: only the interrupt", f_nops, EV_PIPELINE_FLUSHES, 1 },
	{ "flushes: the end of a loop", f_loop, EV_PIPELINE_FLUSHES, 1 + 1 },
	{ "flushes: two targets in turn", two_targets, EV_PIPELINE_FLUSHES, 1000 + 1 + 1 },
	/* 48 jumps, a ret, and the stub's call are too many for a set. */
	{ "flushes: taken, and never foreseen", hops, EV_PIPELINE_FLUSHES, 48 + 1 + 1 + 1 },
	{ "flushes: those are not mispredicted", hops, EV_MISPREDICTED, 0 },
	{ "flushes: software interrupts", f_int80, EV_PIPELINE_FLUSHES, 2 + 1 },
	{ "flushes: an exception", f_fault_ud, EV_PIPELINE_FLUSHES, 1 + 1 },
	{ "flushes: syscall", f_syscall, EV_PIPELINE_FLUSHES, 1 + 1 },

	{ "stages: rounds of rep movsb", f_rep_movsb, EV_EXEC_STAGE, 5 + 2 + 999 },
	{ "stages: front end waits for them", f_rep_movsb, EV_FE_STALLED, 2 * 999 },
	{ "stages: 100 nops", f_nops, EV_EXEC_STAGE, 103 },
	{ "stages: no wait", f_nops, EV_FE_STALLED, 0 },
	{ "delay: cycles", delayed, EV_CYCLES, 2 * 5 + 100 },
	{ "delay: instructions", delayed, EV_INSTRUCTIONS, 5 },
	/* A slot is two cycles: 2^32 - 1 are rounded up. */
	{ "delay: no more than the most", delayed_longest, EV_CYCLES, 2 * 5 + BIT(32) },
	{ "delay: and nothing else", delayed_longest, EV_FE_STALLED, BIT(32) },
};

static void fetches_and_branches(void)
{
	handle_ints(ignore);
	handlers[UD] = skip2;
	count_each(third, thirds, ARRAY_SIZE(thirds));
	/* In ring 0, once the branches are predicted */
	for (int i = 0; i < 3; i++) {
		arm_pmi(EV_PIPELINE_FLUSHES | SEL_OS | SEL_INT, 1, LVT_NMI);
		measure0(f_int80);
	}
	check("flushes: no skid after an interrupt",
	      came_at(trap_stubs + 16 * VEC_INT80, KERNEL_CS), 1);
	handle_ints(0);
	handlers[UD] = 0;
	/* 12 lines for each set of 8, of which two stay */
	near("code: 48 KiB, misses", third(code48k, EV_CODE_MISS), 640 - 10, 2 * 10);
	program(EV_PIPELINE_FLUSHES | SEL_OS, 0);
	user_run(f_nops);
	check("flushes: iretq", rdmsr(MSR_CNT0) >= 1, 1);
	check("flushes: never two in a cycle",
	      count3(hops, EV_PIPELINE_FLUSHES | SEL_CMASK(2)), 0);
}

SUITE(test_memory, "memory")
{
	set_pce(1);
	accesses(__start_code_table, __stop_code_table);
	if (modern()) {
		accesses(__start_modern_code, __stop_modern_code);
		accesses(__start_pieces, __stop_pieces);
	}
	restarted();
	precise();
	count_each(count3, mask_cases, ARRAY_SIZE(mask_cases));
	caches();
	prefetches();
	precise_misses("memory: no skid after misses", 0, EV_DATA_READ_MISS, 1);
	precise_misses("memory: no skid after L2 misses", 0, EV_L2_READ_MISS, 1);
	precise_misses("memory: no skid after two L2 misses at once", 62, EV_L2_READ_MISS, 2);
	misses_among_others();
	prefetches_of_nothing();
	counter0();
	tlbs();
	fetches_and_branches();
}

/* Thread count mode: the other threads of the core do not count for themselves. */
static void run_nops(void)
{
	/* It takes a moment until this thread counts for the other one. */
	delay(20000000);
	user_run(f_nops);
	user_run(mixed);
}

static void any_one(const char *name, u64 sel, u64 want)
{
	switch_on(sel | SEL_USR | SEL_ANY, sel | SEL_USR);
	on_cpu(1, run_nops);
	on_cpu(2, run_nops);
	check(text("any thread: %s", name), switch_off(), 2 * want);
	check(text("any thread: not without the bit: %s", name), rdmsr(MSR_CNT1), 0);
}

/* With another event, what the others did before does not count. */
static void any_changes(void)
{
	switch_on(EV_INSTRUCTIONS | SEL_USR | SEL_ANY, 0);
	on_cpu(1, run_nops);
	check("any thread: one event", rdmsr(MSR_CNT0), 103 + 18);
	wrmsr(MSR_SEL0, EV_BRANCHES | SEL_USR | SEL_ANY | SEL_EN);
	check("any thread: another one, while it runs", rdmsr(MSR_CNT0), 103 + 18);
	check("any thread: and no overflow", rdmsr(MSR_STATUS), 0);
	on_cpu(1, run_nops);
	check("any thread: counts from there", rdmsr(MSR_CNT0), 103 + 18 + 3 + 3);
	wrmsr(MSR_GLOBAL, 0);
}

/* One counter only: DATA_READ on the other would need the model. */
static void any_on(void)
{
	switch_on(EV_INSTRUCTIONS | SEL_OS | SEL_ANY, 0);
}

/*
 * Thread 1 stops counting thread 0's events. Thread 0 notices at an interrupt that
 * it does not take, between two blocks that QEMU then chains.
 */
static void any_stops(void)
{
	u64 memory;

	pmu_quiet();
	on_cpu(1, any_on);
	delay(20000000);
	on_cpu(1, pmu_quiet);
	chained_to = APIC + APIC_ICR;
	chained();
	wrmsr(MSR_SEL0, EV_INSTRUCTIONS | SEL_OS | SEL_EN);
	chained_to = (u64)&memory;
	measure0(chained);
	check("any thread: stopped, and no block is left that does not count",
	      rdmsr(MSR_CNT0), 5 + 2006);
	ticked = 0;
	handlers[VEC_TIMER] = take_timer;
	asm volatile("sti; nop; cli");
	check("any thread: with an interrupt that waits", ticked, 1);
}

/* The threads of a core share its caches. */
static void evict(void)
{
	walk_over((u64)buffer + 16 * PAGE, 9 * PAGE, 64);
	program(EV_DATA_READ_MISS | SEL_OS, 0);
	measure0(walk_read);
	pmu_quiet();
}

static u64 misses_of_a_page(void)
{
	walk_over((u64)buffer, PAGE, 64);
	wrmsr(MSR_CNT0, 0);
	measure0(walk_read);
	return rdmsr(MSR_CNT0);
}

static void any_evicts(void)
{
	program(EV_DATA_READ_MISS | SEL_OS, 0);
	misses_of_a_page();
	check("threads: lines that stay", misses_of_a_page() < 5, 1);
	on_cpu(1, evict);
	check("threads: lines that another thread has evicted",
	      misses_of_a_page() >= PAGE / 64, 1);
	pmu_quiet();
}

/* What leaves the L2 has no thread: each that counts it has all of it. */
static u64 victims;

static void write_lines(void)
{
	walk_over((u64)buffer, MB, 64);
	program(EV_L2_VICTIM | SEL_OS, 0);
	measure0(walk_write);
	victims = rdmsr(MSR_CNT0);
	pmu_quiet();
}

static void any_victims(void)
{
	switch_on(EV_L2_VICTIM | SEL_OS, 0);
	delay(20000000);
	on_cpu(1, write_lines);
	near("threads: another thread counts the same", switch_off(), victims, 64);
	near("threads: victims of the thread that writes", victims, 8192, 8500);
}

SUITE(test_any, "any")
{
	start_cpus();
	others_quiet();
	any_one("instructions", EV_INSTRUCTIONS, 103 + 18);
	any_one("reads", EV_DATA_READ, 1 + 16);
	/* No two threads issue in one cycle: CMASK is for each instruction. */
	any_one("instructions, cmask 1", EV_INSTRUCTIONS | SEL_CMASK(1), 103 + 18);
	any_one("instructions, cmask 2", EV_INSTRUCTIONS | SEL_CMASK(2), 0);
	any_one("accesses, cmask 2", EV_DATA_READ_OR_WRITE | SEL_CMASK(2), 10);
	/* Thread count mode never counts with INV or E. */
	any_one("instructions, inverted", EV_INSTRUCTIONS | SEL_CMASK(1) | SEL_INV, 0);
	any_one("accesses, edge", EV_DATA_READ_OR_WRITE | SEL_E, 0);

	any_changes();
	any_evicts();
	any_victims();
	any_stops();

	switch_on(EV_INSTRUCTIONS | SEL_USR | SEL_ANY, 0);
	on_cpu(1, run_nops);
	user_run(f_nops);
	check("any thread: and its own", rdmsr(MSR_CNT0), 103 + 18 + 103);

	arm_pmi(EV_INSTRUCTIONS | SEL_USR | SEL_ANY | SEL_INT, 50, LVT_NMI);
	mark();
	wrmsr(MSR_GLOBAL, 1);
	on_cpu(1, run_nops);
	delay(20000000);
	check("any thread: interrupt here for events there", pmi.count, 1);
	check("any thread: none lost", since(0, ITEM_LOST), 0);
}
