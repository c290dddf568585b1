// SPDX-License-Identifier: GPL-2.0-only
/* The driver as a module: loaded, beside another driver, and never unloaded */
#include "lib.h"

#include <sys/klog.h>

#define PMUS	"/sys/bus/event_source/devices"
#define DRIVER	"/tests/modules/knc_pmu.ko"
#define NOPROBE	"/tests/modules/knc_test_noprobe.ko"
#define OWNER	"/tests/modules/knc_test_owner.ko"

bool driver_is_module(void)
{
	const char *driver = getenv("TEST_DRIVER");

	return !driver || !strcmp(driver, "module");
}

void module_need(void)
{
	if (!driver_is_module())
		skip("the driver is no module here");
}

bool driver_loaded(void)
{
	return !access("/sys/module/knc_pmu", F_OK);
}

static int driver_load(void)
{
	pmu_forget();
	return module_insert(DRIVER, "");
}

unsigned int in_log(const char *text)
{
	int size = klogctl(10 /* its size */, NULL, 0);
	unsigned int n = 0;
	char *log, *at;

	must(size > 0, "the kernel's log: %m");
	log = calloc(1, size + 1);
	must(log && klogctl(3 /* all of it */, log, size) >= 0, "the kernel's log: %m");
	for (at = log; (at = strstr(at, text)); at++)
		n++;
	free(log);
	return n;
}

void must_load(void)
{
	must(!driver_load(), "loading: %m");
}

/* rmmod refuses at once, and the driver goes on. */
static void must_stay(const char *what)
{
	u64 begin = now_ns();

	must(syscall(SYS_delete_module, "knc_pmu", 0) == -1, "unloaded %s", what);
	must(errno == EBUSY, "unloading %s: %m", what);
	must(now_ns() - begin < 1000000000, "%s rmmod takes %llu ns", what, now_ns() - begin);
	must_count(what);
}

/*
 * A software event that was in a group with one of the driver's. It refers to the driver's PMU
 * as long as it is open, so that perf core would call functions that are gone.
 */
static void leave_over(void)
{
	int leader = ev_self(INSTRUCTIONS);

	ev_open(software_attr(PERF_COUNT_SW_TASK_CLOCK, .exclude_kernel = 1), 0, -1, leader);
	close(leader);
}

TEST("unload-left", 60)
{
	int ready[2];
	pid_t pid;

	module_need();
	must_stay("without events");
	must_pipe(ready);
	in_child(pid) {
		become_nobody();
		leave_over();
		pipe_wake(ready);
		for (;;)
			pause();
	}
	pipe_wait(ready);
	must_stay("beside a user's software event");
	end_child(pid);
}

/* The counters are reserved: by the module always, built in while there are events. */
static bool owned(void)
{
	must(module_insert(OWNER, "") == -1, "%s has been loaded", OWNER);
	must(errno == EBUSY || errno == ENXIO, "%s: %m", OWNER);
	return errno == EBUSY;
}

/* It fails with this errno, registers nothing, and one line in the log says why. */
static void must_not_load(const char *where, int want, const char *why)
{
	unsigned int lines = in_log("knc_pmu: "), reasons = in_log(why);

	must(driver_load() == -1, "it loads %s", where);
	must(errno == want, "loading %s: %m", where);
	must(in_log("knc_pmu: ") == lines + 1, "loading %s: %u lines in the log", where,
	     in_log("knc_pmu: ") - lines);
	must(in_log(why) == reasons + 1, "the log does not say \"%s\"", why);
	must(!driver_loaded(), "the module is loaded");
	must(access(PMUS "/knc", F_OK), "a PMU has been registered");
}

TEST("load-owned", 60)
{
	module_need();
	must(!owned(), "the counters are reserved before the driver is loaded");
	must(!module_insert(OWNER, "hold=1"), "%s: %m", OWNER);
	must_not_load("beside a driver with a register", EBUSY, "then load again");
	must(cards_kernel() || access(PMUS "/cpu", F_OK), "a PMU has been registered");
	must(!syscall(SYS_delete_module, "knc_test_owner", O_NONBLOCK), "%s: %m", OWNER);
	must(!owned(), "the counters are still reserved");
}

