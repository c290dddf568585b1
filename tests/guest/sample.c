// SPDX-License-Identifier: GPL-2.0-only
/* Sampling: number, addresses and rate */
#include "lib.h"

#include <time.h>

#define TYPE (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD)

static void sample_loop(void *what, int cpu)
{
	struct perf_event_attr attr = sampling_attr(INSTRUCTIONS, 100000, TYPE);
	struct ring r;
	int fd, round;

	for (round = 0; round < 2; round++) {
		struct tally t = {};

		fd = ring_open(&r, 8, attr, 0, -1, -1);
		ev_spin(fd, 10000000);
		ring_tally(&r, &t, spin_lo, spin_hi);
		samples_near(t.samples, 200, what);
		samples_whole(&t, what);
		must(t.period_sum == t.samples * 100000, "%s: periods add up to %llu",
		     (char *)what, t.period_sum);
		must(ev_count(fd) - 20000000 <= 64, "%s: counted %llu", (char *)what, ev_count(fd));
		ring_close(&r, fd);
	}
	(void)cpu;
}

TEST("sample-one", 60)
{
	pin(0);
	sample_loop("1 thread", 0);
}

TEST("sample-all", 120)
{
	int n = cpus_online();

	if (n < 8)
		note("only %d hardware threads", n);
	in_children(n, true, sample_loop, "all threads");
}

/* Two events at once: each has its own overflows, and all of them. */
TEST("sample-two", 120)
{
	struct perf_event_attr a = sampling_attr(INSTRUCTIONS, 10007, TYPE);
	struct perf_event_attr b = sampling_attr(BRANCHES, 9973, TYPE, .disabled = 0);
	struct ring ra, rb;
	int fa, fb, same;

	/* of two events, then of one */
	for (same = 0; same < 2; same++) {
		struct tally ta = {}, tb = {};

		b.config = same ? INSTRUCTIONS : BRANCHES;
		fa = ring_open(&ra, 64, a, 0, -1, -1);
		fb = ring_open(&rb, 64, b, 0, -1, fa);
		ev_spin(fa, 10000000);
		ring_tally(&ra, &ta, spin_lo, spin_hi);
		ring_tally(&rb, &tb, spin_lo, spin_hi);
		samples_near(ta.samples, 20000000 / 10007, "period 10007");
		samples_near(tb.samples, (same ? 20000000 : 10000000) / 9973, "period 9973");
		samples_whole(&ta, "period 10007");
		samples_whole(&tb, "period 9973");
		ring_close(&rb, fb);
		ring_close(&ra, fa);
	}
}

/*
 * A sample has the period that has ended: perf core computes the next one from it. At a low
 * frequency the first periods differ by a factor of a thousand. At a high one the rate is what
 * was asked for.
 */
TEST("sample-freq", 120)
{
	static const u64 freqs[] = { 1, 10, 100, 500 };
	struct times times;
	struct ring r;
	size_t i;
	u64 rate;
	int fd;

	for (i = 0; i < ARRAY_SIZE(freqs); i++) {
		struct tally t = {};

		fd = ring_open(&r, 64, times_attr(INSTRUCTIONS, .freq = 1, .sample_freq = freqs[i],
						  .sample_type = TYPE), 0, -1, -1);
		ev_on(fd);
		spin_for_ms(1500);
		ev_off(fd);
		times = ev_times(fd);
		ring_tally(&r, &t, NULL, NULL);
		must(!t.lost, "%llu records lost", t.lost);
		must(t.samples > 3, "freq %llu: %llu samples", freqs[i], t.samples);
		must(t.period_sum <= times.value + 1000 * t.samples,
		     "freq %llu: periods of %llu in all, and counted %llu", freqs[i],
		     t.period_sum, times.value);
		ring_close(&r, fd);
		if (freqs[i] < 500)
			continue;
		rate = t.samples * 1000000000ULL / times.running;
		note("%llu samples in %llu ms: %llu a second", t.samples,
		     times.running / 1000000, rate);
		/* the first few come with a period of 1 */
		must(rate >= 500 && rate <= 500 * 21 / 20, "%llu samples a second, asked for 500",
		     rate);
		must(t.period_sum <= times.value * 21 / 20 &&
		     t.period_sum >= times.value * 19 / 20,
		     "periods add up to %llu, counted %llu", t.period_sum, times.value);
	}
}

/* More interrupts than allowed: the buffer says so, and the event goes on at the next tick. */
TEST("sample-throttle", 120)
{
	u64 base, count;
	struct tally t = {};
	struct ring r;
	int fd;

	sample_limit(2000);
	base = spin_cost();
	fd = ring_open(&r, 256, sampling_attr(INSTRUCTIONS, 1000, TYPE), 0, -1, -1);
	ev_spin(fd, 20000000);
	count = ev_count(fd);
	ring_tally(&r, &t, spin_lo, spin_hi);
	note("%llu samples, throttled %llu times", t.samples, t.throttles);
	must(!t.lost, "%llu records lost", t.lost);
	must(t.throttles >= 3 && t.unthrottles >= 2, "throttled %llu times, let go %llu times",
	     t.throttles, t.unthrottles);
	must(count <= base + 40000000, "counted %llu of 40000000", count);
	must(t.samples >= t.throttles && t.samples * 1000 <= count, "%llu samples of 1000 in %llu",
	     t.samples, count);
	must(count < t.samples * 1000 + 2000ULL * (t.throttles + 1),
	     "%llu samples of 1000, but counted %llu", t.samples, count);

	/* without the limit the count is exact again */
	sample_limit(NO_SAMPLE_LIMIT);
	ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	ev_period(fd, 1000003);
	memset(&t, 0, sizeof(t));
	ev_spin(fd, 20000000);
	ring_tally(&r, &t, spin_lo, spin_hi);
	must(ev_count(fd) == base + 40000000, "after throttling it counts %llu of %llu",
	     ev_count(fd), base + 40000000);
	samples_near(t.samples, 39, "after throttling");
	samples_whole(&t, "after throttling");
}

