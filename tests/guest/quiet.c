// SPDX-License-Identifier: GPL-2.0-only
/* Events cost other CPUs nothing. */
#include "lib.h"

static u64 ipis_of(int cpu)
{
	return interrupts_of("CAL:", cpu) + interrupts_of("RES:", cpu) +
	       interrupts_of("TLB:", cpu);
}

#define OPENS	1000
/* As many as the kernel sends for other reasons in that time */
#define AT_MOST	(OPENS / 20)

static const struct {
	const char *what;
	u64 period, config1;
	bool mapped;
} kinds[] = {
	{ .what = "counting" }, { .what = "sampling", .period = 100000 },
	{ .what = "SPFLT", .config1 = 1 }, { .what = "mapped", .mapped = true },
};

static size_t kind;

static void open_and_close(void)
{
	struct perf_event_attr attr = sampling_attr(INSTRUCTIONS, kinds[kind].period, 0,
						    .config1 = kinds[kind].config1);
	int i, fd;

	for (i = 0; i < OPENS; i++) {
		void *page = NULL;

		fd = ev_open(attr, 0, -1, -1);
		if (kinds[kind].mapped)
			page = page_of(fd);
		ev_on(fd);
		if (page)
			munmap(page, getpagesize());
		close(fd);
	}
}

TEST("opens-quiet", 120)
{
	long before = sysctl_get("kernel/perf_event_paranoid");
	int cpu = cpus_online() - 1;
	u64 ipis, writes;

	td_need();
	must(cpu > 0, "needs two CPUs");
	pin(0);
	sysctl_set("kernel/perf_event_paranoid", 1);
	for (kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
		/* first perf core patches in its hooks, which stay for a second */
		as_nobody(open_and_close);
		ipis = ipis_of(cpu);
		writes = td_read(cpu, TD_WRMSRS);
		as_nobody(open_and_close);
		ipis = ipis_of(cpu) - ipis;
		writes = td_read(cpu, TD_WRMSRS) - writes;
		note("%d %s events cost CPU %d, which is idle, %llu IPIs and %llu register writes",
		     OPENS, kinds[kind].what, cpu, ipis, writes);
		must(ipis <= AT_MOST && !writes,
		     "%d opens of %s events cost an idle CPU %llu IPIs and %llu writes of PMU registers",
		     OPENS, kinds[kind].what, ipis, writes);
	}
	sysctl_set("kernel/perf_event_paranoid", before);
}
