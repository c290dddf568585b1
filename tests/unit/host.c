// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module and the kernel: it takes what it needs, and whatever is refused, it
 * gives back what it has. Part of knc_pmu_test.c.
 */

#define HOST_REGISTERS	(BIT(HOST_PERFCTR0) | BIT(HOST_PERFCTR1) |	\
			 BIT(HOST_EVNTSEL0) | BIT(HOST_EVNTSEL1))
/* What a module that is loaded has; the kprobe has done its work. */
#define HOST_LOADED	(HOST_REGISTERS | BIT(HOST_NMI) | BIT(HOST_PREPARE) | \
			 BIT(HOST_ONLINE) | BIT(HOST_PMU) |		\
			 (COMPAT_USER_RDPMC ? BIT(HOST_FORK) : 0))
/* Next to the kernel's own driver, without events */
#define HOST_SHARED	(HOST_LOADED & ~HOST_REGISTERS & ~BIT(HOST_FORK))
/* What is called by way of tracepoints, or of the PMU */
#define HOST_CALLERS	(BIT(HOST_PMU) | BIT(HOST_FORK) | BIT(HOST_SWITCH))

/* As the module is found when it is loaded */
static void host_begin(void)
{
	memset(&host, 0, sizeof(host));
	knc_pmu = NULL;
	knc_is_cpu_pmu = false;
	knc_fork_tracepoint = NULL;
}

/* As before: what other tests rely on is not what is tested here. */
static void host_end(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, host.wrong, 0);
	host_begin();
	static_call_update(knc_perf_event_overflow, record_overflow);
	knc_pmu_reset(this_cpu_ptr(&knc_cpu));
}

static void test_load(struct kunit *test)
{
	host_begin();
	KUNIT_ASSERT_EQ(test, knc_module_init(), 0);
	KUNIT_EXPECT_EQ(test, host.held, HOST_LOADED);
	KUNIT_EXPECT_STREQ(test, host.name, "cpu");
	KUNIT_EXPECT_EQ(test, host.type, PERF_TYPE_RAW);
	KUNIT_EXPECT_FALSE(test, host.capabilities & PERF_PMU_CAP_NO_INTERRUPT);
	KUNIT_EXPECT_TRUE(test, this_cpu_ptr(&knc_cpu)->ready);

	knc_module_exit();
	KUNIT_EXPECT_EQ(test, host.held, 0);
	/* Quiet by then: the last interrupt has found its handler. */
	KUNIT_EXPECT_EQ(test, host.held_at_nmi & (HOST_REGISTERS | BIT(HOST_PMU)), 0);
	/* Nobody is in a function of the module any more, nor will be. */
	KUNIT_EXPECT_GE(test, host.waits, 1);
	KUNIT_EXPECT_EQ(test, host.held_at_wait & HOST_CALLERS, 0);
	host_end(test);
}

/* Next to the kernel's own driver the registers are taken for events. */
static void test_load_shared(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);
	int cpu;

	host_begin();
	knc_pmu_quiesce(this_cpu_ptr(&knc_cpu));
	host.other_pmu = true;
	KUNIT_ASSERT_EQ(test, knc_module_init(), 0);
	KUNIT_EXPECT_STREQ(test, host.name, "knc");
	KUNIT_EXPECT_EQ(test, host.type, -1);
	KUNIT_EXPECT_EQ(test, host.held, HOST_SHARED);

	KUNIT_EXPECT_EQ(test, knc_event_init(event), 0);
	KUNIT_EXPECT_EQ(test, host.held, HOST_SHARED | HOST_REGISTERS);
	for_each_online_cpu(cpu)
		KUNIT_EXPECT_TRUE(test, per_cpu(knc_cpu, cpu).ready);
	event->destroy(event);
	for_each_online_cpu(cpu)
		KUNIT_EXPECT_FALSE(test, per_cpu(knc_cpu, cpu).ready);
	KUNIT_EXPECT_EQ(test, host.held, HOST_SHARED);

	/* Held by the other: nothing is taken, nothing is touched. */
	host.refused = BIT(HOST_EVNTSEL1);
	record_restart();
	KUNIT_EXPECT_EQ(test, knc_event_init(event), -EBUSY);
	KUNIT_EXPECT_EQ(test, host.held, HOST_SHARED);
	KUNIT_EXPECT_EQ(test, record.count, 0);

	knc_module_exit();
	KUNIT_EXPECT_EQ(test, host.held, 0);
	host_end(test);
}

