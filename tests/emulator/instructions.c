// SPDX-License-Identifier: GPL-2.0-only
/* The additional instructions: privilege, operands, and wrong encodings */
#include "bare.h"

#define UD	6
#define GP	13

u64 rdpmc_rax, rdpmc_rdx, rdpmc_rcx;

/* RDPMC with the upper halves of %rax and %rdx set */
void do_rdpmc(void);
asm("	.globl	do_rdpmc\n"
    "do_rdpmc:\n"
    "	movl	rdpmc_rcx, %ecx\n"
    "	movq	$-1, %rax\n"
    "	movq	%rax, %rdx\n"
    "	rdpmc\n"
    "	movq	%rax, rdpmc_rax\n"
    "	movq	%rdx, rdpmc_rdx\n"
    "	ret\n");

static void in_ring0(u64 a, u64 b)
{
	(void)a;
	(void)b;
	do_rdpmc();
}

static void rdpmc(void)
{
	pmu_quiet();
	wrmsr(MSR_CNT0, 0x123456789aul);
	wrmsr(MSR_CNT1, WRAP - 1);
	set_pce(0);
	rdpmc_rcx = 0;
	check("rdpmc: ring 0 without PCE", faults(in_ring0, 0, 0), -1);
	check("rdpmc: low half", rdpmc_rax, 0x3456789a);
	check("rdpmc: high half", rdpmc_rdx, 0x12);
	rdpmc_rcx = 1;
	faults(in_ring0, 0, 0);
	check("rdpmc: 40 bits, zero-extended: low", rdpmc_rax, 0xffffffff);
	check("rdpmc: 40 bits, zero-extended: high", rdpmc_rdx, 0xff);
	rdpmc_rcx = 2;
	check("rdpmc: no counter 2", faults(in_ring0, 0, 0), GP);
	rdpmc_rcx = 0x40000000;
	check("rdpmc: no fixed counters", faults(in_ring0, 0, 0), GP);
	rdpmc_rcx = 0x80000000;
	check("rdpmc: no fast mode", faults(in_ring0, 0, 0), GP);

	rdpmc_rcx = 1;
	check("rdpmc: ring 3 without PCE", faults3(do_rdpmc), GP);
	set_pce(1);
	rdpmc_rax = 0;
	check("rdpmc: ring 3 with PCE", faults3(do_rdpmc), -1);
	check("rdpmc: ring 3, value", rdpmc_rax, 0xffffffff);
	rdpmc_rcx = 2;
	check("rdpmc: ring 3, no counter 2", faults3(do_rdpmc), GP);
	pmu_quiet();
}

#define INSN(name, ...)							\
	void insn_##name(void);						\
	asm("	.globl	insn_" #name "\n"				\
	    "insn_" #name ":\n"						\
	    "	.byte	" #__VA_ARGS__ "\n"				\
	    "	ret\n")

INSN(spflt_eax, 0xc5, 0xfb, 0xae, 0xf0);
INSN(spflt_rax_w, 0xc4, 0xe1, 0xfb, 0xae, 0xf0);
INSN(spflt_r8d, 0xc4, 0xc1, 0x7b, 0xae, 0xf0);
INSN(delay_eax, 0xc5, 0xfa, 0xae, 0xf0);
INSN(delay_r15, 0xc4, 0xc1, 0xfa, 0xae, 0xf7);
/* Undefined: VEX.L set, vvvv used, a memory operand, pp 0 and 66, /7 */
INSN(bad_l, 0xc5, 0xff, 0xae, 0xf0);
INSN(bad_vvvv, 0xc5, 0xf3, 0xae, 0xf0);
INSN(bad_memory, 0xc5, 0xfb, 0xae, 0x30);
INSN(bad_pp0, 0xc5, 0xf8, 0xae, 0xf0);
INSN(bad_pp66, 0xc5, 0xf9, 0xae, 0xf0);
INSN(bad_slash7, 0xc5, 0xfb, 0xae, 0xf8);
/* There is no AVX: vzeroupper */
INSN(avx, 0xc5, 0xf8, 0x77);
/* Instructions that count bits; prefetches and evictions */
INSN(popcnt, 0xc5, 0xfa, 0xb8, 0xc3);
INSN(popcnt_w, 0xc4, 0xe1, 0xfa, 0xb8, 0xc3);
INSN(lzcnt, 0xc5, 0xfa, 0xbd, 0xc3);
INSN(lzcnt_w, 0xc4, 0xe1, 0xfa, 0xbd, 0xc3);
INSN(tzcnt, 0xc5, 0xfa, 0xbc, 0xc3);
INSN(tzcnt_w, 0xc4, 0xe1, 0xfa, 0xbc, 0xc3);
INSN(tzcnti, 0xc5, 0xfb, 0xbc, 0xc3);
INSN(tzcnti_w, 0xc4, 0xe1, 0xfb, 0xbc, 0xc3);
INSN(bad_popcnt_memory, 0xc5, 0xfa, 0xb8, 0x03);
INSN(bad_popcnt_pp0, 0xc5, 0xf8, 0xb8, 0xc3);
INSN(bad_lzcnt_pp2, 0xc5, 0xfb, 0xbd, 0xc3);
INSN(bad_tzcnt_l, 0xc5, 0xfe, 0xbc, 0xc3);
INSN(bad_tzcnt_vvvv, 0xc5, 0xf2, 0xbc, 0xc3);
INSN(vprefetchnta, 0xc5, 0xf8, 0x18, 0x00);
INSN(vprefetch2_sib, 0xc4, 0xa1, 0x78, 0x18, 0x5c, 0xa0, 0x40);
INSN(vprefetche2, 0xc5, 0xf8, 0x18, 0x38);
INSN(clevict0, 0xc5, 0xfb, 0xae, 0x38);
INSN(clevict1_disp, 0xc5, 0xfa, 0xae, 0xb8, 0, 1, 0, 0);
INSN(bad_prefetch_register, 0xc5, 0xf8, 0x18, 0xc8);
INSN(bad_prefetch_pp66, 0xc5, 0xf9, 0x18, 0x08);
INSN(bad_prefetch_l, 0xc5, 0xfc, 0x18, 0x08);
INSN(bad_clevict_register, 0xc5, 0xfb, 0xae, 0xf8);
INSN(bad_clevict_slash6, 0xc5, 0xfa, 0xae, 0x30);

