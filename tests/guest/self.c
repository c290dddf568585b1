// SPDX-License-Identifier: GPL-2.0-only
/* Programs that measure themselves: SPFLT and RDPMC. */
#define _GNU_SOURCE
#include "lib.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>

#include "../../include/knc_pmu_user.h"

static struct perf_event_attr spflt_attr(u64 config)
{
	struct perf_event_attr attr = user_attr(config);

	attr.config1 = 1;
	return attr;
}

static void spflt_need(void)
{
	char *format = pmu_file("format/spflt");

	must(format && !strcmp(format, "config1:0"), "format/spflt is \"%s\"",
	     format ? format : "not there");
	must(knc_cpu(), "knc_cpu() does not know this CPU");
}

#define ON	".byte 0xc5, 0xfb, 0xae, 0xf0\n\t"	/* SPFLT %eax */

/* SPFLT 1, a loop of n times two instructions, and SPFLT 0: 2 n + REGION_COST count. */
static void __attribute__((noinline, noclone)) region(u64 n)
{
	asm volatile("mov $1, %%eax\n\t"
		     "test %0, %0\n\t"
		     "jz 2f\n\t"
		     ON
		     "1:\tdec %0\n\t"
		     "jnz 1b\n\t"
		     "mov $0, %%eax\n\t"
		     ON
		     "jmp 3f\n"
		     "2:\t" ON
		     "mov $0, %%eax\n\t"
		     ON
		     "3:"
		     : "+r" (n) : : "rax", "cc", "memory");
}

/* MOV and SPFLT 0, which count as well */
#define REGION_COST	2

/* This task's SPFLT event, on */
static int open_spflt(void)
{
	struct perf_event_attr attr = spflt_attr(INSTRUCTIONS);

	return ev_start(&attr, 0, -1);
}

/* To the instruction, among code that is not counted */
TEST(spflt_region_test, "spflt-region", 60)
{
	u64 n, want = 0;
	int fd, i;

	spflt_need();
	fd = open_spflt();
	spin(1000000);
	must(!ev_count(fd), "counted %llu without SPFLT", ev_count(fd));
	for (i = 0; i < 3; i++) {
		for (n = 0; n <= 10000000 / scale(); n = n * 10 + 1) {
			spin(50000);
			region(n);
			spin20(5000);
			want += 2 * n + REGION_COST;
			must(ev_count(fd) == want, "a region of %llu iterations: %llu, not %llu", n,
			     ev_count(fd), want);
		}
	}
	/* the preference survives disabling and enabling */
	spflt_on();
	ev_off(fd);
	spin(1000);
	must(ev_count(fd) >= want, "counted %llu, then %llu", want, ev_count(fd));
	want = ev_count(fd);
	spin(1000);
	must(ev_count(fd) == want, "counts while it is off");
	spflt_off();
	ev_on(fd);
	spin(1000);
	must(ev_count(fd) == want, "counts with the preference 0 after it was enabled again");
	close(fd);

	/* a preference that was set without an event holds for the next event */
	spflt_on();
	fd = open_spflt();
	spin(1000);
	must(ev_count(fd) >= 2000, "the second event: only %llu", ev_count(fd));
	spflt_off();
	close(fd);
	fd = open_spflt();
	region(1000);
	spin(1000);
	must(ev_count(fd) == 2000 + REGION_COST, "the third event: %llu, not %u",
	     ev_count(fd), 2000 + REGION_COST);
	close(fd);
}

TEST(spflt_toggle, "spflt-toggle", 60)
{
	u64 n = 1000000 / scale(), i, count;
	int fd;

	spflt_need();
	fd = open_spflt();
	for (i = 0; i < n; i++)
		region(0);
	ev_off(fd);
	count = ev_count(fd);
	must(count == n * REGION_COST, "%llu toggles counted %llu, not %llu", n, count,
	     n * REGION_COST);
}

/* Two events in a group, disabled: all instructions, and those of regions */
struct both {
	int all, spflt;
};

static struct both open_both(void)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	struct both b;

	b.all = ev_open(&attr, 0, -1, -1);
	attr.config1 = 1;
	b.spflt = ev_join(attr, INSTRUCTIONS, b.all);
	return b;
}

#define must_be_equal(b, what) do {						\
	u64 all_ = ev_count((b).all), spflt_ = ev_count((b).spflt);		\
	must(all_ == spflt_ && all_, "%s: %llu in all, %llu with SPFLT", what, all_, spflt_); \
} while (0)

/*
 * Two tasks take turns on a hardware thread: one is always in a region, the other
 * never. A third without events changes the bit each time.
 */
