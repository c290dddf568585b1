// SPDX-License-Identifier: GPL-2.0-only
/*
 * Part of knc_pmu_test.c: samples, and their registers. tests/proof has the interrupt.
 */

static void test_pmi_period(struct kunit *test)
{
	add_new(test, INSTRUCTIONS, 1000);
	count(1, 1000);
	samples.next_period = 300;
	record_restart();
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 1);
	/* Stop, read STATUS and clear it, unmask, read and load the counter, run */
	KUNIT_EXPECT_EQ(test, record.count, 7);
	/* Only what was seen is cleared. */
	KUNIT_EXPECT_EQ(test, record.msr[0x2e], 2);
	KUNIT_EXPECT_EQ(test, samples.periods, 1000);
	KUNIT_EXPECT_EQ(test, record.msr[0x21], P40 - 300);
	count(1, 300);
	knc_pmi(&nowhere);
	KUNIT_EXPECT_EQ(test, samples.periods, 1000 + 300);
}

static void test_pmi_reserved_status(struct kunit *test)
{
	record.msr[0x2d] = 0x700000004ULL;
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 0);
	record.msr[0x2d] |= 2;
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2d], 0x700000004ULL);
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

/* Exceptions enter on these stacks. In tests/guest none comes on that of #MC. */
static void test_entry_stacks(struct kunit *test)
{
	struct cpu_entry_area *area = (struct cpu_entry_area *)SZ_1G;
	const unsigned long ends[] = {
		(unsigned long)(&area->entry_stack_page + 1),
		CEA_ESTACK_TOP(&area->estacks, DB), CEA_ESTACK_TOP(&area->estacks, MCE),
	};
	unsigned int i;

	fake.entry_area = area;
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		KUNIT_EXPECT_EQ(test, knc_entry_stack_end(ends[i]), ends[i]);
		KUNIT_EXPECT_EQ(test, knc_entry_stack_end(ends[i] - PAGE_SIZE + 8), ends[i]);
		KUNIT_EXPECT_EQ(test, knc_entry_stack_end(ends[i] + 8), 0);
	}
	KUNIT_EXPECT_EQ(test, knc_entry_stack_end(CEA_ESTACK_TOP(&area->estacks, DF)), 0);
}

/* A new task runs. */
static struct pt_regs *run_task(struct kunit *test)
{
	fake.runs = new_object(test, sizeof(*fake.runs));
	fake.runs->stack = new_object(test, THREAD_SIZE);
	return task_pt_regs(fake.runs);
}

/* A task that has not run yet, and a thread of the kernel, have no registers of a program. */
static void test_user_none(struct kunit *test)
{
	static const struct pt_regs none = { .cs = __USER_CS };
	struct pt_regs user, regs = { .cs = __KERNEL_CS };

	regs.sp = (unsigned long)run_task(test) - 1000;
	knc_user_regs(&user, &regs);
	KUNIT_EXPECT_EQ(test, memcmp(&user, &none, sizeof(user)), 0);
	task_pt_regs(fake.runs)->bx = 1;
	fake.runs->flags = PF_KTHREAD;
	knc_user_regs(&user, &regs);
	KUNIT_EXPECT_EQ(test, memcmp(&user, &none, sizeof(user)), 0);
}

/* An entry looks like an exit if the program was at this place before. */
static void test_user_again(struct kunit *test)
{
	struct cpu_entry_area *area = vzalloc(sizeof(*area));
	struct pt_regs *frame = (struct pt_regs *)(&area->entry_stack_page + 1) - 1;
	struct pt_regs user, *saved = run_task(test);
	struct pt_regs regs = { .cs = __KERNEL_CS, .bx = 2, .sp = (unsigned long)&frame->orig_ax };

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, area);
	fake.entry_area = area;
	*saved = (struct pt_regs){ .cs = __USER_CS, .bx = 1, .di = 1 };
	*frame = *saved;
	/* An error code, not RDI */
	frame->orig_ax = 4;
	knc_user_regs(&user, &regs);
	KUNIT_EXPECT_EQ(test, user.bx, 2);
	/* An exception in the kernel, on the same stack */
	frame->cs = __KERNEL_CS;
	knc_user_regs(&user, &regs);
	KUNIT_EXPECT_EQ(test, user.bx, 1);
	vfree(area);
}

/* An entry may lack what is looked for; sample-syscall-regs of tests/guest needs all of it. */
static void test_find_syscall(struct kunit *test)
{
	knc_find_syscall();
	KUNIT_EXPECT_EQ(test, knc_syscall_find("not in the code"), 0);
}

static void test_long_overdue(struct kunit *test)
{
	struct perf_event *event = add_new(test, INSTRUCTIONS, 0);

	count(1, P40 / 2 + 10);
	knc_event_read(event);
	count(1, P40 / 2);
	knc_event_read(event);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), P40 + 10);
}

/* On Linux 2.6.38 no PMI may come for an overflow. A read finds it, and a tick. */
static void test_read_swallowed(struct kunit *test)
{
	struct perf_event *event = add_new(test, INSTRUCTIONS, 1000);
	unsigned int i;

	fake.swallows = true;
	for (i = 1; i <= 2; i++) {
		count(1, 1000);
		record.lvtpc = 0x10400;
		fake.in_tick = i == 2;
		if (!fake.in_tick)
			knc_event_read(event);
		disable();
		enable();
		KUNIT_EXPECT_EQ(test, samples.periods, 1000 * i);
		KUNIT_EXPECT_EQ(test, record.msr[0x2d], 0);
		KUNIT_EXPECT_EQ(test, record.lvtpc, 0x400);
		KUNIT_EXPECT_EQ(test, record.msr[0x2f], 2);
	}
}

static struct kunit_case knc_pmi_cases[] = {
	KUNIT_CASE(test_pmi_period),
	KUNIT_CASE(test_pmi_reserved_status),
	KUNIT_CASE(test_pmi_regs),
	KUNIT_CASE(test_entry_stacks),
	KUNIT_CASE(test_user_none),
	KUNIT_CASE(test_user_again),
	KUNIT_CASE(test_find_syscall),
	KUNIT_CASE(test_long_overdue),
	KUNIT_CASE(test_read_swallowed),
	{}
};
