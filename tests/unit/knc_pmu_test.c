// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of the driver: its own sources, compiled against registers that
 * record what is done to them. Expected values are the manual's (327357-001),
 * written as numbers, not taken from the driver's headers.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/string.h>

#include "record.h"
#include "host.h"

/* The host is tested, too, but it shall not bind to the CPU it runs on. */
#undef module_init
#undef module_exit
#undef MODULE_DEVICE_TABLE
#undef __init
#undef __exit
#define module_init(fn)
#define module_exit(fn)
#define MODULE_DEVICE_TABLE(bus, table)
#define __init __maybe_unused
#define __exit __maybe_unused

#define KNC_PMU_RECORD_ACCESSES
#undef pr_fmt
#include "../../knc_pmu.c"
#include "../../knc_pmi.c"
#include "../../spflt.c"
#undef pr_fmt
#include "../../knc_module.c"
#include "../../knc_perf.c"

#define COUNTER_MAX	((1ULL << 40) - 1)
/* PerfEvtSel: USR | OS | INT | EN, as every unfiltered event has them */
#define SEL_ALL		0x530000ULL
#define CYCLES		0x2aULL
#define INSTRUCTIONS	0x16ULL
#define BRANCHES_	0x12ULL
#define L2_MISS		0x10cbULL
#define L2_HIT		0x10ccULL

/* The sampling events that perf core would have been given */
static struct {
	unsigned int count;
	/* ... of interrupts that had to wait */
	unsigned int caught_up;
	bool throttle;
	struct perf_event *throttle_also;
	struct perf_event *read_also;
	struct perf_event *event[4];
	u64 ctrl, periods, wrong_reads;
} samples;

static int record_overflow(struct perf_event *event, struct perf_sample_data *data,
			   struct pt_regs *regs)
{
	if (samples.count < ARRAY_SIZE(samples.event))
		samples.event[samples.count] = event;
	samples.count++;
	samples.caught_up += this_cpu_ptr(&knc_cpu)->busy == KNC_BUSY_CATCHING_UP;
	samples.ctrl |= record.msr[0x2f];
	samples.periods += data->period;
	/* As PERF_SAMPLE_READ does with the others of a group. */
	if (samples.read_also) {
		knc_read(samples.read_also);
		if (local64_read(&samples.read_also->count) !=
		    record.counted[samples.read_also->hw.idx])
			samples.wrong_reads++;
	}
	/* Linux 6.16 and newer stop the whole group. */
	if (samples.throttle_also)
		knc_stop(samples.throttle_also, 0);
	return samples.throttle;
}

static struct pmu test_pmu = { .type = PERF_TYPE_RAW };

static struct perf_event *new_event(struct kunit *test, u64 config, u64 period)
{
	struct perf_event *event = kunit_kzalloc(test, sizeof(*event), GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, event);
	event->pmu = &test_pmu;
	event->group_leader = event;
	event->attach_state = PERF_ATTACH_GROUP;
	INIT_LIST_HEAD(&event->sibling_list);
	event->attr.type = PERF_TYPE_RAW;
	event->attr.config = config;
	event->attr.sample_period = period;
	event->hw.sample_period = period;
	event->hw.last_period = period;
	local64_set(&event->hw.period_left, period);
	event->hw.idx = -1;
	KUNIT_ASSERT_EQ(test, knc_event_config(event), 0);

	return event;
}

/* A CPU as it comes online, its PMU enabled by perf core, nothing recorded. */
static int knc_test_init(struct kunit *test)
{
	memset(&record, 0, sizeof(record));
	memset(&samples, 0, sizeof(samples));
	static_call_update(knc_perf_event_overflow, record_overflow);

	/* The driver's state is per CPU: stay on this one. */
	migrate_disable();
	knc_pmu_reset(this_cpu_ptr(&knc_cpu));
	knc_pmu_enable(NULL);
	record_restart();

	return 0;
}

static void knc_test_exit(struct kunit *test)
{
	record.runs = false;
	knc_spflt_exit();
	/* After a failed assertion this is another thread than the test's. */
	if (current->migration_disabled)
		migrate_enable();
	/* No test may do what the strict hardware would answer with #GP. */
	KUNIT_EXPECT_EQ(test, record.forbidden, 0);
}

static void add_all(struct kunit *test, struct perf_event **events, int count)
{
	int i;

	knc_pmu_disable(NULL);
	for (i = 0; i < count; i++)
		KUNIT_ASSERT_EQ(test, knc_add(events[i], PERF_EF_START), 0);
	knc_pmu_enable(NULL);
}

static void del_all(struct perf_event **events, int count)
{
	int i;

	knc_pmu_disable(NULL);
	for (i = 0; i < count; i++)
		knc_del(events[i], 0);
	knc_pmu_enable(NULL);
}

/* The hardware: a counter advances, and says so if it wraps. */
static void count(unsigned int idx, u64 events)
{
	u64 value = record.msr[0x20 + idx] + events;

	if (value > COUNTER_MAX)
		record.msr[0x2d] |= 1 << idx;
	record.msr[0x20 + idx] = value & COUNTER_MAX;
}

/* Encoding */

struct config_case {
	const char *name;
	u32 type;
	u64 config;
	bool no_user, no_kernel;
	int err;
	u64 sel;
};

