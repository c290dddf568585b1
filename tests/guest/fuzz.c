// SPDX-License-Identifier: GPL-2.0-only
/*
 * Workers count, at random, what they know the length of: loops, with and without
 * samples, groups, children, regions and CPUs. No count may be wrong.
 *
 * fuzz: beside them fuzzers, as root and as nobody, make random system calls on events.
 * An administrator takes CPUs offline, changes limits, traces workers, and moves
 * processes from cgroup to cgroup.
 * soak: workers and administrator alone. The counts add up to the emulator's.
 * witness: workers alone, beside other programs.
 *
 * TEST_FUZZ_SECONDS is how long, TEST_FUZZ_SEED where the random numbers begin: the
 * same seed does the same. Workers wait TEST_FUZZ_DELAY cycles, on average, after a count.
 */
#include "lib.h"

#include <poll.h>
#include <sys/ptrace.h>
#include <sys/stat.h>

#include "../../include/knc_pmu_user.h"

static bool one_in(u64 *r, u64 n)
{
	return !random_below(r, n);
}

static struct perf_event_attr random_attr(u64 *r)
{
	static const u64 codes[] = {
		INSTRUCTIONS, BRANCHES, CYCLES, L2_READ_MISS, L2_WRITE_HIT, CODE(0, 0x20),
		CODE(0x28, 0), CODE(0xff, 0xff), CODE(0xf0, 0x10),
	};
	static const u64 periods[] = {
		0, 1, 2, 100, 1000, 1009, 100000, 1ULL << 31, (1ULL << 39) - 1, 1ULL << 39,
		(1ULL << 40) - 1, 1ULL << 40, 1ULL << 62, (1ULL << 63) - 1,
	};
	struct perf_event_attr attr = attr_of(codes[random_below(r, ARRAY_SIZE(codes))]);

	if (one_in(r, 10))
		attr.type = random_below(r, 8);
	if (one_in(r, 4))
		attr.config ^= 1ULL << random_below(r, one_in(r, 4) ? 64 : 32);
	if (one_in(r, 30))
		attr.config = random_bits(r);
	/* Linux 2.6.38 takes a negative config for an index into its table. */
	if (cards_kernel() && attr.type == PERF_TYPE_SOFTWARE)
		attr.config &= INT32_MAX;
	if (one_in(r, 30))
		attr.config1 = one_in(r, 2) ? 1 : random_bits(r);
	if (one_in(r, 60))
		attr.config2 = random_bits(r);
	attr.disabled = random_below(r, 2);
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
	attr.precise_ip = one_in(r, 30) ? 1 + random_below(r, 3) : 0;
	attr.sample_id_all = one_in(r, 2);
	attr.write_backward = one_in(r, 10);
	attr.remove_on_exec = one_in(r, 20);
	if (!one_in(r, 3)) {
		attr.sample_period = periods[random_below(r, ARRAY_SIZE(periods))];
		attr.freq = one_in(r, 4);
		if (attr.freq)
			attr.sample_freq = 1 + random_below(r, 5000);
	}
	if (attr.sample_period) {
		attr.sample_type = random_bits(r) & (PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_READ |
			PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_ID | PERF_SAMPLE_CPU |
			PERF_SAMPLE_PERIOD | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_IDENTIFIER |
			PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PHYS_ADDR);
		if (one_in(r, 10)) {
			attr.sample_type |= PERF_SAMPLE_REGS_INTR;
			attr.sample_regs_intr = random_bits(r) & 0xffffff;
		}
		if (one_in(r, 10)) {
			attr.sample_type |= PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_USER;
			attr.sample_stack_user = 8 * random_below(r, 128);
			attr.sample_regs_user = random_bits(r) & 0xffffff;
		}
		if (one_in(r, 30))
			attr.sample_type = random_bits(r);
		attr.wakeup_events = random_below(r, 4);
	}
	attr.read_format = random_bits(r) & 0xf;
	return attr;
}

#define FUZZ_FDS	24
#define CGROUPS		3

struct fuzz {
	u64 deadline, seed;
	int cpus;
	/* Others, too, use the counters, and limit samples. */
	bool others;
	atomic_ullong steps, opened;
	/* CPUs taken offline by the administrator */
	u64 offline;
	/* odd while a CPU is away */
	atomic_ullong moves;
	/* of the workers: events with a counter all the time, or not; the sum of counts */
	atomic_ullong exact, shared, told, samples;
	/* The most that two programs execute besides their loops; the first run sets it */
	u64 programs;
};

