/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A bare machine to test the emulated PMU: long mode, one flat address space,
 * trap handlers, ring 3, and the other threads of the core. Nothing here is
 * shared with the emulator or the driver.
 */
#ifndef BARE_H
#define BARE_H

#define KERNEL_CS	0x08
#define KERNEL_DS	0x10
#define USER_DS		(0x18 | 3)
#define USER_CS		(0x20 | 3)
#define TSS_SEL(cpu)	(0x28 + 16 * (cpu))

/* The board has the chip's local APICs, and up to 62 cores. */
#ifdef BOARD
#define MAX_CPUS	248
#define APIC_ID_SHIFT	23
#else
#define MAX_CPUS	8
#define APIC_ID_SHIFT	24
#endif
#define STACK_SIZE	16384

/* Vectors: exceptions; gates that the tests open to ring 3, and one closed */
#define UD		6
#define NM		7
#define GP		13
#define PF		14
#define VEC_INT80	0x80
#define VEC_RETURN	0x81
#define VEC_CLOSED	0x82
#define VEC_PMI		0x90
#define VEC_TIMER	0x91

/* 2 MiB in pages of 4 KiB, which the tests map and unmap */
#define PAGED_AREA	0x40000000

#define TRAMPOLINE	0x8000

/* Rounds of sampled_loop */
#define SAMPLED_ROUNDS	2000000

/* 327357-001 table 1-2 */
#define MSR_TSC		0x10
#define MSR_APIC_BASE	0x1b
#define MSR_CNT0	0x20
#define MSR_CNT1	0x21
#define MSR_SEL0	0x28
#define MSR_SEL1	0x29
#define MSR_SPFLT	0x2c
#define MSR_STATUS	0x2d
#define MSR_OVF		0x2e
#define MSR_GLOBAL	0x2f

#ifndef __ASSEMBLER__

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

#define BIT(n)		(1ul << (n))
#define WRAP		BIT(40)
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))

/* 327357-001 tables 1-5 and 1-7 */
#define SEL_USR		BIT(16)
#define SEL_OS		BIT(17)
#define SEL_E		BIT(18)
#define SEL_INT		BIT(20)
#define SEL_ANY		BIT(21)
#define SEL_EN		BIT(22)
#define SEL_INV		BIT(23)
#define SEL_CMASK(n)	((u64)(n) << 24)
#define SPFLT_PREF	BIT(63)

/* Table 1-6: event and unit mask as in the register */
#define EV_DATA_READ		0x0000
#define EV_DATA_WRITE		0x0001
#define EV_DATA_PAGE_WALK	0x0002
#define EV_DATA_READ_MISS	0x0003
#define EV_DATA_WRITE_MISS	0x0004
#define EV_WRITTEN_BACK		0x0006
#define EV_CODE_READ		0x000c
#define EV_CODE_PAGE_WALK	0x000d
#define EV_CODE_MISS		0x000e
#define EV_L1_PF1		0x0011
#define EV_BRANCHES		0x0012
#define EV_PIPELINE_FLUSHES	0x0015
#define EV_INSTRUCTIONS		0x0016
#define EV_L1_PF1_MISS		0x001c
#define EV_L1_PF1_DROP		0x001e
#define EV_DATA_READ_OR_WRITE	0x0028
#define EV_DATA_MISS		0x0029
#define EV_CYCLES		0x002a
#define EV_MISPREDICTED		0x002b
#define EV_FE_STALLED		0x002d
#define EV_EXEC_STAGE		0x002e
#define EV_L1_PF2		0x0037
#define EV_L2_PF1_MISS		0x0038
#define EV_LONG_DATA_PAGE_WALK	0x003a
#define EV_LONG_CODE_PAGE_WALK	0x003b
#define EV_HWP_L2HIT		0x10c3
#define EV_HWP_L2MISS		0x10c4
#define EV_L2_READ_HIT_E	0x10c8
#define EV_L2_READ_HIT_M	0x10c9
#define EV_L2_READ_HIT_S	0x10ca
#define EV_L2_READ_MISS		0x10cb
#define EV_L2_WRITE_HIT		0x10cc
#define EV_L2_STRONG_MISS	0x10ce
#define EV_L2_WEAK_MISS		0x10cf
#define EV_L2_VICTIM		0x10d7
#define EV_SNP_HIT		0x10e6
#define EV_SNP_HITM		0x10e7
#define EV_L2_CODE_CACHE	0x10f0
#define EV_L2_DATA_READ_CACHE	0x10f1
#define EV_L2_DATA_WRITE_CACHE	0x10f2
#define EV_L2_CODE_MEM		0x10f5
#define EV_L2_DATA_READ_MEM	0x10f6
#define EV_L2_DATA_WRITE_MEM	0x10f7
#define EV_L2_PF2		0x10fc
#define EV_L2_PF2_DROP		0x10fd
#define EV_L2_PF2_MISS		0x10fe
#define EV_VPU_READ		0x2000
#define EV_VPU_WRITE		0x2001
#define EV_VPU_INSTRUCTIONS	0x2016
#define EV_VPU_ELEMENTS		0x2018

