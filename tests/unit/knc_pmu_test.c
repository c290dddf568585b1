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
#include "host.h"

#ifndef KNC_SERIES
/* The module's host is tested as well, but not bound to this CPU. */
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
#endif

/* Accesses to what an NMI reads or writes */
#undef READ_ONCE
#undef WRITE_ONCE
#undef local64_read
#undef local64_set
#undef local64_add
#undef local64_sub
#undef local64_xchg
#define RECORD_WRITE(place, write)	(record_place(place), write)
#define RECORD_READ(place, read) ({					\
	typeof(read) value_ = RECORD_WRITE(place, read);		\
									\
	record_saw((unsigned long)value_);				\
	value_;								\
})
#define READ_ONCE(x)		RECORD_READ("read " #x, __READ_ONCE(x))
#define WRITE_ONCE(x, value) do {					\
	record_place(#x " = " #value);					\
	__WRITE_ONCE(x, value);						\
} while (0)
#define local64_read(l)		RECORD_READ("read " #l, local_read(&(l)->a))
#define local64_set(l, value)	RECORD_WRITE(#l " = " #value, local_set(&(l)->a, value))
#define local64_add(value, l)	RECORD_WRITE(#l " += " #value, local_add(value, &(l)->a))
#define local64_sub(value, l)	RECORD_WRITE(#l " -= " #value, local_sub(value, &(l)->a))
#define local64_xchg(l, value)	RECORD_READ("exchange " #l, local_xchg(&(l)->a, value))

/* Where samples go */
static int (*deliver)(struct perf_event *event, struct perf_sample_data *data,
		      struct pt_regs *regs);
#undef perf_event_overflow
#define perf_event_overflow(event, data, regs)	deliver(event, data, regs)

#define KNC_PMU_RECORD_ACCESSES
#include "../../knc_config.c"
#include "../../knc_pmu.c"
#include "../../knc_pmi.c"
#include "../../knc_user_regs.c"
#ifndef KNC_SERIES
#include "../../spflt.c"
#include "../../knc_sched.c"
#include "../../knc_module.c"
#include "../../knc_register.c"
#else
#include "knc_sched.c"
#endif

#define COUNTER_MAX	((1ULL << 40) - 1)
/* PerfEvtSel: USR | OS | INT | EN, as every unfiltered event has them */
#define SEL_ALL		0x530000ULL
#define CYCLES		0x2aULL
#define INSTRUCTIONS	0x16ULL
#define BRANCHES_	0x12ULL
#define L2_MISS		0x10cbULL
#define L2_HIT		0x10ccULL

/* The samples that the driver has delivered */
static struct {
	unsigned int count;
	/* of these, in a replay, which has entered NMI context */
	unsigned int replayed;
	bool throttle;
	struct perf_event *throttle_also;
	struct perf_event *event[4];
	u64 ctrl, flags, periods, dropped;
	/* of the event, as perf core sets it for a frequency; 0: it stays */
	u64 next_period;
	/* of the last one, and where they were */
	struct pt_regs regs;
	const struct pt_regs *regs_at;
} samples;

static int record_overflow(struct perf_event *event, struct perf_sample_data *data,
			   struct pt_regs *regs)
{
	s64 beyond = -local64_read(&event->hw.period_left);

