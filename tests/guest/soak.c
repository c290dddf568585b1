// SPDX-License-Identifier: GPL-2.0-only
/*
 * Endurance: tasks, CPU-wide events, groups and inheritance, with and without samples,
 * at random, while CPUs go offline and come back and the driver is loaded again. Each
 * count is right, and all of them add up to what the emulator has counted.
 *
 * TEST_SOAK_SECONDS is how long, TEST_FUZZ_SEED where the random numbers begin.
 */
#include "lib.h"

#define PERIOD_MIN	700
#define WORKERS		8

struct soak {
	u64 deadline;
	int cpus;
	atomic_ullong told;	/* the sum of all counts */
	atomic_ullong rounds, samples;
	u64 offline, loads;
	/* The driver is unloaded when no worker is busy, and none begins meanwhile. */
	atomic_uint busy;
	atomic_bool leave;
};

static void soak_enter(struct soak *s)
{
	for (;;) {
		s->busy++;
		if (!s->leave)
			return;
		s->busy--;
		usleep(1000);
	}
}

/*
 * Adds the count of an event that is off to the sum, and closes it. False if the event
 * has shared its counter.
 */
static bool soak_close(struct soak *s, int fd, u64 *count)
{
	struct times t = ev_times(fd);

	s->told += t.value;
	close(fd);
	*count = t.value;
	return t.running == t.enabled;
}

static u64 soak_cost(struct soak *s)
{
	u64 count;
	int fd;

	do {
		fd = ev_open(times_attr(INSTRUCTIONS), 0, -1, -1);
		ev_spin(fd, 0);
	} while (!soak_close(s, fd, &count));
	return count;
}

static void soak_sampled(struct soak *s, u64 n, u64 period, u64 cost)
{
	struct perf_event_attr attr = sampling_attr(INSTRUCTIONS, period, PERF_SAMPLE_IP);
	struct tally t = {};
	struct ring r;
	u64 count;
	bool all;
	int fd;

	attr.read_format = READ_TIMES;
	fd = ring_open(&r, 128, attr, 0, -1, -1);
	ev_spin(fd, n);
	ring_tally(&r, &t, spin_lo, spin_hi);
	ring_unmap(&r);
	all = soak_close(s, fd, &count);
	must(all ? count == cost + 2 * n : count <= cost + 2 * n,
	     "a sampled task counted %llu, not %llu", count, cost + 2 * n);
	must(!t.throttles, "throttled, without a limit");
	must(t.samples + t.lost + 1 >= count / period && t.samples + t.lost <= count / period + 1,
	     "%llu samples of %llu, period %llu", t.samples, count, period);
	s->samples += t.samples;
}

static void soak_group(struct soak *s, u64 n, u64 cost)
{
	struct perf_event_attr attr = times_attr(INSTRUCTIONS);
	u64 instructions, branches;
	int leader, sibling;
	bool all;

	leader = ev_open(attr, 0, -1, -1);
	sibling = ev_join(attr, BRANCHES, leader);
	ev_spin(leader, n);
	all = soak_close(s, sibling, &branches);
	all = soak_close(s, leader, &instructions) && all;
	must(instructions <= cost + 2 * n && branches <= cost + n &&
	     (!all || (instructions == cost + 2 * n && branches >= n)),
	     "a group counted %llu and %llu in a loop of %llu", instructions, branches, n);
}

static void soak_inherited(struct soak *s, u64 n)
{
	struct perf_event_attr attr = times_attr(INSTRUCTIONS);
	pid_t pids[2];
	int fd, i;
	u64 count;
	bool all;

	attr.inherit = 1;
	fd = ev_start(attr, 0, -1);
	for (i = 0; i < 2; i++)
		in_child(pids[i])
			spin(n);
	reap_all(pids, 2);
	ev_off(fd);
	/* Newer perf cores lose the time in which a child was not counted. */
	all = soak_close(s, fd, &count) && kernel_before(6, 13);
	must(count < 4 * n + 20000 && (!all || count >= 4 * n), "two children of %llu counted %llu",
	     2 * n, count);
}

