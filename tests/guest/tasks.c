// SPDX-License-Identifier: GPL-2.0-only
/* Events of tasks, their children and CPUs; and ioctls */
#include "lib.h"

#include "../../include/knc_pmu_user.h"

/* Tasks that share a CPU do not count each other's instructions. */
static void share_cpu(void *arg, int i)
{
	u64 base = spin_cost();
	int round;

	(void)arg;
	pin(0);
	for (round = 0; round < 5; round++) {
		u64 n = (1000000 * (i + 1) + round) / scale();
		int fd = ev_self(INSTRUCTIONS), other = ev_self(BRANCHES);

		ev_on(other);
		ev_spin(fd, n * 5);
		must(ev_count(fd) == base + 10 * n, "task %d counted %llu, not %llu", i,
		     ev_count(fd), base + 10 * n);
		close(other);
		close(fd);
		sched_yield();
	}
}

TEST("task-switch", 120)
{
	in_children(6, false, share_cpu, NULL);
}

/* A tree of processes, counted by an event of its root */
static void tree(int depth, u64 n)
{
	int i;

	spin(n);
	if (!depth)
		return;
	for (i = 0; i < 3; i++) {
		pid_t pid = syscall(SYS_fork);

		must(pid >= 0, "fork: %m");
		if (!pid) {
			tree(depth - 1, n);
			syscall(SYS_exit_group, 0);
		}
	}
	for (i = 0; i < 3; i++) {
		int status;

		must(wait(&status) > 0 && !status, "a child ended with wait status %#x", status);
	}
}

static u64 count_tree(u64 n)
{
	int fd = ev_start(user_attr(INSTRUCTIONS, .inherit = 1), 0, -1);

	tree(2, n);
	return ev_end(fd);
}

TEST("inherit", 60)
{
	u64 base, got, n;
	int round;

	count_tree(1000);
	base = count_tree(1000);
	for (round = 0; round < 3; round++) {
		n = 1000000 << round;
		got = count_tree(1000 + n) - base;
		/* 1 + 3 + 9 processes */
		must(got == 13 * 2 * n, "13 processes counted %llu, not %llu", got, 13 * 2 * n);
	}
}

/* CPU-wide events: at least what ran on the CPU, and exactly what the emulator says */
static void spin_by_cpu(void *arg, int cpu)
{
	spin((cpu + 1) * *(u64 *)arg);
}

static void count_wide(u64 period)
{
	struct perf_event_attr attr = sampling_attr(INSTRUCTIONS, period, PERF_SAMPLE_IP);
	int cpus = cpus_online(), fd[256], cpu;
	/* The sum grows with the square of the CPUs. */
	u64 n = 2000000 / scale() / (cpus > 16 ? 500 : 1), truth[256], count;
	bool td = td_present();
	struct ring r[256];

	for (cpu = 0; cpu < cpus; cpu++) {
		fd[cpu] = ring_open(&r[cpu], 8, attr, -1, cpu, -1);
		truth[cpu] = td ? td_counted(cpu) : 0;
	}
	for (cpu = 0; cpu < cpus; cpu++)
		ev_on(fd[cpu]);
	in_children(cpus, true, spin_by_cpu, &n);
	for (cpu = 0; cpu < cpus; cpu++)
		ev_off(fd[cpu]);
	for (cpu = 0; cpu < cpus; cpu++) {
		u64 want = 2 * n * (cpu + 1);
		struct tally t = {};

		count = ev_count(fd[cpu]);
		/* other tasks run there, too */
		must(count >= want && count < want + 2000000, "CPU %d counted %llu, not %llu", cpu,
		     count, want);
		truth[cpu] = td ? td_counted(cpu) - truth[cpu] : count;
		must(count == truth[cpu], "CPU %d counted %llu, the emulator %llu", cpu,
		     count, truth[cpu]);
		ring_tally(&r[cpu], &t, NULL, NULL);
		must(t.samples == (period ? count / period : 0) && !t.lost,
		     "CPU %d: %llu samples of %llu in %llu", cpu, t.samples, period, count);
	}
}

TEST("cpu-wide", 120)
{
	count_wide(0);
}

/* Each interrupt of a CPU-wide event starts the counters again. */
TEST("sample-wide", 120)
{
	count_wide(100003);
}

/* A group is read at once; race-read-group does so while it runs. */
struct group {
	u64 nr, value[2];
};

