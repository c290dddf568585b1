// SPDX-License-Identifier: GPL-2.0-only
/*
 * Part of knc_pmu_test.c: the interrupt in each state of the CPU, and reads of an event
 * meanwhile.
 */

#define STOP		{ WRMSR, 0x2f, 0 }
#define CTRL_IS(v)	{ RDMSR, 0x2f, v }
#define STATUS_IS(v)	{ RDMSR, 0x2d, v }
#define CLEAR(v)	{ WRMSR, 0x2e, v }
#define UNMASK		{ LVTPC, 0, 0x400 }
/* What the handler begins with if STATUS is @v */
#define HANDLE(v)	STOP, STATUS_IS(v), CLEAR(v), UNMASK
#define LVT_IS(v)	{ READ_LVTPC, 0, v }
#define PMC(i, v)	{ RDPMC, i, v }
#define LOAD(i, v)	{ WRMSR, 0x20 + (i), v }
#define RUN(v)		{ WRMSR, 0x2f, v }

static void expect_after_pmi(struct kunit *test, enum knc_state state, int count)
{
	KUNIT_EXPECT_EQ(test, samples.count, count);
	/* Samples are taken while nothing runs. */
	KUNIT_EXPECT_EQ(test, samples.ctrl, 0);
	KUNIT_EXPECT_FALSE(test, samples.flags & PERF_SAMPLE_ADDR);
	KUNIT_EXPECT_EQ(test, record.msr[0x2d], 0);
	KUNIT_EXPECT_EQ(test, this_cpu()->state, state);
	KUNIT_EXPECT_FALSE(test, this_cpu()->pending);
}

/* A PMI makes exactly these accesses, and restores the state; @count samples are taken. */
#define expect_pmi(test, count, ...) do {				\
	enum knc_state state_ = this_cpu()->state;			\
	record_restart();						\
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 1);			\
	record_expect(test, __VA_ARGS__);				\
	expect_after_pmi(test, state_, count);				\
} while (0)

static void test_pmi_one_counter(struct kunit *test)
{
	struct perf_event *event = add_new(test, INSTRUCTIONS, 1000);

	count(1, 1000);
	expect_pmi(test, 1, HANDLE(2), PMC(1, 0), LOAD(1, P40 - 1000), RUN(2));
	KUNIT_EXPECT_EQ(test, samples.replayed, 0);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), 1000);
	KUNIT_EXPECT_EQ(test, host.irqs, 1);
}

static void test_pmi_both_counters(struct kunit *test)
{
	struct perf_event *event[2];

	add_pair(test, event);
	count(1, 1000);
	count(0, 505);
	expect_pmi(test, 2, HANDLE(3), PMC(0, 5), LOAD(0, P40 - 495),
		   PMC(1, 0), LOAD(1, P40 - 1000), RUN(3));
}

static void test_pmi_one_of_two(struct kunit *test)
{
	struct perf_event *event[2];

	add_pair(test, event);
	count(1, 10);
	count(0, 500);
	expect_pmi(test, 1, HANDLE(1), PMC(0, 0), LOAD(0, P40 - 500), RUN(3));
	KUNIT_EXPECT_PTR_EQ(test, samples.event[0], event[1]);
}

static void test_pmi_period(struct kunit *test)
{
	add_new(test, INSTRUCTIONS, 1000);
	count(1, 1000);
	samples.next_period = 300;
	knc_pmi(&nowhere);
	KUNIT_EXPECT_EQ(test, samples.periods, 1000);
	KUNIT_EXPECT_EQ(test, record.msr[0x21], P40 - 300);
	count(1, 300);
	knc_pmi(&nowhere);
	KUNIT_EXPECT_EQ(test, samples.periods, 1000 + 300);
}

