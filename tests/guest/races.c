// SPDX-License-Identifier: GPL-2.0-only
/*
 * An overflow between any two instructions of what the driver does.
 *
 * The first event counts the kernel's instructions as well, and the emulator delivers
 * its interrupt with the instruction that overflows. A sweep makes the period one
 * longer each time, so that the overflow comes at each instruction of an operation in
 * turn: each of these is a point. An event that is enabled again goes on with the rest of
 * its period: a loop of known length (the run-up) uses up most of it. The next overflow is
 * far away.
 *
 * The emulator can do two other things after a number of instructions: send an NMI of
 * another source, and stop a hardware thread until another thread has acted on it.
 *
 * Documentation/testing.rst says what is drawn for a point, and what is checked there.
 * TEST_POINT and TEST_SEED in the environment go to one point alone. TEST_STRIDE=n takes one
 * point in n, except in sweeps of few points.
 */
#include "lib.h"

#include <pthread.h>

#include "../../include/knc_pmu_user.h"

#define EVENTS_MAX	3
#define NEVER		100000000000ULL
#define FAR		1000000000U

/* Iterations of the run-up, a loop in user mode; the kernel's part is measured. */
#define RUN_UP		4000

/* How late a sample may be: instructions from the interrupt to where the counters stop */
#define LATEST		(1000ULL * scale())
/* Enough points, on a slow kernel, of a sweep whose points take long */
#define SLOW_POINTS	100

/* The most instructions that an interrupt is late */
#define SKID_MAX	300
/* Instructions of an NMI that comes before a late interrupt */
#define NMI_MOST	(2000ULL * scale())

/* Longer than an interrupt, whose instructions are counted as well */
#define SECOND_PERIOD	(4000 * (int)scale())

/* Longer than from one tick to the next */
#define TICK		1200000

#define MSR_GLOBAL_CTRL	0x2f

/* What is drawn for a point; 0: nothing of that kind */
struct draw {
	u32 skid;			/* how many instructions each interrupt is late */
	u32 nmi;			/* instructions of the kernel until an NMI comes */
	u64 overflow;			/* counted instructions until an overflow */
};

struct shot {
	const struct race *race;
	int cpu;
	u64 period;
	struct draw draw;
	int events;
	int fd[EVENTS_MAX];		/* the first is the event that overflows */
	struct ring ring;		/* samples of the first event */
	struct ring second;		/* samples of the second event, if it samples */
	u64 samples;
	u64 throttles, unthrottles;
	u64 sampled;			/* count of the first event in its first sample */
	u64 run_up;			/* what the first event counts before the operation */
	u64 length;			/* what it counts in the operation */
	u64 at_least, at_most;		/* counts around the ioctl that changes the period */
	u64 again;			/* the period that it sets, if it is over again */
	u64 exact;			/* a count that must be the same at each point */
	u64 injected;			/* how many orders the emulator has carried out */
	char why[256];			/* the first failure, or empty */
	bool late;			/* the failure is a late sample: try again */
	bool miscounted;		/* a count is wrong */
};

/* Steps of an operation or an act: an event on or off, by its index, and others */
#define ON(i)		(0x10 | (i))
#define OFF(i)		(0x20 | (i))
#define READ		0x30		/* the first event */
#define SPIN		0x40
#define SPFLT(c)	(0x50 | (c))
#define TURN(c)		(0x60 | (c))	/* of the other task, which executes SPFLT c */
#define PERIOD		0x70		/* of the first event: it never ends */
#define OFFLINE		0x80		/* the hardware thread of the first event */

struct race {
	/* other events of this task, and what opens those of another kind */
	u64 also[2];
	void (*open)(struct shot *s);
	/* enables the first event, and disables all in the end: in steps, or otherwise */
	unsigned char steps[10];
	void (*operation)(struct shot *s);
	/* further checks */
	void (*check)(struct shot *s);
	/* what the emulator does, and steps of another hardware thread while it stops this one */
	enum td_action action;
	const unsigned char *act;
	u32 late;			/* how late the second of two interrupts is */
	bool every;			/* each point is tried, except on a slow kernel */
	bool slow;			/* one point in eight is tried */
	bool fine;			/* eight times as many points are tried */
	bool exact;			/* the second event counts the same each time */
	bool second;			/* the second event samples as well */
	bool repeats;			/* many overflows, without a run-up */
	bool throttles;			/* the overflow throttles the event */
	bool equals;			/* the sibling counts the same event */
	bool member;			/* the second event leads the group of the first */
	bool chains;			/* the first event's samples have callchains */
	bool mixed;			/* an overflow is drawn, with an action */
};

