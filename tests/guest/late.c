// SPDX-License-Identifier: GPL-2.0-only
/*
 * Late PMU interrupts, as on a processor: they come within a kernel entry. Samples have the
 * place and the registers of the program at that time.
 */
#include "lib.h"

#include <asm/perf_regs.h>
#include <linux/hw_breakpoint.h>

#define STACK		64
#define LATEST		60

#define REG(name)	(1ULL << PERF_REG_X86_##name)

/* In the order of the sample: by their bits */
enum { BX, DI, BP, SP, IP, R12, R13, R14, R15, REGS };
static const char * const reg_names[REGS] = {
	"bx", "di", "bp", "sp", "ip", "r12", "r13", "r14", "r15",
};

/* loops.S */
#define DECLARE_PLACE(name)						\
	void name(void *page, char *first_stack, char *second_stack);	\
	extern char name##_run[], name##_site[], name##_after[], name##_end[]

DECLARE_PLACE(place_syscall);
DECLARE_PLACE(place_fault);
DECLARE_PLACE(place_int3);
DECLARE_PLACE(place_debug);

void place_loop(u64 n);
extern char place_loop_lo[], place_loop_hi[];

struct place {
	const char *name;
	void (*go)(void *page, char *first_stack, char *second_stack);
	char *run, *site, *after, *end;
	/* the addresses that a sample from within the kernel may have */
	char *inside, *or_inside;
};

#define PLACE(text, label, in, or_in)						\
	{									\
		.name = text, .go = label, .run = label##_run,			\
		.site = label##_site, .after = label##_after, .end = label##_end, \
		.inside = label##_##in, .or_inside = label##_##or_in,		\
	}

static const struct place at_syscall = PLACE("SYSCALL", place_syscall, after, after);
/* The instruction is executed again; a sample after it is from behind the fault. */
static const struct place at_fault = PLACE("page fault", place_fault, site, after);
/* INT3 is a trap: the address is behind it, or INT3 itself before it is executed. */
static const struct place at_int3 = PLACE("INT3", place_int3, after, site);
/* A breakpoint raises #DB, for which the processor changes to another stack. */
static const struct place at_debug = PLACE("#DB", place_debug, site, after);

/* How many instructions before the entry the overflow is */
#define BEFORE	5

#define STACK_SIZE	65536
static char *page, *stacks[2];

static bool has_regs(void)
{
	return !kernel_before(3, 7);
}

static int open_sampling(u64 period, struct ring *r, unsigned int pages)
{
	struct perf_event_attr attr = sampling_attr(INSTRUCTIONS, period, PERF_SAMPLE_IP);
	int fd;

	if (has_regs()) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr.sample_regs_user = REG(BX) | REG(DI) | REG(BP) | REG(SP) | REG(IP) | REG(R12) |
					REG(R13) | REG(R14) | REG(R15);
		attr.sample_stack_user = STACK;
	}
	fd = ring_open(r, pages, attr, 0, -1, -1);
	r->regs = REGS;
	return fd;
}

static void on_trap(int sig)
{
	(void)sig;
}

static void prepare(void)
{
	int i;

	td_need();
	pin(cpus_online() - 1);
	page = shared(getpagesize());
	for (i = 0; i < 2; i++) {
		stacks[i] = shared(STACK_SIZE);
		memset(stacks[i], i ? 0xb5 : 0xa5, STACK_SIZE);
	}
	must(signal(SIGTRAP, on_trap) != SIG_ERR, "signal: %m");
}

static char *sp_of(int which)
{
	return stacks[which] + STACK_SIZE / 2;
}

/* The first sample from a place; false if there is none */
static bool sample_at(const struct place *p, u64 period, u32 skid, struct record *rec)
{
	struct ring r;
	bool found;
	int fd;

	madvise(page, getpagesize(), MADV_DONTNEED);
	fd = open_sampling(period, &r, 1);
	td_inject(sched_getcpu(), TD_SKID, skid);
	ev_on(fd);
	p->go(page, sp_of(0), sp_of(1));
	ev_off(fd);
	td_inject(sched_getcpu(), TD_NOTHING, 0);
	found = ring_sample(&r, rec);
	ring_close(&r, fd);
	return found;
}