/* Whatever it is that fails at load, nothing stays, and the next load works. */
static void test_load_refused(struct kunit *test)
{
	enum host_thing thing;
	int ret;

	for (thing = 0; thing < HOST_SWITCH; thing++) {
		host_begin();
		host.refused = BIT(thing);
		ret = knc_module_init();
		KUNIT_EXPECT_TRUE_MSG(test, host.asked & BIT(thing) ||
				      (thing == HOST_FORK && !COMPAT_USER_RDPMC),
				      "thing %u", thing);
		if (thing >= HOST_OVERFLOW && thing <= HOST_FORK) {
			/* It counts, and says what it cannot do. */
			KUNIT_EXPECT_EQ(test, ret, 0);
			KUNIT_EXPECT_EQ(test, thing == HOST_OVERFLOW,
					!!(host.capabilities & PERF_PMU_CAP_NO_INTERRUPT));
			knc_module_exit();
		} else {
			KUNIT_EXPECT_LT_MSG(test, ret, 0, "thing %u", thing);
		}
		KUNIT_EXPECT_EQ_MSG(test, host.held, 0, "thing %u", thing);
		host.refused = 0;
		KUNIT_EXPECT_EQ_MSG(test, knc_module_init(), 0, "after thing %u", thing);
		KUNIT_EXPECT_EQ_MSG(test, host.held, HOST_LOADED, "after thing %u", thing);
		knc_module_exit();
		KUNIT_EXPECT_EQ_MSG(test, host.held, 0, "after thing %u", thing);
		KUNIT_EXPECT_EQ_MSG(test, host.wrong, 0, "thing %u", thing);
	}
	host_end(test);
}

/* A register that faults is found before anything is written. */
static void test_probe(struct kunit *test)
{
	enum host_thing thing;

	host_begin();
	KUNIT_EXPECT_EQ(test, knc_pmu_probe(), 0);
	for (thing = HOST_APIC; thing <= HOST_MSR_SPFLT; thing++) {
		record_restart();
		host.refused = BIT(thing);
		KUNIT_EXPECT_EQ(test, knc_pmu_probe(), -ENODEV);
		KUNIT_EXPECT_EQ(test, record.count, 0);
	}
	host_end(test);
}

/* perf core finds a PMU by its type before its registration is complete. */
static void test_init_before_registration(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);

	host_begin();
	KUNIT_EXPECT_EQ(test, knc_event_init(event), -ENOENT);
	KUNIT_EXPECT_EQ(test, host.held, 0);
	host_end(test);
}

/* An event that is refused, for whatever reason, leaves nothing behind. */
static void test_init_refused(struct kunit *test)
{
	static const enum host_thing things[] = {
		HOST_PERFCTR0, HOST_PERFCTR1, HOST_EVNTSEL0, HOST_EVNTSEL1,
		HOST_SWITCH, HOST_MEMORY,
	};
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);
	unsigned int i;

	host_begin();
	host.other_pmu = true;
	KUNIT_ASSERT_EQ(test, knc_module_init(), 0);
	event->attr.config1 = 1;
	event->attach_state = PERF_ATTACH_TASK;
	event->hw.target = current;
	for (i = 0; i < ARRAY_SIZE(things); i++) {
		host.refused = BIT(things[i]);
		KUNIT_EXPECT_LT_MSG(test, knc_event_init(event), 0, "thing %u", things[i]);
		knc_spflt_exit();
		KUNIT_EXPECT_EQ_MSG(test, host.held, HOST_SHARED,
				    "thing %u", things[i]);
		host.refused = 0;
		KUNIT_EXPECT_EQ_MSG(test, knc_event_init(event), 0, "after thing %u", things[i]);
		event->destroy(event);
		/* The scheduler's hook goes after a while, or with the module. */
		knc_spflt_exit();
		KUNIT_EXPECT_EQ_MSG(test, host.held, HOST_SHARED,
				    "after thing %u", things[i]);
	}
	knc_module_exit();
	KUNIT_EXPECT_EQ(test, host.held, 0);
	host_end(test);
}

