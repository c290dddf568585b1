// SPDX-License-Identifier: GPL-2.0-only
/*
 * Part of knc_pmu_test.c: SPFLT. In PERF_SPFLT_CONTROL, bits 1:0 filter the counters
 * and bit 63 is the program's preference (1.4.3.4).
 */
#define PREFERENCE	BIT_ULL(63)

static struct perf_event *new_spflt_event(struct kunit *test, u64 config, bool of_task)
{
	struct perf_event *event = new_event(test, config, 0);

	event->attr.config1 = 1;
	if (of_task)
		event->attach_state |= PERF_ATTACH_TASK;
	KUNIT_ASSERT_EQ(test, knc_spflt_event_init(event), 0);

	return event;
}

/* The current task, and two others */
static struct task_struct *me, *other, *stranger;

static struct task_struct *new_task(struct kunit *test, pid_t pid)
{
	struct task_struct *task = new_object(test, sizeof(*task));

	task_thread_info(task)->cpu = raw_smp_processor_id();
	task->pid = pid;

	return task;
}

static int knc_spflt_test_init(struct kunit *test)
{
	knc_test_init(test);
	me = new_task(test, 100);
	other = new_task(test, 101);
	stranger = new_task(test, PID_MAX_LIMIT - 1);
	fake.runs = me;

	return 0;
}

/* A switch, as the scheduler and perf core do it: @events are on counters. */
static void task_switch(struct perf_event **events, int count, struct task_struct *next)
{
	knc_spflt_switch(NULL, false, current, next, 0);
	if (count)
		del_all(events, count);
	fake.runs = next;
}

static u64 preference(void)
{
	return record.msr[0x2c] & PREFERENCE;
}

/* What the program executes */
static void spflt(bool on)
{
	record.msr[0x2c] = (record.msr[0x2c] & ~PREFERENCE) | (on ? PREFERENCE : 0);
}

/* Switches to @next, without events on counters, and checks its preference. */
static void expect_at_switch(struct kunit *test, struct task_struct *next, u64 expected)
{
	task_switch(NULL, 0, next);
	KUNIT_EXPECT_EQ(test, preference(), expected);
}

/* An event sets its filter, and leaves the preference as it is. */
static void test_spflt_filters(struct kunit *test)
{
	struct perf_event *event = new_spflt_event(test, INSTRUCTIONS, false);
	struct perf_event *plain = new_event(test, CYCLES, 0);

	spflt(1);
	add_all(test, &event, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE | 2);

	/* The program clears its preference; an ordinary event is added. */
	spflt(0);
	add_all(test, &plain, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], 2);

	/* A counter without an event keeps its filter, in case the event comes back. */
	del_all(&event, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], 2);

	/* An ordinary event takes the filtered counter. */
	del_all(&plain, 1);
	spflt(1);
	add_all(test, &plain, 1);
	KUNIT_EXPECT_EQ(test, plain->hw.idx, 0);
	event = new_event(test, BRANCHES_, 0);
	add_all(test, &event, 1);
	KUNIT_EXPECT_EQ(test, event->hw.idx, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE);
}

/* Until there is an SPFLT event the register is not accessed. */
static void test_spflt_unused(struct kunit *test)
{
	struct perf_event *event = add_new(test, INSTRUCTIONS, 0);

	task_switch(&event, 1, other);
	task_switch(NULL, 0, me);
	KUNIT_EXPECT_EQ(test, record.spflt, 0);
}

/* With the first event all begin with 0. A later one, refused or not, changes nothing. */
static void test_spflt_first(struct kunit *test)
{
	spflt(1);
	new_spflt_event(test, INSTRUCTIONS, true);
	KUNIT_EXPECT_EQ(test, preference(), 0);

	spflt(1);
	record_restart();
	new_spflt_event(test, CYCLES, false);
	KUNIT_EXPECT_EQ(test, record.count, 0);

	/* The CPU has switched before its interrupt: the bit is the task's. */
	knc_spflt_begin_cpu(NULL);
	KUNIT_EXPECT_EQ(test, preference(), PREFERENCE);
}

/* A task that ends has no bit: the next task with its PID may be there already. */
static void test_spflt_ended(struct kunit *test)
{
	struct task_struct *next = new_task(test, me->pid);

	new_spflt_event(test, INSTRUCTIONS, true);
	spflt(1);
	expect_at_switch(test, other, 0);
	expect_at_switch(test, me, PREFERENCE);
	me->exit_state = EXIT_ZOMBIE;
	expect_at_switch(test, next, 0);

	/* It runs once more, while the next task with its PID is in a region. */
	spflt(1);
	expect_at_switch(test, me, 0);
	expect_at_switch(test, next, PREFERENCE);
}