/* The period that overflows BEFORE instructions before the entry */
static u64 period_for(const struct place *p)
{
	struct record rec;
	u64 period;

	for (period = 20; period < 2000; period += 20)
		if (sample_at(p, period, 0, &rec) && rec.ip > (u64)p->run &&
		    rec.ip < (u64)p->site)
			return period + (u64)p->site - BEFORE - rec.ip;
	fail("%s: no period has its overflow there", p->name);
}

struct sweep {
	/* the next sample */
	const char *where;
	u32 skid;
	u64 samples, without_regs, bad;
	char first_bad[256];
};

static void bad(struct sweep *s, const char *why)
{
	if (!s->bad++)
		snprintf(s->first_bad, sizeof(s->first_bad), "%s, %u late: %s", s->where,
			 s->skid, why);
}

/* Checks that all registers have the values of the place, if the sample has any. */
static void check_regs(const struct record *rec, struct sweep *s)
{
	u64 want[REGS] = {
		[BX] = 0xb0, [DI] = (u64)page, [BP] = 0xb1, [SP] = (u64)sp_of(1), [IP] = rec->ip,
		[R12] = 0xb2, [R13] = 0xb3, [R14] = 0xb4, [R15] = 0xb5,
	};
	unsigned int i;

	if (!has_regs() || !rec->abi)
		return;
	for (i = 0; i < REGS && rec->regs[i] == want[i]; i++)
		;
	if (i < REGS)
		bad(s, text_of("%s is %#llx, not %#llx", reg_names[i], rec->regs[i], want[i]));
	else if (!rec->stack_size)
		bad(s, "no stack");
	else if (memcmp(rec->stack, sp_of(1), STACK))
		bad(s, "another stack");
}

static void check_place(const struct place *p, u64 period, u32 skid, struct sweep *s)
{
	struct record rec;
	int tries;
	char *ip;

	s->where = p->name;
	s->skid = skid;
	/* A timer's interrupt between the overflow and the entry comes once. */
	for (tries = 0; tries < 3; tries++) {
		if (!sample_at(p, period, skid, &rec)) {
			bad(s, "no sample");
			return;
		}
		ip = (char *)rec.ip;
		if (skid <= BEFORE || ip < p->site - BEFORE || ip >= p->site)
			break;
	}
	s->samples++;
	s->without_regs += !rec.abi;
	if (skid <= BEFORE && ip != p->site - BEFORE + skid)
		bad(s, text_of("wrong instruction: ip is %+td from the entry", ip - p->site));
	else if (skid > BEFORE && ip != p->inside && ip != p->or_inside &&
		 (ip < p->after || ip > p->end))
		bad(s, text_of("wrong place: ip is %+td from the entry", ip - p->site));
	else
		check_regs(&rec, s);
}

/* How late an interrupt is when the program has left the kernel */
static u32 first_outside(const struct place *p, u64 period)
{
	u32 inside = BEFORE + 1, outside = 1 << 16;
	struct record rec;

	while (outside - inside > 1) {
		u32 middle = (inside + outside) / 2;
		bool in = true;
		int tries;

		/* Now and then one way through the kernel is longer than the others. */
		for (tries = 0; in && tries < 3; tries++)
			in = sample_at(p, period, middle, &rec) && rec.ip >= (u64)p->run &&
			     rec.ip <= (u64)p->after;
		*(in ? &inside : &outside) = middle;
	}
	return outside;
}

static void sweep_entry(const struct place *p, struct sweep *s)
{
	u64 period = period_for(p);
	u32 skid;

	for (skid = 0; skid <= LATEST + BEFORE; skid++)
		check_place(p, period, skid, s);
}

