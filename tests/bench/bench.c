// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the driver costs: accesses to the PMU's registers and instructions of the
 * kernel for each thing that it does, as the emulator counts them. One line for
 * each: "row NAME RDMSR WRMSR RDPMC LVTPC INSTRUCTIONS", for one operation.
 *
 * Time says nothing here. Interrupts of the timer fall into a round or not, so
 * each figure is the least of several rounds.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../guest/lib.h"

#define ROUNDS		9
#define MAX_CPUS	256

static const enum td_item items[] = {
	TD_RDMSRS, TD_WRMSRS, TD_RDPMCS, TD_LVTPCS, TD_INSN_KERNEL,
};

#define NITEMS	ARRAY_SIZE(items)

struct cost {
	u64 item[NITEMS];
};

/* What has happened so far on the first @cpus CPUs */
static struct cost cost_now(int cpus)
{
	struct cost c = {};

	for (size_t i = 0; i < NITEMS; i++)
		for (int cpu = 0; cpu < cpus; cpu++)
			c.item[i] += td_read(cpu, items[i]);
	return c;
}

struct row {
	const char *name;
	unsigned int count;	/* operations in a round */
	int cpus;		/* that take part */
	unsigned int each;	/* things that one operation does */
	void (*round)(unsigned int count);
};

static struct cost measure(const struct row *row, unsigned int count)
{
	struct cost best;

	memset(&best, 0xff, sizeof(best));
	for (int r = 0; r < ROUNDS; r++) {
		struct cost before = cost_now(row->cpus), after;

		row->round(count);
		after = cost_now(row->cpus);
		for (size_t i = 0; i < NITEMS; i++) {
			u64 d = after.item[i] - before.item[i];

			if (d < best.item[i])
				best.item[i] = d;
		}
	}
	return best;
}

/* The cost of one: of twice as many less that of once, so no begin and end. */
static void report(const struct row *row)
{
	struct cost once = measure(row, row->count);
	struct cost twice = measure(row, 2 * row->count);

	printf("row %s", row->name);
	for (size_t i = 0; i < NITEMS; i++)
		printf(" %.2f", (double)(int64_t)(twice.item[i] - once.item[i]) / row->count /
		       row->each);
	printf("\n");
}

/* PMIs: each iteration of the loop is two instructions. */

#define PERIOD	20000
static int fds[MAX_CPUS];
static struct ring rings[2];

static int sampler(int group)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);

	attr.sample_period = PERIOD;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			   PERF_SAMPLE_PERIOD;
	attr.disabled = group < 0;
	return ev_open(&attr, 0, -1, group);
}

static void round_pmi(unsigned int count)
{
	struct tally t;

	spin((u64)count * PERIOD / 2);
	for (int i = 0; i < 2; i++)
		if (rings[i].page)
			ring_tally(&rings[i], &t, NULL, NULL);
}

static void bench_pmi(const char *name, int events)
{
	struct row row = { name, 100, 1, 1, round_pmi };

	for (int i = 0; i < events; i++) {
		fds[i] = sampler(i ? fds[0] : -1);
		ring_map(&rings[i], fds[i], 64, PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			 PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD);
	}
	/* They begin as one, count the same, and overflow as one. */
	ev_on(fds[0]);
	report(&row);
	for (int i = events - 1; i >= 0; i--) {
		ring_unmap(&rings[i]);
		rings[i].page = NULL;
		close(fds[i]);
	}
}

/* The handler without a sample: a counting event that wraps */
static unsigned int wrap_counter;

static void round_wrap(unsigned int count)
{
	while (count--)
		td_burst(wrap_counter, 1ULL << 39);
}

static void bench_wrap(void)
{
	struct row row = { "wrap", 100, 1, 1, round_wrap };

	fds[0] = ev_self(INSTRUCTIONS);
	ev_on(fds[0]);
	wrap_counter = counter_of(0, INSTRUCTIONS);
	report(&row);
	close(fds[0]);
}

/* Two counting events, as a group */
static void open_pair(bool on)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);

	fds[0] = ev_open(&attr, 0, -1, -1);
	attr = user_attr(BRANCHES);
	attr.disabled = 0;
	fds[1] = ev_open(&attr, 0, -1, fds[0]);
	if (on)
		ev_on(fds[0]);
}

static void close_pair(void)
{
	close(fds[1]);
	close(fds[0]);
}

/* A switch out and in: a token goes to a task without events and comes back. */
static int there[2], back[2];

static void round_switch(unsigned int count)
{
	char token = 0;

	while (count--) {
		must(write(there[1], &token, 1) == 1, "pipe");
		must(read(back[0], &token, 1) == 1, "pipe");
	}
}

static void bench_switch(const char *name, bool on)
{
	struct row row = { name, 200, 1, 1, round_switch };
	pid_t pid;

	must(!pipe(there) && !pipe(back), "pipe");
	pid = fork();
	must(pid >= 0, "fork");
	if (!pid) {
		char token;

		close(there[1]);
		while (read(there[0], &token, 1) == 1)
			must(write(back[1], &token, 1) == 1, "pipe");
		_exit(0);
	}
	open_pair(on);
	report(&row);
	close_pair();
	close(there[1]);
	reap(pid);
	close(there[0]);
	close(back[0]);
	close(back[1]);
}

static void round_toggle(unsigned int count)
{
	while (count--) {
		ev_ioctl(fds[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
		ev_ioctl(fds[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	}
}

static void bench_toggle(void)
{
	struct row row = { "toggle", 200, 1, 1, round_toggle };

	open_pair(true);
	report(&row);
	close_pair();
}

static void round_read(unsigned int count)
{
	while (count--)
		ev_count(fds[0]);
}

static void bench_read(void)
{
	struct row row = { "read", 200, 1, 1, round_read };

	fds[0] = ev_self(INSTRUCTIONS);
	ev_on(fds[0]);
	report(&row);
	close(fds[0]);
}

static void round_create(unsigned int count)
{
	while (count--) {
		int fd = ev_self(INSTRUCTIONS);

		ev_on(fd);
		close(fd);
	}
}

static void bench_create(void)
{
	struct row row = { "create", 50, 1, 1, round_create };

	report(&row);
}

static void round_migrate(unsigned int count)
{
	while (count--) {
		pin(1);
		pin(0);
	}
}

static void bench_migrate(const char *name, bool on)
{
	struct row row = { name, 50, 2, 1, round_migrate };

	open_pair(on);
	report(&row);
	close_pair();
}

/* A read of one event on each CPU, told for one CPU */
static int ncpus;

static void round_wide(unsigned int count)
{
	while (count--)
		for (int cpu = 0; cpu < ncpus; cpu++)
			ev_count(fds[cpu]);
}

static void bench_wide(void)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	struct row row = { "wide", 20, 0, 1, round_wide };

	ncpus = cpus_online();
	row.cpus = ncpus;
	row.each = ncpus;
	attr.disabled = 0;
	for (int cpu = 0; cpu < ncpus; cpu++)
		fds[cpu] = ev_open(&attr, -1, cpu, -1);
	report(&row);
	for (int cpu = 0; cpu < ncpus; cpu++)
		close(fds[cpu]);
}

TEST(bench, "bench", 600)
{
	td_need();
	pin(0);

	bench_pmi("pmi1", 1);
	bench_pmi("pmi2", 2);
	bench_wrap();
	bench_switch("switch", true);
	bench_switch("switch-without", false);
	bench_toggle();
	bench_read();
	bench_create();
	if (cpus_online() > 1) {
		bench_migrate("migrate", true);
		bench_migrate("migrate-without", false);
	}
	bench_wide();
}