/* A throttled event stops at once, the other one goes on. */
static void test_pmi_throttle(struct kunit *test)
{
	struct perf_event *event[2];

	add_pair(test, event);
	count(0, 503);
	samples.throttle = true;
	expect_pmi(test, 1, HANDLE(1), PMC(0, 3), PMC(0, 3), RUN(2));
	KUNIT_EXPECT_FALSE(test, is_on_counter(event[1]));
	KUNIT_EXPECT_TRUE(test, is_on_counter(event[0]));

	/* perf core starts it again at the next tick, without a reload. */
	disable();
	record_restart();
	knc_start(event[1], 0);
	enable();
	record_expect(test, LOAD(0, P40 - 497), RUN(3));
	KUNIT_EXPECT_EQ(test, local64_read(&event[1]->count), 503);
}

/* An event has wrapped and is stopped with its group: its period ends without a sample. */
static void test_pmi_throttle_group(struct kunit *test)
{
	struct perf_event *event[2];

	add_pair(test, event);
	count(0, 500);
	count(1, 1000);
	samples.throttle = true;
	samples.throttle_also = event[0];
	expect_pmi(test, 1, HANDLE(3), PMC(0, 0), PMC(1, 0), PMC(0, 0));
	KUNIT_EXPECT_FALSE(test, is_on_counter(event[0]));
	KUNIT_EXPECT_FALSE(test, is_on_counter(event[1]));
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 0);
	KUNIT_EXPECT_EQ(test, local64_read(&event[0]->count), 1000);

	knc_start(event[0], 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x21], P40 - 1000);
	KUNIT_EXPECT_EQ(test, samples.count, 1);
}

/* A stale STATUS bit: the counter has been loaded since. */
static void test_pmi_stale_status(struct kunit *test)
{
	struct perf_event *event = add_new(test, INSTRUCTIONS, 1000);

	record.msr[0x2d] = 2;
	expect_pmi(test, 0, HANDLE(2), PMC(1, P40 - 1000), RUN(2));
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), 0);
}

/* A counter that no event is on: STATUS is cleared, and nothing is read or reported. */
static void test_pmi_empty_slot(struct kunit *test)
{
	add_new(test, INSTRUCTIONS, 1000);
	record.msr[0x2d] = 1;
	expect_pmi(test, 0, HANDLE(1), RUN(2));
}

static void test_pmi_off(struct kunit *test)
{
	knc_pmu_quiesce(this_cpu());
	record.msr[0x2d] = 1;
	record_restart();
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 0);
	KUNIT_EXPECT_EQ(test, record.count, 0);
}

static void test_pmi_reserved_status(struct kunit *test)
{
	record.msr[0x2d] = 0x700000004ULL;
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 0);
	record.msr[0x2d] |= 2;
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2d], 0x700000004ULL);
}

/*
 * STATUS is 0. If the LVT entry is masked, the NMI was a late PMI, and the entry is
 * unmasked; otherwise it was not the PMU's. The counters run on in RUN and READ, and
 * stay stopped in STOP and PMI.
 */
struct late_case {
	const char *name;
	enum knc_state state;
	bool masked, runs;
	int handled;
	struct access expected[6];
	unsigned int count;
};

static const struct late_case late_cases[] = {
	{ "KNC_RUN, late", KNC_RUN, true, true, 1,
	  { STOP, STATUS_IS(0), LVT_IS(0x10400), UNMASK, RUN(2) }, 5 },
	{ "KNC_RUN, not ours", KNC_RUN, false, true, 0,
	  { STOP, STATUS_IS(0), LVT_IS(0x400), RUN(2) }, 4 },
	{ "KNC_READ, late", KNC_READ, true, true, 1,
	  { STOP, STATUS_IS(0), LVT_IS(0x10400), UNMASK, RUN(2) }, 5 },
	{ "KNC_READ, not ours", KNC_READ, false, true, 0,
	  { STOP, STATUS_IS(0), LVT_IS(0x400), RUN(2) }, 4 },
	{ "KNC_STOP, late", KNC_STOP, true, false, 1,
	  { CTRL_IS(0), STOP, STATUS_IS(0), LVT_IS(0x10400), UNMASK }, 5 },
	{ "KNC_STOP, not ours", KNC_STOP, false, false, 0,
	  { CTRL_IS(0), STOP, STATUS_IS(0), LVT_IS(0x400) }, 4 },
	{ "KNC_STOP beside the write, late", KNC_STOP, true, true, 1,
	  { CTRL_IS(2), STOP, STATUS_IS(0), LVT_IS(0x10400), UNMASK, RUN(2) }, 6 },
	{ "KNC_STOP beside the write, not ours", KNC_STOP, false, true, 0,
	  { CTRL_IS(2), STOP, STATUS_IS(0), LVT_IS(0x400), RUN(2) }, 5 },
	{ "KNC_PMI, late", KNC_PMI, true, false, 1,
	  { STOP, STATUS_IS(0), LVT_IS(0x10400), UNMASK }, 4 },
	{ "KNC_PMI, not ours", KNC_PMI, false, false, 0,
	  { STOP, STATUS_IS(0), LVT_IS(0x400) }, 3 },
};

