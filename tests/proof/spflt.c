// SPDX-License-Identifier: GPL-2.0-only
/*
 * A task's bit follows it: induction, as in proof.c, over the hook of spflt.c and all else that
 * moves a bit. There are two hardware threads and three tasks, which run on any of them, and end;
 * another one may have the PID then. While the hook of thread 0 moves bits, thread 1 switches.
 */
#include "kernel.h"
#undef this_cpu_ptr
#undef DEFINE_PER_CPU
#undef DECLARE_PER_CPU_ALIGNED
#undef READ_ONCE
#define this_cpu_ptr(p)		(&(*(p))[cpu])
#define this_cpu_read(member)	(knc_pmus[cpu].state)
#define DEFINE_PER_CPU(type, name) type name[2]
#define DECLARE_PER_CPU_ALIGNED(type, name) extern type name[2]
#define READ_ONCE(x)		({ elsewhere(); (x); })
#define DEFINE_MUTEX(name)	int name
#define mutex_lock(mutex)
#define mutex_unlock(mutex)
#define set_bit(bit, bits)	({ elsewhere(); *(bits) |= BIT(bit); })
#define clear_bit(bit, bits)	({ elsewhere(); *(bits) &= ~BIT(bit); })
#define test_bit(bit, bits)	({ elsewhere(); !!(*(bits) & BIT(bit)); })
#define vzalloc(size)		(bitmap = 0, nondet_bool() ? &bitmap : NULL)
#define smp_store_release(p, value) (*(p) = (value))	/* threads execute in turn */
#define COMPAT_HOOK_BEFORE_EVENTS before_events

enum { ENOMEM = 12, EOPNOTSUPP = 95, PERF_ATTACH_TASK = 4, BITS_PER_BYTE = 8, PID_MAX_LIMIT = 32 };

struct task_struct {
	int pid, exit_state;
	bool runs, wants;
};

enum operation { SWITCH, UPDATE, RESET, FIRST, INTERRUPT, PROGRAM };

static const enum operation operation = OPERATION;
static struct task_struct idle[2], task[3], *running[2];
static int cpu;
static unsigned long bitmap;
static u64 spflt[2];
static bool before_events, switching, switched;
static void elsewhere(void);
static void on_each_cpu(void (*f)(void *), void *data, int wait);
#include "knc_pmu.h"
#include "spflt.inc"

struct knc_cpu_pmu knc_pmus[2];

static void write_msr(u32 msr, u64 value)
{
	HOLDS(msr == 0x2c && !(value & ~(BIT(63) | 3)), "reserved bits are written as 0");
	HOLDS(!switching || !knc_spflt_counts_last(&knc_pmus[cpu]), "the task's counters are off");
	spflt[cpu] = value;
}

static u64 knc_rdmsr(u32 msr)
{
	return spflt[cpu];
}

/* A task that has ended, or runs, has no bit in the bitmap. */
static unsigned long wanted(void)
{
	unsigned long bits = 0;
	unsigned int i;

	for (i = 0; i < 3; i++)
		if (!task[i].exit_state && !task[i].runs && task[i].wants)
			bits |= BIT(task[i].pid);
	return bits;
}

static void rules_of_cpu(bool assume, int i)
{
	const struct knc_spflt_cpu *sc = &knc_spflt_cpu[i];
	const struct task_struct *t = running[i];

	RULE((spflt[i] & ~BIT(63)) == knc_pmus[i].filters, "the register has the filters");
	RULE(sc->taken || !sc->late, "what is late was taken");
	RULE(knc_pmus[i].state != KNC_OFF || (t == &idle[i] && !sc->taken), "OFF runs no program");
	RULE(t->exit_state || t->wants == (sc->taken && (sc->late ? sc->bit : spflt[i] >> 63)),
	     "the running task's bit is its own");
}

static void invariant(bool assume)
{
	RULE(bitmap == wanted(), "the bitmap has the bits of the tasks that do not run");
	rules_of_cpu(assume, 0);
	rules_of_cpu(assume, 1);
}

/* All CPUs are asked: IPI. */
static void on_each_cpu(void (*f)(void *), void *data, int wait)
{
	invariant(false);
}

static void switch_tasks(void)
{
	struct task_struct *next = nondet_bool() ? &idle[cpu] : &task[nondet_u32() % 3];
	struct task_struct *prev = running[cpu];

	ASSUME(!next->runs && next != prev && knc_pmus[cpu].state != KNC_OFF);
	next->runs = next != &idle[cpu];
	switching = true;
	knc_spflt_switch(NULL, false, prev, next, 0);
	switching = false;
	prev->runs = false;
	running[cpu] = next;
}

/* Hooks move different tasks' bits: it is enough that another one comes once, as a whole. */
static void elsewhere(void)
{
	if (operation != SWITCH || cpu || switched || nondet_bool())
		return;
	switched = true;
	cpu = 1;
	switch_tasks();
	cpu = 0;
	switching = true;
}

