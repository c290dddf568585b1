// SPDX-License-Identifier: GPL-2.0-only
/* What nobody should do, and many will: the machine must take no notice. */
#define _GNU_SOURCE
#include "lib.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* However it was treated before, the PMU still counts to the instruction. */
static void must_be_sound(const char *after)
{
	static u64 begin;
	u64 now = now_ns();
	int cpu, n = cpus_online();

	for (cpu = 0; cpu < n; cpu++) {
		int fd = ev_self(INSTRUCTIONS);
		u64 base;

		pin(cpu);
		must(!measured_spin(fd, 0, 0), "enabling or disabling failed");
		base = ev_count(fd);
		must(!measured_spin(fd, 50000, 0), "enabling or disabling failed");
		must(ev_count(fd) == 2 * base + 100000, "after %s CPU %d counted %llu, not %llu",
		     after, cpu, (unsigned long long)ev_count(fd),
		     (unsigned long long)2 * base + 100000);
		close(fd);
	}
	if (begin)
		note("%s: %llu ms", after, (unsigned long long)(now - begin) / 1000000);
	begin = now_ns();
}

static void many_files(void)
{
	struct rlimit rl = { 65536, 65536 };

	must(!setrlimit(RLIMIT_NOFILE, &rl), "setting RLIMIT_NOFILE: %s", strerror(errno));
}

/* Thousands of events of one task, all of them enabled */
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
		fds[i] = ev_open(&attr, 0, -1, -1);
		if (i % 64 == 0)
			spin(1000);
	}
	spin20(500000);
	usleep(50000);
	spin20(500000);
	/* some at random, then all */
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

/* Overflow signals whose handler closes the very event, or opens others */
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

	must(!sigaction(SIGIO, &action, NULL), "sigaction: %s", strerror(errno));
	closed = 0;
	for (i = 0; i < 200; i++) {
		struct perf_event_attr attr = user_attr(INSTRUCTIONS);
		int fd;

		attr.sample_period = 20000 + i;
		attr.wakeup_events = 1;
		fd = ev_open(&attr, 0, -1, -1);
		must(!fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) && !fcntl(fd, F_SETSIG, SIGIO) &&
		     !fcntl(fd, F_SETOWN_EX, &owner), "asking for signals: %s", strerror(errno));
		victim = fd;
		ev_on(fd);
		spin(100000);
		must(victim < 0, "no signal after an overflow");
	}
	must(closed == 200, "%d of 200 events were closed by their handlers", (int)closed);
	signal(SIGIO, SIG_IGN);
}

