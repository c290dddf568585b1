// SPDX-License-Identifier: GPL-2.0-only
/*
 * Part of knc_pmu_test.c: SPFLT. In PERF_SPFLT_CONTROL, bits 1:0 filter the counters
 * and bit 63 is the program's preference (1.4.3.4).
 */
#define PREFERENCE	BIT_ULL(63)

static void make_spflt_event(struct perf_event *event, struct task_struct *task)
{
	event->attr.config1 = 1;
	event->attach_state |= PERF_ATTACH_TASK;
	event->hw.target = task;
}

/* perf core does this when it has checked an event. */
static void accept(struct perf_event *event)
{
	event->ctx = (struct perf_event_context *)event;
}

/* Not accepted yet */
static struct perf_event *open_spflt_event(struct kunit *test, u64 config,
					   struct task_struct *task)
{
	struct perf_event *event = new_event(test, config, 0);

	make_spflt_event(event, task);
	KUNIT_ASSERT_EQ(test, knc_spflt_event_init(event), 0);

	return event;
}

static struct perf_event *new_spflt_event(struct kunit *test, u64 config,
					  struct task_struct *task)
{
	struct perf_event *event = task ? open_spflt_event(test, config, task) :
					  new_event(test, config, 0);

	event->attr.config1 = 1;
	accept(event);

	return event;
}

static struct perf_event *new_inherited_event(struct kunit *test, struct perf_event *parent,
					      struct task_struct *child)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);

	make_spflt_event(event, child);
	event->parent = parent;
	KUNIT_ASSERT_EQ(test, knc_spflt_event_init(event), 0);
	accept(event);

	return event;
}

/* A task, with the fields that the driver uses */
static struct task_struct *new_task(struct kunit *test)
{
	struct task_struct *task = new_object(test, sizeof(*task));

	/* the CPU where it runs, or ran last */
	task_thread_info(task)->cpu = raw_smp_processor_id();

	return task;
}

/* The current task, and two others */
static struct task_struct *me, *other, *stranger;

static int knc_spflt_test_init(struct kunit *test)
{
	knc_test_init(test);
	me = new_task(test);
	other = new_task(test);
	stranger = new_task(test);
	host.runs = me;

	return 0;
}

/* A switch, as the scheduler and perf core do it: @events are on counters. */
static void task_switch(struct perf_event **events, int count, struct task_struct *next)
{
	knc_spflt_switch(NULL, false, current, next, 0);
	if (count)
		del_all(events, count);
	host.runs = next;
}

static void expect_followed(struct kunit *test, int tasks)
{
	KUNIT_EXPECT_EQ(test, knc_spflt_entries, tasks);
}

static u64 preference(void)
{
	return record.msr[0x2c] & PREFERENCE;
}

/* Switches to @next, without events on counters, and checks its preference. */
static void expect_at_switch(struct kunit *test, struct task_struct *next, u64 expected)
{
	task_switch(NULL, 0, next);
	KUNIT_EXPECT_EQ(test, preference(), expected);
}

