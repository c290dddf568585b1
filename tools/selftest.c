// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts known numbers of events, for tools/card-check. One file that any
 * compiler for the card takes, with headers of any age: link it statically.
 *
 * It runs on CPU 0 and each thread of another core, also with sleeps, in which a core may reach
 * its deep states. It writes no register, and ends if something else uses the counters.
 *
 * Prints a line for each check. The status is 1 if one has failed, 2 if none was done.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

typedef unsigned long long u64;
typedef unsigned int u32;

/* perf_event_open(2), as it was first: 64 bytes */
struct attr {
	u32 type, size;
	u64 config, period, sample_type, read_format, flags;
	u32 wakeup, bp_type;
	u64 config1;
};

#define SYS_OPEN	298
#define DISABLED	(1ULL << 0)
#define EXCLUDE_KERNEL	(1ULL << 5)
#define SAMPLE_IP	(1ULL << 0)
#define READ_TIMES	3
#define IOC_ENABLE	0x2400
#define IOC_DISABLE	0x2401

#define TYPE_HARDWARE	0
#define TYPE_RAW	4

#define PERFEVTSEL0	0x28
#define GLOBAL_CTRL	0x2f
#define SELECT_EN	(1ULL << 22)

/* Of the whole program; it takes half a minute. */
#ifndef LIMIT_SECONDS
#define LIMIT_SECONDS	300
#endif
/* How many pieces a loop is in, with sleeps between */
#define PIECES		20
/* Of a sample buffer, besides the first page */
#define DATA_PAGES	32

struct event {
	const char *name;
	u32 type;
	u64 config, per_round;
};

static const struct event counted[] = {
	{ "instructions", TYPE_RAW, 0x16, 2 },
	{ "branches", TYPE_RAW, 0x12, 1 },
};

static const struct event generic = { "generic instructions", TYPE_HARDWARE, 1, 2 };
static const struct event cycles = { "cycles", TYPE_RAW, 0x2a, 0 };

static int bad;
/* The CPU that it runs on */
static int cpu;

static void result(const char *name, const char *how, int good, const char *what, u64 got,
		   const char *want, u64 number)
{
	printf("%s cpu %d: %s%s: %s %llu, want %s%llu\n", good ? "ok" : "FAIL", cpu, name, how,
	       what, got, want, number);
	bad |= !good;
}

static void failed(const char *what)
{
	printf("FAIL cpu %d: %s: %s\n", cpu, what, strerror(errno));
	bad = 1;
}

static void not_done(const char *why, const char *what)
{
	printf("self-test: not done: %s%s\n", why, what);
	exit(2);
}

static void too_long(int sig)
{
	static const char text[] = "self-test: FAILED: it has not ended in time\n";

	(void)sig;
	_exit(write(STDOUT_FILENO, text, sizeof(text) - 1) < 0 ? 3 : 1);
}

/* Of this task, or of all that this CPU does */
static int open_event(const struct event *event, u64 period, u64 flags, int wide, int group)
{
	const struct attr attr = {
		.type = event->type, .size = sizeof(attr), .config = event->config,
		.period = period, .sample_type = period ? SAMPLE_IP : 0,
		.read_format = READ_TIMES, .flags = flags | (group < 0 ? DISABLED : 0),
	};
	int fd = syscall(SYS_OPEN, &attr, wide ? -1 : 0, wide ? cpu : -1, group, 0);

	if (fd < 0 && errno == EBUSY)
		not_done("a counter is in use: perf says so of ", event->name);
	if (fd < 0)
		failed(event->name);
	return fd;
}

/* Nothing else has the counters if this event was on one whenever it could. */
static u64 read_event(int fd)
{
	u64 now[3] = { 0, 0, 0 };

	if (read(fd, now, sizeof(now)) != sizeof(now))
		failed("read");
	if (now[2] < now[1])
		not_done("a counter is in use: ", "an event has waited for it");
	return now[0];
}

