// SPDX-License-Identifier: GPL-2.0-only
/* The additional instructions: privilege, operands, and wrong encodings */
#include "bare.h"

extern code do_rdpmc, spflt_one, spflt_region;
u64 rdpmc_rax, rdpmc_rdx, rdpmc_rcx;

static int rdpmc_faults(u64 counter)
{
	rdpmc_rcx = counter;
	return faults((void (*)(u64, u64))do_rdpmc, 0, 0);
}

static void rdpmc(void)
{
	pmu_quiet();
	wrmsr(MSR_CNT0, 0x123456789aul);
	wrmsr(MSR_CNT1, WRAP - 1);
	set_pce(0);
	check("rdpmc: ring 0 without PCE", rdpmc_faults(0), -1);
	check("rdpmc: low half", rdpmc_rax, 0x3456789a);
	check("rdpmc: high half", rdpmc_rdx, 0x12);
	rdpmc_faults(1);
	check("rdpmc: 40 bits, zero-extended: low", rdpmc_rax, 0xffffffff);
	check("rdpmc: 40 bits, zero-extended: high", rdpmc_rdx, 0xff);
	check("rdpmc: no counter 2", rdpmc_faults(2), GP);
	check("rdpmc: no fixed counters", rdpmc_faults(0x40000000), GP);
	check("rdpmc: no fast mode", rdpmc_faults(0x80000000), GP);

	rdpmc_rcx = 1;
	check("rdpmc: ring 3 without PCE", faults3(do_rdpmc), GP);
	set_pce(1);
	rdpmc_rax = 0;
	check("rdpmc: ring 3 with PCE", faults3(do_rdpmc), -1);
	check("rdpmc: ring 3, value", rdpmc_rax, 0xffffffff);
	rdpmc_rcx = 2;
	check("rdpmc: ring 3, no counter 2", faults3(do_rdpmc), GP);
}

#define SPFLT		INSN(0xc5, 0xfb, 0xae, 0xf0)
#define SPFLT_W		INSN(0xc4, 0xe1, 0xfb, 0xae, 0xf0)
#define POPCNT		INSN(0xc5, 0xfa, 0xb8, 0xc3)
#define POPCNT_W	INSN(0xc4, 0xe1, 0xfa, 0xb8, 0xc3)
#define LZCNT		INSN(0xc5, 0xfa, 0xbd, 0xc3)
#define LZCNT_W		INSN(0xc4, 0xe1, 0xfa, 0xbd, 0xc3)
#define TZCNT		INSN(0xc5, 0xfa, 0xbc, 0xc3)
#define TZCNT_W		INSN(0xc4, 0xe1, 0xfa, 0xbc, 0xc3)
#define TZCNTI		INSN(0xc5, 0xfb, 0xbc, 0xc3)
#define TZCNTI_W	INSN(0xc4, 0xe1, 0xfb, 0xbc, 0xc3)

struct encoding {
	const char *name;
	code *fn;
	int fault;
};

