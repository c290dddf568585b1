// SPDX-License-Identifier: GPL-2.0-only
/* What the guest tests share; lib.h says what each function promises. */
#include "lib.h"

#include <dirent.h>
#include <grp.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <time.h>
#ifndef __k1om__
#include <sys/io.h>
#endif

#include "kmod/knc_test_loop.h"

/* Results */

/* One per run, shared with all processes of the test. */
static struct {
	atomic_int verdict;
	atomic_bool said;	/* why is whole */
	char why[512];
} *outcome;

static struct test *tests;

void test_register(struct test *t)
{
	/* Not sorted: that would be counted in the programs that are measured. */
	t->next = tests;
	tests = t;
}

void end_test(enum verdict v, const char *fmt, ...)
{
	int passed = PASSED;
	char why[sizeof(outcome->why)];
	va_list ap;
	char *c;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	for (c = why; *c; c++)
		if (*c == '\n')
			*c = ' ';
	if (outcome && atomic_compare_exchange_strong(&outcome->verdict, &passed, v)) {
		strcpy(outcome->why, why);
		outcome->said = true;
	} else {
		note("also: %s", why);
	}
	_exit(1);
}

void note(const char *fmt, ...)
{
	char said[500], line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said, sizeof(said), fmt, ap);
	va_end(ap);
	/* at once: other processes of the test have notes, too */
	if (write(STDOUT_FILENO, line, sprintf(line, "# %s\n", said)) < 0)
		_exit(2);
}

u64 setting(const char *name, u64 otherwise)
{
	const char *s = getenv(name);

	return s && *s ? strtoull(s, NULL, 0) : otherwise;
}

u64 random_bits(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

u64 random_below(u64 *state, u64 n)
{
	return random_bits(state) % n;
}

unsigned int scale(void)
{
	return setting("TEST_SCALE", 1) ?: 1;
}

/* Files */

bool file_number(const char *path, u64 *n)
{
	char *text = file_text(path), *end;

	if (!text)
		return false;
	*n = strtoull(text, &end, 10);
	return end != text;
}

u64 must_number(const char *path)
{
	u64 n;

	must(file_number(path, &n), "%s: no number", path);
	return n;
}

void must_write(const char *path, const char *text)
{
	must(!file_write(path, text), "%s to %s: %m", text, path);
}

long sysctl_get(const char *name)
{
	return must_number(text_of("/proc/sys/%s", name));
}

void sysctl_set(const char *name, long value)
{
	must_write(text_of("/proc/sys/%s", name), text_of("%ld", value));
}

/* The runner */

/* Prints where the processes of a test that has not ended wait. */
static void tell_where(pid_t group)
{
	DIR *proc = opendir("/proc");
	struct dirent *d;

	while (proc && (d = readdir(proc))) {
		char *text = file_text(text_of("/proc/%s/stat", d->d_name)), state;
		int pgrp;

		if (!text || sscanf(text, "%*d (%*[^)]) %c %*d %d", &state, &pgrp) != 2 ||
		    pgrp != group)
			continue;
		text = file_text(text_of("/proc/%s/wchan", d->d_name));
		printf("# %s: %c in %s\n", d->d_name, state, text ? text : "?");
	}
}

/* Returns true unless the test failed. */
static bool run_test(const struct test *t)
{
	static const char *const verdicts[] = { "ok", "FAIL", "skip" };
	/* the seconds that were asked for come on top */
	u64 limit = t->seconds * (scale() > 1 ? 4 : 1) + setting("TEST_FUZZ_SECONDS", 0);
	u64 begin = now_ns();
	int status = 0;
	pid_t pid;

	memset(outcome, 0, sizeof(*outcome));
	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		printf("FAIL %s fork: %s\n", t->name, strerror(errno));
		return false;
	}
	if (!pid) {
		setpgid(0, 0);
		sample_limit(NO_SAMPLE_LIMIT);
		t->run();
		fflush(stdout);
		_exit(0);
	}
	setpgid(pid, pid);
	/* It ends at its first failure: others may wait for the one that failed. */
	while (!outcome->said && waitpid(pid, &status, WNOHANG) == 0) {
		if (now_ns() - begin > limit * 1000000000ULL) {
			tell_where(pid);
			kill(-pid, SIGKILL);
			waitpid(pid, &status, 0);
			printf("FAIL %s not done after %llu s\n", t->name, limit);
			return false;
		}
		usleep(5000);
	}
	/* processes that a failed test has left */
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);

	if (outcome->verdict == PASSED && status) {
		outcome->verdict = FAILED;
		sprintf(outcome->why, "ended with wait status %#x", status);
	}
	printf("%s %s %s\n", verdicts[outcome->verdict], t->name, outcome->why);
	return outcome->verdict != FAILED;
}

