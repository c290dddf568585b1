// SPDX-License-Identifier: GPL-2.0-only
/*
 * Part of knc_pmu_test.c: operations on a running event, with an interrupt before or
 * after each register access. The hardware of record.h runs meanwhile and knows the
 * true counts. For each point it is drawn how late the interrupt is, and whether NMIs
 * of other sources come or take its place.
 */
#ifndef KNC_TEST_SEED
#define KNC_TEST_SEED	1	/* run --seed changes it. */
#endif

struct race_case {
	const char *name;
	void (*operation)(struct perf_event **event);
	/* more accesses than the operation has */
	unsigned int accesses;
};

/* Events [0] on counter 1 and [1] on counter 0; [2] can be on counter 0 only. */
static struct perf_event *race_event[3];

static void race_read(struct perf_event **event)
{
	knc_event_read(event[0]);
	knc_event_read(event[1]);
	knc_event_read(event[0]);
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
	disable();
	enable();
}

static void race_switch(struct perf_event **event)
{
	del_all(event, 2);
	try_add_all(event, 2);
}

static void race_move(struct perf_event **event)
{
	del_all(event, 1);
	try_add_all(event + 2, 1);
	del_all(event + 2, 1);
	try_add_all(event, 1);
}

/* What the next period has so far */
static u64 race_begun(const struct perf_event *event)
{
	s64 period = event->hw.sample_period;
	s64 left = local64_read(&event->hw.period_left);

	if (left > 0)
		return period - left;
	return -left < period ? -left : 0;
}

/* A new period, as perf core sets it */
static void race_period(struct perf_event **event)
{
	disable();
	knc_stop(event[0], PERF_EF_UPDATE);
	samples.dropped += race_begun(event[0]);
	local64_set(&event[0]->hw.period_left, 0);
	knc_start(event[0], PERF_EF_RELOAD);
	enable();
}

static const struct race_case race_cases[] = {
	{ "read", race_read, 12 },
	{ "stop and start", race_stop, 16 },
	{ "throttle and unthrottle", race_throttled, 16 },
	{ "disable and enable", race_disable, 10 },
	{ "switch", race_switch, 24 },
	{ "move", race_move, 40 },
	{ "new period", race_period, 16 },
};

NAMED_PARAM(race);

/* One point; 0 in @stranger and @swallow: no NMI of another source */
struct race_point {
	unsigned int period, late, stranger, swallow;
	bool mask_late, throttle, read;
};

/* A read in an NMI never gives more than was counted. */
static void race_nmi_reads(void)
{
	u64 before, count = 0;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		before = local64_read(&race_event[i]->count);
		knc_event_read(race_event[i]);
		if (local64_read(&race_event[i]->count) < before)
			samples.wrong_reads++;
		count += local64_read(&race_event[i]->count);
	}
	if (count > record.counted[0] + record.counted[1])
		samples.wrong_reads++;
}

static void race_begin(struct kunit *test, const struct race_point *point)
{
	init_event(test, race_event[0], INSTRUCTIONS, point->period);
	init_event(test, race_event[1], CYCLES, 0);
	init_event(test, race_event[2], L2_MISS, 0);
	reset_hardware();
	record.late = point->late;
	record.mask_late = point->mask_late;
	record.stranger = point->stranger;
	record.swallow = point->swallow;
	record.on_stranger = race_nmi_reads;
	samples.throttle = point->throttle;
	samples.read_also = point->read ? race_event[1] : NULL;
}