NAMED_PARAM(late);

static void test_pmi_late(struct kunit *test)
{
	const struct late_case *c = test->param_value;
	struct knc_cpu *kc = this_cpu();

	add_new(test, INSTRUCTIONS, 1000);
	count(1, 999);
	kc->state = c->state;
	record.msr[0x2f] = c->runs ? 2 : 0;
	record.lvtpc = c->masked ? 0x10400 : 0x400;
	record_restart();
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), c->handled);
	record_compare(test, c->expected, c->count);
	KUNIT_EXPECT_EQ(test, kc->state, c->state);
	KUNIT_EXPECT_FALSE(test, kc->pending);
	KUNIT_EXPECT_EQ(test, samples.count, 0);
	kc->state = KNC_RUN;
}

static void test_pmi_late_no_event(struct kunit *test)
{
	struct perf_event *event = add_new(test, INSTRUCTIONS, 1000);

	count(1, 1002);
	del_all(&event, 1);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), 1002);
	KUNIT_EXPECT_EQ(test, samples.count, 1);
	/* The PMI was on its way, and has masked the entry again. */
	record.lvtpc = 0x10400;
	expect_pmi(test, 1, STOP, STATUS_IS(0), LVT_IS(0x10400), UNMASK);
}

/*
 * A soft-masked PMI stops the counters and is pending; STATUS and the LVT entry stay. It is
 * replayed when the PMU is enabled.
 */
static void test_pmi_in_stop(struct kunit *test)
{
	struct perf_event *event = add_new(test, INSTRUCTIONS, 1000);

	count(1, 1000);
	disable();
	record.lvtpc = 0x10400;
	record_restart();
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 1);
	record_expect(test, CTRL_IS(0), STOP, STATUS_IS(2));
	KUNIT_EXPECT_TRUE(test, this_cpu()->pending);
	KUNIT_EXPECT_EQ(test, this_cpu()->state, KNC_STOP);
	KUNIT_EXPECT_EQ(test, samples.count, 0);

	record_restart();
	enable();
	record_expect(test, CLEAR(3), UNMASK, PMC(1, 0), LOAD(1, P40 - 1000), RUN(2));
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), 1000);
	KUNIT_EXPECT_EQ(test, samples.replayed, 1);
	KUNIT_EXPECT_FALSE(test, in_nmi());
	expect_after_pmi(test, KNC_RUN, 1);
}

/* An event that has wrapped is stopped: its sample is taken first. */
static void test_stop_wrapped(struct kunit *test)
{
	struct perf_event *event = add_new(test, INSTRUCTIONS, 1000);

	count(1, 1002);
	record.lvtpc = 0x10400;
	record_restart();
	KUNIT_EXPECT_TRUE(test, knc_event_stop(event));
	record_expect(test, STOP, PMC(1, 2), CLEAR(3), UNMASK, PMC(1, 2), LOAD(1, P40 - 998));
	KUNIT_EXPECT_EQ(test, samples.count, 1);
	KUNIT_EXPECT_EQ(test, samples.replayed, 1);
	KUNIT_EXPECT_EQ(test, samples.periods, 1000);
	KUNIT_EXPECT_EQ(test, record.msr[0x2d], 0);
	KUNIT_EXPECT_EQ(test, record.lvtpc, 0x400);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), 1002);
	KUNIT_EXPECT_FALSE(test, is_on_counter(event));

	record_restart();
	KUNIT_EXPECT_FALSE(test, knc_event_stop(event));
	KUNIT_EXPECT_EQ(test, record.count, 0);
	KUNIT_EXPECT_EQ(test, samples.count, 1);
}

