// SPDX-License-Identifier: GPL-2.0-only
/* Misuse of events: the kernel must survive, and count exactly afterwards. */
#include "lib.h"

#include <sys/resource.h>

void many_files(void)
{
	struct rlimit rl = { 65536, 65536 };

	must(!setrlimit(RLIMIT_NOFILE, &rl), "setting RLIMIT_NOFILE: %m");
}

static void thousands(void)
{
	int n = 2000 / scale(), i, *fds = calloc(n, sizeof(*fds));
	u64 configs[] = { INSTRUCTIONS, L2_READ_MISS, BRANCHES, L2_WRITE_HIT };

	many_files();
	for (i = 0; i < n; i++) {
		struct perf_event_attr attr = user_attr(configs[i % 4]);

		attr.disabled = 0;
		if (i % 3 == 0) {
			attr.sample_period = 5003 + i;
			attr.sample_type = PERF_SAMPLE_IP;
		}
		fds[i] = ev_open(attr, 0, -1, -1);
		if (i % 64 == 0)
			spin(1000);
	}
	spin20(500000);
	usleep(50000);
	spin20(500000);
	for (i = 0; i < n; i += 7) {
		close(fds[i]);
		fds[i] = -1;
	}
	spin20(100000);
	for (i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(fds);
}

/* Overflow signals whose handler closes the event, or opens others */
static int victim = -1;
static volatile sig_atomic_t closed;

static void close_it(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	if (victim >= 0) {
		close(victim);
		victim = -1;
		closed++;
	}
}

static void close_in_handler(void)
{
	struct sigaction action = { .sa_sigaction = close_it, .sa_flags = SA_SIGINFO };
	struct f_owner_ex owner = { F_OWNER_TID, syscall(SYS_gettid) };
	int i;

	must(!sigaction(SIGIO, &action, NULL), "sigaction: %m");
	closed = 0;
	for (i = 0; i < 200; i++) {
		struct perf_event_attr attr = user_attr(INSTRUCTIONS);
		/* Linux 2.6.38 sends no signal for an event without a buffer. */
		bool buffer = cards_kernel();
		struct ring r;
		int fd;

		attr.sample_period = 20000 + i;
		attr.wakeup_events = 1;
		fd = ev_open(attr, 0, -1, -1);
		must(!fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) && !fcntl(fd, F_SETSIG, SIGIO) &&
		     !fcntl(fd, F_SETOWN_EX, &owner), "asking for signals: %m");
		if (buffer)
			ring_map(&r, fd, 1, 0);
		victim = fd;
		ev_on(fd);
		spin(100000);
		must(victim < 0, "no signal after an overflow");
		if (buffer)
			ring_unmap(&r);
	}
	must(closed == 200, "%d of 200 events were closed by their handlers", (int)closed);
	signal(SIGIO, SIG_IGN);
}

/* Leaders that are closed before their members, and tasks that end before their events */
static void odd_groups(void)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	u64 last;
	int a, b, fd;
	pid_t pid;

	a = ev_open(attr, 0, -1, -1);
	b = ev_join(attr, BRANCHES, a);
	ev_on(a);
	spin(1000);
	close(a);
	/* alone now, and still counting */
	last = ev_count(b);
	spin(1000);
	/* Linux 2.6.38 stops it, with any PMU. */
	must(cards_kernel() || ev_count(b) >= last + 1000,
	     "a sibling stops as its leader goes");
	close(b);

	/* an event outlives its task */
	in_child(pid) {
		usleep(20000);
		spin(100000);
	}
	fd = ev_start(attr, pid, -1);
	reap(pid);
	last = ev_count(fd);
	must(last >= 200000, "a task that ended counted %llu, not 200000", last);
	ev_on(fd);
	must(ev_count(fd) == last, "an event of a task that ended counts on");
	ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	must(!ev_count(fd), "an event of a task that ended is not reset");
	close(fd);
}

static void kill_users(void)
{
	int i, k, fd;

	for (i = 0; i < 12; i++) {
		pid_t pid = must_fork();

		if (!pid) {
			for (k = 0; ; k++) {
				struct perf_event_attr attr = user_attr(INSTRUCTIONS);

				attr.disabled = 0;
				attr.inherit = k & 1;
				attr.sample_period = 2003;
				fd = sys_open(attr, 0, k & 2 ? 0 : -1, -1, 0);
				if (fd < 0 && errno == EMFILE)
					for (;;)
						spin(100);
				spin(100);
				if (k == 50 && !fork())
					for (;;)
						spin(100);
			}
		}
		setpgid(pid, pid);
		usleep(3000 + 1500 * (i % 5));
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

TEST(hostile, "hostile", 240)
{
	sample_limit(100000);
	must_be_sound("nothing");
	thousands();
	must_be_sound("thousands of events");
	close_in_handler();
	must_be_sound("closing events in signal handlers");
	odd_groups();
	must_be_sound("odd groups");
	kill_users();
	must_be_sound("users that were killed");
}