static void race_check(struct kunit *test, const struct race_point *point)
{
	u64 count[3];
	unsigned int i;

	for (i = 0; i < 3; i++)
		count[i] = local64_read(&race_event[i]->count);

#define EXPECT_AT(left, right)						\
	KUNIT_EXPECT_EQ_MSG(test, (u64)(left), (u64)(right),		\
		"period %u late %u stranger %u swallow %u mask_late %d throttle %d read %d", \
			    point->period, point->late, point->stranger, point->swallow, \
			    point->mask_late, point->throttle, point->read)

	EXPECT_AT(count[0] + count[1] + count[2],
		  record.counted[0] + record.counted[1]);
	/* Each period that is over has one sample, however late its PMI was. */
	EXPECT_AT(count[0], samples.periods + samples.dropped + race_begun(race_event[0]));
	EXPECT_AT(samples.wrong_reads, 0);
	EXPECT_AT(samples.ctrl, 0);
	EXPECT_AT(record.msr[0x2f], 0);
	EXPECT_AT(record.msr[0x2d], 0);
	EXPECT_AT(this_cpu()->state, KNC_RUN);
	EXPECT_AT(this_cpu()->pending, false);
	/* A late PMI that is swallowed leaves the entry masked until the next stop. */
	if (!point->swallow || !point->mask_late)
		EXPECT_AT(record.lvtpc, 0x400);
	/*
	 * With an LVT entry that is masked late the driver recognises each of its PMIs.
	 * An edge may be lost until it has stopped the counters: STATUS shows the
	 * overflow.
	 */
	if (point->mask_late)
		EXPECT_AT(record.unclaimed, 0);
	else
		EXPECT_AT(record.lost, 0);
#undef EXPECT_AT
}

static void race_at(struct kunit *test, const struct race_case *race,
		    const struct race_point *point)
{
	unsigned long flags;
	unsigned int i;

	race_begin(test, point);

	local_irq_save(flags);
	disable();
	knc_add(race_event[0], PERF_EF_START);
	knc_add(race_event[1], PERF_EF_START);
	record.runs = true;
	enable();

	race->operation(race_event);
	/* The late interrupt comes while the events run, or after they have left. */
	for (i = 0; i < point->late && point->late % 2; i++)
		knc_read_status();
	del_all(race_event, 2);
	while (record.pending)
		knc_read_status();

	record.runs = false;
	local_irq_restore(flags);

	race_check(test, point);
}

static void race_draw(struct rnd_state *rnd, const struct race_case *race,
		      struct race_point *point)
{
	u32 bits = prandom_u32_state(rnd);

	point->mask_late = bits & 1;
	point->throttle = (bits >> 1) % 4 == 0;
	point->read = (bits >> 3) % 4 == 0 && race->operation != race_move;
	point->swallow = (bits >> 5) % 4 ? 0 : 1 + (bits >> 7) % 3;
	point->stranger = (bits >> 16) % (4 * race->accesses);
}

/* in places: those of 40 accesses */
#define RACE_LATE	81
#define RACE_DRAWS	16

static void test_race(struct kunit *test)
{
	const struct race_case *race = test->param_value;
	struct race_point point;
	struct rnd_state rnd;
	unsigned int i, points = 0;

	for (i = 0; i < ARRAY_SIZE(race_event); i++)
		race_event[i] = new_event(test, INSTRUCTIONS, 1000);
	kunit_info(test, "seed=%u", KNC_TEST_SEED);
	prandom_seed_state(&rnd, KNC_TEST_SEED);

	for (point.period = 1; point.period <= race->accesses; point.period++)
		for (point.late = 0; point.late < RACE_LATE; point.late++)
			for (i = 0; i <= 2 * race->accesses + RACE_DRAWS; i++) {
				/*
				 * Without a late interrupt, try each place of another
				 * NMI.
				 */
				if (point.late && i > RACE_DRAWS)
					break;
				race_draw(&rnd, race, &point);
				if (!point.late && i <= 2 * race->accesses)
					point.stranger = i;
				race_at(test, race, &point);
				points++;
				if (test->status == KUNIT_FAILURE)
					return;
			}
	kunit_info(test, "%u points", points);
}

static struct kunit_case knc_races_cases[] = {
	KUNIT_CASE_PARAM(test_race, race_gen_params),
	{}
};