/* Two instructions for each round, one of them a branch; the rest is the same. */
static void spin(u64 rounds)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r" (rounds) : : "cc");
}

/*
 * The first sleep is long, and the others are just long enough for a deep state. There is
 * one copy of it, so that runs of different lengths differ by the loop alone.
 */
static void __attribute__((noinline, noclone)) run(int fd, u64 rounds, int pieces)
{
	int i;

	ioctl(fd, IOC_ENABLE, 0);
	for (i = 0; i < pieces; i++) {
		if (i)
			poll(NULL, 0, i == 1 ? 500 : 30);
		spin(rounds / pieces);
	}
	ioctl(fd, IOC_DISABLE, 0);
}

/* What a long run has more than a short one is the loop's alone. */
static void check_counts(const struct event *events, int n, int pieces)
{
	const char *how = n == 1 ? "" : pieces == 1 ? ", of two" : ", of two, with sleeps";
	u64 few[2], more;
	int fds[2], i;

	for (i = 0; i < n; i++) {
		fds[i] = open_event(&events[i], 0, EXCLUDE_KERNEL, 0, i ? fds[0] : -1);
		if (fds[i] < 0)
			return;
	}
	run(fds[0], 1000, pieces);
	for (i = 0; i < n; i++)
		few[i] = read_event(fds[i]);
	run(fds[0], 1001000, pieces);
	for (i = 0; i < n; i++) {
		more = read_event(fds[i]) - 2 * few[i];
		result(events[i].name, how, more == 1000000 * events[i].per_round, "counted",
		       more, "", 1000000 * events[i].per_round);
	}
	while (n--)
		close(fds[n]);
}

/* Runs the loop, and returns how many samples an event has got meanwhile. */
static u64 sampled(int fd, u64 rounds, int pieces)
{
	long page = sysconf(_SC_PAGESIZE);
	size_t size = (1 + DATA_PAGES) * page;
	char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	u64 head;

	if (map == MAP_FAILED) {
		failed("the sample buffer");
		return 0;
	}
	run(fd, rounds, pieces);
	/* Where the data end is told at byte 1024; a record is 8 bytes and the address. */
	head = *(volatile u64 *)(map + 1024);
	munmap(map, size);
	return head / 16;
}

/* One sample for each period, and all of them; half a period is left at the end. */
static void check_samples(int pieces)
{
	const u64 period = 100000, want = 200;
	int fd = open_event(counted, period, EXCLUDE_KERNEL, 0, -1);
	u64 got;

	if (fd < 0)
		return;
	got = sampled(fd, period * want / 2 + period / 4, pieces);
	read_event(fd);
	result("samples", pieces > 1 ? ", with sleeps" : "", got == want, "got", got, "", want);
	close(fd);
}

/*
 * Events of the CPU are on their counters while it sleeps, and some periods end as it wakes.
 * Others may run there: only limits are known, except for the number of samples.
 */
static void check_wide(void)
{
	/* the most is what the card has in a minute */
	const u64 period = 200003, least = 20000000, most = 1ULL << 36;
	u64 samples, all, clock;
	int fd, sibling;

	if (geteuid()) {
		printf("skip cpu %d: events of the CPU: it takes root to open them\n", cpu);
		return;
	}
	fd = open_event(counted, period, 0, 1, -1);
	sibling = fd < 0 ? fd : open_event(&cycles, 0, 0, 1, fd);
	if (sibling < 0)
		return;
	samples = sampled(fd, least / 2, PIECES);
	all = read_event(fd);
	clock = read_event(sibling);
	result("instructions of the CPU", ", with sleeps", all >= least && all <= most, "counted",
	       all, "at least ", least);
	result("samples of the CPU", ", with sleeps", samples == all / period, "got", samples, "",
	       all / period);
	result("cycles of the CPU", ", with sleeps", clock >= all / 2 && clock <= most, "counted",
	       clock, "at least ", all / 2);
	close(sibling);
	close(fd);
}

