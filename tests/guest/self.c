// SPDX-License-Identifier: GPL-2.0-only
/* Programs that measure themselves: SPFLT and RDPMC. */
#include "lib.h"

#include "../../include/knc_pmu_user.h"

void spflt_need(void)
{
	char *format = pmu_file("format/spflt");

	must(format && !strcmp(format, "config1:0"), "format/spflt is \"%s\"",
	     format ? format : "not there");
	must(knc_cpu(), "knc_cpu() does not know this CPU");
}

#define SPFLT	".byte 0xc5, 0xfb, 0xae, 0xf0\n\t"	/* %eax */

/* SPFLT 1, a loop of n times two instructions, and SPFLT 0: 2 n + REGION_COST count. */
static void __attribute__((noinline, noclone)) region(u64 n)
{
	asm volatile("mov $1, %%eax\n\t"
		     SPFLT
		     "test %0, %0\n\t"
		     "jz 2f\n"
		     "1:\tdec %0\n\t"
		     "jnz 1b\n"
		     "2:\tmov $0, %%eax\n\t"
		     SPFLT
		     : "+r" (n) : : "rax", "cc", "memory");
}

/* TEST, JZ, MOV and SPFLT 0, which count as well */
#define REGION_COST	4

static int open_spflt(void)
{
	return ev_start(spflt_attr(INSTRUCTIONS), 0, -1);
}

/* All samples are of regions, and all that these are due. */
static void sample_regions(void)
{
	struct tally t = {};
	struct ring r;
	int i, fd = ring_open(&r, 8, sampling_attr(INSTRUCTIONS, 1009, PERF_SAMPLE_IP,
						   .config1 = 1), 0, -1, -1);

	ev_on(fd);
	for (i = 0; i < 100; i++) {
		spin(5000);
		region(1000);
	}
	ring_tally(&r, &t, (char *)region, (char *)region + 64);
	samples_whole(&t, "regions");
	must(t.samples == ev_count(fd) / 1009 && t.samples > 100, "%llu samples of %llu in regions",
	     t.samples, ev_count(fd));
	ring_close(&r, fd);
}

/* To the instruction, among code that is not counted */
TEST("spflt-region", 60)
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
	sample_regions();
}

/* Two events in a group, disabled: all instructions, and those of regions */
struct both {
	int all, spflt;
};

static struct both open_both(void)
{
	struct both b;

	b.all = ev_self(INSTRUCTIONS);
	b.spflt = ev_join(spflt_attr(INSTRUCTIONS), INSTRUCTIONS, b.all);
	return b;
}

static void must_be_equal(struct both b, const char *what)
{
	u64 all = ev_count(b.all), spflt = ev_count(b.spflt);

	must(all == spflt && all, "%s: %llu in all, %llu with SPFLT", what, all, spflt);
}