/* Types of events that are not ours */
static void test_init_others(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);

	host_begin();
	KUNIT_ASSERT_EQ(test, knc_module_init(), 0);
	event->attr.type = PERF_TYPE_MAX + 3;
	KUNIT_EXPECT_EQ(test, knc_event_init(event), -ENOENT);
	event->attr.type = PERF_TYPE_HARDWARE;
	event->attr.config = PERF_COUNT_HW_INSTRUCTIONS;
	KUNIT_EXPECT_EQ(test, knc_event_init(event), 0);
	event->destroy(event);
	knc_module_exit();
	KUNIT_EXPECT_EQ(test, host.wrong, 0);

	/* Generic ones are the PMU's that is called "cpu". */
	host_begin();
	host.other_pmu = true;
	KUNIT_ASSERT_EQ(test, knc_module_init(), 0);
	KUNIT_EXPECT_EQ(test, knc_event_init(event), -ENOENT);
	KUNIT_EXPECT_EQ(test, host.held & HOST_REGISTERS, 0);
	knc_module_exit();
	host_end(test);
}

/* A CPU on its way up runs tasks with events before its turn in hotplug comes. */
static void test_add_not_ready(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);
	static const u8 regs[] = { 0x20, 0x21, 0x28, 0x29, 0x2c, 0x2d, 0x2f };
	unsigned int i;

	knc_pmu_disable(NULL);
	knc_cpu_prepare(smp_processor_id());
	for (i = 0; i < ARRAY_SIZE(regs); i++)
		record.msr[regs[i]] = 3;
	record.lvtpc = 0x10400;
	KUNIT_ASSERT_EQ(test, knc_add(event, PERF_EF_START), 0);
	knc_pmu_enable(NULL);

	KUNIT_EXPECT_TRUE(test, kc->ready);
	KUNIT_EXPECT_EQ(test, record.msr[0x2d], 0);
	KUNIT_EXPECT_EQ(test, record.lvtpc, 0x400);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 2);
	KUNIT_EXPECT_EQ(test, record.msr[0x28], 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x20], 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], 0);
	count(1, 10);
	knc_read(event);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), 10);
}

/* Added without being started, it does not run; started twice, it is once. */
static void test_start_and_stop(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);

	knc_pmu_disable(NULL);
	KUNIT_ASSERT_EQ(test, knc_add(event, 0), 0);
	knc_pmu_enable(NULL);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 0);

	knc_start(event, PERF_EF_RELOAD);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 2);
	count(1, 100);
	knc_start(event, PERF_EF_RELOAD);
	count(1, 10);
	knc_read(event);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), 110);

	knc_stop(event, PERF_EF_UPDATE);
	knc_stop(event, PERF_EF_UPDATE);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 0);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), 110);
	knc_del(event, 0);
	KUNIT_EXPECT_EQ(test, event->hw.idx, -1);
}

/* Where RDPMC is open to programs, no counter holds what a task has left there. */
static void test_nothing_stale(struct kunit *test)
{
	struct perf_event *event[] = {
		new_event(test, INSTRUCTIONS, 0), new_event(test, CYCLES, 0),
	};
	struct perf_event *other = new_event(test, BRANCHES_, 0);

	add_all(test, event, 2);
	count(0, 1234);
	count(1, 5678);
	knc_rdpmc_open = true;
	del_all(event, 2);
	KUNIT_EXPECT_EQ(test, record.msr[0x20], 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x21], 0);

	/* The counter of the event that stays is its own. */
	add_all(test, event, 2);
	count(0, 1234);
	count(1, 5678);
	del_all(event, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x20 + !event[1]->hw.idx], 0);
	knc_read(event[1]);
	KUNIT_EXPECT_EQ(test, local64_read(&event[1]->count), 2 * 1234);

	/* An event that has just come to a counter that another has left */
	knc_pmu_disable(NULL);
	knc_del(event[1], 0);
	KUNIT_ASSERT_EQ(test, knc_add(event[1], PERF_EF_START), 0);
	knc_pmu_enable(NULL);
	count(event[1]->hw.idx, 100);
	knc_read(event[1]);
	KUNIT_EXPECT_EQ(test, local64_read(&event[1]->count), 2 * 1234 + 100);

	/* What was cleared is not cleared again. */
	knc_pmu_disable(NULL);
	record_restart();
	knc_pmu_enable(NULL);
	KUNIT_EXPECT_EQ(test, record.count, 1);

	/* And what was cleared is loaded again. */
	add_all(test, &other, 1);
	count(other->hw.idx, 10);
	knc_read(other);
	KUNIT_EXPECT_EQ(test, local64_read(&other->count), 10);
	knc_rdpmc_open = false;
}