static void __attribute__((format(printf, 2, 3))) wrong(struct shot *s, const char *fmt, ...)
{
	va_list ap;

	if (*s->why)
		return;
	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
}

/* On all hardware threads, online or not: the task may have been moved. */
static u64 counted(void)
{
	static int cpus;
	u64 total = 0;
	int cpu;

	if (!cpus)
		cpus = cpus_online();
	for (cpu = 0; cpu < cpus; cpu++)
		total += td_counted(cpu);
	return total;
}

/* The first event is read in PERF_FORMAT_GROUP, the others are not. */
static u64 first_count(const struct shot *s)
{
	u64 value[1 + EVENTS_MAX];

	must(read(s->fd[0], value, sizeof(value)) >= 16, "reading: %m");
	return value[s->race->member ? 2 : 1];
}

/* Another task on this hardware thread, which runs when other_turn() wakes it */
static struct {
	int there[2], back[2];
	pid_t pid;
	int fd[2];			/* its events, or -1 */
} other = { .fd = { -1, -1 } };

static void other_turn(char c)
{
	must(write(other.there[1], &c, 1) == 1, "pipe: %m");
	pipe_wait(other.back);
}

/* Until it waits for its next turn: its events are off, so that all can be read. */
static void other_waits(void)
{
	const char *where;
	int tries;

	for (tries = 0; tries < 1000; tries++) {
		/* of a task that runs, or may run, it is 0 */
		where = file_text(text_of("/proc/%d/wchan", other.pid));
		must(where, "no /proc/PID/wchan");
		if (strcmp(where, "0"))
			return;
		usleep(1000);
	}
	fail("the other task does not wait");
}

static u64 sum(const struct shot *s)
{
	u64 total = first_count(s);
	int i;

	for (i = 1; i < s->events; i++)
		total += ev_count(s->fd[i]);
	for (i = 0; i < 2; i++)
		total += other.fd[i] < 0 ? 0 : ev_count(other.fd[i]);
	return total;
}

static void open_first(struct shot *s)
{
	bool member = s->race->member;
	struct perf_event_attr attr = attr_of(INSTRUCTIONS, .disabled = !member,
					      .read_format = PERF_FORMAT_GROUP,
					      .sample_period = s->period,
					      .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_READ);

	if (member)
		s->fd[1] = ev_open(attr_of(INSTRUCTIONS), 0, -1, -1);
	if (s->race->chains)
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	/* The kernel's other work may add samples, each with up to 127 callers. */
	s->fd[0] = ring_open(&s->ring, s->race->chains ? 8 : 1, attr, 0, -1,
			     member ? s->fd[1] : -1);
	s->events = 1 + member;
}

static void open_attr(struct shot *s, struct perf_event_attr attr)
{
	s->fd[s->events++] = ev_open(attr, 0, -1, -1);
}

static void open_member(struct shot *s, u64 config, int leader)
{
	s->fd[s->events++] = ev_join(attr_of(config), config, leader);
}

static void close_all(struct shot *s)
{
	ring_unmap(&s->ring);
	if (s->second.page)
		ring_unmap(&s->second);
	while (s->events)
		close(s->fd[--s->events]);
}

static void take_samples(struct shot *s)
{
	struct record rec;

	while (ring_next(&s->ring, &rec)) {
		switch (rec.type) {
		case PERF_RECORD_SAMPLE:
			if (!s->samples++)
				s->sampled = rec.values[s->race->member];
			/* Linux 2.6.38 reads the events of a group one after the other. */
			if (s->race->equals && !cards_kernel() &&
			    (rec.nr_values != 2 || rec.values[1] != rec.values[0]))
				wrong(s, "two equal events have %llu and %llu in a sample",
				      rec.values[0], rec.values[1]);
			break;
		case PERF_RECORD_LOST:
			wrong(s, "records lost");
			break;
		case PERF_RECORD_THROTTLE:
			if (s->throttles++ > s->unthrottles && s->again)
				wrong(s, "throttled twice");
			break;
		case PERF_RECORD_UNTHROTTLE:
			s->unthrottles++;
			break;
		}
	}
}

static void check_second(struct shot *s)
{
	u64 count = ev_count(s->fd[1]), samples = 0;
	struct record rec;

	while (ring_sample(&s->second, &rec))
		samples++;
	if (samples != count / SECOND_PERIOD)
		wrong(s, "%llu samples of %d of the second event in %llu", samples,
		      SECOND_PERIOD, count);
}