	if (samples.count < ARRAY_SIZE(samples.event))
		samples.event[samples.count] = event;
	samples.count++;
	samples.replayed += !!in_nmi();
	samples.ctrl |= record.msr[0x2f];
	samples.flags |= data->sample_flags;
	samples.periods += data->period;
	samples.regs = *regs;
	samples.regs_at = regs;
	/* a whole period too late: the next one begins anew */
	if (beyond >= (s64)event->hw.sample_period)
		samples.dropped += beyond;
	/* as Linux 6.16 and newer, which stop the whole group */
	if (samples.throttle_also)
		knc_stop(samples.throttle_also, 0);
	if (samples.next_period)
		event->hw.sample_period = samples.next_period;
	return samples.throttle;
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

static struct knc_cpu *this_cpu(void)
{
	return this_cpu_ptr(&knc_cpu);
}

/* perf_pmu_disable() and perf_pmu_enable() */
static void disable(void)
{
	knc_disable_all(&host_pmu);
}

static void enable(void)
{
	knc_enable_all(&host_pmu);
}

/* The kernel before the driver is in it */
static void host_begin(void)
{
#ifndef KNC_SERIES
	vfree(knc_spflt_bits);
	knc_spflt_bits = NULL;
	knc_spflt_tracepoint = NULL;
	knc_pmu = NULL;
#endif
	memset(&host, 0, sizeof(host));
#ifndef KNC_SERIES
	host.raw_event = -ENOENT;
#endif
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
	deliver = record_overflow;
	test_pmu.stop = knc_stop;
	host_begin();
#ifndef KNC_SERIES
	knc_spflt_init();
#endif

	/* The driver's state is per CPU. */
	migrate_disable();
	reset_hardware();

	return 0;
}

static void knc_test_exit(struct kunit *test)
{
	record.runs = false;
	host_begin();
	/* After a failed assertion another thread runs this. */
	if (get_current()->migration_disabled)
		migrate_enable();
	/* No test may cause #GP on the strict hardware, or break a rule. */
	KUNIT_EXPECT_EQ(test, record.forbidden, 0);
	KUNIT_EXPECT_EQ(test, record.broken, 0);
}

static int try_add_all(struct perf_event **events, int count)
{
	int i, ret = 0;

	disable();
	for (i = 0; i < count && !ret; i++)
		ret = knc_add(events[i], PERF_EF_START);
	enable();

	return ret;
}

static void add_all(struct kunit *test, struct perf_event **events, int count)
{
	KUNIT_ASSERT_EQ(test, try_add_all(events, count), 0);
}

/* A new event, on counter 1 if that is free and can have it */
static struct perf_event *add_new(struct kunit *test, u64 config, u64 period)
{
	struct perf_event *event = new_event(test, config, period);

	add_all(test, &event, 1);

	return event;
}

/* Instructions by 1000 on counter 1, cycles by 500 on counter 0 */
static void add_pair(struct kunit *test, struct perf_event *event[2])
{
	event[0] = new_event(test, INSTRUCTIONS, 1000);
	event[1] = new_event(test, CYCLES, 500);
	add_all(test, event, 2);
}

static void del_all(struct perf_event **events, int count)
{
	int i;

	disable();
	for (i = 0; i < count; i++)
		knc_del(events[i], 0);
	enable();
}

static bool is_on_counter(const struct perf_event *event)
{
	int idx = knc_find_slot(this_cpu(), event);

	return idx >= 0 && idx == event->hw.idx;
}

static void expect_count(struct kunit *test, struct perf_event *event, u64 count)
{
	knc_event_read(event);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), count);
}

/* The hardware: a counter advances, and STATUS is set if it wraps. */
static void count(unsigned int idx, u64 events)
{
	u64 value = record.msr[0x20 + idx] + events;

	if (value > COUNTER_MAX)
		record.msr[0x2d] |= 1 << idx;
	record.msr[0x20 + idx] = value & COUNTER_MAX;
}

/* What may be in the registers of a CPU before the driver has seen it */
static void leave_dirty(void)
{
	static const u8 regs[] = { 0x20, 0x21, 0x28, 0x29, 0x2c, 0x2d, 0x2f };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(regs); i++)
		record.msr[regs[i]] = 3;
	record.lvtpc = 0x10400;
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