#define APIC		0xfee00000ul
#define APIC_ID		0x20
#define APIC_EOI	0xb0
#define APIC_SVR	0xf0
#define APIC_ICR	0x300
#define APIC_ICR2	0x310
#define APIC_LVTT	0x320
#define APIC_LVTPC	0x340
#define APIC_TIMER	0x380
#define APIC_DIVIDE	0x3e0
#define APIC_BASE_ENABLE BIT(11)
#define LVT_MASKED	BIT(16)
#define LVT_PERIODIC	BIT(17)
#define LVT_NMI		(4 << 8)

#define TESTDEV		0x5e0
enum {
	ITEM_MAGIC, ITEM_LOST, ITEM_EDGES, ITEM_DELIVERED, ITEM_TOTAL0,
	ITEM_TOTAL1, ITEM_OVERFLOWS0, ITEM_OVERFLOWS1, ITEM_RDMSRS,
	ITEM_WRMSRS, ITEM_RDPMCS, ITEM_LVTPCS, ITEM_EOIS,
	ITEM_INSNS0 = 16, ITEM_INSNS3, ITEM_BRANCHES0, ITEM_BRANCHES3,
	ITEM_CYCLES0, ITEM_CYCLES3,
	ITEM_INJECTED = 24, ITEM_INJECT_LEFT, ITEMS,
};

struct regs {
	u64 r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx,
	    rcx, rax, vector, error, rip, cs, rflags, rsp, ss;
};

typedef void code(void);	/* assembly, not called from C */

/* A function that executes the instruction of these bytes; outside of functions */
#define INSN(...)	((code *)(const u8 []){ __VA_ARGS__, 0xc3 /* ret */ })
typedef void trap_handler(struct regs *);

static inline u64 rdmsr(u32 msr)
{
	u32 lo, hi;

	asm volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr) : "memory");
	return lo | (u64)hi << 32;
}

static inline void wrmsr(u32 msr, u64 val)
{
	asm volatile("wrmsr" : : "c"(msr), "a"((u32)val), "d"((u32)(val >> 32))
		     : "memory");
}

#define PORT_ACCESS(suffix, type)					\
	static inline void out##suffix(u16 port, type val)		\
	{								\
		asm volatile("out" #suffix " %0, %1"			\
			     : : "a"(val), "Nd"(port) : "memory");	\
	}								\
	static inline type in##suffix(u16 port)				\
	{								\
		type val;						\
									\
		asm volatile("in" #suffix " %1, %0"			\
			     : "=a"(val) : "Nd"(port) : "memory");	\
		return val;						\
	}

PORT_ACCESS(b, u8)
PORT_ACCESS(l, u32)

