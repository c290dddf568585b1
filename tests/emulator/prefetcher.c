// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hardware prefetcher: what Intel's paper says of a loop over memory, with and
 * without prefetches by software
 */
#include "bare.h"

#define LINE	64
#define PAGE	4096
#define PAGES	17
#define MIB	(1 << 20)

extern code ten_next;
extern u64 walk_from;
extern u8 buffer[];

static u8 hot[PAGE] __attribute__((aligned(PAGE)));

/* What the loops go over: @count lines, each so many bytes from the one before */
static u8 *from;
static long step;
static int count;

#define LOAD		"movb (%%rax), %%cl"
#define STORE		"movb %%cl, (%%rax)"

#define DO(insn, at)	({ asm volatile(insn : : "a"(at) : "rcx", "memory"); })

#define EACH(name, insn)				\
	static void name(void)				\
	{						\
		u8 *at = from;				\
							\
		for (int i = 0; i < count; i++) {	\
			DO(insn, at);			\
			at += step;			\
		}					\
	}

EACH(loads, LOAD)
EACH(stores, STORE)
EACH(vprefetch1, ASM_VPREFETCH1)

/* As a compiler does it: eight lines ahead, into the L2 and the L1 */
#define AHEAD		8

static void loads_prefetched(void)
{
	u8 *at = from;

	for (int i = 0; i < count; i++) {
		DO(ASM_VPREFETCH1, at + 2 * AHEAD * step);
		DO(ASM_VPREFETCH0, at + AHEAD * step);
		DO(LOAD, at);
		at += step;
	}
}

/* A line of each of so many pages in turn */
static int page_count;

static void loads_of_pages(void)
{
	for (int i = 0; i < PAGE; i += LINE)
		for (int n = 0; n < page_count; n++)
			DO(LOAD, from + n * PAGE + i);
}

EACH_LINE(evict_all, buffer, PAGES * PAGE, ASM_CLEVICT1)

/* No cache has the memory that the loops go over; all else is in the caches. */
static u64 cold(u32 event, code *fn)
{
	count0(fn, event);
	count0(evict_all, event);
	return count0(fn, event);
}

static void go_over(u8 *begin, long by, int lines)
{
	from = begin;
	step = by;
	count = lines;
}

/* measure0() adds a few events. */
static void about(const char *name, u64 got, u64 want)
{
	near(name, got, want, 4);
}

/* Through four pages: where a loop begins, by how much it goes, and how often */
enum { ROW, BACKWARDS, EVERY_OTHER };

static const struct {
	int begin, by, lines;
} ways[] = {
	[ROW] = { 0, LINE, 256 },
	[BACKWARDS] = { 4 * PAGE - LINE, -LINE, 256 },
	[EVERY_OTHER] = { 0, 2 * LINE, 128 },
};

static const struct {
	const char *name;
	code *fn;
	u32 event;
	int way;
	u64 want;
} cases[] = {
	/* Two misses in a page show the direction: 62 lines are prefetched. */
	{ "in a row, L1 misses", loads, EV_DATA_READ_MISS, ROW, 256 },
	{ "in a row, L2 misses", loads, EV_L2_READ_MISS, ROW, 8 },
	{ "in a row, from memory", loads, EV_L2_DATA_READ_MEM, ROW, 8 },
	{ "in a row, prefetched", loads, EV_HWP_L2MISS, ROW, 248 },
	{ "in a row, L2 hits", loads, EV_L2_READ_HIT_E, ROW, 248 },
	{ "backwards, L2 misses", loads, EV_L2_READ_MISS, BACKWARDS, 8 },
	{ "backwards, prefetched", loads, EV_HWP_L2MISS, BACKWARDS, 248 },
	{ "writes, L2 misses", stores, EV_L2_DATA_WRITE_MEM, ROW, 8 },
	{ "writes, prefetched", stores, EV_HWP_L2MISS, ROW, 248 },
	{ "writes, L2 hits", stores, EV_L2_WRITE_HIT, ROW, 248 },
	/* "For strided access you need to use software prefetching": 671479 */
	{ "every other line, L2 misses", loads, EV_L2_READ_MISS, EVERY_OTHER, 128 },
	{ "every other line, prefetched", loads, EV_HWP_L2MISS, EVERY_OTHER, 0 },
	{ "every other line, by software, L1 misses", loads_prefetched,
	  EV_DATA_READ_MISS, EVERY_OTHER, AHEAD },
	/* Prefetches by software begin no stream. */
	{ "by software, L1 misses", loads_prefetched, EV_DATA_READ_MISS, ROW, AHEAD },
	{ "by software, L2 misses of vprefetch1", loads_prefetched, EV_L2_PF2_MISS, ROW, 256 },
	{ "only by software", vprefetch1, EV_HWP_L2MISS, ROW, 0 },
};

static void directions(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		int way = cases[i].way;

		go_over(buffer + ways[way].begin, ways[way].by, ways[way].lines);
		about(text("prefetcher: %s", cases[i].name),
		      cold(cases[i].event, cases[i].fn), cases[i].want);
	}
}

static void streams(void)
{
	go_over(buffer, LINE, 0);
	page_count = 16;
	about("prefetcher: 16 streams", cold(EV_HWP_L2MISS, loads_of_pages), 16 * 62);
	page_count = 17;
	about("prefetcher: no 17", cold(EV_HWP_L2MISS, loads_of_pages), 0);
}

/* Lines that the L2 has are asked for, and not fetched; a stream ends with its page. */
static void present(void)
{
	go_over(buffer + 2 * LINE, LINE, 62);
	cold(EV_HWP_L2HIT, vprefetch1);
	go_over(buffer, LINE, 64);
	about("prefetcher: lines that the L2 has", count0(loads, EV_HWP_L2HIT), 62);

	cold(EV_L2_READ_MISS, loads);
	go_over(buffer + PAGE, LINE, 1);
	about("prefetcher: nothing of the next page", count0(loads, EV_L2_READ_MISS), 1);
}

/* Four prefetches by the second load, and one by each later one */
static void precise(void)
{
	static const u8 load[] = { 2, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	int wrong = 0;

	walk_from = (u64)buffer;
	for (u32 n = 1; n <= ARRAY_SIZE(load); n++) {
		cold(EV_HWP_L2MISS, ten_next);
		count0(evict_all, EV_HWP_L2MISS);
		wrong += misses((char *)ten_next + 7 + 6 * load[n - 1], ten_next, EV_HWP_L2MISS, n);
	}
	check("prefetcher: no skid", wrong, 0);
}

/*
 * The L2 does not see that the L1 hits a line, which becomes the oldest of its set. Still the
 * prefetches, which are all that comes into this set, take other lines.
 */
#define ROUNDS		8

static void loads_and_a_hot_one(void)
{
	for (int i = 0; i < ROUNDS * MIB; i += LINE) {
		DO(LOAD, buffer + i % MIB);
		DO(LOAD, hot + PAGE / 2);
	}
}

static void hot_line(void)
{
	count0(loads_and_a_hot_one, EV_DATA_READ_MISS);
	about("prefetcher: a line in use stays in the L1",
	      count0(loads_and_a_hot_one, EV_DATA_READ_MISS), ROUNDS * MIB / LINE);
}

SUITE(test_prefetcher, "prefetcher")
{
	directions();
	streams();
	present();
	precise();
	hot_line();
}
