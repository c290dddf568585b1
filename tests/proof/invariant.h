/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The invariant: what is true between two operations of the driver, in the words of
 * knc_softmask.h. Each RULE is assumed of the state in which an operation begins, and
 * proved of the one in which it ends. Other rules are HOLDS(), wherever they must hold.
 */
static bool is_on(const struct perf_event *e, unsigned int i)
{
	return knc_pmus.event[i] == e;
}

static bool is_in_slot(const struct perf_event *e)
{
	return is_on(e, 0) || is_on(e, 1);
}

/* What has been counted for an event; e->counted is that without its counter. */
static u64 counted(const struct perf_event *e)
{
	return e->counted + (is_on(e, 0) ? counter(0) : is_on(e, 1) ? counter(1) : 0);
}

static u32 filled(void)
{
	return (knc_pmus.event[0] ? 1 : 0) | (knc_pmus.event[1] ? 2 : 0);
}

static bool is_over(const struct perf_event *e)
{
	return e->hw.period_left.value <= 0;
}

/* An event in slot @i: its counter is loaded for its period, and has not been handled. */
static void rules_of_slot(bool assume, const struct perf_event *e, unsigned int i)
{
	s64 now = counter(i), prev = e->hw.prev_count.value;

	RULE(e->hw.idx == (int)i, "an event in a slot has its counter");
	RULE(knc_pmus.evtsel[i] == e->hw.config, "PerfEvtSel is the event's");
	RULE(prev > -(s64)SIGN && prev <= now && now < (s64)SIGN, "prev_count is behind");
	RULE(e->counted == (u64)(e->count.value - prev), "the count is exact");
	RULE(e->hw.period_left.value + prev >= 0, "a wrap is needed for the period");
	RULE(!e->sampled, "its period has had no sample");
	RULE((now >= 0) == (hw.status >> i & 1), "STATUS has a bit for a wrap");
	RULE(!e->rdpmc || e->paged, "its page has what the counter was loaded with");
}

static void rules_of_event(bool assume, const struct perf_event *e)
{
	const u64 big = BIT(WIDTH - 2);
	s64 left = e->hw.period_left.value;

	RULE(e->hw.sample_period >= 1 && e->hw.sample_period < big, "the period is not too long");
	RULE(left > -(s64)big && left < (s64)big, "period_left is not too far away");
	RULE(!e->sampled || is_over(e), "a sample is taken when its period is over");
	if (is_on(e, 0)) {
		rules_of_slot(assume, e, 0);
	} else if (is_on(e, 1)) {
		rules_of_slot(assume, e, 1);
	} else {
		RULE((u64)e->count.value == e->counted, "in no slot the count is exact");
		RULE(!is_over(e) || e->sampled, "a period that is over had a sample");
	}
#if BUILTIN
	RULE(e->stopped == !is_in_slot(e), "the x86 core knows which events are stopped");
	RULE(!e->throttled || !is_in_slot(e), "what perf core has throttled is stopped");
#endif
	if (knc_owners.event[0] != e && knc_owners.event[1] != e)
		RULE(e->hw.idx == -1, "an event without a counter has none in hw.idx");
}

static void rules_of_counter(bool assume, unsigned int i)
{
	const struct perf_event *owner = knc_owners.event[i];

	RULE(!knc_pmus.event[i] || is_on(owner, i), "an event in a slot owns its counter");
	RULE(!owner || owner->hw.idx == (int)i, "who owns a counter has it in hw.idx");
	RULE(!owner || i == 0 || !owner->counter0, "an event for counter 0 is not on counter 1");
	RULE(knc_pmus.evtsel[i] == hw.evtsel[i], "evtsel is what PerfEvtSel has");
}