/* The next task's bit waits until no counter counts for the last one. */
static void test_spflt_waits(struct kunit *test)
{
	struct perf_event *event = new_spflt_event(test, L2_MISS, true);

	add_all(test, &event, 1);
	KUNIT_EXPECT_EQ(test, event->hw.idx, 0);
	spflt(1);
	knc_spflt_switch(NULL, false, me, other, 0);
	KUNIT_EXPECT_EQ(test, preference(), PREFERENCE);
	del_all(&event, 1);
	fake.runs = other;
	KUNIT_EXPECT_EQ(test, preference(), 0);

	/* Once: then the program changes the bit. */
	spflt(1);
	disable();
	enable();
	KUNIT_EXPECT_EQ(test, preference(), PREFERENCE);
}

/* A task that comes and goes before its bit was set has kept it; so has the one before. */
static void test_spflt_waits_in_vain(struct kunit *test)
{
	struct perf_event *event = new_spflt_event(test, BRANCHES_, true);

	spflt(1);
	task_switch(NULL, 0, other);
	add_all(test, &event, 1);
	expect_at_switch(test, me, 0);
	expect_at_switch(test, stranger, 0);
	del_all(&event, 1);
	KUNIT_EXPECT_EQ(test, preference(), 0);
	expect_at_switch(test, me, PREFERENCE);
	expect_at_switch(test, other, 0);
}

/* Where a CPU's events count, or perf core has switched already, the bit is set at once. */
static void test_spflt_waits_not(struct kunit *test)
{
	struct perf_event *event = new_spflt_event(test, BRANCHES_, false);

	spflt(1);
	add_all(test, &event, 1);
	expect_at_switch(test, other, 0);
	expect_at_switch(test, me, PREFERENCE);
	del_all(&event, 1);

	fake.hook_after_events = true;
	event = new_spflt_event(test, BRANCHES_, true);
	add_all(test, &event, 1);
	expect_at_switch(test, other, 0);
	expect_at_switch(test, me, PREFERENCE);
}

static void test_spflt_refused(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);

	event->attr.config1 = 1;
	fake.refused = BIT(FAKE_MEMORY);
	KUNIT_EXPECT_EQ(test, knc_spflt_event_init(event), -ENOMEM);

	fake_begin();
	fake.refused = BIT(FAKE_SWITCH);
	knc_spflt_init();
	KUNIT_EXPECT_EQ(test, knc_spflt_event_init(event), -EOPNOTSUPP);
	event->attr.config1 = 0;
	KUNIT_EXPECT_EQ(test, knc_spflt_event_init(event), 0);
	KUNIT_EXPECT_EQ(test, fake.held, 0);
}

/* On a CPU whose state is KNC_OFF no register is accessed, and tasks keep their bits. */
static void test_spflt_off(struct kunit *test)
{
	new_spflt_event(test, INSTRUCTIONS, true);
	spflt(1);
	task_switch(NULL, 0, other);
	knc_pmu_quiesce(this_cpu());
	record.msr[0x2c] = PREFERENCE | 3;
	record_restart();
	task_switch(NULL, 0, me);
	knc_spflt_begin_cpu(NULL);
	task_switch(NULL, 0, stranger);
	KUNIT_EXPECT_EQ(test, record.count, 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE | 3);
	knc_pmu_reset(this_cpu());
	expect_at_switch(test, me, PREFERENCE);
}

/* A reset clears the filters and the bit. With the first switch after it the CPU begins. */
static void test_spflt_reset(struct kunit *test)
{
	struct perf_event *wide = new_spflt_event(test, BRANCHES_, false);

	spflt(1);
	task_switch(NULL, 0, other);
	add_all(test, &wide, 1);
	spflt(1);
	del_all(&wide, 1);

	knc_pmu_reset(this_cpu());
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], 0);
	KUNIT_EXPECT_EQ(test, this_cpu()->filters, 0);
	spflt(1);
	expect_at_switch(test, stranger, 0);
	expect_at_switch(test, other, 0);
	expect_at_switch(test, me, PREFERENCE);
}

static struct kunit_case knc_spflt_cases[] = {
	KUNIT_CASE(test_spflt_filters),
	KUNIT_CASE(test_spflt_unused),
	KUNIT_CASE(test_spflt_first),
	KUNIT_CASE(test_spflt_ended),
	KUNIT_CASE(test_spflt_waits),
	KUNIT_CASE(test_spflt_waits_in_vain),
	KUNIT_CASE(test_spflt_waits_not),
	KUNIT_CASE(test_spflt_refused),
	KUNIT_CASE(test_spflt_off),
	KUNIT_CASE(test_spflt_reset),
	{}
};