static void soak_wide(struct soak *s, int cpu, u64 period)
{
	struct perf_event_attr attr = sampling_attr(INSTRUCTIONS, period, PERF_SAMPLE_IP);
	u64 count;
	int fd;

	attr.read_format = READ_TIMES;
	/* the CPU may be offline, or go offline */
	fd = sys_open(attr, -1, cpu, -1, 0);
	if (fd < 0) {
		must(errno == ENODEV, "an event of CPU %d: %m", cpu);
		return;
	}
	ev_on(fd);
	spin(20000);
	usleep(1000);
	ev_off(fd);
	soak_close(s, fd, &count);
}

static void soak_work(struct soak *s, int i)
{
	u64 state = setting("TEST_FUZZ_SEED", 0x4b4e4350) + i, cost;

	soak_enter(s);
	cost = soak_cost(s);
	s->busy--;
	while (now_ns() < s->deadline) {
		u64 n = random_below(&state, 100000);
		u64 period = PERIOD_MIN + random_below(&state, 2000);

		soak_enter(s);
		switch (random_below(&state, 6)) {
		case 0:
			soak_group(s, n, cost);
			break;
		case 1:
			soak_inherited(s, n);
			break;
		case 2:
			soak_wide(s, random_below(&state, s->cpus), period);
			break;
		default:
			soak_sampled(s, n, period, cost);
		}
		s->busy--;
		s->rounds++;
	}
}

static void soak_reload(struct soak *s)
{
	s->leave = true;
	while (s->busy)
		usleep(1000);
	must_unload();
	must_load();
	s->loads++;
	s->leave = false;
}

static void soak_administrate(struct soak *s)
{
	u64 state = setting("TEST_FUZZ_SEED", 0x4b4e4350);

	while (now_ns() < s->deadline) {
		int cpu = 1 + random_below(&state, s->cpus - 1);

		usleep(20000 + random_below(&state, 200000));
		if (!random_below(&state, 4) && driver_is_module()) {
			soak_reload(s);
			continue;
		}
		set_online(cpu, false);
		usleep(random_below(&state, 5000));
		set_online(cpu, true);
		s->offline++;
	}
}

static u64 kernel_memory(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	char line[128];
	u64 sum = 0, n;

	must(f, "/proc/meminfo: %m");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Slab: %llu", &n) == 1 || sscanf(line, "Percpu: %llu", &n) == 1 ||
		    sscanf(line, "VmallocUsed: %llu", &n) == 1)
			sum += n;
	fclose(f);
	return sum;
}

static void soak_child(void *arg, int i)
{
	if (i < WORKERS)
		soak_work(arg, i);
	else
		soak_administrate(arg);
}

static void soak_children(struct soak *s, u64 seconds)
{
	s->cpus = cpus_online();
	s->deadline = now_ns() + seconds * 1000000000;
	in_children(WORKERS + 1, false, soak_child, s);
}

TEST(soak, "soak", 240)
{
	u64 seconds = setting("TEST_SOAK_SECONDS", 2), truth, memory, pmis;
	struct soak *s = shared(sizeof(*s));

	td_need();
	/* first a short run: some memory is allocated only once */
	soak_children(s, 1);
	memory = kernel_memory();
	pmis = pmi_line();
	truth = td_sum(TD_COUNTED0) + td_sum(TD_COUNTED1);
	memset(s, 0, sizeof(*s));
	soak_children(s, seconds);
	truth = td_sum(TD_COUNTED0) + td_sum(TD_COUNTED1) - truth;
	pmis = pmi_line() - pmis;
	note("%llu rounds, %llu PMIs, %llu samples, %llu CPUs taken, %llu loads, %lld kB more",
	     s->rounds, pmis, s->samples, s->offline, s->loads,
	     (long long)(kernel_memory() - memory));
	must(s->told == truth, "all events together have %llu, the emulator has counted %llu",
	     s->told, truth);
	must(!td_sum(TD_LOST_EDGES), "%llu edges lost", td_sum(TD_LOST_EDGES));
	must(s->rounds > 20 && s->samples > 100, "only %llu rounds, %llu samples",
	     s->rounds, s->samples);
	/* KASAN keeps freed memory for a while; kmemleak checks there. */
	must(scale() > 1 || kernel_memory() < memory + 4096,
	     "the kernel has %llu kB more than before", kernel_memory() - memory);
	must_be_sound("soaking");
}
