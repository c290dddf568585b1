// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random system calls on events: attributes, groups, inheritance, pages, RDPMC, SPFLT,
 * periods and cgroups, by root and by nobody, on all CPUs at once. Meanwhile an
 * administrator takes CPUs offline, unloads the driver and changes limits, and a
 * witness counts a loop of known length, whose count must never be wrong.
 *
 * TEST_FUZZ_SECONDS is how long, TEST_FUZZ_SEED where the random numbers begin: the
 * same seed does the same.
 */
#define _GNU_SOURCE
#include "lib.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../../include/knc_pmu_user.h"

struct rng {
	u64 state;
};

static u64 rnd(struct rng *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return r->state * 0x2545f4914f6cdd1dULL;
}

static u64 below(struct rng *r, u64 n)
{
	return (rnd(r) >> 11) % n;
}

static bool one_in(struct rng *r, u64 n)
{
	return !below(r, n);
}

static struct perf_event_attr random_attr(struct rng *r)
{
	static const u64 codes[] = {
		INSTRUCTIONS, BRANCHES, CYCLES, L2_READ_MISS, L2_WRITE_HIT, CODE(0, 0x20),
		CODE(0x28, 0), CODE(0xff, 0xff), CODE(0xf0, 0x10),
	};
	static const u64 periods[] = {
		0, 1, 2, 100, 1000, 1009, 100000, 1ULL << 31, (1ULL << 39) - 1, 1ULL << 39,
		(1ULL << 40) - 1, 1ULL << 40, 1ULL << 62, (1ULL << 63) - 1,
	};
	struct perf_event_attr attr = attr_of(codes[below(r, ARRAY_SIZE(codes))]);

	if (one_in(r, 10))
		attr.type = below(r, 8);
	if (one_in(r, 4))
		attr.config ^= 1ULL << below(r, one_in(r, 4) ? 64 : 32);
	if (one_in(r, 30))
		attr.config = rnd(r);
	/* Linux 2.6.38 takes a negative config for an index into its table. */
	if (cards_kernel() && attr.type == PERF_TYPE_SOFTWARE)
		attr.config &= INT32_MAX;
	if (one_in(r, 30))
		attr.config1 = one_in(r, 2) ? 1 : rnd(r);
	if (one_in(r, 60))
		attr.config2 = rnd(r);
	attr.disabled = below(r, 2);
	attr.inherit = one_in(r, 3);
	attr.pinned = one_in(r, 6);
	attr.exclusive = one_in(r, 10);
	attr.exclude_user = one_in(r, 4);
	attr.exclude_kernel = one_in(r, 2);
	attr.exclude_hv = one_in(r, 2);
	attr.exclude_idle = one_in(r, 30);
	attr.exclude_guest = one_in(r, 4);
	attr.exclude_host = one_in(r, 30);
	attr.enable_on_exec = one_in(r, 10);
	attr.inherit_stat = one_in(r, 10);
	attr.task = one_in(r, 10);
	attr.mmap = one_in(r, 10);
	attr.comm = one_in(r, 10);
	attr.watermark = one_in(r, 5);
	attr.precise_ip = one_in(r, 30) ? 1 + below(r, 3) : 0;
	attr.sample_id_all = one_in(r, 2);
	attr.write_backward = one_in(r, 10);
	attr.remove_on_exec = one_in(r, 20);
	if (!one_in(r, 3)) {
		attr.sample_period = periods[below(r, ARRAY_SIZE(periods))];
		attr.freq = one_in(r, 4);
		if (attr.freq)
			attr.sample_freq = 1 + below(r, 5000);
	}
	if (attr.sample_period) {
		attr.sample_type = rnd(r) & (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			PERF_SAMPLE_ADDR | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN |
			PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
			PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_WEIGHT |
			PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PHYS_ADDR);
		if (one_in(r, 10)) {
			attr.sample_type |= PERF_SAMPLE_REGS_INTR;
			attr.sample_regs_intr = rnd(r) & 0xffffff;
		}
		if (one_in(r, 10)) {
			attr.sample_type |= PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_USER;
			attr.sample_stack_user = 8 * below(r, 128);
			attr.sample_regs_user = rnd(r) & 0xffffff;
		}
		if (one_in(r, 30))
			attr.sample_type = rnd(r);
		attr.wakeup_events = below(r, 4);
	}
	attr.read_format = rnd(r) & 0xf;
	return attr;
}

#define FUZZ_FDS	24
#define CGROUPS		3

struct fuzz {
	u64 deadline, seed;
	u64 steps, opened;
	/* by the administrator: CPUs taken offline, drivers loaded */
	u64 offline, loads;
	/* odd while a CPU is away */
	u64 moves;
	/* loops of the witness that were counted exactly, or shared their counter */
	u64 exact, shared;
	int cpus;
	/* all close their events, so that the driver can be unloaded */
	bool leave;
};

