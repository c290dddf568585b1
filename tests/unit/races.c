// SPDX-License-Identifier: GPL-2.0-only
/*
 * Part of knc_pmu_test.c: what the driver does to a running event, with an
 * interrupt after each of its accesses to a register in turn. The hardware of
 * record.h runs meanwhile, and knows what it has counted.
 */

struct race {
	const char *name;
	void (*operation)(struct perf_event **event);
	/* How many accesses to try; more than the operation has */
	unsigned int accesses;
	/* What was counted of a period is dropped. */
	bool restarts;
};

/* Two events that sample: [0] on counter 1, [1] on counter 0; [2] needs that one. */

static void race_read(struct perf_event **event)
{
	knc_read(event[0]);
	knc_read(event[1]);
	knc_read(event[0]);
}

static void race_stop(struct perf_event **event)
{
	knc_stop(event[0], PERF_EF_UPDATE);
	knc_start(event[0], PERF_EF_RELOAD);
}

static void race_throttled(struct perf_event **event)
{
	knc_stop(event[0], 0);
	knc_start(event[0], 0);
}

static void race_disable(struct perf_event **event)
{
	knc_pmu_disable(NULL);
	knc_pmu_enable(NULL);
}

static void race_switch(struct perf_event **event)
{
	del_all(event, 2);
	knc_pmu_disable(NULL);
	knc_add(event[0], PERF_EF_START);
	knc_add(event[1], PERF_EF_START);
	knc_pmu_enable(NULL);
}

static void race_move(struct perf_event **event)
{
	del_all(event, 1);
	knc_pmu_disable(NULL);
	knc_add(event[2], PERF_EF_START);
	knc_pmu_enable(NULL);
	del_all(event + 2, 1);
	knc_pmu_disable(NULL);
	knc_add(event[0], PERF_EF_START);
	knc_pmu_enable(NULL);
}

/* The next period is another one, as perf core does it. */
static void race_period(struct perf_event **event)
{
	knc_pmu_disable(NULL);
	knc_stop(event[0], PERF_EF_UPDATE);
	local64_set(&event[0]->hw.period_left, 0);
	knc_start(event[0], PERF_EF_RELOAD);
	knc_pmu_enable(NULL);
}

static const struct race races[] = {
	{ "read", race_read, 12 },
	{ "stop and start", race_stop, 16 },
	{ "throttle and unthrottle", race_throttled, 16 },
	{ "disable and enable", race_disable, 10 },
	{ "switch", race_switch, 24 },
	{ "move", race_move, 40 },
	{ "new period", race_period, 16, .restarts = true },
};

DESC_FROM_NAME(race)
KUNIT_ARRAY_PARAM(race, races, race_desc);

/* One way for it to happen; 0 in @stranger: no NMI but the PMU's own */
struct race_point {
	unsigned int period, late, stranger;
	bool throttle, read;
};

static void race_begin(struct kunit *test, struct perf_event **event,
		       const struct race_point *point)
{
	KUNIT_ASSERT_EQ(test, knc_test_init(test), 0);
	event[0] = new_event(test, INSTRUCTIONS, point->period);
	event[1] = new_event(test, CYCLES, 0);
	event[2] = new_event(test, L2_MISS, 0);
	record.late = point->late;
	record.stranger = point->stranger;
	samples.throttle = point->throttle;
	samples.read_also = point->read ? event[1] : NULL;
}

static void race_check(struct kunit *test, const struct race *race,
		       struct perf_event **event, const struct race_point *point)
{
	u64 count[3], sampled;
	unsigned int i;

	for (i = 0; i < 3; i++)
		count[i] = local64_read(&event[i]->count);
	sampled = samples.periods + point->period -
		  local64_read(&event[0]->hw.period_left);

#define EXPECT_AT(left, right)						\
	KUNIT_EXPECT_EQ_MSG(test, (u64)(left), (u64)(right),		\
			    "period %u, late %u, stranger %u, throttle %d, read %d", \
			    point->period, point->late, point->stranger, \
			    point->throttle, point->read)

	EXPECT_AT(count[0] + count[1] + count[2],
		  record.counted[0] + record.counted[1]);
	EXPECT_AT(record.lost, 0);
	EXPECT_AT(samples.wrong_reads, 0);
	EXPECT_AT(record.msr[0x2f], 0);
	EXPECT_AT(record.msr[0x2d], 0);
	EXPECT_AT(record.lvtpc, 0x400);
	EXPECT_AT(this_cpu_ptr(&knc_cpu)->busy, 0);
	EXPECT_AT(this_cpu_ptr(&knc_cpu)->postponed, false);
	/*
	 * An interrupt that comes too late finds the event gone, and a period may
	 * be over before the interrupt of the one before has stopped the counters.
	 */
	if (!point->late && !race->restarts && point->period > 2)
		EXPECT_AT(count[0], sampled);
#undef EXPECT_AT
}

static void race_at(struct kunit *test, const struct race *race,
		    const struct race_point *point)
{
	struct perf_event *event[3];
	unsigned long flags;
	unsigned int i;

	race_begin(test, event, point);

	local_irq_save(flags);
	knc_pmu_disable(NULL);
	knc_add(event[0], PERF_EF_START);
	knc_add(event[1], PERF_EF_START);
	record.runs = true;
	knc_pmu_enable(NULL);

	race->operation(event);
	/* What is late comes at last. */
	for (i = 0; i <= point->late; i++)
		knc_pmu_disable(NULL);
	while (record.pending)
		knc_read_status();

	record.runs = false;
	del_all(event, 2);
	local_irq_restore(flags);

	race_check(test, race, event, point);
	migrate_enable();
}

static void test_race(struct kunit *test)
{
	const struct race *race = test->param_value;
	struct race_point point;

	/* race_begin() comes once for each point. */
	migrate_enable();
	for (point.period = 1; point.period <= race->accesses; point.period++)
		for (point.late = 0; point.late < 3; point.late++)
			for (point.stranger = 0; point.stranger <= race->accesses;
			     point.stranger += point.late ? 7 : 1) {
				point.throttle = false;
				point.read = false;
				race_at(test, race, &point);
				point.throttle = true;
				race_at(test, race, &point);
				point.throttle = false;
				point.read = race->operation != race_move;
				race_at(test, race, &point);
			}
	migrate_disable();
}

static struct kunit_case knc_races_cases[] = {
	KUNIT_CASE_PARAM(test_race, race_gen_params),
	{}
};