int main(int argc, char **argv)
{
	bool good = true;
	struct test *t;
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (t = tests; t; t = t->next)
			puts(t->name);
		return 0;
	}
	/* for tests of exec and of perf: a program of known length, "--spin" or "--spin20" */
	if (argc == 3 && !strncmp(argv[1], "--spin", 6)) {
		(argv[1][6] ? spin20 : spin)(strtoull(argv[2], NULL, 16));
		return 0;
	}
	/* what ring 3 has executed, in truth */
	if (argc == 2 && !strcmp(argv[1], "--true")) {
		printf("%llu %llu %llu\n", td_sum(TD_INSN_USER), td_sum(TD_CYCLES_USER),
		       td_sum(TD_BRANCH_USER));
		return 0;
	}
	if (argc < 2) {
		fprintf(stderr, "usage: %s --list | NAME...\n", argv[0]);
		return 2;
	}

	outcome = shared(sizeof(*outcome));
	for (i = 1; i < argc; i++) {
		for (t = tests; t && strcmp(t->name, argv[i]); t = t->next)
			;
		if (!t) {
			printf("FAIL %s no such test\n", argv[i]);
			good = false;
		} else {
			good &= run_test(t);
		}
	}
	/* for tests in sh */
	sample_limit(NO_SAMPLE_LIMIT);
	return !good;
}

bool kernel_before(unsigned int version, unsigned int patchlevel)
{
	unsigned int v, p;
	struct utsname name;

	must(!uname(&name) && sscanf(name.release, "%u.%u", &v, &p) == 2, "uname(): %m");
	return v < version || (v == version && p < patchlevel);
}

/* No limit by time, which follows the host's, or perf core would lower the rate. */
void sample_limit(long per_second)
{
	/* in this order: the rate cannot be written once the other is 0 */
	bool limits_time = file_text("/proc/sys/kernel/perf_cpu_time_max_percent");

	if (limits_time)
		sysctl_set("kernel/perf_cpu_time_max_percent", 25);
	sysctl_set("kernel/perf_event_max_sample_rate", per_second);
	if (limits_time)
		sysctl_set("kernel/perf_cpu_time_max_percent", 0);
}

u64 interrupts_of(const char *name, int cpu)
{
	char *at = file_text("/proc/interrupts"), *end;
	u64 sum = 0, n;
	int column;

	must(at, "/proc/interrupts: %m");
	at = strstr(at, name);
	must(at, "no line %s in /proc/interrupts", name);
	at += strlen(name);
	for (column = 0; ; column++, at = end) {
		n = strtoull(at, &end, 10);
		if (end == at)
			return sum;
		if (cpu < 0 || cpu == column)
			sum += n;
	}
}

/* The PMU */

#define PMUS "/sys/bus/event_source/devices"

static struct pmu found;

void pmu_forget(void)
{
	found.name[0] = '\0';
}

const struct pmu *pmu(void)
{
	static const char * const names[] = { "knc", "cpu" };
	size_t i;
	u64 type;

	if (found.name[0])
		return &found;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (!file_number(text_of(PMUS "/%s/type", names[i]), &type))
			continue;
		strcpy(found.name, names[i]);
		found.type = type;
		return &found;
	}
	fail("no PMU called knc or cpu in " PMUS);
}