static const struct config_case config_cases[] = {
	{ "raw event", PERF_TYPE_RAW, 0x16, .sel = 0x530016 },
	{ "event and unit mask", PERF_TYPE_RAW, 0x2018, .sel = 0x532018 },
	{ "event 0", PERF_TYPE_RAW, 0, .sel = 0x530000 },
	{ "user only", PERF_TYPE_RAW, 0x16, .no_kernel = true, .sel = 0x510016 },
	{ "kernel only", PERF_TYPE_RAW, 0x16, .no_user = true, .sel = 0x520016 },
	{ "neither", PERF_TYPE_RAW, 0x16, true, true, .sel = 0x500016 },
	{ "edge", PERF_TYPE_RAW, 0x040016, .sel = 0x570016 },
	{ "any", PERF_TYPE_RAW, 0x200016, .sel = 0x730016 },
	{ "inv", PERF_TYPE_RAW, 0x800016, .sel = 0xd30016 },
	{ "cmask", PERF_TYPE_RAW, 0xff000016, .sel = 0xff530016 },
	{ "usr is the kernel's", PERF_TYPE_RAW, 0x010016, .no_user = true, .sel = 0x520016 },
	{ "os is the kernel's", PERF_TYPE_RAW, 0x020016, .no_kernel = true, .sel = 0x510016 },
	{ "int is the kernel's", PERF_TYPE_RAW, 0x100016, .sel = 0x530016 },
	{ "en is the kernel's", PERF_TYPE_RAW, 0x400016, .sel = 0x530016 },
	{ "bit 19 is reserved", PERF_TYPE_RAW, 0x080016, .err = -EINVAL },
	{ "bit 32 is reserved", PERF_TYPE_RAW, 0x100000016ULL, .err = -EINVAL },
	{ "bit 63 is reserved", PERF_TYPE_RAW, 0x8000000000000016ULL, .err = -EINVAL },
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, .sel = 0x53002a },
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, .sel = 0x530016 },
	{ "cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, .sel = 0x530028 },
	{ "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, .sel = 0x530029 },
	{ "branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, .sel = 0x530012 },
	{ "branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, .sel = 0x53002b },
	{ "stalled-cycles-frontend", PERF_TYPE_HARDWARE,
	  PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, .sel = 0x53002d },
	{ "bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES, .err = -ENOENT },
	{ "stalled-cycles-backend", PERF_TYPE_HARDWARE,
	  PERF_COUNT_HW_STALLED_CYCLES_BACKEND, .err = -ENOENT },
	{ "ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, .err = -ENOENT },
	{ "no such generic event", PERF_TYPE_HARDWARE, PERF_COUNT_HW_MAX, .err = -EINVAL },
	{ "L1-dcache-loads", PERF_TYPE_HW_CACHE, 0x000000, .sel = 0x530000 },
	{ "L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x010000, .sel = 0x530003 },
	{ "L1-dcache-stores", PERF_TYPE_HW_CACHE, 0x000100, .sel = 0x530001 },
	{ "L1-dcache-store-misses", PERF_TYPE_HW_CACHE, 0x010100, .sel = 0x530004 },
	{ "L1-dcache-prefetches", PERF_TYPE_HW_CACHE, 0x000200, .sel = 0x530011 },
	{ "L1-dcache-prefetch-misses", PERF_TYPE_HW_CACHE, 0x010200, .sel = 0x53001c },
	{ "L1-icache-loads", PERF_TYPE_HW_CACHE, 0x000001, .sel = 0x53000c },
	{ "L1-icache-load-misses", PERF_TYPE_HW_CACHE, 0x010001, .sel = 0x53000e },
	{ "LLC-loads", PERF_TYPE_HW_CACHE, 0x000002, .err = -ENOENT },
	{ "LLC-load-misses", PERF_TYPE_HW_CACHE, 0x010002, .sel = 0x5310cb },
	{ "dTLB-load-misses", PERF_TYPE_HW_CACHE, 0x010003, .err = -ENOENT },
	{ "iTLB-load-misses", PERF_TYPE_HW_CACHE, 0x010004, .sel = 0x53000d },
	{ "branch-load-misses", PERF_TYPE_HW_CACHE, 0x010005, .sel = 0x53002b },
	{ "node-loads", PERF_TYPE_HW_CACHE, 0x000006, .err = -ENOENT },
	{ "no such cache", PERF_TYPE_HW_CACHE, 0x000007, .err = -EINVAL },
	{ "no such operation", PERF_TYPE_HW_CACHE, 0x000300, .err = -EINVAL },
	{ "no such result", PERF_TYPE_HW_CACHE, 0x020000, .err = -EINVAL },
	{ "cache event bit 24", PERF_TYPE_HW_CACHE, 0x1000000, .err = -EINVAL },
};

#define DESC_FROM_NAME(type)						\
static void type##_desc(const struct type *c, char *desc)		\
{									\
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);			\
}

DESC_FROM_NAME(config_case)
KUNIT_ARRAY_PARAM(config, config_cases, config_case_desc);

static void test_config(struct kunit *test)
{
	const struct config_case *c = test->param_value;
	struct perf_event *event = new_event(test, 0, 0);

	event->attr.type = c->type;
	event->attr.config = c->config;
	event->attr.exclude_user = c->no_user;
	event->attr.exclude_kernel = c->no_kernel;

	KUNIT_ASSERT_EQ(test, knc_event_config(event), c->err);
	if (!c->err)
		KUNIT_EXPECT_EQ(test, event->hw.config, c->sel);
}

static void test_refusals(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);
	struct perf_event_attr attr = event->attr;

	event->attr.config2 = 1;
	KUNIT_EXPECT_EQ(test, knc_event_config(event), -EINVAL);
	event->attr = attr;
	event->attr.config1 = 2;
	KUNIT_EXPECT_EQ(test, knc_event_config(event), -EINVAL);
	event->attr = attr;
	event->attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	KUNIT_EXPECT_EQ(test, knc_event_config(event), -EOPNOTSUPP);
	event->attr = attr;
	event->attr.precise_ip = 1;
	KUNIT_EXPECT_EQ(test, knc_event_config(event), -EOPNOTSUPP);
	event->attr = attr;
	event->attr.exclude_host = 1;
	KUNIT_EXPECT_EQ(test, knc_event_config(event), -EOPNOTSUPP);
	event->attr = attr;
	event->attr.exclude_idle = 1;
	KUNIT_EXPECT_EQ(test, knc_event_config(event), -EOPNOTSUPP);
	event->attach_state = PERF_ATTACH_TASK;
	KUNIT_EXPECT_EQ(test, knc_event_config(event), 0);
	event->attach_state = 0;
	event->attr = attr;
	KUNIT_EXPECT_EQ(test, knc_event_config(event), 0);
}

/* Constraints and the two-counter scheduler */

struct sched_case {
	const char *name;
	u64 add[3];		/* events added, in this order */
	int want[3];		/* the counter each ends on; -1: refused */
};

static const struct sched_case sched_cases[] = {
	{ "one free event leaves counter 0", { CYCLES, ~0ULL }, { 1 } },
	{ "two free events", { CYCLES, INSTRUCTIONS, ~0ULL }, { 1, 0 } },
	{ "three free events", { CYCLES, INSTRUCTIONS, BRANCHES_ }, { 1, 0, -1 } },
	{ "core-ring event alone", { L2_MISS, ~0ULL }, { 0 } },
	{ "core-ring event first", { L2_MISS, CYCLES, ~0ULL }, { 0, 1 } },
	{ "core-ring event last", { CYCLES, L2_MISS, ~0ULL }, { 1, 0 } },
	{ "two core-ring events", { L2_MISS, L2_HIT, CYCLES }, { 0, -1, 1 } },
	{ "no room for a core-ring event", { CYCLES, INSTRUCTIONS, L2_MISS }, { 1, 0, -1 } },
};

DESC_FROM_NAME(sched_case)
KUNIT_ARRAY_PARAM(sched, sched_cases, sched_case_desc);

static void test_sched(struct kunit *test)
{
	const struct sched_case *c = test->param_value;
	struct perf_event *event[3] = {};
	int i;

	knc_pmu_disable(NULL);
	for (i = 0; i < 3 && c->add[i] != ~0ULL; i++) {
		event[i] = new_event(test, c->add[i], 0);
		KUNIT_EXPECT_EQ(test, knc_add(event[i], PERF_EF_START),
				c->want[i] < 0 ? -EAGAIN : 0);
	}
	knc_pmu_enable(NULL);

	for (i = 0; i < 3 && event[i]; i++) {
		KUNIT_EXPECT_EQ(test, event[i]->hw.idx, c->want[i]);
		if (c->want[i] >= 0)
			KUNIT_EXPECT_EQ(test, record.msr[0x28 + c->want[i]],
					SEL_ALL | c->add[i]);
	}
}

/* An event on counter 0 that fits both makes room, and keeps its count. */
static void test_move_aside(struct kunit *test)
{
	struct perf_event *first = new_event(test, CYCLES, 0);
	struct perf_event *second = new_event(test, INSTRUCTIONS, 0);
	struct perf_event *l2 = new_event(test, L2_MISS, 0);
	struct perf_event *both[] = { first, second };

	add_all(test, both, 2);
	KUNIT_ASSERT_EQ(test, second->hw.idx, 0);
	del_all(&first, 1);
	count(0, 1000);

	add_all(test, &l2, 1);
	KUNIT_EXPECT_EQ(test, l2->hw.idx, 0);
	KUNIT_EXPECT_EQ(test, second->hw.idx, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x28], SEL_ALL | L2_MISS);
	KUNIT_EXPECT_EQ(test, record.msr[0x29], SEL_ALL | INSTRUCTIONS);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 3);

	count(0, 7);
	count(1, 11);
	knc_read(second);
	knc_read(l2);
	KUNIT_EXPECT_EQ(test, local64_read(&second->count), 1011);
	KUNIT_EXPECT_EQ(test, local64_read(&l2->count), 7);
}

static void test_groups(struct kunit *test)
{
	static const struct {
		u64 config[3];
		int err;
	} cases[] = {
		{ { CYCLES, INSTRUCTIONS, ~0ULL }, 0 },
		{ { L2_MISS, INSTRUCTIONS, ~0ULL }, 0 },
		{ { INSTRUCTIONS, L2_MISS, ~0ULL }, 0 },
		{ { L2_MISS, L2_HIT, ~0ULL }, -EINVAL },
		{ { CYCLES, INSTRUCTIONS, BRANCHES_ }, -EINVAL },
	};
	struct perf_event *leader, *event;
	unsigned int i, j;
	int ret;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		leader = new_event(test, cases[i].config[0], 0);
		ret = 0;
		for (j = 1; j < 3 && cases[i].config[j] != ~0ULL; j++) {
			KUNIT_EXPECT_EQ(test, ret, 0);
			event = new_event(test, cases[i].config[j], 0);
			event->group_leader = leader;
			/* perf core holds the context's mutex; this will do. */
			local_irq_disable();
			ret = knc_check_group(event);
			local_irq_enable();
			list_add_tail(&event->sibling_list, &leader->sibling_list);
		}
		KUNIT_EXPECT_EQ_MSG(test, ret, cases[i].err, "group %u", i);
	}

	/* The leader's CPU has been away. */
	leader = new_event(test, CYCLES, 0);
	event = new_event(test, INSTRUCTIONS, 0);
	event->group_leader = leader;
	leader->attach_state = 0;
	KUNIT_EXPECT_EQ(test, knc_event_config(event), -ENODEV);
}

/* Periods */

struct period_case {
	const char *name;
	u64 period;
	s64 left;
	u64 value;		/* what the counter is loaded with: 2^40 - N */
	s64 left_after;
	bool over;
};

#define P31	((s64)BIT_ULL(31))
#define P39	((s64)BIT_ULL(39))
#define P40	((s64)BIT_ULL(40))

static const struct period_case period_cases[] = {
	{ "1", 1, 1, P40 - 1, 1, false },
	{ "2", 2, 2, P40 - 2, 2, false },
	{ "100000", 100000, 100000, P40 - 100000, 100000, false },
	{ "2^31", P31, P31, P40 - P31, P31, false },
	{ "2^39 - 1", P39 - 1, P39 - 1, P39 + 1, P39 - 1, false },
	{ "2^39 in parts", P39, P39, P39 + 1, P39, false },
	{ "2^40 in parts", P40, P40, P39 + 1, P40, false },
	{ "2^40 + 5, second part", P40 + 5, P39 + 6, P39 + 1, P39 + 6, false },
	{ "2^40 + 5, last part", P40 + 5, 7, P40 - 7, 7, false },
	{ "left-over", 100000, 37, P40 - 37, 37, false },
	{ "over", 100000, 0, P40 - 100000, 100000, true },
	{ "over by some", 100000, -37, P40 - 99963, 99963, true },
	{ "over by all but one", 100000, -99999, P40 - 1, 1, true },
	{ "over by a period", 100000, -100000, P40 - 100000, 100000, true },
	{ "over by many periods", 100000, -12345678, P40 - 100000, 100000, true },
	{ "period 1 over", 1, 0, P40 - 1, 1, true },
	{ "period 1 over by some", 1, -5, P40 - 1, 1, true },
};

DESC_FROM_NAME(period_case)
KUNIT_ARRAY_PARAM(period, period_cases, period_case_desc);

static void test_period(struct kunit *test)
{
	const struct period_case *c = test->param_value;
	struct perf_event *event = new_event(test, INSTRUCTIONS, c->period);

	event->hw.idx = 1;
	local64_set(&event->hw.period_left, c->left);

	KUNIT_EXPECT_EQ(test, knc_event_set_period(event), c->over);
	KUNIT_EXPECT_EQ(test, record.msr[0x21], c->value);
	/* Signed: RDPMC programs extend the sign of what they read. */
	KUNIT_EXPECT_EQ(test, local64_read(&event->hw.prev_count), (s64)c->value - P40);
	KUNIT_EXPECT_EQ(test, local64_read(&event->hw.period_left), c->left_after);
}

/* A counting event goes over 2^40 in parts; no part, and no event, is lost. */
static void test_count_beyond_width(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);
	u64 total = 0;
	int i;

	add_all(test, &event, 1);
	for (i = 0; i < 5; i++) {
		u64 to_wrap = P40 - record.msr[0x21];

		/* It wraps, and some skid is counted before the stop. */
		count(1, to_wrap + 3);
		total += to_wrap + 3;
		KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 1);
	}
	count(1, 42);
	total += 42;
	knc_read(event);
	KUNIT_EXPECT_GT(test, total, (u64)P40);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), total);
}