/* @runs: GLOBAL_CTRL may be set; @waits: a PMI may be pending */
static void invariant(bool assume, enum knc_state state, bool runs, bool waits)
{
	RULE(knc_pmus.state == state, "the state");
	RULE(hw.ctrl == (runs ? filled() : 0) || (knc_pmus.pending && !hw.ctrl),
	     "the counters of filled slots run, or one waits for a replay");
	RULE(!knc_pmus.pending || (waits && hw.status), "a PMI is pending for a STATUS");
	RULE(hw.line == (hw.status != 0), "the line is up while STATUS is not 0");
	RULE(!hw.status || hw.coming || knc_pmus.pending || hw.swallowed, "no overflow is lost");
	RULE(hw.status || state == KNC_OFF || !hw.masked || hw.swallowed, "no edge will be lost");
	RULE(!(hw.status & ~filled()), "STATUS has no bit for an empty slot");
	if (state == KNC_OFF)
		RULE(hw.masked && !filled() && !hw.counter[0] && !hw.counter[1], "OFF: all 0");
	RULE(!knc_owners.event[0] || knc_owners.event[0] != knc_owners.event[1],
	     "no event owns two counters");
#if BUILTIN
	RULE(knc_owners.active_mask[0] == filled(), "and which counters run");
#endif
	RULE(!BUILTIN || !grouped || event0.hw.idx < 0 || event1.hw.idx < 0 ||
	     event0.throttled == event1.throttled, "a group is throttled together");
	rules_of_counter(assume, 0);
	rules_of_counter(assume, 1);
	rules_of_event(assume, &event0);
	rules_of_event(assume, &event1);
	rules_of_event(assume, &event2);
}

/* What a reader adds to the count of the event in slot @i */
static u64 uncounted(unsigned int i)
{
	return (counter(i) - knc_pmus.event[i]->hw.prev_count.value) & COUNTER_MAX;
}

static void account(unsigned int i)
{
	struct perf_event *e = knc_pmus.event[i];
	u64 more = uncounted(i);

	e->count.value += more;
	e->hw.period_left.value -= more;
	e->hw.prev_count.value = counter(i);
	HOLDS((s64)more >= 0, "a count does not go back");
	HOLDS((s64)(counted(e) - e->count.value) >= 0, "a count is not more than was counted");
}

static bool may_read(void)
{
	return knc_pmus.state == KNC_PMI || (knc_pmus.state == KNC_STOP && !hw.ctrl);
}

/*
 * A BPF program may read an event anywhere. In RUN that is the operation READ: handled_pmis()
 * proves the invariant at each place there. Else it does what READER proves of
 * knc_event_read(): it adds what the counter has counted, and notes the counter. It makes no
 * difference whether that is before or after what neither reads nor sets the event's
 * prev_count, period_left or slot. So it is enough that a reader comes just before what does,
 * and before the state and GLOBAL_CTRL change.
 */
static void read_slot(unsigned int i)
{
	if (READERS && running && may_read() && knc_pmus.event[i] && nondet_bool())
		account(i);
}

static void read_anywhere(void)
{
	read_slot(0);
	read_slot(1);
}

static void read_before(const local64_t *l)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		const struct perf_event *e = knc_pmus.event[i];

		if (e && (l == &e->hw.prev_count || l == &e->hw.period_left))
			read_slot(i);
	}
}

/* What the thread and its events are before something happens */
struct before {
	struct knc_cpu_pmu cpu;
	struct knc_owners owners;
	struct perf_event event0, event1, event2;
	u64 counter[2], counted0, counted1, counted2;
};

static struct before before(void)
{
	return (struct before){
		knc_pmus, knc_owners, event0, event1, event2, { hw.counter[0], hw.counter[1] },
		counted(&event0), counted(&event1), counted(&event2),
	};
}

static void rules_of_pmis_for(bool assume, const struct before *was, const struct perf_event *e,
			      const struct perf_event *then, u64 was_counted)
{
	bool was_on = was->cpu.event[0] == e || was->cpu.event[1] == e;
	u64 most = was_on ? COUNTER_MAX : 0;

	RULE((u64)(e->count.value - then->count.value) <= most, "a count does not go back");
	RULE((u64)(counted(e) - was_counted) <= most, "what was counted is not forgotten");
	RULE(was_on || (e->hw.prev_count.value == then->hw.prev_count.value &&
			e->hw.period_left.value == then->hw.period_left.value),
	     "a PMI leaves an event alone that is in no slot");
}

/*
 * What a PMI that is handled does, beside keeping the invariant: the operation PMI proves it.
 * It is assumed of any number of them where they are not soft-masked: handled_pmis().
 */
