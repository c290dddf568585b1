// SPDX-License-Identifier: GPL-2.0-only
/*
 * Failed allocations. While the driver is loaded, an event is opened, or a CPU goes and
 * comes back, each allocation fails once: the first, the second and so on. The
 * operation must return an error, leave nothing behind, and work the next time. Needs a
 * kernel with fault injection (the debug flavour).
 */
#include "lib.h"

#define FAIL_NTH	"/proc/thread-self/fail-nth"
#define MOST		3000

/* Fails allocations that may sleep as well, and logs nothing. */
static void faults_need(void)
{
	if (access(FAIL_NTH, F_OK))
		skip("this kernel has no fault injection");
	must_write("/sys/kernel/debug/failslab/ignore-gfp-wait", "N");
	must_write("/sys/kernel/debug/failslab/verbose", "0");
	must_write("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N");
	must_write("/sys/kernel/debug/fail_page_alloc/min-order", "0");
	must_write("/sys/kernel/debug/fail_page_alloc/verbose", "0");
}

static int nth_fd = -1;

static void fail_nth(int n)
{
	char text[16];
	int len = sprintf(text, "%d", n);

	if (nth_fd < 0)
		nth_fd = open(FAIL_NTH, O_RDWR | O_CLOEXEC);
	must(nth_fd >= 0 && pwrite(nth_fd, text, len, 0) == len, FAIL_NTH ": %m");
}

/* How many allocations were left before the one that fails; 0: it has failed */
static int fail_left(void)
{
	char text[16] = {};

	must(pread(nth_fd, text, sizeof(text) - 1, 0) > 0, FAIL_NTH ": %m");
	return atoi(text);
}

static void nothing(void)
{
}

/*
 * Fails each allocation of an operation, which returns 0, or -1 with errno. @mend takes away
 * what a failed one has left, since that would make the next one shorter.
 */
static void each_fails(const char *what, int (*operate)(void), void (*mend)(void),
		       void (*check)(const char *))
{
	int n, ret, err, left, failed = 0;

	for (n = 1; n < MOST; n++) {
		fail_nth(n);
		ret = operate();
		err = errno;
		left = fail_left();
		fail_nth(0);
		mend();
		if (left)
			break;
		must(!ret || err == ENOMEM || err == ENOSPC || err == EAGAIN || err == EINVAL,
		     "%s, allocation %d: %s", what, n, strerror(err));
		failed += !!ret;
		if (n % 16 == 0)
			check(what);
	}
	must(n < MOST, "%s has more than %d allocations", what, MOST);
	note("%s: %d allocations, %d times refused", what, n - 1, failed);
	must(!operate(), "%s, when all is over: %m", what);
	check(what);
}

static struct perf_event_attr opened_attr;
static int opened_cpu = -1;
static void *opened_page = MAP_FAILED;

/* munmap() may fail for memory, too, and the event lives as long as its page. */
static void unmap(void)
{
	if (opened_page == MAP_FAILED || munmap(opened_page, 3 * getpagesize()))
		return;
	opened_page = MAP_FAILED;
}

static int open_and_close(void)
{
	int fd = sys_open(opened_attr, opened_cpu < 0 ? 0 : -1, opened_cpu, -1, 0);

	if (fd < 0)
		return -1;
	/* This may fail; the event is closed all the same. */
	opened_page = mmap(NULL, 3 * getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unmap();
	close(fd);
	return 0;
}

static int open_and_fork(void)
{
	int fd = sys_open(opened_attr, 0, -1, -1, 0);
	pid_t pid;

	if (fd < 0)
		return -1;
	pid = fork();
	if (!pid)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	close(fd);
	return pid < 0 ? -1 : 0;
}

/* Chosen in advance: to count CPUs takes memory, too. */
static int hotplug_cpu;

static int offline_and_online(void)
{
	int down = try_online(hotplug_cpu, false);
	int up = try_online(hotplug_cpu, true);

	return down || up ? -1 : 0;
}

static void bring_back(void)
{
	set_online(hotplug_cpu, true);
}

TEST("fault-open", 240)
{
	faults_need();
	opened_attr = user_attr(INSTRUCTIONS);
	each_fails("opening an event", open_and_close, unmap, must_be_sound);
	opened_cpu = 0;
	each_fails("opening a CPU-wide event", open_and_close, unmap, must_be_sound);
	opened_cpu = -1;
	opened_attr = sampling_attr(INSTRUCTIONS, 100000, PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN);
	each_fails("opening an event that samples", open_and_close, unmap, must_be_sound);
	opened_attr.inherit = 1;
	each_fails("inheriting an event", open_and_fork, nothing, must_be_sound);
	if (pmu_file("format/spflt")) {
		opened_attr = spflt_attr(INSTRUCTIONS);
		each_fails("opening an SPFLT event", open_and_close, unmap, must_be_sound);
		opened_attr.inherit = 1;
		each_fails("inheriting an SPFLT event", open_and_fork, nothing, must_be_sound);
	}
}

TEST("fault-hotplug", 240)
{
	faults_need();
	hotplug_cpu = cpus_online() - 1;
	must(hotplug_cpu > 0, "there is but one CPU");
	each_fails("taking a CPU away", offline_and_online, bring_back, must_be_sound);
}