/* A test for each of its cases, by their names */
#define NAMED_PARAM(test)						\
static void test##_desc(const struct test##_case *c, char *desc)	\
{									\
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);			\
}									\
KUNIT_ARRAY_PARAM(test, test##_cases, test##_desc)

NAMED_PARAM(config);

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
	static const struct {
		struct perf_event_attr attr;
		int err;
	} cases[] = {
		{ { .config2 = 1 }, -EINVAL },
		{ { .config1 = 2 }, -EINVAL },
		{ { .sample_type = PERF_SAMPLE_BRANCH_STACK }, -EOPNOTSUPP },
		{ { .precise_ip = 1 }, -EOPNOTSUPP },
		{ { .exclude_host = 1 }, -EOPNOTSUPP },
		/* It has no effect, as with other x86 PMUs. */
		{ { .exclude_idle = 1 }, 0 },
		{ { }, 0 },
	};
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		event->attr = cases[i].attr;
		event->attr.type = PERF_TYPE_RAW;
		KUNIT_EXPECT_EQ_MSG(test, knc_event_config(event), cases[i].err, "case %u", i);
	}
}

/* Groups */

static void test_groups(struct kunit *test)
{
	static const struct {
		u64 config[3];
		int err;
		bool software;		/* the leader */
		bool off;		/* the second */
	} cases[] = {
		{ { CYCLES, INSTRUCTIONS, ~0ULL }, 0 },
		{ { L2_MISS, INSTRUCTIONS, ~0ULL }, 0 },
		{ { INSTRUCTIONS, L2_MISS, ~0ULL }, 0 },
		{ { L2_MISS, L2_HIT, ~0ULL }, -EINVAL },
		{ { CYCLES, INSTRUCTIONS, BRANCHES_ }, -EINVAL },
		{ { 0, INSTRUCTIONS, L2_MISS }, 0, true },
		{ { 0, L2_HIT, L2_MISS }, -EINVAL, true },
		{ { CYCLES, INSTRUCTIONS, BRANCHES_ }, 0, .off = true },
		{ { INSTRUCTIONS, L2_HIT, L2_MISS }, 0, .off = true },
		{ { L2_HIT, INSTRUCTIONS, L2_MISS }, -EINVAL, .off = true },
	};
	struct perf_event *leader, *event;
	unsigned int i, j;
	int ret;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		leader = new_event(test, cases[i].config[0], 0);
		if (cases[i].software) {
			leader->event_caps = PERF_EV_CAP_SOFTWARE;
			leader->pmu = NULL;
		}
		ret = 0;
		for (j = 1; j < 3 && cases[i].config[j] != ~0ULL; j++) {
			KUNIT_EXPECT_EQ(test, ret, 0);
			event = new_event(test, cases[i].config[j], 0);
			event->group_leader = leader;
			/* for lockdep: perf core holds the context's mutex */
			local_irq_disable();
			ret = knc_check_group(event);
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

NAMED_PARAM(period);

static void test_period(struct kunit *test)
{
	const struct period_case *c = test->param_value;
	struct perf_event *event = new_event(test, INSTRUCTIONS, c->period);

	local64_set(&event->hw.period_left, c->left);
	event->hw.last_period = 4711;

	disable();
	event->hw.idx = 1;
	knc_event_start(event);
	KUNIT_EXPECT_EQ(test, event->hw.last_period, c->over ? c->period : 4711);
	KUNIT_EXPECT_PTR_EQ(test, this_cpu()->event[1], event);
	KUNIT_EXPECT_EQ(test, record.msr[0x29], SEL_ALL | INSTRUCTIONS);
	KUNIT_EXPECT_EQ(test, record.msr[0x21], c->value);
	/* Signed: programs extend the sign of what RDPMC reads. */
	KUNIT_EXPECT_EQ(test, local64_read(&event->hw.prev_count), (s64)c->value - P40);
	KUNIT_EXPECT_EQ(test, local64_read(&event->hw.period_left), c->left_after);
}

#include "pmi.c"

/* No register is written with the value that it has. */
static void test_switch_same_events(struct kunit *test)
{
	struct perf_event *event[2];

	add_pair(test, event);
	count(1, 100);
	count(0, 150);
	record_restart();
	del_all(event, 2);
	record_expect(test, STOP, PMC(1, P40 - 900), PMC(0, P40 - 350));
	record_restart();
	add_all(test, event, 2);
	record_expect(test, LOAD(1, P40 - 900), LOAD(0, P40 - 350), RUN(3));
}

static void test_switch_other_task(struct kunit *test)
{
	struct perf_event *one = add_new(test, INSTRUCTIONS, 1000);
	struct perf_event *other = new_event(test, INSTRUCTIONS, 700);

	count(1, 100);
	record_restart();
	del_all(&one, 1);
	add_all(test, &other, 1);
	record_expect(test, STOP, PMC(1, P40 - 900), LOAD(1, P40 - 700), RUN(2));
}

static void test_idle_pmu(struct kunit *test)
{
	disable();
	enable();
	KUNIT_EXPECT_EQ(test, record.count, 0);
}

/* A nested disable does nothing, nor does an enable without a disable. */
static void test_disable_twice(struct kunit *test)
{
	add_new(test, INSTRUCTIONS, 1000);
	record_restart();
	disable();
	disable();
	enable();
	enable();
	record_expect(test, STOP, RUN(2));
}

/* Start and stop take effect at once while the PMU is enabled. */
static void test_start_stop_enabled(struct kunit *test)
{
	struct perf_event *event = add_new(test, INSTRUCTIONS, 1000);

	record_restart();
	knc_stop(event, PERF_EF_UPDATE);
	record_expect(test, STOP, PMC(1, P40 - 1000));
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 0);
	KUNIT_EXPECT_FALSE(test, is_on_counter(event));
	knc_start(event, PERF_EF_RELOAD);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 2);

	add_new(test, CYCLES, 500);
	knc_stop(event, PERF_EF_UPDATE);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 1);
	record_restart();
	knc_start(event, PERF_EF_RELOAD);
	record_expect(test, STOP, LOAD(1, P40 - 1000), RUN(3));
}