/* perf core throttles an event of its group: the event's own overflow has no sample. */
static void test_stop_for_throttle(struct kunit *test)
{
	struct perf_event *event = add_new(test, INSTRUCTIONS, 1000);

	count(1, 1000);
	event->hw.interrupts = ~0ULL;
	KUNIT_EXPECT_FALSE(test, knc_event_stop(event));
	KUNIT_EXPECT_EQ(test, samples.count, 0);
	KUNIT_EXPECT_FALSE(test, is_on_counter(event));
	KUNIT_EXPECT_EQ(test, record.msr[0x2d], 0);
	KUNIT_EXPECT_EQ(test, record.lvtpc, 0x400);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), 1000);
}

/* The registers of a sample */

static void test_pmi_regs(struct kunit *test)
{
	struct perf_event *event = add_new(test, INSTRUCTIONS, 1000);
	struct pt_regs regs = {};
	char function[KSYM_SYMBOL_LEN];

	count(1, 1000);
	knc_pmi(&regs);
	KUNIT_EXPECT_PTR_EQ(test, samples.regs_at, (const struct pt_regs *)&regs);

	/* a replay has the registers of its caller */
	count(1, 1000);
	knc_stop(event, 0);
	KUNIT_EXPECT_FALSE(test, user_mode(&samples.regs));
	snprintf(function, sizeof(function), "%ps", (void *)samples.regs.ip);
	KUNIT_EXPECT_TRUE_MSG(test, str_has_prefix(function, "knc_event_stop"), "%s", function);
}

/* A sample of a user mode event has no register of the kernel; this is a kernel thread. */
static void test_pmi_regs_user(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);
	struct pt_regs regs;

	memset(&regs, 0x5a, sizeof(regs));
	regs.cs = __KERNEL_CS;
	event->attr.exclude_kernel = 1;
	host.entry_area = new_object(test, sizeof(long));
	add_all(test, &event, 1);
	count(1, 1000);
	knc_pmi(&regs);
	KUNIT_EXPECT_TRUE(test, user_mode(&samples.regs));
	KUNIT_EXPECT_EQ(test, samples.regs.ip, 0);
	KUNIT_EXPECT_EQ(test, samples.regs.sp, 0);
	KUNIT_EXPECT_EQ(test, samples.regs.bx, 0);

	regs.cs = __USER_CS;
	count(1, 1000);
	knc_pmi(&regs);
	KUNIT_EXPECT_PTR_EQ(test, samples.regs_at, (const struct pt_regs *)&regs);

	/* The same for a replay. */
	count(1, 1000);
	samples.regs = *task_pt_regs(get_current());
	samples.regs.ip = 1;
	knc_stop(event, 0);
	KUNIT_EXPECT_TRUE(test, user_mode(&samples.regs));
	KUNIT_EXPECT_EQ(test, samples.regs.ip, 0);

	knc_start(event, PERF_EF_RELOAD);
	regs.cs = __KERNEL_CS;
	samples.throttle = true;
	count(1, 1000);
	knc_pmi(&regs);
	KUNIT_EXPECT_FALSE(test, is_on_counter(event));
}