/* A task in a region, one outside, and one without events that changes the bit, in turn */
static void ping_pong(void *arg, int i)
{
	int (*pipes)[2] = arg;
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
		pipe_wait(pipes[i]);
		spin(100 + turn % 10);
		if (i == 2)
			knc_spflt(turn & 1);
		pipe_wake(pipes[(i + 1) % 3]);
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

TEST("spflt-switch", 120)
{
	int pipes[3][2], i;

	spflt_need();
	for (i = 0; i < 3; i++)
		must_pipe(pipes[i]);
	/* the token goes round, 5000 times, over three switches each */
	pipe_wake(pipes[0]);
	in_children(3, false, ping_pong, pipes);
}

/* A region in which the task's hardware threads go offline and come back */
TEST("spflt-hotplug", 120)
{
	int n = cpus_online(), cpu;
	struct both b;
	pid_t pid;

	spflt_need();
	/* another task, with the other preference */
	in_child(pid)
		for (;;)
			spflt_off();
	b = open_both();
	spflt_on();
	ev_on(b.all);
	for (cpu = 1; cpu < n; cpu++) {
		pin(cpu);
		spin(1000 + cpu);
		/* the kernel moves the task to another CPU */
		set_online(cpu, false);
		spin(1000 + cpu);
		set_online(cpu, true);
	}
	ev_off(b.all);
	end_child(pid);
	must_be_equal(b, "a region across hotplug");
}

/* The first event clears the bits of all tasks, also of those that run elsewhere. */
TEST("spflt-first", 60)
{
	volatile bool *inside = shared(sizeof(*inside));
	int cpu = cpus_online() - 1;
	pid_t pid;
	int fd;

	spflt_need();
	in_child(pid) {
		pin(cpu);
		spflt_on();
		for (*inside = true;;)
			spin(1000);
	}
	while (!*inside)
		;
	fd = ev_start(spflt_attr(INSTRUCTIONS), -1, cpu);
	usleep(1000);
	must(!ev_count(fd), "a task that was in a region before the first event: %llu",
	     ev_count(fd));
	close(fd);
	end_child(pid);
}

/* A new task begins with preference 0; its regions count for the parent's event. */
TEST("spflt-inherit", 60)
{
	const u64 n = 100000;
	int fd, i;
	u64 want;

	spflt_need();
	fd = ev_start(spflt_attr(INSTRUCTIONS, .inherit = 1), 0, -1);
	region(n);
	want = 2 * n + REGION_COST;
	for (i = 0; i < 6; i++) {
		by_child() {
			spin(1000000);
			if (i & 1)
				region(n);
			spin(1000000);
		}
		if (i & 1)
			want += 2 * n + REGION_COST;
		must(ev_count(fd) == want, "after %d children: %llu, not %llu", i + 1,
		     ev_count(fd), want);
	}
}

/* A CPU-wide event counts the regions of each task, and no task that is outside. */
struct wide {
	int cpu, turns, loop;
};

static void share_cpu(void *arg, int i)
{
	const struct wide *w = arg;
	int turn;

	pin(w->cpu);
	knc_spflt(i & 1);
	for (turn = 0; turn < w->turns; turn++) {
		spin(w->loop);
		sched_yield();
	}
}

TEST("spflt-wide", 60)
{
	struct wide w = { .cpu = cpus_online() - 1, .turns = 200, .loop = 50000 / scale() };
	u64 want = 2 * 2 * (u64)w.turns * w.loop, count;
	int fd;

	spflt_need();
	fd = ev_start(spflt_attr(INSTRUCTIONS), -1, w.cpu);
	in_children(4, false, share_cpu, &w);
	count = ev_count(fd);
	must(count >= want && count < want + want / 100,
	     "two tasks in regions of %llu instructions, and two outside: %llu", want, count);
}

/* RDPMC and read(2) advance by the same number. */
TEST("rdpmc", 60)
{
	int fd = ev_self(INSTRUCTIONS), round;
	u64 base_read = 0, base_self = 0, n, burst, b, d;
	struct perf_event_mmap_page *page = page_of(fd);
	uint64_t a, c;

	td_need();
	must(page->cap_user_rdpmc, "no RDPMC (cap_user_rdpmc is 0)");
	must(knc_rdpmc(page, &a) == -EAGAIN, "knc_rdpmc() of an event that is off");
	ev_on(fd);
	must(page->pmc_width == 40, "the counter is %u bits wide", page->pmc_width);

	/*
	 * In the same order each time, the reads cost the same, and the two differences are
	 * equal. In some rounds the counter wraps and is loaded again.
	 */
	for (round = 0; round < 200; round++) {
		n = round * 1001;
		burst = round % 20 == 10 ? 1ULL << 39 : 0;
		must(!knc_rdpmc(page, &a), "knc_rdpmc() fails");
		b = ev_count(fd);
		spin(1 + n);
		td_burst(burst);
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

/* The page of a sampling event allows no RDPMC. */
TEST("rdpmc-refused", 60)
{
	struct perf_event_mmap_page *page;
	u64 value;
	int fd;

	pin(0);
	fd = ev_open(sampling_attr(INSTRUCTIONS, 1000003, 0), 0, -1, -1);
	page = page_of(fd);
	ev_on(fd);
	must(!page->cap_user_rdpmc, "an event that samples promises RDPMC");
	must(!page->index, "an event that samples is on counter %u", page->index - 1);
	must(!try_rdpmc(0, &value) && !try_rdpmc(1, &value), "RDPMC with an event that samples");
}
