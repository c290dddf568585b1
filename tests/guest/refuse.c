// SPDX-License-Identifier: GPL-2.0-only
/*
 * Refusals by the system call, one of each kind; the unit tests have each bit and each
 * generic event.
 */
#include "lib.h"

static void refused(struct perf_event_attr attr, int want, const char *what)
{
	ev_refused(attr, 0, -1, -1, want, what);
}

/* The register of an event in user mode has what was given, and the kernel's own bits. */
static void must_become(u64 config, u64 sel)
{
	int fd = ev_start(user_attr(config), 0, -1), n = counter_of(0, sel);
	u64 want = sel | EVTSEL_USR | EVTSEL_INT | EVTSEL_EN;

	must(n >= 0, "config %#llx is on no counter", config);
	must(rdmsr_on(0, 0x28 + n) == want, "config %#llx becomes %#llx, not %#llx", config,
	     rdmsr_on(0, 0x28 + n), want);
	close(fd);
}

TEST("user-bits", 30)
{
	static const char terms[] = "event=0xff,umask=0x2f,edge=1,any=1,inv=1,cmask=0x81";
	const u64 sel = 0x81002fff | EVTSEL_EDGE | EVTSEL_ANY | EVTSEL_INV;
	struct perf_event_attr attr = attr_of(0);

	msr_need();
	pin(0);
	must(pmu_parse(terms, &attr), "format/ has not all of \"%s\"", terms);
	must_become(attr.config, sel);
	must_become(INSTRUCTIONS | EVTSEL_USR | EVTSEL_OS | EVTSEL_INT | EVTSEL_EN, INSTRUCTIONS);
}

#define SAMPLED		.sample_period = 100000
#define ANY_BRANCH	(PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER)

/* Attributes of an event of instructions, and the errno that they are refused with */
static const struct refusal {
	const char *what;
	struct perf_event_attr attr;
	int want;
} refusals[] = {
	{ "a reserved bit of config", { .config = 1ULL << 32 }, EINVAL },
	{ "a bit of config1", { .config1 = 2 }, EINVAL },
	{ "a bit of config2", { .config2 = 1 }, EINVAL },
	{ "precise_ip", { .precise_ip = 1 }, EOPNOTSUPP },
	/* what Linux 2.6.38 does not know */
	{ "a branch stack", { SAMPLED, .sample_type = PERF_SAMPLE_BRANCH_STACK,
	  .branch_sample_type = ANY_BRANCH }, EOPNOTSUPP },
	{ "registers of the core", { SAMPLED, .sample_type = PERF_SAMPLE_REGS_INTR,
	  .sample_regs_intr = 0xff }, 0 },
	{ "XMM registers at the interrupt", { SAMPLED, .sample_type = PERF_SAMPLE_REGS_INTR,
	  .sample_regs_intr = 1ULL << 32 }, EOPNOTSUPP },
	{ "XMM registers of the user", { SAMPLED, .sample_type = PERF_SAMPLE_REGS_USER,
	  .sample_regs_user = 1ULL << 32 }, EOPNOTSUPP },
	/* there are no guests, so exclude_host would count nothing */
	{ "exclude_host", { .exclude_host = 1 }, EOPNOTSUPP },
	{ "exclude_guest", { .exclude_guest = 1 }, 0 },
};

TEST("refuse-kinds", 30)
{
	size_t i, n = cards_kernel() ? 4 : ARRAY_SIZE(refusals);

	for (i = 0; i < n; i++) {
		const struct refusal *row = &refusals[i];
		struct perf_event_attr attr = row->attr;

		attr.type = pmu()->type;
		attr.size = sizeof(attr);
		attr.config |= INSTRUCTIONS;
		attr.disabled = 1;
		if (row->want)
			refused(attr, row->want, row->what);
		else
			close(ev_open(attr, 0, -1, -1));
	}
}

static void any_refused(void)
{
	refused(user_attr(INSTRUCTIONS | EVTSEL_ANY), EACCES, "any, unprivileged");
	close(ev_self(INSTRUCTIONS));
	ev_refused(user_attr(INSTRUCTIONS), -1, 0, -1, EACCES, "a CPU-wide event, unprivileged");
}

static void kernel_refused(void)
{
	refused(attr_of(INSTRUCTIONS), EACCES, "kernel mode, unprivileged");
	any_refused();
}

static void cpu_wide_allowed(void)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS | EVTSEL_ANY);

	close(ev_open(user_attr(INSTRUCTIONS), -1, 0, -1));
	close(ev_open(attr, -1, 0, -1));
	/* A module cannot read the level. */
	if (driver_is_module())
		refused(attr, EACCES, "any of a task, unprivileged");
	else
		close(ev_open(attr, 0, -1, -1));
}

static void all_refused(void)
{
	refused(user_attr(INSTRUCTIONS), EACCES, "its own work in user mode, unprivileged");
}

/*
 * "any" counts other hardware threads: it takes the privilege of a CPU-wide event. At
 * level 3, which Debian's kernels have, only the privileged may open any event.
 */
TEST("refuse-any", 30)
{
	long before = sysctl_get("kernel/perf_event_paranoid");
	struct perf_event_attr attr = user_attr(INSTRUCTIONS | EVTSEL_ANY);

	close(ev_open(attr, 0, -1, -1));
	close(ev_open(attr, -1, 0, -1));
	if (!cards_kernel()) {
		sysctl_set("kernel/perf_event_paranoid", 3);
		as_nobody(all_refused);
	}
	sysctl_set("kernel/perf_event_paranoid", 2);
	as_nobody(kernel_refused);
	sysctl_set("kernel/perf_event_paranoid", 1);
	as_nobody(any_refused);
	sysctl_set("kernel/perf_event_paranoid", 0);
	as_nobody(cpu_wide_allowed);
	sysctl_set("kernel/perf_event_paranoid", before);
}

#define HARDWARE(event)	any_attr(PERF_TYPE_HARDWARE, event)
#define CACHE(event)	any_attr(PERF_TYPE_HW_CACHE, event)

/* Of generic events there are those that the chip has. */
TEST("refuse-generic", 30)
{
	const u64 read_miss = PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
	/* Linux 2.6.38 would ask its own driver. */
	int none = cards_kernel() ? EINVAL : ENOENT;

	if (pmu()->type != PERF_TYPE_RAW)
		skip("generic events belong to the PMU called cpu");
	close(ev_open(HARDWARE(PERF_COUNT_HW_CPU_CYCLES), 0, -1, -1));
	refused(HARDWARE(PERF_COUNT_HW_BUS_CYCLES), none, "bus-cycles");
	refused(HARDWARE(PERF_COUNT_HW_MAX), EINVAL, "no generic event");
	close(ev_open(CACHE(PERF_COUNT_HW_CACHE_LL | read_miss), 0, -1, -1));
	refused(CACHE(PERF_COUNT_HW_CACHE_NODE | read_miss), none, "node-load-misses");
	refused(CACHE(PERF_COUNT_HW_CACHE_MAX), EINVAL, "no cache");
}