/* Buffers of all the sizes that are none */
static void wrong_buffers(void)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	static const int pages[] = { 4, 6, 7, 8, 12, 100, 1000 };
	size_t page = getpagesize(), i;
	void *p, *q;
	int fd;

	attr.sample_period = 10007;
	attr.sample_type = PERF_SAMPLE_IP;
	fd = ev_open(&attr, 0, -1, -1);
	ev_on(fd);
	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		p = mmap(NULL, pages[i] * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		must(p == MAP_FAILED && errno == EINVAL, "a buffer of %d pages: %s", pages[i],
		     p == MAP_FAILED ? strerrorname_np(errno) : "mapped");
	}
	p = mmap(NULL, 9 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	must(p == MAP_FAILED && errno == EINVAL, "a private buffer: %s",
	     p == MAP_FAILED ? strerrorname_np(errno) : "mapped");
	p = mmap(NULL, 9 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 3 * page);
	must(p == MAP_FAILED, "a buffer at an offset was mapped");
	spin(100000);
	/* mapped, mapped again with another size, half unmapped, closed, used */
	p = mmap(NULL, 9 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(p != MAP_FAILED, "a buffer of 8 pages: %s", strerror(errno));
	q = mmap(NULL, 5 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(q == MAP_FAILED && errno == EINVAL, "a second buffer of another size: %s",
	     q == MAP_FAILED ? strerrorname_np(errno) : "mapped");
	q = mmap(NULL, 9 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(q != MAP_FAILED, "the same buffer again: %s", strerror(errno));
	/* what a program writes there is its own affair (no other page lets it) */
	memset(p, 0xff, page);
	spin(1000000);
	/* some kernels let one unmap a part, some do not */
	must(!munmap((char *)p + 4 * page, 5 * page) || errno == EINVAL, "munmap: %s",
	     strerror(errno));
	close(fd);
	spin(1000000);
	munmap(p, 9 * page);
	spin(100000);
	munmap(q, 9 * page);
	spin(100000);
}

/* Leaders that go before their groups, and groups that are none */
static void odd_groups(void)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	u64 last;
	int a, b, fd;
	pid_t pid;

	a = ev_open(&attr, 0, -1, -1);
	attr.disabled = 0;
	attr.config = BRANCHES;
	b = ev_open(&attr, 0, -1, a);
	ev_on(a);
	spin(1000);
	close(a);
	/* alone now, and still counting */
	last = ev_count(b);
	spin(1000);
	must(ev_count(b) >= last + 1000, "a sibling stops as its leader goes");
	/* not one's own task, another CPU, a sibling, no event, itself */
	ev_refused(&attr, -1, 0, b, EINVAL, "a group of a task and a CPU");
	a = ev_open(&attr, -1, 0, -1);
	ev_refused(&attr, -1, 1, a, EINVAL, "a group of two CPUs");
	ev_refused(&attr, 0, -1, a, EINVAL, "a group of a CPU and a task");
	close(a);
	a = ev_open(&attr, 0, -1, b);
	ev_refused(&attr, 0, -1, a, EINVAL, "a group led by a sibling");
	close(a);
	fd = open("/dev/null", O_RDONLY);
	ev_refused(&attr, 0, -1, fd, EBADF, "a group led by a file");
	close(fd);
	ev_refused(&attr, 0, -1, 9999, EBADF, "a group led by nothing");
	ev_refused(&attr, 999999, -1, -1, ESRCH, "an event of no task");
	ev_refused(&attr, -1, -1, -1, EINVAL, "an event of nothing");
	ev_refused(&attr, -1, 100000, -1, EINVAL, "an event of no CPU");
	close(b);

	/* the task is gone, its event is not */
	pid = fork();
	must(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		usleep(20000);
		spin(100000);
		_exit(0);
	}
	attr.config = INSTRUCTIONS;
	fd = ev_open(&attr, pid, -1, -1);
	reap(pid);
	last = ev_count(fd);
	must(last >= 200000, "of a task that ended %llu were counted", (unsigned long long)last);
	ev_on(fd);
	must(ev_count(fd) == last, "an event of a task that ended counts on");
	ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	must(!ev_count(fd), "an event of a task that ended is not reset");
	close(fd);
}

/* Threads that open, fork and close over each other */
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
		attr.inherit = seed >> 20 & 1;
		attr.sample_period = seed >> 21 & 1 ? 3001 : 0;
		fds[at] = sys_open(&attr, 0, -1, -1, 0);
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
		     "no thread: %s", strerror(errno));
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
}

