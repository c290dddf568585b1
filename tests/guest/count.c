// SPDX-License-Identifier: GPL-2.0-only
/* Counting, to the instruction. */
#include "lib.h"

#include "kmod/knc_test_loop.h"

typedef long (*measured_fn)(int fd, u64 n);

static const struct {
	const char *name;
	measured_fn run;
	u64 instructions;		/* of an iteration */
} loops[] = {
	{ "spin", measured_spin, 2 },
	{ "spin20", measured_spin20, 20 },
};

/* What the event counts of one measured loop */
static u64 once(int fd, measured_fn run, u64 n)
{
	u64 before = ev_count(fd);

	must(!run(fd, n), "enabling or disabling failed");
	return ev_count(fd) - before;
}

/* The cost of an empty region: small, and the same each time */
static u64 base_of(int fd, measured_fn run, const char *what)
{
	u64 base = once(fd, run, 0);
	int i;

	must(base > 0 && base <= 64, "%s of an empty region: %llu", what, base);
	for (i = 0; i < 50; i++) {
		u64 again = once(fd, run, 0);

		must(again == base, "%s of an empty region: %llu, then %llu", what, base, again);
	}
	return base;
}

static void check_exact(u64 config, const char *what)
{
	int fd = ev_self(config);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(loops); i++) {
		u64 each = loops[i].instructions;
		u64 base = base_of(fd, loops[i].run, what);
		u64 length;

		for (length = 1000; length <= 100000000 / scale(); length *= 10) {
			u64 n = length / each;
			u64 want = config == BRANCHES ? n : n * each;
			u64 got = once(fd, loops[i].run, n) - base;

			must(got == want, "%s:u of %s(%llu): %llu, not %llu", what, loops[i].name,
			     n, got, want);
		}
	}
	close(fd);
}

TEST("count-exact", 60)
{
	check_exact(INSTRUCTIONS, "instructions");
	check_exact(BRANCHES, "branches");
}

/* Both counters at once: as a group, then as two events on their own. */
static void check_both(bool group)
{
	struct times insn, branch;
	u64 base, base_branches, least, most;
	int a, b, n;

	a = ev_open(times_attr(INSTRUCTIONS), 0, -1, -1);
	b = ev_open(times_attr(BRANCHES, .disabled = !group), 0, -1, group ? a : -1);
	if (!group)
		ev_on(b);		/* it is on all the time: less exact bounds below */

	ev_spin(a, 0);
	base = ev_times(a).value;
	base_branches = ev_times(b).value;
	for (n = 500; n <= 5000000; n *= 100) {
		ev_ioctl(a, PERF_EVENT_IOC_RESET, 0);
		ev_ioctl(b, PERF_EVENT_IOC_RESET, 0);
		ev_spin(a, n);
		insn = ev_times(a);
		branch = ev_times(b);
		must(insn.value, "counter 0 never counts: instructions 0, branches %llu",
		     branch.value);
		must(branch.value, "counter 1 never counts: branches 0, instructions %llu",
		     insn.value);
		must(insn.value == base + 2ULL * n, "instructions of %d iterations: %llu, not %llu",
		     n, insn.value, base + 2ULL * n);
		must(insn.running == insn.enabled && branch.running == branch.enabled,
		     "two events do not run all the time");
		least = n + (group ? base_branches : 0);
		most = group ? least : least + 2000;
		must(branch.value >= least && branch.value <= most,
		     "branches of %d iterations: %llu, not %llu to %llu", n, branch.value,
		     least, most);
	}
	close(b);
	close(a);
}

TEST("count-both", 60)
{
	check_both(true);
	check_both(false);
}

/* KCSAN adds to a reading now and then: there it is repeated until two are the same. */
static void settled_loop(struct knc_test_loop *run, u64 n)
{
	int tries = scale() > 1 ? 20 : 1;
	u64 last[2];

	do {
		memcpy(last, run->delta, sizeof(last));
		kernel_loop(run, n);
	} while (--tries && memcmp(last, run->delta, sizeof(last)));
}

static void check_kernel(u64 first, u64 second)
{
	struct perf_event_attr attr = attr_of(first, .exclude_user = 1);
	struct knc_test_loop run = { .nr = 2 };
	/* The most instructions of a read: sanitizers add to them */
	u64 base[2], n, most = scale() > 1 ? 8000 : 2000;
	int i, times;

	run.fd[0] = ev_open(attr, 0, -1, -1);
	run.fd[1] = ev_join(attr, second, run.fd[0]);
	ev_on(run.fd[0]);

	settled_loop(&run, 0);		/* once for the caches of the kernel */
	settled_loop(&run, 0);
	base[0] = run.delta[0];
	base[1] = run.delta[1];
	must(base[0] && base[0] < most && base[1] && base[1] < most,
	     "two readings cost %llu and %llu", base[0], base[1]);
	for (n = 500; n <= 5000000 / scale(); n *= 10) {
		bool branches[2] = { first == BRANCHES, second == BRANCHES };

		for (times = 0; times < 3; times++) {
			settled_loop(&run, n);
			for (i = 0; i < 2; i++) {
				u64 want = branches[i] ? n : 2 * n;
				u64 got = run.delta[i] - base[i];

				must(got == want, "%s:k of %llu iterations: %llu, not %llu",
				     branches[i] ? "branches" : "instructions", n, got, want);
			}
		}
	}
	close(run.fd[1]);
	close(run.fd[0]);
}

TEST("count-kernel", 60)
{
	check_kernel(INSTRUCTIONS, BRANCHES);
	check_kernel(BRANCHES, INSTRUCTIONS);
}

/* The events have what the emulator's counters have counted. */
TEST("count-truth", 60)
{
	u64 truth, got = 0;
	int fd[4], i;

	td_need();
	pin(0);
	truth = td_counted(0);
	/* four events that take turns: none may count while another has its counter */
	for (i = 0; i < 4; i++)
		fd[i] = ev_open(attr_of(i & 1 ? BRANCHES : INSTRUCTIONS, .exclude_kernel = i >> 1),
				0, -1, -1);
	for (i = 0; i < 4; i++)
		ev_on(fd[i]);
	for (i = 0; i < 100; i++) {
		spin(500000 / scale());
		usleep(1000);
	}
	for (i = 0; i < 4; i++)
		ev_off(fd[i]);
	for (i = 0; i < 4; i++)
		got += ev_count(fd[i]);
	truth = td_counted(0) - truth;
	must(got > 1000000, "four events counted %llu", got);
	must(got == truth, "four events counted %llu, the emulator %llu", got, truth);
}
