// SPDX-License-Identifier: GPL-2.0-only
/*
 * All that a guest can reach: random instructions, registers and devices, which QEMU
 * must survive. The same seed does the same. First the random instructions are those
 * of ring 3, which has a sandbox. Then they are those of ring 0, and any access to the
 * console's header, until they have destroyed this program.
 */
#include "bare.h"

#define MOST_CYCLES	600	/* of a round */
#define SMM_ENTRY	0x38000
#define RSM		0xaa0f
#define USER_PAGE	BIT(2)
#define BREAKPOINT	0xcc
#define HLT		0xf4
#define NOP		0x90

extern u64 pd[4 * 512];
void trap_return(void);

/* One for each CPU, so that at least CPU 0 does the same in each run */
u64 seeds[MAX_CPUS];

static struct regs start;	/* of what is executed */
static u64 back_at, back_rsp;
static volatile int away;	/* it is executing */

u64 any(void)
{
	u64 *seed = &seeds[this_cpu()];

	*seed = *seed * 6364136223846793005ul + 1442695040888963407ul;
	return *seed >> 16 ^ *seed << 48;
}

/* Half of the events exist; all other bits are random. */
u64 any_select(void)
{
	static const u32 events[] = {
		EV_INSTRUCTIONS, EV_CYCLES, EV_DATA_READ_OR_WRITE,
		EV_DATA_MISS, EV_SNP_HITM, EV_PIPELINE_FLUSHES, EV_MISPREDICTED,
		EV_FE_STALLED, EV_L2_VICTIM, EV_CODE_MISS,
	};
	u64 r = any(), event = any() & 0xffff;

	if (r & 1)
		event = events[(r >> 8) % ARRAY_SIZE(events)];
	return (any() & 0xfff70000) | event | SEL_EN | SEL_OS;
}

u64 any_value(void)
{
	static const u64 some[] = { 0, -1ul, 0xc0de, (u64)pages, PAGED_AREA, APIC };

	switch (any() & 3) {
	case 0:
		return any();
	case 1:
		return BIT(any() & 63);
	case 2:
		return any() & any() & any() & 0xffff;
	default:
		return some[any() % ARRAY_SIZE(some)];
	}
}

/* Each interrupt and exception ends what is executed. */
static void go_back(struct regs *r)
{
	apic_write(APIC_EOI, 0);
	if (!away)
		return;
	away = 0;
	r->rip = back_at;
	r->rsp = back_rsp;
	r->cs = KERNEL_CS;
	r->ss = KERNEL_DS;
	r->rflags = 2;
}

/* The code at PAGED_AREA, with the registers of start */
static void __attribute__((noinline)) execute(u64 cs, u64 ss, u64 flags)
{
	start.rip = PAGED_AREA;
	start.cs = cs;
	start.ss = ss;
	start.rflags = flags | 2;
	asm volatile("pushq %%rbp\n\t"
		     "movq $1f, %0\n\t"
		     "movq %%rsp, %1\n\t"
		     "movl $1, %2\n\t"
		     "movq $start, %%rsp\n\t"
		     "jmp trap_return\n"
		     "1:\n\t"
		     "popq %%rbp"
		     : "=m"(back_at), "=m"(back_rsp), "=m"(away)
		     : : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10",
			 "r11", "r12", "r13", "r14", "r15", "memory", "cc");
}

/* An instruction in ring 0, and a breakpoint */
static void execute_one(u64 insn)
{
	*(volatile u64 *)pages[0] = insn;
	execute(KERNEL_CS, KERNEL_DS, 0);
}

/* RDMSR or WRMSR; only the APIC does not move. */
static void registers(void)
{
	static const u32 ranges[][2] = {
		{ 0, 0x30 }, { 0x170, 0x30 }, { 0x200, 0x100 }, { 0x400, 0x80 },
		{ 0xc0000080, 5 }, { 0xc0000100, 4 },
	};
	const u32 *range = ranges[any() % ARRAY_SIZE(ranges)];

	start.rcx = any() & 15 ? range[0] + any() % range[1] : any_value();
	start.rax = any_value();
	start.rdx = any_value();
	if (start.rcx != MSR_APIC_BASE)
		execute_one(any() & 1 ? 0xcc320f : 0xcc300f);
}

/* MOV of 1, 2, 4 or 8 bytes between %rax and (%rdi) */
static void device(int some)
{
	static const u8 prefixes[] = { 0x3e /* no change */, 0x66, 0x3e, 0x48 };
	const struct window *w = &windows[any() % some];
	u32 size = any() & 3, opcode = (size ? 0x89 : 0x88) | (any() & 2);

	start.rdi = w->base + (any() % w->size & ~((any() & 1) << size));
	start.rax = any_value();
	execute_one(0xcc070000 | opcode << 8 | prefixes[size]);
}

