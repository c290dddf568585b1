// SPDX-License-Identifier: GPL-2.0-only
/*
 * Miss rates of walks over memory, as arithmetic has them: lines of 64 bytes, 8
 * ways, the line that was used longest ago goes first. A walk in a circle finds
 * all of what fits, and nothing of what does not.
 */
#define _GNU_SOURCE
#include "lib.h"

#include <sys/mman.h>

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

static const struct walk {
	const char *name;
	u64 config;
	bool write;
	u64 size;
	bool misses;
} walks[] = {
	{ "L1 read misses, 16 KiB", DATA_READ_MISS, false, L1_HIT, false },
	{ "L1 read misses, 128 KiB", DATA_READ_MISS, false, L2_HIT, true },
	{ "L1 read misses, 4 MiB", DATA_READ_MISS, false, L2_MISS, true },
	{ "L1 misses, 16 KiB", DATA_MISS, false, L1_HIT, false },
	{ "L1 misses, 128 KiB", DATA_MISS, false, L2_HIT, true },
	{ "L2 read misses, 16 KiB", L2_READ_MISS, false, L1_HIT, false },
	{ "L2 read misses, 128 KiB", L2_READ_MISS, false, L2_HIT, false },
	{ "L2 read misses, 4 MiB", L2_READ_MISS, false, L2_MISS, true },
	{ "reads of memory, 128 KiB", L2_READ_MISS_MEM, false, L2_HIT, false },
	{ "reads of memory, 4 MiB", L2_READ_MISS_MEM, false, L2_MISS, true },
	{ "L1 write misses, 16 KiB", DATA_WRITE_MISS, true, L1_HIT, false },
	{ "L1 write misses, 128 KiB", DATA_WRITE_MISS, true, L2_HIT, true },
	{ "L1 lines written back, 16 KiB", LINES_WRITTEN_BACK, true, L1_HIT, false },
	{ "L1 lines written back, 128 KiB", LINES_WRITTEN_BACK, true, L2_HIT, true },
	{ "L2 write hits, 128 KiB", L2_WRITE_HIT, true, L2_HIT, true },
	{ "L2 write hits, 4 MiB", L2_WRITE_HIT, true, L2_MISS, false },
	{ "writes of memory, 4 MiB", L2_WRITE_MISS_MEM, true, L2_MISS, true },
	{ "L2 lines written back, 128 KiB", L2_VICTIM_WITH_DATA, true, L2_HIT, false },
	{ "L2 lines written back, 4 MiB", L2_VICTIM_WITH_DATA, true, L2_MISS, true },
};

/* One access for each step, and no other */
static void go(const struct walk *w, char *from, u64 stride)
{
	char *to = from + w->size;

	if (w->write)
		asm volatile("1: movb $1, (%0); add %2, %0; cmp %1, %0; jb 1b"
			     : "+r"(from) : "r"(to), "r"(stride) : "memory", "cc");
	else
		asm volatile("1: movb (%0), %%al; add %2, %0; cmp %1, %0; jb 1b"
			     : "+r"(from) : "r"(to), "r"(stride) : "memory", "cc", "al");
}

/*
 * A modified line may leave its cache for one of the kernel's as well: these are
 * counted for both.
 */
static struct perf_event_attr attr_of_walk(const struct walk *w)
{
	if (w->config == LINES_WRITTEN_BACK || w->config == L2_VICTIM_WITH_DATA)
		return attr_of(w->config);
	return user_attr(w->config);
}

static void check_walk(const struct walk *w, char *memory, u64 stride)
{
	struct perf_event_attr attr = attr_of_walk(w);
	struct perf_event_attr all = user_attr(w->write ? DATA_WRITE : DATA_READ);
	int event = ev_open(&attr, 0, -1, -1), accesses = ev_open(&all, 0, -1, event);
	u64 passes = 1 + 250000 * stride / w->size;
	double got, of, want = w->misses ? (double)stride / LINE : 0;
	/* The debug kernel has the caches to itself for more of the time. */
	double off = scale() > 1 ? 0.1 : 0.02;
	u64 before, before_of, i;

	ev_on(accesses);
	/* The model of the caches goes on while the event is there. */
	ev_on(event);
	go(w, memory, stride);
	go(w, memory, stride);
	before = ev_count(event);
	before_of = ev_count(accesses);
	for (i = 0; i < passes; i++)
		go(w, memory, stride);
	got = ev_count(event) - before;
	of = ev_count(accesses) - before_of;
	must(of >= passes * (w->size / stride), "%s by %llu: %.0f accesses", w->name, stride, of);
	got /= of;
	must(got >= want * (1 - off) && got <= (want ? want * (1 + off) : off),
	     "%s by %llu: rate %.4f, not %.4f", w->name, stride, got, want);
	note("%s by %llu: %.4f of %.4f", w->name, stride, got, want);
	close(accesses);
	close(event);
}

TEST(miss_rates, "miss-rates", 120)
{
	char *memory = mmap(NULL, L2_MISS, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	size_t i;

	must(memory != MAP_FAILED, "no memory");
	td_need();
	pin(0);
	for (i = 0; i < ARRAY_SIZE(walks); i++) {
		check_walk(&walks[i], memory, 8);
		check_walk(&walks[i], memory, LINE);
	}
}