/* While it is disabled they take effect when it is enabled. */
static void test_start_stop_disabled(struct kunit *test)
{
	struct perf_event *event = add_new(test, INSTRUCTIONS, 1000);

	disable();
	record_restart();
	knc_stop(event, PERF_EF_UPDATE);
	knc_start(event, PERF_EF_RELOAD);
	record_expect(test, PMC(1, P40 - 1000), LOAD(1, P40 - 1000));
	enable();
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 2);
}

/* A reset gives the known state (1.4.4), whatever the registers held. */
static void test_reset(struct kunit *test)
{
	struct knc_cpu *kc = this_cpu();
	unsigned int i;

	leave_dirty();
	kc->pending = true;
	record_restart();

	knc_pmu_reset(kc);
	KUNIT_EXPECT_EQ(test, kc->state, KNC_STOP);
	KUNIT_EXPECT_FALSE(test, kc->pending);

	for (i = 0; i < ARRAY_SIZE(record.msr); i++)
		KUNIT_EXPECT_EQ_MSG(test, record.msr[i], 0, "MSR %#x", i);
	KUNIT_EXPECT_EQ(test, record.lvtpc, 0x400);

	/* The counters stop first, and the LVT entry is unmasked last. */
	KUNIT_EXPECT_EQ(test, record.log[0].reg, 0x2f);
	KUNIT_EXPECT_EQ(test, record.log[1].kind, LVTPC);
	KUNIT_EXPECT_EQ(test, record.log[1].value, 0x10400);
	KUNIT_EXPECT_EQ(test, record.log[record.count - 1].kind, LVTPC);
}

/* What CONFIG_KNC_PMU_DEBUG checks: the rules of knc_softmask.h */

static const char state_letters[] = "OSRrP";	/* OFF, STOP, RUN, READ, PMI */