/* A sampling period beyond 2^40 takes several wraps and gives one sample. */
static void test_period_beyond_width(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, P40 + 5);
	int wraps = 0;

	add_all(test, &event, 1);
	while (!samples.count && wraps < 10) {
		count(1, P40 - record.msr[0x21]);
		knc_pmi(&nowhere);
		wraps++;
	}
	KUNIT_EXPECT_EQ(test, wraps, 3);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), P40 + 5);
}

/* The PMI: each access, in order */

#define STOP		{ WRMSR, 0x2f, 0 }
#define STATUS_IS(v)	{ RDMSR, 0x2d, v }
#define CLEAR(v)	{ WRMSR, 0x2e, v }
#define UNMASK		{ LVTPC, 0, 0x400 }
#define PMC(i, v)	{ RDPMC, i, v }
#define LOAD(i, v)	{ WRMSR, 0x20 + (i), v }
#define RUN(v)		{ WRMSR, 0x2f, v }

static void expect_pmi(struct kunit *test, const struct access *expected,
		       unsigned int count)
{
	record_restart();
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 1);
	record_expect(test, expected, count);
	/* Samples are taken while nothing runs. */
	KUNIT_EXPECT_EQ(test, samples.ctrl, 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2d], 0);
}

static void test_pmi_one_counter(struct kunit *test)
{
	static const struct access expected[] = {
		STOP, STATUS_IS(2), CLEAR(2), UNMASK, PMC(1, 0),
		LOAD(1, P40 - 1000), RUN(2),
	};
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);

	add_all(test, &event, 1);
	count(1, 1000);
	expect_pmi(test, expected, ARRAY_SIZE(expected));
	KUNIT_EXPECT_EQ(test, samples.count, 1);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), 1000);
}

