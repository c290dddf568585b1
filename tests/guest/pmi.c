// SPDX-License-Identifier: GPL-2.0-only
/* The interrupt: a great many of them */
#include "lib.h"

/* Addresses alone; the kernel writes on in a read-only buffer, whose head tells how many. */
#define SAMPLE_BYTES	(sizeof(struct perf_event_header) + sizeof(u64))

struct storm_cpu {
	u64 count[2], samples[2];
};

struct storm {
	u64 pmis;			/* for each CPU to bring about */
	struct storm_cpu cpu[256];
};

/* One event each on both counters for so long as they bring about the PMIs */
static void storm_pair(struct storm_cpu *s, u64 pmis, u64 p0, u64 p1)
{
	struct perf_event_mmap_page *page[2];
	struct perf_event_attr attr = sampling_attr(INSTRUCTIONS, p0, PERF_SAMPLE_IP);
	u64 period[2] = { p0, p1 }, insns;
	int fd[2], i;

	fd[0] = ev_open(attr, 0, -1, -1);
	attr.sample_period = p1;
	fd[1] = ev_join(attr, INSTRUCTIONS, fd[0]);
	for (i = 0; i < 2; i++) {
		page[i] = mmap(NULL, 2 * getpagesize(), PROT_READ, MAP_SHARED, fd[i], 0);
		must(page[i] != MAP_FAILED, "mapping a buffer: %m");
	}

	/* of one period they overflow together: one PMI for both */
	insns = p0 == p1 ? pmis * p0 : pmis * (p0 * p1) / (p0 + p1);
	must(!measured_spin20(fd[0], insns / 20 + 1), "enabling or disabling failed");
	for (i = 0; i < 2; i++) {
		u64 count = ev_count(fd[i]);
		u64 samples = page[i]->data_head / SAMPLE_BYTES;

		samples_near(samples, count / period[i], text_of("period %llu", period[i]));
		s->count[i] += count;
		s->samples[i] += samples;
		munmap(page[i], 2 * getpagesize());
	}
	close(fd[1]);
	close(fd[0]);
}

static void storm_on(void *arg, int cpu)
{
	struct storm *storm = arg;
	struct storm_cpu *s = &storm->cpu[cpu];
	/* different on each CPU, so that they do not march in step */
	u64 p = 1501 + 20 * cpu;
	int round;

	for (round = 0; round < 10; round++) {
		storm_pair(s, storm->pmis / 20, p, p);
		storm_pair(s, storm->pmis / 20 + 1, p, p + 166 + 14 * round);
	}
}

TEST("pmi-storm", 400)
{
	u64 pmis = setting("TEST_PMIS", 1000000) / scale();
	u64 counted[256], delivered, edges, lost, line, overflows, samples = 0, begin;
	struct storm *storm = shared(sizeof(*storm));
	int n = cpus_online(), cpu;

	td_need();
	begin = now_ns();
	/* some more than asked for: where both periods meet, one PMI serves two */
	storm->pmis = pmis / n + pmis / n / 100 + 20;
	for (cpu = 0; cpu < n; cpu++)
		counted[cpu] = td_counted(cpu);
	delivered = td_sum(TD_DELIVERED);
	edges = td_sum(TD_EDGES);
	lost = td_sum(TD_LOST_EDGES);
	overflows = td_sum(TD_OVERFLOWS0) + td_sum(TD_OVERFLOWS1);
	line = pmi_line();

	in_children(n, true, storm_on, storm);

	for (cpu = 0; cpu < n; cpu++) {
		struct storm_cpu *s = &storm->cpu[cpu];
		u64 truth = td_counted(cpu) - counted[cpu];

		must(s->count[0] + s->count[1] == truth,
		     "CPU %d: events counted %llu + %llu, the emulator %llu", cpu, s->count[0],
		     s->count[1], truth);
		samples += s->samples[0] + s->samples[1];
	}
	delivered = td_sum(TD_DELIVERED) - delivered;
	edges = td_sum(TD_EDGES) - edges;
	lost = td_sum(TD_LOST_EDGES) - lost;
	overflows = td_sum(TD_OVERFLOWS0) + td_sum(TD_OVERFLOWS1) - overflows;
	line = pmi_line() - line;
	note("%llu PMIs on %d CPUs for %llu overflows in %llu s", delivered,
	     n, overflows, (now_ns() - begin) / 1000000000);
	must(!lost, "%llu edges lost", lost);
	must(edges == delivered, "%llu edges, %llu delivered", edges, delivered);
	must(delivered >= pmis, "only %llu PMIs", delivered);
	must(line == delivered, "the PMI line of /proc/interrupts grew by %llu, not %llu",
	     line, delivered);
	must(samples == overflows, "%llu samples of %llu overflows", samples, overflows);
	must(overflows >= delivered + pmis / 4, "%llu overflows in %llu PMIs: too few at once",
	     overflows, delivered);
	must(overflows <= 2 * delivered - pmis / 4, "%llu overflows in %llu PMIs: too few single",
	     overflows, delivered);
}

/*
 * Of a whole boot: no edge is lost, and /proc/interrupts has each PMI delivered. On Linux 2.6.38
 * a read handles an overflow before its PMI comes, which may handle another one then.
 */
TEST("interrupts-balance", 30)
{
	u64 delivered, line;

	td_need();
	must(!td_sum(TD_LOST_EDGES), "%llu edges lost since the machine was switched on",
	     td_sum(TD_LOST_EDGES));
	line = pmi_line();
	delivered = td_sum(TD_DELIVERED);
	note("%llu PMIs", delivered);
	must(line == delivered || (cards_kernel() && line > delivered),
	     "the PMI line of /proc/interrupts has %llu of %llu PMIs", line, delivered);
}