/* A process of random system calls, and its events */
struct fuzzer {
	struct fuzz *f;
	struct rng r;
	int fds[FUZZ_FDS];
	void *maps[FUZZ_FDS];
	size_t lengths[FUZZ_FDS];
	/* f->moves before it was opened */
	u64 since[FUZZ_FDS];
};

static const char *cgroup_path(char *path, u64 which, const char *file)
{
	sprintf(path, "/sys/fs/cgroup/fuzz%llu%s", which, file);
	return path;
}

/* RDPMC, allowed or not, and SPFLT */
static void fuzz_instructions(struct rng *r)
{
	u64 value;

	if (knc_cpu() && one_in(r, 2))
		knc_spflt(below(r, 2));
	else
		try_rdpmc(one_in(r, 8) ? rnd(r) : below(r, 2), &value);
}

static void fuzz_fork(struct rng *r)
{
	pid_t pid = fork();

	if (!pid) {
		fuzz_instructions(r);
		spin(below(r, 2000));
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static u64 fuzz_moves(const struct fuzzer *s)
{
	return __atomic_load_n(&s->f->moves, __ATOMIC_SEQ_CST);
}

static int fuzz_open_cgroup(struct rng *r, struct perf_event_attr *attr, int cpu, int group,
			    unsigned long flags)
{
	char path[64];
	int dir = open(cgroup_path(path, below(r, CGROUPS), ""), O_RDONLY);
	int fd;

	/* Newer perf cores crash on a pinned one that finds no counter (knc-pmu.rst). */
	attr->pinned &= kernel_before(6, 5);
	fd = sys_open(attr, dir, cpu, group, flags | PERF_FLAG_PID_CGROUP);
	if (dir >= 0)
		close(dir);
	return fd;
}

/* @leader: index of the group's leader, or -1 */
static int fuzz_open(struct fuzzer *s, int leader)
{
	struct rng *r = &s->r;
	struct perf_event_attr attr = random_attr(r);
	bool wide = one_in(r, 3);
	int cpu = wide || one_in(r, 4) ? (int)below(r, s->f->cpus) : -1;
	unsigned long flags = one_in(r, 20) ? rnd(r) & 0xf : 0;
	int fd, group = leader < 0 ? -1 : s->fds[leader];

	if (wide && one_in(r, 4))
		fd = fuzz_open_cgroup(r, &attr, cpu, group, flags);
	else
		fd = sys_open(&attr, wide ? -1 : 0, cpu, group, flags);
	/*
	 * The driver refuses a group whose leader has lost its CPU. Other PMUs do not,
	 * and then the member must be closed before the leader (knc-pmu.rst).
	 */
	if (fd >= 0 && wide && leader >= 0 &&
	    (s->since[leader] & 1 || s->since[leader] != fuzz_moves(s))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* How many this process has opened */
static u64 events_opened;

static void fuzz_step(struct fuzzer *s)
{
	static const unsigned long ioctls[] = {
		PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE, PERF_EVENT_IOC_RESET,
		PERF_EVENT_IOC_PAUSE_OUTPUT, PERF_EVENT_IOC_REFRESH,
	};
	/* Newer perf cores crash on REFRESH of a cgroup's event (knc-pmu.rst). */
	size_t choices = ARRAY_SIZE(ioctls) - !kernel_before(6, 5);
	struct rng *r = &s->r;
	int at = below(r, FUZZ_FDS), other = below(r, FUZZ_FDS), *fds = s->fds;
	void **maps = s->maps;
	size_t *lengths = s->lengths;
	u64 period, since;
	char buf[256];

	switch (below(r, 12)) {
	case 0:
	case 1:
	case 2:
		if (fds[at] >= 0 && maps[at])
			break;
		if (fds[at] >= 0)
			close(fds[at]);
		since = fuzz_moves(s);
		fds[at] = fuzz_open(s, one_in(r, 3) ? other : -1);
		s->since[at] = since;
		events_opened += fds[at] >= 0;
		break;
	case 3:
		if (maps[at])
			munmap(maps[at], lengths[at]);
		maps[at] = NULL;
		if (fds[at] >= 0)
			close(fds[at]);
		fds[at] = -1;
		break;
	case 4:
	case 5:
		ioctl(fds[at], ioctls[below(r, choices)],
		      one_in(r, 3) ? PERF_IOC_FLAG_GROUP : below(r, 4));
		break;
	case 6:
		period = one_in(r, 3) ? rnd(r) : 1000 + below(r, 100000);
		ioctl(fds[at], PERF_EVENT_IOC_PERIOD, &period);
		break;
	case 7:
		/* Linux 2.6.38 crashes when such an event is mapped and unmapped. */
		if (cards_kernel())
			break;
		ioctl(fds[at], PERF_EVENT_IOC_SET_OUTPUT, one_in(r, 4) ? -1 : fds[other]);
		break;
	case 8:
		if (fds[at] >= 0 && !maps[at]) {
			lengths[at] = (1 + (1UL << below(r, 4))) * getpagesize();
			maps[at] = mmap(NULL, lengths[at],
					one_in(r, 3) ? PROT_READ : PROT_READ | PROT_WRITE,
					MAP_SHARED, fds[at], 0);
			if (maps[at] == MAP_FAILED)
				maps[at] = NULL;
		}
		break;
	case 9:
		if (read(fds[at], buf, below(r, sizeof(buf))) < 0)
			break;
		break;
	case 10: {
		struct pollfd p = { .fd = fds[at], .events = POLLIN };

		poll(&p, 1, 0);
		break;
	}
	default:
		if (one_in(r, 20)) {
			fuzz_fork(r);
		} else if (one_in(r, 4)) {
			fuzz_instructions(r);
		} else if (one_in(r, 10)) {
			cpu_set_t set;

			CPU_ZERO(&set);
			CPU_SET(below(r, s->f->cpus), &set);
			sched_setaffinity(0, sizeof(set), &set);
		} else {
			spin20(below(r, 2000));
		}
	}
}

static bool fuzz_over(const struct fuzz *f)
{
	return now_ns() >= f->deadline;
}

static bool fuzz_leave(const struct fuzz *f)
{
	return __atomic_load_n(&f->leave, __ATOMIC_RELAXED);
}

static struct rng fuzz_seed(const struct fuzz *f, int i)
{
	return (struct rng){ f->seed + 7919 * (i + 1) };
}

static void fuzz_close(struct fuzzer *s)
{
	int k;

	for (k = 0; k < FUZZ_FDS; k++) {
		if (s->maps[k])
			munmap(s->maps[k], s->lengths[k]);
		s->maps[k] = NULL;
		if (s->fds[k] >= 0)
			close(s->fds[k]);
		s->fds[k] = -1;
	}
}

static void fuzz_one(struct fuzz *f, int i)
{
	struct fuzzer s = { .f = f, .r = fuzz_seed(f, i) };
	u64 steps = 0;

	memset(s.fds, -1, sizeof(s.fds));
	signal(SIGIO, SIG_IGN);
	signal(SIGTRAP, SIG_IGN);
	pmu();
	if (i & 1)
		become_nobody();
	while (!fuzz_over(f)) {
		fuzz_step(&s);
		steps++;
		if (fuzz_leave(f)) {
			fuzz_close(&s);
			usleep(1000);
		}
	}
	__atomic_add_fetch(&f->opened, events_opened, __ATOMIC_RELAXED);
	__atomic_add_fetch(&f->steps, steps, __ATOMIC_RELAXED);
}

/* Moves a process to a cgroup; either may be gone. */
static void move_to_cgroup(u64 which, pid_t pid)
{
	char path[64];
	int fd = open(cgroup_path(path, which, "/cgroup.procs"), O_WRONLY);

	if (fd >= 0) {
		dprintf(fd, "%d", pid);
		close(fd);
	}
}

/* Unloads the driver if no event is left, and loads it again. */
static void fuzz_reload(struct fuzz *f, bool leave)
{
	int tries = leave ? 100 : 1;

	__atomic_store_n(&f->leave, leave, __ATOMIC_RELAXED);
	while (driver_try_unload()) {
		must(errno == EWOULDBLOCK, "unloading: %s", strerror(errno));
		if (!--tries)
			break;
		usleep(1000);
	}
	if (tries) {
		must_load();
		f->loads++;
	}
	__atomic_store_n(&f->leave, false, __ATOMIC_RELAXED);
}

/* In Linux 2.6.38 the kernel's own driver would get the events meanwhile. */
static bool fuzz_reloads(void)
{
	return driver_is_module() && !cards_kernel();
}

static void fuzz_administrate(struct fuzz *f, const pid_t *pids, int n)
{
	struct rng r = fuzz_seed(f, 100);
	int cpu;

	while (!fuzz_over(f)) {
		usleep(1000 + below(&r, 20000));
		switch (below(&r, 4)) {
		case 0:
			/* Linux 2.6.38 may hang: see hotplug.c. */
			if (cards_kernel())
				break;
			cpu = 1 + below(&r, f->cpus - 1);
			__atomic_add_fetch(&f->moves, 1, __ATOMIC_SEQ_CST);
			set_online(cpu, false);
			usleep(below(&r, 5000));
			set_online(cpu, true);
			__atomic_add_fetch(&f->moves, 1, __ATOMIC_SEQ_CST);
			f->offline++;
			break;
		case 1:
			if (fuzz_reloads())
				fuzz_reload(f, one_in(&r, 2));
			break;
		case 2:
			sample_limit(500 + below(&r, 50000));
			break;
		default:
			move_to_cgroup(below(&r, CGROUPS), pids[below(&r, n)]);
		}
	}
}

/* One measurement; true if the event was on a counter all the time */
static bool witness_once(u64 n, u64 *count)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	struct times t;
	long ret;
	int fd;

	*count = 0;
	attr.read_format = READ_TIMES;
	fd = sys_open(&attr, 0, -1, -1, 0);
	/* while the driver is away */
	if (fd < 0)
		return false;
	ret = measured_spin(fd, n, 0);
	if (ret) {
		close(fd);
		return false;
	}
	t = ev_times(fd);
	close(fd);
	*count = t.value;
	return t.running && t.running == t.enabled;
}

static void fuzz_witness(void *arg, int i)
{
	struct fuzz *f = arg;
	struct rng r = fuzz_seed(f, 200 + i);
	u64 n, count, base = 0;

	pmu();
	while (!fuzz_over(f)) {
		if (fuzz_leave(f)) {
			usleep(1000);
			continue;
		}
		n = base ? below(&r, 30000) : 0;
		if (!witness_once(n, &count)) {
			__atomic_add_fetch(&f->shared, 1, __ATOMIC_RELAXED);
			must(!base || count <= base + 2 * n,
			     "seed %llu: part of a loop of %llu counts %llu", f->seed, base + 2 * n,
			     count);
			usleep(100);
			continue;
		}
		if (!base)
			base = count;
		must(count == base + 2 * n, "seed %llu: a loop of %llu counts %llu", f->seed,
		     base + 2 * n, count);
		__atomic_add_fetch(&f->exact, 1, __ATOMIC_RELAXED);
	}
}

#define FUZZERS	6
#define WITNESSES	2

static void fuzz_children(struct fuzz *f)
{
	pid_t pids[FUZZERS + WITNESSES + 1];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = must_fork();
		if (pids[i])
			continue;
		if (i < FUZZERS)
			fuzz_one(f, i);
		else if (i < FUZZERS + WITNESSES)
			fuzz_witness(f, i);
		else
			fuzz_administrate(f, pids, FUZZERS);
		fflush(stdout);
		_exit(0);
	}
	for (i = 0; i < ARRAY_SIZE(pids); i++)
		reap(pids[i]);
}

/* The witness alone, beside other fuzzers */
TEST(witness, "witness", 240)
{
	struct fuzz *f = shared(sizeof(*f));

	f->seed = setting("TEST_FUZZ_SEED", 0x4b4e4350);
	f->deadline = now_ns() + setting("TEST_FUZZ_SECONDS", 6) * 1000000000;
	in_children(WITNESSES, false, fuzz_witness, f);
	note("%llu loops exact, %llu shared", f->exact, f->shared);
	must(f->exact > 10, "the loop was counted only %llu times", f->exact);
}

TEST(fuzz, "fuzz", 240)
{
	long paranoid = sysctl_get("kernel/perf_event_paranoid");
	u64 seconds = setting("TEST_FUZZ_SECONDS", scale() > 1 ? 15 : 4);
	struct fuzz *f = shared(sizeof(*f));
	char path[64];
	u64 i;

	many_files();
	sample_limit(20000);
	sysctl_set("kernel/perf_event_paranoid", 0);
	for (i = 0; i < CGROUPS; i++)
		mkdir(cgroup_path(path, i, ""), 0755);
	f->seed = setting("TEST_FUZZ_SEED", 0x4b4e4350);
	f->cpus = cpus_online();
	f->deadline = now_ns() + seconds * 1000000000;
	fuzz_children(f);
	for (i = 0; i < CGROUPS; i++)
		rmdir(cgroup_path(path, i, ""));
	sysctl_set("kernel/perf_event_paranoid", paranoid);
	must(!driver_is_module() || driver_loaded() || !driver_load(), "loading: %s",
	     strerror(errno));
	note("seed %llu: %llu steps, %llu events opened, %llu CPUs taken, %llu loads", f->seed,
	     f->steps, f->opened, f->offline, f->loads);
	note("%llu loops exact, %llu shared", f->exact, f->shared);
	must(f->steps > 1000 && f->opened > 10, "%llu steps, %llu events: too few",
	     f->steps, f->opened);
	must((f->offline || cards_kernel()) && (f->loads || !fuzz_reloads()),
	     "CPUs were taken offline %llu times, drivers loaded %llu times", f->offline, f->loads);
	must(f->exact > 10, "the loop was counted only %llu times", f->exact);
	must_be_sound("fuzzing");
}