static void test_pmi_both_counters(struct kunit *test)
{
	static const struct access expected[] = {
		STOP, STATUS_IS(3), CLEAR(3), UNMASK,
		PMC(0, 5), LOAD(0, P40 - 495), PMC(1, 0), LOAD(1, P40 - 1000),
		RUN(3),
	};
	struct perf_event *event[] = {
		new_event(test, INSTRUCTIONS, 1000), new_event(test, CYCLES, 500),
	};

	add_all(test, event, 2);
	count(1, 1000);
	count(0, 505);
	expect_pmi(test, expected, ARRAY_SIZE(expected));
	KUNIT_EXPECT_EQ(test, samples.count, 2);
}

/* Only what overflowed is touched. */
static void test_pmi_one_of_two(struct kunit *test)
{
	static const struct access expected[] = {
		STOP, STATUS_IS(1), CLEAR(1), UNMASK,
		PMC(0, 0), LOAD(0, P40 - 500), RUN(3),
	};
	struct perf_event *event[] = {
		new_event(test, INSTRUCTIONS, 1000), new_event(test, CYCLES, 500),
	};

	add_all(test, event, 2);
	count(1, 10);
	count(0, 500);
	expect_pmi(test, expected, ARRAY_SIZE(expected));
	KUNIT_EXPECT_PTR_EQ(test, samples.event[0], event[1]);
}

/* A throttled event stops there and then, the other goes on. */
static void test_pmi_throttle(struct kunit *test)
{
	static const struct access expected[] = {
		STOP, STATUS_IS(1), CLEAR(1), UNMASK,
		PMC(0, 0), LOAD(0, P40 - 500), RUN(2),
	};
	struct perf_event *event[] = {
		new_event(test, INSTRUCTIONS, 1000), new_event(test, CYCLES, 500),
	};

	add_all(test, event, 2);
	count(0, 500);
	samples.throttle = true;
	expect_pmi(test, expected, ARRAY_SIZE(expected));
	KUNIT_EXPECT_TRUE(test, event[1]->hw.state & PERF_HES_STOPPED);
	KUNIT_EXPECT_FALSE(test, event[0]->hw.state & PERF_HES_STOPPED);

	/* perf core lets it go again at the next tick. */
	knc_pmu_disable(NULL);
	knc_start(event[1], 0);
	knc_pmu_enable(NULL);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 3);
}