char *pmu_file(const char *path)
{
	return file_text(text_of(PMUS "/%s/%s", pmu()->name, path));
}

/* Puts a value into the bits of a format/ file, such as "config:0-7". */
static bool put_field(const char *field, u64 value, struct perf_event_attr *attr)
{
	char *text = pmu_file(text_of("format/%s", field)), word[16];
	unsigned int lo, hi;
	__u64 *where;
	int n;

	if (!text)
		return false;
	n = sscanf(text, "%15[a-z0-9]:%u-%u", word, &lo, &hi);
	if (n == 2)
		hi = lo;
	else if (n != 3)
		return false;
	if (!strcmp(word, "config"))
		where = &attr->config;
	else if (!strcmp(word, "config1"))
		where = &attr->config1;
	else
		return false;
	if (hi - lo < 63 && value >> (hi - lo + 1))
		return false;
	*where |= value << lo;
	return true;
}

bool pmu_parse(const char *terms, struct perf_event_attr *attr)
{
	char copy[256], *term, *save, *eq;

	snprintf(copy, sizeof(copy), "%s", terms);
	for (term = strtok_r(copy, ",", &save); term; term = strtok_r(NULL, ",", &save)) {
		eq = strchr(term, '=');
		if (eq)
			*eq = '\0';
		if (!put_field(term, eq ? strtoull(eq + 1, NULL, 0) : 1, attr))
			return false;
	}
	return true;
}

int sys_open(struct perf_event_attr attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	int fd = syscall(SYS_perf_event_open, &attr, pid, cpu, group,
			 flags | PERF_FLAG_FD_CLOEXEC);

	/* Up to Linux 3.13 it is not there. */
	if (fd < 0 && errno == EINVAL && kernel_before(3, 14)) {
		fd = syscall(SYS_perf_event_open, &attr, pid, cpu, group, flags);
		if (fd >= 0)
			fcntl(fd, F_SETFD, FD_CLOEXEC);
	}
	return fd;
}

int ev_open(struct perf_event_attr attr, pid_t pid, int cpu, int group)
{
	int fd = sys_open(attr, pid, cpu, group, 0);

	must(fd >= 0, "perf_event_open(type %u, config %#llx, pid %d, cpu %d, group %d): %m",
	     attr.type, attr.config, pid, cpu, group);
	return fd;
}

int ev_start(struct perf_event_attr attr, pid_t pid, int cpu)
{
	int fd = ev_open(attr, pid, cpu, -1);

	ev_on(fd);
	return fd;
}

void ev_refused(struct perf_event_attr attr, pid_t pid, int cpu, int group, int want,
		const char *what)
{
	int fd = sys_open(attr, pid, cpu, group, 0), why = errno;

	/* A kernel that accepts such an event may need it to be closed before its leader. */
	if (fd >= 0)
		close(fd);
	must(fd < 0, "%s: was not refused", what);
	must(why == want, "%s: refused with \"%s\", not \"%s\"", what, strerror(why),
	     strerror(want));
}

int ev_join(struct perf_event_attr attr, u64 config, int leader)
{
	attr.config = config;
	attr.disabled = 0;
	return ev_open(attr, 0, -1, leader);
}

void ev_ioctl(int fd, unsigned long req, unsigned long arg)
{
	must(!ioctl(fd, req, arg), "event ioctl %#lx: %m", req);
}

void ev_period(int fd, u64 period)
{
	ev_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period);
}

u64 ev_count(int fd)
{
	u64 value[8];

	must(read(fd, value, sizeof(value)) >= 8, "reading an event: %m");
	return value[0];
}

u64 ev_end(int fd)
{
	u64 count;

	ev_off(fd);
	count = ev_count(fd);
	close(fd);
	return count;
}

struct times ev_times(int fd)
{
	struct times t;

	must(read(fd, &t, sizeof(t)) == sizeof(t), "reading an event's times: %m");
	return t;
}