/* A group of which some are no events of ours */
static void test_group_of_others(struct kunit *test)
{
	struct perf_event *software = new_event(test, 0, 0);
	struct perf_event *one = new_event(test, INSTRUCTIONS, 0);
	struct perf_event *two = new_event(test, L2_MISS, 0);
	static struct pmu software_pmu;

	software->pmu = &software_pmu;
	software->event_caps = PERF_EV_CAP_SOFTWARE;
	one->group_leader = software;
	two->group_leader = software;
	/* perf core holds the context's mutex; this will do. */
	local_irq_disable();
	KUNIT_EXPECT_EQ(test, knc_check_group(one), 0);
	list_add_tail(&one->sibling_list, &software->sibling_list);
	KUNIT_EXPECT_EQ(test, knc_check_group(two), 0);
	list_del_init(&one->sibling_list);

	/* It leads, and they are in between. */
	one->group_leader = one;
	software->group_leader = one;
	list_add_tail(&software->sibling_list, &one->sibling_list);
	two->group_leader = one;
	KUNIT_EXPECT_EQ(test, knc_check_group(two), 0);

	/* An event of another PMU's, that is none of the kernel's own */
	software->event_caps = 0;
	two->group_leader = software;
	KUNIT_EXPECT_EQ(test, knc_check_group(two), -EINVAL);
	local_irq_enable();
}

/* Bits of STATUS that are no counter's are nobody's business here. */
static void test_pmi_reserved_status(struct kunit *test)
{
	record.msr[0x2d] = 0x700000004ULL;
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 0);
	record.msr[0x2d] |= 2;
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2d], 0x700000004ULL);
	record.msr[0x2d] = 0;
}

/* The interrupt is long overdue: half the counter's range beyond the wrap. */
static void test_long_overdue(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);

	add_all(test, &event, 1);
	count(1, P39 + 10);
	knc_read(event);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), P39 + 10);
	count(1, P39);
	knc_read(event);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), P40 + 10);
}

/* Without a hook to fork(), or for a page at each sample, there is no RDPMC. */
static void test_rdpmc_without_hook(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 0);
	struct perf_event *sampling = new_event(test, INSTRUCTIONS, 1000);
	int hook;

	for (hook = 0; hook < 2; hook++) {
		host_begin();
		host.refused = hook ? 0 : BIT(HOST_FORK);
		KUNIT_ASSERT_EQ(test, knc_module_init(), 0);
		KUNIT_ASSERT_EQ(test, knc_perf_event_init(event), 0);
		KUNIT_ASSERT_EQ(test, knc_perf_event_init(sampling), 0);
		KUNIT_EXPECT_EQ(test, !!(event->hw.flags & PERF_EVENT_FLAG_USER_READ_CNT),
				hook && COMPAT_USER_RDPMC);
		KUNIT_EXPECT_FALSE(test, sampling->hw.flags & PERF_EVENT_FLAG_USER_READ_CNT);
		event->destroy(event);
		sampling->destroy(sampling);
		knc_module_exit();
		KUNIT_EXPECT_EQ(test, host.wrong, 0);
	}
	host_end(test);
}

/* Whoever reads an event while it is being changed leaves it as it is. */
static void test_read_within(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);

	add_all(test, &event, 1);
	count(1, 10);
	knc_enter(kc);
	record_restart();
	knc_read(event);
	KUNIT_EXPECT_EQ(test, record.count, 0);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), 0);
	KUNIT_EXPECT_EQ(test, kc->busy, KNC_BUSY_CHANGING);
	knc_leave(kc);
	knc_read(event);
	KUNIT_EXPECT_EQ(test, local64_read(&event->count), 10);
}