static void check_samples(struct shot *s)
{
	u64 count = first_count(s), latest = LATEST + s->draw.skid;
	u64 least = count / s->period, most = least;
	const struct race *r = s->race;

	if (s->draw.nmi || r->action == TD_NMI)
		latest += NMI_MOST;

	take_samples(s);
	if (s->throttles && !r->throttles)
		wrong(s, "throttled");
	if (r->repeats || *s->why)
		return;
	if (s->at_most) {
		least = s->at_least / s->period;
		most = s->at_most / s->period;
	}
	if (s->again) {
		/* A late one stands for several periods. */
		least = !!least + (r->late ? count - s->at_most >= s->again :
				   (count - s->at_most) / s->again);
		most += (count - s->at_least) / s->again;
	}
	s->late = true;
	if (s->samples < least || s->samples > most)
		wrong(s, "%llu samples of %llu in %llu", s->samples, s->period, count);
	else if (s->samples && s->sampled - s->period > latest)
		wrong(s, "a sample that was due at %llu came at %llu", s->period, s->sampled);
	else if (r->second)
		check_second(s);
	s->late = *s->why;
}

/* After late interrupts and NMIs of other sources, a new event has its sample. */
static void check_next(struct shot *s)
{
	struct tally t = {};
	struct ring r;
	int fd = ring_self(&r, 1, RUN_UP);

	ev_spin(fd, RUN_UP * 3 / 4);
	ring_tally(&r, &t, NULL, NULL);
	if (!t.samples)
		wrong(s, "afterwards an overflow has no sample");
	ring_close(&r, fd);
}

static void check_idle(struct shot *s)
{
	u64 before = counted();

	spin(1000);
	if (counted() == before)
		return;
	wrong(s, "the counters go on while all events are off");
	s->miscounted = true;
	/* do not fail the next point for this */
	if (have_msr())
		wrmsr_on(s->cpu, MSR_GLOBAL_CTRL, 0);
}

/* How many interrupts perf core allows in a tick, before it throttles */
static int allowed;

/* Causes as many interrupts as are allowed in this tick. */
static void use_up(struct shot *s)
{
	int i;

	for (i = 0; i < allowed; i++) {
		ev_period(s->fd[0], RUN_UP);
		ev_spin(s->fd[s->race->member], RUN_UP * 3 / 4);
	}
	take_samples(s);
	s->samples = 0;
	ev_period(s->fd[0], s->period);
	ev_ioctl(s->fd[0], PERF_EVENT_IOC_RESET, 0);
}

/* Acts on a stopped thread; it waits with PAUSE, as both share a thread of the host. */
static struct {
	pthread_t thread;
	int wake[2];
	struct shot *shot;
	volatile bool armed, idle;
} actor;

static void take_steps(struct shot *s, const unsigned char *step)
{
	for (; *step; step++) {
		int fd = s->fd[*step & 0xf];

		switch (*step & ~0xf) {
		case ON(0):
			ev_on(fd);
			break;
		case OFF(0):
			ev_off(fd);
			break;
		case READ:
			first_count(s);
			break;
		case SPIN:
			spin(500);
			break;
		case SPFLT(0):
			knc_spflt(*step & 0xf);
			break;
		case TURN(0):
			other_turn(*step & 0xf);
			break;
		case PERIOD:
			ev_period(fd, NEVER);
			break;
		case OFFLINE:
			set_online(s->cpu, false);
		}
	}
}

static void *actor_main(void *unused)
{
	struct shot *s;
	char c;

	(void)unused;
	pin(cpus_online() - 2);
	must(td_present(), "no test device");
	while (read(actor.wake[0], &c, 1) == 1) {
		s = actor.shot;
		while (actor.armed && !td_read(s->cpu, TD_STOPPED))
			__builtin_ia32_pause();
		if (td_read(s->cpu, TD_STOPPED))
			take_steps(s, s->race->act);
		/* that did not interrupt the stopped thread: let it go on */
		if (td_read(s->cpu, TD_STOPPED))
			td_inject(s->cpu, TD_NOTHING, 0);
		actor.idle = true;
	}
	return NULL;
}

static void actor_arm(struct shot *s)
{
	actor.shot = s;
	actor.idle = false;
	actor.armed = true;
	pipe_wake(actor.wake);
}

static void actor_disarm(void)
{
	actor.armed = false;
	while (!actor.idle)
		__builtin_ia32_pause();
}

static void operation(struct shot *s)
{
	if (s->race->operation)
		s->race->operation(s);
	else
		take_steps(s, s->race->steps);
}

/*
 * The operation, with the overflow at the end of a period, or an action after @after
 * instructions. Returns its length: in events, or in instructions.
 */