void ev_spin(int fd, u64 n)
{
	must(!measured_spin(fd, n), "enabling or disabling failed");
}

u64 spin_cost(void)
{
	int fd = ev_self(INSTRUCTIONS);

	ev_spin(fd, 0);
	return ev_end(fd);
}

void kernel_loop(struct knc_test_loop *run, u64 n)
{
	static int dev = -1;
	int tries;

	if (dev < 0)
		dev = open(KNC_TEST_LOOP_DEVICE, O_RDONLY | O_CLOEXEC);
	must(dev >= 0, "%s: %m", KNC_TEST_LOOP_DEVICE);
	run->iterations = n;
	for (tries = 0; ioctl(dev, KNC_TEST_LOOP_RUN, run); tries++)
		must(errno == EAGAIN && tries < 10, "%s: %m", KNC_TEST_LOOP_DEVICE);
}

/* Sample buffers */

void ring_map(struct ring *r, int fd, unsigned int pages, u64 sample_type)
{
	size_t page = getpagesize();

	r->size = pages * page;
	r->sample_type = sample_type;
	r->regs = 0;
	r->tail = 0;
	r->page = mmap(NULL, r->size + page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(r->page != MAP_FAILED, "mapping a buffer of %u pages: %m", pages);
}

int ring_open(struct ring *r, unsigned int pages, struct perf_event_attr attr, pid_t pid,
	      int cpu, int group)
{
	int fd = ev_open(attr, pid, cpu, group);

	ring_map(r, fd, pages, attr.sample_type);
	return fd;
}

int ring_self(struct ring *r, unsigned int pages, u64 period)
{
	return ring_open(r, pages, sampling_attr(INSTRUCTIONS, period, PERF_SAMPLE_IP),
			 0, -1, -1);
}

void ring_unmap(struct ring *r)
{
	munmap(r->page, r->size + getpagesize());
}

void ring_close(struct ring *r, int fd)
{
	ring_unmap(r);
	close(fd);
}

static void ring_copy(const struct ring *r, u64 from, void *to, size_t len)
{
	const char *data = (const char *)r->page + getpagesize();
	size_t at = from % r->size;
	size_t first = len < r->size - at ? len : r->size - at;

	memcpy(to, data + at, first);
	memcpy((char *)to + first, data, len - first);
}

/* Copies @n numbers of a sample, and returns what follows them. */
static const u64 *take(const u64 *p, const u64 *end, u64 n, void *to, size_t room,
		       const char *what)
{
	must(n * sizeof(*p) <= room && p + n <= end, "%llu %s in a sample", n, what);
	memcpy(to, p, n * sizeof(*p));
	return p + n;
}

static void parse_sample(const struct ring *r, const u64 *p, const u64 *end, struct record *rec)
{
	u64 type = r->sample_type, size;

	if (type & PERF_SAMPLE_IP)
		rec->ip = *p++;
	if (type & PERF_SAMPLE_TID)
		p++;
	if (type & PERF_SAMPLE_PERIOD)
		rec->period = *p++;
	if (type & PERF_SAMPLE_READ) {
		rec->nr_values = *p++;
		p = take(p, end, rec->nr_values, rec->values, sizeof(rec->values), "counts");
	}
	if (type & PERF_SAMPLE_CALLCHAIN) {
		rec->nr_chain = *p++;
		p = take(p, end, rec->nr_chain, rec->chain, sizeof(rec->chain), "callers");
	}
	if (type & PERF_SAMPLE_REGS_USER) {
		rec->abi = *p++;
		if (rec->abi)
			p = take(p, end, r->regs, rec->regs, sizeof(rec->regs), "registers");
	}
	if (type & PERF_SAMPLE_STACK_USER) {
		size = *p++;
		p = take(p, end, size / 8, rec->stack, sizeof(rec->stack), "words of the stack");
		if (size)
			rec->stack_size = *p++;
	}
	must(p == end, "a sample is %td bytes longer than its type says", 8 * (end - p));
}

bool ring_next(struct ring *r, struct record *rec)
{
	u64 head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	struct perf_event_header h;
	u64 body[1024];

	must(head - r->tail <= r->size, "the buffer's head is %llu bytes ahead of the tail",
	     head - r->tail);
	if (head == r->tail)
		return false;
	ring_copy(r, r->tail, &h, sizeof(h));
	must(h.size >= sizeof(h) && h.size <= sizeof(body), "a record of %u bytes", h.size);
	ring_copy(r, r->tail + sizeof(h), body, h.size - sizeof(h));

	memset(rec, 0, sizeof(*rec));
	rec->type = h.type;
	rec->misc = h.misc;
	if (h.type == PERF_RECORD_SAMPLE)
		parse_sample(r, body, (u64 *)((char *)body + h.size - sizeof(h)), rec);
	else if (h.type == PERF_RECORD_LOST)
		rec->lost = body[1];
	r->tail += h.size;
	__atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
	return true;
}

bool ring_sample(struct ring *r, struct record *rec)
{
	while (ring_next(r, rec))
		if (rec->type == PERF_RECORD_SAMPLE)
			return true;
	return false;
}

void ring_tally(struct ring *r, struct tally *t, const char *lo, const char *hi)
{
	struct record rec;

	while (ring_next(r, &rec)) {
		switch (rec.type) {
		case PERF_RECORD_SAMPLE:
			t->samples++;
			t->period_sum += rec.period;
			if (lo != hi && (rec.ip < (u64)lo || rec.ip >= (u64)hi)) {
				t->outside++;
				t->last_outside = rec.ip;
			}
			break;
		case PERF_RECORD_LOST:
			t->lost += rec.lost;
			break;
		case PERF_RECORD_THROTTLE:
			t->throttles++;
			break;
		case PERF_RECORD_UNTHROTTLE:
			t->unthrottles++;
		}
	}
}

void samples_near(u64 got, u64 want, const char *what)
{
	must(got + 1 >= want && got <= want + 1, "%s: %llu samples, want %llu +-1", what,
	     got, want);
}

void samples_whole(const struct tally *t, const char *what)
{
	must(!t->lost, "%s: %llu records lost", what, t->lost);
	must(!t->throttles, "%s: throttled %llu times", what, t->throttles);
	must(!t->outside, "%s: %llu of %llu addresses outside the loop, such as %#llx", what,
	     t->outside, t->samples, t->last_outside);
}

/* CPUs and processes */

/* Not sysconf(): musl counts the CPUs of the affinity mask. */
int cpus_online(void)
{
	char *at = file_text("/sys/devices/system/cpu/online");
	int first, last, n = 0;

	must(at, "which CPUs are online: %m");
	for (;; at++) {
		first = strtol(at, &at, 10);
		last = *at == '-' ? strtol(at + 1, &at, 10) : first;
		n += last - first + 1;
		if (*at != ',')
			return n;
	}
}

int try_online(int cpu, bool online)
{
	return file_write(text_of("/sys/devices/system/cpu/cpu%d/online", cpu),
			  online ? "1" : "0");
}

void set_online(int cpu, bool online)
{
	int ret, tries;

	/* another CPU may be on its way up or down */
	for (tries = 0; (ret = try_online(cpu, online)) && errno == EBUSY && tries < 100; tries++)
		usleep(10000);
	if (ret && errno == ENOENT)
		skip("CPU %d cannot go offline", cpu);
	must(!ret, "CPU %d, %s: %m", cpu, online ? "online" : "offline");
}

bool try_pin(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return !sched_setaffinity(pid, sizeof(set), &set);
}

void pin_pid(pid_t pid, int cpu)
{
	must(try_pin(pid, cpu), "pinning to CPU %d: %m", cpu);
}

pid_t must_fork(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	must(pid >= 0, "fork: %m");
	return pid;
}

void must_pipe(int ends[2])
{
	must(!pipe2(ends, O_CLOEXEC), "pipe: %m");
}

void pipe_wake(const int ends[2])
{
	must(write(ends[1], "", 1) == 1, "writing to a pipe: %m");
}

void pipe_wait(const int ends[2])
{
	char c;

	must(read(ends[0], &c, 1) == 1, "nobody has written to a pipe");
}

void reap(pid_t pid)
{
	int status;

	must(waitpid(pid, &status, 0) == pid, "waiting for a child: %m");
	must(!status, "a child ended with wait status %#x", status);
}

void reap_all(const pid_t *pids, int n)
{
	while (n)
		reap(pids[--n]);
}

void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

void start_children(pid_t *pids, int n, bool pinned, void (*fn)(void *arg, int i), void *arg)
{
	int i;

	for (i = 0; i < n; i++) {
		in_child(pids[i]) {
			if (pinned)
				pin(i);
			fn(arg, i);
		}
	}
}

void in_children(int n, bool pinned, void (*fn)(void *arg, int i), void *arg)
{
	pid_t pids[256];

	start_children(pids, n, pinned, fn, arg);
	reap_all(pids, n);
}

void *shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must(p != MAP_FAILED, "mmap of %zu bytes: %m", size);
	return p;
}

