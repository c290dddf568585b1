// SPDX-License-Identifier: GPL-2.0-only
/* Which event is on which counter, and how events share too few counters */
#include "lib.h"

#include "kmod/knc_test_loop.h"

/* Events of this task at once, and the iterations of spin20() in that time */
static u64 run_at_once(const u64 *configs, int n, unsigned int ms, struct times *t)
{
	u64 iterations;
	int fd[3], i;

	for (i = 0; i < n; i++)
		fd[i] = ev_open(times_attr(configs[i]), 0, -1, -1);
	for (i = 0; i < n; i++)
		ev_on(fd[i]);
	iterations = spin_for_ms(ms);
	for (i = 0; i < n; i++)
		ev_off(fd[i]);
	for (i = 0; i < n; i++) {
		t[i] = ev_times(fd[i]);
		close(fd[i]);
	}
	return iterations;
}

/* Three events on two counters, used all the time: scaled counts are right within 2 %. */
TEST("multiplex", 120)
{
	long double parts = 0;
	static const u64 configs[] = { INSTRUCTIONS, BRANCHES, CYCLES };
	static const char * const names[] = { "instructions", "branches", "cycles" };
	u64 n, enabled = 0, running = 0, truth[3], cycles = 0;
	struct times t[3];
	int i;

	pin(0);
	if (td_present())
		cycles = td_read(0, TD_CYCLES_USER);
	n = run_at_once(configs, 3, 1500, t);
	truth[0] = n * 20;
	truth[1] = n;
	/* one counter is always on, and the emulator's cycles run with it */
	truth[2] = td_present() ? td_read(0, TD_CYCLES_USER) - cycles : 0;

	for (i = 0; i < 3; i++) {
		long double scaled;

		must(t[i].running && t[i].running < t[i].enabled,
		     "%s ran %llu of %llu ns: no turns taken", names[i],
		     t[i].running, t[i].enabled);
		scaled = (long double)t[i].value * t[i].enabled / t[i].running;
		must(!truth[i] || (scaled > truth[i] * 0.98 && scaled < truth[i] * 1.02),
		     "%s: scaled %.0Lf, true %llu", names[i], scaled, truth[i]);
		must(t[i].value, "%s did not count", names[i]);
		parts += truth[i] ? (long double)t[i].value / truth[i] : 0;
		running += t[i].running;
		enabled = t[i].enabled;
		/* Less than 1.5 s: clocks differ, and the main task wakes each 5 ms. */
		must(enabled > 1492500000 && enabled < 1600000000,
		     "%s was enabled for %llu ns", names[i], enabled);
		must(t[i].running > enabled * 0.64 && t[i].running < enabled * 0.69,
		     "%s ran %llu of %llu ns: not its share", names[i], t[i].running, enabled);
	}
	must(running > enabled * 1.99 && running < enabled * 2.01,
	     "two counters were in use for %llu of %llu ns", running, enabled);
	must(!truth[2] || (parts > 1.98 && parts < 2.02),
	     "two counters have counted %.4Lf times what there was", parts);
}

static void runs(int fd, const char *what)
{
	struct times t = ev_times(fd);

	/* The clock of Linux 2.6.38 is coarse. */
	must((t.running || cards_kernel()) && t.running == t.enabled, "%s: ran %llu of %llu ns",
	     what, t.running, t.enabled);
}

/* A group of two, one of which fits counter 0 only, in this order */
static void check_group(u64 first, u64 second, int want_first, const char *what)
{
	struct perf_event_attr attr = attr_of(first, .read_format = READ_TIMES);
	int a, b, got;

	a = ev_open(attr, 0, -1, -1);
	b = ev_join(attr, second, a);
	ev_on(a);
	spin(100000);
	got = counter_of(0, first);
	must(got == want_first, "%s: the first is on counter %d", what, got);
	got = counter_of(0, second);
	must(got == !want_first, "%s: the second is on counter %d", what, got);
	ev_off(a);
	runs(a, what);
	runs(b, what);
	close(b);
	close(a);
}