static const struct encoding encodings[] = {
	{ "spflt: with W", SPFLT_W, -1 },
	{ "spflt: r8", INSN(0xc4, 0xc1, 0x7b, 0xae, 0xf0), -1 },
	{ "delay: r15 with W", INSN(0xc4, 0xc1, 0xfa, 0xae, 0xf7), -1 },
	/* VEX.L set, vvvv used, a memory operand, pp 0 and 66, /7 */
	{ "spflt: not with VEX.L", INSN(0xc5, 0xff, 0xae, 0xf0), UD },
	{ "spflt: not with VEX.vvvv", INSN(0xc5, 0xf3, 0xae, 0xf0), UD },
	{ "spflt: not with a memory operand", INSN(0xc5, 0xfb, 0xae, 0x30), UD },
	{ "spflt: not without F2 or F3", INSN(0xc5, 0xf8, 0xae, 0xf0), UD },
	{ "spflt: not with 66", INSN(0xc5, 0xf9, 0xae, 0xf0), UD },
	{ "spflt: not AE /7", INSN(0xc5, 0xfb, 0xae, 0xf8), UD },
	{ "cpu: no AVX", INSN(0xc5, 0xf8, 0x77), UD },
	{ "popcnt: not of memory", INSN(0xc5, 0xfa, 0xb8, 0x03), UD },
	{ "popcnt: not without F3", INSN(0xc5, 0xf8, 0xb8, 0xc3), UD },
	{ "lzcnt: not with F2", INSN(0xc5, 0xfb, 0xbd, 0xc3), UD },
	{ "vprefetch2: with an index", INSN(0xc4, 0xa1, 0x78, 0x18, 0x5c, 0xa0, 0x40), -1 },
	{ "vprefetche2: encoding c5 f8 18 /7", INSN(0xc5, 0xf8, 0x18, 0x38), -1 },
	{ "vprefetch: not of a register", INSN(0xc5, 0xf8, 0x18, 0xc8), UD },
	{ "clevict1: with a displacement", INSN(0xc5, 0xfa, 0xae, 0xb8, 0, 1, 0, 0), -1 },
	{ "clevict: not AE /6 with memory", INSN(0xc5, 0xfa, 0xae, 0x30), UD },
};

static const struct encoding of_this_chip[] = {
	{ "other cpu: spflt", SPFLT, UD },
	{ "other cpu: spflt with W", SPFLT_W, UD },
};

static void try_each(const struct encoding *e, u32 count)
{
	for (; count; count--, e++)
		check(e->name, faults3(e->fn), e->fault);
}

static void spflt(void)
{
	try_each(encodings, ARRAY_SIZE(encodings));
	pmu_quiet();
	wrmsr(MSR_SPFLT, 2);
	user_run(spflt_one);
	check("spflt: sets bit 63 only", rdmsr(MSR_SPFLT), SPFLT_PREF | 2);

	/* Counter 0 counts from after the SPFLT that sets the bit to the one that clears it. */
	program(EV_INSTRUCTIONS | SEL_USR, EV_INSTRUCTIONS | SEL_USR);
	wrmsr(MSR_SPFLT, 1);
	user_run(spflt_region);
	check("spflt: gated counter", rdmsr(MSR_CNT0), 20 + 2 + 10 + 2);
	check("spflt: free counter", rdmsr(MSR_CNT1), 69 + 2);
	check("spflt: preference off at the end", rdmsr(MSR_SPFLT), 1);
}

#define FLAGS		0x8d5ul	/* CF, PF, AF, ZF, SF, OF */
#define CF		0x001ul
#define ZF		0x040ul

/* Call fn() with %rax = @before, %rbx = @value and all flags set; returns %rax. */
static u64 bits_of(code *fn, u64 before, u64 value, u64 *flags)
{
	u64 rax = before, f = FLAGS;

	asm volatile("pushq %1; popfq; call *%3; pushfq; popq %1"
		     : "+a"(rax), "+r"(f) : "b"(value), "r"(fn)
		     : "cc", "memory");
	*flags = f & FLAGS;
	return rax;
}