/* Stopped with its group after it wrapped: it is reset, and not told of. */
static void test_pmi_throttle_group(struct kunit *test)
{
	static const struct access expected[] = {
		STOP, STATUS_IS(3), CLEAR(3), UNMASK,
		PMC(0, 0), LOAD(0, P40 - 500), PMC(1, 0), LOAD(1, P40 - 1000),
	};
	struct perf_event *event[] = {
		new_event(test, INSTRUCTIONS, 1000), new_event(test, CYCLES, 500),
	};

	add_all(test, event, 2);
	count(0, 500);
	count(1, 1000);
	samples.throttle = true;
	samples.throttle_also = event[0];
	expect_pmi(test, expected, ARRAY_SIZE(expected));
	KUNIT_EXPECT_EQ(test, samples.count, 1);
	KUNIT_EXPECT_TRUE(test, event[0]->hw.state & PERF_HES_STOPPED);
	KUNIT_EXPECT_TRUE(test, event[1]->hw.state & PERF_HES_STOPPED);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 0);
}

/* An NMI of somebody else's: the counters stop for a moment, nothing more. */
static void test_pmi_not_ours(struct kunit *test)
{
	static const struct access expected[] = { STOP, STATUS_IS(0), RUN(2) };
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);

	add_all(test, &event, 1);
	count(1, 999);
	record_restart();
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 0);
	record_expect(test, expected, ARRAY_SIZE(expected));
	KUNIT_EXPECT_EQ(test, samples.count, 0);
}

/* It arrives after the event has left: it is ours, and leaves nothing behind. */
static void test_pmi_late(struct kunit *test)
{
	static const struct access expected[] = { STOP, STATUS_IS(2), CLEAR(2), UNMASK };
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);

	add_all(test, &event, 1);
	count(1, 1002);
	del_all(&event, 1);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), 1002);
	expect_pmi(test, expected, ARRAY_SIZE(expected));
	KUNIT_EXPECT_EQ(test, samples.count, 0);
}

/* In a section that perf core has disabled, the PMI starts nothing. */
static void test_pmi_while_disabled(struct kunit *test)
{
	static const struct access expected[] = {
		STOP, STATUS_IS(2), CLEAR(2), UNMASK, PMC(1, 0), LOAD(1, P40 - 1000),
	};
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);

	add_all(test, &event, 1);
	count(1, 1000);
	knc_pmu_disable(NULL);
	expect_pmi(test, expected, ARRAY_SIZE(expected));
	knc_pmu_enable(NULL);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 2);
}

/* STATUS is left over, the counter has been loaded anew since. */
static void test_pmi_stale_status(struct kunit *test)
{
	static const struct access expected[] = {
		STOP, STATUS_IS(2), CLEAR(2), UNMASK, PMC(1, P40 - 1000), RUN(2),
	};
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);

	add_all(test, &event, 1);
	record.msr[0x2d] = 2;
	expect_pmi(test, expected, ARRAY_SIZE(expected));
	KUNIT_EXPECT_EQ(test, samples.count, 0);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), 0);
}

/* Registers whose owner is another driver are left alone. */
static void test_pmi_not_owned(struct kunit *test)
{
	knc_pmu_quiesce(this_cpu_ptr(&knc_cpu));
	record.msr[0x2d] = 1;
	record_restart();
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 0);
	KUNIT_EXPECT_EQ(test, record.count, 0);
}

/* Economy: a register is written to change it, and read if it may have changed */

static void test_switch_same_events(struct kunit *test)
{
	static const struct access out[] = { STOP, PMC(1, P40 - 900), PMC(0, P40 - 350) };
	static const struct access in[] = {
		LOAD(1, P40 - 900), LOAD(0, P40 - 350), RUN(3),
	};
	struct perf_event *event[] = {
		new_event(test, INSTRUCTIONS, 1000), new_event(test, CYCLES, 500),
	};

	add_all(test, event, 2);
	count(1, 100);
	count(0, 150);
	record_restart();
	del_all(event, 2);
	record_expect(test, out, ARRAY_SIZE(out));
	record_restart();
	add_all(test, event, 2);
	record_expect(test, in, ARRAY_SIZE(in));
}

static void test_switch_other_task(struct kunit *test)
{
	static const struct access expected[] = {
		STOP, PMC(1, P40 - 900), LOAD(1, P40 - 700), RUN(2),
	};
	struct perf_event *one = new_event(test, INSTRUCTIONS, 1000);
	struct perf_event *other = new_event(test, INSTRUCTIONS, 700);

	add_all(test, &one, 1);
	count(1, 100);
	record_restart();
	del_all(&one, 1);
	add_all(test, &other, 1);
	record_expect(test, expected, ARRAY_SIZE(expected));
}

static void test_read_running(struct kunit *test)
{
	static const struct access expected[] = { PMC(1, P40 - 900) };
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);

	add_all(test, &event, 1);
	count(1, 100);
	record_restart();
	knc_read(event);
	record_expect(test, expected, ARRAY_SIZE(expected));
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), 100);
}

static void test_idle_pmu(struct kunit *test)
{
	knc_pmu_disable(NULL);
	knc_pmu_enable(NULL);
	KUNIT_EXPECT_EQ(test, record.count, 0);
}

/* A start and a stop outside of a disabled section take effect at once. */
static void test_start_stop_enabled(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);

	add_all(test, &event, 1);
	knc_stop(event, PERF_EF_UPDATE);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 0);
	knc_start(event, PERF_EF_RELOAD);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 2);
}

/*
 * Next to the kernel's own driver, which sets both bits of GLOBAL_CTRL as it
 * likes: a counter that is not in use must not run even so.
 */