static u64 operate(struct shot *s, u32 after)
{
	const struct race *r = s->race;
	u64 before;

	td_inject(s->cpu, TD_SKID, s->draw.skid);
	if (!r->action) {
		if (s->draw.nmi)
			td_inject(s->cpu, TD_NMI, s->draw.nmi);
		operation(s);
		td_inject(s->cpu, TD_NOTHING, 0);
		return first_count(s) - s->run_up;
	}
	before = td_read(s->cpu, TD_INJECTED);
	if (r->act)
		actor_arm(s);
	td_inject(s->cpu, r->action, after);
	operation(s);
	/* the actor uses the test device, which has one answer at a time */
	if (r->act)
		actor_disarm();
	after -= td_read(s->cpu, TD_INJECT_LEFT);
	td_inject(s->cpu, TD_NOTHING, 0);
	s->injected = td_read(s->cpu, TD_INJECTED) - before;
	return after;
}

static void fire(const struct race *r, struct shot *s, const struct draw *draw, u64 period,
		 u32 after)
{
	u64 lost, before;
	size_t i;

	*s = (struct shot){ .race = r, .cpu = sched_getcpu(), .period = period };
	if (draw)
		s->draw = *draw;
	open_first(s);
	for (i = 0; i < ARRAY_SIZE(r->also) && r->also[i]; i++)
		open_attr(s, attr_of(r->also[i]));
	if (r->open)
		r->open(s);
	if (r->throttles)
		use_up(s);

	lost = td_read(s->cpu, TD_LOST_EDGES);
	before = counted() - sum(s);
	if (!r->repeats) {
		ev_spin(s->fd[r->member], RUN_UP);
		s->run_up = first_count(s);
	}
	s->length = operate(s, after);
	if (r->exact)
		s->exact = ev_count(s->fd[1]);
	if (other.fd[0] >= 0)
		other_waits();
	check_idle(s);
	if (sum(s) != counted() - before) {
		wrong(s, "events counted %lld, the counters %lld", (long long)sum(s),
		      (long long)(counted() - before));
		s->miscounted = true;
	}
	/* Linux 2.6.38 stops the events of a group one after the other. */
	if (r->equals && !cards_kernel() && ev_count(s->fd[1]) != first_count(s))
		wrong(s, "two equal events have counted %llu and %llu", first_count(s),
		      ev_count(s->fd[1]));
	check_samples(s);
	if (td_read(s->cpu, TD_LOST_EDGES) != lost)
		wrong(s, "an edge was lost");
	if (r->check)
		r->check(s);
	if ((s->draw.skid || s->draw.nmi) && !r->throttles)
		check_next(s);
	close_all(s);
}

/* Lengths without an overflow: the least of eight, since a tick adds to them */
static struct shot measure(const struct race *r)
{
	struct shot best = { .run_up = NEVER, .length = NEVER }, s;
	int i;

	for (i = 0; i < 8; i++) {
		fire(r, &s, NULL, NEVER, FAR);
		/* fire_at() tries a late sample again, so it is no failure here, either */
		must(!*s.why || s.late, "without an overflow: %s", s.why);
		must(best.run_up == NEVER || s.exact == best.exact,
		     "without an overflow, counted %llu, then %llu", s.exact, best.exact);
		if (s.run_up < best.run_up)
			best.run_up = s.run_up;
		if (s.length < best.length)
			best.length = s.length;
		best.exact = s.exact;
	}
	return best;
}

/*
 * What is drawn depends on the seed, the sweep and the point alone; seed 0 draws nothing. One
 * point in four has an NMI while the PMU's interrupt is on its way, or a little later. By then
 * the kernel has executed more than was counted: before the event is on.
 */
static u64 seed, sweeps;
static bool nmis_known;

#define BEFORE_ON	1200

static struct draw draw_for(const struct race *r, u64 point)
{
	u64 state = seed ^ sweeps << 32 ^ point;
	struct draw d = {};

	if (!seed)
		return d;
	if (random_below(&state, 2))
		d.skid = random_below(&state, SKID_MAX + 1);
	if (!r->action && nmis_known && !random_below(&state, 4))
		d.nmi = 1 + point + random_below(&state, BEFORE_ON + SKID_MAX);
	if (r->mixed && random_below(&state, 2))
		d.overflow = random_below(&state, 2) || point <= BEFORE_ON ?
			     1 + random_below(&state, point) :
			     1 + point - random_below(&state, BEFORE_ON);
	return d;
}

/*
 * Returns false if each try had a tick in it. A late sample is tried again: where the host has
 * kept the guest waiting, the kernel writes to its log within the NMI.
 */
