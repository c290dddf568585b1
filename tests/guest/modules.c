// SPDX-License-Identifier: GPL-2.0-only
/* The driver as a module: loaded, unloaded, in use, and next to another one. */
#define _GNU_SOURCE
#include "lib.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/wait.h>

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

/* As before Linux 3.8 */
static int insert_contents(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	void *image = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	int ret;

	if (image == MAP_FAILED)
		return -1;
	ret = syscall(SYS_init_module, image, size, "");
	munmap(image, size);
	return ret;
}

int module_insert(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -1;
	ret = syscall(SYS_finit_module, fd, "", 0);
	if (ret && errno == ENOSYS)
		ret = insert_contents(fd);
	close(fd);
	return ret;
}

int driver_load(void)
{
	pmu_forget();
	return module_insert(DRIVER);
}

int driver_try_unload(void)
{
	return syscall(SYS_delete_module, "knc_pmu", O_NONBLOCK);
}

/* An event that was closed a moment ago may still be on its way out. */
int driver_unload(void)
{
	int tries;

	for (tries = 0; tries < 200; tries++) {
		if (!driver_try_unload())
			return 0;
		if (errno != EWOULDBLOCK)
			return -1;
		usleep(10000);
	}
	return -1;
}

unsigned int in_log(const char *text)
{
	int size = klogctl(10 /* its size */, NULL, 0);
	unsigned int n = 0;
	char *log, *at;

	must(size > 0, "the kernel's log: %s", strerror(errno));
	log = calloc(1, size + 1);
	must(log && klogctl(3 /* all of it */, log, size) >= 0, "the kernel's log: %s",
	     strerror(errno));
	for (at = log; (at = strstr(at, text)); at++)
		n++;
	free(log);
	return n;
}

static void must_count(const char *when)
{
	int fd = ev_self(INSTRUCTIONS);
	u64 base;

	must(!measured_spin(fd, 0, 0), "enabling or disabling failed");
	base = ev_count(fd);
	must(!measured_spin(fd, 50000, 0), "enabling or disabling failed");
	must(ev_count(fd) == 2 * base + 100000, "%s: counted %llu, not %llu", when,
	     (unsigned long long)ev_count(fd), (unsigned long long)2 * base + 100000);
	close(fd);
}

static void must_sample(const char *when)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	struct tally t = {};
	struct ring r;
	int fd;

	attr.sample_period = 10007;
	attr.sample_type = PERF_SAMPLE_IP;
	fd = ev_open(&attr, 0, -1, -1);
	ring_map(&r, fd, 8, PERF_SAMPLE_IP);
	must(!measured_spin(fd, 100000, 0), "enabling or disabling failed");
	ring_tally(&r, &t, spin_lo, spin_hi);
	must(t.samples >= 19 && t.samples <= 20, "%s: %llu samples, want 19", when,
	     (unsigned long long)t.samples);
	ring_unmap(&r);
	close(fd);
}

/* The type that the PMU has now, if there is one; not the built-in driver's */
static bool pmu_type(u32 *type)
{
	char path[96];
	FILE *f;
	bool good;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", pmu()->name);
	f = fopen(path, "re");
	if (!f)
		return false;
	good = fscanf(f, "%u", type) == 1;
	fclose(f);
	return good;
}

/* Events being opened, used and closed while the driver comes and goes */
static void opener(bool *stop, u64 *opened)
{
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		struct perf_event_attr attr = { .size = sizeof(attr) };
		int fd;

		if (!pmu_type(&attr.type)) {
			usleep(100);
			continue;
		}
		attr.config = INSTRUCTIONS;
		attr.sample_period = 5003;
		fd = sys_open(&attr, 0, -1, -1, 0);
		if (fd < 0) {
			must(errno == ENOENT || errno == ENODEV || errno == ENOSYS ||
			     errno == EOPNOTSUPP || errno == EBUSY,
			     "opening while the driver comes and goes: %s", strerror(errno));
			usleep(100);
			continue;
		}
		spin(5000);
		ev_count(fd);
		close(fd);
		__atomic_add_fetch(opened, 1, __ATOMIC_RELAXED);
		usleep(500);
	}
}

