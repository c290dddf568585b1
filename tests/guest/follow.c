// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which tasks the driver follows, and from when on: events that are enabled late or wait
 * for a counter, exec, and opens that are refused
 */
#include "lib.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "../../include/knc_pmu_user.h"

#define LOOP		100000
/* What a program executes around the loop while its event counts */
#define AROUND		2000

/* How the loop is counted */
#define INSIDE		1	/* in a region, else outside */
#define SELF		2	/* by an event that its task opens, else by root's */
#define WAITS		4	/* the event waits for a counter, else it is enabled late */
#define HOWS		8
#define EXECS		8	/* after exec, which has kept the task's event */

/* Where that event is in the new program */
#define KEPT_FD		3

/* Tells the test a number, and waits for its answer: standard input is a socket. */
static void ask(u64 number)
{
	must(write(STDIN_FILENO, &number, 8) == 8 && read(STDIN_FILENO, &number, 8) == 8,
	     "the test does not answer: %m");
}

/* What the kept event counts of the loop, by the bit that was set before exec */
static u64 count_of_kept(void)
{
	u64 count = -ev_count(KEPT_FD);

	spin(LOOP);
	count += ev_count(KEPT_FD);
	close(KEPT_FD);
	return count;
}

void count_region(unsigned int how)
{
	struct perf_event_attr attr = spflt_attr(INSTRUCTIONS), other = user_attr(BRANCHES);
	int pinned[2] = { -1, -1 }, fd = -1;

	/* Meanwhile the program leaves its CPU, with the bit that it had before exec. */
	ask(how & EXECS ? count_of_kept() : 0);
	spflt_off();
	attr.disabled = !(how & WAITS);
	other.pinned = 1;
	if (how & WAITS) {
		pinned[0] = ev_start(other, 0, -1);
		pinned[1] = ev_start(other, 0, -1);
	}
	ask(0);
	if (how & SELF)
		fd = ev_open(attr, 0, -1, -1);
	if (how & INSIDE)
		spflt_on();
	if (how & WAITS) {
		close(pinned[0]);
		close(pinned[1]);
	}
	/* An event that has waited is on a counter after the next switch. */
	ask(0);
	if (how & SELF)
		ev_on(fd);
	spin(LOOP);
	if (how & SELF)
		ev_off(fd);
	ask(how & SELF ? ev_count(fd) : 0);
}

/* The test, on the same hardware thread, sets the bit to what the program must not have. */
static void answer(int sock, unsigned int how)
{
	u64 number = 0;

	knc_spflt(!(how & INSIDE));
	must(write(sock, &number, 8) == 8, "answering: %m");
}

static u64 asked(int sock)
{
	u64 number;

	must(read(sock, &number, 8) == 8, "the program says nothing");
	return number;
}

static void exec_with_bit(mode_t mode, bool bit, unsigned int how)
{
	must(!chmod("/proc/self/exe", mode), "chmod: %m");
	become_nobody();
	must(dup2(ev_start(spflt_attr(INSTRUCTIONS), 0, -1), KEPT_FD) == KEPT_FD, "dup2: %m");
	knc_spflt(bit);
	execl("/proc/self/exe", "gt", "--region", text_of("%u", how | EXECS), NULL);
	fail("exec: %m");
}

/* In a new task, or after exec of a file with this @mode in a task that is followed */
static void check_region(mode_t mode, bool bit, unsigned int how)
{
	struct perf_event_attr attr = spflt_attr(INSTRUCTIONS);
	u64 want = mode == 0755 && bit ? 2 * LOOP : 0, count;
	int ends[2], fd = -1;
	pid_t pid;

	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socketpair: %m");
	in_child(pid) {
		dup2(ends[1], STDIN_FILENO);
		if (mode)
			exec_with_bit(mode, bit, how);
		knc_spflt(bit);
		count_region(how);
	}
	close(ends[1]);
	count = asked(ends[0]);
	must(count >= want && count <= (want ? want + AROUND : 0),
	     "mode %o, bit %d: after exec the event counts %llu, not %llu", mode, bit, count,
	     want);
	must(!chmod("/proc/self/exe", 0755), "chmod: %m");
	answer(ends[0], how);
	asked(ends[0]);
	attr.disabled = !(how & WAITS);
	if (!(how & SELF))
		fd = ev_open(attr, pid, -1, -1);
	answer(ends[0], how);
	asked(ends[0]);
	if (!(how & SELF))
		ev_on(fd);
	answer(ends[0], how);
	count = asked(ends[0]);
	if (!(how & SELF))
		count = ev_count(fd);
	answer(ends[0], how);
	reap(pid);
	want = how & INSIDE ? 2 * LOOP : 0;
	must(count >= want && count <= (want ? want + AROUND : 0),
	     "mode %o, bit %d before: %s's event, %s, counts %llu %s a region", mode, bit,
	     how & SELF ? "the task" : "root", how & WAITS ? "which waits" : "enabled late",
	     count, how & INSIDE ? "in" : "outside");
	close(fd);
	close(ends[0]);
}