static void check_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one)) {
		failed("sched_setaffinity");
		return;
	}
	/* Both counters first: the check shows that nothing else has one. */
	check_counts(counted, 2, 1);
	check_counts(counted, 1, 1);
	check_counts(&generic, 1, 1);
	check_samples(1);
	check_counts(counted, 2, PIECES);
	check_samples(PIECES);
	check_wide();
}

/* True if the register can be read, which needs root and the driver of /dev/cpu */
static int read_register(int of, u32 number, u64 *value)
{
	char path[32];
	int fd, done;

	snprintf(path, sizeof(path), "/dev/cpu/%d/msr", of);
	fd = open(path, O_RDONLY);
	done = fd >= 0 && pread(fd, value, sizeof(*value), number) == sizeof(*value);
	if (fd >= 0)
		close(fd);
	return done;
}

static void show_registers(void)
{
	static const u32 regs[] = { 0x20, 0x21, 0x28, 0x29, 0x2c, 0x2d, 0x2f };
	unsigned int i;
	u64 value;

	for (i = 0; i < ARRAY_SIZE(regs); i++) {
		if (read_register(0, regs[i], &value))
			printf("cpu 0: register 0x%x: 0x%llx\n", regs[i], value);
		else
			printf("cpu 0: register 0x%x: %s\n", regs[i], strerror(errno));
	}
}

/* This program has no event yet. */
static void look_at_counters(int of)
{
	char what[32];
	u64 ctrl, select;
	u32 i;

	for (i = 0; i < 2; i++) {
		if (!read_register(of, GLOBAL_CTRL, &ctrl) || !(ctrl >> i & 1) ||
		    !read_register(of, PERFEVTSEL0 + i, &select) || !(select & SELECT_EN))
			continue;
		snprintf(what, sizeof(what), "%u of cpu %d", i, of);
		not_done("a counter is in use: ", what);
	}
}

/* VTune's drivers and oprofile program the counters without perf. */
static void look_at_modules(void)
{
	static const char * const others[] = {
		"sep3", "sep4", "sep5", "pax", "vtsspp", "oprofile",
	};
	FILE *modules = fopen("/proc/modules", "r");
	char name[64];
	unsigned int i;

	while (modules && fscanf(modules, "%63s%*[^\n]", name) == 1)
		for (i = 0; i < ARRAY_SIZE(others); i++)
			if (!strncmp(name, others[i], strlen(others[i])))
				not_done("a counter may be in use: this module is loaded: ", name);
	if (modules)
		fclose(modules);
}

/* The core that a CPU is on, or -1 if the CPU is not there */
static int core_of(int of)
{
	char path[96];
	int core = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/core_id", of);
	file = fopen(path, "r");
	if (file && fscanf(file, "%d", &core) != 1)
		core = -1;
	if (file)
		fclose(file);
	return core;
}

/* CPU 0, whose core has no deep states on a card, and those of another core if there is one */
static void choose(cpu_set_t *set)
{
	int i, core = core_of(0);

	for (i = 1; i < CPU_SETSIZE && core == core_of(0); i++)
		if (core_of(i) >= 0)
			core = core_of(i);
	CPU_ZERO(set);
	CPU_SET(0, set);
	for (i = 1; i < CPU_SETSIZE; i++)
		if (core >= 0 && core_of(i) == core)
			CPU_SET(i, set);
}

int main(void)
{
	cpu_set_t set;

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGALRM, too_long);
	alarm(LIMIT_SECONDS);
	show_registers();
	look_at_modules();
	if (access("/sys/bus/event_source/devices/knc/format/spflt", F_OK) &&
	    access("/sys/bus/event_source/devices/cpu/format/spflt", F_OK))
		not_done("the driver is not loaded", "");
	choose(&set);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			look_at_counters(cpu);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			check_cpu();
	puts(bad ? "self-test: FAILED" : "self-test: all is as it should be");
	return bad;
}
