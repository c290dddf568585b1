// SPDX-License-Identifier: GPL-2.0-only
/* RDPMC, SPFLT and DELAY: privilege, operands, and what is no such thing */
#include "bare.h"

#define UD	6
#define GP	13

extern code f_nops;

u64 rdpmc_rax, rdpmc_rdx, rdpmc_rcx;

/* RDPMC with dirty upper halves, in whatever ring it is called */
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

static int fault3;

/* A fault in ring 3: skip the rest of the function */
static void leave(struct regs *r)
{
	fault3 = r->vector;
	r->rip = *(u64 *)r->rsp;
	r->rsp += 8;
}

static int faults3(code *fn)
{
	fault3 = -1;
	handlers[UD] = leave;
	handlers[GP] = leave;
	user_run(fn);
	handlers[UD] = 0;
	handlers[GP] = 0;
	return fault3;
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
/* Not these: VEX.L set, vvvv used, a memory operand, no VEX, pp 0 and 66, /7 */
INSN(bad_l, 0xc5, 0xff, 0xae, 0xf0);
INSN(bad_vvvv, 0xc5, 0xf3, 0xae, 0xf0);
INSN(bad_memory, 0xc5, 0xfb, 0xae, 0x30);
INSN(bad_pp0, 0xc5, 0xf8, 0xae, 0xf0);
INSN(bad_pp66, 0xc5, 0xf9, 0xae, 0xf0);
INSN(bad_slash7, 0xc5, 0xfb, 0xae, 0xf8);
/* AVX is not there, with whatever VEX decoding there is: vzeroupper */
INSN(avx, 0xc5, 0xf8, 0x77);

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
	for (u32 i = 0; i < sizeof(encodings) / sizeof(*encodings); i++)
		check(encodings[i].name, faults3(encodings[i].fn),
		      encodings[i].fault);

	pmu_quiet();
	wrmsr(MSR_SPFLT, 2);
	user_run(spflt_one);
	check("spflt: sets bit 63 only", rdmsr(MSR_SPFLT), SPFLT_PREF | 2);

	/*
	 * Counter 0 is gated: from the instruction after an SPFLT that sets the
	 * bit to the SPFLT that clears it, which itself still counts.
	 * Counter 1 is not.
	 */
	pmu_quiet();
	wrmsr(MSR_SEL0, EV_INSTRUCTIONS | SEL_USR | SEL_EN);
	wrmsr(MSR_SEL1, EV_INSTRUCTIONS | SEL_USR | SEL_EN);
	wrmsr(MSR_SPFLT, 1);
	user_run(spflt_region);
	check("spflt: gated counter", rdmsr(MSR_CNT0), 20 + 2 + 10 + 2);
	check("spflt: free counter", rdmsr(MSR_CNT1), 69 + 2);
	check("spflt: preference off at the end", rdmsr(MSR_SPFLT), 1);

	/* The preference of the register is the one of the instruction. */
	pmu_quiet();
	wrmsr(MSR_SEL1, EV_INSTRUCTIONS | SEL_USR | SEL_EN);
	wrmsr(MSR_SPFLT, SPFLT_PREF | 2);
	user_run(f_nops);
	check("spflt: preference written by wrmsr", rdmsr(MSR_CNT1), 103);
	pmu_quiet();
}

void test_instructions(void)
{
	rdpmc();
	spflt();
}

/* On a CPU that is no Knights Corner all of this is as it was before. */
void test_plain_cpu(void)
{
	check("other cpu: spflt", faults3(insn_spflt_eax), UD);
	check("other cpu: delay", faults3(insn_delay_eax), UD);
	check("other cpu: spflt with W", faults3(insn_spflt_rax_w), UD);
	rdpmc_rcx = 0;
	check("other cpu: rdpmc", faults(in_ring0, 0, 0), UD);
	check("other cpu: test device", item(0, ITEM_MAGIC), -1ul);
	check("other cpu: no strict MSRs", rdmsr_faults(MSR_OVF), -1);
}
