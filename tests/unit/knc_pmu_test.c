// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of the driver, whose sources are compiled here against registers that
 * record each access. Expected values come from the manual (327357-001) and are
 * numbers, not names from the driver's headers.
 */
#include <kunit/test.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/sched/task_stack.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "record.h"
#include "fake.h"

/* The module as a front end is tested as well, but not bound to this CPU. */
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

/* Where samples go */
static int record_overflow(struct perf_event *event, struct perf_sample_data *data,
			   struct pt_regs *regs);
#undef perf_event_overflow
#define perf_event_overflow(event, data, regs)	record_overflow(event, data, regs)

#define KNC_PMU_RECORD_ACCESSES
#include "../../knc_config.c"
#include "../../knc_pmu.c"
#include "../../knc_pmi.c"
#include "../../knc_user_regs.c"
#include "../../spflt.c"
#include "../../knc_sched.c"
#include "../../knc_module.c"
#include "../../knc_nmi.c"
#include "../../knc_register.c"

#define COUNTER_MAX	((1ULL << 40) - 1)
#define CYCLES		0x2aULL
#define INSTRUCTIONS	0x16ULL
#define BRANCHES_	0x12ULL
#define L2_MISS		0x10cbULL
#define L2_HIT		0x10ccULL
#define P40		((s64)BIT_ULL(40))

/* The samples that the driver has delivered */
static struct {
	u64 periods;
	/* of the event, as perf core sets it for a frequency; 0: it stays */
	u64 next_period;
	/* of the last one, and where they were */
	struct pt_regs regs;
	const struct pt_regs *regs_at;
} samples;

static int record_overflow(struct perf_event *event, struct perf_sample_data *data,
			   struct pt_regs *regs)
{
	samples.periods += data->period;
	samples.regs = *regs;
	samples.regs_at = regs;
	event->hw.interrupts++;
	if (samples.next_period)
		event->hw.sample_period = samples.next_period;
	return 0;
}

static struct pmu test_pmu = { .type = PERF_TYPE_RAW };

static void init_event(struct kunit *test, struct perf_event *event, u64 config, u64 period)
{
	memset(event, 0, sizeof(*event));
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
}

static void *new_object(struct kunit *test, size_t size)
{
	void *object = kunit_kzalloc(test, size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, object);

	return object;
}

static struct perf_event *new_event(struct kunit *test, u64 config, u64 period)
{
	struct perf_event *event = new_object(test, sizeof(*event));

	init_event(test, event, config, period);

	return event;
}

static struct knc_cpu_pmu *this_cpu(void)
{
	return this_cpu_ptr(&knc_pmus);
}

/* perf_pmu_disable() and perf_pmu_enable() */
static void disable(void)
{
	knc_disable_all(&fake_pmu);
}

static void enable(void)
{
	knc_enable_all(&fake_pmu);
}

/* The kernel before the driver is in it */
static void fake_begin(void)
{
	vfree(knc_spflt_bits);
	knc_spflt_bits = NULL;
	knc_spflt_hooked = false;
	knc_registered = false;
	memset(&fake, 0, sizeof(fake));
	fake.raw_event = -ENOENT;
}

static void reset_hardware(void)
{
	unsigned int broken = record.broken;

	memset(&record, 0, sizeof(record));
	record.broken = broken;
	memset(&samples, 0, sizeof(samples));
	memset(this_cpu_ptr(&knc_owners), 0, sizeof(struct knc_owners));
	knc_pmu_reset(this_cpu());
	enable();
	record_restart();
}

/* A CPU that has come online, with its PMU enabled and nothing recorded */
static int knc_test_init(struct kunit *test)
{
	test_pmu.stop = knc_stop;
	fake_begin();
	knc_spflt_init();

	/* The driver's state is per CPU. */
	migrate_disable();
	reset_hardware();

	return 0;
}

static void knc_test_exit(struct kunit *test)
{
	fake_begin();
	/* After a failed assertion another thread runs this. */
	if (get_current()->migration_disabled)
		migrate_enable();
	/* No test may cause #GP on the strict hardware, or break a rule. */
	KUNIT_EXPECT_EQ(test, record.forbidden, 0);
	KUNIT_EXPECT_EQ(test, record.broken, 0);
}

static void add_all(struct kunit *test, struct perf_event **events, int count)
{
	int i, ret = 0;

	disable();
	for (i = 0; i < count && !ret; i++)
		ret = knc_add(events[i], PERF_EF_START);
	enable();
	KUNIT_ASSERT_EQ(test, ret, 0);
}

/* A new event, on counter 1 if that is free and can have it */
static struct perf_event *add_new(struct kunit *test, u64 config, u64 period)
{
	struct perf_event *event = new_event(test, config, period);

	add_all(test, &event, 1);

	return event;
}

static void del_all(struct perf_event **events, int count)
{
	int i;

	disable();
	for (i = 0; i < count; i++)
		knc_del(events[i], 0);
	enable();
}

/* The hardware: a counter advances, and STATUS is set if it wraps. */
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

#define HARDWARE(event)	.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_##event
#define CACHE(event)	.type = PERF_TYPE_HW_CACHE, .config = event

