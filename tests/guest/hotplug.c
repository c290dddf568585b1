// SPDX-License-Identifier: GPL-2.0-only
/* CPUs that go offline and come back under load, and what they find in the registers */
#include "lib.h"

struct load {
	atomic_bool stop;
	atomic_ullong chunks;
	/* a CPU is going or coming, and how many tasks are closing a file */
	atomic_bool changing;
	atomic_uint at_files;
};

/*
 * Linux 2.6.38 never releases a CPU's lock if that CPU goes or comes while the file of an event
 * is closed (vfsmount_lock, fixed in 3.2). So no task closes one then; counting goes on.
 */
static bool may_close(struct load *load)
{
	load->at_files++;
	if (!load->changing)
		return true;
	load->at_files--;
	return false;
}

static void change_cpu(struct load *load, int cpu, bool online)
{
	load->changing = cards_kernel();
	while (load->changing && load->at_files)
		usleep(100);
	set_online(cpu, online);
	load->changing = false;
}

/* Exact counts, and all samples, wherever the kernel moves this task */
static void sampled_task(void *arg, int i)
{
	const u64 n = 1000000, period = 10007, base = spin_cost();
	struct load *load = arg;
	int fd;

	(void)i;
	while (!load->stop) {
		struct tally t = {};
		u64 want, runs = 0;
		struct ring r;

		fd = ring_self(&r, 16, period);
		do {
			ev_spin(fd, n);
			ring_tally(&r, &t, spin_lo, spin_hi);
			runs++;
		} while (!may_close(load));
		want = runs * (base + 2 * n);
		must(ev_count(fd) == want, "a task counted %llu, not %llu", ev_count(fd), want);
		samples_near(t.samples, want / period, "a task");
		samples_whole(&t, "a task");
		ring_close(&r, fd);
		load->at_files--;
		load->chunks += runs;
	}
}

/*
 * perf core takes a CPU-wide event off for good as its CPU goes: its count stays, and an event
 * that is opened later counts the rest.
 */
static void check_cpu_wide(int cpu, u64 *total)
{
	const u64 period = 20011;
	struct perf_event_attr attr = sampling_attr(INSTRUCTIONS, period, PERF_SAMPLE_IP);
	u64 truth[2] = {}, count[2];
	struct tally t[2] = {};
	struct ring r[2];
	int fd[2], i;
	bool td = td_present();

	for (i = 0; i < 2; i++) {
		if (td)
			truth[i] = td_counted(cpu);
		fd[i] = ring_open(&r[i], 128, attr, -1, cpu, -1);
		ev_on(fd[i]);
		spin_for_ms(20);
		if (i == 0)
			set_online(cpu, false);
		else
			ev_off(fd[i]);
		if (td)
			truth[i] = td_counted(cpu) - truth[i];
		count[i] = ev_count(fd[i]);
		if (i == 0) {
			usleep(1000);
			must(ev_count(fd[0]) == count[0], "an event of an offline CPU counts");
			set_online(cpu, true);
		}
		ring_tally(&r[i], &t[i], NULL, NULL);
		must(!td || count[i] == truth[i], "%s CPU %d went: counted %llu, the emulator %llu",
		     i ? "after" : "until", cpu, count[i], truth[i]);
		samples_near(t[i].samples + t[i].lost, count[i] / period,
			     text_of("%s CPU %d went", i ? "after" : "until", cpu));
		*total += count[i];
	}
	for (i = 0; i < 2; i++)
		ring_close(&r[i], fd[i]);
}

TEST("hotplug", 600)
{
	struct load *load = shared(sizeof(*load));
	int n = cpus_online(), rounds = 40 / (scale() > 1 ? 4 : 1), round, i;
	u64 total = 0;
	pid_t pids[8];

	must(n > 1, "needs two CPUs");
	start_children(pids, 3, false, sampled_task, load);
	for (round = 0; round < rounds; round++) {
		int cpu = 1 + round % (n - 1);

		change_cpu(load, cpu, false);
		usleep(1000 * (round % 7));
		change_cpu(load, cpu, true);
		usleep(1000 * (round % 5));
	}
	load->stop = true;
	reap_all(pids, 3);
	must(load->chunks >= 10, "only %llu loops were counted meanwhile", load->chunks);

	/* a busy task on each CPU but this one */
	n = n > 9 ? 9 : n;
	pin(0);
	for (i = 0; i < n - 1; i++)
		in_child(pids[i])
			spin20(-1);
	for (round = 0; round < 2 * (n - 1); round++) {
		int cpu = 1 + round % (n - 1);

		/* a CPU that goes takes the affinity of its tasks with it */
		pin_pid(pids[cpu - 1], cpu);
		check_cpu_wide(cpu, &total);
	}
	for (i = 0; i < n - 1; i++)
		end_child(pids[i]);
	must(total > 1000000, "CPU-wide events counted only %llu", total);
}

/*
 * A group whose leader has lost its CPU refuses members: perf core would not remove a
 * member when the leader is closed, and would later use the freed leader.
 */
TEST("hotplug-group", 60)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	int cpu = cpus_online() - 1, leader;

	must(cpu > 0, "needs two CPUs");
	leader = ev_open(attr, -1, cpu, -1);
	close(ev_open(attr, -1, cpu, leader));
	set_online(cpu, false);
	set_online(cpu, true);
	ev_refused(attr, -1, cpu, leader, ENODEV, "joining a group whose CPU was away");
	close(leader);
	leader = ev_open(attr, -1, cpu, -1);
	close(ev_open(attr, -1, cpu, leader));
}