static bool fire_at(const struct race *r, struct shot *s, const struct shot *whole, u64 point)
{
	u64 run_up = whole->run_up, period = run_up + point;
	struct draw draw = draw_for(r, point);
	int tries, late = 0;

	if (r->action)
		period = draw.overflow ? run_up + draw.overflow : NEVER;
	for (tries = 0; tries < 10; tries++) {
		fire(r, s, &draw, period, point);
		if (s->exact != whole->exact) {
			wrong(s, "counted %llu, but %llu without an overflow", s->exact,
			      whole->exact);
			s->miscounted = true;
		}
		if (*s->why && (!s->late || ++late > 1))
			return true;
		if (!*s->why && s->run_up == run_up && (!r->action || s->injected) &&
		    (!r->throttles || s->throttles || !s->samples))
			return true;
	}
	return false;
}

/* Points @from to @to, both included; @to 0: to the end of the operation */
static void sweep(const struct race *r, u64 from, u64 to)
{
	u64 step = setting("TEST_STRIDE", 1) * (r->slow ? 8 : 1);
	u64 only = setting("TEST_POINT", 0);
	u64 points = 0, bad = 0, missed = 0, first_bad = 0, hits = 0, point, run_up;
	u64 late = 0, nmis = 0, miscounted = 0;
	struct shot whole = measure(r), s, first;

	seed = setting("TEST_SEED", 1);
	if (!sweeps++)
		note("TEST_SEED=%llu", seed);
	nmis_known = !access("/sys/module/knc_test_nmi", F_OK);
	if (r->fine)
		step = (step + 7) / 8;
	if (r->every && scale() == 1)
		step = 1;
	if (!to)
		to = whole.length;
	if (r->slow && scale() > 1 && step < to / SLOW_POINTS)
		step = to / SLOW_POINTS;
	if (only) {
		from = only;
		to = only;
	}
	for (point = from; point <= to; point += step) {
		points++;
		if (!fire_at(r, &s, &whole, point)) {
			/* the operation may have become longer, by lockdep's tables for example */
			run_up = whole.run_up;
			whole = measure(r);
			note("measured again: %llu, was %llu", whole.run_up, run_up);
			if (!fire_at(r, &s, &whole, point))
				missed++;
		}
		hits += r->action ? s.injected : s.samples;
		late += s.draw.skid && s.samples;
		nmis += !!s.draw.nmi;
		miscounted += s.miscounted;
		if (!*s.why)
			continue;
		if (bad < 4)
			note("TEST_POINT=%llu (late %u, NMI %u, overflow %llu): %s", point,
			     s.draw.skid, s.draw.nmi, s.draw.overflow, s.why);
		if (!bad++) {
			first_bad = point;
			first = s;
		}
	}
	note("at %llu of %llu instructions %llu interrupts, %llu late; %llu other NMIs", points,
	     whole.length, hits, late, nmis);
	note("%llu instructions not reached, %llu bad", missed, bad);
	must(points, "no points");
	must(!bad, "%llu of %llu points, %llu miscounted, first TEST_POINT=%llu TEST_SEED=%llu: %s",
	     bad, points, miscounted, first_bad, seed, first.why);
	must(only || missed <= points / 10, "%llu of %llu points were not reached", missed, points);
	must(only || hits >= points / 2, "%llu hits at %llu points", hits, points);
}

/* On the last hardware thread: it has the fewest other tasks. */
static void prepare(void)
{
	td_need();
	pin(cpus_online() - 1);
}

/* A test that is one sweep, or two */
#define RACE(name, sweep)	TEST_AT(name, 3600, __LINE__, { sweep; })

static void race(const struct race *r)
{
	prepare();
	sweep(r, 1, 0);
}

static const struct race disabling = {
	.steps = { ON(0), OFF(0), SPIN, ON(0), OFF(0) }, .every = true,
};

RACE("race-disable", race(&disabling))

static void open_user(struct shot *s)
{
	open_attr(s, user_attr(INSTRUCTIONS));
}

/* The counters run on after a read: the count in user mode stays the same. */
static const struct race reading = {
	.open = open_user, .steps = { ON(1), ON(0), READ, SPIN, READ, OFF(0), OFF(1) },
	.exact = true, .every = true,
};

RACE("race-read", race(&reading))

static void open_equal(struct shot *s)
{
	open_member(s, INSTRUCTIONS, s->fd[0]);
}

/* A group starts and stops at once, and a sample has the counts of all its events at one moment. */
static const struct race reading_group = {
	.open = open_equal, .steps = { ON(0), READ, READ, OFF(0) }, .equals = true, .every = true,
};

RACE("race-read-group", race(&reading_group))

/*
 * A sample of a page fault reads its group when its callchain is collected, and not yet
 * written. An overflow in that read is replayed, and collects another callchain.
 */
static int fault_fd;

static void open_faults(struct shot *s)
{
	const u64 type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_READ;
	struct perf_event_attr attr = software_attr(PERF_COUNT_SW_PAGE_FAULTS, .sample_period = 1,
						    .sample_type = type,
						    .read_format = PERF_FORMAT_GROUP);

	fault_fd = ring_open(&s->second, 1, attr, 0, -1, -1);
	open_member(s, BRANCHES, fault_fd);
}