static void check_regions(mode_t mode)
{
	unsigned int how;

	spflt_need();
	pin(cpus_online() - 1);
	for (how = 0; how < HOWS; how++) {
		check_region(mode, false, how);
		check_region(mode, true, how);
	}
}

TEST(spflt_late, "spflt-late", 60)
{
	check_regions(0);
}

TEST(spflt_exec, "spflt-exec", 60)
{
	check_regions(0755);
}

/* perf core closes the events of a program that executes a file which it may not read. */
TEST(spflt_exec_unreadable, "spflt-exec-unreadable", 60)
{
	check_regions(0711);
}

/* An open that is refused changes nothing, for any user and any reason. */
static int wide;
static pid_t victim;

static void must_go_on(const char *after)
{
	u64 before = ev_count(wide);

	usleep(10000);
	must(ev_count(wide) > before, "%s: the region does not count any more", after);
}

static void open_for_victim(void)
{
	ev_refused(spflt_attr(INSTRUCTIONS), victim, -1, -1, EACCES, "root's task");
}

static void check_refused(bool setuid)
{
	in_child(victim) {
		if (setuid)
			must(!setresuid(65534, 0, 0), "setresuid: %m");
		prctl(PR_SET_DUMPABLE, 0);
		knc_spflt(1);
		for (;;)
			spin(1000);
	}
	pin(0);
	usleep(10000);
	must_go_on("at first");
	as_nobody(open_for_victim);
	must_go_on(setuid ? "nobody, of a setuid program" : "nobody, of root's task");
	ev_refused(spflt_attr(INSTRUCTIONS), victim, -1, wide, EINVAL, "a task in a CPU's group");
	must_go_on("root, with a group that is wrong");
	end_child(victim);
	pin(1);
}

TEST(spflt_refused, "spflt-refused", 60)
{
	u64 before;

	spflt_need();
	pin(1);
	wide = ev_start(spflt_attr(INSTRUCTIONS), -1, 1);
	check_refused(true);
	check_refused(false);
	spflt_on();
	ev_refused(spflt_attr(INSTRUCTIONS), 0, -1, wide, EINVAL, "a task in a CPU's group");
	before = ev_count(wide);
	spin(LOOP);
	must(ev_count(wide) - before >= 2 * LOOP, "a task that is refused: %llu of %d",
	     ev_count(wide) - before, 2 * LOOP);
}

/* A task opens its own event after another's for it, and stays on its CPU all the time. */
TEST(spflt_second, "spflt-second", 60)
{
	volatile int *turn = shared(sizeof(*turn));
	pid_t pid;
	int own;

	spflt_need();
	pin(0);
	in_child(pid) {
		pin(1);
		for (*turn = 1; *turn == 1;)
			spin(100);
		own = ev_open(spflt_attr(INSTRUCTIONS), 0, -1, -1);
		spflt_on();
		ev_on(own);
		spin(LOOP);
		must(ev_count(own) >= 2 * LOOP, "%llu of %d", ev_count(own), 2 * LOOP);
	}
	while (!*turn)
		usleep(1000);
	/* The first event of a task comes to its CPU at once; the next one only when enabled. */
	ev_open(user_attr(BRANCHES), pid, -1, -1);
	ev_open(spflt_attr(INSTRUCTIONS), pid, -1, -1);
	*turn = 2;
	reap(pid);
}

/* Root of a user namespace counts the tasks of other users there. */
static void be(uid_t uid)
{
	must(!setresgid(uid, uid, uid) && !setresuid(uid, uid, uid), "uid %d: %m", uid);
	prctl(PR_SET_DUMPABLE, 1);
}

static void count_as_container_root(void)
{
	int there[2], go[2], fd;
	pid_t pid;

	must_pipe(there);
	must_pipe(go);
	be(0);
	in_child(pid) {
		be(5);
		pipe_wake(there);
		pipe_wait(go);
		spin(LOOP);
		spflt_on();
		spin(LOOP);
		spflt_off();
	}
	pipe_wait(there);
	close(ev_open(user_attr(INSTRUCTIONS), pid, -1, -1));
	fd = ev_start(spflt_attr(INSTRUCTIONS), pid, -1);
	pipe_wake(go);
	reap(pid);
	must(ev_count(fd) >= 2 * LOOP && ev_count(fd) < 2 * LOOP + AROUND,
	     "a region of %d counts %llu", 2 * LOOP, ev_count(fd));
}

TEST(spflt_userns, "spflt-userns", 60)
{
	static const char map[] = "0 65534 1\n5 5 1\n";
	int made[2], mapped[2];
	pid_t pid;

	spflt_need();
	must_pipe(made);
	must_pipe(mapped);
	/* Debian's kernels may forbid it to nobody. */
	file_write("/proc/sys/kernel/unprivileged_userns_clone", "1");
	in_child(pid) {
		become_nobody();
		must(!unshare(CLONE_NEWUSER), "a user namespace: %m");
		pipe_wake(made);
		pipe_wait(mapped);
		count_as_container_root();
	}
	pipe_wait(made);
	must_write(text_of("/proc/%d/uid_map", pid), map);
	must_write(text_of("/proc/%d/gid_map", pid), map);
	pipe_wake(mapped);
	reap(pid);
}