struct fuzz_event {
	int fd;			/* or -1 */
	void *map;
	size_t length;
	/* fuzz.moves before it was opened */
	u64 since;
};

/* A process of random system calls, and its events */
struct fuzzer {
	struct fuzz *f;
	u64 r;
	struct fuzz_event events[FUZZ_FDS];
};

static const char *cgroup_path(u64 which)
{
	return text_of("/sys/fs/cgroup/fuzz%llu", which);
}

/* RDPMC, allowed or not, and SPFLT */
static void fuzz_instructions(u64 *r)
{
	u64 value;

	if (knc_cpu() && one_in(r, 2))
		knc_spflt(random_below(r, 2));
	else
		try_rdpmc(one_in(r, 8) ? random_bits(r) : random_below(r, 2), &value);
}

static void fuzz_fork(u64 *r)
{
	pid_t pid = fork();

	if (!pid) {
		fuzz_instructions(r);
		spin(random_below(r, 2000));
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static int fuzz_open_cgroup(u64 *r, struct perf_event_attr attr, int cpu, int group,
			    unsigned long flags)
{
	int dir = open(cgroup_path(random_below(r, CGROUPS)), O_RDONLY);
	int fd;

	/* Newer perf cores crash on a pinned one that finds no counter (knc-pmu.rst). */
	attr.pinned &= kernel_before(6, 5);
	fd = sys_open(attr, dir, cpu, group, flags | PERF_FLAG_PID_CGROUP);
	if (dir >= 0)
		close(dir);
	return fd;
}

static int fuzz_open(struct fuzzer *s, const struct fuzz_event *leader)
{
	u64 *r = &s->r;
	struct perf_event_attr attr = random_attr(r);
	bool wide = one_in(r, 3);
	int cpu = wide || one_in(r, 4) ? (int)random_below(r, s->f->cpus) : -1;
	unsigned long flags = one_in(r, 20) ? random_bits(r) & 0xf : 0;
	int fd, group = leader ? leader->fd : -1;

	if (wide && one_in(r, 4))
		fd = fuzz_open_cgroup(r, attr, cpu, group, flags);
	else
		fd = sys_open(attr, wide ? -1 : 0, cpu, group, flags);
	/*
	 * The driver refuses a group whose leader has lost its CPU. Other PMUs do not,
	 * and then the member must be closed before the leader (knc-pmu.rst).
	 */
	if (fd >= 0 && wide && leader &&
	    (leader->since & 1 || leader->since != s->f->moves)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void fuzz_close(struct fuzz_event *e)
{
	if (e->map)
		munmap(e->map, e->length);
	if (e->fd >= 0)
		close(e->fd);
	*e = (struct fuzz_event){ .fd = -1 };
}

static void fuzz_step(struct fuzzer *s)
{
	static const unsigned long ioctls[] = {
		PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE, PERF_EVENT_IOC_RESET,
		PERF_EVENT_IOC_PAUSE_OUTPUT, PERF_EVENT_IOC_REFRESH,
	};
	/* Newer perf cores crash on REFRESH of a cgroup's event (knc-pmu.rst). */
	size_t choices = ARRAY_SIZE(ioctls) - !kernel_before(6, 5);
	u64 *r = &s->r, period, since;
	struct fuzz_event *e = &s->events[random_below(r, FUZZ_FDS)];
	struct fuzz_event *other = &s->events[random_below(r, FUZZ_FDS)];
	char buf[256];

	switch (random_below(r, 12)) {
	case 0:
	case 1:
	case 2:
		if (e->map)
			break;
		if (e->fd >= 0)
			close(e->fd);
		since = s->f->moves;
		e->fd = fuzz_open(s, one_in(r, 3) ? other : NULL);
		e->since = since;
		s->f->opened += e->fd >= 0;
		break;
	case 3:
		fuzz_close(e);
		break;
	case 4:
	case 5:
		ioctl(e->fd, ioctls[random_below(r, choices)],
		      one_in(r, 3) ? PERF_IOC_FLAG_GROUP : random_below(r, 4));
		break;
	case 6:
		period = one_in(r, 3) ? random_bits(r) : 1000 + random_below(r, 100000);
		ioctl(e->fd, PERF_EVENT_IOC_PERIOD, &period);
		break;
	case 7:
		/* Linux 2.6.38 crashes when such an event is mapped and unmapped. */
		if (cards_kernel())
			break;
		ioctl(e->fd, PERF_EVENT_IOC_SET_OUTPUT, one_in(r, 4) ? -1 : other->fd);
		break;
	case 8:
		if (e->fd < 0 || e->map)
			break;
		e->length = (1 + (1UL << random_below(r, 4))) * getpagesize();
		e->map = mmap(NULL, e->length, one_in(r, 3) ? PROT_READ : PROT_READ | PROT_WRITE,
			      MAP_SHARED, e->fd, 0);
		if (e->map == MAP_FAILED)
			e->map = NULL;
		break;
	case 9:
		syscall(SYS_read, e->fd, buf, random_below(r, sizeof(buf)));
		break;
	case 10: {
		struct pollfd p = { .fd = e->fd, .events = POLLIN };

		poll(&p, 1, 0);
		break;
	}
	default:
		if (one_in(r, 20))
			fuzz_fork(r);
		else if (one_in(r, 4))
			fuzz_instructions(r);
		else if (one_in(r, 10))
			try_pin(0, random_below(r, s->f->cpus));
		else
			spin20(random_below(r, 2000));
	}
}

static u64 fuzz_seed(const struct fuzz *f, int i)
{
	return f->seed + 7919 * (i + 1);
}

static void fuzz_one(struct fuzz *f, int i)
{
	struct fuzzer s = { .f = f, .r = fuzz_seed(f, i) };
	int k;

	for (k = 0; k < FUZZ_FDS; k++)
		s.events[k].fd = -1;
	signal(SIGIO, SIG_IGN);
	signal(SIGTRAP, SIG_IGN);
	pmu();
	if (i & 1)
		become_nobody();
	while (now_ns() < f->deadline) {
		fuzz_step(&s);
		f->steps++;
	}
}

/* Single-steps a worker, then lets it go on. Its signals are dropped: it needs none. */
static void fuzz_trace(pid_t pid, u64 steps)
{
	bool stopped = false;
	int status;

	if (ptrace(PTRACE_ATTACH, pid, 0, 0))
		return;
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
		stopped |= WSTOPSIG(status) == SIGSTOP;
		if (stopped && !steps--) {
			ptrace(PTRACE_DETACH, pid, 0, 0);
			return;
		}
		ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
	}
}

/* Of the @n processes the first @fuzzers are fuzzers. */
static void fuzz_administrate(struct fuzz *f, const pid_t *pids, int fuzzers, int n)
{
	u64 r = fuzz_seed(f, 100), turn;
	const char *path;
	int cpu;

	/* A CPU once, however short it is */
	for (turn = 0; !turn || now_ns() < f->deadline; turn++) {
		usleep(1000 + random_below(&r, f->others ? 20000 : 200000));
		switch (turn ? random_below(&r, 4) : 0) {
		case 0:
			/* Linux 2.6.38 may hang: see hotplug.c. */
			if (cards_kernel())
				break;
			cpu = 1 + random_below(&r, f->cpus - 1);
			f->moves++;
			set_online(cpu, false);
			usleep(random_below(&r, 5000));
			set_online(cpu, true);
			f->moves++;
			f->offline++;
			break;
		case 1:
			if (f->others)
				sample_limit(500 + random_below(&r, 50000));
			break;
		case 2:
			fuzz_trace(pids[fuzzers + random_below(&r, n - fuzzers)],
				   random_below(&r, 1000));
			break;
		default:
			path = cgroup_path(random_below(&r, CGROUPS));
			/* either may be gone */
			file_write(text_of("%s/cgroup.procs", path),
				   text_of("%d", pids[random_below(&r, n)]));
		}
	}
}

static int work_open(struct perf_event_attr attr)
{
	int fd;

	attr.read_format = READ_TIMES;
	fd = sys_open(attr, 0, -1, -1, 0);
	must(fd >= 0, "opening: %m");
	return fd;
}

/* Adds an event's count to the sum; false if it has shared its counter. */
static bool work_close(struct fuzz *f, int fd, u64 *count)
{
	struct times t = ev_times(fd);
	bool all = t.running == t.enabled && (t.running || cards_kernel());

	f->told += t.value;
	close(fd);
	*count = t.value;
	*(all ? &f->exact : &f->shared) += 1;
	return all;
}

/* If it was on a counter all the time, the event has counted at least so much. */
static void judge(struct fuzz *f, bool all, u64 count, u64 least, u64 most, const char *what)
{
	must(count <= most && (!all || count >= least), "seed %llu: %s counted %llu, not %llu",
	     f->seed, what, count, most);
}

/* What the event counts of a loop besides its instructions, once it had a counter */
static u64 work_cost(struct fuzz *f)
{
	u64 count = 0;
	bool all;
	int fd;

	do {
		fd = work_open(user_attr(INSTRUCTIONS));
		ev_spin(fd, 0);
		all = work_close(f, fd, &count);
	} while (!all && now_ns() < f->deadline);
	return count;
}

/* Samples each @period instructions, if that is not 0 */
static void work_loop(struct fuzz *f, u64 n, u64 period, u64 cost)
{
	struct perf_event_attr attr = sampling_attr(INSTRUCTIONS, period, PERF_SAMPLE_IP);
	u64 count, want = cost + 2 * n;
	struct tally t = {};
	struct ring r;
	int fd = work_open(attr);
	bool all;

	if (period)
		ring_map(&r, fd, 128, attr.sample_type);
	ev_spin(fd, n);
	if (period) {
		ring_tally(&r, &t, spin_lo, spin_hi);
		ring_unmap(&r);
	}
	all = work_close(f, fd, &count);
	judge(f, all, count, want, want, "a loop");
	if (!period)
		return;
	must(!t.throttles, "throttled, without a limit");
	samples_near(t.samples + t.lost, count / period, text_of("a loop, period %llu", period));
	f->samples += t.samples;
}

static void work_group(struct fuzz *f, u64 n, u64 cost)
{
	struct perf_event_attr attr = times_attr(INSTRUCTIONS);
	u64 instructions, branches;
	int leader = work_open(attr), sibling;
	bool all;

	sibling = ev_join(attr, BRANCHES, leader);
	ev_spin(leader, n);
	all = work_close(f, sibling, &branches);
	all = work_close(f, leader, &instructions) && all;
	judge(f, all, instructions, cost + 2 * n, cost + 2 * n, "a group");
	judge(f, all, branches, n, cost + n, "a group's sibling");
}

/* Two children, with or without regions, in which they are refused an event; or two programs */
static void work_inherited(struct fuzz *f, u64 n, bool regions, bool programs)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS, .config1 = regions, .inherit = 1);
	pid_t pids[2];
	u64 count;
	int fd, i;
	bool all;

	fd = work_open(attr);
	ev_on(fd);
	for (i = 0; i < 2; i++) {
		in_child(pids[i]) {
			if (regions) {
				spin(n);
				spflt_on();
				attr.pinned = 1;
				/* ENODEV: it was swapped with a child's, which has ended. */
				must(sys_open(attr, 0, -1, fd, 0) < 0 &&
				     (errno == EINVAL || errno == ENODEV), "a pinned member: %m");
			} else if (programs) {
				execl("/proc/self/exe", "gt", "--spin", text_of("%llx", n), NULL);
			}
			spin(n);
			spflt_off();
		}
	}
	reap_all(pids, 2);
	ev_off(fd);
	/* Newer perf cores lose the time in which a child was not counted. */
	all = work_close(f, fd, &count);
	if (programs && !f->programs) {
		f->programs = all ? count - 4 * n + 20000 : 0;
		return;
	}
	judge(f, all && kernel_before(6, 13), count, 4 * n, 4 * n +
	      (programs ? f->programs : 20000), regions ? "children's regions" : "children");
}

static void work_wide(struct fuzz *f, int cpu, u64 period)
{
	u64 count;
	int fd;

	/* the CPU may be offline, or go offline */
	fd = sys_open(sampling_attr(INSTRUCTIONS, period, PERF_SAMPLE_IP,
				    .read_format = READ_TIMES), -1, cpu, -1, 0);
	if (fd < 0) {
		must(errno == ENODEV || f->others, "an event of CPU %d: %m", cpu);
		return;
	}
	ev_on(fd);
	spin(20000);
	usleep(1000);
	ev_off(fd);
	work_close(f, fd, &count);
}

/* DELAY costs the host nothing, and interrupts come after it: it takes 0.1 ms at most. */
static void work_wait(u64 *r)
{
	u64 left = random_below(r, 2 * setting("TEST_FUZZ_DELAY", 0) + 1), part;

	for (; left; left -= part) {
		part = left < 100000 ? left : 100000;
		asm volatile(".byte 0xc5, 0xfa, 0xae, 0xf0" : : "a" (part) : "memory");
	}
}

static void work(struct fuzz *f, int i)
{
	u64 r = fuzz_seed(f, 200 + i), cost, n, period, kind;
	/* One of soak counts all the time: in 19 minutes of it, as much as a counter can hold. */
	int cycles = i ? -1 : work_open(times_attr(CYCLES));

	if (!i)
		ev_on(cycles);
	cost = work_cost(f);
	while (now_ns() < f->deadline) {
		work_wait(&r);
		n = random_below(&r, one_in(&r, 8) ? 50000 : 5000);
		/* Others change how many samples there may be. */
		period = f->others ? 0 : 700 + random_below(&r, 2000);
		/* Linux 2.6.38 frees an event whose last file is closed as its task forks. */
		switch (random_below(&r, cards_kernel() ? 5 : 6)) {
		case 0:
			work_group(f, n, cost);
			break;
		case 1:
			work_wide(f, random_below(&r, f->cpus), period);
			break;
		case 5:
			kind = random_below(&r, 3);
			work_inherited(f, n, kind == 1, kind == 2);
			break;
		default:
			work_loop(f, n, period, cost);
		}
	}
	if (i)
		return;
	ev_off(cycles);
	work_close(f, cycles, &n);
}

/* In milliseconds: TEST_FUZZ_SECONDS, if it is given */
static u64 fuzz_time(u64 usual)
{
	return setting("TEST_FUZZ_SECONDS", 0) * 1000 ?: usual;
}

static void fuzz_run(struct fuzz *f, int fuzzers, int workers, int administrators, u64 ms)
{
	int n = fuzzers + workers + administrators, i;
	pid_t pids[16];

	f->seed = setting("TEST_FUZZ_SEED", 0x4b4e4350);
	note("TEST_FUZZ_SEED=%llu", f->seed);
	f->cpus = cpus_online();
	f->deadline = now_ns() + ms * 1000000;
	/* read the PMU's name now: the file may be gone for a moment */
	pmu();
	for (i = 0; i < CGROUPS; i++)
		mkdir(cgroup_path(i), 0755);
	for (i = 0; i < n; i++) {
		in_child(pids[i]) {
			if (i < fuzzers)
				fuzz_one(f, i);
			else if (i < fuzzers + workers)
				work(f, i);
			else
				fuzz_administrate(f, pids, fuzzers, i);
		}
	}
	reap_all(pids, n);
	for (i = 0; i < CGROUPS; i++)
		rmdir(cgroup_path(i));
	note("%llu counts are exact, %llu events have shared a counter", f->exact, f->shared);
	must(f->exact > 10, "only %llu counts are exact", f->exact);
}

TEST("witness", 240)
{
	struct fuzz *f = shared(sizeof(*f));

	f->others = true;
	fuzz_run(f, 0, 2, 0, fuzz_time(6000));
}

TEST("fuzz", 240)
{
	long paranoid = sysctl_get("kernel/perf_event_paranoid");
	struct fuzz *f = shared(sizeof(*f));

	sample_limit(20000);
	sysctl_set("kernel/perf_event_paranoid", 0);
	f->others = true;
	fuzz_run(f, 6, 2, 1, fuzz_time(scale() > 1 ? 3000 : 400));
	sysctl_set("kernel/perf_event_paranoid", paranoid);
	note("%llu steps, %llu events opened, %llu CPUs taken", f->steps, f->opened, f->offline);
	must(f->steps > 1000 && f->opened > 10, "%llu steps, %llu events: too few",
	     f->steps, f->opened);
	must(f->offline || cards_kernel(), "no CPU was taken offline");
	must_be_sound("fuzzing");
}

TEST("soak", 240)
{
	struct fuzz *f = shared(sizeof(*f));
	u64 truth;

	td_need();
	truth = td_sum(TD_COUNTED0) + td_sum(TD_COUNTED1);
	fuzz_run(f, 0, 8, 1, fuzz_time(400));
	truth = td_sum(TD_COUNTED0) + td_sum(TD_COUNTED1) - truth;
	note("%llu samples, %llu CPUs taken", f->samples, f->offline);
	must(f->told == truth, "all events together have %llu, the emulator has counted %llu",
	     f->told, truth);
	must(!td_sum(TD_LOST_EDGES), "%llu edges lost", td_sum(TD_LOST_EDGES));
	must(f->samples > 100, "only %llu samples", f->samples);
	must_be_sound("soaking");
}
