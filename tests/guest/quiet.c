// SPDX-License-Identifier: GPL-2.0-only
/* Events cost other CPUs and other tasks nothing. */
#include "lib.h"

#include <sys/prctl.h>
#include <sys/resource.h>

/*
 * Two equal events of a group start and stop at once, in the kernel as well: their
 * counts are equal.
 */
TEST(group_equal, "group-equal", 60)
{
	struct perf_event_attr attr = attr_of(INSTRUCTIONS);
	int last = cpus_online() - 1, wide, round, leader, member;
	u64 a, b;

	pin(last);
	for (wide = 0; wide < 2; wide++) {
		pid_t pid = wide ? -1 : 0;
		int cpu = wide ? last : -1;

		attr.disabled = 1;
		leader = ev_open(attr, pid, cpu, -1);
		attr.disabled = 0;
		member = ev_open(attr, pid, cpu, leader);
		for (round = 0; round < 100; round++) {
			ev_on(leader);
			spin(100 + round);
			if (round % 3 == 0)
				sched_yield();
			if (round % 7 == 0)
				usleep(1000);
			ev_off(leader);
			a = ev_count(leader);
			b = ev_count(member);
			must(a == b, "round %d%s: two equal events have %llu and %llu", round,
			     wide ? ", CPU-wide" : "", a, b);
		}
		must(a > 20000, "counted %llu", a);
		close(member);
		close(leader);
	}
}

static u64 ipis_of(int cpu)
{
	return interrupts_of("CAL:", cpu) + interrupts_of("RES:", cpu) +
	       interrupts_of("TLB:", cpu);
}

#define OPENS	1000
/* As many as the kernel sends for other reasons in that time */
#define AT_MOST	(OPENS / 20)

static const struct {
	const char *what;
	u64 period, config1;
	bool mapped;
} kinds[] = {
	{ .what = "counting" }, { .what = "sampling", .period = 100000 },
	{ .what = "SPFLT", .config1 = 1 }, { .what = "mapped", .mapped = true },
};

static size_t kind;

static void open_and_close(void)
{
	struct perf_event_attr attr = sampling_attr(INSTRUCTIONS, kinds[kind].period, 0);
	int i, fd;

	attr.config1 = kinds[kind].config1;
	for (i = 0; i < OPENS; i++) {
		void *page = NULL;

		fd = ev_open(attr, 0, -1, -1);
		if (kinds[kind].mapped)
			page = page_of(fd);
		ev_on(fd);
		if (page)
			munmap(page, getpagesize());
		close(fd);
	}
}

TEST(opens_quiet, "opens-quiet", 120)
{
	long before = sysctl_get("kernel/perf_event_paranoid");
	int cpu = cpus_online() - 1;
	u64 ipis, writes;

	td_need();
	must(cpu > 0, "needs two CPUs");
	pin(0);
	sysctl_set("kernel/perf_event_paranoid", 1);
	for (kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
		/* first perf core patches in its hooks, which stay for a second */
		as_nobody(open_and_close);
		ipis = ipis_of(cpu);
		writes = td_read(cpu, TD_WRMSRS);
		as_nobody(open_and_close);
		ipis = ipis_of(cpu) - ipis;
		writes = td_read(cpu, TD_WRMSRS) - writes;
		note("%d %s events cost CPU %d, which is idle, %llu IPIs and %llu register writes",
		     OPENS, kinds[kind].what, cpu, ipis, writes);
		must(ipis <= AT_MOST && !writes,
		     "%d opens of %s events cost an idle CPU %llu IPIs and %llu writes of PMU registers",
		     OPENS, kinds[kind].what, ipis, writes);
	}
	sysctl_set("kernel/perf_event_paranoid", before);
}

/*
 * One task has an SPFLT event that thousands of sleeping children have inherited. A
 * switch between two other tasks, on another CPU, must cost what it did before.
 */
#define CROWD		1500
#define MOST_TASKS	16000
#define TURNS		500
#define TRIES		12

static struct {
	int to[2], from[2];
	int fd;
} pair;

static void pair_start(int cpu)
{
	struct perf_event_attr attr = attr_of(INSTRUCTIONS);
	pid_t pid;
	char c;

	pin(cpu);
	must_pipe(pair.to);
	must_pipe(pair.from);
	in_child(pid)
		while (read(pair.to[0], &c, 1) == 1 && write(pair.from[1], &c, 1) == 1)
			;
	attr.exclude_user = 1;
	pair.fd = ev_open(attr, -1, cpu, -1);
}

/* The least of several tries: ticks add to some. */
static u64 cost_of_turns(void)
{
	u64 best = ~0ULL, before;
	int try, i;

	for (try = 0; try < TRIES; try++) {
		ev_on(pair.fd);
		before = ev_count(pair.fd);
		for (i = 0; i < TURNS; i++) {
			pipe_wake(pair.to);
			pipe_wait(pair.from);
		}
		before = ev_count(pair.fd) - before;
		ev_off(pair.fd);
		if (before < best)
			best = before;
	}
	return best / (2 * TURNS);
}

struct crowd {
	atomic_ullong asleep;
	int gone[2];		/* a pipe that all of them have open */
};

static void crowd(struct crowd *c, u64 n)
{
	struct perf_event_attr attr = spflt_attr(INSTRUCTIONS);
	pid_t pid;
	u64 i;

	pin(0);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	attr.inherit = 1;
	ev_start(attr, 0, -1);
	for (i = 0; i < n; i++) {
		in_child(pid) {
			/* when the test has failed */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			c->asleep++;
			for (;;)
				pause();
		}
	}
	for (;;)
		pause();
}

/* Repeated until the scheduler has settled. */
static u64 settled_cost_of_turns(void)
{
	u64 last = 0, cost = cost_of_turns();
	int i;

	for (i = 0; i < 10 && cost != last; i++) {
		last = cost;
		cost = cost_of_turns();
	}
	return cost;
}

TEST(spflt_crowd, "spflt-crowd", 900)
{
	u64 n = setting("TEST_CROWD", CROWD / scale()), alone, beside;
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	struct crowd *c = shared(sizeof(*c));
	int status;
	pid_t pid;
	char end;

	/* an event is open in both measurements: perf core has hooks, too */
	ev_open(attr_of(INSTRUCTIONS), 0, -1, -1);
	must(cpus_online() > 1, "needs two CPUs");
	setrlimit(RLIMIT_NPROC, &all);
	/* a small kernel has hardly more PIDs */
	if (sysctl_get("kernel/pid_max") < MOST_TASKS)
		sysctl_set("kernel/pid_max", MOST_TASKS);
	if (sysctl_get("kernel/threads-max") < MOST_TASKS)
		sysctl_set("kernel/threads-max", MOST_TASKS);
	pair_start(cpus_online() - 1);
	alone = settled_cost_of_turns();
	must_pipe(c->gone);
	in_child(pid)
		crowd(c, n);
	while (c->asleep < n) {
		must(waitpid(pid, &status, WNOHANG) != pid, "the crowd has exited");
		usleep(10000);
	}
	beside = cost_of_turns();
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* until all have exited */
	close(c->gone[1]);
	must(!read(c->gone[0], &end, 1), "the crowd does not exit");
	note("a switch costs %llu instructions, beside %llu tasks with SPFLT events %llu",
	     alone, n, beside);
	/* What KCSAN adds is not the same each time. */
	must(beside * 100 <= alone * (scale() > 1 ? 110 : 102),
	     "a stranger's switch costs %llu instructions, beside %llu sleeping tasks %llu",
	     alone, n, beside);
}
