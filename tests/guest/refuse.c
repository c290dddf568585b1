// SPDX-License-Identifier: GPL-2.0-only
/* Which events are refused, with which errno, and which are not */
#include "lib.h"

#define ENC(cache, op, result)						\
	((u64)PERF_COUNT_HW_CACHE_##cache |				\
	 (u64)PERF_COUNT_HW_CACHE_OP_##op << 8 |			\
	 (u64)PERF_COUNT_HW_CACHE_RESULT_##result << 16)

static void refused(struct perf_event_attr attr, int want, const char *what)
{
	ev_refused(attr, 0, -1, -1, want, what);
}

TEST(refuse_bits, "refuse-bits", 30)
{
	struct perf_event_attr attr;
	int bit;

	attr = attr_of(INSTRUCTIONS | 1ULL << 19);
	refused(attr, EINVAL, "config bit 19");
	for (bit = 32; bit < 64; bit++) {
		attr = attr_of(INSTRUCTIONS | 1ULL << bit);
		refused(attr, EINVAL, text_of("config bit %d", bit));
	}
	/* config1:0 is "spflt", if the driver has it */
	for (bit = pmu_file("format/spflt") ? 1 : 0; bit < 64; bit++) {
		attr = attr_of(INSTRUCTIONS);
		attr.config1 = 1ULL << bit;
		refused(attr, EINVAL, text_of("config1 bit %d", bit));
	}
	for (bit = 0; bit < 64; bit++) {
		attr = attr_of(INSTRUCTIONS);
		attr.config2 = 1ULL << bit;
		refused(attr, EINVAL, text_of("config2 bit %d", bit));
	}
}

/* USR, OS, INT and EN are the kernel's: accepted, and without any effect. */
TEST(kernel_bits, "kernel-bits", 30)
{
	static const u64 bits[] = { EVTSEL_USR, EVTSEL_OS, EVTSEL_INT, EVTSEL_EN };
	u64 plain, count;
	int mask, fd, i;

	pin(0);
	fd = ev_self(INSTRUCTIONS);
	ev_spin(fd, 100000);
	plain = ev_count(fd);
	close(fd);
	for (mask = 0; mask < 16; mask++) {
		u64 config = INSTRUCTIONS;

		for (i = 0; i < 4; i++)
			if (mask >> i & 1)
				config |= bits[i];
		fd = ev_self(config);
		ev_spin(fd, 100000);
		count = ev_count(fd);
		must(count == plain, "config %#llx counts %llu, not %llu in user mode", config,
		     count, plain);
		if (have_msr()) {
			u64 sel;

			ev_on(fd);
			i = counter_of(0, INSTRUCTIONS);
			must(i >= 0, "config %#llx is on no counter", config);
			sel = rdmsr_on(0, 0x28 + i);
			must(sel == (INSTRUCTIONS | EVTSEL_USR | EVTSEL_INT | EVTSEL_EN),
			     "config %#llx becomes %#llx", config, sel);
		}
		close(fd);
	}
}

/* The other bits of a config are in the register as they were given. */
TEST(user_bits, "user-bits", 30)
{
	static const struct {
		const char *terms;
		u64 sel;
	} rows[] = {
		{ "event=0x16", 0x16 },
		{ "event=0xcb,umask=0x10", 0x10cb },
		{ "event=0x16,edge=1", 0x16 | EVTSEL_EDGE },
		{ "event=0x16,any=1", 0x16 | EVTSEL_ANY },
		{ "event=0x16,cmask=2", 0x16 | 2 << 24 },
		{ "event=0x16,cmask=255,inv=1", 0xff000016 | EVTSEL_INV },
		{ "event=0xff,umask=0x2f,edge=1,any=1,inv=1,cmask=0x81",
		  0x81002fff | EVTSEL_EDGE | EVTSEL_ANY | EVTSEL_INV },
	};
	const u64 both = EVTSEL_USR | EVTSEL_OS | EVTSEL_INT | EVTSEL_EN;
	size_t i;

	msr_need();
	pin(0);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct perf_event_attr attr = attr_of(0);
		int fd, n;
		u64 sel;

		must(pmu_parse(rows[i].terms, &attr), "format/ has no \"%s\"", rows[i].terms);
		fd = ev_start(attr, 0, -1);
		n = counter_of(0, rows[i].sel);
		must(n >= 0, "%s is on no counter", rows[i].terms);
		sel = rdmsr_on(0, 0x28 + n);
		must(sel == (rows[i].sel | both), "%s becomes %#llx, not %#llx", rows[i].terms,
		     sel, rows[i].sel | both);
		close(fd);
	}
}

/* Attributes of an event of instructions, and the errno that they are refused with */
struct refusal {
	const char *what;
	struct perf_event_attr attr;
	int want;
};

