// SPDX-License-Identifier: GPL-2.0-only
/*
 * Part of knc_pmu_test.c: goes through all interleavings of the driver's code with what may
 * happen meanwhile. The code runs on the hardware of record.h. Before each access to a
 * register or to memory that an NMI shares record_place() chooses what happens there.
 *
 * An interleaving is a list of choices; the next one has another last choice. When it comes
 * to a state in which an earlier one was, nothing more happens in it: the earlier one has
 * been followed by all that may come.
 */

enum model_thing {
	NOTHING, PMI, WRAP0, WRAP1, FOREIGN_NMI, READ_EVENTS, SWALLOWED, MODEL_THINGS
};

static const char *const model_names[] = {
	[PMI] = "PMI", [WRAP0] = "counter 0 wraps", [WRAP1] = "counter 1 wraps",
	[FOREIGN_NMI] = "NMI of another source", [READ_EVENTS] = "a BPF program reads the events",
	[SWALLOWED] = "another handler claims the PMI",
};

#define MODEL_CHOICES	256
#define MODEL_STATES	BIT(20)

static struct {
	u8 taken[MODEL_CHOICES], of[MODEL_CHOICES];
	unsigned int choices, at;
	unsigned int count;
	u64 states[MODEL_STATES];	/* their hashes; 0: free */
} model;

/* The interleaving */
static struct {
	unsigned int left;		/* things that may still happen */
	bool in_nmi, in_read, delivers, swallowed, known;
	bool throttled;
	struct perf_event *stopped;	/* the event that this NMI has throttled */
	unsigned int unclaimed, wrong;
} path;

/* Events [0] on counter 1 and [1] on counter 0; [2] can be on counter 0 only. */
static struct perf_event *model_event[3];

static u64 model_counts(void)
{
	return local_read(&model_event[0]->count.a) + local_read(&model_event[1]->count.a) +
	       local_read(&model_event[2]->count.a);
}

static void model_saw(const void *data, size_t size)
{
	const u64 *word;

	for (word = data; word < (const u64 *)data + size / sizeof(*word); word++)
		record_saw(*word);
}

/* Of all that the rest of the interleaving depends on */
static u64 model_hash(void)
{
	u64 history = record.history, hash;
	unsigned int i;

	model_saw(&path, sizeof(path));
	model_saw(this_cpu(), sizeof(struct knc_cpu));
	model_saw(record.msr, sizeof(record) - offsetof(typeof(record), msr));
	record_saw(samples.periods);
	for (i = 0; i < ARRAY_SIZE(model_event); i++) {
		record_saw(local_read(&model_event[i]->count.a));
		record_saw(local_read(&model_event[i]->hw.prev_count.a));
		record_saw(local_read(&model_event[i]->hw.period_left.a));
	}
	hash = record.history;
	record.history = history;

	return hash | 1;
}

static bool model_is_known(void)
{
	u64 hash = model_hash(), *state = &model.states[hash % MODEL_STATES];

	while (*state && *state != hash)
		if (++state == model.states + MODEL_STATES)
			state = model.states;
	if (*state)
		return true;
	*state = hash;
	model.count++;

	return false;
}

/* Returns a number below @of. */
static unsigned int model_choose(unsigned int of)
{
	if (of < 2 || path.known)
		return 0;
	if (model.at == model.choices) {
		/* Without room the search would not be whole: that is a failure. */
		path.wrong += model.choices == MODEL_CHOICES || model.count == MODEL_STATES / 2;
		path.known = path.wrong || model_is_known();
		if (path.known)
			return 0;
		model.taken[model.choices] = 0;
		model.of[model.choices++] = of;
	}

	return model.taken[model.at++];
}

static bool model_next(void)
{
	model.at = 0;
	for (; model.choices; model.choices--)
		if (++model.taken[model.choices - 1] < model.of[model.choices - 1])
			return true;

	return false;
}

/* A counter wraps at the first place after an access: until the next, nothing shows it. */
static bool model_can_happen(enum model_thing thing)
{
	unsigned int idx = thing == WRAP1;

	if (thing != PMI && !path.left)
		return false;
	if (thing == WRAP0 || thing == WRAP1)
		return record.accessed && record.msr[0x2f] & BIT(idx) &&
		       record.msr[0x20 + idx] >> 39;
	if (thing == READ_EVENTS)
		return !path.in_read;

	return !path.in_nmi && (thing == FOREIGN_NMI || record.pending);
}

static void model_wrap(unsigned int idx)
{
	u64 events = COUNTER_MAX + 1 - record.msr[0x20 + idx];

	record.counted[idx] += events;
	count(idx, events);
	record_line();
}

static void model_nmi(bool own)
{
	struct knc_cpu *kc = this_cpu();
	bool off = kc->state == KNC_OFF;

	path.in_nmi = true;
	path.stopped = NULL;
	if (!knc_pmi(&nowhere) && own && !off)
		path.unclaimed++;
	/* While a PMI waits for its replay the counters are stopped. */
	path.wrong += kc->pending && record.msr[0x2f];
	record_place("the end of the NMI");
	/* A throttled event is off its counter. */
	path.wrong += path.stopped && knc_find_slot(kc, path.stopped) >= 0;
	path.in_nmi = false;
}

/* A count is never more than was counted, and in the delivery of a sample it is that. */
static void model_read(void)
{
	u64 before = model_counts(), counted;
	unsigned int i;

	path.in_read = true;
	for (i = 0; i < ARRAY_SIZE(model_event); i++)
		knc_event_read(model_event[i]);
	counted = record.counted[0] + record.counted[1];
	path.wrong += model_counts() < before || model_counts() > counted ||
		      (path.delivers && model_counts() < counted);
	path.in_read = false;
}

static void model_happens(enum model_thing thing)
{
	u64 history = record.history;

	if (record.prints)
		kunit_info(record.prints, "--> %s", model_names[thing]);
	path.left -= thing != PMI;
	if (thing == PMI || thing == SWALLOWED) {
		record.pending = false;
		record.lvtpc |= record.mask_late ? 0x10000 : 0;
	}
	path.swallowed |= thing == SWALLOWED;
	/* What it reads is forgotten when it is over. */
	record.history = model_hash();
	if (thing == PMI || thing == FOREIGN_NMI)
		model_nmi(thing == PMI);
	else if (thing == READ_EVENTS)
		model_read();
	else if (thing != SWALLOWED)
		model_wrap(thing - WRAP0);
	record.history = history;
}

static void record_place(const char *place)
{
	enum model_thing can[MODEL_THINGS] = { NOTHING }, thing;
	unsigned int count;

	if (!record.runs)
		return;
	record_saw(this_cpu()->state);
	if (record.prints && place)
		kunit_info(record.prints, "%s", place);

	for (;;) {
		for (thing = PMI, count = 1; thing < MODEL_THINGS; thing++)
			if (model_can_happen(thing))
				can[count++] = thing;
		thing = can[model_choose(count)];
		if (thing == NOTHING)
			break;
		model_happens(thing);
	}
	record.accessed = false;
}

static int model_overflow(struct perf_event *event, struct perf_sample_data *data,
			  struct pt_regs *regs)
{
	path.delivers = true;
	record_place("a sample is delivered");
	path.delivers = false;
	record.runs = false;
	record_overflow(event, data, regs);
	record.runs = true;
	if (!path.left || !model_choose(2))
		return 0;

	path.left--;
	path.throttled = true;
	path.stopped = event;

	return 1;
}