u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

u64 spin_for_ms(unsigned int ms)
{
	u64 begin = now_ns(), n = 0;

	for (; now_ns() - begin < ms * 1000000ULL; n += 10000)
		spin20(10000);
	return n;
}

void become_nobody(void)
{
	must(!setgroups(0, NULL) && !setresgid(65534, 65534, 65534) &&
	     !setresuid(65534, 65534, 65534), "becoming nobody: %m");
	/* perf refuses events on a process that is not dumpable */
	prctl(PR_SET_DUMPABLE, 1);
}

void as_nobody(void (*fn)(void))
{
	by_child() {
		become_nobody();
		fn();
	}
}

void msr_need(void)
{
	if (!have_msr())
		skip("needs /dev/cpu/0/msr");
}

static int msr_open(int cpu, int mode)
{
	int fd = open(text_of("/dev/cpu/%d/msr", cpu), mode | O_CLOEXEC);

	must(fd >= 0, "/dev/cpu/%d/msr: %m", cpu);
	return fd;
}

u64 rdmsr_on(int cpu, u32 msr)
{
	int fd = msr_open(cpu, O_RDONLY);
	u64 value;

	must(pread(fd, &value, 8, msr) == 8, "reading MSR %#x of CPU %d: %m", msr, cpu);
	close(fd);
	return value;
}