/* A CPU-wide event sets its filter, and leaves the preference as it is. */
static void test_spflt_cpu_wide(struct kunit *test)
{
	struct perf_event *event = new_spflt_event(test, INSTRUCTIONS, NULL);
	struct perf_event *plain = new_event(test, CYCLES, 0);

	KUNIT_EXPECT_EQ(test, knc_spflt_event_init(event), 0);
	expect_followed(test, 0);
	record.msr[0x2c] = PREFERENCE;
	add_all(test, &event, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE | 2);

	/* The program clears its preference; an ordinary event is added. */
	record.msr[0x2c] = 2;
	add_all(test, &plain, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], 2);

	/* A counter without an event keeps its filter, in case the event comes back. */
	del_all(&event, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], 2);

	/* An ordinary event takes the filtered counter. */
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
	struct perf_event *mine;

	/* The bit of another program: a new task begins with 0. */
	record.msr[0x2c] = PREFERENCE;
	new_spflt_event(test, INSTRUCTIONS, other);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE);
	mine = new_spflt_event(test, INSTRUCTIONS, me);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], 0);

	/* The program sets its preference before its event is on a counter. */
	record.msr[0x2c] |= PREFERENCE;
	add_all(test, &mine, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE | 2);

	knc_spflt_switch(NULL, false, me, other, 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE | 2);
	del_all(&mine, 1);
	host.runs = other;
	KUNIT_EXPECT_EQ(test, preference(), 0);

	/*
	 * The other task has not set it. A task without events sets the bit, which is
	 * ignored.
	 */
	task_switch(NULL, 0, stranger);
	record.msr[0x2c] |= PREFERENCE;
	expect_at_switch(test, other, 0);

	/* The bit is restored before the event is added. */
	expect_at_switch(test, me, PREFERENCE);
	add_all(test, &mine, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE | 2);

	/* It clears its preference while its event is on no counter. */
	del_all(&mine, 1);
	record.msr[0x2c] &= ~PREFERENCE;
	task_switch(NULL, 0, stranger);
	record.msr[0x2c] |= PREFERENCE;
	expect_at_switch(test, me, 0);
}

/* The preference belongs to the task, not to an event. */
static void test_spflt_second_event(struct kunit *test)
{
	struct perf_event *own;

	new_spflt_event(test, INSTRUCTIONS, me);
	record.msr[0x2c] |= PREFERENCE;
	new_spflt_event(test, CYCLES, me);
	KUNIT_EXPECT_EQ(test, preference(), PREFERENCE);
	expect_followed(test, 1);
	task_switch(NULL, 0, stranger);
	expect_at_switch(test, me, PREFERENCE);

	/* A task's own event, after another's for it, which is not on a counter yet */
	new_spflt_event(test, CYCLES, other);
	host.runs = other;
	own = new_spflt_event(test, INSTRUCTIONS, other);
	record.msr[0x2c] |= PREFERENCE;
	add_all(test, &own, 1);
	KUNIT_EXPECT_EQ(test, preference(), PREFERENCE);
}

static void expect_no_access(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < record.count; i++)
		KUNIT_EXPECT_NE(test, record.log[i].reg, 0x2c);
}

/* Without SPFLT events of tasks the register is not accessed. */
static void test_spflt_unused(struct kunit *test)
{
	struct perf_event *event = add_new(test, INSTRUCTIONS, 0);

	task_switch(&event, 1, other);
	task_switch(NULL, 0, me);
	expect_no_access(test);
}

/*
 * perf core swaps the events of clones at a switch, so that a task's event may be freed
 * with another task. The preference stays with the task.
 */
static void test_spflt_clones(struct kunit *test)
{
	struct perf_event *mine = new_spflt_event(test, INSTRUCTIONS, me);

	new_inherited_event(test, mine, other);
	add_all(test, &mine, 1);
	record.msr[0x2c] |= PREFERENCE;

	/* The event stays on its counter, and is the child's now. */
	task_switch(NULL, 0, other);
	disable();
	enable();
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], 2);
	del_all(&mine, 1);

	/* The child's event now belongs to a task without one. */
	expect_at_switch(test, me, PREFERENCE);
	task_switch(NULL, 0, stranger);
	record.msr[0x2c] &= ~PREFERENCE;
	expect_at_switch(test, me, PREFERENCE);
}

/* fork() follows the child, and does not change the bit of the running task. */
static void test_spflt_inherited(struct kunit *test)
{
	struct perf_event *parent = new_event(test, INSTRUCTIONS, 0);

	record.msr[0x2c] = PREFERENCE;
	record_restart();
	new_inherited_event(test, parent, other);
	KUNIT_EXPECT_EQ(test, record.count, 0);
	expect_at_switch(test, other, 0);
}