/* The last instructions of the kernel, and the first ones after it */
static void sweep_exit(const struct place *p, struct sweep *s)
{
	u64 period = period_for(p);
	u32 end = first_outside(p, period), skid;

	note("%s: the kernel is left %u instructions after the overflow", p->name, end);
	for (skid = end > 80 ? end - 80 : 0; skid < end + 10; skid++)
		check_place(p, period, skid, s);
}

/* An overflow that is found as the event stops has the address that ioctl() returns to. */
static void check_stop(struct sweep *s)
{
	extern char __executable_start[], etext[];
	struct record rec;

	s->where = "stop";
	s->skid = 1 << 20;
	s->samples++;
	if (!sample_at(&at_syscall, 200, s->skid, &rec))
		bad(s, "no sample");
	else if (rec.ip < (u64)__executable_start || rec.ip >= (u64)etext)
		bad(s, text_of("ip is %#llx, outside the program", rec.ip));
}

static void judge(const struct sweep *s)
{
	note("%llu samples, %llu of them without registers, %llu bad", s->samples,
	     s->without_regs, s->bad);
	must(!s->bad, "%llu of %llu samples, the first: %s", s->bad, s->samples, s->first_bad);
}

/* A timer interrupts the loop, whose iteration is in a register, and follows from the count. */
#define LOOPS		200000
#define LOOP_LENGTH	20
#define LOOP_PERIOD	1009
#define TOLERANCE	8

static void sweep_timer(u32 skid, struct sweep *s)
{
	int timer = ev_open(software_attr(PERF_COUNT_SW_CPU_CLOCK, .sample_period = 20000),
			    0, -1, -1), fd;
	u64 count = 0, offset = 0, at;
	struct record rec;
	struct ring r;

	s->where = "timer";
	s->skid = skid;
	fd = open_sampling(LOOP_PERIOD, &r, 512);
	td_inject(sched_getcpu(), TD_SKID, skid);
	ev_on(timer);
	ev_on(fd);
	place_loop(LOOPS);
	ev_off(fd);
	ev_off(timer);
	td_inject(sched_getcpu(), TD_NOTHING, 0);
	while (ring_next(&r, &rec)) {
		must(rec.type != PERF_RECORD_LOST, "samples lost");
		if (rec.type != PERF_RECORD_SAMPLE)
			continue;
		count += LOOP_PERIOD;
		/* samples from before and after the loop */
		if (count < LOOP_PERIOD + 200 || count > LOOP_LENGTH * (LOOPS - 10))
			continue;
		s->samples++;
		s->without_regs += !rec.abi;
		if (rec.ip < (u64)place_loop_lo || rec.ip >= (u64)place_loop_hi) {
			bad(s, text_of("ip is %#llx, outside the loop", rec.ip));
			continue;
		}
		if (!has_regs() || !rec.abi)
			continue;
		/* from the event's start to the loop's */
		at = LOOPS - rec.regs[R12];
		if (!offset)
			offset = count / LOOP_LENGTH - at + 1000;
		at += offset - 1000;
		if (at > count / LOOP_LENGTH + TOLERANCE || at + TOLERANCE < count / LOOP_LENGTH)
			bad(s, text_of("r12 is of iteration %llu, not %llu", at,
				       count / LOOP_LENGTH));
		else if (rec.regs[IP] != rec.ip)
			bad(s, "the register ip is not the address of the sample");
	}
	must(count > LOOP_PERIOD * 1000, "%llu samples", count / LOOP_PERIOD);
	ring_close(&r, fd);
	close(timer);
}