void wrmsr_on(int cpu, u32 msr, u64 value)
{
	int fd = msr_open(cpu, O_WRONLY);

	must(pwrite(fd, &value, 8, msr) == 8, "writing MSR %#x of CPU %d: %m", msr, cpu);
	close(fd);
}

int counter_of(int cpu, u64 config)
{
	int i;

	for (i = 0; i < 2; i++) {
		u64 sel = rdmsr_on(cpu, 0x28 + i);

		if (sel & EVTSEL_EN && (sel & 0xffff) == (config & 0xffff) &&
		    rdmsr_on(cpu, 0x2f) >> i & 1)
			return i;
	}
	return -1;
}

struct perf_event_mmap_page *page_of(int fd)
{
	void *page = mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, fd, 0);

	must(page != MAP_FAILED, "mapping the page: %m");
	return page;
}

u64 plain_rdpmc(u32 counter)
{
	u32 low, high;

	asm volatile("rdpmc" : "=a" (low), "=d" (high) : "c" (counter));
	return low | (u64)high << 32;
}

static sigjmp_buf denied;

static void on_fault(int sig)
{
	(void)sig;
	siglongjmp(denied, 1);
}

bool try_rdpmc(u32 counter, u64 *value)
{
	signal(SIGSEGV, on_fault);
	if (sigsetjmp(denied, 1)) {
		signal(SIGSEGV, SIG_DFL);
		return false;
	}
	*value = plain_rdpmc(counter);
	signal(SIGSEGV, SIG_DFL);
	return true;
}

/* The test device */