static void test_shared_ctrl(struct kunit *test)
{
	static const struct access out[] = {
		STOP, { WRMSR, 0x29, 0x130016 }, PMC(1, P40 - 900), RUN(0),
	};
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);

	this_cpu_ptr(&knc_cpu)->shared = true;
	add_all(test, &event, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x29], SEL_ALL | INSTRUCTIONS);
	count(1, 100);

	/* Whatever the other has written: it is stopped here. */
	record.msr[0x2f] = 3;
	record_restart();
	del_all(&event, 1);
	record_expect(test, out, ARRAY_SIZE(out));

	record.msr[0x2f] = 3;
	knc_pmu_disable(NULL);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 0);
	KUNIT_ASSERT_EQ(test, knc_add(event, PERF_EF_START), 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 0);
	knc_pmu_enable(NULL);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 2);
	KUNIT_EXPECT_EQ(test, record.msr[0x29], SEL_ALL | INSTRUCTIONS);
}

/* SPFLT: PERF_SPFLT_CONTROL 1:0 filter the counters, 63 is the program's */

#define PREFERENCE	BIT_ULL(63)

static struct perf_event *new_spflt_event(struct kunit *test, u64 config,
					  struct task_struct *task)
{
	struct perf_event *event = new_event(test, config, 0);

	event->attr.config1 = 1;
	KUNIT_ASSERT_EQ(test, knc_event_config(event), 0);
	if (task) {
		event->attach_state = PERF_ATTACH_TASK;
		event->hw.target = task;
		KUNIT_ASSERT_EQ(test, knc_spflt_event_init(event), 0);
	}

	return event;
}

/* As much of a task as the driver looks at; the test has a reference to it. */
static struct task_struct *new_task(struct kunit *test)
{
	struct task_struct *task = kunit_kzalloc(test, sizeof(*task), GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	refcount_set(&task->usage, 1);

	return task;
}

/* The scheduler, and perf core for a task with @events of ours on counters. */
static void task_switch(struct task_struct *prev, struct perf_event **events,
			int count, struct task_struct *next)
{
	knc_spflt_switch(NULL, false, prev, next, 0);
	if (count)
		del_all(events, count);
}

/* A CPU-wide event: the filter is its own, the bit is left as it is. */
static void test_spflt_cpu_wide(struct kunit *test)
{
	struct perf_event *event = new_spflt_event(test, INSTRUCTIONS, NULL);
	struct perf_event *plain = new_event(test, CYCLES, 0);

	record.msr[0x2c] = PREFERENCE;
	add_all(test, &event, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE | 2);

	/* The program has changed its mind; an ordinary event joins. */
	record.msr[0x2c] = 2;
	add_all(test, &plain, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], 2);

	/* An ordinary event takes the filtered counter. */
	del_all(&event, 1);
	del_all(&plain, 1);
	record.msr[0x2c] = PREFERENCE | 2;
	add_all(test, &plain, 1);
	KUNIT_EXPECT_EQ(test, plain->hw.idx, 0);
	event = new_event(test, BRANCHES_, 0);
	add_all(test, &event, 1);
	KUNIT_EXPECT_EQ(test, event->hw.idx, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE);
}

/* Two tasks with opposite preferences, and one that has no events at all. */
static void test_spflt_tasks(struct kunit *test)
{
	struct task_struct *other = new_task(test), *stranger = new_task(test);
	struct perf_event *mine, *theirs;

	/* Left over from whoever ran before: a new task begins with 0. */
	record.msr[0x2c] = PREFERENCE;
	theirs = new_spflt_event(test, INSTRUCTIONS, other);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE);
	mine = new_spflt_event(test, INSTRUCTIONS, current);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], 0);

	/* The program says 1 before its event is on a counter, and is heard. */
	record.msr[0x2c] |= PREFERENCE;
	add_all(test, &mine, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE | 2);

	/* It leaves with its event still counting. */
	knc_spflt_switch(NULL, false, current, other, 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE | 2);
	del_all(&mine, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c] & PREFERENCE, 0);

	/* The other has said nothing; a stranger says 1, and is not heard. */
	task_switch(other, NULL, 0, stranger);
	record.msr[0x2c] |= PREFERENCE;
	task_switch(stranger, NULL, 0, other);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c] & PREFERENCE, 0);

	/* Back: the bit is there before the event is. */
	task_switch(other, NULL, 0, current);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c] & PREFERENCE, PREFERENCE);
	add_all(test, &mine, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE | 2);

	/* It says 0 while its event is not on a counter, and is heard. */
	del_all(&mine, 1);
	record.msr[0x2c] &= ~PREFERENCE;
	task_switch(current, NULL, 0, stranger);
	record.msr[0x2c] |= PREFERENCE;
	task_switch(stranger, NULL, 0, current);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c] & PREFERENCE, 0);

	knc_spflt_event_destroy(mine);
	knc_spflt_event_destroy(theirs);
}

/* Without SPFLT events, the register is not looked at. */
static void test_spflt_unused(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);
	unsigned int i;

	add_all(test, &event, 1);
	del_all(&event, 1);
	for (i = 0; i < record.count; i++)
		KUNIT_EXPECT_FALSE(test, record.log[i].kind != LVTPC &&
				   record.log[i].reg == 0x2c);
}

/*
 * perf core lets clones swap their events at a switch, so that a task's event may
 * be freed with another task. What it has said stays its own.
 */
static void test_spflt_clones(struct kunit *test)
{
	struct task_struct *child = new_task(test), *stranger = new_task(test);
	struct perf_event *mine, *theirs;

	mine = new_spflt_event(test, INSTRUCTIONS, current);
	theirs = new_spflt_event(test, INSTRUCTIONS, child);
	add_all(test, &mine, 1);
	record.msr[0x2c] |= PREFERENCE;

	/* The event stays on its counter: it is the child's from now on. */
	task_switch(current, NULL, 0, child);
	del_all(&theirs, 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], 2);
	del_all(&mine, 1);
	knc_spflt_event_destroy(mine);

	/* And the child's is now that of a task whose own event is gone. */
	task_switch(child, NULL, 0, current);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c] & PREFERENCE, PREFERENCE);
	task_switch(current, NULL, 0, stranger);
	record.msr[0x2c] &= ~PREFERENCE;
	task_switch(stranger, NULL, 0, current);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c] & PREFERENCE, PREFERENCE);
	knc_spflt_event_destroy(theirs);
}