static void ping_pong(const int in[2], const int out[2], int i)
{
	struct both b = {};
	int turn, turns = 5000 / (scale() > 1 ? 10 : 1);

	pin(0);
	if (i < 2) {
		b = open_both();
		spflt_on();
		if (i == 1)
			spflt_off();
		ev_on(b.all);
	}
	for (turn = 0; turn < turns; turn++) {
		pipe_wait(in);
		spin(100 + turn % 10);
		if (i == 2)
			knc_spflt(turn & 1);
		pipe_wake(out);
	}
	if (i == 2)
		return;
	ev_off(b.all);
	if (i == 0)
		must_be_equal(b, "a task that is always counted");
	else
		must(!ev_count(b.spflt) && ev_count(b.all) > 1000,
		     "a task that is never counted: %llu of %llu",
		     ev_count(b.spflt), ev_count(b.all));
}

TEST(spflt_switch, "spflt-switch", 120)
{
	int pipes[3][2], i;
	pid_t pids[3];

	spflt_need();
	for (i = 0; i < 3; i++)
		must_pipe(pipes[i]);
	for (i = 0; i < 3; i++) {
		pids[i] = must_fork();
		if (!pids[i]) {
			ping_pong(pipes[i], pipes[(i + 1) % 3], i);
			_exit(0);
		}
	}
	/* the token goes round, 5000 times, over three switches each */
	pipe_wake(pipes[0]);
	for (i = 0; i < 3; i++)
		reap(pids[i]);
}

/* A region that is moved from one hardware thread to the next all the while */
TEST(spflt_migrate, "spflt-migrate", 60)
{
	int n = cpus_online(), i;
	struct both b;
	u64 count;

	spflt_need();
	b = open_both();
	spflt_on();
	ev_on(b.all);
	for (i = 0; i < 400; i++) {
		pin(i * 3 % n);
		spin(1000 + i);
	}
	ev_off(b.all);
	must_be_equal(b, "a region on all hardware threads");
	ev_on(b.all);
	spflt_off();
	count = ev_count(b.spflt);
	must(ev_count(b.all) > count, "the preference 0 has no effect");
	for (i = 0; i < 400; i++) {
		pin(i * 5 % n);
		spin(1000 + i);
	}
	must(ev_count(b.spflt) == count, "outside, and on other hardware threads: %llu more",
	     ev_count(b.spflt) - count);
}

/* A region in which the task's hardware threads go offline and come back */
TEST(spflt_hotplug, "spflt-hotplug", 120)
{
	bool *stop = shared(sizeof(*stop));
	int n = cpus_online(), i;
	struct both b;
	pid_t pid;

	spflt_need();
	pid = must_fork();
	if (!pid) {
		/* another task, with the other preference */
		while (!*(volatile bool *)stop)
			spflt_off();
		_exit(0);
	}
	b = open_both();
	spflt_on();
	ev_on(b.all);
	for (i = 0; i < 40; i++) {
		int cpu = 1 + i % (n - 1);

		pin(cpu);
		spin(1000 + i);
		/* the kernel moves the task to another CPU */
		set_online(cpu, false);
		spin(1000 + i);
		set_online(cpu, true);
	}
	ev_off(b.all);
	*(volatile bool *)stop = true;
	reap(pid);
	must_be_equal(b, "a region across hotplug");
}

/* The preference survives exec: two counts differ by the difference of the programs. */
static void count_exec(const char *length, u64 *all, u64 *in_region)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	int go[2], fds[2];
	pid_t pid;

	must_pipe(go);
	pid = must_fork();
	if (!pid) {
		pipe_wait(go);
		/*
		 * Otherwise the C library's start takes a different number of
		 * instructions.
		 */
		personality(ADDR_NO_RANDOMIZE);
		spflt_on();
		execl("/proc/self/exe", "gt", "--spin", length, NULL);
		_exit(1);
	}
	attr.disabled = 0;
	fds[0] = ev_open(&attr, pid, -1, -1);
	attr = spflt_attr(INSTRUCTIONS);
	attr.disabled = 0;
	fds[1] = ev_open(&attr, pid, -1, fds[0]);
	pipe_wake(go);
	reap(pid);
	*all = ev_count(fds[0]);
	*in_region = ev_count(fds[1]);
	close(fds[1]);
	close(fds[0]);
	close(go[0]);
	close(go[1]);
}

TEST(spflt_exec, "spflt-exec", 60)
{
	u64 all[2], in_region[2];

	spflt_need();
	count_exec("10000", &all[0], &in_region[0]);
	count_exec("90000", &all[1], &in_region[1]);
	must(in_region[1] - in_region[0] == 2 * 0x80000,
	     "two programs differ by %llu instructions, not %u",
	     in_region[1] - in_region[0], 2 * 0x80000);
	must(in_region[0] < all[0] && all[0] - in_region[0] < 10000,
	     "before SPFLT 1 there were %llu instructions", all[0] - in_region[0]);
}

