// SPDX-License-Identifier: GPL-2.0-only
/*
 * Part of knc_pmu_test.c: the module registers what it needs. If anything is refused,
 * it gives back what it has registered.
 */

#define FAKE_REGISTERS	(BIT(FAKE_PERFCTR0) | BIT(FAKE_PERFCTR1) |	\
			 BIT(FAKE_EVNTSEL0) | BIT(FAKE_EVNTSEL1))
/* What a loaded module has registered; the kprobes are gone again. */
#define FAKE_LOADED	(FAKE_REGISTERS | BIT(FAKE_NMI) | BIT(FAKE_PREPARE) | \
			 BIT(FAKE_ONLINE) | BIT(FAKE_PMU) | BIT(FAKE_SWITCH))

/* Loads the module on a kernel that refuses nothing. */
static void fake_start(struct kunit *test)
{
	fake_begin();
	KUNIT_ASSERT_EQ(test, knc_module_init(), 0);
}

static void fake_expect(struct kunit *test, unsigned long held, const char *when, unsigned int i)
{
	KUNIT_EXPECT_EQ_MSG(test, fake.held, held, "%s %u", when, i);
	KUNIT_EXPECT_EQ_MSG(test, fake.wrong, 0, "%s %u", when, i);
}

/* Another driver has raw events, and grants or refuses one: the module does not load. */
static void test_load_other_pmu(struct kunit *test)
{
	static const int answers[] = { 0, -EBUSY, -EOPNOTSUPP, -EINVAL, -ENOMEM };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(answers); i++) {
		fake_begin();
		fake.raw_event = answers[i];
		record_restart();
		KUNIT_EXPECT_EQ(test, knc_module_init(),
				answers[i] == -ENOMEM ? -ENOMEM : -EBUSY);
		fake_expect(test, 0, "answer", i);
		KUNIT_EXPECT_EQ(test, fake.asked & (FAKE_LOADED | BIT(FAKE_OVERFLOW)), 0);
		KUNIT_EXPECT_EQ(test, record.count, 0);
		KUNIT_EXPECT_EQ(test, fake.created, 1);
		KUNIT_EXPECT_EQ(test, fake.created_type, PERF_TYPE_RAW);
		KUNIT_EXPECT_EQ(test, fake.released, !answers[i]);
	}
}

static int fake_error(enum fake_thing thing)
{
	switch (thing) {
	case FAKE_CPU: case FAKE_APIC:
	case FAKE_MSR_CTRL: case FAKE_MSR_STATUS: case FAKE_MSR_SPFLT:
		return -ENODEV;
	case FAKE_PERFCTR0: case FAKE_PERFCTR1: case FAKE_EVNTSEL0: case FAKE_EVNTSEL1:
		return -EBUSY;
	case FAKE_NMI: case FAKE_PMU:
		return -ENOMEM;
	case FAKE_PREPARE: case FAKE_ONLINE:
		return -ENOSPC;
	default:
		return 0;
	}
}

/* After a step of loading fails, nothing stays registered, and the next load works. */
static void test_load_refused(struct kunit *test)
{
	enum fake_thing thing;

	for (thing = 0; thing < FAKE_THINGS; thing++) {
		fake_begin();
		fake.refused = BIT(thing);
		/* as knc_cpu_online() would, which is not called here */
		knc_pmu_reset(this_cpu());
		record_restart();
		KUNIT_EXPECT_EQ_MSG(test, knc_module_init(), fake_error(thing),
				    "thing %u", thing);
		/* A register that faults is detected before any write. */
		if (fake_error(thing) == -ENODEV)
			KUNIT_EXPECT_EQ(test, record.count, 0);
		if (thing == FAKE_PMU) {
			/* When the NMI handler goes no PMI can come any more. */
			KUNIT_EXPECT_EQ(test, fake.lvtpc_at_nmi, 0x10400);
			KUNIT_EXPECT_EQ(test, fake.held_at_nmi, FAKE_REGISTERS | BIT(FAKE_NMI));
			KUNIT_EXPECT_EQ(test, this_cpu()->state, KNC_OFF);
		}
		KUNIT_EXPECT_TRUE_MSG(test, fake.asked & BIT(thing), "thing %u", thing);
		if (fake_error(thing))
			fake_expect(test, 0, "thing", thing);
		else
			/* The module counts, and its PMU says what is missing. */
			KUNIT_EXPECT_EQ(test, thing == FAKE_OVERFLOW,
					!!(fake.capabilities & PERF_PMU_CAP_NO_INTERRUPT));

		fake_begin();
		KUNIT_EXPECT_EQ_MSG(test, knc_module_init(), 0, "after thing %u", thing);
		fake_expect(test, FAKE_LOADED, "after thing", thing);
	}
}