static const struct {
	const char *name;
	code *fn;
	int fault;
} encodings[] = {
	{ "spflt: encoding c5 fb ae f0", insn_spflt_eax, -1 },
	{ "spflt: with W", insn_spflt_rax_w, -1 },
	{ "spflt: r8", insn_spflt_r8d, -1 },
	{ "delay: encoding c5 fa ae f0", insn_delay_eax, -1 },
	{ "delay: r15 with W", insn_delay_r15, -1 },
	{ "spflt: not with VEX.L", insn_bad_l, UD },
	{ "spflt: not with VEX.vvvv", insn_bad_vvvv, UD },
	{ "spflt: not with a memory operand", insn_bad_memory, UD },
	{ "spflt: not without F2 or F3", insn_bad_pp0, UD },
	{ "spflt: not with 66", insn_bad_pp66, UD },
	{ "spflt: not AE /7", insn_bad_slash7, UD },
	{ "cpu: no AVX", insn_avx, UD },
	{ "popcnt: encoding c5 fa b8", insn_popcnt, -1 },
	{ "popcnt: not of memory", insn_bad_popcnt_memory, UD },
	{ "popcnt: not without F3", insn_bad_popcnt_pp0, UD },
	{ "lzcnt: not with F2", insn_bad_lzcnt_pp2, UD },
	{ "tzcnt: not with VEX.L", insn_bad_tzcnt_l, UD },
	{ "tzcnt: not with VEX.vvvv", insn_bad_tzcnt_vvvv, UD },
	{ "vprefetchnta: encoding c5 f8 18 /0", insn_vprefetchnta, -1 },
	{ "vprefetch2: with an index", insn_vprefetch2_sib, -1 },
	{ "vprefetche2: encoding c5 f8 18 /7", insn_vprefetche2, -1 },
	{ "vprefetch: not of a register", insn_bad_prefetch_register, UD },
	{ "vprefetch: not with 66", insn_bad_prefetch_pp66, UD },
	{ "vprefetch: not with VEX.L", insn_bad_prefetch_l, UD },
	{ "clevict0: encoding c5 fb ae /7", insn_clevict0, -1 },
	{ "clevict1: with a displacement", insn_clevict1_disp, -1 },
	{ "clevict: not of a register", insn_bad_clevict_register, UD },
	{ "clevict: not AE /6 with memory", insn_bad_clevict_slash6, UD },
};

/* 20 nops with the preference on, 30 with it off, 10 with it on again */
void spflt_region(void);
asm("	.globl	spflt_region\n"
    "spflt_region:\n"
    "	movl	$1, %eax\n"
    "	.byte	0xc5, 0xfb, 0xae, 0xf0\n"
    "	.rept	20\n	nop\n	.endr\n"
    "	movl	$-2, %ecx\n"
    "	.byte	0xc5, 0xfb, 0xae, 0xf1\n"
    "	.rept	30\n	nop\n	.endr\n"
    "	movl	$-1, %edx\n"
    "	.byte	0xc5, 0xfb, 0xae, 0xf2\n"
    "	.rept	10\n	nop\n	.endr\n"
    "	movl	$0, %ecx\n"
    "	.byte	0xc5, 0xfb, 0xae, 0xf1\n"
    "	ret\n");

void spflt_one(void);
asm("	.globl	spflt_one\n"
    "spflt_one:\n"
    "	movl	$1, %eax\n"
    "	.byte	0xc5, 0xfb, 0xae, 0xf0\n"
    "	ret\n");