static unsigned int broken_by(enum knc_state from, enum knc_state to)
{
	record.broken = 0;
	this_cpu()->state = from;
	knc_set_state(this_cpu(), to);

	return record.broken;
}

static void test_rules_state(struct kunit *test)
{
	static const char arrows[] = "OO OS SO SR SP RO RS Rr RP rR PS PR";
	unsigned int from, to, in_nmi[4];
	unsigned long flags;

	for (from = KNC_OFF; from <= KNC_PMI; from++) {
		for (to = KNC_OFF; to <= KNC_PMI; to++) {
			char arrow[] = { state_letters[from], state_letters[to], 0 };

			KUNIT_EXPECT_EQ_MSG(test, broken_by(from, to), !strstr(arrows, arrow),
					    "%s", arrow);
		}
	}

	host.irqs_on = true;
	KUNIT_EXPECT_EQ(test, broken_by(KNC_OFF, KNC_STOP), 0);
	KUNIT_EXPECT_EQ(test, broken_by(KNC_STOP, KNC_RUN), 1);
	host.irqs_on = false;

	host.no_nmi = true;
	KUNIT_EXPECT_EQ(test, broken_by(KNC_RUN, KNC_PMI), 1);
	KUNIT_EXPECT_EQ(test, broken_by(KNC_PMI, KNC_STOP), 1);
	KUNIT_EXPECT_EQ(test, broken_by(KNC_STOP, KNC_RUN), 0);
	host.no_nmi = false;

	local_irq_save(flags);
	compat_nmi_level_enter();
	in_nmi[0] = broken_by(KNC_RUN, KNC_STOP);
	in_nmi[1] = broken_by(KNC_RUN, KNC_READ);
	in_nmi[2] = broken_by(KNC_READ, KNC_RUN);
	this_cpu()->state = KNC_STOP;
	knc_fill_slot(this_cpu(), 1, NULL);
	in_nmi[3] = record.broken;
	this_cpu()->state = KNC_RUN;
	compat_nmi_level_exit();
	local_irq_restore(flags);
	KUNIT_EXPECT_EQ(test, in_nmi[0], 1);
	KUNIT_EXPECT_EQ(test, in_nmi[1] + in_nmi[2], 0);
	KUNIT_EXPECT_EQ(test, in_nmi[3], 1);
	record.broken = 0;
}

static void test_rules_others(struct kunit *test)
{
	static const struct {
		const char *what;
		unsigned int broken[KNC_PMI + 1];
	} rules[] = {
		{ "pending to true", { 1, 0, 1, 0, 0 } },
		{ "pending to false", { 1, 1, 1, 1, 0 } },
		{ "an event's counts", { 1, 0, 1, 0, 0 } },
		{ "a slot", { 0, 0, 1, 1, 0 } },
		/* Filling the slot is wrong as well in READ. RUN is left. */
		{ "PerfEvtSel", { 0, 0, 0, 3, 1 } },
#ifndef KNC_SERIES
		{ "filters", { 0, 0, 1, 1, 1 } },
#endif
	};
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);
	struct knc_cpu *kc = this_cpu();
	unsigned int i, state;

	event->hw.idx = 1;
	for (i = 0; i < ARRAY_SIZE(rules); i++) {
		for (state = KNC_OFF; state <= KNC_PMI; state++) {
			kc->state = KNC_STOP;
			reset_hardware();
			record.broken = 0;
			kc->state = state;
			switch (i) {
			case 0:
				knc_set_pending(kc, true);
				break;
			case 1:
				knc_set_pending(kc, false);
				break;
			case 2:
				knc_event_account(event, 1);
				break;
			case 3:
				knc_fill_slot(kc, 1, NULL);
				break;
			case 4:
				knc_event_start(event);
				break;
#ifndef KNC_SERIES
			case 5:
				kc->event[1] = event;
				kc->filters = BIT(1);
				knc_spflt_update(kc);
				break;
#endif
			}
			KUNIT_EXPECT_EQ_MSG(test, record.broken, rules[i].broken[state],
					    "%s in %c", rules[i].what, state_letters[state]);
		}
	}

	host.no_nmi = true;
	kc->state = KNC_STOP;
	record.broken = 0;
	knc_set_pending(kc, true);
	KUNIT_EXPECT_EQ(test, record.broken, 1);
	record.broken = 0;
}

