// SPDX-License-Identifier: GPL-2.0-only
/*
 * Part of knc_pmu_test.c: SPFLT; tests/proof has the scheduler's hook. In PERF_SPFLT_CONTROL,
 * bits 1:0 filter the counters and bit 63 is the program's preference (1.4.3.4).
 */
#define PREFERENCE	BIT_ULL(63)

static struct perf_event *new_spflt_event(struct kunit *test, u64 config)
{
	struct perf_event *event = new_event(test, config, 0);

	event->attr.config1 = 1;
	KUNIT_ASSERT_EQ(test, knc_spflt_event_init(event), 0);

	return event;
}

/* The current task, and another one */
static struct task_struct *me, *other;

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
	fake.runs = me;

	return 0;
}

/* A switch, as the scheduler does it */
static void task_switch(struct task_struct *next)
{
	knc_spflt_switch(NULL, false, current, next, 0);
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

/* An event sets its filter, and leaves the preference as it is. */
static void test_spflt_filters(struct kunit *test)
{
	struct perf_event *event = new_spflt_event(test, INSTRUCTIONS);
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
	add_new(test, INSTRUCTIONS, 0);
	task_switch(other);
	task_switch(me);
	KUNIT_EXPECT_EQ(test, record.spflt, 0);
}

/* With the first event all begin with 0. A later one, refused or not, changes nothing. */
static void test_spflt_first(struct kunit *test)
{
	spflt(1);
	new_spflt_event(test, INSTRUCTIONS);
	KUNIT_EXPECT_EQ(test, preference(), 0);

	spflt(1);
	record_restart();
	new_spflt_event(test, CYCLES);
	KUNIT_EXPECT_EQ(test, record.count, 0);

	/* The CPU has switched before its interrupt: the bit is the task's. */
	knc_spflt_begin_cpu(NULL);
	KUNIT_EXPECT_EQ(test, preference(), PREFERENCE);
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

static struct kunit_case knc_spflt_cases[] = {
	KUNIT_CASE(test_spflt_filters),
	KUNIT_CASE(test_spflt_unused),
	KUNIT_CASE(test_spflt_first),
	KUNIT_CASE(test_spflt_refused),
	{}
};
