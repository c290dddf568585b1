// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wrap of the 40 bit counters. No test can wait for 2^40 events: the emulator's
 * test device adds them to a counter at once.
 */
#include "lib.h"

#define BIT40 (1ULL << 40)

#define STEP	(1ULL << 37)

static void bursts(u64 events)
{
	for (; events > STEP; events -= STEP)
		td_burst(STEP);
	td_burst(events);
}

static u64 __attribute__((noinline, noclone)) count_bursts(u64 each, int times)
{
	int fd = ev_self(INSTRUCTIONS);

	ev_on(fd);
	while (times--)
		td_burst(each);
	return ev_end(fd);
}

TEST("wrap-count", 60)
{
	static const struct {
		u64 each;
		int times;
	} rows[] = {
		{ 1ULL << 37, 12 },
		{ 1ULL << 38, 9 },
		{ (1ULL << 38) + 987654321, 9 },
		{ (1ULL << 39) - 1, 5 },
		{ 1ULL << 39, 5 },
		{ 12345678901ULL, 300 },
	};
	size_t i;

	td_need();
	pin(0);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		/* the same instructions, first with bursts of nothing */
		u64 base = count_bursts(0, rows[i].times);
		u64 got = count_bursts(rows[i].each, rows[i].times) - base;
		u64 want = rows[i].each * rows[i].times;

		must(base && base < 100000, "the bursts themselves cost %llu", base);
		must(got == want, "%d times %llu events: counted %llu, not %llu", rows[i].times,
		     rows[i].each, got, want);
	}
}

/* Periods around 2^40: each has one sample, in time */
TEST("wrap-period", 120)
{
	static const u64 periods[] = {
		(1ULL << 31) - 1, 1ULL << 31, (1ULL << 32) + 1,
		(1ULL << 39) - 1, 1ULL << 39, (1ULL << 39) + 1,
		BIT40 - 1, BIT40, BIT40 + 1, BIT40 + 123456789, 3 * BIT40 + 7, 10 * BIT40,
	};
	const u64 slack = 200000;
	size_t i;

	td_need();
	pin(0);
	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		const u64 type = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD;
		struct tally t = {};
		struct ring r;
		u64 before;
		int fd, k;

		fd = ring_open(&r, 8, sampling_attr(INSTRUCTIONS, periods[i], type), 0, -1, -1);
		for (k = 1; k <= 3; k++) {
			/* up to a little before the sample */
			before = ev_count(fd);
			ev_on(fd);
			bursts(k * periods[i] - slack - before);
			ev_off(fd);
			ring_tally(&r, &t, spin_lo, spin_hi);
			must(t.samples == (u64)k - 1, "period %llu: %llu samples in %llu events",
			     periods[i], t.samples, ev_count(fd));
			ev_spin(fd, slack / 2);
			ring_tally(&r, &t, spin_lo, spin_hi);
			must(t.samples == (u64)k, "period %llu: %llu samples in %llu events",
			     periods[i], t.samples, ev_count(fd));
			must(!t.outside, "period %llu: sampled at %#llx, outside the loop",
			     periods[i], t.last_outside);
		}
		must(t.period_sum == 3 * periods[i], "three periods of %llu add up to %llu",
		     periods[i], t.period_sum);
		ring_close(&r, fd);
	}
}