/* Killed in the middle of it all */
static void kill_users(void)
{
	int i, k, fd;

	for (i = 0; i < 12; i++) {
		pid_t pid = fork();

		must(pid >= 0, "fork: %s", strerror(errno));
		if (!pid) {
			for (k = 0; ; k++) {
				struct perf_event_attr attr = user_attr(INSTRUCTIONS);

				attr.disabled = 0;
				attr.inherit = k & 1;
				attr.sample_period = 2003;
				fd = sys_open(&attr, 0, k & 2 ? 0 : -1, -1, 0);
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

/*
 * Fuzz: attributes at random, events used at random, from root and from nobody,
 * of all CPUs and several processes at once.  The seed is fixed, the time, too.
 */
struct rng {
	u64 state;
};

static u64 rnd(struct rng *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return r->state * 0x2545f4914f6cdd1dULL;
}

static u64 below(struct rng *r, u64 n)
{
	return (rnd(r) >> 11) % n;
}

static bool one_in(struct rng *r, u64 n)
{
	return !below(r, n);
}

static struct perf_event_attr random_attr(struct rng *r)
{
	static const u64 codes[] = {
		INSTRUCTIONS, BRANCHES, CYCLES, L2_READ_MISS, L2_WRITE_HIT, CODE(0, 0x20),
		CODE(0x28, 0), CODE(0xff, 0xff), CODE(0xf0, 0x10),
	};
	static const u64 periods[] = {
		0, 1, 2, 100, 1000, 1009, 100000, 1ULL << 31, (1ULL << 39) - 1, 1ULL << 39,
		(1ULL << 40) - 1, 1ULL << 40, 1ULL << 62, (1ULL << 63) - 1,
	};
	struct perf_event_attr attr = attr_of(codes[below(r, ARRAY_SIZE(codes))]);

	if (one_in(r, 10))
		attr.type = below(r, 8);
	if (one_in(r, 4))
		attr.config ^= 1ULL << below(r, one_in(r, 4) ? 64 : 32);
	if (one_in(r, 30))
		attr.config = rnd(r);
	if (one_in(r, 30))
		attr.config1 = one_in(r, 2) ? 1 : rnd(r);
	if (one_in(r, 60))
		attr.config2 = rnd(r);
	attr.disabled = below(r, 2);
	attr.inherit = one_in(r, 3);
	attr.pinned = one_in(r, 6);
	attr.exclusive = one_in(r, 10);
	attr.exclude_user = one_in(r, 4);
	attr.exclude_kernel = one_in(r, 2);
	attr.exclude_hv = one_in(r, 2);
	attr.exclude_idle = one_in(r, 30);
	attr.exclude_guest = one_in(r, 4);
	attr.exclude_host = one_in(r, 30);
	attr.enable_on_exec = one_in(r, 10);
	attr.inherit_stat = one_in(r, 10);
	attr.task = one_in(r, 10);
	attr.mmap = one_in(r, 10);
	attr.comm = one_in(r, 10);
	attr.watermark = one_in(r, 5);
	attr.precise_ip = one_in(r, 30) ? 1 + below(r, 3) : 0;
	attr.sample_id_all = one_in(r, 2);
	attr.write_backward = one_in(r, 10);
	attr.remove_on_exec = one_in(r, 20);
	if (!one_in(r, 3)) {
		attr.sample_period = periods[below(r, ARRAY_SIZE(periods))];
		attr.freq = one_in(r, 4);
		if (attr.freq)
			attr.sample_freq = 1 + below(r, 5000);
	}
	if (attr.sample_period) {
		attr.sample_type = rnd(r) & (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			PERF_SAMPLE_ADDR | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN |
			PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
			PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_WEIGHT |
			PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PHYS_ADDR);
		if (one_in(r, 10)) {
			attr.sample_type |= PERF_SAMPLE_REGS_INTR;
			attr.sample_regs_intr = rnd(r) & 0xffffff;
		}
		if (one_in(r, 10)) {
			attr.sample_type |= PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_USER;
			attr.sample_stack_user = 8 * below(r, 128);
			attr.sample_regs_user = rnd(r) & 0xffffff;
		}
		if (one_in(r, 30))
			attr.sample_type = rnd(r);
		attr.wakeup_events = below(r, 4);
	}
	attr.read_format = rnd(r) & 0xf;
	return attr;
}

#define FUZZ_FDS	24

static void fuzz_step(struct rng *r, int *fds, void **maps, size_t *lengths, int cpus)
{
	static const unsigned long ioctls[] = {
		PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE, PERF_EVENT_IOC_RESET,
		PERF_EVENT_IOC_REFRESH, PERF_EVENT_IOC_PAUSE_OUTPUT,
	};
	int at = below(r, FUZZ_FDS), other = below(r, FUZZ_FDS);
	char buf[256];
	u64 period;

	switch (below(r, 12)) {
	case 0:
	case 1:
	case 2: {
		struct perf_event_attr attr = random_attr(r);
		bool wide = one_in(r, 3);
		int group = one_in(r, 3) ? fds[other] : -1;

		if (fds[at] >= 0 && !maps[at])
			close(fds[at]);
		else if (fds[at] >= 0)
			break;
		fds[at] = sys_open(&attr, wide ? -1 : 0,
				   wide || one_in(r, 4) ? (int)below(r, cpus) : -1, group,
				   one_in(r, 20) ? rnd(r) & 0xf : 0);
		break;
	}
	case 3:
		if (maps[at])
			munmap(maps[at], lengths[at]);
		maps[at] = NULL;
		if (fds[at] >= 0)
			close(fds[at]);
		fds[at] = -1;
		break;
	case 4:
	case 5:
		ioctl(fds[at], ioctls[below(r, ARRAY_SIZE(ioctls))],
		      one_in(r, 3) ? PERF_IOC_FLAG_GROUP : below(r, 4));
		break;
	case 6:
		period = one_in(r, 3) ? rnd(r) : 1000 + below(r, 100000);
		ioctl(fds[at], PERF_EVENT_IOC_PERIOD, &period);
		break;
	case 7:
		ioctl(fds[at], PERF_EVENT_IOC_SET_OUTPUT, one_in(r, 4) ? -1 : fds[other]);
		break;
	case 8:
		if (fds[at] >= 0 && !maps[at]) {
			lengths[at] = (1 + (1UL << below(r, 4))) * getpagesize();
			maps[at] = mmap(NULL, lengths[at],
					one_in(r, 3) ? PROT_READ : PROT_READ | PROT_WRITE,
					MAP_SHARED, fds[at], 0);
			if (maps[at] == MAP_FAILED)
				maps[at] = NULL;
		}
		break;
	case 9:
		if (read(fds[at], buf, below(r, sizeof(buf))) < 0)
			break;
		break;
	case 10: {
		struct pollfd p = { .fd = fds[at], .events = POLLIN };

		poll(&p, 1, 0);
		break;
	}
	default:
		if (one_in(r, 20)) {
			pid_t pid = fork();

			if (!pid) {
				spin(below(r, 2000));
				_exit(0);
			}
			if (pid > 0)
				waitpid(pid, NULL, 0);
		} else if (one_in(r, 10)) {
			cpu_set_t set;

			CPU_ZERO(&set);
			CPU_SET(below(r, cpus), &set);
			sched_setaffinity(0, sizeof(set), &set);
		} else {
			spin20(below(r, 2000));
		}
	}
}

struct fuzz {
	u64 deadline;
	u64 steps, opened;
	int cpus;
};

static void fuzz_one(void *arg, int i)
{
	struct fuzz *f = arg;
	struct rng r = { 0x4b4e4350 + 7919 * (i + 1) };
	void *maps[FUZZ_FDS] = {};
	size_t lengths[FUZZ_FDS];
	int fds[FUZZ_FDS], k;
	u64 steps = 0;

	memset(fds, -1, sizeof(fds));
	signal(SIGIO, SIG_IGN);
	signal(SIGTRAP, SIG_IGN);
	pmu();
	if (i & 1)
		become_nobody();
	while (now_ns() < f->deadline) {
		fuzz_step(&r, fds, maps, lengths, f->cpus);
		steps++;
	}
	for (k = 0; k < FUZZ_FDS; k++)
		if (fds[k] >= 0)
			__atomic_add_fetch(&f->opened, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&f->steps, steps, __ATOMIC_RELAXED);
}

TEST(fuzz, "fuzz", 120)
{
	const char *env = getenv("TEST_FUZZ_SECONDS");
	u64 seconds = env ? strtoull(env, NULL, 0) : scale() > 1 ? 60 : 15;
	long paranoid = sysctl_get("kernel/perf_event_paranoid");
	struct fuzz *f = shared(sizeof(*f));

	many_files();
	sample_limit(20000);
	sysctl_set("kernel/perf_event_paranoid", 0);
	f->deadline = now_ns() + seconds * 1000000000;
	f->cpus = cpus_online();
	in_children(6, false, fuzz_one, f);
	sysctl_set("kernel/perf_event_paranoid", paranoid);
	note("%llu steps, %llu events left open", (unsigned long long)f->steps,
	     (unsigned long long)f->opened);
	must(f->steps > 1000 && f->opened > 10, "only %llu steps, %llu events",
	     (unsigned long long)f->steps, (unsigned long long)f->opened);
	must_be_sound("fuzzing");
}