TEST(reload, "reload", 300)
{
	int rounds = 100 / (scale() > 1 ? 4 : 1), i, busy = 0;
	struct { bool stop; u64 opened; } *s = shared(sizeof(*s));
	unsigned int lines;
	pid_t pids[2];

	module_need();
	sample_limit(NO_SAMPLE_LIMIT);
	must(driver_loaded() || !driver_load(), "loading: %s", strerror(errno));
	lines = in_log("registered as");
	for (i = 0; i < rounds / 2; i++) {
		must_count("before unloading");
		must_sample("before unloading");
		must(!driver_unload(), "round %d, unloading: %s", i, strerror(errno));
		must(!driver_loaded(), "round %d: unloaded, and still there", i);
		must(!driver_load(), "round %d, loading: %s", i, strerror(errno));
	}
	must(in_log("registered as") > lines, "loading says nothing in the log");

	for (i = 0; i < 2; i++) {
		pids[i] = fork();
		must(pids[i] >= 0, "fork: %s", strerror(errno));
		if (!pids[i]) {
			opener(&s->stop, &s->opened);
			_exit(0);
		}
	}
	for (i = 0; i < rounds / 2; i++) {
		while (driver_try_unload()) {
			must(errno == EWOULDBLOCK, "round %d, unloading under load: %s", i,
			     strerror(errno));
			busy++;
			usleep(200);
		}
		must(!driver_load(), "round %d, loading under load: %s", i, strerror(errno));
		usleep(1000);
	}
	s->stop = true;
	for (i = 0; i < 2; i++)
		reap(pids[i]);
	note("%llu events opened meanwhile, %d times in use", (unsigned long long)s->opened, busy);
	must_count("at the end");
	must_sample("at the end");
}

static void must_be_busy(const char *what)
{
	must(driver_try_unload() == -1, "unloaded with %s", what);
	must(errno == EWOULDBLOCK || errno == EBUSY, "with %s: %s", what, strerror(errno));
	must(driver_loaded(), "gone with %s", what);
}

TEST(unload_busy, "unload-busy", 60)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	struct ring r;
	int fd, go[2];
	pid_t pid;
	char c;

	module_need();
	must(driver_loaded(), "the driver is not loaded");
	fd = ev_self(INSTRUCTIONS);
	must_be_busy("a disabled event");
	ev_on(fd);
	must_be_busy("an event of a task");
	close(fd);

	fd = ev_open(&attr, -1, 0, -1);
	must_be_busy("a CPU-wide event");
	close(fd);

	/* a buffer keeps its event, whatever becomes of the descriptor */
	attr.sample_period = 100000;
	attr.sample_type = PERF_SAMPLE_IP;
	fd = ev_open(&attr, 0, -1, -1);
	ring_map(&r, fd, 8, PERF_SAMPLE_IP);
	ev_on(fd);
	close(fd);
	must_be_busy("a mapped buffer");
	ring_unmap(&r);

	/* an event in another process */
	must(!pipe(go), "pipe: %s", strerror(errno));
	pid = fork();
	must(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		fd = ev_self(INSTRUCTIONS);
		ev_on(fd);
		if (write(go[1], "", 1) != 1)
			_exit(2);
		for (;;)
			pause();
	}
	must(read(go[0], &c, 1) == 1, "pipe: %s", strerror(errno));
	must_be_busy("another process's event");
	/* killed, it takes its event with it */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);

	must(!driver_unload(), "unloading without events: %s", strerror(errno));
	must(!driver_load(), "loading: %s", strerror(errno));
	must_count("loaded again");
}

/* Who has the counters: somebody while there are events, the module all along. */
static bool owned(void)
{
	must(module_insert(OWNER) == -1, "%s has been loaded", OWNER);
	must(errno == EBUSY || errno == ENXIO, "%s: %s", OWNER, strerror(errno));
	return errno == EBUSY;
}

TEST(ownership, "ownership", 60)
{
	bool always = driver_is_module() && pmu()->core;
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	int fd, tries, cpu;

	fd = ev_self(INSTRUCTIONS);
	must(owned(), "with an event, the counters are anybody's");
	close(fd);
	/* An event that was closed a moment ago may still be on its way out. */
	for (tries = 0; tries < 100 && owned() != always; tries++)
		usleep(10000);
	must(owned() == always, "without events, the counters are %s",
	     always ? "anybody's" : "still somebody's");
	if (!driver_is_module())
		return;
	must(!driver_unload(), "unloading: %s", strerror(errno));
	must(!owned(), "the module has gone with the counters");
	must(!driver_load(), "loading: %s", strerror(errno));
	/* It has all CPUs again. */
	for (cpu = 0; cpu < cpus_online(); cpu++)
		close(ev_open(&attr, -1, cpu, -1));
	must_be_sound("loading");
}

/* Where nobody tells where perf_event_overflow() is: counting, no sampling */
TEST(nosym, "nosym", 60)
{
	struct perf_event_attr attr = { };
	unsigned int lines;

	module_need();
	lines = in_log("perf_event_overflow not found");
	if (driver_loaded())
		must(!driver_unload(), "unloading: %s", strerror(errno));
	must(!module_insert(NOPROBE), "%s: %s", NOPROBE, strerror(errno));
	must(!driver_load(), "loading: %s", strerror(errno));
	must(in_log("perf_event_overflow not found") == lines + 1,
	     "%u lines in the log say that there is no sampling",
	     in_log("perf_event_overflow not found") - lines);
	must_count("without perf_event_overflow");
	attr = user_attr(INSTRUCTIONS);
	attr.sample_period = 100000;
	attr.sample_type = PERF_SAMPLE_IP;
	ev_refused(&attr, 0, -1, -1, EOPNOTSUPP, "sampling by period");
	ev_refused(&attr, -1, 0, -1, EOPNOTSUPP, "CPU-wide sampling");
	attr.freq = 1;
	attr.sample_freq = 1000;
	ev_refused(&attr, 0, -1, -1, EOPNOTSUPP, "sampling by frequency");
	must(in_log("perf_event_overflow not found") == lines + 1, "says it again and again");
	must(!driver_unload(), "unloading: %s", strerror(errno));
}

