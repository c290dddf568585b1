// SPDX-License-Identifier: GPL-2.0-only
/*
 * Part of knc_pmu_test.c: operations on running events, in all interleavings with overflows,
 * PMIs, NMIs of other sources and reads (model.c).
 */

struct race_case {
	const char *name;
	void (*operation)(struct perf_event **event);
	/* How many things happen at most, beside the PMIs of counters that wrap */
	unsigned int things;
};

static void race_read(struct perf_event **event)
{
	knc_event_read(event[0]);
	knc_event_read(event[1]);
}

static void race_disable(struct perf_event **event)
{
	disable();
	enable();
}

/* while the PMU is enabled */
static void race_add(struct perf_event **event)
{
	knc_del(event[1], 0);
	knc_add(event[1], PERF_EF_START);
}

/* Event [2] takes counter 0, and event [1] moves. */
static void race_move(struct perf_event **event)
{
	del_all(event, 1);
	try_add_all(event + 2, 1);
	del_all(event + 2, 1);
	try_add_all(event, 1);
}

/* As when the CPU goes offline and comes back. */
static void race_quiesce(struct perf_event **event)
{
	del_all(event, 2);
	knc_pmu_quiesce(this_cpu());
	path.wrong += record.lvtpc != 0x10400 || record.msr[0x2d];
	knc_pmu_reset(this_cpu());
	enable();
	try_add_all(event, 2);
}

static const struct race_case race_cases[] = {
	{ "read", race_read, 2 },
	{ "disable and enable", race_disable, 3 },
	{ "delete and add", race_add, 2 },
	{ "move", race_move, 2 },
	{ "quiesce and reset", race_quiesce, 2 },
};

NAMED_PARAM(race);

/* No PMI is on its way, and each count is what the counters have counted. */
static void race_expect_quiet(struct kunit *test)
{
	while (record.pending)
		model_happens(PMI);

	record.runs = false;
	KUNIT_EXPECT_EQ(test, this_cpu()->state, KNC_RUN);
	KUNIT_EXPECT_FALSE(test, this_cpu()->pending);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], knc_filled_slots(this_cpu()));
	/* A PMI that was swallowed waits for the next stop. */
	if (!path.swallowed) {
		KUNIT_EXPECT_EQ(test, record.msr[0x2d], 0);
		KUNIT_EXPECT_EQ(test, record.lvtpc, 0x400);
	}
	model_read();
	KUNIT_EXPECT_EQ(test, model_counts(), record.counted[0] + record.counted[1]);
	record.runs = true;
}

/* What an event's next period has so far */
static s64 race_begun(const struct perf_event *event)
{
	s64 left = local_read(&event->hw.period_left.a);

	return left > 0 ? event->hw.sample_period - left : -left;
}

static void race_run(struct kunit *test, const struct race_case *c, bool prints)
{
	init_event(test, model_event[0], INSTRUCTIONS, 1000);
	init_event(test, model_event[1], CYCLES, 0);
	init_event(test, model_event[2], L2_MISS, 0);
	reset_hardware();
	memset(&path, 0, sizeof(path));
	try_add_all(model_event, 2);
	record.mask_late = model_choose(2);
	path.left = c->things;
	record.prints = prints ? test : NULL;
	record.accessed = true;
	record.runs = true;

	c->operation(model_event);
	record_place("the end of the operation");
	path.left = 0;
	if (!path.throttled)
		path.wrong += !this_cpu()->event[0] || !this_cpu()->event[1];
	/* A late PMI comes before the events leave, or meanwhile, or after them. */
	if (!record.pending || !model_choose(2))
		race_expect_quiet(test);
	del_all(model_event, 2);
	race_expect_quiet(test);
	record.runs = false;

	KUNIT_EXPECT_EQ(test, record.msr[0x2d], 0);
	/* Each period that is over has one sample. */
	KUNIT_EXPECT_EQ(test, model_counts() - samples.periods,
			race_begun(model_event[0]) + race_begun(model_event[1]) +
			race_begun(model_event[2]));
	KUNIT_EXPECT_EQ(test, path.wrong, 0);
	KUNIT_EXPECT_EQ(test, samples.ctrl, 0);
	KUNIT_EXPECT_EQ(test, record.broken, 0);
	KUNIT_EXPECT_EQ(test, record.forbidden, 0);
	/*
	 * If the entry is masked late, the driver recognizes each of its PMIs. An edge may be
	 * lost before the counters are stopped; STATUS shows that overflow.
	 */
	KUNIT_EXPECT_EQ(test, record.mask_late ? path.unclaimed : record.lost, 0);
}

static void test_race(struct kunit *test)
{
	unsigned long flags;
	unsigned int i, count = 0;

	deliver = model_overflow;
	for (i = 0; i < ARRAY_SIZE(model_event); i++)
		model_event[i] = new_event(test, INSTRUCTIONS, 1000);
	memset(&model, 0, sizeof(model));
	do {
		local_irq_save(flags);
		race_run(test, test->param_value, false);
		local_irq_restore(flags);
		count++;
		cond_resched();
	} while (test->status != KUNIT_FAILURE && model_next());

	if (test->status == KUNIT_FAILURE) {
		model.at = 0;
		race_run(test, test->param_value, true);
	}
	kunit_info(test, "%u interleavings", count);
}

static struct kunit_case knc_races_cases[] = {
	KUNIT_CASE_PARAM(test_race, race_gen_params),
	{}
};