/* A task that ends leaves no preference to the next task at its address. */
static void test_spflt_free(struct kunit *test)
{
	struct perf_event *event = new_spflt_event(test, INSTRUCTIONS, me);

	new_spflt_event(test, INSTRUCTIONS, other);
	record.msr[0x2c] |= PREFERENCE;
	task_switch(NULL, 0, stranger);
	knc_spflt_free_task(NULL, stranger);
	expect_followed(test, 2);
	knc_spflt_free_task(NULL, me);
	expect_followed(test, 1);
	KUNIT_EXPECT_EQ(test, host.freed, 0);
	knc_spflt_event_destroy(event);
	KUNIT_EXPECT_EQ(test, host.freed, 1);

	new_spflt_event(test, INSTRUCTIONS, me);
	expect_at_switch(test, me, 0);
}

/* The other way round: the task is followed until it ends. */
static void test_spflt_free_after_event(struct kunit *test)
{
	knc_spflt_event_destroy(new_spflt_event(test, INSTRUCTIONS, me));
	expect_followed(test, 1);
	knc_spflt_free_task(NULL, me);
	expect_followed(test, 0);
	KUNIT_EXPECT_EQ(test, host.freed, 1);
}

/* A new task at the address of one that has ended begins without a preference. */
static void test_spflt_same_address(struct kunit *test)
{
	struct perf_event *event = new_spflt_event(test, INSTRUCTIONS, me);

	task_switch(NULL, 0, stranger);
	knc_spflt_free_task(NULL, me);
	record.msr[0x2c] = PREFERENCE;
	expect_at_switch(test, me, PREFERENCE);
	new_spflt_event(test, INSTRUCTIONS, me);
	knc_spflt_event_destroy(event);
	KUNIT_EXPECT_EQ(test, preference(), 0);
}

/* Until perf core has accepted an event, nothing changes for the task. */
static void test_spflt_not_accepted(struct kunit *test)
{
	struct perf_event *event = open_spflt_event(test, INSTRUCTIONS, other);

	record.msr[0x2c] = PREFERENCE;
	record_restart();
	task_switch(NULL, 0, other);
	disable();
	enable();
	task_switch(NULL, 0, me);
	expect_no_access(test);
	accept(event);
	expect_at_switch(test, other, 0);
}

/* An event that is refused leaves nothing behind. */
static void test_spflt_refused_other(struct kunit *test)
{
	struct perf_event *event = open_spflt_event(test, INSTRUCTIONS, other);

	knc_spflt_event_destroy(event);
	expect_followed(test, 0);
	KUNIT_EXPECT_EQ(test, host.freed, 1);

	/* Nor does it change a task that is followed. */
	new_spflt_event(test, INSTRUCTIONS, other);
	task_switch(NULL, 0, other);
	record.msr[0x2c] = PREFERENCE;
	knc_spflt_event_destroy(open_spflt_event(test, CYCLES, other));
	expect_followed(test, 1);
	task_switch(NULL, 0, me);
	record.msr[0x2c] = 0;
	expect_at_switch(test, other, PREFERENCE);
}

/* A task that opens an event on itself gets its bit back. */
static void test_spflt_refused_self(struct kunit *test)
{
	struct perf_event *event;

	record.msr[0x2c] = PREFERENCE;
	event = open_spflt_event(test, INSTRUCTIONS, me);
	KUNIT_EXPECT_EQ(test, preference(), 0);
	knc_spflt_event_destroy(event);
	KUNIT_EXPECT_EQ(test, preference(), PREFERENCE);
	expect_followed(test, 0);
	task_switch(NULL, 0, stranger);
	expect_at_switch(test, me, PREFERENCE);

	/* Also if it was preempted */
	event = open_spflt_event(test, INSTRUCTIONS, me);
	task_switch(NULL, 0, stranger);
	expect_at_switch(test, me, 0);
	knc_spflt_event_destroy(event);
	KUNIT_EXPECT_EQ(test, preference(), PREFERENCE);
}