static u8 *instruction(u8 *p)
{
	static const u8 prefixes[] = { 0x66, 0xf2, 0xf3, 0x48, 0x65, 0x67, 0xf0, 0x4d };
	/* After 0F: those that the emulator adds or changes, in any form */
	static const u8 ours[] = {
		0x01, 0x05, 0x18, 0x28, 0x29, 0x30, 0x31, 0x32, 0x33, 0x92, 0x93,
		0xae, 0xb8, 0xbc, 0xbd, 0xc7, 0xd0, 0xd4,
	};

	while (!(any() & 3))
		*p++ = prefixes[any() & 7];
	switch (any() & 7) {
	case 0:
	case 1:
		*p++ = 0x0f;
		break;
	case 2:
		*p++ = 0xc5; /* VEX */
		*p++ = 0xf8 | any();
		break;
	case 3:
		*p++ = 0xc4;
		*p++ = 0xe0 | any();
		*p++ = 0x78 | any();
		break;
	case 4:
		*p++ = 0x62; /* MVEX */
		*p++ = 0xf1 + (any() & 1);
		*p++ = any() & 1 ? 0x78 : any();
		*p++ = any() & 1 ? 0x08 : any();
	}
	*p++ = any() & 1 ? ours[any() % ARRAY_SIZE(ours)] : any();
	for (u32 n = any() & 7; n; n--)
		*p++ = any();
	return p;
}

/* They end with a breakpoint, or at the latest with a PMI: also a REP of 2^64 rounds. */
static void instructions(u64 cs, u64 ss)
{
	u8 *p = pages[0];

	for (u64 *reg = &start.r15; reg <= &start.rax; reg++)
		*reg = any() & 1 ? PAGED_AREA + any() % sizeof(pages) : any_value();
	start.rsp = PAGED_AREA + any() % sizeof(pages);
	for (u32 n = any() & 15; n; n--)
		p = instruction(p);
	for (u32 n = 0; n < 16; n++)
		*p++ = BREAKPOINT;
	for (p = pages[0]; cs == KERNEL_CS && p < pages[1]; p++)
		if (*p == HLT)
			*p = NOP;
	apic_write(APIC_SVR, 0x1ff);
	overflow_after(MOST_CYCLES, EV_CYCLES | SEL_USR | SEL_OS | SEL_INT, LVT_NMI);
	wrmsr(MSR_SEL1, any_select() | SEL_USR);
	wrmsr(MSR_GLOBAL, 3);
	execute(cs, ss, any() & any() & any() & 0xfd5);
	wrmsr(MSR_GLOBAL, 0);
}

/* What all interrupts and exceptions come to is @handler. */
static void sandbox(trap_handler *handler)
{
	seeds[0] = number_of("seed=");
	own_stacks();
	for (u32 i = 0; i < ARRAY_SIZE(handlers); i++)
		handlers[i] = handler;
	for (u32 i = 0; i < 4 * 512; i++)
		if (i != PAGED_AREA >> 21)
			pd[i] &= ~USER_PAGE;
	for (u32 i = 0; i < ARRAY_SIZE(pages); i++)
		map_page(i, 1);
}

SUITE(test_fuzz, "fuzz")
{
	u64 cr0 = read_cr0(), cr3 = read_cr3(), cr4 = read_cr4(), rounds = number_of("rounds=");

	sandbox(go_back);
	/* Else zeros would be executed there, with the PMI masked. */
	*(volatile u16 *)SMM_ENTRY = RSM;
	for (u64 i = 0; i < rounds; i++) {
		registers();
		device(windows_quiet);
		instructions(USER_CS, USER_DS);
	}
	result(1, "fuzz: all rounds of ring 3", "");

	for (u64 i = 0; i < rounds; i++) {
		/* What instructions of ring 0 have changed */
		write_cr0(cr0);
		write_cr3(cr3);
		write_cr4(cr4);
		asm volatile("movq %0, %%dr7; lgdt gdt_pointer" : : "r"(0x400ul));
		device(windows_all);
		instructions(KERNEL_CS, KERNEL_DS);
	}
	quit(0);
}

/* What a program of ring 3 computes does not depend on whether it is sampled. */
#define DATA		(pages + 8)
#define DATA_SIZE	512

static struct regs end;
static u64 period;

static void keep_end(struct regs *r)
{
	if (away)
		end = *r;
	go_back(r);
}

static void next_sample(struct regs *r)
{
	r->rflags &= ~BIT(16); /* RF, which QEMU 10 sets for an NMI */
	wrmsr(MSR_CNT0, -period & (WRAP - 1));
	wrmsr(MSR_OVF, 1);
	apic_write(APIC_LVTPC, LVT_NMI);
}

/*
 * An instruction with an operand in DATA, which may use the flags and changes them. No BT, and no
 * SHLD by more bits than there are: the flags that they leave undefined depend on where QEMU's
 * block begins.
 */