static void refuse_all(const struct refusal *row)
{
	for (; row->what; row++) {
		struct perf_event_attr attr = row->attr;

		attr.type = pmu()->type;
		attr.size = sizeof(attr);
		attr.config = INSTRUCTIONS;
		attr.disabled = 1;
		if (row->want)
			refused(attr, row->want, row->what);
		else
			close(ev_open(attr, 0, -1, -1));
	}
}

#define SAMPLED		.sample_period = 100000
#define ANY_BRANCH	(PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER)

TEST(refuse_kinds, "refuse-kinds", 30)
{
	static const struct refusal precise[] = {
		{ "precise_ip 1", { SAMPLED, .precise_ip = 1 }, EOPNOTSUPP },
		{ "precise_ip 2", { SAMPLED, .precise_ip = 2 }, EOPNOTSUPP },
		{ "precise_ip 3", { SAMPLED, .precise_ip = 3 }, EOPNOTSUPP },
		{ "precise_ip 1 without sampling", { .precise_ip = 1 }, EOPNOTSUPP },
		{ "precise_ip 2 without sampling", { .precise_ip = 2 }, EOPNOTSUPP },
		{ "precise_ip 3 without sampling", { .precise_ip = 3 }, EOPNOTSUPP },
		{ }
	}, cards[] = {
		{ "a branch stack", { SAMPLED, .sample_type = PERF_SAMPLE_BRANCH_STACK }, EINVAL },
		{ "exclude_host", { .exclude_host = 1 }, EINVAL },
		{ }
	}, others[] = {
		{ "a branch stack", { SAMPLED, .sample_type = PERF_SAMPLE_BRANCH_STACK,
		  .branch_sample_type = ANY_BRANCH }, EOPNOTSUPP },
		{ "a branch stack without sampling", { .sample_type = PERF_SAMPLE_BRANCH_STACK,
		  .branch_sample_type = ANY_BRANCH }, EOPNOTSUPP },
		{ "registers of the core", { SAMPLED, .sample_type = PERF_SAMPLE_REGS_INTR,
		  .sample_regs_intr = 0xff }, 0 },
		{ "XMM registers at the interrupt", { SAMPLED, .sample_type = PERF_SAMPLE_REGS_INTR,
		  .sample_regs_intr = 1ULL << 32 }, EOPNOTSUPP },
		{ "an unknown register", { SAMPLED, .sample_type = PERF_SAMPLE_REGS_INTR,
		  .sample_regs_intr = 1ULL << 25 }, EINVAL },
		{ "XMM registers of the user", { SAMPLED, .sample_type = PERF_SAMPLE_REGS_USER,
		  .sample_regs_user = 1ULL << 32 }, EOPNOTSUPP },
		{ "no register of the user", { SAMPLED, .sample_type = PERF_SAMPLE_REGS_USER },
		  EINVAL },
		/* there are no guests, so exclude_host would count nothing */
		{ "exclude_host", { .exclude_host = 1 }, EOPNOTSUPP },
		{ "exclude_guest", { .exclude_guest = 1 }, 0 },
		{ "samples of an AUX buffer", { SAMPLED, .aux_sample_size = 4096 }, EINVAL },
		{ "a period of 2^63", { .sample_period = 1ULL << 63 }, EINVAL },
		{ }
	};

	refuse_all(precise);
	/* Linux 2.6.38 refuses itself what it does not know. */
	refuse_all(cards_kernel() ? cards : others);
}

static void any_refused(void)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS | EVTSEL_ANY);

	refused(attr, EACCES, "any, unprivileged");
	attr.config &= ~EVTSEL_ANY;
	close(ev_open(attr, 0, -1, -1));
	ev_refused(attr, -1, 0, -1, EACCES, "a CPU-wide event, unprivileged");
}

static void kernel_refused(void)
{
	refused(attr_of(INSTRUCTIONS), EACCES, "kernel mode, unprivileged");
	any_refused();
}

static void cpu_wide_allowed(void)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);

	close(ev_open(attr, -1, 0, -1));
	attr.config |= EVTSEL_ANY;
	close(ev_open(attr, -1, 0, -1));
}

/* "any" counts other hardware threads: it takes the privilege of a CPU-wide event. */
TEST(refuse_any, "refuse-any", 30)
{
	long before = sysctl_get("kernel/perf_event_paranoid");
	struct perf_event_attr attr = user_attr(INSTRUCTIONS | EVTSEL_ANY);

	close(ev_open(attr, 0, -1, -1));
	close(ev_open(attr, -1, 0, -1));
	sysctl_set("kernel/perf_event_paranoid", 2);
	as_nobody(kernel_refused);
	sysctl_set("kernel/perf_event_paranoid", 1);
	as_nobody(any_refused);
	sysctl_set("kernel/perf_event_paranoid", 0);
	as_nobody(cpu_wide_allowed);
	sysctl_set("kernel/perf_event_paranoid", before);
}