/* Two events without a group: the first moves for the second. */
static void check_moves(bool per_task)
{
	pid_t pid = per_task ? 0 : -1;
	int cpu = per_task ? -1 : 0;
	u64 count, base = spin_cost();
	int a, b;

	a = ev_start(times_attr(INSTRUCTIONS), pid, cpu);
	b = ev_open(times_attr(L2_READ_MISS), pid, cpu, -1);
	spin(1000);
	must(counter_of(0, INSTRUCTIONS) >= 0, "instructions are on no counter");

	/* exact over the move: nothing is lost, nothing counted twice */
	if (per_task) {
		ev_off(a);
		ev_ioctl(a, PERF_EVENT_IOC_RESET, 0);
		ev_spin(a, 500000);
		must(ev_count(a) == base + 1000000, "counted %llu before the move", ev_count(a));
		ev_ioctl(a, PERF_EVENT_IOC_RESET, 0);
		ev_on(a);
		ev_spin(b, 500000);
		ev_off(a);
		count = ev_count(a);
		must(count >= 1000000 && count < 1000000 + 1000,
		     "counted %llu of 1000000 over two moves", count);
		ev_on(a);
	}
	ev_on(b);
	spin(100000);
	must(counter_of(0, L2_READ_MISS) == 0, "L2_READ_MISS is on counter %d",
	     counter_of(0, L2_READ_MISS));
	must(counter_of(0, INSTRUCTIONS) == 1, "instructions are on counter %d",
	     counter_of(0, INSTRUCTIONS));
	ev_off(b);
	ev_off(a);
	runs(b, "the event that fits counter 0 only");
	runs(a, "the event that fits both");
	close(b);
	close(a);
}

TEST("constraints", 60)
{
	msr_need();
	pin(0);
	check_group(L2_READ_MISS, INSTRUCTIONS, 0, "counter 0 only, then either");
	check_group(INSTRUCTIONS, L2_READ_MISS, 1, "either, then counter 0 only");
	check_group(CYCLES, CODE(0xf0, 0x10), 1, "either, then 0xf0");
	check_group(BRANCHES, CODE(0xf5, 0x10), 1, "either, then 0xf5");
	check_group(CODE(0x16, 0x20), CODE(0xc3, 0x10), 1, "vector unit, then 0xc3");
	check_moves(true);
	check_moves(false);
}

TEST("groups-refused", 30)
{
	struct perf_event_attr attr = attr_of(BRANCHES, .disabled = 0);
	int a, b;

	a = ev_open(attr_of(L2_READ_MISS), 0, -1, -1);
	ev_refused(attr_of(L2_WRITE_HIT, .disabled = 0), 0, -1, a, EINVAL,
		   "a group of two events for counter 0");
	b = ev_join(attr, INSTRUCTIONS, a);
	ev_refused(attr, 0, -1, a, EINVAL, "a group of three events");
	close(b);
	/* refused events have left nothing in the group */
	b = ev_open(attr, 0, -1, a);
	close(ev_open(software_attr(PERF_COUNT_SW_TASK_CLOCK, .disabled = 0), 0, -1, a));
	close(b);
	close(a);
}

/* Events of this task take turns on a counter, or have one each */
static bool turns_taken(void)
{
	static const u64 configs[] = { INSTRUCTIONS, BRANCHES };
	struct times t[2];

	run_at_once(configs, 2, 1000, t);
	must((t[0].running < t[0].enabled) == (t[1].running < t[1].enabled),
	     "one of two events ran all the time, the other did not");
	return t[0].running < t[0].enabled;
}

/* The length of a loop until the watchdog's interrupt */
static u64 until_interrupt(void)
{
	u64 before = pmi_line(), begin = now_ns(), n;

	for (n = 0; pmi_line() == before; n += 1000000) {
		must(now_ns() - begin < 60000000000, "the watchdog has no interrupt");
		spin(1000000);
	}
	return n;
}

/* The NMI watchdog has a counter on each CPU, and detects a hard lockup. */
TEST("watchdog", 240)
{
	struct knc_test_loop run = {};
	u64 n;

	pin(0);
	must(!turns_taken(), "two events on two counters take turns");
	sysctl_set("kernel/watchdog_thresh", 1);
	sysctl_set("kernel/nmi_watchdog", 1);
	must(sysctl_get("kernel/nmi_watchdog") == 1, "the watchdog does not start");
	must(turns_taken(), "the watchdog has no counter");

	/* The watchdog counts cycles, and the emulator decides how many there are. */
	until_interrupt();
	n = until_interrupt();
	must(!in_log("hard LOCKUP"), "the watchdog reports a lockup without one");
	/* interrupts off for more than three of its periods */
	kernel_loop(&run, 4 * n);
	must(in_log("hard LOCKUP"), "the watchdog does not report a CPU with interrupts off");

	sysctl_set("kernel/nmi_watchdog", 0);
	must(!turns_taken(), "the watchdog keeps its counter");
	note("an interrupt each %llu iterations", n);
}
