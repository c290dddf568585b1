// SPDX-License-Identifier: GPL-2.0-only
/* Whose SPFLT bit it is: PIDs that change or are used again, and opens that are under way */
#include "lib.h"

#include <pthread.h>

#include "../../include/knc_pmu_user.h"

#define LOOP		5000
#define CHILDREN	20
#define TURNS		3
#define ROUNDS		200
/* Fewer than the children: each PID is used several times. */
#define PIDS		400

static void must_be_near(u64 count, u64 want, u64 more, const char *what)
{
	must(count >= want && count <= want + more, "%s: %llu of %llu", what, count, want);
}

static void must_have_counted(int fd, u64 want, u64 more, const char *what)
{
	must_be_near(ev_count(fd), want, more, what);
	close(fd);
}

/*
 * Half of the children are in a region, and end there; all leave their CPU several times.
 * After some rounds it is the other half, with the PIDs that the first one had.
 */
static void count_children(int rounds)
{
	int fd = ev_start(spflt_attr(INSTRUCTIONS, .inherit = 1), 0, -1), round, turn, i;
	u64 want = (u64)rounds * (CHILDREN / 2) * TURNS * 2 * LOOP;
	pid_t pids[CHILDREN];

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < CHILDREN; i++) {
			in_child(pids[i]) {
				if ((i + round / 8) & 1)
					spflt_on();
				for (turn = 0; turn < TURNS; turn++) {
					spin(LOOP);
					sched_yield();
				}
			}
		}
		reap_all(pids, CHILDREN);
	}
	must_have_counted(fd, want, want / 100, "children that end in a region");
}

/* What --spin is told, in hexadecimal, and what a program executes as it starts */
#define SPINS		"1000000"
#define START		2000000

static bool thread_inside;

static void *thread_executes(void *unused)
{
	(void)unused;
	knc_spflt(thread_inside);
	execl("/proc/self/exe", "gt", "--spin", SPINS, NULL);
	fail("exec: %m");
}

/* A thread executes a program, and gets the PID of the leader, which has the other bit. */
static void count_exec(bool inside)
{
	int fd = ev_start(spflt_attr(INSTRUCTIONS, .inherit = 1), 0, -1);
	u64 want = inside ? 2 * strtoull(SPINS, NULL, 16) : 0;
	pthread_t thread;
	pid_t pid;

	thread_inside = inside;
	in_child(pid) {
		must(!pthread_create(&thread, NULL, thread_executes, NULL), "no thread");
		knc_spflt(!inside);
		pause();
	}
	reap(pid);
	must_have_counted(fd, want, START, "a program that a thread has executed");
}

TEST("spflt-reuse", 240)
{
	long most = sysctl_get("kernel/pid_max");

	spflt_need();
	sysctl_set("kernel/pid_max", PIDS);
	count_children(ROUNDS / scale());
	sysctl_set("kernel/pid_max", most);
	count_exec(false);
	count_exec(true);
}

/* A task joins a group of software events, which waits for RCU, as another opens one for it. */
#define TRIALS		100

struct meeting {
	volatile bool opens, joined;
};

static void open_twice(struct meeting *m)
{
	int leader, fd;
	u64 before;

	pin(cpus_online() - 1);
	leader = ev_open(software_attr(PERF_COUNT_SW_TASK_CLOCK), 0, -1, -1);
	m->opens = true;
	fd = ev_join(spflt_attr(INSTRUCTIONS), INSTRUCTIONS, leader);
	while (!m->joined)
		usleep(1000);
	ev_ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	spflt_on();
	spin(LOOP);
	must_be_near(ev_count(fd), 2 * LOOP, LOOP, "a region");

	/* Its own second event, and one that is refused */
	ev_start(spflt_attr(BRANCHES), 0, -1);
	ev_refused(spflt_attr(BRANCHES, .pinned = 1), 0, -1, leader, EINVAL, "a pinned sibling");
	before = ev_count(fd);
	spin(LOOP);
	must_be_near(ev_count(fd) - before, 2 * LOOP, LOOP, "after other opens a region");
}

static void meet(struct meeting *m, unsigned int us)
{
	pid_t pid;
	int fd;

	*m = (struct meeting){};
	in_child(pid)
		open_twice(m);
	while (!m->opens)
		;
	usleep(us);
	fd = ev_open(spflt_attr(INSTRUCTIONS), pid, -1, -1);
	m->joined = true;
	reap(pid);
	close(fd);
}

TEST("spflt-dup", 240)
{
	struct meeting *m = shared(sizeof(*m));
	int i;

	spflt_need();
	pin(0);
	for (i = 0; i < TRIALS; i++)
		meet(m, i % 10 * 300);
}