static void noent_or_inval(struct perf_event_attr attr, const char *kind)
{
	int fd = sys_open(attr, 0, -1, -1, 0);

	must(fd < 0, "%s event %#llx: was not refused", kind, attr.config);
	must(errno == ENOENT || errno == EINVAL, "%s event %#llx: refused with %m", kind,
	     attr.config);
}

/* Every cell of the generic cache events is an event of the PMU, or none. */
TEST(refuse_generic, "refuse-generic", 30)
{
	static const u64 none[] = {
		PERF_COUNT_HW_BUS_CYCLES,
		PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
		PERF_COUNT_HW_REF_CPU_CYCLES,
		PERF_COUNT_HW_MAX, 0x100, ~0ULL >> 32,
	};
	static const u64 some[] = {
		PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS,
		PERF_COUNT_HW_CACHE_REFERENCES, PERF_COUNT_HW_CACHE_MISSES,
		PERF_COUNT_HW_BRANCH_INSTRUCTIONS, PERF_COUNT_HW_BRANCH_MISSES,
		PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
	};
	/* what this chip does not have */
	static const u64 no_cell[] = {
		ENC(L1I, WRITE, ACCESS), ENC(L1I, WRITE, MISS),
		ENC(ITLB, WRITE, ACCESS), ENC(ITLB, WRITE, MISS),
		ENC(ITLB, PREFETCH, ACCESS), ENC(ITLB, PREFETCH, MISS),
		ENC(BPU, WRITE, ACCESS), ENC(BPU, WRITE, MISS),
		ENC(BPU, PREFETCH, ACCESS), ENC(BPU, PREFETCH, MISS),
		ENC(NODE, READ, ACCESS), ENC(NODE, READ, MISS),
		ENC(NODE, WRITE, ACCESS), ENC(NODE, WRITE, MISS),
		ENC(NODE, PREFETCH, ACCESS), ENC(NODE, PREFETCH, MISS),
	};
	static const struct {
		u64 cell, sel;
	} cells[] = {
		{ ENC(L1D, READ, ACCESS), 0x00 },
		{ ENC(L1D, READ, MISS), 0x03 },
		{ ENC(L1D, WRITE, ACCESS), 0x01 },
		{ ENC(L1D, WRITE, MISS), 0x04 },
		{ ENC(L1I, READ, ACCESS), 0x0c },
		{ ENC(L1I, READ, MISS), 0x0e },
		{ ENC(LL, READ, MISS), 0x10cb },
		{ ENC(ITLB, READ, MISS), 0x0d },
		{ ENC(BPU, READ, ACCESS), 0x12 },
		{ ENC(BPU, READ, MISS), 0x2b },
	};
	struct perf_event_attr attr = { .size = sizeof(attr), .disabled = 1 };
	size_t i;
	int fd;

	if (pmu()->type != PERF_TYPE_RAW)
		skip("generic events belong to the PMU called cpu");
	pin(0);
	attr.type = PERF_TYPE_HARDWARE;
	for (i = 0; i < ARRAY_SIZE(none); i++) {
		attr.config = none[i];
		noent_or_inval(attr, "generic");
	}
	for (i = 0; i < ARRAY_SIZE(some); i++) {
		attr.config = some[i];
		close(ev_open(attr, 0, -1, -1));
	}
	attr.type = PERF_TYPE_HW_CACHE;
	for (i = 0; i < ARRAY_SIZE(no_cell); i++) {
		attr.config = no_cell[i];
		noent_or_inval(attr, "cache");
	}
	for (i = 0; i < ARRAY_SIZE(cells); i++) {
		attr.config = cells[i].cell;
		fd = ev_start(attr, 0, -1);
		if (have_msr())
			must(counter_of(0, cells[i].sel) >= 0,
			     "cache event %#llx is not event %#llx", attr.config, cells[i].sel);
		close(fd);
	}
	/* beyond the table */
	attr.config = PERF_COUNT_HW_CACHE_MAX;
	refused(attr, EINVAL, "a cache that does not exist");
	attr.config = PERF_COUNT_HW_CACHE_OP_MAX << 8;
	refused(attr, EINVAL, "a cache operation that does not exist");
	attr.config = PERF_COUNT_HW_CACHE_RESULT_MAX << 16;
	refused(attr, EINVAL, "a cache result that does not exist");
	attr.config = 1ULL << 24;
	refused(attr, EINVAL, "a cache event with a bit more");
}