/* A driver that is loaded again virtualises the preference as before. */
TEST(spflt_reload, "spflt-reload", 60)
{
	unsigned int i;
	int fd;

	module_need();
	spflt_need();
	for (i = 0; i < 5; i++) {
		fd = open_spflt();
		spin(1000);
		region(1000 + i);
		spin(1000);
		must(ev_count(fd) == 2 * (1000 + i) + REGION_COST, "loaded %u times: %llu", i,
		     ev_count(fd));
		spflt_on();
		close(fd);
		must_unload();
		must_load();
	}
}

/* A new task begins with preference 0; its regions count for the parent's event. */
TEST(spflt_inherit, "spflt-inherit", 60)
{
	struct perf_event_attr attr;
	const u64 n = 100000;
	int fd, i;
	u64 want;

	spflt_need();
	attr = spflt_attr(INSTRUCTIONS);
	attr.inherit = 1;
	fd = ev_start(&attr, 0, -1);
	region(n);
	want = 2 * n + REGION_COST;
	for (i = 0; i < 6; i++) {
		pid_t pid = must_fork();

		if (!pid) {
			spin(1000000);
			if (i & 1)
				region(n);
			spin(1000000);
			_exit(0);
		}
		reap(pid);
		if (i & 1)
			want += 2 * n + REGION_COST;
		must(ev_count(fd) == want, "after %d children: %llu, not %llu", i + 1,
		     ev_count(fd), want);
	}
	spflt_on();
	ev_off(fd);
	ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	close(fd);
}

/* Two SPFLT events; three, which take turns; and one that samples */
TEST(spflt_several, "spflt-several", 120)
{
	static const u64 configs[] = { INSTRUCTIONS, BRANCHES, INSTRUCTIONS };
	struct perf_event_attr attr;
	u64 n = 0, begin;
	struct times t;
	int fd[3], i;

	spflt_need();
	attr = spflt_attr(INSTRUCTIONS);
	fd[0] = ev_open(&attr, 0, -1, -1);
	fd[1] = ev_join(attr, BRANCHES, fd[0]);
	ev_on(fd[0]);
	spin(10000);
	region(12345);
	spin(10000);
	ev_off(fd[0]);
	must(ev_count(fd[0]) == 2 * 12345 + REGION_COST && ev_count(fd[1]) == 12345,
	     "two SPFLT events: %llu and %llu", ev_count(fd[0]), ev_count(fd[1]));
	close(fd[1]);
	close(fd[0]);

	for (i = 0; i < 3; i++) {
		attr = spflt_attr(configs[i]);
		attr.read_format = READ_TIMES;
		fd[i] = ev_open(&attr, 0, -1, -1);
	}
	for (i = 0; i < 3; i++)
		ev_on(fd[i]);
	begin = now_ns();
	while (now_ns() - begin < 1500000000) {
		region(20000);
		spin(20000);
		n += 20000;
	}
	for (i = 0; i < 3; i++) {
		u64 truth = configs[i] == BRANCHES ? n : 2 * n;
		double scaled;

		t = ev_times(fd[i]);
		must(t.running && t.running < t.enabled, "event %d of three: no turns taken", i);
		scaled = (double)t.value * t.enabled / t.running;
		must(scaled > truth * 0.98 && scaled < truth * 1.02,
		     "event %d of three: scaled %.0f, true %llu", i, scaled, truth);
		close(fd[i]);
	}
}

TEST(spflt_sample, "spflt-sample", 60)
{
	struct perf_event_attr attr;
	struct tally t = {};
	struct ring r;
	u64 want;
	int fd, i;

	spflt_need();
	sample_limit(NO_SAMPLE_LIMIT);
	attr = spflt_attr(INSTRUCTIONS);
	attr.sample_period = 10007;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD;
	fd = ring_open(&r, 64, &attr, 0, -1, -1);
	ev_on(fd);
	for (i = 0; i < 100; i++) {
		spin(100000);
		region(100000);
		spin20(10000);
	}
	ev_off(fd);
	ring_tally(&r, &t, (char *)region, (char *)region + 64);
	want = ev_count(fd) / 10007;
	must(ev_count(fd) == 100 * (200000 + REGION_COST), "counted %llu", ev_count(fd));
	must(t.samples + 1 >= want && t.samples <= want + 1, "%llu samples, want %llu",
	     t.samples, want);
	must(!t.outside, "%llu of %llu samples outside the region, such as %#llx", t.outside,
	     t.samples, t.last_outside);
}

