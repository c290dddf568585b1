// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts and samples of events that are moved, throttled or inherited, and what other
 * tasks may see of them
 */
#include "lib.h"

/*
 * A CPU-wide event, which is throttled if it has a period, is on counter 0 when a task's event
 * for counter 0 only comes. The event of counter 1 has gone, and its count must stay.
 */
static void move(bool first, u64 period)
{
	struct perf_event_attr attr = attr_of(BRANCHES, .sample_period = period);
	int cpu = sched_getcpu(), fd, other, task, round;
	u64 before, count, slack = 20000 * scale();

	for (round = 0; round < 10; round++) {
		/* the order decides which event has counter 0 */
		if (!first)
			other = ev_start(attr_of(INSTRUCTIONS), -1, cpu);
		fd = ev_start(attr, -1, cpu);
		if (first)
			other = ev_start(attr_of(INSTRUCTIONS), -1, cpu);
		before = td_read(cpu, TD_BRANCH_USER) + td_read(cpu, TD_BRANCH_KERNEL);
		spin(20000);
		close(other);
		task = ev_self(L2_READ_MISS);
		ev_on(task);
		spin(20000);
		/* a tick ends the throttling */
		usleep(20000);
		spin(20000);
		count = ev_count(fd);
		before = td_read(cpu, TD_BRANCH_USER) + td_read(cpu, TD_BRANCH_KERNEL) - before;
		must(count <= before + slack && (period || count + slack > before),
		     "round %d: counted %lld branches of %llu", round, (long long)count, before);
		close(task);
		close(fd);
	}
}

TEST("move-throttled", 60)
{
	td_need();
	pin(cpus_online() - 1);
	sample_limit(1000);
	move(false, 1000);
	move(true, 1000);
	move(false, 0);
	move(true, 0);
}

/* The privilege for "any" is not checked again for children. */
TEST("any-inherit", 30)
{
	int go[2], fd;
	pid_t pid;

	must_pipe(go);
	in_child(pid) {
		become_nobody();
		pipe_wait(go);
		/* a counted task can fork */
		by_child()
			spin(1000000);
	}
	fd = ev_start(user_attr(INSTRUCTIONS | EVTSEL_ANY, .inherit = 1), pid, -1);
	pipe_wake(go);
	reap(pid);
	must(ev_count(fd) >= 2000000, "counted %llu of the child's 2000000", ev_count(fd));
}

/* Exits with 3 if a counter that this task has no event on is not 0. */
static void __attribute__((noreturn)) look(volatile struct perf_event_mmap_page *page)
{
	int turns = 100;

	while (turns--) {
		u32 i, seq;

		sched_yield();
		for (i = 0; i < 2; i++) {
			seq = page->lock;
			if (page->index == i + 1)
				continue;
			/* unless the task has got this counter meanwhile */
			if (plain_rdpmc(i) && page->lock == seq)
				_exit(3);
		}
	}
	_exit(0);
}

/* Counts beside the child, which waits for that. */
static void count_beside(pid_t pid, const int go[2])
{
	int fd[2] = { ev_self(INSTRUCTIONS), ev_self(BRANCHES) }, i, status;

	for (i = 0; i < 2; i++)
		ev_on(fd[i]);
	spin(12345);
	pipe_wake(go);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		spin(1000);
		sched_yield();
	}
	for (i = 0; i < 2; i++)
		close(fd[i]);
	must(!status, "a task that has a page reads what others left (status %#x)", status);
}

TEST("rdpmc-stale", 60)
{
	struct perf_event_mmap_page *page;
	int go[2], fd, round;
	pid_t pid;

	must_pipe(go);
	pin(cpus_online() - 1);
	page = page_of(ev_self(INSTRUCTIONS));
	must(page->cap_user_rdpmc, "no RDPMC for programs");
	for (round = 0; round < 5; round++) {
		in_child(pid) {
			fd = ev_self(INSTRUCTIONS);
			page = page_of(fd);
			ev_on(fd);
			pipe_wait(go);
			look(page);
		}
		count_beside(pid, go);
	}
}

/* Samples are in user mode, even if the interrupt comes or is replayed in the kernel. */
extern char __executable_start[], etext[];

TEST("sample-user-only", 300)
{
	u64 inside = 0, samples = 0, last = 0, period;
	struct record rec;
	struct ring r;
	int fd, late, i;

	td_need();
	pin(cpus_online() - 1);
	for (late = 0; late < 400; late += late / 8 + 1)
		for (period = 100; period < 120; period++) {
			fd = ring_self(&r, 8, period);
			td_inject(sched_getcpu(), TD_SKID, late);
			ev_on(fd);
			for (i = 0; i < 10; i++) {
				syscall(SYS_getppid);
				ev_count(fd);
				spin(10);
			}
			ev_off(fd);
			td_inject(sched_getcpu(), TD_NOTHING, 0);
			while (ring_sample(&r, &rec)) {
				samples++;
				if (rec.ip < (u64)__executable_start || rec.ip >= (u64)etext ||
				    rec.misc == PERF_RECORD_MISC_KERNEL) {
					inside++;
					last = rec.ip;
				}
			}
			ring_close(&r, fd);
		}
	must(samples > 100, "%llu samples", samples);
	must(!inside, "%llu of %llu user mode samples are outside the program, such as %#llx",
	     inside, samples, last);
}