static struct perf_event *any_slot(struct perf_event *e)
{
	e->attr.config1 = nondet_bool();
	e->attach_state = nondet_bool() ? PERF_ATTACH_TASK : 0;
	return nondet_bool() ? e : NULL;
}

static void live_pids_differ(void)
{
	unsigned int i, j;

	for (i = 0; i < 3; i++)
		for (j = 0; j < i; j++)
			ASSUME(task[i].pid != task[j].pid || task[i].exit_state ||
			       task[j].exit_state);
}

/* Any state that satisfies the invariant */
static void begin(void)
{
	static struct perf_event events[4];
	unsigned int i;

	before_events = nondet_bool();
	bitmap = nondet_u32() & 0xe;
	knc_spflt_bits = &bitmap;
	for (i = 0; i < 3; i++) {
		task[i].pid = 1 + nondet_u32() % 3;
		task[i].exit_state = nondet_bool();
		task[i].wants = nondet_bool();
	}
	live_pids_differ();
	for (i = 0; i < 2; i++) {
		running[i] = nondet_bool() ? &idle[i] : &task[nondet_u32() % 3];
		ASSUME(!running[i]->runs);
		running[i]->runs = running[i] != &idle[i];
		spflt[i] = nondet_u64();
		knc_pmus[i].state = nondet_u32() % (KNC_RUN + 1);
		knc_pmus[i].filters = nondet_u32() & 3;
		knc_pmus[i].event[0] = any_slot(&events[2 * i]);
		knc_pmus[i].event[1] = any_slot(&events[2 * i + 1]);
		knc_spflt_cpu[i].taken = nondet_bool();
		knc_spflt_cpu[i].late = nondet_bool();
		knc_spflt_cpu[i].bit = nondet_bool();
	}
	invariant(true);
}

int main(void)
{
	struct knc_spflt_cpu *sc = &knc_spflt_cpu[0];
	struct task_struct *t, *other = &task[nondet_u32() % 3];
	struct perf_event event = { .attr.config1 = nondet_bool() };
	bool first, hooked;
	u8 filters;
	int err;
	u32 pid;

	begin();
	t = running[0];
	switch (operation) {
	case SWITCH:
		switch_tasks();
		HOLDS(!sc->late || before_events, "a bit is late if the hook comes first");
		break;
	case UPDATE:
		ASSUME(knc_pmus[0].state == KNC_STOP);
		filters = knc_pmus[0].filters;
		knc_spflt_update(&knc_pmus[0]);
		HOLDS(!sc->late, "no counter runs while a bit is late");
		for (pid = 0; pid < 2; pid++)
			HOLDS(!knc_pmus[0].event[pid] || (spflt[0] >> pid & 1) ==
			      knc_pmus[0].event[pid]->attr.config1, "a filter for each such event");
		for (pid = 0; pid < 2; pid++)
			HOLDS(knc_pmus[0].event[pid] || !((spflt[0] ^ filters) >> pid & 1),
			      "a counter without an event keeps its filter");
		break;
	case RESET:
		ASSUME(t == &idle[0]);
		knc_spflt_reset(&knc_pmus[0]);
		break;
	case FIRST:	/* or a later one, which changes nothing */
		first = nondet_bool();
		hooked = nondet_bool();
		knc_spflt_hooked = hooked;
		if (first) {
			bitmap = 0;
			knc_spflt_bits = NULL;
			ASSUME(!sc->taken && !knc_spflt_cpu[1].taken);
			ASSUME(!task[0].wants && !task[1].wants && !task[2].wants);
		}
		err = knc_spflt_event_init(&event);
		if (!event.attr.config1)
			HOLDS(!err && !knc_spflt_bits == first, "an event without spflt");
		else if (!hooked)
			HOLDS(err == -EOPNOTSUPP, "no event without the hook");
		else
			HOLDS(err == (knc_spflt_bits ? 0 : -ENOMEM), "the first event");
		break;
	case INTERRUPT:	/* of the first event */
		ASSUME(sc->taken || !knc_pmus[0].filters);
		knc_spflt_begin_cpu(NULL);
		HOLDS(sc->taken || knc_pmus[0].state == KNC_OFF, "from now on bits are followed");
		break;
	case PROGRAM:	/* It executes SPFLT, ends, forks, or executes another in a thread. */
		ASSUME(t != &idle[0] && !t->exit_state && sc->taken && !sc->late);
		t->wants = nondet_bool();
		spflt[0] = knc_pmus[0].filters | (u64)t->wants << 63;
		pid = t->pid;
		if (nondet_bool()) {
			t->exit_state = 1;
		} else if (other->exit_state && nondet_bool()) {
			t->pid = other->pid;
			other->pid = pid;
		} else if (other->exit_state && !other->runs) {
			*other = (struct task_struct){ .pid = 1 + nondet_u32() % 3 };
			live_pids_differ();
		}
		break;
	}
	invariant(false);
	REACHED(true);
	return 0;
}