/* A CPU-wide event uses the hardware thread's bit, whichever task set it. */
TEST(spflt_wide, "spflt-wide", 60)
{
	struct perf_event_attr attr;
	u64 before;
	int fd;

	spflt_need();
	pin(1);
	knc_spflt(0);
	attr = spflt_attr(INSTRUCTIONS);
	fd = ev_start(&attr, -1, 1);
	spin(100000);
	before = ev_count(fd);
	region(100000);
	must(ev_count(fd) - before >= 200000 + REGION_COST && ev_count(fd) - before < 200000 + 1000,
	     "a region on the CPU: %llu, not %u", ev_count(fd) - before, 200000 + REGION_COST);
	before = ev_count(fd);
	spin(100000);
	must(ev_count(fd) == before, "outside: %llu more", ev_count(fd) - before);
	close(fd);
}

/* RDPMC */

/* Whether Documentation/knc-pmu.rst promises RDPMC to programs here */
static bool rdpmc_promised(void)
{
	const char *driver = getenv("TEST_DRIVER");

	return (driver && !strcmp(driver, "builtin")) || kernel_before(6, 13);
}

/* RDPMC and read(2) advance by the same number. */
TEST(rdpmc_exact, "rdpmc", 60)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	struct perf_event_mmap_page *page;
	u64 base_read = 0, base_self = 0, n, burst, b, d;
	uint64_t a, c;
	int fd, round;

	td_need();
	fd = ev_open(&attr, 0, -1, -1);
	page = page_of(fd);
	if (!page->cap_user_rdpmc) {
		must(knc_rdpmc(page, &a) == -EOPNOTSUPP, "knc_rdpmc() does not refuse");
		must(!rdpmc_promised(), "no RDPMC (cap_user_rdpmc is 0)");
		skip("a module can give programs no RDPMC in this kernel");
	}
	must(knc_rdpmc(page, &a) == -EAGAIN, "knc_rdpmc() of an event that is off");
	ev_on(fd);
	must(page->pmc_width == 40, "the counter is %u bits wide", page->pmc_width);

	/*
	 * The order is the same each time, so the reads cost the same: RDPMC, read,
	 * loop, RDPMC, read. The two differences must be equal. In some rounds the
	 * counter wraps and is loaded again.
	 */
	for (round = 0; round < 200; round++) {
		n = round * 1001;
		burst = round % 20 == 10 ? 1ULL << 39 : 0;
		must(!knc_rdpmc(page, &a), "knc_rdpmc() fails");
		b = ev_count(fd);
		spin(1 + n);
		td_burst(0, burst);
		td_burst(1, burst);
		must(!knc_rdpmc(page, &c), "knc_rdpmc() fails");
		d = ev_count(fd);
		if (!round) {
			base_self = c - a;
			base_read = d - b;
			continue;
		}
		n = 2 * n + burst;
		must(c - a - base_self == n, "RDPMC: %llu more in a loop of %llu",
		     c - a - base_self, n);
		must(d - b - base_read == n, "read: %llu more in a loop of %llu",
		     d - b - base_read, n);
		must(b > a && b - a < 500, "right after RDPMC a read is %lld more",
		     (long long)(b - a));
	}
	ev_off(fd);
	must(knc_rdpmc(page, &a) == -EAGAIN, "knc_rdpmc() of an event that is off again");
}

/* A task without events cannot read a counter of another task. */
static void faulted(int sig)
{
	(void)sig;
	_exit(0);
}

TEST(rdpmc_others, "rdpmc-others", 60)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	struct perf_event_mmap_page *pages[2];
	int fd[2], go[2], i, status, round;
	pid_t pid;

	pin(0);
	for (round = 0; round < 10; round++) {
		must_pipe(go);
		/* a task without events on the same hardware thread */
		pid = must_fork();
		if (!pid) {
			u64 got = 0;

			signal(SIGSEGV, faulted);
			pipe_wait(go);
			for (i = 0; i < 1000; i++) {
				got |= plain_rdpmc(0) | plain_rdpmc(1);
				if (i % 100 == 0)
					sched_yield();
			}
			_exit(got ? 3 : 0);
		}
		/* this task's events, with a page: it may read them */
		for (i = 0; i < 2; i++) {
			fd[i] = ev_open(&attr, 0, -1, -1);
			pages[i] = page_of(fd[i]);
			ev_on(fd[i]);
		}
		spin(12345);
		pipe_wake(go);
		while (waitpid(pid, &status, WNOHANG) == 0) {
			spin(1000);
			sched_yield();
		}
		must(!status, "a task without events reads another's counter (status %#x)", status);
		for (i = 0; i < 2; i++) {
			munmap(pages[i], getpagesize());
			close(fd[i]);
		}
		close(go[0]);
		close(go[1]);
	}
}