static u8 *on_memory(u8 *p)
{
	/* After 0F; opcode, bits of it that vary; least ModRM.reg, which ones; immediate */
	static const struct {
		u8 after, opcode, vary, reg, regs, immediate;
	} kinds[] = {
		{ 1, 0x90, 15, 0, 8, 0 },		/* setcc */
		{ 0, 0xd0, 3, 0, 8, 0 },		/* rotate, shift */
		{ 0, 0xc0, 1, 2, 2, 1 },	/* rcl, rcr */
		{ 0, 0x00, 0x3b, 0, 4, 0 },	/* add, or, adc ... cmp */
		{ 1, 0xc0, 1, 0, 4, 0 },		/* xadd */
		{ 1, 0xb0, 1, 0, 4, 0 },		/* cmpxchg */
		{ 0, 0xfe, 1, 0, 2, 0 },		/* inc, dec */
		{ 0, 0xf6, 1, 2, 2, 0 },		/* not, neg */
		{ 1, 0xa4, 8, 0, 4, 1 },	/* shld, shrd */
		{ 0, 0xff, 0, 6, 1, 0 },		/* push */
		{ 0, 0xdb, 0, 5, 1, 0 },		/* fldt */
		{ 0, 0xdb, 0, 7, 1, 0 },		/* fstpt */
	};
	u64 r = any(), i = r % (ARRAY_SIZE(kinds) + 8);

	i = i < ARRAY_SIZE(kinds) ? i : i % 3;
	if (r & BIT(20))
		*p++ = r & BIT(21) ? 0x66 : 0x48;
	if (kinds[i].after)
		*p++ = 0x0f;
	*p++ = kinds[i].opcode | (r >> 24 & kinds[i].vary);
	*p++ = (kinds[i].reg + (r >> 32) % kinds[i].regs) << 3 | 4; /* disp32 */
	*p++ = 0x25;
	*(u32 *)p = PAGED_AREA + 8 * 4096 + (r >> 40) % (DATA_SIZE - 16);
	p += 4;
	if (kinds[i].immediate)
		*p++ = r >> 50 & 15;
	return p;
}

/* A sum of all that the program leaves, sampled each @after events, or counted (0) */
static u64 run_sampled(const u8 *data, u64 sel, u64 after)
{
	u64 sum = 0;

	for (u32 i = 0; i < DATA_SIZE; i++)
		DATA[0][i] = data[i];
	for (u64 *w = (u64 *)pages[15]; w < (u64 *)pages[16]; w++)
		*w = 0;
	pmu_quiet();
	period = after;
	if (sel) {
		wrmsr(MSR_SEL0, sel | SEL_USR | SEL_EN | (after ? SEL_INT : 0));
		next_sample(&start);
		wrmsr(MSR_GLOBAL, 1);
	}
	execute(USER_CS, USER_DS, 0);
	wrmsr(MSR_GLOBAL, 0);
	for (u64 *reg = &end.r15; reg <= &end.rip; reg++)
		sum = sum * 31 + *reg;
	for (u32 i = 0; i < DATA_SIZE; i++)
		sum = sum * 31 + DATA[0][i];
	for (u64 *w = (u64 *)pages[15]; w < (u64 *)pages[16]; w++)
		sum = sum * 31 + *w;
	return sum * 31 + (end.rflags & 0x8d5);
}

SUITE(test_same, "same")
{
	/* An interrupt is a pipeline flush itself. */
	static const u16 events[] = {
		EV_DATA_READ, EV_DATA_WRITE, EV_DATA_PAGE_WALK, EV_DATA_READ_MISS,
		EV_DATA_WRITE_MISS, EV_WRITTEN_BACK, EV_CODE_READ, EV_CODE_PAGE_WALK,
		EV_CODE_MISS, EV_BRANCHES, EV_INSTRUCTIONS,
		EV_DATA_READ_OR_WRITE, EV_DATA_MISS, EV_CYCLES, EV_MISPREDICTED,
		EV_EXEC_STAGE, EV_LONG_DATA_PAGE_WALK, EV_LONG_CODE_PAGE_WALK,
		EV_L2_READ_MISS, EV_L2_WRITE_HIT, EV_L2_DATA_READ_MEM,
	};
	u64 rounds = number_of("rounds="), wrong = 0;
	static u8 data[DATA_SIZE];

	sandbox(keep_end);
	handlers[2] = next_sample;
	while (rounds--) {
		u8 *p = pages[0];
		u64 want;

		*p++ = 0xdb; /* fninit */
		*p++ = 0xe3;
		for (u32 n = 8; n; n--) {
			*p++ = 0xd9; /* fldz: QEMU does not know an empty register */
			*p++ = 0xee;
		}
		for (u32 n = 4 + any() % 16; n; n--)
			p = on_memory(p);
		*p = BREAKPOINT;
		for (u32 i = 0; i < DATA_SIZE; i++)
			data[i] = any();
		for (u64 *reg = &start.r15; reg <= &start.rax; reg++)
			*reg = any();
		start.rsp = PAGED_AREA + 15 * 4096 + 2048;
		want = run_sampled(data, 0, 0);
		for (u32 i = 0; i < 8; i++)
			wrong += run_sampled(data, events[any() % ARRAY_SIZE(events)],
					     any() % 12) != want;
	}
	check("same: a program computes the same, sampled or not", wrong, 0);
}
