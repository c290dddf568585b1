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
#include "lib.h"

#include <poll.h>
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
	atomic_ullong steps, opened;
	/* by the administrator: CPUs taken offline, drivers loaded */
	u64 offline, loads;
	/* odd while a CPU is away */
	atomic_ullong moves;
	/* loops of the witness that were counted exactly, or shared their counter */
	atomic_ullong exact, shared;
	int cpus;
	/* all close their events, so that the driver can be unloaded */
	atomic_bool leave;
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

/* @leader may be NULL */
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
		if (read(e->fd, buf, random_below(r, sizeof(buf))) < 0)
			break;
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
		if (f->leave) {
			for (k = 0; k < FUZZ_FDS; k++)
				fuzz_close(&s.events[k]);
			usleep(1000);
		}
	}
}

/* Unloads the driver if no event is left, and loads it again. */
static void fuzz_reload(struct fuzz *f, bool leave)
{
	int tries = leave ? 100 : 1;

	f->leave = leave;
	while (driver_try_unload()) {
		must(errno == EWOULDBLOCK, "unloading: %m");
		if (!--tries)
			break;
		usleep(1000);
	}
	if (tries) {
		must_load();
		f->loads++;
	}
	f->leave = false;
}

/* In Linux 2.6.38 the kernel's own driver would get the events meanwhile. */
static bool fuzz_reloads(void)
{
	return driver_is_module() && !cards_kernel();
}

static void fuzz_administrate(struct fuzz *f, const pid_t *pids, int n)
{
	u64 r = fuzz_seed(f, 100);
	const char *path;
	int cpu;

	while (now_ns() < f->deadline) {
		usleep(1000 + random_below(&r, 20000));
		switch (random_below(&r, 4)) {
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
			if (fuzz_reloads())
				fuzz_reload(f, one_in(&r, 2));
			break;
		case 2:
			sample_limit(500 + random_below(&r, 50000));
			break;
		default:
			path = cgroup_path(random_below(&r, CGROUPS));
			/* either may be gone */
			file_write(text_of("%s/cgroup.procs", path),
				   text_of("%d", pids[random_below(&r, n)]));
		}
	}
}

/* One measurement; true if the event was on a counter all the time */
static bool witness_once(u64 n, u64 *count)
{
	int fd = sys_open(times_attr(INSTRUCTIONS), 0, -1, -1, 0);
	struct times t;

	*count = 0;
	/* while the driver is away */
	if (fd < 0)
		return false;
	if (measured_spin(fd, n, 0)) {
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
	u64 r = fuzz_seed(f, 200 + i), n, count, base = 0;

	pmu();
	while (now_ns() < f->deadline) {
		if (f->leave) {
			usleep(1000);
			continue;
		}
		n = base ? random_below(&r, 30000) : 0;
		if (!witness_once(n, &count)) {
			f->shared++;
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
		f->exact++;
	}
}

#define FUZZERS	6
#define WITNESSES	2

static void fuzz_children(struct fuzz *f)
{
	pid_t pids[FUZZERS + WITNESSES + 1];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pids); i++) {
		in_child(pids[i]) {
			if (i < FUZZERS)
				fuzz_one(f, i);
			else if (i < FUZZERS + WITNESSES)
				fuzz_witness(f, i);
			else
				fuzz_administrate(f, pids, FUZZERS);
		}
	}
	reap_all(pids, ARRAY_SIZE(pids));
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
	u64 i;

	many_files();
	sample_limit(20000);
	sysctl_set("kernel/perf_event_paranoid", 0);
	for (i = 0; i < CGROUPS; i++)
		mkdir(cgroup_path(i), 0755);
	f->seed = setting("TEST_FUZZ_SEED", 0x4b4e4350);
	f->cpus = cpus_online();
	f->deadline = now_ns() + seconds * 1000000000;
	fuzz_children(f);
	for (i = 0; i < CGROUPS; i++)
		rmdir(cgroup_path(i));
	sysctl_set("kernel/perf_event_paranoid", paranoid);
	must(!driver_is_module() || driver_loaded() || !driver_load(), "loading: %m");
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
