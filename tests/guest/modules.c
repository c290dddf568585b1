// SPDX-License-Identifier: GPL-2.0-only
/* The driver as a module: loaded, unloaded, in use, and beside another driver */
#include "lib.h"

#include <sys/klog.h>

#define PMUS	"/sys/bus/event_source/devices"
#define DRIVER	"/tests/modules/knc_pmu.ko"
#define NOPROBE	"/tests/modules/knc_test_noprobe.ko"
#define OWNER	"/tests/modules/knc_test_owner.ko"
#define NAMESAKE	"/tests/modules/knc_test_pmu.ko"

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
static int insert_contents(int fd, const char *parameters)
{
	off_t size = lseek(fd, 0, SEEK_END);
	void *image = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	int ret;

	if (image == MAP_FAILED)
		return -1;
	ret = syscall(SYS_init_module, image, size, parameters);
	munmap(image, size);
	return ret;
}

static int insert_with(const char *path, const char *parameters)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -1;
	ret = syscall(SYS_finit_module, fd, parameters, 0);
	if (ret && errno == ENOSYS)
		ret = insert_contents(fd, parameters);
	close(fd);
	return ret;
}

int module_insert(const char *path)
{
	return insert_with(path, "");
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

void must_unload(void)
{
	must(!driver_loaded() || !driver_unload(), "unloading: %m");
}

static void opener(bool *stop, u64 *opened)
{
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		struct perf_event_attr attr = { .size = sizeof(attr) };
		u64 type;
		int fd;

		if (!file_number(text_of(PMUS "/%s/type", pmu()->name), &type)) {
			usleep(100);
			continue;
		}
		attr.type = type;
		attr.config = INSTRUCTIONS;
		attr.sample_period = 5003;
		fd = sys_open(attr, 0, -1, -1, 0);
		if (fd < 0) {
			must(errno == ENOENT || errno == ENODEV || errno == ENOSYS ||
			     errno == EOPNOTSUPP || errno == EBUSY,
			     "opening while the driver comes and goes: %m");
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
	int rounds = 40 / (scale() > 1 ? 2 : 1), i, busy = 0;
	struct { bool stop; u64 opened; } *s = shared(sizeof(*s));
	unsigned int lines;
	pid_t pids[2];

	module_need();
	must(driver_loaded() || !driver_load(), "loading: %m");
	lines = in_log("registered as");
	for (i = 0; i < rounds / 2; i++) {
		must_count("before unloading");
		must_sample("before unloading");
		must(!driver_unload(), "round %d, unloading: %m", i);
		must(!driver_loaded(), "round %d: unloaded, and still there", i);
		must(!driver_load(), "round %d, loading: %m", i);
	}
	must(in_log("registered as") > lines, "loading says nothing in the log");

	/* read the PMU's name now: the file may be gone for a moment */
	pmu();
	for (i = 0; i < 2; i++)
		in_child(pids[i])
			opener(&s->stop, &s->opened);
	for (i = 0; i < rounds / 2; i++) {
		while (driver_try_unload()) {
			must(errno == EWOULDBLOCK, "round %d, unloading under load: %m", i);
			busy++;
			usleep(200);
		}
		must(!driver_load(), "round %d, loading under load: %m", i);
		usleep(1000);
	}
	s->stop = true;
	reap_all(pids, 2);
	note("%llu events opened meanwhile, %d times in use", s->opened, busy);
	must_count("at the end");
	must_sample("at the end");
}

/* Of an event that was opened enabled: perf core adds it at once. */
static void must_count_first(pid_t pid, int cpu)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	u64 counted;
	int fd;

	must_unload();
	must_load();
	attr.disabled = 0;
	fd = ev_open(attr, pid, cpu, -1);
	counted = ev_count(fd);
	spin(5000);
	counted = ev_count(fd) - counted;
	must(counted >= 10000, "the first event after loading: %llu of 10000 instructions",
	     counted);
	close(fd);
}

TEST(reload_first, "reload-first", 60)
{
	int cpu;

	module_need();
	for (cpu = 0; cpu < cpus_online(); cpu++) {
		pin(cpu);
		must_count_first(0, -1);
		must_count_first(-1, cpu);
	}
}

static void must_be_busy(const char *what)
{
	must(driver_try_unload() == -1, "unloaded with %s", what);
	must(errno == EWOULDBLOCK || errno == EBUSY, "with %s: %m", what);
	must(driver_loaded(), "gone with %s", what);
}

/*
 * A software event stays where the driver's event of its group was, when that is closed. The
 * driver waits for its end, or perf core would call functions that are gone.
 */
TEST(unload_left, "unload-left", 60)
{
	struct perf_event_attr attr = user_attr(PERF_COUNT_SW_DUMMY);
	int fd, i;
	pid_t pid;

	module_need();
	attr.type = PERF_TYPE_SOFTWARE;
	fd = ev_open(attr, 0, -1, -1);
	close(ev_join(user_attr(INSTRUCTIONS), INSTRUCTIONS, fd));
	in_child(pid) {
		close(fd);
		must(!driver_unload(), "unloading: %m");
	}
	for (i = 0; i < 100; i++)
		usleep(2000);
	must(driver_loaded(), "it is gone, but not the event");
	close(fd);
	reap(pid);
	must(!driver_loaded(), "it has not gone");
	must_load();
}

TEST(unload_busy, "unload-busy", 60)
{
	struct ring r;
	int fd, go[2];
	pid_t pid;

	module_need();
	must(driver_loaded(), "the driver is not loaded");
	fd = ev_self(INSTRUCTIONS);
	must_be_busy("a disabled event");
	ev_on(fd);
	must_be_busy("an event of a task");
	close(fd);

	fd = ev_open(user_attr(INSTRUCTIONS), -1, 0, -1);
	must_be_busy("a CPU-wide event");
	close(fd);

	/* a mapped buffer keeps its event after the file is closed */
	fd = ring_self(&r, 8, 100000);
	ev_on(fd);
	close(fd);
	must_be_busy("a mapped buffer");
	ring_unmap(&r);

	must_pipe(go);
	in_child(pid) {
		ev_on(ev_self(INSTRUCTIONS));
		pipe_wake(go);
		for (;;)
			pause();
	}
	pipe_wait(go);
	must_be_busy("another process's event");
	end_child(pid);

	must(!driver_unload(), "unloading without events: %m");
	must_load();
	must_count("loaded again");
}

/*
 * Whether the counters are reserved: always by the module, built in only while there
 * are events
 */
static bool owned(void)
{
	must(module_insert(OWNER) == -1, "%s has been loaded", OWNER);
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

/* perf core refuses the PMU. Nothing has loaded the module before in this boot. */
TEST(load_fails, "load-fails", 60)
{
	module_need();
	must(!driver_loaded(), "the driver is loaded");
	must(!module_insert(NAMESAKE), "%s: %m", NAMESAKE);
	must(driver_load() == -1 && errno == EEXIST, "loading beside a PMU of this name: %m");
	must(!owned(), "the counters are still reserved");
	must(access("/sys/bus/platform/devices/knc-pmu-context", F_OK),
	     "a device was left behind");
	must(!syscall(SYS_delete_module, "knc_test_pmu", O_NONBLOCK), "%s: %m", NAMESAKE);
	must_load();
	must_be_sound("loading");
}

TEST(ownership, "ownership", 60)
{
	bool always = driver_is_module();
	int fd, tries, cpu;

	fd = ev_self(INSTRUCTIONS);
	must(owned(), "with an event, the counters are not reserved");
	close(fd);
	/* An event that was closed a moment ago may still be on its way out. */
	for (tries = 0; tries < 100 && owned() != always; tries++)
		usleep(10000);
	must(owned() == always, "without events, the counters are %s",
	     always ? "not reserved" : "still reserved");
	if (!always)
		return;
	must_unload();
	must(!owned(), "the module is unloaded, but the counters are reserved");
	must(!insert_with(OWNER, "hold=1"), "%s: %m", OWNER);
	must_not_load("beside a driver with a register", EBUSY, "then load again");
	must(cards_kernel() || access(PMUS "/cpu", F_OK), "a PMU has been registered");
	must(!syscall(SYS_delete_module, "knc_test_owner", O_NONBLOCK), "%s: %m", OWNER);
	must_load();
	for (cpu = 0; cpu < cpus_online(); cpu++)
		close(ev_open(user_attr(INSTRUCTIONS), -1, cpu, -1));
	must_be_sound("loading");
}

/*
 * The module is unloaded while a task that closes an event is preempted. From some
 * instruction of close() on this succeeds, and each instruction from there on is tried.
 * Each time the module and its PMU must both be gone, or both be there.
 */
#define CLOSE_POINTS	60
/* How long the closing task is preempted: less than the kernel's limit for SCHED_FIFO */
#define HOG_MS		300

static struct closing {
	int cpu;
	int go[2], done[2], wake[2];
	pid_t closer, hog;
	/* shared */
	struct {
		u32 after, left;
		bool hogs, closed;
	} *s;
} closing;

static void closer(void)
{
	char c;

	pin(closing.cpu);
	must(td_present(), "no test device");
	while (read(closing.go[0], &c, 1) == 1) {
		int fd = ev_self(INSTRUCTIONS);

		ev_on(fd);
		td_inject(closing.cpu, TD_STOP, TD_RING0, closing.s->after);
		close(fd);
		closing.s->left = td_read(closing.cpu, TD_INJECT_LEFT);
		td_inject(closing.cpu, TD_NOTHING, 0, 0);
		__atomic_store_n(&closing.s->closed, true, __ATOMIC_RELEASE);
		pipe_wake(closing.done);
	}
}

static void hog(void)
{
	struct sched_param first = { .sched_priority = 50 };
	u64 begin;
	char c;

	pin(closing.cpu);
	must(!sched_setscheduler(0, SCHED_FIFO, &first), "SCHED_FIFO: %m");
	while (read(closing.wake[0], &c, 1) == 1) {
		__atomic_store_n(&closing.s->hogs, true, __ATOMIC_RELEASE);
		begin = now_ns();
		while (now_ns() - begin < HOG_MS * 1000000ULL &&
		       __atomic_load_n(&closing.s->hogs, __ATOMIC_RELAXED))
			;
		__atomic_store_n(&closing.s->hogs, false, __ATOMIC_RELEASE);
	}
}

static pid_t run_as(void (*what)(void))
{
	pid_t pid;

	in_child(pid) {
		close(closing.go[1]);
		close(closing.wake[1]);
		what();
	}
	return pid;
}

/* Unloads with the task stopped after @after instructions; true if that was possible */
static bool unload_at(u32 after)
{
	bool unloaded;

	closing.s->after = after;
	closing.s->closed = false;
	pipe_wake(closing.go);
	while (!td_read(closing.cpu, TD_STOPPED) &&
	       !__atomic_load_n(&closing.s->closed, __ATOMIC_ACQUIRE))
		sched_yield();
	/* the wakeup lets the stopped task go on, and preempts it */
	pipe_wake(closing.wake);
	while (!__atomic_load_n(&closing.s->hogs, __ATOMIC_ACQUIRE))
		sched_yield();
	unloaded = !driver_try_unload();
	must(unloaded || errno == EWOULDBLOCK, "unloading at %u: %m", after);
	__atomic_store_n(&closing.s->hogs, false, __ATOMIC_RELEASE);
	pipe_wait(closing.done);
	if (!unloaded)
		return false;
	must(access(PMUS "/cpu", F_OK), "unloaded at %u, and its PMU is still there", after);
	must(!driver_load(), "unloaded at %u, loading: %m", after);
	must_count("unloaded, and loaded again");
	return true;
}

TEST(unload_closing, "unload-closing", 600)
{
	u32 never, first, point;

	module_need();
	td_need();
	if (kernel_before(6, 15))
		skip("this perf core does not look for events as a PMU goes");
	closing.cpu = cpus_online() - 1;
	closing.s = shared(sizeof(*closing.s));
	must_pipe(closing.go);
	must_pipe(closing.done);
	must_pipe(closing.wake);
	pin(0);
	closing.closer = run_as(closer);
	closing.hog = run_as(hog);
	/* the length of close(), and the first instruction where unloading succeeds */
	unload_at(1 << 20);
	first = (1 << 20) - closing.s->left;
	note("%u instructions from the order to the end", first);
	for (never = 0; first - never > 1;) {
		point = (never + first) / 2;
		if (unload_at(point))
			first = point;
		else
			never = point;
	}
	note("unloaded from instruction %u on", first);
	for (point = first; point < first + CLOSE_POINTS; point++)
		unload_at(point);
	close(closing.go[1]);
	close(closing.wake[1]);
	reap(closing.closer);
	reap(closing.hog);
	must_be_sound("unloading while events are closed");
}

/* A write to this file starts a timer on each CPU, in memory that is freed with the PMU. */
static bool set_interval(unsigned int ms)
{
	const char *path = text_of(PMUS "/%s/perf_event_mux_interval_ms", pmu()->name);

	return !file_write(path, text_of("%u", ms));
}

/*
 * The kernel lists all timers; only our PMU has one here. Up to Linux 6.1 perf core
 * never frees their memory.
 */
static void must_have_no_timer(void)
{
	FILE *f = kernel_before(6, 2) ? NULL : fopen("/proc/timer_list", "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		must(!strstr(line, "perf_mux_hrtimer_handler"),
		     "the PMU is gone, and a timer of its memory runs:%s", line + 3);
	if (f)
		fclose(f);
}

TEST(unload_mux_timer, "unload-mux-timer", 120)
{
	static const unsigned int intervals[] = { 300, 30, 300, 3, 1 };
	struct { bool stop, may, at_it; u64 written; } *s = shared(sizeof(*s));
	unsigned int i;
	pid_t pid;

	module_need();
	if (kernel_before(3, 12))
		skip("this perf core has no such interval");
	for (i = 0; i < ARRAY_SIZE(intervals); i++) {
		must(set_interval(intervals[i]), "the interval: %m");
		must_unload();
		must_have_no_timer();
		must_load();
		usleep(intervals[i] * 2000 + 10000);
		must_count("loaded again");
	}

	/* read the PMU's name now: the file may be gone for a moment */
	pmu();
	in_child(pid) {
		for (i = 0; !__atomic_load_n(&s->stop, __ATOMIC_RELAXED); i++) {
			__atomic_store_n(&s->at_it, true, __ATOMIC_SEQ_CST);
			if (__atomic_load_n(&s->may, __ATOMIC_SEQ_CST) &&
			    set_interval(i % 2 ? 20 : 21))
				s->written++;
			__atomic_store_n(&s->at_it, false, __ATOMIC_SEQ_CST);
			if (!__atomic_load_n(&s->may, __ATOMIC_SEQ_CST))
				usleep(1000);
		}
	}
	for (i = 0; i < 20; i++) {
		__atomic_store_n(&s->may, true, __ATOMIC_SEQ_CST);
		usleep(50000);
		must(!driver_unload(), "unloading, with a writer: %m");
		must_have_no_timer();
		usleep(1000 * i);
		/* perf core itself makes the file before the memory that it writes to */
		__atomic_store_n(&s->may, false, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&s->at_it, __ATOMIC_SEQ_CST))
			usleep(100);
		must(!driver_load(), "loading, after a writer: %m");
	}
	s->stop = true;
	reap(pid);
	note("the interval was written %llu times", s->written);
	must(s->written, "the interval was never written");
	usleep(100000);
	must_be_sound("a writer of the interval");
}

/* If perf_event_overflow() cannot be found, the driver counts but does not sample. */
TEST(nosym, "nosym", 60)
{
	struct perf_event_attr attr;
	unsigned int lines;
	int fd, i;

	td_need();
	module_need();
	lines = in_log("perf_event_overflow not found");
	must_unload();
	must(!module_insert(NOPROBE), "%s: %m", NOPROBE);
	must_load();
	must(in_log("perf_event_overflow not found") == lines + 1,
	     "%u lines in the log say that there is no sampling",
	     in_log("perf_event_overflow not found") - lines);
	must_count("without perf_event_overflow");
	fd = ev_self(INSTRUCTIONS);
	ev_on(fd);
	for (i = 0; i < 5; i++) {
		td_burst(0, 1ULL << 38);
		td_burst(1, 1ULL << 38);
	}
	ev_off(fd);
	must(ev_count(fd) >> 38 == 5, "of 5 times 2^38 events counted %llu", ev_count(fd));
	close(fd);
	attr = sampling_attr(INSTRUCTIONS, 100000, PERF_SAMPLE_IP);
	ev_refused(attr, 0, -1, -1, EOPNOTSUPP, "sampling by period");
	ev_refused(attr, -1, 0, -1, EOPNOTSUPP, "CPU-wide sampling");
	attr.freq = 1;
	attr.sample_freq = 1000;
	ev_refused(attr, 0, -1, -1, EOPNOTSUPP, "sampling by frequency");
	must(in_log("perf_event_overflow not found") == lines + 1, "the log has it more than once");
	must_unload();
}

TEST(wrong_cpu, "wrong-cpu", 30)
{
	module_need();
	must_not_load("on another processor", ENODEV, "knc_pmu: not a Knights Corner: found ");
}

/*
 * A kernel whose own driver has the counters keeps them: the module does not load, and
 * logs what to type.
 */
TEST(load_beside, "load-beside", 30)
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

/* Our driver reads registers in its interrupts only, the kernel's at each tick. */
static void must_be_alone(void)
{
	int fd, cpu = cpus_online() - 1;
	u64 before;

	td_need();
	pin(cpu);
	fd = ev_start(attr_of(INSTRUCTIONS), -1, cpu);
	before = td_read(cpu, TD_RDMSRS);
	spin(50000000);
	must(td_read(cpu, TD_RDMSRS) == before, "another driver reads the registers");
	close(fd);
}

/*
 * On Linux 2.6.38 the module takes the counters over from the kernel's own driver,
 * unless that has events, and gives them back.
 */
TEST(take_over, "take-over", 120)
{
	static const char what[] = "end the programs that have them open, then load again";
	unsigned int advice = in_log(what);
	int fd;

	if (!cards_kernel())
		skip("newer kernels' own driver is not taken over");
	must_unload();
	pmu_forget();
	must_count("the kernel's own driver, before");
	fd = ev_self(INSTRUCTIONS);
	must_not_load("beside events", EBUSY, "own driver has events on the counters");
	must(in_log(what) == advice + 1, "the log does not say what to do");
	close(fd);

	must_load();
	must_count("the module");
	must_sample("the module");
	must_be_alone();
	must_unload();
	pmu_forget();
	must_count("the kernel's own driver, after");
	must_sample("the kernel's own driver, after");
	must_load();
}