static void fault_once(struct shot *s)
{
	static char *page;
	size_t size = getpagesize();

	if (!page)
		page = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(page != MAP_FAILED && !madvise(page, size, MADV_DONTNEED), "a page: %m");
	ev_on(fault_fd);
	ev_on(s->fd[0]);
	*(volatile char *)page = 1;
	ev_off(s->fd[0]);
	ev_off(fault_fd);
}

static void check_fault(struct shot *s)
{
	struct record rec;
	int samples = 0;

	while (ring_sample(&s->second, &rec)) {
		samples++;
		if (rec.nr_chain < 2 || rec.chain[0] != (u64)PERF_CONTEXT_USER ||
		    rec.chain[1] != rec.ip)
			wrong(s, "a page fault at %#llx has %llu callers, from %#llx, %#llx",
			      rec.ip, rec.nr_chain, rec.chain[0], rec.chain[1]);
	}
	if (!samples)
		wrong(s, "the page fault has no sample");
	close(fault_fd);
}

static const struct race faulting = {
	.open = open_faults, .operation = fault_once, .check = check_fault, .chains = true,
	.fine = true,
};

RACE("race-read-fault", race(&faulting))

/*
 * The same while the group is disabled and enabled: by its leader, by the member that
 * samples, and by the other one. Not while a member is opened or closed: perf core then
 * writes a sample of more counts than it has room for.
 */
TEST("race-skid-group", 3600)
{
	static const struct race of_leader = {
		.open = open_equal, .steps = { ON(0), OFF(0), SPIN, ON(0), OFF(0) },
		.equals = true, .every = true,
	};
	static const struct race of_member = {
		.steps = { ON(1), OFF(1), SPIN, ON(1), OFF(1) },
		.member = true, .equals = true, .every = true,
	};
	static const struct race member_leaves = {
		.steps = { ON(1), OFF(0), ON(0), OFF(1) }, .member = true, .every = true,
	};
	static const struct race others_leave = {
		.open = open_equal, .steps = { ON(0), OFF(1), ON(1), OFF(0) },
	};

	race(&of_member);
	race(&member_leaves);
	race(&others_leave);
	race(&of_leader);
}

static void sweep_throttled(const struct race *r, u64 from, u64 to)
{
	struct shot s;

	sample_limit(1);
	for (allowed = 0; allowed < 4; allowed++) {
		fire(r, &s, NULL, 2 * RUN_UP + 2000, 0);
		if (s.throttles)
			break;
	}
	must(allowed < 4, "no event is throttled");
	note("%d interrupts in a tick are allowed", allowed);
	sweep(r, from, to);
}

/* The overflow that throttles the event, while it is read */
TEST("race-read-throttle", 3600)
{
	static const struct race r = {
		.steps = { ON(0), READ, READ, OFF(0) }, .throttles = true, .every = true,
	};

	prepare();
	sweep_throttled(&r, 1, 0);
}

/*
 * An overflow right after a read, and another in the next read, just as late: both load the
 * same value, so that a read that compares counter values alone misses the second. The reads
 * are a period apart, of which the interrupt's instructions are a part.
 */
#define ROUNDS		200

static int calls;		/* before two reads; 0: one read alone */

static void call_and_read(struct shot *s)
{
	int round, i;

	ev_on(s->fd[0]);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < calls; i++)
			syscall(SYS_getppid);
		if (calls)
			first_count(s);
		first_count(s);
	}
	ev_off(s->fd[0]);
}

TEST("race-read-again", 3600)
{
	static const struct race r = {
		.operation = call_and_read, .repeats = true, .every = true,
	};
	u64 reads, apart;

	prepare();
	reads = measure(&r).length;
	calls = 5;
	apart = (measure(&r).length - reads) / ROUNDS;
	sweep(&r, apart + 300, apart + 600);
}

/* A new period while one has begun: the event is stopped, loaded and started. */
static void change_period(struct shot *s)
{
	ev_on(s->fd[0]);
	s->at_least = first_count(s);
	ev_period(s->fd[0], NEVER);
	s->at_most = first_count(s);
	if (s->race->throttles)
		spin(TICK);
	ev_off(s->fd[0]);
	/* Linux 2.6.38 ends the old period first. Asked last: it is a system call. */
	if (cards_kernel())
		s->at_most = 0;
}

static const struct race setting_period = { .operation = change_period };

RACE("race-period", race(&setting_period))

/*
 * The overflow that throttles the event, late, so that it is handled when the event is
 * stopped for its new period. perf core starts the event, and again at the next tick.
 */