static const struct {
	const char *name;
	code *fn;
	u64 before, value, want, flags;
} bits[] = {
	{ "popcnt", POPCNT, -1, 0xf0f0f0f0f0f0f0f0, 16, 0 },
	{ "popcnt, W", POPCNT_W, 0, 0xf0f0f0f0f0f0f0f0, 32, 0 },
	{ "popcnt of 0", POPCNT, -1, 1ul << 32, 0, ZF },
	{ "lzcnt", LZCNT, -1, 0x00010000, 15, 0 },
	{ "lzcnt, W", LZCNT_W, -1, 0x00010000, 47, 0 },
	{ "lzcnt of the top bit", LZCNT, -1, 0x80000000, 0, ZF },
	{ "lzcnt of 0", LZCNT, -1, 1ul << 40, 32, CF },
	{ "lzcnt of 0, W", LZCNT_W, -1, 0, 64, CF },
	{ "tzcnt", TZCNT, -1, 0x00010000, 16, 0 },
	{ "tzcnt, W", TZCNT_W, -1, 1ul << 40, 40, 0 },
	{ "tzcnt of 1", TZCNT, -1, 1, 0, ZF },
	{ "tzcnt of 0", TZCNT, -1, 1ul << 40, 32, CF },
	{ "tzcnt of 0, W", TZCNT_W, -1, 0, 64, CF },
	/* The target says at which bit to begin. */
	{ "tzcnti", TZCNTI, 4, 0x00010003, 12, 0 },
	{ "tzcnti, W", TZCNTI_W, 4, 1ul << 40, 36, 0 },
	{ "tzcnti at once", TZCNTI, 16, 0x00010003, 0, ZF },
	{ "tzcnti below 0", TZCNTI, 0xfffffff0, 0x10, 4, 0 },
	{ "tzcnti below 0, W", TZCNTI_W, -9, 0x10, 4, 0 },
	{ "tzcnti, none left", TZCNTI, 20, 0x00010003, 12, CF },
	{ "tzcnti past the end", TZCNTI, 32, -1, 32, CF },
	{ "tzcnti past the end, W", TZCNTI_W, 64, -1, 64, CF },
};

static void counting_bits(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(bits); i++) {
		u64 flags, got = bits_of(bits[i].fn, bits[i].before, bits[i].value, &flags);

		result(got == bits[i].want && flags == bits[i].flags,
		       text("bits: %s", bits[i].name),
		       "%ld, flags 0x%lx, not %ld, 0x%lx", got, flags,
		       bits[i].want, bits[i].flags);
	}
}

/* CMPXCHG8B changes ZF alone: the other flags of an addition just before it stay. */
static void compared_flags(void)
{
	u64 memory = 1, flags;

	asm volatile("add %%rbx, %%rsi; lock cmpxchg8b %1; pushfq; pop %0"
		     : "=r" (flags), "+m" (memory)
		     : "a" (0ul), "d" (0ul), "b" (0x301ul), "c" (0ul), "S" (-0x302ul)
		     : "cc", "memory");
	check("cmpxchg8b: flags of the addition", flags & 0x9d5, 0x84);
}

static u64 syscall_flags;

static void syscall_after_add(void)
{
	asm volatile("add %%rbx, %%rsi; syscall; movq %%r11, %0"
		     : "=m" (syscall_flags)
		     : "b" (1ul), "S" (-1ul) : "rcx", "r11", "cc", "memory");
}

/* SYSCALL saves the flags, also those of an addition just before it. */
static void saved_flags(void)
{
	user_run(syscall_after_add);
	check("syscall: flags of the addition", syscall_flags & 0x9d5, 0x55);
}

/* SETcc of memory keeps the flags if it faults. */
static u64 set_flags, set_byte;

static void set_unmapped(void)
{
	asm volatile("addl %2, %k3; seto (%4); setb %1; pushfq; popq %0"
		     : "=m" (set_flags), "=m" (set_byte)
		     : "r" (0x80000000u), "r" (0x80000000ul), "r" (PAGED_AREA + 4095ul)
		     : "cc", "memory");
}

static void faulting_set(void)
{
	handlers[PF] = map_and_retry;
	map_page(0, 0);
	user_run(set_unmapped);
	handlers[PF] = 0;
	check("seto: of memory that is mapped then", pages[0][4095], 1);
	check("seto: flags of the addition", set_flags & 0x8d5, 0x845);
	check("seto: and the carry", set_byte, 1);
}

SUITE(test_instructions, "instructions")
{
	rdpmc();
	spflt();
	counting_bits();
	compared_flags();
	saved_flags();
	faulting_set();
}

/* On another CPU model all of this behaves as in QEMU without emulator/. */
SUITE(test_plain_cpu, "plain")
{
	try_each(of_this_chip, ARRAY_SIZE(of_this_chip));
	check("other cpu: rdpmc", rdpmc_faults(0), UD);
	check("other cpu: test device", item(0, ITEM_MAGIC), -1ul);
	check("other cpu: no strict MSRs", rdmsr_faults(MSR_OVF), -1);
}