static void throttle_group(void)
{
	struct perf_event_attr attr = sampling_attr(INSTRUCTIONS, 1000, TYPE);
	struct tally ta = {}, tb = {};
	struct ring ra, rb;
	int fa, fb;

	fa = ring_open(&ra, 256, attr, 0, -1, -1);
	attr.disabled = 0;
	fb = ring_open(&rb, 256, attr, 0, -1, fa);
	ev_spin(fa, 20000000);
	ring_tally(&ra, &ta, spin_lo, spin_hi);
	ring_tally(&rb, &tb, spin_lo, spin_hi);
	note("%llu and %llu samples, throttled %llu times", ta.samples, tb.samples, ta.throttles);
	must(ta.throttles >= 3, "throttled %llu times only", ta.throttles);
	must(ta.samples <= 2 * tb.samples && tb.samples <= 2 * ta.samples,
	     "%llu samples of one event, %llu of the other", ta.samples, tb.samples);
	ring_close(&rb, fb);
	ring_close(&ra, fa);
}

/*
 * Newer kernels throttle a whole group, and with it perhaps an event that has overflowed and is
 * not reported yet. That event must go on, too, be it the leader or not.
 */
TEST("sample-throttle-group", 120)
{
	static const u64 lasts[] = { BRANCHES, INSTRUCTIONS };
	size_t i;

	if (!kernel_before(6, 9) && kernel_before(6, 16))
		skip("this kernel lets go of a throttled group's leader only");
	pin(0);
	sample_limit(2000);
	for (i = 0; i < ARRAY_SIZE(lasts); i++) {
		int fd[2];

		/* An event gets its last counter again: the leader is on one, then the other. */
		fd[0] = ev_self(CYCLES);
		fd[1] = ev_join(user_attr(CYCLES), lasts[i], fd[0]);
		ev_spin(fd[0], 1000);
		close(fd[1]);
		close(fd[0]);
		throttle_group();
	}
}

/*
 * Periods shorter than the interrupt, on both counters: without the throttle there would be
 * interrupts only. perf core allows an event a tick's part of the rate, rounded up, and the
 * sample that it throttles with, anew with each tick and each time that the event is let go.
 */
#define STORM_RATE	5000
#define STORM_CPUS	8

TEST("sample-tiny-all", 240)
{
	static const u64 configs[] = { INSTRUCTIONS, BRANCHES }, periods[] = { 1, 2, 3, 10, 100 };
	struct { struct ring r; int fd; } per[2 * STORM_CPUS];
	u64 lost = td_present() ? td_sum(TD_LOST_EDGES) : 0, begin = now_ns(), ticks, each;
	int n = cpus_online(), cpu, i;
	struct timespec tick;

	if (n > STORM_CPUS)
		n = STORM_CPUS;
	sample_limit(STORM_RATE);
	for (i = 0; i < 2 * n; i++) {
		/* in both modes, except on some CPUs, where it is in the kernel alone */
		struct perf_event_attr attr = attr_of(configs[i % 2], .sample_type = PERF_SAMPLE_IP,
						      .sample_period = periods[i / 2 % 5],
						      .exclude_user = i / 2 % 4 == 3);

		per[i].fd = ring_open(&per[i].r, 64, attr, -1, i / 2, -1);
		ev_on(per[i].fd);
	}
	for (cpu = 0; cpu < n; cpu++) {
		pin(cpu);
		spin(200000);
		usleep(20000);
	}
	for (i = 0; i < 2 * n; i++)
		ev_off(per[i].fd);
	must(!clock_getres(CLOCK_MONOTONIC_COARSE, &tick), "clock_getres: %m");
	ticks = (now_ns() - begin) / tick.tv_nsec + 1;
	each = (STORM_RATE * tick.tv_nsec + 999999999) / 1000000000 + 1;
	for (i = 0; i < 2 * n; i++) {
		struct tally t = {};

		ring_tally(&per[i].r, &t, NULL, NULL);
		must(!t.lost, "CPU %d: %llu records lost", i / 2, t.lost);
		must(t.throttles && t.samples <= each * (ticks + t.unthrottles + 1),
		     "CPU %d, %#llx: %llu samples in %llu ticks, throttled %llu times", i / 2,
		     configs[i % 2], t.samples, ticks, t.throttles);
		ring_close(&per[i].r, per[i].fd);
	}
	note("%llu ticks, in each at most %llu samples of an event", ticks, each);
	must_be_sound("a storm");
	must(!td_present() || td_sum(TD_LOST_EDGES) == lost, "edges were lost");
}