TEST("race-period-throttle", 3600)
{
	static const struct race r = {
		.operation = change_period, .throttles = true, .every = true,
	};
	u64 length;

	prepare();
	length = measure(&setting_period).length;
	sweep_throttled(&r, length * 2 / 5, length * 3 / 5);
}

/*
 * The same, and the new period is over in the same tick. The first interrupt is so late that
 * the driver finds the overflow when it stops the event; the second one, too, or it is in time.
 */
#define AGAIN		(20000 * scale())
#define TOO_LATE	10000000

static void end_period_twice(struct shot *s)
{
	s->again = AGAIN;
	s->draw.skid = TOO_LATE;
	td_inject(s->cpu, TD_SKID, TOO_LATE);
	ev_on(s->fd[0]);
	s->at_least = first_count(s);
	ev_period(s->fd[0], AGAIN);
	s->at_most = first_count(s);
	td_inject(s->cpu, TD_SKID, s->race->late);
	/* two instructions each */
	spin(s->race->late ? AGAIN / 2 : 2 * AGAIN);
	ev_off(s->fd[0]);
}

TEST("race-period-again", 3600)
{
	static const struct race late = {
		.operation = end_period_twice, .late = TOO_LATE, .throttles = true, .fine = true,
	};
	static const struct race in_time = {
		.operation = end_period_twice, .throttles = true, .fine = true,
	};

	prepare();
	sweep_throttled(&late, 1, 200);
	sweep_throttled(&in_time, 1, 200);
}

static const struct race adding = {
	.also = { BRANCHES }, .steps = { ON(0), ON(1), OFF(1), OFF(0) },
};

RACE("race-add", race(&adding))

/* The event is moved from the counter given out first: the module's 1, x86's 0. */
static const struct race moving_from_0 = {
	.also = { L2_READ_MISS }, .steps = { ON(0), ON(1), OFF(1), OFF(0) },
};

static const struct race moving_from_1 = {
	.also = { L2_READ_MISS, CYCLES },
	.steps = { ON(2), ON(0), OFF(2), ON(1), OFF(1), OFF(0) },
};

RACE("race-move", race(&moving_from_0); race(&moving_from_1))

/* The interrupt of one event, around that of another event */
static void open_second(struct shot *s)
{
	struct perf_event_attr attr = attr_of(INSTRUCTIONS, .sample_period = SECOND_PERIOD,
					      .sample_type = PERF_SAMPLE_IP);

	s->fd[s->events++] = ring_open(&s->second, 1, attr, 0, -1, -1);
}

static const struct race overflowing = {
	.open = open_second, .steps = { ON(0), ON(1), SPIN, SPIN, OFF(1), OFF(0) },
	.second = true,
};

RACE("race-pmi", race(&overflowing))

static void other_start(bool counted)
{
	int i;
	char c;

	must_pipe(other.there);
	must_pipe(other.back);
	in_child(other.pid) {
		close(other.there[1]);
		while (read(other.there[0], &c, 1) == 1) {
			knc_spflt(c);
			pipe_wake(other.back);
		}
	}
	for (i = 0; counted && i < 2; i++)
		other.fd[i] = ev_start(attr_of(i ? BRANCHES : INSTRUCTIONS), other.pid, -1);
	other_waits();
}

static u64 strange_nmis(void)
{
	u64 n;

	if (!file_number("/sys/module/knc_test_nmi/parameters/taken", &n))
		skip("needs knc_test_nmi.ko, or the kernel complains of NMIs");
	return n;
}

static void race_by(const struct race *what, enum td_action action, const unsigned char *act)
{
	u64 nmis = strange_nmis(), sent;
	struct race r = *what;

	prepare();
	r.action = action;
	r.act = act;
	r.mixed = !act;
	r.every = false;
	sent = td_read(sched_getcpu(), TD_INJECTED);
	if (act) {
		must_pipe(actor.wake);
		must(!pthread_create(&actor.thread, NULL, actor_main, NULL), "no thread");
	}
	race(&r);
	if (act) {
		close(actor.wake[1]);
		pthread_join(actor.thread, NULL);
	}
	sent = td_read(sched_getcpu(), TD_INJECTED) - sent;
	nmis = strange_nmis() - nmis;
	if (action != TD_NMI)
		sent = 0;
	/* an NMI that comes together with a PMI is not seen as one */
	must(nmis == sent || ((r.second || r.mixed) && nmis < sent),
	     "%llu NMIs had no other handler, %llu were sent", nmis, sent);
}

/* With another task on the same hardware thread */
static void race_beside(bool counted, const struct race *r, enum td_action action)
{
	pin(cpus_online() - 1);
	other_start(counted);
	if (action)
		race_by(r, action, NULL);
	else
		race(r);
	close(other.there[1]);
	reap(other.pid);
}

