// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the driver costs: register accesses and instructions of the kernel for each
 * operation, as the emulator counts them. One line for each: "row NAME RDMSR WRMSR
 * RDPMC LVTPC INSTRUCTIONS".
 *
 * The emulator's time says nothing about a card. Timer interrupts add to some rounds, and
 * others are shorter because an interrupt has done part of the work: each figure is the
 * median of several rounds.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../guest/lib.h"

#define ROUNDS		31

static const enum td_item items[] = {
	TD_RDMSRS, TD_WRMSRS, TD_RDPMCS, TD_LVTPCS, TD_INSN_KERNEL,
};

#define NITEMS	ARRAY_SIZE(items)

/* long double, which programs for the card have as well: build-k1om */
struct cost {
	long double item[NITEMS];
};

struct row {
	unsigned int count;	/* operations in a round */
	int cpu, other;		/* the CPUs that take part, perhaps the same */
	void (*round)(unsigned int count);
};

/* The totals so far of the CPUs that take part */
static struct cost cost_now(const struct row *row)
{
	struct cost c;

	for (size_t i = 0; i < NITEMS; i++) {
		c.item[i] = td_read(row->cpu, items[i]);
		if (row->other != row->cpu)
			c.item[i] += td_read(row->other, items[i]);
	}
	return c;
}

static struct cost difference(struct cost after, struct cost before)
{
	for (size_t i = 0; i < NITEMS; i++)
		after.item[i] -= before.item[i];
	return after;
}

static int compare(const void *a, const void *b)
{
	long double x = *(const long double *)a, y = *(const long double *)b;

	return (x > y) - (x < y);
}

static struct cost measure(const struct row *row, unsigned int count)
{
	long double seen[NITEMS][ROUNDS];
	struct cost median;

	for (int r = 0; r < ROUNDS; r++) {
		struct cost before = cost_now(row), cost;

		row->round(count);
		cost = difference(cost_now(row), before);
		for (size_t i = 0; i < NITEMS; i++)
			seen[i][r] = cost.item[i];
	}
	for (size_t i = 0; i < NITEMS; i++) {
		qsort(seen[i], ROUNDS, sizeof(seen[i][0]), compare);
		median.item[i] = seen[i][ROUNDS / 2];
	}
	return median;
}

/* The cost of one operation: twice as many, less once, without begin and end */
static struct cost cost_of(const struct row *row)
{
	struct cost once = measure(row, row->count);
	struct cost twice = measure(row, 2 * row->count);

	for (size_t i = 0; i < NITEMS; i++)
		twice.item[i] = (twice.item[i] - once.item[i]) / row->count;
	return twice;
}

static void print(const char *name, struct cost cost)
{
	printf("row %s", name);
	for (size_t i = 0; i < NITEMS; i++)
		printf(" %.2Lf", cost.item[i]);
	printf("\n");
}

/* PMIs: each iteration of the loop is two instructions. */

#define PERIOD	5000
/* as of perf record -c */
#define SAMPLE_TYPE	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

static int fds[2];
static struct ring rings[2];

static void round_pmi(unsigned int count)
{
	spin((u64)count * PERIOD / 2);
	for (int i = 0; i < 2; i++)
		if (rings[i].page)
			rings[i].page->data_tail = rings[i].page->data_head;
}

static struct cost bench_pmi(int cpu, int events)
{
	struct perf_event_attr attr = sampling_attr(INSTRUCTIONS, PERIOD, SAMPLE_TYPE);
	struct row row = { 50, cpu, cpu, round_pmi };
	struct cost cost;

	pin(cpu);
	for (int i = 0; i < events; i++) {
		attr.disabled = !i;
		fds[i] = ring_open(&rings[i], 64, attr, 0, -1, i ? fds[0] : -1);
	}
	/* They start together and count the same, so they overflow together. */
	ev_on(fds[0]);
	cost = cost_of(&row);
	for (int i = events - 1; i >= 0; i--) {
		ring_close(&rings[i], fds[i]);
		rings[i].page = NULL;
	}
	return cost;
}

/* Of a counting event that is on */
static struct cost bench_event(unsigned int count, void (*round)(unsigned int count))
{
	struct row row = { count, 0, 0, round };
	struct cost cost;

	fds[0] = ev_self(INSTRUCTIONS);
	ev_on(fds[0]);
	cost = cost_of(&row);
	close(fds[0]);
	return cost;
}

/* The handler without a sample: a counting event wraps. */
static void round_wrap(unsigned int count)
{
	while (count--)
		td_burst(1ULL << 39);
}

/* Of two counting events, as a group, which are @on, after a round of @before operations */
static struct cost bench_pair(const struct row *row, bool on, unsigned int before)
{
	struct cost cost;

	fds[0] = ev_self(INSTRUCTIONS);
	fds[1] = ev_join(user_attr(BRANCHES), BRANCHES, fds[0]);
	if (on)
		ev_on(fds[0]);
	row->round(before);
	cost = cost_of(row);
	close(fds[1]);
	close(fds[0]);
	return cost;
}

