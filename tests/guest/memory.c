// SPDX-License-Identifier: GPL-2.0-only
/*
 * Miss rates of walks over memory, as arithmetic has them: lines of 64 bytes, 8
 * ways, the line that was used longest ago goes first. A walk in a circle finds
 * all of what fits, and nothing of what does not.
 */
#include "lib.h"

#define DATA_READ		CODE(0x00, 0x00)
#define DATA_WRITE		CODE(0x01, 0x00)
#define DATA_READ_MISS		CODE(0x03, 0x00)
#define DATA_WRITE_MISS		CODE(0x04, 0x00)
#define LINES_WRITTEN_BACK	CODE(0x06, 0x00)
#define DATA_MISS		CODE(0x29, 0x00)
#define L2_VICTIM_WITH_DATA	CODE(0xd7, 0x10)
#define L2_READ_MISS_MEM	CODE(0xf6, 0x10)
#define L2_WRITE_MISS_MEM	CODE(0xf7, 0x10)

#define KIB			1024
#define LINE			64

/*
 * The L2 is found by physical address: 64 KiB for each way, in which pages lie
 * as they come. With two of a colour on average eight are enough, and with 64
 * they are not: sizes near its own 512 KiB say nothing.
 */
#define L1_HIT			(16 * KIB)
#define L2_HIT			(128 * KIB)
#define L2_MISS			(4096 * KIB)

static const u64 sizes[] = { L1_HIT, L2_HIT, L2_MISS };

/* Of how many lines a walk of each size has the event */
enum { UNTRIED, NONE, ALL };

static const struct walk {
	const char *name;
	u64 config;
	bool write;
	int of[ARRAY_SIZE(sizes)];
} walks[] = {
	{ "L1 read misses", DATA_READ_MISS, false, { NONE, ALL, ALL } },
	{ "L1 misses", DATA_MISS, false, { NONE, ALL } },
	{ "L2 read misses", L2_READ_MISS, false, { NONE, NONE, ALL } },
	{ "reads of memory", L2_READ_MISS_MEM, false, { UNTRIED, NONE, ALL } },
	{ "L1 write misses", DATA_WRITE_MISS, true, { NONE, ALL } },
	{ "L1 lines written back", LINES_WRITTEN_BACK, true, { NONE, ALL } },
	{ "L2 write hits", L2_WRITE_HIT, true, { UNTRIED, ALL, NONE } },
	{ "writes of memory", L2_WRITE_MISS_MEM, true, { UNTRIED, UNTRIED, ALL } },
	{ "L2 lines written back", L2_VICTIM_WITH_DATA, true, { UNTRIED, NONE, ALL } },
};

/* One access for each step, and no other */
static void go(const struct walk *w, char *from, u64 size, u64 stride)
{
	char *to = from + size;

	if (w->write)
		asm volatile("1: movb $1, (%0); add %2, %0; cmp %1, %0; jb 1b"
			     : "+r"(from) : "r"(to), "r"(stride) : "memory", "cc");
	else
		asm volatile("1: movb (%0), %%al; add %2, %0; cmp %1, %0; jb 1b"
			     : "+r"(from) : "r"(to), "r"(stride) : "memory", "cc", "al");
}

static void check_walk(const struct walk *w, int which, char *memory, u64 stride)
{
	long double got, of, want = w->of[which] == ALL ? (long double)stride / LINE : 0;
	/* The debug kernel has the caches to itself for more of the time. */
	double off = scale() > 1 ? 0.1 : 0.02;
	/* A modified line may leave its cache for one of the kernel's: count both. */
	bool both = w->config == LINES_WRITTEN_BACK || w->config == L2_VICTIM_WITH_DATA;
	struct perf_event_attr attr = both ? attr_of(w->config) : user_attr(w->config);
	struct perf_event_attr all = user_attr(w->write ? DATA_WRITE : DATA_READ);
	int event = ev_open(attr, 0, -1, -1), accesses = ev_open(all, 0, -1, event);
	u64 size = sizes[which], passes = 1 + 250000 * stride / size;
	u64 before, before_of, i;

	ev_on(accesses);
	/* The model of the caches goes on while the event is there. */
	ev_on(event);
	go(w, memory, size, stride);
	go(w, memory, size, stride);
	before = ev_count(event);
	before_of = ev_count(accesses);
	for (i = 0; i < passes; i++)
		go(w, memory, size, stride);
	got = ev_count(event) - before;
	of = ev_count(accesses) - before_of;
	must(of >= passes * (size / stride), "%s, %llu by %llu: %.0Lf accesses", w->name, size,
	     stride, of);
	got /= of;
	must(got >= want * (1 - off) && got <= (want ? want * (1 + off) : off),
	     "%s, %llu by %llu: rate %.4Lf, not %.4Lf", w->name, size, stride, got, want);
	close(accesses);
	close(event);
}

TEST(miss_rates, "miss-rates", 120)
{
	char *memory = mmap(NULL, L2_MISS, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	size_t i, k;

	must(memory != MAP_FAILED, "no memory");
	td_need();
	pin(0);
	for (i = 0; i < ARRAY_SIZE(walks); i++) {
		for (k = 0; k < ARRAY_SIZE(sizes); k++) {
			if (walks[i].of[k] == UNTRIED)
				continue;
			check_walk(&walks[i], k, memory, 8);
			check_walk(&walks[i], k, memory, LINE);
		}
	}
}