/* Off and on by task switches */
static const struct race switching = {
	.open = open_user, .steps = { ON(0), ON(1), TURN(0), OFF(1), OFF(0) }, .exact = true,
};

RACE("race-switch", race_beside(false, &switching, TD_NOTHING))

/* The same in an SPFLT region, while the other task has the other preference */
static void open_spflt(struct shot *s)
{
	open_attr(s, spflt_attr(INSTRUCTIONS));
}

static const struct race switching_regions = {
	.open = open_spflt, .exact = true,
	.steps = { ON(0), ON(1), SPFLT(1), TURN(0), SPFLT(0), TURN(1), SPIN, OFF(1), OFF(0) },
};

RACE("race-spflt-switch", race_beside(false, &switching_regions, TD_NOTHING))

static void map_and_unmap(struct shot *s)
{
	struct perf_event_mmap_page *page;
	u64 before, after;
	uint64_t value;

	ev_on(s->fd[0]);
	ev_on(s->fd[1]);
	page = page_of(s->fd[1]);
	before = ev_count(s->fd[1]);
	if (!knc_rdpmc(page, &value)) {
		after = ev_count(s->fd[1]);
		if (value < before || value > after)
			wrong(s, "RDPMC: %lu, not from %llu to %llu", value, before, after);
	}
	munmap(page, getpagesize());
	ev_off(s->fd[1]);
	ev_off(s->fd[0]);
}

static const struct race mapping = { .also = { BRANCHES }, .operation = map_and_unmap };

RACE("race-map", race(&mapping))

/* An NMI of another source after each instruction: the handler changes nothing. */
static void race_nmis(const struct race *r)
{
	race_by(r, TD_NMI, NULL);
}

RACE("race-nmi-disable", race_nmis(&disabling))
RACE("race-nmi-read", race_nmis(&reading))
RACE("race-nmi-period", race_nmis(&setting_period))
RACE("race-nmi-add", race_nmis(&adding))
RACE("race-nmi-move", race_nmis(&moving_from_0); race_nmis(&moving_from_1))
RACE("race-nmi-pmi", race_nmis(&overflowing))
RACE("race-nmi-switch", race_beside(false, &switching, TD_NMI))
RACE("race-nmi-spflt", race_beside(false, &switching_regions, TD_NMI))
RACE("race-nmi-map", race_nmis(&mapping))

/* One event takes the place of another; and a switch to a task with events */
static const struct race replacing = {
	.also = { BRANCHES }, .steps = { ON(0), SPIN, OFF(0), ON(1), OFF(1), ON(0), OFF(0) },
};

RACE("race-replace", race(&replacing))
RACE("race-switch-counted", race_beside(true, &switching, TD_NOTHING))

/* Another thread acts on the events of this one, stopped anywhere in the kernel. */
static void race_stopped(const struct race *r, unsigned char step, unsigned char next)
{
	race_by(r, TD_STOP, (const unsigned char []){ step, next, 0 });
}

RACE("race-stop-read", race_stopped(&disabling, READ, 0))
RACE("race-stop-period", race_stopped(&reading, PERIOD, 0))

/* An event of this task, then one of this hardware thread */
static const struct race switching_beside = {
	.also = { BRANCHES }, .steps = { ON(0), OFF(0), SPIN, ON(0), OFF(0) },
};

RACE("race-stop-toggle", race_stopped(&switching_beside, ON(1), OFF(1)))

static void open_wide(struct shot *s)
{
	s->fd[s->events++] = ev_open(attr_of(L2_READ_MISS), -1, s->cpu, -1);
}

static const struct race reading_beside_wide = {
	.open = open_wide, .steps = { ON(0), READ, READ, OFF(0) },
};

RACE("race-stop-wide", race_stopped(&reading_beside_wide, ON(1), OFF(1)))

/* The hardware thread goes offline and its task is moved, while events come and go. */
static void come_and_go(struct shot *s)
{
	ev_on(s->fd[0]);
	open_spflt(s);
	ev_on(s->fd[1]);
	spflt_on();
	spin(100);
	spflt_off();
	ev_off(s->fd[1]);
	ev_off(s->fd[0]);
	map_and_unmap(s);
	/* an event that has counted nothing */
	open_attr(s, attr_of(BRANCHES));
	close(s->fd[--s->events]);
}

static void back_online(struct shot *s)
{
	set_online(s->cpu, true);
	pin(s->cpu);
}

static const struct race coming_and_going = {
	.operation = come_and_go, .check = back_online, .exact = true, .slow = true,
};

RACE("race-stop-offline", race_stopped(&coming_and_going, OFFLINE, 0))