/* Two task switches: a byte to a task without events, and back. */
static int there[2], back[2];

static void round_switch(unsigned int count)
{
	while (count--) {
		pipe_wake(there);
		pipe_wait(back);
	}
}

/*
 * A task that often uses the floating point unit has it restored at each switch, up to
 * 256 times. From then on it is used between rounds only.
 */
#define SWITCHES	300

static struct cost bench_switch(int cpu, bool on)
{
	struct row row = { 5, cpu, cpu, round_switch };
	struct cost cost;
	pid_t pid;
	char c;

	pin(cpu);
	must_pipe(there);
	must_pipe(back);
	in_child(pid) {
		close(there[1]);
		while (read(there[0], &c, 1) == 1)
			pipe_wake(back);
	}
	cost = bench_pair(&row, on, SWITCHES);
	close(there[1]);
	reap(pid);
	close(there[0]);
	close(back[0]);
	close(back[1]);
	return cost;
}

static void round_toggle(unsigned int count)
{
	while (count--) {
		ev_ioctl(fds[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
		ev_ioctl(fds[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	}
}

static void round_read(unsigned int count)
{
	while (count--)
		ev_count(fds[0]);
}

static void round_create(unsigned int count)
{
	while (count--) {
		int fd = ev_self(INSTRUCTIONS);

		ev_on(fd);
		close(fd);
	}
}

/*
 * The cost of work on two CPUs depends on what the other one is doing, and stays the
 * same once begun: take the least over several processes.
 */
static struct cost least_of_others(struct cost (*bench)(int other, bool on), bool on)
{
	struct cost least = bench(1, on);

	for (int cpu = 2; cpu < cpus_online(); cpu++) {
		struct cost cost = bench(cpu, on);

		if (cost.item[NITEMS - 1] < least.item[NITEMS - 1])
			least = cost;
	}
	return least;
}

static int other_cpu;

static void round_migrate(unsigned int count)
{
	while (count--) {
		pin(other_cpu);
		pin(0);
	}
}

static struct cost bench_migrate(int other, bool on)
{
	struct row row = { 3, 0, other, round_migrate };

	other_cpu = other;
	return bench_pair(&row, on, SWITCHES / 2);
}

/* A read, on CPU 0, of an event that is @on a CPU */
static struct cost bench_wide(int cpu, bool on)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	struct row row = { 2, 0, cpu, round_read };
	struct cost cost;

	attr.disabled = !on;
	fds[0] = ev_open(attr, -1, cpu, -1);
	cost = cost_of(&row);
	close(fds[0]);
	return cost;
}

static void begin(void)
{
	struct sched_param param = {};

	td_need();
	sample_limit(10000000);
	/* A task that is woken waits until the other one sleeps. */
	must(!syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &param), "SCHED_BATCH: %s",
	     strerror(errno));
	pin(0);
}

TEST("bench", 600)
{
	begin();
	print("pmi1", bench_pmi(0, 1));
	print("pmi2", bench_pmi(0, 2));
	print("wrap", bench_event(50, round_wrap));
	print("switch", bench_switch(0, true));
	print("switch-without", bench_switch(0, false));
	print("toggle", bench_pair(&(struct row){ 10, 0, 0, round_toggle }, true, 0));
	print("read", bench_event(100, round_read));
	print("create", cost_of(&(struct row){ 8, 0, 0, round_create }));
	print("migrate", least_of_others(bench_migrate, true));
	print("migrate-without", least_of_others(bench_migrate, false));
	print("wide", least_of_others(bench_wide, true));
	/* Last: from now on each switch moves the SPFLT bits of two tasks. */
	if (pmu_file("format/spflt")) {
		close(ev_open(spflt_attr(INSTRUCTIONS), 0, -1, -1));
		print("switch-spflt", bench_switch(0, true));
	}
}

/* Costs on many CPUs at once: for each figure the mean and the maximum. */
static struct sum {
	struct cost total, most;
	int n;
} sums[3];

static void add(struct sum *sum, struct cost cost)
{
	for (size_t i = 0; i < NITEMS; i++) {
		sum->total.item[i] += cost.item[i];
		if (cost.item[i] > sum->most.item[i])
			sum->most.item[i] = cost.item[i];
	}
	sum->n++;
}

static void print_sum(const char *name, struct sum *sum)
{
	char most[32];

	for (size_t i = 0; i < NITEMS; i++)
		sum->total.item[i] /= sum->n;
	print(name, sum->total);
	snprintf(most, sizeof(most), "%s-most", name);
	print(most, sum->most);
}

TEST("growth", 3600)
{
	int n = cpus_online();

	begin();
	for (int cpu = 0; cpu < n; cpu++) {
		add(&sums[0], bench_pmi(cpu, 1));
		add(&sums[1], bench_switch(cpu, true));
		pin(0);
		if (cpu)
			add(&sums[2], bench_wide(cpu, true));
	}
	print_sum("pmi1", &sums[0]);
	print_sum("switch", &sums[1]);
	print_sum("wide", &sums[2]);
}