/* Any other processor: nothing is registered, and one line says why. */
TEST(wrong_cpu, "wrong-cpu", 30)
{
	unsigned int lines = in_log("knc_pmu: ");

	module_need();
	must(driver_load() == -1, "loads on another processor");
	must(errno == ENODEV, "loading on another processor: %s", errname(errno));
	must(in_log("knc_pmu: ") == lines + 1, "%u lines in the log", in_log("knc_pmu: ") - lines);
	must(in_log("knc_pmu: not a Knights Corner: found ") == 1, "the log does not say why");
	must(access("/sys/bus/event_source/devices/knc", F_OK), "a PMU is there all the same");
}

/*
 * A kernel with a driver of its own: whoever has the counters has them all, and
 * the other is told so.
 */
TEST(stock_busy, "busy", 60)
{
	struct perf_event_attr own = user_attr(INSTRUCTIONS), theirs = own;
	unsigned int lines;
	u64 value;
	int fd, round;

	if (pmu()->core)
		skip("no other driver here");
	must(!access("/sys/bus/event_source/devices/cpu/type", F_OK),
	     "no other driver here, and yet the PMU is called %s", pmu()->name);
	theirs.type = PERF_TYPE_RAW;
	for (round = 0; round < 5; round++) {
		/* theirs first */
		lines = in_log("held by the kernel's built-in PMU driver");
		fd = ev_open(&theirs, 0, -1, -1);
		ev_refused(&own, 0, -1, -1, EBUSY, "ours, while the built-in driver has an event");
		ev_refused(&own, -1, 0, -1, EBUSY, "ours, CPU-wide");
		must(round || in_log("held by the kernel's built-in PMU driver") > lines,
		     "nothing in the log says who holds the counters");
		must(!measured_spin(fd, 500000, 0), "enabling or disabling failed");
		value = ev_count(fd);
		must(value >= 1000000 && value < 1000100, "theirs counted %llu of 1000000",
		     (unsigned long long)value);
		close(fd);

		/* then ours */
		fd = ev_open(&own, 0, -1, -1);
		ev_refused(&theirs, 0, -1, -1, EBUSY, "theirs, while ours holds the counters");
		must(!measured_spin(fd, 500000, 0), "enabling or disabling failed");
		value = ev_count(fd);
		must(value >= 1000000 && value < 1000100, "ours counted %llu of 1000000",
		     (unsigned long long)value);
		close(fd);
	}
	must_sample("after the other driver");
}

/* The driver reads no register but in its interrupts; the other one does at each tick. */
static void must_be_alone(void)
{
	struct perf_event_attr attr = attr_of(INSTRUCTIONS);
	int fd, cpu = cpus_online() - 1;
	u64 before;

	td_need();
	pin(cpu);
	fd = ev_open(&attr, -1, cpu, -1);
	ev_on(fd);
	before = td_read(cpu, TD_RDMSRS);
	spin(50000000);
	must(td_read(cpu, TD_RDMSRS) == before, "somebody else is at the registers");
	close(fd);
}

/*
 * On the cards' kernel the module takes the counters over from the kernel's own
 * driver, unless that has events, and gives them back.
 */
TEST(take_over, "take-over", 120)
{
	unsigned int lines = in_log("held by the kernel's built-in PMU driver");
	int fd;

	if (!cards_kernel())
		skip("newer kernels' own driver is not taken over");
	must(!driver_loaded() || !driver_unload(), "unloading: %s", strerror(errno));
	pmu_forget();
	must_count("the kernel's own driver, before");
	fd = ev_self(INSTRUCTIONS);
	must(driver_load() == -1 && errno == EBUSY, "loading beside events: %s",
	     errname(errno));
	must(in_log("held by the kernel's built-in PMU driver") > lines,
	     "the log does not say who has the counters");
	pmu_forget();
	close(fd);

	must(!driver_load(), "loading: %s", strerror(errno));
	must_count("the module");
	must_sample("the module");
	must_be_alone();
	must(!driver_unload(), "unloading: %s", strerror(errno));
	pmu_forget();
	must_count("the kernel's own driver, after");
	must_sample("the kernel's own driver, after");
	must(!driver_load(), "loading: %s", strerror(errno));
}