/* A CPU that comes back knows nothing of what was there. */
static void test_quiesced(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);
	struct perf_event *again = new_event(test, INSTRUCTIONS, 1000);
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);

	add_all(test, &event, 1);
	kc->postponed = true;
	knc_pmu_quiesce(kc);
	KUNIT_EXPECT_EQ(test, kc->active, 0);
	KUNIT_EXPECT_FALSE(test, kc->enabled);
	KUNIT_EXPECT_FALSE(test, kc->postponed);
	KUNIT_EXPECT_PTR_EQ(test, kc->event[1], NULL);

	/* The same event again is written to PerfEvtSel again. */
	knc_pmu_reset(kc);
	add_all(test, &again, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x29], SEL_ALL | INSTRUCTIONS);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 2);
}

/* A late interrupt in the middle of it leaves the LVT entry as it shall be. */
static void test_quiesced_late(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);
	unsigned int late;

	for (late = 1; late < 16; late++) {
		knc_pmu_enable(NULL);
		add_all(test, &event, 1);
		count(1, 1000);
		record.lvtpc = 0x10400;
		record.line = true;
		record.pending = late;
		record.runs = true;
		knc_pmu_quiesce(this_cpu_ptr(&knc_cpu));
		record.runs = false;
		KUNIT_EXPECT_EQ_MSG(test, record.lvtpc, 0x10400, "late %u", late);
		KUNIT_EXPECT_EQ_MSG(test, record.msr[0x2f], 0, "late %u", late);
		KUNIT_EXPECT_EQ_MSG(test, record.msr[0x2d], 0, "late %u", late);
		event->hw.idx = -1;
		knc_pmu_reset(this_cpu_ptr(&knc_cpu));
	}
}

/* Tasks come and go on a CPU whose registers are another driver's, or nobody's. */
static void test_spflt_not_ready(struct kunit *test)
{
	struct task_struct *other = new_task(test);
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);
	struct perf_event *mine, *theirs;

	theirs = new_spflt_event(test, INSTRUCTIONS, other);
	knc_pmu_quiesce(kc);
	record.msr[0x2c] = PREFERENCE | 3;
	record_restart();
	mine = new_spflt_event(test, INSTRUCTIONS, current);
	task_switch(current, NULL, 0, other);
	task_switch(other, NULL, 0, current);
	KUNIT_EXPECT_EQ(test, record.count, 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE | 3);
	knc_spflt_event_destroy(mine);
	knc_spflt_event_destroy(theirs);
	knc_pmu_reset(kc);
}

/* A reset: no filter, no bit, and nobody is heard who is not there. */
static void test_spflt_reset(struct kunit *test)
{
	struct task_struct *other = new_task(test), *stranger = new_task(test);
	struct perf_event *event = new_spflt_event(test, INSTRUCTIONS, other);
	struct perf_event *plain = new_event(test, CYCLES, 0);
	struct perf_event *wide = new_spflt_event(test, BRANCHES_, NULL);

	/* It has said 1 once, and is here. */
	task_switch(current, NULL, 0, other);
	record.msr[0x2c] |= PREFERENCE;
	task_switch(other, NULL, 0, stranger);
	task_switch(stranger, NULL, 0, other);
	add_all(test, &wide, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], PREFERENCE | 2);

	knc_pmu_reset(this_cpu_ptr(&knc_cpu));
	KUNIT_EXPECT_EQ(test, record.msr[0x2c], 0);
	knc_pmu_enable(NULL);
	add_all(test, &plain, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c] & 3, 0);

	/* What it finds after the reset is not what it has said. */
	task_switch(other, NULL, 0, stranger);
	task_switch(stranger, NULL, 0, other);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c] & PREFERENCE, PREFERENCE);
	knc_spflt_event_destroy(event);
}