/* The event that fork() makes of @parent for a child */
static struct perf_event *new_inherited_event(struct kunit *test, struct perf_event *parent,
					      struct task_struct *child)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);

	event->attr.config1 = 1;
	event->attach_state = PERF_ATTACH_TASK;
	event->hw.target = child;
	event->parent = parent;
	KUNIT_ASSERT_EQ(test, knc_spflt_event_init(event), 0);

	return event;
}

/*
 * Of clones one may exit with the event that was made for another, who has said
 * something by then, and goes on when he opens an event himself.
 */
static void test_spflt_clone_opens(struct kunit *test)
{
	struct perf_event *parent = new_event(test, INSTRUCTIONS, 0), *event;

	event = new_inherited_event(test, parent, current);
	task_switch(new_task(test), NULL, 0, current);
	record.msr[0x2c] |= PREFERENCE;
	knc_spflt_event_destroy(event);

	event = new_spflt_event(test, INSTRUCTIONS, current);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c] & PREFERENCE, PREFERENCE);
	knc_spflt_event_destroy(event);
}

/* A task that is gone leaves nothing to the next one at its address. */
static void test_spflt_address_again(struct kunit *test)
{
	struct task_struct *task = new_task(test), *stranger = new_task(test);
	struct perf_event *event = new_spflt_event(test, INSTRUCTIONS, task);

	task_switch(current, NULL, 0, task);
	record.msr[0x2c] |= PREFERENCE;
	task->exit_state = EXIT_DEAD;
	task_switch(task, NULL, 0, stranger);
	knc_spflt_event_destroy(event);
	KUNIT_EXPECT_EQ(test, refcount_read(&task->usage), 2);

	task->exit_state = 0;
	knc_spflt_exit();
	KUNIT_EXPECT_EQ(test, refcount_read(&task->usage), 1);
	event = new_spflt_event(test, INSTRUCTIONS, task);
	task_switch(stranger, NULL, 0, task);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c] & PREFERENCE, 0);
	knc_spflt_event_destroy(event);
}

static bool is_followed(const struct task_struct *task)
{
	bool found;

	mutex_lock(&knc_spflt_mutex);
	found = knc_spflt_find(task);
	mutex_unlock(&knc_spflt_mutex);

	return found;
}

/*
 * A task that has not run yet has no reference that would keep it: a fork() that
 * fails frees it. It is forgotten with its events, or referenced when it runs.
 */
static void test_spflt_unborn(struct kunit *test)
{
	struct perf_event *parent = new_spflt_event(test, INSTRUCTIONS, current), *event;
	struct task_struct *task = new_task(test);

	event = new_inherited_event(test, parent, task);
	KUNIT_EXPECT_EQ(test, refcount_read(&task->usage), 1);
	knc_spflt_event_destroy(event);
	KUNIT_EXPECT_EQ(test, refcount_read(&task->usage), 1);
	KUNIT_EXPECT_FALSE(test, is_followed(task));

	/* This one runs, on a CPU whose registers are not the driver's yet. */
	event = new_inherited_event(test, parent, task);
	this_cpu_ptr(&knc_cpu)->ready = false;
	knc_spflt_switch(NULL, false, current, task, 0);
	knc_spflt_switch(NULL, false, task, current, 0);
	this_cpu_ptr(&knc_cpu)->ready = true;
	KUNIT_EXPECT_EQ(test, refcount_read(&task->usage), 2);
	knc_spflt_event_destroy(event);
	KUNIT_EXPECT_EQ(test, refcount_read(&task->usage), 2);
	KUNIT_EXPECT_TRUE(test, is_followed(task));
	knc_spflt_event_destroy(parent);
}

/* The dead are cleared away by those who come after them. */
static void test_spflt_dead(struct kunit *test)
{
	struct task_struct *task = new_task(test);
	struct perf_event *event = new_spflt_event(test, INSTRUCTIONS, task);

	KUNIT_EXPECT_EQ(test, refcount_read(&task->usage), 2);
	task->exit_state = EXIT_DEAD;
	mutex_lock(&knc_spflt_mutex);
	knc_spflt_forget(knc_spflt_follow(task, false));
	mutex_unlock(&knc_spflt_mutex);
	KUNIT_EXPECT_EQ(test, refcount_read(&task->usage), 1);
	knc_spflt_event_destroy(event);
}

/* Known state (1.4.4): whatever a CPU brings with it is gone. */
static void test_reset(struct kunit *test)
{
	static const u8 regs[] = { 0x20, 0x21, 0x28, 0x29, 0x2c, 0x2f };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(regs); i++)
		record.msr[regs[i]] = 3;
	record.msr[0x2d] = 3;
	record.lvtpc = 0x10400;
	record_restart();

	knc_pmu_reset(this_cpu_ptr(&knc_cpu));

	for (i = 0; i < ARRAY_SIZE(regs); i++)
		KUNIT_EXPECT_EQ(test, record.msr[regs[i]], 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2d], 0);
	KUNIT_EXPECT_EQ(test, record.lvtpc, 0x400);

	/* First nothing counts, last interrupts may come. */
	KUNIT_EXPECT_EQ(test, record.log[0].reg, 0x2f);
	KUNIT_EXPECT_EQ(test, record.log[1].kind, LVTPC);
	KUNIT_EXPECT_EQ(test, record.log[1].value, 0x10400);
	KUNIT_EXPECT_EQ(test, record.log[record.count - 1].kind, LVTPC);
}

#include "races.c"
#include "host.c"

/* The tables against the sources that were collected */

#define INCLUDE_TEXT(name)						\
	#name ": .incbin \"" KNC_TEST_DATA "/" #name ".csv\"\n"		\
	".byte 0\n"

asm(".pushsection .rodata\n"
	INCLUDE_TEXT(knc_events)
	INCLUDE_TEXT(knc_events_extra)
	".popsection");

static const struct perf_pmu_events_attr *find_event(const char *name)
{
	struct attribute **attr;

	for (attr = knc_pmu_events_group.attrs; *attr; attr++)
		if (!strcasecmp((*attr)->name, name))
			return container_of(*attr, struct perf_pmu_events_attr, attr.attr);
	return NULL;
}