static void rules_of_pmis(bool assume, const struct before *was)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct perf_event *e = was->cpu.event[i];

		RULE(is_on(e, i) || is_on(NULL, i), "a PMI empties a slot, and does not fill one");
		RULE(e || hw.counter[i] == was->counter[i], "a counter without an event stays");
		RULE(!e || is_on(e, i) || e->hw.prev_count.value == counter(i),
		     "what leaves a slot has been accounted for");
		RULE(knc_owners.event[i] == was->owners.event[i], "a PMI gives no counter away");
	}
	rules_of_pmis_for(assume, was, &event0, &was->event0, was->counted0);
	rules_of_pmis_for(assume, was, &event1, &was->event1, was->counted1);
	rules_of_pmis_for(assume, was, &event2, &was->event2, was->counted2);
}

static void any_counts(struct perf_event *e)
{
	e->count.value = nondet_s64();
	e->hw.sample_period = nondet_u64();
	e->hw.last_period = nondet_u64();
	e->throttled = nondet_bool();
	e->hw.interrupts = e->throttled ? ~0UL : 0;
	e->hw.prev_count.value = nondet_s64();
	e->hw.period_left.value = nondet_s64();
	e->counted = nondet_u64();
	e->sampled = nondet_bool();
	e->paged = nondet_bool();
	e->stopped = nondet_bool();
	e->uptodate = nondet_bool();
}

static void any_registers(void)
{
#if BUILTIN
	knc_owners.active_mask[0] = nondet_u32() & 3;
#endif
	hw.counter[0] = nondet_u64();
	hw.counter[1] = nondet_u64();
	ASSUME(hw.counter[0] <= COUNTER_MAX && hw.counter[1] <= COUNTER_MAX);
	hw.status = nondet_u64() & 3;
	hw.line = hw.status;
	hw.masked = nondet_bool();
	hw.coming = nondet_bool();
	hw.swallowed = nondet_bool();
}

static void handled_pmis(void)
{
	enum knc_state state = knc_pmus.state;
	struct before was;

	running = false;
	invariant(false, state, true, true);
	was = before();
	if (nondet_bool())
		knc_pmus.event[0] = NULL;
	if (nondet_bool())
		knc_pmus.event[1] = NULL;
	knc_pmus.pending = false;
	hw.ctrl = filled();
	any_registers();
	any_counts(&event0);
	any_counts(&event1);
	any_counts(&event2);
	invariant(true, state, true, false);
	rules_of_pmis(true, &was);
	running = true;
}

static void before_write(const volatile void *what, unsigned long value)
{
	unsigned int i;

	if (what == &knc_pmus.state) {
		if (value != KNC_STOP && value != KNC_PMI)
			read_anywhere();
		TABLE(state);
	}
	if (what == &knc_pmus.pending && value)
		TABLE(pending_to_true);
	if (what == &knc_pmus.pending && !value)
		TABLE(pending_to_false);
	for (i = 0; i < 2; i++) {
		if (what != &knc_pmus.event[i])
			continue;
		read_slot(i);
		TABLE(event);
		if (knc_pmus.event[i])
			knc_pmus.event[i]->counted += counter(i);
	}
}

/* Until the tick, which is no operation here */
static bool is_marked(const struct perf_event *e)
{
	return !e->throttled || knc_event_is_throttled(e);
}

static void after_write(const volatile void *what)
{
	unsigned int i;

	if (what == &knc_pmus.state && hw.ctrl)
		read_anywhere();	/* and the counter goes on */
	if (what == &knc_pmus.state)
		HOLDS(is_marked(&event0) && is_marked(&event1) && is_marked(&event2),
		      "what perf core has throttled keeps its mark");
	for (i = 0; i < 2; i++)
		if (what == &knc_pmus.event[i] && knc_pmus.event[i]) {
			knc_pmus.event[i]->counted -= counter(i);
			knc_pmus.event[i]->paged = false;
		}
}

/* knc_event_next_period() */
static void begins_period(const local64_t *left)
{
	struct perf_event *e = left == &event0.hw.period_left ? &event0 :
			       left == &event1.hw.period_left ? &event1 :
			       left == &event2.hw.period_left ? &event2 : NULL;

	if (!e)
		return;
	HOLDS(is_over(e), "a period begins when the one before is over");
	HOLDS(e->sampled, "a period that is over has had its sample");
	HOLDS(!e->throttled || !nmi_level || is_leaving(e),
	      "a sample stops an event that is throttled");
	e->sampled = false;
}

/* knc_pmu_quiesce() writes it without WRITE_ONCE(). */
static void check_quiesced(void)
{
	if (was_pending && !knc_pmus.pending)
		TABLE(pending_to_false);
	was_pending = knc_pmus.pending;
}