#define CONTROL_REGISTER(name)						\
	static inline u64 read_##name(void)				\
	{								\
		u64 val;						\
									\
		asm volatile("movq %%" #name ", %0" : "=r"(val));	\
		return val;						\
	}								\
	static inline void write_##name(u64 val)			\
	{								\
		asm volatile("movq %0, %%" #name : : "r"(val) : "memory"); \
	}

CONTROL_REGISTER(cr0)
CONTROL_REGISTER(cr2)
CONTROL_REGISTER(cr3)
CONTROL_REGISTER(cr4)

static inline u64 rdtsc(void)
{
	u32 lo, hi;

	asm volatile("rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return lo | (u64)hi << 32;
}

static inline void apic_write(u32 reg, u32 val)
{
	*(volatile u32 *)(APIC + reg) = val;
}

static inline u32 apic_read(u32 reg)
{
	return *(volatile u32 *)(APIC + reg);
}

static inline int this_cpu(void)
{
	return apic_read(APIC_ID) >> APIC_ID_SHIFT;
}

/* Instructions of the chip: the operand is %eax, or the line that %rax points to. */
#define ASM_DELAY	".byte 0xc5, 0xfa, 0xae, 0xf0"
#define ASM_SPFLT	".byte 0xc5, 0xfb, 0xae, 0xf0"
#define ASM_VPREFETCH0	".byte 0xc5, 0xf8, 0x18, 0x08"
#define ASM_VPREFETCH1	".byte 0xc5, 0xf8, 0x18, 0x10"
#define ASM_VPREFETCHE1	".byte 0xc5, 0xf8, 0x18, 0x30"
#define ASM_CLEVICT0	".byte 0xc5, 0xfb, 0xae, 0x38"
#define ASM_CLEVICT1	".byte 0xc5, 0xfa, 0xae, 0x38"

/* A function that executes @insn with the address of each line in %rax */
#define EACH_LINE(name, from, size, insn)				\
	static void name(void)						\
	{								\
		for (u64 a = (u64)(from); a < (u64)(from) + (size); a += 64) \
			asm volatile(insn : : "a"(a) : "rcx", "memory");	\
	}

/* start.S */
extern u32 boot_info;
extern char trampoline[], trampoline_end[], trap_stubs[];
extern u64 paged_table[512];
void measure0(code *fn);
void user_run(code *fn);
void user_return(void);
void syscall_entry(void);

/* pc.c or board/board.c; behind_program() is what -initrd names. */
extern const struct window {
	u64 base, size;
} windows[];	/* registers of devices; the console is behind the quiet ones */
extern const u32 windows_quiet, windows_all;
void setup_machine(void);
const void *behind_program(void);
void put(const char *s, u32 size);
void quit(int failed);
void relax(void);

/* fuzz.c */
extern u64 seeds[MAX_CPUS];
u64 any(void);
u64 any_select(void);
u64 any_value(void);

/* code.S */
extern code f_empty, f_nops;
void long_loop(u64 times);

/* bare.c */
extern const char *cmdline;
extern trap_handler *handlers[256], ignore, count_trap, skip2, map_and_retry,
	take_timer;
extern int trapped;
extern volatile int ticked;
extern struct pmi {
	int count;
	u64 rip, cs, status;
} pmi;
extern u8 pages[16][4096];

/* Those that can be read and written, except STATUS */
#define VALUES		7
extern const u32 pmu_registers[VALUES];

void print(const char *fmt, ...);
const char *text(const char *fmt, ...);
void result(int good, const char *name, const char *fmt, ...);
void near(const char *name, u64 got, u64 want, u64 more);
int faults(void (*fn)(u64, u64), u64 a, u64 b);
int rdmsr_faults(u32 msr);
int wrmsr_faults(u32 msr, u64 val);
u64 item(int cpu, int what);
void mark(void);
u64 since(int cpu, int what);
void map_page(int n, int present);
void pmu_quiet(void);
void others_quiet(void);
void program(u64 sel0, u64 sel1);
void switch_on(u64 sel0, u64 sel1);
u64 switch_off(void);
void overflow_after(u64 events, u64 sel, u32 lvt);
void arm_pmi(u64 sel, u64 after, u32 lvt);
int came_at(void *rip, u64 cs);
int misses(void *rip, code *fn, u64 sel, u64 after);
void send_nmi(int cpu);
u64 count0(code *fn, u64 sel);
u64 count3(code *fn, u64 sel);

/* What is counted of a function: a table of these */
struct counting {
	const char *name;
	code *fn;
	u64 sel, want;
};

void count_each(u64 (*count)(code *fn, u64 sel), const struct counting *c, u32 n);
void handle_ints(trap_handler *handler);
void start_timer(u32 ticks);
void halt_until_timer(u32 ticks);
void set_pce(int on);
int faults3(code *fn);
void cpuid(u32 leaf, u32 r[4]);
int modern(void);
const char *find(const char *begin);
u64 number_of(const char *begin);
int same(const void *a, const void *b, u32 size);
void own_stacks(void);
void copy_trampoline(void);
void start_cpus(void);
void start_so_many_cpus(int count);
int cpu_starts(int cpu);
void stop_cpu(int cpu);
void init_cpu(int cpu);
void on_cpu(int cpu, void (*fn)(void));
void on_cpu_start(int cpu, void (*fn)(void));
int on_cpu_done(int cpu);
void on_cpu_wait(int cpu);
int ncpus(void);
void delay(u64 ticks);
void wait_for_nmi(void);
void stay_awake(void);
void send_to_sleep(int cpu, void (*fn)(void));
void wake_up(int cpu);

#define check(name, got, want)						\
	do {								\
		u64 got_ = (got), want_ = (want);			\
		result(got_ == want_, name, "got 0x%lx, not 0x%lx",	\
		       got_, want_);					\
	} while (0)

/* A suite: a function that runs if its name is on the command line, in the file's order */
struct suite {
	const char *name;
	void (*run)(void);
};

#define SUITE(fn, name)							\
	static void fn(void);						\
	static const struct suite fn##_suite				\
		__attribute__((used, no_reorder, section("suites"))) = { name, fn }; \
	static void fn(void)

/* A function in a table, and what was counted of it by hand, with the ret */
struct entry {
	code *fn;
	u64 insns, branches, reads, writes;
	const char *name;
};

extern const struct entry __start_code_table[], __stop_code_table[],
	__start_modern_code[], __stop_modern_code[], __start_pieces[], __stop_pieces[];

#else

	/* A function that starts a line of a cache */
	.macro	FUNCTION name
	.balign	64
	.globl	\name
\name :
	.endm

#endif
#endif