static struct group read_group(int fd)
{
	struct group g;

	must(read(fd, &g, sizeof(g)) == sizeof(g) && g.nr == 2, "reading a group: %m");
	return g;
}

TEST("group-read", 60)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS, .read_format = PERF_FORMAT_GROUP);
	int fd = ev_open(attr, 0, -1, -1), i;
	struct group base, g;
	u64 n = 12345;

	ev_join(attr, BRANCHES, fd);
	ev_spin(fd, 0);
	base = read_group(fd);
	ev_spin(fd, n);
	for (i = 0; i < 2; i++) {
		g = read_group(fd);
		must(g.value[0] == 2 * base.value[0] + 2 * n &&
		     g.value[1] == 2 * base.value[1] + n, "a group counts %llu and %llu%s",
		     g.value[0], g.value[1], i ? " while it is off" : "");
		spin(1000);
	}
}

/* A period that is negative as a signed number: 2.6.38 takes it from the next overflow on. */
TEST("period-negative", 60)
{
	u64 overflows, period = -1000;
	struct tally t = {};
	struct ring r;
	bool refused;
	int fd;

	fd = ring_self(&r, 8, 10000);
	refused = ioctl(fd, PERF_EVENT_IOC_PERIOD, &period);
	must(refused != kernel_before(3, 14) && (!refused || errno == EINVAL),
	     "it is taken, or refused with %m");
	/* Each stop looks whether the counter has wrapped. */
	for (int i = 0; i < 20; i++)
		ev_spin(fd, 1000);
	ring_tally(&r, &t, NULL, NULL);
	overflows = refused ? ev_count(fd) / 10000 : 1;
	must(t.samples == overflows, "%llu samples, not %llu", t.samples, overflows);
}

/* The page before the sample buffer */
TEST("mmap-page", 60)
{
	struct perf_event_mmap_page *page;
	int fd = ev_self(INSTRUCTIONS);
	uint64_t self;
	u64 count;

	page = page_of(fd);
	must(!page->index, "an event that is off is on counter %u", page->index);
	must(!(page->lock & 1), "the page's lock is odd: %u", page->lock);
	must(!page->data_head && !page->data_size, "a page without samples has some");
	ev_on(fd);
	spin(1000);
	must(page->time_running <= page->time_enabled, "ran longer than it was enabled");
	must(!page->cap_user_rdpmc || !driver_is_module(), "a module promises RDPMC");
	/* Test "rdpmc" has what a page with RDPMC offers. */
	if (!page->cap_user_rdpmc) {
		/* Linux 2.6.38 has no flag for it, and sets index all the same. */
		must(!page->index || cards_kernel(), "index %u, but cap_user_rdpmc is 0",
		     page->index);
		must(knc_rdpmc(page, &self) == -EOPNOTSUPP, "knc_rdpmc() does not refuse");
	}
	ev_off(fd);
	must(!page->index, "an event that is off again is on counter %u", page->index);
	count = ev_count(fd);
	self = page->offset;
	must(self == count, "the page says %lu, a read %llu", self, count);
}

/* For how long the event has been enabled, as linux/perf_event.h computes it from the page */
static u64 page_enabled(const volatile struct perf_event_mmap_page *page)
{
	u64 cycles, enabled, low;
	u32 seq;

	do {
		seq = page->lock;
		cycles = __builtin_ia32_rdtsc();
		low = cycles & ((1ULL << page->time_shift) - 1);
		enabled = page->time_enabled + page->time_offset +
			  (cycles >> page->time_shift) * page->time_mult +
			  (low * page->time_mult >> page->time_shift);
	} while (seq & 1 || page->lock != seq);
	return enabled;
}

/* The page of an event that samples is brought up to date when the event is put on. */
TEST("page-times", 60)
{
	u64 own, read;
	struct ring r;
	int fd;

	fd = ring_open(&r, 1, sampling_attr(INSTRUCTIONS, 1000000, PERF_SAMPLE_IP,
					    .read_format = READ_TIMES), 0, -1, -1);
	if (!r.page->cap_user_time)
		skip("the page has no clock (cap_user_time is 0)");
	ev_on(fd);
	spin_for_ms(5);
	ev_off(fd);
	usleep(50000);
	ev_on(fd);
	own = page_enabled(r.page);
	read = ev_times(fd).enabled;
	must(own <= read && read - own < 10000000, "enabled for %llu ns by the page, for %llu",
	     own, read);
}