/* Several events are opened at once: the task is followed by one that is accepted. */
static void test_spflt_at_once(struct kunit *test)
{
	struct perf_event *refused = open_spflt_event(test, INSTRUCTIONS, other);
	struct perf_event *first = open_spflt_event(test, INSTRUCTIONS, other);
	struct perf_event *second = open_spflt_event(test, INSTRUCTIONS, other);

	accept(first);
	expect_at_switch(test, other, 0);
	accept(second);
	knc_spflt_event_destroy(refused);
	record.msr[0x2c] = PREFERENCE;
	task_switch(NULL, 0, me);
	record.msr[0x2c] = 0;
	expect_at_switch(test, other, PREFERENCE);
	knc_spflt_event_destroy(first);
	knc_spflt_event_destroy(second);
	expect_followed(test, 1);
	expect_at_switch(test, me, PREFERENCE);
}

/* The next task's preference waits until no counter counts for the last one. */
static void test_spflt_counts_until_switch(struct kunit *test)
{
	struct perf_event *event = new_spflt_event(test, L2_MISS, me);

	new_spflt_event(test, INSTRUCTIONS, other);
	add_all(test, &event, 1);
	KUNIT_EXPECT_EQ(test, event->hw.idx, 0);
	record.msr[0x2c] |= PREFERENCE;
	knc_spflt_switch(NULL, false, me, other, 0);
	KUNIT_EXPECT_EQ(test, preference(), PREFERENCE);
	del_all(&event, 1);
	host.runs = other;
	disable();
	enable();
	KUNIT_EXPECT_EQ(test, preference(), 0);
}

/* The filters are set before the counters run. */
static void test_spflt_before_run(struct kunit *test)
{
	struct perf_event *event = new_spflt_event(test, INSTRUCTIONS, NULL);
	unsigned int i, filtered = 0;

	record_restart();
	add_all(test, &event, 1);
	for (i = 0; i < record.count; i++) {
		if (record.log[i].reg == 0x2c && record.log[i].kind == WRMSR)
			filtered++;
		if (record.log[i].reg == 0x2f && record.log[i].value)
			KUNIT_EXPECT_EQ(test, filtered, 1);
	}
	KUNIT_EXPECT_EQ(test, filtered, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 2);
}

/* A fork() that fails leaves nothing to the next task at the child's address. */
static void test_spflt_failed_fork(struct kunit *test)
{
	struct perf_event *parent = new_spflt_event(test, INSTRUCTIONS, me);
	struct perf_event *child = new_inherited_event(test, parent, other);
	struct perf_event *another = new_inherited_event(test, parent, other);

	expect_followed(test, 2);
	knc_spflt_event_destroy(child);
	expect_followed(test, 2);
	knc_spflt_event_destroy(another);
	expect_followed(test, 1);
	record.msr[0x2c] |= PREFERENCE;
	expect_at_switch(test, other, PREFERENCE);
}

/* A child that perf core does not tell is the task in which its event first counts. */
static void test_spflt_target_unknown(struct kunit *test)
{
	struct perf_event *parent = new_spflt_event(test, INSTRUCTIONS, me);
	struct perf_event *child;

	host.target_unknown = true;
	child = new_inherited_event(test, parent, NULL);
	record.msr[0x2c] |= PREFERENCE;
	task_switch(NULL, 0, other);
	add_all(test, &child, 1);
	KUNIT_EXPECT_EQ(test, preference(), 0);
	expect_followed(test, 2);
	record.msr[0x2c] |= PREFERENCE;
	task_switch(&child, 1, me);
	record.msr[0x2c] = 0;
	expect_at_switch(test, other, PREFERENCE);
	add_all(test, &child, 1);
	KUNIT_EXPECT_EQ(test, preference(), PREFERENCE);
}

/* A task that has ended is not followed: its entry would stay for ever. */
static void test_spflt_ended(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);

	make_spflt_event(event, other);
	other->exit_state = EXIT_ZOMBIE;
	KUNIT_EXPECT_EQ(test, knc_spflt_event_init(event), -ESRCH);
	expect_followed(test, 0);
}