/* While another task's SPFLT event still counts, the bit of the next has to wait. */
static void test_spflt_waits(struct kunit *test)
{
	struct task_struct *other = new_task(test), *stranger = new_task(test);
	struct perf_event *theirs = new_spflt_event(test, BRANCHES_, other);
	struct perf_event *mine = new_spflt_event(test, INSTRUCTIONS, current);

	task_switch(current, NULL, 0, other);
	record.msr[0x2c] |= PREFERENCE;
	task_switch(other, NULL, 0, current);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c] & PREFERENCE, 0);
	add_all(test, &mine, 1);

	/* It comes and goes, and has not had its bit. */
	task_switch(current, NULL, 0, other);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c] & PREFERENCE, 0);
	task_switch(other, NULL, 0, stranger);
	task_switch(stranger, NULL, 0, current);
	task_switch(current, NULL, 0, other);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c] & PREFERENCE, 0);
	del_all(&mine, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c] & PREFERENCE, PREFERENCE);

	/* From here on it is the program that says. */
	record.msr[0x2c] &= ~PREFERENCE;
	add_all(test, &theirs, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2c] & PREFERENCE, 0);
	del_all(&theirs, 1);
	knc_spflt_event_destroy(mine);
	knc_spflt_event_destroy(theirs);
}

/* The scheduler's hook outlives the last event by a little, and no more. */
static void test_spflt_linger(struct kunit *test)
{
	struct perf_event *event;

	host_begin();
	event = new_spflt_event(test, INSTRUCTIONS, current);
	KUNIT_EXPECT_EQ(test, host.held, BIT(HOST_SWITCH));
	knc_spflt_event_destroy(event);
	KUNIT_EXPECT_EQ(test, host.held, BIT(HOST_SWITCH));
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&knc_spflt_idle_work));

	/* It comes back in time. */
	event = new_spflt_event(test, INSTRUCTIONS, current);
	knc_spflt_rest(NULL);
	KUNIT_EXPECT_EQ(test, host.held, BIT(HOST_SWITCH));
	knc_spflt_event_destroy(event);
	knc_spflt_rest(NULL);
	KUNIT_EXPECT_EQ(test, host.held, 0);
	KUNIT_EXPECT_PTR_EQ(test, this_cpu_ptr(&knc_spflt_cpu)->task, NULL);

	knc_spflt_exit();
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&knc_spflt_idle_work));
	host_end(test);
}

/* Throttled, it moves aside, and goes on when perf core says so. */
static void test_move_throttled(struct kunit *test)
{
	struct perf_event *event[] = {
		new_event(test, CYCLES, 0), new_event(test, INSTRUCTIONS, 1000),
	};
	struct perf_event *l2 = new_event(test, L2_MISS, 0);

	add_all(test, event, 2);
	count(0, 100);
	knc_stop(event[1], 0);
	del_all(event, 1);
	add_all(test, &l2, 1);
	KUNIT_EXPECT_EQ(test, event[1]->hw.idx, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 1);
	knc_start(event[1], 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 3);
	count(1, 10);
	knc_read(event[1]);
	KUNIT_EXPECT_EQ(test, local64_read(&event[1]->count), 110);
}

/* A PMI throttles it with its group, right when it is about to be enabled. */
static void test_enable_throttled(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);

	knc_pmu_disable(NULL);
	KUNIT_ASSERT_EQ(test, knc_add(event, 0), 0);
	event->hw.state = PERF_HES_STOPPED;
	knc_event_enable(event);
	knc_pmu_enable(NULL);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 0);
}

/* A PMI in a section that perf core has disabled leaves it disabled. */
static void test_pmi_stays_disabled(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);
	struct perf_event *other = new_event(test, CYCLES, 0);

	add_all(test, &event, 1);
	count(1, 1000);
	knc_pmu_disable(NULL);
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 1);
	KUNIT_ASSERT_EQ(test, knc_add(other, PERF_EF_START), 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 0);
	knc_pmu_enable(NULL);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 3);
}

/* A PMI that finds an event being changed, or another PMI that had to wait */
static void overflow_again(void)
{
	count(1, P40 - record.msr[0x21]);
	knc_pmi(&nowhere);
}

static struct perf_event *postpone(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);

	add_all(test, &event, 1);
	knc_enter(this_cpu_ptr(&knc_cpu));
	count(1, 1000);
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 1);
	KUNIT_EXPECT_EQ(test, samples.count, 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 0);

	return event;
}

static void expect_caught_up(struct kunit *test, struct perf_event *event, u64 count)
{
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);

	KUNIT_EXPECT_EQ(test, local64_read(&event->count), count);
	KUNIT_EXPECT_EQ(test, samples.count, count / 1000);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 2);
	KUNIT_EXPECT_EQ(test, record.msr[0x2d], 0);
	KUNIT_EXPECT_FALSE(test, kc->postponed);
	KUNIT_EXPECT_EQ(test, kc->busy, 0);
}