/*
 * perf core refuses a task's SPFLT event in a CPU-wide group, but after event_init(), which it
 * calls with locks held. If that waited for a CPU that goes offline, and the CPU for the locks,
 * both would hang: so other processes do it.
 */
struct meeting {
	int cpu;
	atomic_ullong rounds, opens;
	atomic_bool stop;
};

static void meet(void *arg, int i)
{
	struct perf_event_attr member = spflt_attr(INSTRUCTIONS);
	struct meeting *m = arg;
	int lead;

	pin(i % 2);
	for (; !i && !m->stop; m->rounds++) {
		set_online(m->cpu, false);
		set_online(m->cpu, true);
	}
	while (!m->stop) {
		lead = sys_open(user_attr(INSTRUCTIONS), -1, m->cpu, -1, 0);
		if (lead < 0)
			continue;
		/* mostly refused */
		close(sys_open(member, 0, -1, lead, 0));
		close(sys_open(member, 0, m->cpu, lead, 0));
		close(lead);
		m->opens++;
	}
}

TEST("hotplug-spflt-group", 120)
{
	struct meeting *m = shared(sizeof(*m));
	int cpu = cpus_online() - 1, idle;
	u64 rounds = 40 / (scale() > 1 ? 4 : 1), last = 0;
	pid_t pids[3];

	must(cpu > 1, "there are only two CPUs");
	m->cpu = cpu;
	start_children(pids, 3, false, meet, m);
	for (idle = 0; m->rounds < rounds; idle++) {
		if (m->rounds != last) {
			last = m->rounds;
			idle = 0;
		}
		must(idle < 150, "CPU %d hangs in hotplug in round %llu, after %llu groups", cpu,
		     m->rounds, m->opens);
		usleep(100000);
	}
	m->stop = true;
	reap_all(pids, 3);
	must(m->opens > rounds, "only %llu groups", m->opens);
}

/* INIT does not reset the PMU: the driver must clear the junk of before. */
static void leave_junk(int cpu, u64 spflt)
{
	int i;

	/* A filter that an event has left would keep its counter from counting. */
	wrmsr_on(cpu, 0x2c, 0);
	/* without INT: an overflow sets STATUS and does not interrupt */
	for (i = 0; i < 2; i++) {
		wrmsr_on(cpu, 0x20 + i, 0xfffffffffeULL);
		wrmsr_on(cpu, 0x28 + i, INSTRUCTIONS | EVTSEL_USR | EVTSEL_OS | EVTSEL_EN);
	}
	wrmsr_on(cpu, 0x2f, 3);
	must(rdmsr_on(cpu, 0x2d) == 3, "CPU %d: STATUS is %#llx after two overflows", cpu,
	     rdmsr_on(cpu, 0x2d));
	wrmsr_on(cpu, 0x28, 0x81ff | EVTSEL_EDGE | EVTSEL_USR | EVTSEL_EN);
	wrmsr_on(cpu, 0x29, 0x42002fff | EVTSEL_ANY | EVTSEL_OS | EVTSEL_EN);
	wrmsr_on(cpu, 0x2c, spflt);
}

static void must_be_clean(int cpu, const char *when)
{
	static const u32 msrs[] = { 0x20, 0x21, 0x28, 0x29, 0x2c, 0x2d, 0x2f };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(msrs); i++) {
		u64 value = rdmsr_on(cpu, msrs[i]);

		must(!value, "%s, CPU %d has %#llx in MSR %#x", when, cpu, value, msrs[i]);
	}
}

static void must_work(int cpu, const char *when)
{
	int fd;

	pin(cpu);
	must_count(when);
	fd = ev_open(user_attr(INSTRUCTIONS), -1, cpu, -1);
	ev_spin(fd, 100000);
	must(ev_count(fd) >= 200000, "%s, an event of CPU %d has counted %llu", when, cpu,
	     ev_count(fd));
	close(fd);
	must_sample(when);
}

TEST("hotplug-reset", 240)
{
	int cpu, n = cpus_online();

	msr_need();
	must(n > 1, "needs two CPUs");
	for (cpu = 1; cpu < n; cpu++) {
		/* Not the user preference: it is a task's, and idle tasks have none. */
		leave_junk(cpu, 3);
		set_online(cpu, false);
		set_online(cpu, true);
		must_be_clean(cpu, "back online");
		must_work(cpu, "back online");
	}
}

/* The same for a driver that is loaded while registers hold junk */
TEST("reset-state", 60)
{
	int cpu, n = cpus_online();

	msr_need();
	module_need();
	must(!driver_loaded(), "the driver is loaded");
	for (cpu = 0; cpu < n; cpu++)
		leave_junk(cpu, 1ULL << 63 | 3);
	must_load();
	for (cpu = 0; cpu < n; cpu++)
		must_be_clean(cpu, "after loading");
	for (cpu = 0; cpu < n; cpu++)
		must_work(cpu, "after loading");
}

/* Opened enabled: perf core adds it at once, and it counts before the next tick. */
static void must_count_first(pid_t pid, int cpu)
{
	int fd = ev_open(user_attr(INSTRUCTIONS, .disabled = 0), pid, cpu, -1);
	u64 counted = ev_count(fd);

	spin(5000);
	counted = ev_count(fd) - counted;
	must(counted >= 10000, "the first event of a CPU: %llu of 10000 instructions", counted);
	close(fd);
}

TEST("first-event", 60)
{
	int cpu, i;

	must(cpus_online() > 1, "needs two CPUs");
	for (cpu = 1; cpu < cpus_online(); cpu++) {
		for (i = 0; i < 2; i++) {
			set_online(cpu, false);
			set_online(cpu, true);
			pin(cpu);
			must_count_first(i ? -1 : 0, i ? cpu : -1);
			pin(0);
		}
	}
}