static void test_spflt_refused(struct kunit *test)
{
	static const enum host_thing hooks[] = { HOST_FREE, HOST_SWITCH };
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);
	unsigned int i;

	make_spflt_event(event, other);
	host.refused = BIT(HOST_MEMORY);
	KUNIT_EXPECT_EQ(test, knc_spflt_event_init(event), -ENOMEM);
	expect_followed(test, 0);

	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		host_begin();
		host.refused = BIT(hooks[i]);
		knc_spflt_init();
		KUNIT_EXPECT_EQ(test, knc_spflt_event_init(event), -EOPNOTSUPP);
		event->attach_state = PERF_ATTACH_GROUP;
		KUNIT_EXPECT_EQ(test, knc_spflt_event_init(event), 0);
		event->attach_state |= PERF_ATTACH_TASK;
		event->attr.config1 = 0;
		KUNIT_EXPECT_EQ(test, knc_spflt_event_init(event), 0);
		event->attr.config1 = 1;
		reset_hardware();
		knc_spflt_exit();
		KUNIT_EXPECT_EQ(test, host.held, 0);
	}
}

/* Switches on a CPU whose state is KNC_OFF access no register. */
static void test_spflt_off(struct kunit *test)
{
	struct knc_cpu *kc = this_cpu();

	new_spflt_event(test, INSTRUCTIONS, other);
	knc_pmu_quiesce(kc);
	record.msr[0x2c] = PREFERENCE | 3;
	record_restart();
	new_spflt_event(test, INSTRUCTIONS, me);
	task_switch(NULL, 0, other);
	task_switch(NULL, 0, me);
	KUNIT_EXPECT_EQ(test, record.count, 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE | 3);
}

/* A reset clears the filters and the bit, and keeps the preferences. */
static void test_spflt_reset(struct kunit *test)
{
	struct perf_event *wide = new_spflt_event(test, BRANCHES_, NULL);
	struct perf_event *plain = new_event(test, CYCLES, 0);

	/* A task with preference 1 runs. */
	new_spflt_event(test, INSTRUCTIONS, other);
	task_switch(NULL, 0, other);
	record.msr[0x2c] |= PREFERENCE;
	task_switch(NULL, 0, stranger);
	task_switch(NULL, 0, other);
	add_all(test, &wide, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE | 2);
	del_all(&wide, 1);

	knc_pmu_reset(this_cpu());
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], 0);
	KUNIT_EXPECT_EQ(test, this_cpu()->filters, 0);

	/* The cleared bit does not become its preference. */
	task_switch(NULL, 0, stranger);
	expect_at_switch(test, other, PREFERENCE);

	/* A reset while the task runs: its bit is set with the next event. */
	knc_pmu_reset(this_cpu());
	add_all(test, &plain, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE);
}

/* While the event of another task still counts, the next task's bit is not set. */
static void test_spflt_waits(struct kunit *test)
{
	struct perf_event *theirs = new_spflt_event(test, BRANCHES_, other);
	struct perf_event *mine = new_spflt_event(test, INSTRUCTIONS, me);

	task_switch(NULL, 0, other);
	record.msr[0x2c] |= PREFERENCE;
	expect_at_switch(test, me, 0);
	add_all(test, &mine, 1);

	/* The task runs and leaves, without its bit. */
	expect_at_switch(test, other, 0);
	task_switch(NULL, 0, stranger);
	task_switch(NULL, 0, me);
	expect_at_switch(test, other, 0);
	del_all(&mine, 1);
	KUNIT_EXPECT_EQ(test, preference(), PREFERENCE);

	/* From now on the program changes the bit. */
	record.msr[0x2c] &= ~PREFERENCE;
	add_all(test, &theirs, 1);
	KUNIT_EXPECT_EQ(test, preference(), 0);
	del_all(&theirs, 1);
}