#include "user.c"
#include "model.c"
#include "races.c"
#ifndef KNC_SERIES
#include "filters.c"
#include "host.c"
#endif

/* The tables of events against tests/data */

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
			/* never on a counter that the source says does not count it */
			KUNIT_EXPECT_EQ(test, knc_event_counters(event) & ~cntmsk, 0);
		}
		rows++;
	}
	kfree(text);

	return rows;
}

static void test_event_tables(struct kunit *test)
{
	unsigned int named = 0, generic = 6, manual, extra;
	struct attribute **attr;

	for (attr = knc_pmu_events_group.attrs; *attr; attr++)
		named++;

	manual = check_csv(test, knc_events, 1, 10);
	extra = check_csv(test, knc_events_extra, 0, -1);
	KUNIT_EXPECT_EQ(test, named, manual + extra + generic);
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

static struct kunit_case knc_groups_cases[] = {
	KUNIT_CASE(test_groups),
	{}
};

static struct kunit_case knc_period_cases[] = {
	KUNIT_CASE_PARAM(test_period, period_gen_params),
	{}
};

static struct kunit_case knc_registers_cases[] = {
	KUNIT_CASE(test_switch_same_events),
	KUNIT_CASE(test_switch_other_task),
	KUNIT_CASE(test_idle_pmu),
	KUNIT_CASE(test_disable_twice),
	KUNIT_CASE(test_start_stop_enabled),
	KUNIT_CASE(test_start_stop_disabled),
	KUNIT_CASE(test_reset),
	KUNIT_CASE(test_rules_state),
	KUNIT_CASE(test_rules_others),
	{}
};

static struct kunit_case knc_tables_cases[] = {
	KUNIT_CASE(test_event_tables),
	KUNIT_CASE(test_event_show),
	{}
};

#define KNC_SUITE(suite, init_, exit_)					\
static struct kunit_suite suite##_suite = {				\
	.name = #suite,							\
	.init = init_,							\
	.exit = exit_,							\
	.test_cases = suite##_cases,					\
}

KNC_SUITE(knc_encoding, knc_test_init, knc_test_exit);
KNC_SUITE(knc_groups, knc_test_init, knc_test_exit);
KNC_SUITE(knc_period, knc_test_init, knc_test_exit);
KNC_SUITE(knc_pmi, knc_test_init, knc_test_exit);
KNC_SUITE(knc_registers, knc_test_init, knc_test_exit);
KNC_SUITE(knc_read, knc_test_init, knc_test_exit);
KNC_SUITE(knc_user_regs, knc_user_regs_init, knc_user_regs_exit);
KNC_SUITE(knc_races, knc_test_init, knc_test_exit);
KNC_SUITE(knc_tables, knc_test_init, knc_test_exit);

kunit_test_suites(&knc_encoding_suite, &knc_groups_suite, &knc_period_suite,
		  &knc_pmi_suite, &knc_read_suite, &knc_registers_suite,
		  &knc_user_regs_suite, &knc_races_suite, &knc_tables_suite);

#ifndef KNC_SERIES
KNC_SUITE(knc_spflt, knc_spflt_test_init, knc_test_exit);
KNC_SUITE(knc_host, knc_test_init, knc_test_exit);

kunit_test_suites(&knc_spflt_suite, &knc_host_suite);
/* MODULE_LICENSE() has come with knc_module.c. */
#else
MODULE_DESCRIPTION("KUnit tests of the Knights Corner driver");
MODULE_LICENSE("GPL");
#endif