static void test_postponed(struct kunit *test)
{
	struct perf_event *event = postpone(test);

	knc_leave(this_cpu_ptr(&knc_cpu));
	expect_caught_up(test, event, 1000);
}

/* The counters have just started, and it is not over yet. */
static void test_postponed_again(struct kunit *test)
{
	struct perf_event *event = postpone(test);

	record.on_start = overflow_again;
	knc_leave(this_cpu_ptr(&knc_cpu));
	expect_caught_up(test, event, 2000);
}

/* An NMI that is nobody's, while an event is changed, counters run or not */
static void test_postponed_stranger(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);

	add_all(test, &event, 1);
	knc_enter(kc);
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 2);
	knc_leave(kc);

	knc_pmu_disable(NULL);
	knc_enter(kc);
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 0);
	knc_leave(kc);

	/* Who is about to start them does so, with what he has seen. */
	kc->busy = KNC_BUSY_STARTING;
	kc->enabled = true;
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 0);
	kc->busy = 0;

	/* The last one is about to leave, and its counter is not to count on. */
	kc->active = 0;
	knc_enter(kc);
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 0);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 0);
	knc_leave(kc);
}

/* It had to wait where perf core has disabled the PMU, which stays so. */
static void test_postponed_disabled(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);

	add_all(test, &event, 1);
	count(1, 1000);
	knc_pmu_disable(NULL);
	knc_enter(kc);
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 1);
	knc_leave(kc);
	KUNIT_EXPECT_EQ(test, samples.count, 1);
	KUNIT_EXPECT_EQ(test, record.msr[0x2f], 0);
	KUNIT_EXPECT_EQ(test, kc->busy, 0);
	knc_pmu_enable(NULL);
	expect_caught_up(test, event, 1000);
}

/* One that was on its way comes between what perf core has done and the start. */
static void test_resume_postponed(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);
	struct knc_cpu *kc = this_cpu_ptr(&knc_cpu);

	add_all(test, &event, 1);
	count(1, 1000);
	knc_pmu_disable(NULL);
	kc->busy = KNC_BUSY_STARTING;
	KUNIT_EXPECT_EQ(test, knc_pmi(&nowhere), 1);
	KUNIT_EXPECT_EQ(test, samples.count, 0);
	kc->busy = 0;
	knc_pmu_enable(NULL);
	expect_caught_up(test, event, 1000);
}

/*
 * Each time the counters start, the next overflow comes at once. Only the first one
 * has to wait, or it would go on like this with interrupts off.
 */
static unsigned int overflows_left;

static void overflow_and_again(void)
{
	if (overflows_left--)
		record.on_start = overflow_and_again;
	overflow_again();
}

static void test_postponed_once(struct kunit *test)
{
	struct perf_event *event = postpone(test);

	overflows_left = 5;
	record.on_start = overflow_and_again;
	knc_leave(this_cpu_ptr(&knc_cpu));
	expect_caught_up(test, event, 7000);
	KUNIT_EXPECT_EQ(test, samples.caught_up, 1);

	/* The same when it is perf core that starts them */
	overflows_left = 5;
	record.on_start = overflow_and_again;
	knc_pmu_disable(NULL);
	knc_pmu_enable(NULL);
	expect_caught_up(test, event, 13000);
	KUNIT_EXPECT_EQ(test, samples.caught_up, 1);
}

/* A sample is of where the interrupt came. */
static const struct pt_regs *delivered_regs;
static struct pt_regs delivered;

static int deliver_regs(struct perf_event *event, struct perf_sample_data *data,
			struct pt_regs *regs)
{
	delivered_regs = regs;
	delivered = *regs;
	return 0;
}

static void test_pmi_regs(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);
	struct pt_regs regs = {};

	add_all(test, &event, 1);
	count(1, 1000);
	static_call_update(knc_perf_event_overflow, deliver_regs);
	knc_pmi(&regs);
	static_call_update(knc_perf_event_overflow, record_overflow);
	KUNIT_EXPECT_PTR_EQ(test, delivered_regs, (const struct pt_regs *)&regs);
}

