// SPDX-License-Identifier: GPL-2.0-only
/* Misuse of events: the kernel must survive, and count exactly afterwards. */
#include "lib.h"

#include <pthread.h>
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

static void wrong_buffers(void)
{
	static const int pages[] = { 4, 6, 7, 8, 12, 100, 1000 };
	size_t page = getpagesize(), i;
	void *p, *q;
	int fd;

	fd = ev_start(sampling_attr(INSTRUCTIONS, 10007, PERF_SAMPLE_IP), 0, -1);
	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		p = mmap(NULL, pages[i] * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		must(p == MAP_FAILED && errno == EINVAL,
		     "a buffer of %d pages was mapped, or: %m", pages[i]);
	}
	p = mmap(NULL, 9 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	must(p == MAP_FAILED && errno == EINVAL, "a private buffer was mapped, or: %m");
	p = mmap(NULL, 9 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 3 * page);
	must(p == MAP_FAILED, "a buffer at an offset was mapped");
	spin(100000);
	/* mapped, mapped again with another size, half unmapped, closed, used */
	p = mmap(NULL, 9 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(p != MAP_FAILED, "a buffer of 8 pages: %m");
	q = mmap(NULL, 5 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(q == MAP_FAILED && errno == EINVAL, "another size was mapped as well, or: %m");
	q = mmap(NULL, 9 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(q != MAP_FAILED, "the same buffer again: %m");
	/* a program may write to this page */
	memset(p, 0xff, page);
	spin(1000000);
	/* some kernels allow to unmap a part, some do not */
	must(!munmap((char *)p + 4 * page, 5 * page) || errno == EINVAL, "munmap: %m");
	close(fd);
	spin(1000000);
	munmap(p, 9 * page);
	spin(100000);
	munmap(q, 9 * page);
	spin(100000);
}

/* Leaders that are closed before their members, and invalid groups */
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
	/* other tasks, other CPUs, siblings, no event, no file */
	ev_refused(attr, -1, 0, b, EINVAL, "a group of a task and a CPU");
	a = ev_open(attr, -1, 0, -1);
	ev_refused(attr, -1, 1, a, EINVAL, "a group of two CPUs");
	ev_refused(attr, 0, -1, a, EINVAL, "a group of a CPU and a task");
	close(a);
	a = ev_open(attr, 0, -1, b);
	ev_refused(attr, 0, -1, a, EINVAL, "a group led by a sibling");
	close(a);
	fd = open("/dev/null", O_RDONLY);
	ev_refused(attr, 0, -1, fd, EBADF, "a group led by a file");
	close(fd);
	ev_refused(attr, 0, -1, 9999, EBADF, "a group led by nothing");
	ev_refused(attr, 999999, -1, -1, ESRCH, "an event of no task");
	ev_refused(attr, -1, -1, -1, EINVAL, "an event of nothing");
	ev_refused(attr, -1, 100000, -1, EINVAL, "an event of no CPU");
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

static void *grinder(void *arg)
{
	int i, fds[16];
	u64 seed = (u64)arg;

	memset(fds, -1, sizeof(fds));
	for (i = 0; i < 250; i++) {
		struct perf_event_attr attr = user_attr(seed & 1 ? INSTRUCTIONS : L2_READ_MISS);
		int at = seed >> 8 & 15;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		if (fds[at] >= 0)
			close(fds[at]);
		attr.disabled = 0;
		/*
		 * Linux 2.6.38 frees an event whose last file a child closes while its
		 * task forks another, which inherits it.
		 */
		attr.inherit = seed >> 20 & 1 && !cards_kernel();
		attr.sample_period = seed >> 21 & 1 ? 3001 : 0;
		fds[at] = sys_open(attr, 0, -1, -1, 0);
		if (i % 50 == 0) {
			pid_t pid = fork();

			if (!pid) {
				spin(5000);
				_exit(0);
			}
			if (pid > 0)
				waitpid(pid, NULL, 0);
		}
		spin(200);
	}
	for (i = 0; i < 16; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return NULL;
}

static void grind(void)
{
	pthread_t threads[6];
	u64 i;

	for (i = 0; i < ARRAY_SIZE(threads); i++)
		must(!pthread_create(&threads[i], NULL, grinder, (void *)(i * 77 + 1)),
		     "no thread: %m");
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
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
	wrong_buffers();
	must_be_sound("buffers of wrong sizes");
	odd_groups();
	must_be_sound("odd groups");
	grind();
	must_be_sound("threads opening and closing");
	kill_users();
	must_be_sound("users that were killed");
}