TEST("sample-entry", 240)
{
	struct sweep s = {};
	u32 skid;

	prepare();
	sweep_entry(&at_fault, &s);
	sweep_entry(&at_int3, &s);
	if (has_regs()) {
		ev_open(any_attr(PERF_TYPE_BREAKPOINT, 0, .bp_type = HW_BREAKPOINT_X,
				 .bp_addr = (u64)place_debug_site, .bp_len = sizeof(long),
				 .disabled = 0), 0, -1, -1);
		sweep_entry(&at_debug, &s);
	}
	for (skid = 0; skid <= LATEST; skid += 4)
		sweep_timer(skid, &s);
	judge(&s);
}

TEST("sample-syscall-regs", 120)
{
	struct sweep s = {};

	prepare();
	sweep_entry(&at_syscall, &s);
	check_stop(&s);
	/* by SYSRET */
	sweep_exit(&at_syscall, &s);
	/* by IRET */
	sweep_exit(&at_fault, &s);
	judge(&s);
}

/* Linux 2.6.38, tests/uos/knc_test_nmi.c: NMIs that RAS keeps, machine checks */
#define FOREIGN_PERIOD	5003

#define TEST_NMI	"/sys/module/knc_test_nmi/parameters/"

static void nmi_parameter_set(const char *name, unsigned int value)
{
	const char *path = text_of(TEST_NMI "%s", name);

	if (access(path, F_OK))
		skip("needs the cards' kernel, and its knc_test_nmi.ko");
	must_write(path, text_of("%u", value));
}

static unsigned int nmi_parameter(const char *name)
{
	return must_number(text_of(TEST_NMI "%s", name));
}

/* A lost NMI costs samples only until the event stops, is read, or a tick comes. */
TEST("nmi-swallowed", 60)
{
	struct tally t = {};
	unsigned int many;
	struct ring r;
	int fd;

	nmi_parameter_set("swallow", 0);
	prepare();
	for (many = 1; many <= 3; many++) {
		must_sample("before");
		fd = open_sampling(FOREIGN_PERIOD, &r, 8);
		nmi_parameter_set("swallow", many);
		measured_spin(fd, FOREIGN_PERIOD * 10 + 500);
		must(nmi_parameter("swallow") < many, "no NMI came");
		nmi_parameter_set("swallow", 0);
		ring_tally(&r, &t, NULL, NULL);
		note("%u NMIs swallowed: %llu of 20 samples meanwhile", many, t.samples);
		memset(&t, 0, sizeof(t));
		measured_spin(fd, FOREIGN_PERIOD * 10);
		ring_tally(&r, &t, NULL, NULL);
		samples_near(t.samples, 20, "stopped, and on again");
		ring_close(&r, fd);
		must_sample("a new event");
	}
}

/* A machine check reaches its own handlers, whether or not an overflow is pending. */
TEST("machine-check", 60)
{
	struct tally t = {};
	int cpu, fd, tries;
	u64 pending = 0;
	struct ring r;

	nmi_parameter_set("machine_check", 1);
	must(!nmi_parameter("machine_check"),
	     "no overflow is pending, and the driver takes a machine check");
	prepare();
	cpu = sched_getcpu();
	fd = open_sampling(FOREIGN_PERIOD, &r, 8);
	td_inject(cpu, TD_SKID, 100000000);
	/* A task switch in between handles the overflow. */
	for (tries = 0; tries < 10 && !pending; tries++) {
		ev_off(fd);
		ev_on(fd);
		spin(FOREIGN_PERIOD);
		must(td_read(cpu, TD_GLOBAL_STATUS), "no overflow is pending");
		nmi_parameter_set("machine_check", 1);
		must(!nmi_parameter("machine_check"),
		     "an overflow is pending, and the driver takes a machine check");
		pending = td_read(cpu, TD_GLOBAL_STATUS);
	}
	must(pending, "the overflow is not pending any more");
	td_inject(cpu, TD_NOTHING, 0);
	spin(1);
	ev_off(fd);
	ring_tally(&r, &t, NULL, NULL);
	must(t.samples, "the overflow has no sample");
	ring_close(&r, fd);
	must_sample("afterwards");
}