/* Columns umask, event and name begin at @first; returns the number of rows. */
static unsigned int check_csv(struct kunit *test, const char *csv, int first,
			      int column_cntmsk)
{
	char *text = kstrdup(csv, GFP_KERNEL), *rest = text, *line;
	unsigned int rows = 0;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, text);
	strsep(&rest, "\n");
	while ((line = strsep(&rest, "\n")) && *line) {
		const struct perf_pmu_events_attr *found;
		char *field[12] = {};
		struct perf_event *event;
		u32 umask, code, cntmsk;
		int i;

		for (i = 0; i < ARRAY_SIZE(field); i++)
			field[i] = strsep(&line, ",");
		KUNIT_ASSERT_EQ(test, kstrtou32(field[first], 0, &umask), 0);
		KUNIT_ASSERT_EQ(test, kstrtou32(field[first + 1], 0, &code), 0);

		found = find_event(field[first + 2]);
		KUNIT_EXPECT_NOT_ERR_OR_NULL(test, found);
		if (found)
			KUNIT_EXPECT_EQ_MSG(test, found->id, umask << 8 | code,
					    "%s", field[first + 2]);

		event = new_event(test, umask << 8 | code, 0);
		KUNIT_EXPECT_EQ(test, knc_event_counters(event), umask == 0x10 ? 1 : 3);
		if (column_cntmsk >= 0) {
			KUNIT_ASSERT_EQ(test, kstrtou32(field[column_cntmsk], 0, &cntmsk), 0);
			/* Never on a counter that others know it not to work on. */
			KUNIT_EXPECT_EQ(test, knc_event_counters(event) & ~cntmsk, 0);
		}
		rows++;
	}
	kfree(text);

	return rows;
}

static void test_event_tables(struct kunit *test)
{
	unsigned int named = 0, generic = 6;
	struct attribute **attr;

	for (attr = knc_pmu_events_group.attrs; *attr; attr++)
		named++;

	KUNIT_EXPECT_EQ(test, check_csv(test, knc_events, 1, 10), 59);
	KUNIT_EXPECT_EQ(test, check_csv(test, knc_events_extra, 0, -1), 4);
	KUNIT_EXPECT_EQ(test, named, 59 + 4 + generic);
}

static void test_event_show(struct kunit *test)
{
	struct perf_pmu_events_attr *event = (void *)find_event("vpu_elements_active");
	char *page = (char *)get_zeroed_page(GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, page);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, event);
	event->attr.show(NULL, &event->attr, page);
	KUNIT_EXPECT_STREQ(test, page, "event=0x18,umask=0x20\n");
	free_page((unsigned long)page);
}

static struct kunit_case knc_encoding_cases[] = {
	KUNIT_CASE_PARAM(test_config, config_gen_params),
	KUNIT_CASE(test_refusals),
	{}
};

static struct kunit_case knc_constraints_cases[] = {
	KUNIT_CASE_PARAM(test_sched, sched_gen_params),
	KUNIT_CASE(test_move_aside),
	KUNIT_CASE(test_groups),
	{}
};

static struct kunit_case knc_period_cases[] = {
	KUNIT_CASE_PARAM(test_period, period_gen_params),
	KUNIT_CASE(test_count_beyond_width),
	KUNIT_CASE(test_period_beyond_width),
	{}
};

static struct kunit_case knc_pmi_cases[] = {
	KUNIT_CASE(test_pmi_one_counter),
	KUNIT_CASE(test_pmi_both_counters),
	KUNIT_CASE(test_pmi_one_of_two),
	KUNIT_CASE(test_pmi_throttle),
	KUNIT_CASE(test_pmi_throttle_group),
	KUNIT_CASE(test_pmi_not_ours),
	KUNIT_CASE(test_pmi_late),
	KUNIT_CASE(test_pmi_while_disabled),
	KUNIT_CASE(test_pmi_stale_status),
	KUNIT_CASE(test_pmi_not_owned),
	{}
};

static struct kunit_case knc_registers_cases[] = {
	KUNIT_CASE(test_switch_same_events),
	KUNIT_CASE(test_switch_other_task),
	KUNIT_CASE(test_read_running),
	KUNIT_CASE(test_idle_pmu),
	KUNIT_CASE(test_start_stop_enabled),
	KUNIT_CASE(test_shared_ctrl),
	KUNIT_CASE(test_reset),
	{}
};

static struct kunit_case knc_spflt_cases[] = {
	KUNIT_CASE(test_spflt_cpu_wide),
	KUNIT_CASE(test_spflt_tasks),
	KUNIT_CASE(test_spflt_unused),
	KUNIT_CASE(test_spflt_clones),
	KUNIT_CASE(test_spflt_clone_opens),
	KUNIT_CASE(test_spflt_address_again),
	KUNIT_CASE(test_spflt_dead),
	KUNIT_CASE(test_spflt_unborn),
	{}
};

static struct kunit_case knc_tables_cases[] = {
	KUNIT_CASE(test_event_tables),
	KUNIT_CASE(test_event_show),
	{}
};

#define KNC_SUITE(suite)						\
static struct kunit_suite suite##_suite = {				\
	.name = #suite,							\
	.init = knc_test_init,						\
	.exit = knc_test_exit,						\
	.test_cases = suite##_cases,					\
}

KNC_SUITE(knc_encoding);
KNC_SUITE(knc_constraints);
KNC_SUITE(knc_period);
KNC_SUITE(knc_pmi);
KNC_SUITE(knc_registers);
KNC_SUITE(knc_spflt);
KNC_SUITE(knc_races);
KNC_SUITE(knc_host);
KNC_SUITE(knc_tables);

kunit_test_suites(&knc_encoding_suite, &knc_constraints_suite, &knc_period_suite,
		  &knc_pmi_suite, &knc_registers_suite, &knc_spflt_suite, &knc_races_suite,
		  &knc_host_suite, &knc_tables_suite);

/* MODULE_LICENSE() has come with knc_module.c. */