/* A sample of user mode alone has nothing of the kernel's, whose thread this is. */
static void test_pmi_regs_user(struct kunit *test)
{
	struct perf_event *event = new_event(test, INSTRUCTIONS, 1000);
	struct pt_regs regs;

	memset(&regs, 0x5a, sizeof(regs));
	regs.cs = __KERNEL_CS;
	event->attr.exclude_kernel = 1;
	add_all(test, &event, 1);
	static_call_update(knc_perf_event_overflow, deliver_regs);
	count(1, 1000);
	knc_pmi(&regs);
	KUNIT_EXPECT_TRUE(test, user_mode(&delivered));
	KUNIT_EXPECT_EQ(test, delivered.ip, 0);
	KUNIT_EXPECT_EQ(test, delivered.sp, 0);
	KUNIT_EXPECT_EQ(test, delivered.bx, 0);

	regs.cs = __USER_CS;
	count(1, 1000);
	knc_pmi(&regs);
	KUNIT_EXPECT_PTR_EQ(test, delivered_regs, (const struct pt_regs *)&regs);

	/* Where it had to wait it is in the kernel, too. */
	regs.cs = __KERNEL_CS;
	knc_enter(this_cpu_ptr(&knc_cpu));
	count(1, 1000);
	knc_pmi(&regs);
	delivered = regs;
	knc_leave(this_cpu_ptr(&knc_cpu));
	static_call_update(knc_perf_event_overflow, record_overflow);
	KUNIT_EXPECT_TRUE(test, user_mode(&delivered));
	KUNIT_EXPECT_EQ(test, delivered.ip, 0);
}

/* An NMI comes while the sample is delivered, which then reads an event. */
static unsigned int delivery_depth, delivery_deepest;

static int deliver_and_read(struct perf_event *event, struct perf_sample_data *data,
			    struct pt_regs *regs)
{
	delivery_deepest = max(delivery_deepest, ++delivery_depth);
	if (!samples.count++) {
		record.msr[0x2d] = 2;
		knc_pmi(&nowhere);
		knc_read(event);
	}
	delivery_depth--;
	return 0;
}

static void test_postponed_within(struct kunit *test)
{
	struct perf_event *event = postpone(test);

	delivery_deepest = 0;
	static_call_update(knc_perf_event_overflow, deliver_and_read);
	knc_leave(this_cpu_ptr(&knc_cpu));
	static_call_update(knc_perf_event_overflow, record_overflow);
	KUNIT_EXPECT_EQ(test, delivery_deepest, 1);
	expect_caught_up(test, event, 1000);
}

static struct kunit_case knc_host_cases[] = {
	KUNIT_CASE(test_load),
	KUNIT_CASE(test_load_shared),
	KUNIT_CASE(test_load_refused),
	KUNIT_CASE(test_probe),
	KUNIT_CASE(test_init_before_registration),
	KUNIT_CASE(test_init_refused),
	KUNIT_CASE(test_init_others),
	KUNIT_CASE(test_add_not_ready),
	KUNIT_CASE(test_start_and_stop),
	KUNIT_CASE(test_nothing_stale),
	KUNIT_CASE(test_group_of_others),
	KUNIT_CASE(test_pmi_reserved_status),
	KUNIT_CASE(test_long_overdue),
	KUNIT_CASE(test_rdpmc_without_hook),
	KUNIT_CASE(test_read_within),
	KUNIT_CASE(test_quiesced),
	KUNIT_CASE(test_quiesced_late),
	KUNIT_CASE(test_spflt_not_ready),
	KUNIT_CASE(test_spflt_reset),
	KUNIT_CASE(test_spflt_waits),
	KUNIT_CASE(test_spflt_linger),
	KUNIT_CASE(test_move_throttled),
	KUNIT_CASE(test_enable_throttled),
	KUNIT_CASE(test_pmi_stays_disabled),
	KUNIT_CASE(test_pmi_regs),
	KUNIT_CASE(test_pmi_regs_user),
	KUNIT_CASE(test_postponed),
	KUNIT_CASE(test_postponed_again),
	KUNIT_CASE(test_postponed_stranger),
	KUNIT_CASE(test_postponed_disabled),
	KUNIT_CASE(test_resume_postponed),
	KUNIT_CASE(test_postponed_once),
	KUNIT_CASE(test_postponed_within),
	{}
};