#define TD_BASE		0x5e0
#define TD_SELECT	(TD_BASE + 0x0)
#define TD_LOW		(TD_BASE + 0x4)
#define TD_HIGH		(TD_BASE + 0x8)
#define TD_AFTER	(TD_BASE + 0x10)
#define TD_ACCESS	(TD_BASE + 0x14)
#define TD_ORDER	(TD_BASE + 0x18)
#define TD_SIZE		0x20
#define TD_KNCP		0x4b4e4350

#ifdef __k1om__
/* The card has no ports: on its board they are in memory. */
#define BOARD_PORTS	0x8002000000
static volatile u32 *ports;

static bool td_open(void)
{
	int fd = ports ? -1 : open("/dev/mem", O_RDWR | O_SYNC | O_CLOEXEC);
	void *page;

	if (fd >= 0) {
		page = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			    BOARD_PORTS);
		if (page != MAP_FAILED)
			ports = page;
		close(fd);
	}
	return ports;
}

static u32 td_in(unsigned int port)
{
	return ports[port / 4];
}

static void td_out(u32 value, unsigned int port)
{
	ports[port / 4] = value;
}
#else
#define td_open()	(!ioperm(TD_BASE, TD_SIZE, 1))
#define td_in		inl
#define td_out		outl
#endif

static u64 td_get(int cpu, enum td_item item)
{
	u64 value;

	td_out((u32)cpu << 16 | item, TD_SELECT);
	value = td_in(TD_LOW);
	return value | (u64)td_in(TD_HIGH) << 32;
}

bool td_present(void)
{
	static pid_t known_to;		/* a fork may lose the permission */
	static bool present;

	if (known_to == getpid())
		return present;
	present = td_open() && td_get(0, TD_MAGIC) == TD_KNCP;
	known_to = getpid();
	return present;
}

void td_need(void)
{
	if (!td_present())
		skip("needs the emulator's test device");
}

u64 td_read(int cpu, enum td_item item)
{
	u64 value;

	td_need();
	value = td_get(cpu, item);
	must(value != ~0ULL, "the test device has no item %d of CPU %d", item, cpu);
	return value;
}

u64 td_counted(int cpu)
{
	return td_read(cpu, TD_COUNTED0) + td_read(cpu, TD_COUNTED1);
}

u64 td_sum(enum td_item item)
{
	int cpu, n = cpus_online();
	u64 sum = 0;

	for (cpu = 0; cpu < n; cpu++)
		sum += td_read(cpu, item);
	return sum;
}

void td_burst(u64 events)
{
	u32 counter;

	td_need();
	for (counter = 0; counter < 2; counter++) {
		td_out((u32)events, TD_LOW);
		td_out(counter << 16 | (events >> 32 & 0xffff), TD_HIGH);
	}
}

void td_inject(int cpu, enum td_action action, u32 after)
{
	u32 ring0 = action == TD_NMI || action == TD_STOP;

	td_need();
	td_out(after, TD_AFTER);
	td_out(0, TD_ACCESS);
	td_out((u32)cpu << 16 | ring0 << 8 | action, TD_ORDER);
}

void must_count(const char *when)
{
	u64 want = spin_cost() + 100000, got;
	int fd = ev_self(INSTRUCTIONS);

	ev_spin(fd, 50000);
	got = ev_count(fd);
	must(got == want, "%s: CPU %d counted %llu, not %llu", when, sched_getcpu(), got, want);
	close(fd);
}

void must_sample(const char *when)
{
	struct tally t = {};
	struct ring r;
	int fd = ring_self(&r, 16, 10007);

	ev_spin(fd, 1000000);
	ring_tally(&r, &t, spin_lo, spin_hi);
	must(t.samples >= 199 && t.samples <= 200, "%s: CPU %d has %llu samples, not 199", when,
	     sched_getcpu(), t.samples);
	ring_close(&r, fd);
}

void must_be_sound(const char *after)
{
	int cpu, n = cpus_online();

	for (cpu = 0; cpu < n; cpu++) {
		pin(cpu);
		must_count(after);
	}
}