static void test_init(struct kunit *test)
{
	static const struct {
		u32 type;
		u64 config;
		int err;
	} cases[] = {
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0 },
		{ PERF_TYPE_HW_CACHE, 0, 0 },
		{ PERF_TYPE_RAW, INSTRUCTIONS, 0 },
		{ PERF_TYPE_RAW, 1 << 19, -EINVAL },
		/* others' */
		{ PERF_TYPE_SOFTWARE, 0, -ENOENT },
		{ PERF_TYPE_MAX + 3, 0, -ENOENT },
	};
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);
	unsigned int i;

	/* perf core finds a PMU by its type before its registration is complete. */
	fake_begin();
	KUNIT_EXPECT_EQ(test, knc_event_init(event), -ENOENT);
	KUNIT_EXPECT_EQ(test, fake.held, 0);

	fake_start(test);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		event->attr.type = cases[i].type;
		event->attr.config = cases[i].config;
		event->hw.idx = 0;
		KUNIT_EXPECT_EQ_MSG(test, knc_event_init(event), cases[i].err, "case %u", i);
		if (!cases[i].err)
			KUNIT_EXPECT_EQ(test, event->hw.idx, -1);
	}
	event->attr.config1 = 1;
	event->attr.type = PERF_TYPE_RAW;
	fake.refused = BIT(FAKE_MEMORY);
	KUNIT_EXPECT_EQ(test, knc_event_init(event), -ENOMEM);
	/* The event registers nothing. */
	KUNIT_EXPECT_EQ(test, fake.held, FAKE_LOADED);
}

static void test_init_offline(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);

	event->cpu = 2;
	KUNIT_EXPECT_EQ(test, knc_event_config(event), 0);
	fake.offline = 2;
	KUNIT_EXPECT_EQ(test, knc_event_config(event), -ENODEV);
	event->attach_state |= PERF_ATTACH_TASK;
	KUNIT_EXPECT_EQ(test, knc_event_config(event), 0);
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

/* A CPU that comes online has its registers reset, unless they are in use. */
static void test_hotplug(struct kunit *test)
{
	struct perf_event *event = add_new(test, INSTRUCTIONS, 1000);
	unsigned int cpu = smp_processor_id();

	record_restart();
	KUNIT_EXPECT_EQ(test, knc_cpu_online(cpu), 0);
	KUNIT_EXPECT_EQ(test, record.count, 0);
	del_all(&event, 1);

	KUNIT_EXPECT_EQ(test, knc_cpu_prepare(cpu), 0);
	KUNIT_EXPECT_EQ(test, this_cpu()->state, KNC_OFF);
	leave_dirty();
	record_restart();
	KUNIT_EXPECT_EQ(test, knc_cpu_online(cpu), 0);
	KUNIT_EXPECT_EQ(test, record.with_irqs, 0);
	KUNIT_EXPECT_EQ(test, this_cpu()->state, KNC_STOP);
	KUNIT_EXPECT_EQ(test, record.msr[0x2d], 0);
	KUNIT_EXPECT_EQ(test, record.lvtpc, 0x400);

	/* An event of a task that runs before knc_cpu_online() stays. */
	KUNIT_EXPECT_EQ(test, knc_cpu_prepare(cpu), 0);
	leave_dirty();
	add_all(test, &event, 1);
	KUNIT_EXPECT_EQ(test, record.lvtpc, 0x400);
	KUNIT_EXPECT_EQ(test, knc_cpu_online(cpu), 0);
	KUNIT_EXPECT_EQ(test, this_cpu()->state, KNC_RUN);
	KUNIT_EXPECT_PTR_EQ(test, this_cpu()->event[1], event);
	del_all(&event, 1);
}

/* No register is written with the value that it has: it stops and reads, loads and runs. */
static void test_switch_same_events(struct kunit *test)
{
	/* On counters 1 and 0 */
	struct perf_event *event[] = {
		new_event(test, INSTRUCTIONS, 1000), new_event(test, CYCLES, 500),
	};

	add_all(test, event, 2);
	count(1, 100);
	count(0, 150);
	record_restart();
	del_all(event, 2);
	KUNIT_EXPECT_EQ(test, record.count, 3);
	record_restart();
	add_all(test, event, 2);
	KUNIT_EXPECT_EQ(test, record.count, 3);
	KUNIT_EXPECT_EQ(test, record.msr[0x21], P40 - 900);
	KUNIT_EXPECT_EQ(test, record.msr[0x20], P40 - 350);
}

/* One in 16 PMIs is timed, and no NMI of another source. */
static void test_pmi_timed(struct kunit *test)
{
	unsigned int i;

	fake_start(test);
	for (i = 0; i < 32; i++)
		KUNIT_EXPECT_EQ(test, knc_nmi(0, &nowhere), 0);
	KUNIT_EXPECT_EQ(test, fake.took, 0);
	for (i = 0; i < 32; i++) {
		record.lvtpc = 0x10400;
		KUNIT_EXPECT_EQ(test, knc_nmi(0, &nowhere), 1);
	}
	KUNIT_EXPECT_EQ(test, fake.took, 2);
}

static struct kunit_case knc_module_cases[] = {
	KUNIT_CASE(test_load_other_pmu),
	KUNIT_CASE(test_load_refused),
	KUNIT_CASE(test_init),
	KUNIT_CASE(test_init_offline),
	KUNIT_CASE(test_hotplug),
	KUNIT_CASE(test_switch_same_events),
	KUNIT_CASE(test_pmi_timed),
	{}
};