static const struct config_case config_cases[] = {
	{ "event and unit mask", PERF_TYPE_RAW, 0x2018, .sel = 0x532018 },
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
	{ "cycles", HARDWARE(CPU_CYCLES), .sel = 0x53002a },
	{ "instructions", HARDWARE(INSTRUCTIONS), .sel = 0x530016 },
	{ "cache-references", HARDWARE(CACHE_REFERENCES), .sel = 0x530028 },
	{ "cache-misses", HARDWARE(CACHE_MISSES), .sel = 0x530029 },
	{ "branches", HARDWARE(BRANCH_INSTRUCTIONS), .sel = 0x530012 },
	{ "branch-misses", HARDWARE(BRANCH_MISSES), .sel = 0x53002b },
	{ "stalled-cycles-frontend", HARDWARE(STALLED_CYCLES_FRONTEND), .sel = 0x53002d },
	{ "bus-cycles", HARDWARE(BUS_CYCLES), .err = -ENOENT },
	{ "no such generic event", HARDWARE(MAX), .err = -EINVAL },
	{ "L1-dcache-loads", CACHE(0x000000), .sel = 0x530000 },
	{ "L1-dcache-load-misses", CACHE(0x010000), .sel = 0x530003 },
	{ "L1-dcache-stores", CACHE(0x000100), .sel = 0x530001 },
	{ "L1-dcache-store-misses", CACHE(0x010100), .sel = 0x530004 },
	{ "L1-dcache-prefetches", CACHE(0x000200), .sel = 0x530011 },
	{ "L1-dcache-prefetch-misses", CACHE(0x010200), .sel = 0x53001c },
	{ "L1-icache-loads", CACHE(0x000001), .sel = 0x53000c },
	{ "L1-icache-load-misses", CACHE(0x010001), .sel = 0x53000e },
	{ "LLC-loads", CACHE(0x000002), .err = -ENOENT },
	{ "LLC-load-misses", CACHE(0x010002), .sel = 0x5310cb },
	{ "dTLB-load-misses", CACHE(0x010003), .err = -ENOENT },
	{ "iTLB-load-misses", CACHE(0x010004), .sel = 0x53000d },
	{ "branch-load-misses", CACHE(0x010005), .sel = 0x53002b },
	{ "no such cache", CACHE(0x000007), .err = -EINVAL },
	{ "no such operation", CACHE(0x000300), .err = -EINVAL },
	{ "no such result", CACHE(0x020000), .err = -EINVAL },
	{ "cache event bit 24", CACHE(0x1000000), .err = -EINVAL },
};

/* A test for each of its cases, by their names */
static void config_desc(const struct config_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(config, config_cases, config_desc);

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

/* Groups */

static void test_groups(struct kunit *test)
{
	static const struct {
		u64 config[3];
		int err;
		int software;		/* bits: which are software events */
		bool other;		/* those are another PMU's, and no software events */
		bool off;		/* the second */
	} cases[] = {
		{ { CYCLES, INSTRUCTIONS, ~0ULL }, 0 },
		{ { L2_MISS, INSTRUCTIONS, ~0ULL }, 0 },
		{ { INSTRUCTIONS, L2_MISS, ~0ULL }, 0 },
		{ { L2_MISS, L2_HIT, ~0ULL }, -EINVAL },
		{ { CYCLES, INSTRUCTIONS, BRANCHES_ }, -EINVAL },
		{ { 0, INSTRUCTIONS, L2_MISS }, 0, 1 },
		{ { 0, L2_HIT, L2_MISS }, -EINVAL, 1 },
		{ { INSTRUCTIONS, 0, L2_MISS }, 0, 2 },
		{ { 0, INSTRUCTIONS, ~0ULL }, -EINVAL, 1, .other = true },
		{ { CYCLES, INSTRUCTIONS, BRANCHES_ }, 0, .off = true },
		{ { INSTRUCTIONS, L2_HIT, L2_MISS }, 0, .off = true },
		{ { L2_HIT, INSTRUCTIONS, L2_MISS }, -EINVAL, .off = true },
	};
	struct perf_event *leader, *event;
	unsigned int i, j;
	int ret;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		leader = NULL;
		ret = 0;
		for (j = 0; j < 3 && cases[i].config[j] != ~0ULL; j++) {
			KUNIT_EXPECT_EQ(test, ret, 0);
			event = new_event(test, cases[i].config[j], 0);
			if (cases[i].software & BIT(j)) {
				event->pmu = NULL;
				if (!cases[i].other)
					event->event_caps = PERF_EV_CAP_SOFTWARE;
			}
			if (!leader) {
				leader = event;
				continue;
			}
			event->group_leader = leader;
			/* for lockdep: perf core holds the context's mutex */
			local_irq_disable();
			ret = event->pmu ? knc_check_group(event) : 0;
			local_irq_enable();
			if (cases[i].off && j == 1)
				event->state = PERF_EVENT_STATE_OFF;
			list_add_tail(&event->sibling_list, &leader->sibling_list);
		}
		KUNIT_EXPECT_EQ_MSG(test, ret, cases[i].err, "group %u", i);
	}

	/* The leader's CPU has been offline. */
	leader = new_event(test, CYCLES, 0);
	event = new_event(test, INSTRUCTIONS, 0);
	event->group_leader = leader;
	leader->attach_state = 0;
	KUNIT_EXPECT_EQ(test, knc_event_config(event), -ENODEV);
}

#include "pmi.c"

#include "module.c"

static struct kunit_case knc_event_cases[] = {
	KUNIT_CASE_PARAM(test_config, config_gen_params),
	KUNIT_CASE(test_groups),
	{}
};

#define KNC_SUITE(suite, init_, exit_)					\
static struct kunit_suite suite##_suite = {				\
	.name = #suite,							\
	.init = init_,							\
	.exit = exit_,							\
	.test_cases = suite##_cases,					\
}

KNC_SUITE(knc_event, knc_test_init, knc_test_exit);
KNC_SUITE(knc_pmi, knc_test_init, knc_test_exit);
KNC_SUITE(knc_module, knc_test_init, knc_test_exit);

kunit_test_suites(&knc_event_suite, &knc_pmi_suite, &knc_module_suite);
/* MODULE_LICENSE() has come with knc_module.c. */