static struct kunit_case knc_pmi_cases[] = {
	KUNIT_CASE(test_pmi_one_counter),
	KUNIT_CASE(test_pmi_both_counters),
	KUNIT_CASE(test_pmi_one_of_two),
	KUNIT_CASE(test_pmi_period),
	KUNIT_CASE(test_pmi_throttle),
	KUNIT_CASE(test_pmi_throttle_group),
	KUNIT_CASE(test_pmi_stale_status),
	KUNIT_CASE(test_pmi_empty_slot),
	KUNIT_CASE(test_pmi_off),
	KUNIT_CASE(test_pmi_reserved_status),
	KUNIT_CASE_PARAM(test_pmi_late, late_gen_params),
	KUNIT_CASE(test_pmi_late_no_event),
	KUNIT_CASE(test_pmi_in_stop),
	KUNIT_CASE(test_stop_wrapped),
	KUNIT_CASE(test_stop_for_throttle),
	KUNIT_CASE(test_pmi_regs),
	KUNIT_CASE(test_pmi_regs_user),
	{}
};

/* A read of an event on no counter gives the last count, and accesses no counter. */
static void expect_last_count(struct kunit *test, struct perf_event *event, u64 count)
{
	record_restart();
	knc_event_read(event);
	/* in KNC_STOP, of GLOBAL_CTRL */
	KUNIT_EXPECT_EQ(test, record.count, this_cpu()->state == KNC_STOP);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), count);
}

static void test_read_no_slot(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);
	struct perf_event *other = new_event(test, CYCLES, 0);

	expect_last_count(test, event, 0);
	disable();
	KUNIT_ASSERT_EQ(test, knc_add(event, 0), 0);
	expect_last_count(test, event, 0);
	enable();
	expect_last_count(test, event, 0);

	knc_start(event, PERF_EF_RELOAD);
	count(1, 100);
	knc_stop(event, 0);
	record.msr[0x21] += 5;
	expect_last_count(test, event, 100);
	disable();
	expect_last_count(test, event, 100);
	enable();

	del_all(&event, 1);
	KUNIT_EXPECT_EQ(test, event->hw.idx, -1);
	add_all(test, &other, 1);
	KUNIT_ASSERT_EQ(test, other->hw.idx, 1);
	count(1, 1000);
	expect_last_count(test, event, 100);
	event->hw.idx = 1;
	expect_last_count(test, event, 100);
}

static void test_read_in_state(struct kunit *test)
{
	static const struct {
		enum knc_state state;
		u64 ctrl, count;
		unsigned int accesses;
	} cases[] = {
		{ KNC_OFF, 0, 0, 0 },
		{ KNC_STOP, 0, 100, 2 },
		/* beside a write of GLOBAL_CTRL: a PMI may come in the middle */
		{ KNC_STOP, 2, 0, 1 },
		{ KNC_RUN, 2, 100, 1 },
		{ KNC_READ, 2, 0, 0 },
		{ KNC_PMI, 0, 100, 1 },
	};
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);
	struct knc_cpu *kc = this_cpu();
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		add_all(test, &event, 1);
		count(1, 100);
		kc->state = cases[i].state;
		record.msr[0x2f] = cases[i].ctrl;
		record_restart();
		knc_event_read(event);
		KUNIT_EXPECT_EQ_MSG(test, kc->state, cases[i].state, "case %u", i);
		KUNIT_EXPECT_EQ_MSG(test, local64_read(&event->count), cases[i].count,
				    "case %u", i);
		KUNIT_EXPECT_EQ_MSG(test, record.count, cases[i].accesses, "case %u", i);
		kc->state = KNC_RUN;
		del_all(&event, 1);
		local64_set(&event->count, 0);
	}
}

static void test_long_overdue(struct kunit *test)
{
	struct perf_event *event = add_new(test, INSTRUCTIONS, 0);

	count(1, P39 + 10);
	expect_count(test, event, P39 + 10);
	count(1, P39);
	expect_count(test, event, P40 + 10);
}

static struct kunit_case knc_read_cases[] = {
	KUNIT_CASE(test_read_no_slot),
	KUNIT_CASE(test_read_in_state),
	KUNIT_CASE(test_long_overdue),
	{}
};