/* The bit that was not set is not set for another task, either. */
static void test_spflt_waits_in_vain(struct kunit *test)
{
	struct perf_event *mine = new_spflt_event(test, INSTRUCTIONS, me);

	new_spflt_event(test, BRANCHES_, other);
	task_switch(NULL, 0, other);
	record.msr[0x2c] |= PREFERENCE;
	task_switch(NULL, 0, me);
	add_all(test, &mine, 1);
	task_switch(NULL, 0, other);
	task_switch(NULL, 0, stranger);
	del_all(&mine, 1);
	KUNIT_EXPECT_EQ(test, preference(), 0);
	expect_at_switch(test, other, PREFERENCE);
}

/* With a CPU-wide event the bit is set at once. */
static void test_spflt_waits_not(struct kunit *test)
{
	struct perf_event *wide = new_spflt_event(test, BRANCHES_, NULL);

	new_spflt_event(test, INSTRUCTIONS, me);
	record.msr[0x2c] |= PREFERENCE;
	task_switch(NULL, 0, other);
	record.msr[0x2c] &= ~PREFERENCE;
	add_all(test, &wide, 1);
	task_switch(NULL, 0, me);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE | 2);
}

/* perf core accepts an event while the task runs, and adds it to a counter. */
static void test_spflt_catch_up(struct kunit *test)
{
	struct perf_event *event;

	host.runs = stranger;
	event = open_spflt_event(test, INSTRUCTIONS, me);
	record.msr[0x2c] = PREFERENCE;
	expect_at_switch(test, me, PREFERENCE);
	accept(event);
	add_all(test, &event, 1);
	KUNIT_EXPECT_EQ(test, preference(), 0);

	/* Only once: then the program changes the bit. */
	record.msr[0x2c] |= PREFERENCE;
	del_all(&event, 1);
	add_all(test, &event, 1);
	KUNIT_EXPECT_EQ(test, preference(), PREFERENCE);

	task_switch(&event, 1, stranger);
	KUNIT_EXPECT_EQ(test, knc_spflt_find(me)->preference, PREFERENCE);

	/* Between the hook and the switch, the current task is the one that leaves. */
	task_switch(NULL, 0, me);
	record.msr[0x2c] = PREFERENCE;
	knc_spflt_switch(NULL, false, me, other, 0);
	record.msr[0x2c] = 0;
	add_all(test, &event, 1);
	KUNIT_EXPECT_EQ(test, preference(), 0);
	host.runs = other;
	task_switch(&event, 1, me);
	KUNIT_EXPECT_EQ(test, preference(), PREFERENCE);
}

static struct kunit_case knc_spflt_cases[] = {
	KUNIT_CASE(test_spflt_cpu_wide),
	KUNIT_CASE(test_spflt_tasks),
	KUNIT_CASE(test_spflt_second_event),
	KUNIT_CASE(test_spflt_unused),
	KUNIT_CASE(test_spflt_clones),
	KUNIT_CASE(test_spflt_inherited),
	KUNIT_CASE(test_spflt_free),
	KUNIT_CASE(test_spflt_failed_fork),
	KUNIT_CASE(test_spflt_ended),
	KUNIT_CASE(test_spflt_target_unknown),
	KUNIT_CASE(test_spflt_same_address),
	KUNIT_CASE(test_spflt_free_after_event),
	KUNIT_CASE(test_spflt_not_accepted),
	KUNIT_CASE(test_spflt_refused_other),
	KUNIT_CASE(test_spflt_refused_self),
	KUNIT_CASE(test_spflt_at_once),
	KUNIT_CASE(test_spflt_counts_until_switch),
	KUNIT_CASE(test_spflt_before_run),
	KUNIT_CASE(test_spflt_refused),
	KUNIT_CASE(test_spflt_off),
	KUNIT_CASE(test_spflt_reset),
	KUNIT_CASE(test_spflt_waits),
	KUNIT_CASE(test_spflt_waits_in_vain),
	KUNIT_CASE(test_spflt_waits_not),
	KUNIT_CASE(test_spflt_catch_up),
	{}
};
