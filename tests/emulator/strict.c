// SPDX-License-Identifier: GPL-2.0-only
/*
 * The chip's own instruction set. With -cpu knc-strict the instructions of a card
 * run and all others are undefined, in ring 0 and in ring 3. With -cpu knc those
 * of Debian's programs run as well, or with strict-user=on those of Debian's kernel.
 */
#include "bare.h"

struct insn {
	code *fn;
	const char *text;
};

extern const struct insn strict_has[], strict_lacks[], strict_sysenter[],
	strict_later[], strict_ports[];
extern code f_vector_load, f_vector_store;

/* Of the load, without its return */
#define VECTOR_BYTES	11

/* Of MXCSR: its value after a reset, rounding down, and DUE, which the chip sets */
#define MXCSR_RESET	0x1f80
#define MXCSR_DOWN	0x2000
#define MXCSR_DUE	BIT(21)

/* Of CPUID leaf 1 */
#define CPUID_X87_TSC	(BIT(0) | BIT(4))
#define CPUID_CMOV_SSE	(BIT(15) | BIT(25) | BIT(26))
#define CPUID_SSE3_CX16	(BIT(0) | BIT(13))

static code *to_call;

/* A read-only port, and a count of 0 */
static void call_it(u64 a, u64 b)
{
	asm volatile("call *%0" : : "r"(to_call), "a"(pages), "c"(0),
		     "d"(0x80), "S"(pages), "D"(pages)
		     : "memory", "cc", "rbx", "r8");
}

static int faults0(code *fn)
{
	to_call = fn;
	return faults(call_it, 0, 0);
}

/* Whether each instruction is wanted to be undefined in ring 0, and in ring 3 */
static void undefined(const struct insn *table, int wanted0, int wanted3)
{
	static const char *const what[] = { "runs", "#UD" };

	for (const struct insn *i = table; i->fn; i++) {
		int ring0 = faults0(i->fn), ring3 = faults3(i->fn);

		result((ring0 == UD) == wanted0 && (ring3 == UD) == wanted3,
		       text("strict: %s, %s: %s", what[wanted0], what[wanted3], i->text),
		       "faults %d, %d", ring0, ring3);
	}
}

static u32 leaf[4];

static void read_leaf(void)
{
	cpuid(1, leaf);
}

static void cpuid_in_ring3(int strict)
{
	user_run(read_leaf);
	check("strict: CPUID in ring 3: x87, TSC, and not CMOV, SSE, SSE2",
	      leaf[3] & (CPUID_X87_TSC | CPUID_CMOV_SSE),
	      CPUID_X87_TSC | (strict ? 0 : CPUID_CMOV_SSE));
	check("strict: CPUID in ring 3: not SSE3, CMPXCHG16B", leaf[2] & CPUID_SSE3_CX16,
	      strict ? 0 : CPUID_SSE3_CX16);
}

static void ports(int strict)
{
	for (const struct insn *i = strict_ports; i->fn; i++) {
		result((faults3(i->fn) == UD) == strict,
		       text("strict: ring 3: %s", i->text), "%d", strict);
		if (!strict || i->fn != strict_ports->fn)
			continue;
		check("strict: ring 0: in", faults0(i->fn), -1);
	}
}

static u32 mxcsr(void)
{
	u32 value;

	asm volatile("stmxcsr %0" : "=m"(value));
	return value;
}

static void set_mxcsr(u32 value)
{
	asm volatile("ldmxcsr %0" : : "m"(value));
}

static void load_mxcsr(u64 value, u64 unused)
{
	set_mxcsr(value);
}

static void fxrstor(u64 value, u64 unused)
{
	static struct {
		u32 before[6], mxcsr, after[121];
	} image __attribute__((aligned(16)));

	asm volatile("fninit; fxsave %0" : "=m"(image));
	image.mxcsr = value;
	asm volatile("fxrstor %0" : : "m"(image));
}

/* Other processors want CR4.OSFXSR for them. */
static void without_osfxsr(int strict)
{
	u64 cr4 = read_cr4();

	write_cr4(cr4 & ~0x200ul);
	result((faults0(INSN(0x0f, 0xae, 0x1f /* stmxcsr (%rdi) */)) == UD) == !strict,
	       "strict: STMXCSR without OSFXSR", "%d", strict);
	write_cr4(cr4);
}