static void spflt(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(encodings); i++)
		check(encodings[i].name, faults3(encodings[i].fn),
		      encodings[i].fault);

	pmu_quiet();
	wrmsr(MSR_SPFLT, 2);
	user_run(spflt_one);
	check("spflt: sets bit 63 only", rdmsr(MSR_SPFLT), SPFLT_PREF | 2);

	/*
	 * Counter 0 is gated: it counts from the instruction after the SPFLT
	 * that sets the bit to the SPFLT that clears it. Counter 1 is not.
	 */
	pmu_quiet();
	wrmsr(MSR_SEL0, EV_INSTRUCTIONS | SEL_USR | SEL_EN);
	wrmsr(MSR_SEL1, EV_INSTRUCTIONS | SEL_USR | SEL_EN);
	wrmsr(MSR_SPFLT, 1);
	user_run(spflt_region);
	check("spflt: gated counter", rdmsr(MSR_CNT0), 20 + 2 + 10 + 2);
	check("spflt: free counter", rdmsr(MSR_CNT1), 69 + 2);
	check("spflt: preference off at the end", rdmsr(MSR_SPFLT), 1);

	/* The register has the preference that SPFLT sets. */
	pmu_quiet();
	wrmsr(MSR_SEL1, EV_INSTRUCTIONS | SEL_USR | SEL_EN);
	wrmsr(MSR_SPFLT, SPFLT_PREF | 2);
	user_run(f_nops);
	check("spflt: preference written by wrmsr", rdmsr(MSR_CNT1), 103);
	pmu_quiet();
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

static void counting_bits(void)
{
	static const struct {
		const char *name;
		code *fn;
		u64 before, value, want, flags;
	} cases[] = {
		{ "popcnt", insn_popcnt, -1, 0xf0f0f0f0f0f0f0f0, 16, 0 },
		{ "popcnt, W", insn_popcnt_w, 0, 0xf0f0f0f0f0f0f0f0, 32, 0 },
		{ "popcnt of 0", insn_popcnt, -1, 1ul << 32, 0, ZF },
		{ "lzcnt", insn_lzcnt, -1, 0x00010000, 15, 0 },
		{ "lzcnt, W", insn_lzcnt_w, -1, 0x00010000, 47, 0 },
		{ "lzcnt of the top bit", insn_lzcnt, -1, 0x80000000, 0, ZF },
		{ "lzcnt of 0", insn_lzcnt, -1, 1ul << 40, 32, CF },
		{ "lzcnt of 0, W", insn_lzcnt_w, -1, 0, 64, CF },
		{ "tzcnt", insn_tzcnt, -1, 0x00010000, 16, 0 },
		{ "tzcnt, W", insn_tzcnt_w, -1, 1ul << 40, 40, 0 },
		{ "tzcnt of 1", insn_tzcnt, -1, 1, 0, ZF },
		{ "tzcnt of 0", insn_tzcnt, -1, 1ul << 40, 32, CF },
		{ "tzcnt of 0, W", insn_tzcnt_w, -1, 0, 64, CF },
		/* The target says at which bit to begin. */
		{ "tzcnti", insn_tzcnti, 4, 0x00010003, 12, 0 },
		{ "tzcnti, W", insn_tzcnti_w, 4, 1ul << 40, 36, 0 },
		{ "tzcnti at once", insn_tzcnti, 16, 0x00010003, 0, ZF },
		{ "tzcnti below 0", insn_tzcnti, 0xfffffff0, 0x10, 4, 0 },
		{ "tzcnti below 0, W", insn_tzcnti_w, -9, 0x10, 4, 0 },
		{ "tzcnti, none left", insn_tzcnti, 20, 0x00010003, 12, CF },
		{ "tzcnti past the end", insn_tzcnti, 32, -1, 32, CF },
		{ "tzcnti past the end, W", insn_tzcnti_w, 64, -1, 64, CF },
	};

	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 flags, got = bits_of(cases[i].fn, cases[i].before,
					 cases[i].value, &flags);

		result(got == cases[i].want && flags == cases[i].flags,
		       name2("bits: ", cases[i].name),
		       "%ld, flags 0x%lx, not %ld, 0x%lx", got, flags,
		       cases[i].want, cases[i].flags);
	}
}

void test_instructions(void)
{
	rdpmc();
	spflt();
	counting_bits();
}

/* On another CPU model all of this behaves as in QEMU without emulator/. */
void test_plain_cpu(void)
{
	check("other cpu: spflt", faults3(insn_spflt_eax), UD);
	check("other cpu: delay", faults3(insn_delay_eax), UD);
	check("other cpu: spflt with W", faults3(insn_spflt_rax_w), UD);
	check("other cpu: popcnt with VEX", faults3(insn_popcnt), UD);
	check("other cpu: tzcnti", faults3(insn_tzcnti), UD);
	check("other cpu: vprefetchnta", faults3(insn_vprefetchnta), UD);
	check("other cpu: clevict0", faults3(insn_clevict0), UD);
	rdpmc_rcx = 0;
	check("other cpu: rdpmc", faults(in_ring0, 0, 0), UD);
	check("other cpu: test device", item(0, ITEM_MAGIC), -1ul);
	check("other cpu: no strict MSRs", rdmsr_faults(MSR_OVF), -1);
}