/* If perf_event_overflow() cannot be found, the driver counts but does not sample. */
TEST("nosym", 60)
{
	bool bare = access("/proc/kallsyms", F_OK); /* No kprobes, no tracepoints */
	struct perf_event_attr attr;
	unsigned int lines;
	int fd, i;

	td_need();
	module_need();
	lines = in_log("perf_event_overflow not found");
	must(bare || !module_insert(NOPROBE, ""), "%s: %m", NOPROBE);
	must_load();
	must(in_log("perf_event_overflow not found") == lines + 1,
	     "%u lines in the log say that there is no sampling",
	     in_log("perf_event_overflow not found") - lines);
	must_count("without perf_event_overflow");
	fd = ev_self(INSTRUCTIONS);
	ev_on(fd);
	for (i = 0; i < 5; i++)
		td_burst(1ULL << 38);
	ev_off(fd);
	must(ev_count(fd) >> 38 == 5, "of 5 times 2^38 events counted %llu", ev_count(fd));
	close(fd);
	attr = sampling_attr(INSTRUCTIONS, 100000, PERF_SAMPLE_IP);
	ev_refused(attr, 0, -1, -1, EOPNOTSUPP, "sampling by period");
	ev_refused(attr, -1, 0, -1, EOPNOTSUPP, "CPU-wide sampling");
	attr.freq = 1;
	attr.sample_freq = 1000;
	ev_refused(attr, 0, -1, -1, EOPNOTSUPP, "sampling by frequency");
	if (bare)
		ev_refused(spflt_attr(INSTRUCTIONS), 0, -1, -1, EOPNOTSUPP, "spflt");
	must(in_log("perf_event_overflow not found") == lines + 1, "the log has it more than once");
}

TEST("wrong-cpu", 30)
{
	module_need();
	must_not_load("on another processor", ENODEV, "knc_pmu: not a Knights Corner: found ");
}

/* Beside the kernel's own driver the module does not load, and logs what to type. */
TEST("load-beside", 30)
{
	int fd;

	module_need();
	must(!access(PMUS "/cpu/type", F_OK), "no other driver here");
	must_not_load("beside another driver", EBUSY, "initcall_blacklist=init_hw_perf_events");
	fd = ev_self(INSTRUCTIONS);
	ev_spin(fd, 500000);
	must(ev_count(fd) >= 1000000 && ev_count(fd) < 1000100, "theirs counted %llu of 1000000",
	     ev_count(fd));
}

/* A tick of the cards' kernel: HZ=100 */
#define TICK_NS		10000000

static void must_be_alone(void)
{
	int fd, cpu = cpus_online() - 1;
	u64 reads, ticks;

	td_need();
	pin(cpu);
	fd = ev_start(attr_of(INSTRUCTIONS), -1, cpu);
	reads = td_read(cpu, TD_RDMSRS);
	ticks = now_ns() / TICK_NS;
	spin(50000000);
	reads = td_read(cpu, TD_RDMSRS) - reads;
	ticks = now_ns() / TICK_NS - ticks;
	/* In each tick our driver reads a register once, the kernel's own driver twice. */
	must(ticks && reads <= ticks + 1, "another driver: %llu reads in %llu ticks", reads,
	     ticks);
	close(fd);
}

/* On Linux 2.6.38 the module takes over from a driver without events. */
TEST("take-over", 120)
{
	int fd;

	if (!cards_kernel())
		skip("newer kernels' own driver is not taken over");
	must_count("the kernel's own driver, before");
	fd = ev_self(INSTRUCTIONS);
	must_not_load("beside events", EBUSY, "another driver has the counters");
	close(fd);

	must_load();
	must_count("the module");
	must_sample("the module");
	must_be_alone();
}