static void always_due(int strict)
{
	u32 reset = strict ? MXCSR_DUE : MXCSR_RESET;

	check("strict: MXCSR after a reset", mxcsr(), reset);
	set_mxcsr(MXCSR_DOWN);
	check("strict: MXCSR without DUE", mxcsr(), MXCSR_DOWN | (strict ? MXCSR_DUE : 0));
	/* A chip has no exception masks, bits 12:7. */
	check("strict: MXCSR of a PC", faults(load_mxcsr, MXCSR_RESET, 0), strict ? GP : -1);
	check("strict: FXRSTOR of that", faults(fxrstor, MXCSR_RESET, 0), strict ? GP : -1);
	set_mxcsr(reset);
	check("strict: MXCSR with DUE", mxcsr(), reset);
}

/* What @fn counts, beside what an empty function does */
static void more(const char *name, code *fn, u64 event, u64 want)
{
	check(name, count0(fn, event) - count0(&f_empty, event), want);
}

/* A PC's kernel has no XSAVE here, and so does not save them for a program. */
static void vectors(int strict)
{
	check("strict: vector load", faults0(&f_vector_load), -1);
	check("strict: vector load in ring 3", faults3(&f_vector_load), strict ? -1 : UD);
	more("strict: a vector load is one instruction", &f_vector_load, EV_INSTRUCTIONS, 1);
	more("strict: and one read", &f_vector_load, EV_DATA_READ, 1);
	more("strict: and no write", &f_vector_load, EV_DATA_WRITE, 0);
	more("strict: a vector store is no read", &f_vector_store, EV_DATA_READ, 0);
	more("strict: and one write", &f_vector_store, EV_DATA_WRITE, 1);
}

/* The 16 elements of a load come in one cycle, also over the end of a period. */
static void vector_events(void)
{
	static const struct {
		const char *name;
		u64 sel, want;
	} counts[] = {
		{ "instruction", EV_VPU_INSTRUCTIONS, 1 },
		{ "elements, CMASK 16", EV_VPU_ELEMENTS | SEL_CMASK(16), 1 },
		{ "elements, CMASK 17", EV_VPU_ELEMENTS | SEL_CMASK(17), 0 },
		{ "elements, E", EV_VPU_ELEMENTS | SEL_E, 1 },
		{ "elements, CMASK 9 and E", EV_VPU_ELEMENTS | SEL_CMASK(9) | SEL_E, 1 },
		{ "read", EV_VPU_READ, 1 },
		{ "write", EV_VPU_WRITE, 0 },
	};
	u32 wrong = 0;

	for (u32 i = 0; i < ARRAY_SIZE(counts); i++)
		check(text("strict: a vector load: %s", counts[i].name),
		      count0(&f_vector_load, counts[i].sel), counts[i].want);
	check("strict: a vector store: write", count0(&f_vector_store, EV_VPU_WRITE), 1);
	for (u32 left = 1; left <= 16; left++)
		wrong |= (misses((char *)&f_vector_load + VECTOR_BYTES, &f_vector_load,
				 EV_VPU_ELEMENTS, left) ||
			  rdmsr(MSR_CNT0) != 16 - left) << (left - 1);
	check("strict: 16 elements over the end of a period", wrong, 0);
}

static u64 fault_rip;

static void note_rip(struct regs *r)
{
	fault_rip = r->rip;
	map_and_retry(r);
}

/*
 * The opcode of a NOP is the end of a page, and its operand is in the next one, which
 * is absent: the fault is that of the NOP, and what comes before it has been executed.
 */
static void across_pages(void)
{
	static const u8 end[] = { 0xff, 0xc0 /* incl %eax */, 0x0f, 0x1f /* nopl */ };
	static const u8 begin[] = { 0x00 /* (%rax) */, 0xc3 };
	u32 times = 0;

	for (u32 i = 0; i < sizeof(end); i++)
		pages[0][4096 - sizeof(end) + i] = end[i];
	for (u32 i = 0; i < sizeof(begin); i++)
		pages[1][i] = begin[i];
	map_page(0, 1);
	map_page(1, 0);
	handlers[14] = note_rip;
	asm volatile("call *%1" : "+a"(times)
		     : "r"(PAGED_AREA + 4096ul - sizeof(end)) : "memory", "cc");
	handlers[14] = 0;
	check("strict: an instruction whose end is absent", fault_rip, PAGED_AREA + 4096 - 2);
	check("strict: the one before it, once", times, 1);
}

SUITE(test_strict, "strict")
{
	int strict = !modern(), strict_user = strict || find("ring3");

	always_due(strict);
	across_pages();
	without_osfxsr(strict);
	vectors(strict);
	vector_events();
	cpuid_in_ring3(strict_user);
	undefined(strict_has, 0, 0);
	undefined(strict_lacks, strict, strict_user);
	/* TCG always has these on Intel's processors. */
	if (strict_user)
		undefined(strict_sysenter, strict, 1);
	undefined(strict_later, 1, 1);
	ports(strict);
}
