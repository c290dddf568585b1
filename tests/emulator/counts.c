// SPDX-License-Identifier: GPL-2.0-only
/* The counts of code that was counted by hand */
#include "bare.h"

extern code f_fault_load, f_fault_push, f_fault_rep, f_fault_fetch, f_fault_ud,
	f_fault_div, f_fault_gp, f_int80, f_syscall, f_single_step, f_single_step_rep,
	f_rep_movsb, f_self_modifying, f_spflt_insns, f_vectors;
u64 read_between(void);

#define BOTH	(SEL_USR | SEL_OS)

static void expect(const char *name, u64 insns, u64 branches)
{
	u64 i = rdmsr(MSR_CNT0), b = rdmsr(MSR_CNT1);

	result(i == insns && b == branches, name,
	       "%ld instructions, not %ld; %ld branches, not %ld",
	       i, insns, b, branches);
}

static void table(const struct entry *e, const struct entry *end)
{
	for (; e < end; e++) {
		program(EV_INSTRUCTIONS | SEL_OS, EV_BRANCHES | SEL_OS);
		measure0(e->fn);
		expect(text("count: ring 0: %s", e->name), e->insns + 5, e->branches + 1);

		program(EV_INSTRUCTIONS | SEL_USR, EV_BRANCHES | SEL_USR);
		user_run(e->fn);
		expect(text("count: ring 3: %s", e->name), e->insns + 2, e->branches + 2);

		program(EV_INSTRUCTIONS | BOTH, EV_BRANCHES | BOTH);
		user_run(e->fn);
		expect(text("count: both rings: %s", e->name), e->insns + 7, e->branches + 3);
	}
}

/* The test device's counts, which do not depend on the registers */
static void truth(void)
{
	program(EV_INSTRUCTIONS | SEL_USR, EV_CYCLES | SEL_USR);
	mark();
	user_run(f_nops);
	check("test device: instructions in ring 3", since(0, ITEM_INSNS3), 103);
	check("test device: branches in ring 3", since(0, ITEM_BRANCHES3), 3);
	check("test device: cycles in ring 3", since(0, ITEM_CYCLES3), rdmsr(MSR_CNT1));
	check("test device: total of counter 0", since(0, ITEM_TOTAL0), 103);
}

/* RDPMC does not count itself: 12 instructions, the first RDPMC included */
static void readers(void)
{
	switch_on(EV_INSTRUCTIONS | SEL_OS, 0);
	check("rdpmc: exact at the instruction", read_between(), 12);
	wrmsr(MSR_GLOBAL, 0);
}

static void write_while_counting(void)
{
	program(EV_INSTRUCTIONS | SEL_OS, 0);
	asm volatile("movl $1, %%eax\n\t"
		     "xorl %%edx, %%edx\n\t"
		     "movl %0, %%ecx\n\t"
		     "wrmsr\n\t"
		     "nop; nop; nop\n\t"
		     "movl $1000, %%eax\n\t"
		     "movl %1, %%ecx\n\t"
		     "wrmsr\n\t"
		     "nop; nop\n\t"		/* counted: 2 */
		     "xorl %%eax, %%eax\n\t"	/* 3 */
		     "movl %0, %%ecx\n\t"	/* 4 */
		     "wrmsr"			/* 5 */
		     : : "i"(MSR_GLOBAL), "i"(MSR_CNT0)
		     : "rax", "rcx", "rdx", "memory");
	check("count: from the instruction after a write", rdmsr(MSR_CNT0), 1005);
}

static void divide_by_one(struct regs *r)
{
	trapped++;
	r->rcx = 1;
}

static void trap_test(const char *name, code *fn, int vector, trap_handler *h,
		      int times, u64 insns, u64 branches)
{
	handlers[vector] = h;
	trapped = 0;
	program(EV_INSTRUCTIONS | SEL_USR, EV_BRANCHES | SEL_USR);
	user_run(fn);
	expect(text("count: %s", name), insns + 2, branches + 2);
	if (trapped != times)
		result(0, text("traps: %s", name), "%d, not %d", trapped, times);
	handlers[vector] = 0;
}

/* The same with page 0 or 1, or both, to be mapped by the handler of the fault */
static void fault_test(const char *name, code *fn, int pages_out, int times,
		       u64 insns, u64 branches)
{
	/* A function for the page that the call in fault_fetch goes to */
	pages[0][0] = 0xc3;
	for (int n = 0; n < 2; n++)
		map_page(n, !(pages_out & BIT(n)));
	trap_test(name, fn, 14, map_and_retry, times, insns, branches);
}

static void traps(void)
{
	fault_test("load restarted after a page fault", f_fault_load, 1, 1, 6, 1);
	fault_test("push from memory, both halves fault", f_fault_push, 3, 2, 5, 1);
	fault_test("call to a missing page", f_fault_fetch, 1, 1, 5, 3);
	fault_test("rep stosb, with a fault half-way", f_fault_rep, 2, 1, 5, 1);
	trap_test("undefined instruction", f_fault_ud, UD, skip2, 1, 3, 1);
	trap_test("division restarted", f_fault_div, 0, divide_by_one, 1, 5, 1);
	trap_test("int through a closed gate", f_fault_gp, GP, skip2, 1, 3, 1);
	handlers[3] = count_trap;
	trap_test("int 0x80 and int3", f_int80, VEC_INT80, count_trap, 2, 5, 3);
	handlers[3] = 0;
	trap_test("syscall", f_syscall, UD, skip2, 0, 4, 2);
	/* TF takes effect after the popf that sets it. */
	trap_test("single-stepping", f_single_step, 1, count_trap, 12, 16, 4);
	trap_test("single-stepping a rep", f_single_step_rep, 1, count_trap, 10, 10, 1);
}

/* Codes without a model, and codes of no event, never count and never fault. */
static void nothing(void)
{
	static const u32 codes[] = {
		0xff, 0x1600, 0x1016, 0xff16, 0xffff, 0x2016, 0x3012, 0x0a,
	};
	u64 sum = 0;

	for (u32 i = 0; i < ARRAY_SIZE(codes); i++) {
		program(codes[i] | SEL_OS, codes[i] | SEL_OS);
		measure0(f_nops);
		sum += rdmsr(MSR_CNT0) + rdmsr(MSR_CNT1);
	}
	check("count: no such event", sum, 0);
}

/* At most one instruction issues per cycle, and never in two cycles in a row. */
static const struct counting mask_cases[] = {
	{ "cycles: 100 nops", f_nops, EV_CYCLES, 2 * 106 },
	{ "cycles: 1000 bytes of rep movsb", f_rep_movsb, EV_CYCLES, 2 * (5 + 5 + 999) },
	{ "mask: cmask 1", f_nops, EV_INSTRUCTIONS | SEL_CMASK(1), 106 },
	{ "mask: cmask 2", f_nops, EV_INSTRUCTIONS | SEL_CMASK(2), 0 },
	{ "mask: cmask 1, inverted", f_nops, EV_INSTRUCTIONS | SEL_CMASK(1) | SEL_INV, 106 },
	{ "mask: cmask 2, inverted", f_nops, EV_INSTRUCTIONS | SEL_CMASK(2) | SEL_INV, 212 },
	{ "mask: inverted without cmask", f_nops, EV_INSTRUCTIONS | SEL_INV, 106 },
	{ "mask: edge", f_nops, EV_INSTRUCTIONS | SEL_E, 106 },
	{ "mask: edge, cmask 2", f_nops, EV_INSTRUCTIONS | SEL_E | SEL_CMASK(2), 0 },
	{ "mask: cycles, cmask 1", f_nops, EV_CYCLES | SEL_CMASK(1), 212 },
	{ "mask: cycles, cmask 1, inverted", f_nops, EV_CYCLES | SEL_CMASK(1) | SEL_INV, 0 },
	{ "mask: cycles, cmask 2", f_nops, EV_CYCLES | SEL_CMASK(2), 0 },
	{ "mask: cycles, edge", f_nops, EV_CYCLES | SEL_E, 0 },
};

SUITE(test_counts, "counts")
{
	set_pce(1);
	table(__start_code_table, __stop_code_table);
	if (modern())
		table(__start_modern_code, __stop_modern_code);
	truth();
	readers();
	write_while_counting();
	traps();
	nothing();
	count_each(count0, mask_cases, ARRAY_SIZE(mask_cases));
}

/*
 * A counter counts iff EN, GLOBAL_CTRL and the ring allow it and, with its SPFLT enable, the
 * preference is set: all 2^6 combinations, in both rings, for both counters.
 */
SUITE(test_gates, "gates")
{
	u64 wrong = 0;

	for (int n = 0; n < 2; n++) {
		for (int bits = 0; bits < 64; bits++) {
			u64 en = bits & 1, on = bits >> 1 & 1;
			u64 usr = bits >> 2 & 1, os = bits >> 3 & 1;
			u64 gate = bits >> 4 & 1, pref = bits >> 5;
			u64 before = 0, want = 0, got;

			pmu_quiet();
			wrmsr(MSR_SEL0 + n, EV_INSTRUCTIONS | usr << 16 |
			      os << 17 | en << 22);
			wrmsr(MSR_SPFLT, gate << n | pref << 63);
			if (on) {
				/* These turn both counters on. */
				measure0(f_nops);
				before = rdmsr(MSR_CNT0 + n);
				user_run(f_nops);
				if (en && (!gate || pref))
					want = os * (106 + 5) + usr * 103;
			} else {
				wrmsr(MSR_SEL0 + !n, SEL_EN | SEL_OS);
				wrmsr(MSR_GLOBAL, BIT(!n));
				f_nops();
				wrmsr(MSR_GLOBAL, 0);
			}
			got = rdmsr(MSR_CNT0 + n);
			if (got != want || before > got) {
				wrong++;
				print("counter %d, case 0x%x: %ld, not %ld\n",
				      n, bits, got, want);
			}
		}
	}
	result(!wrong, "gates: EN, GLOBAL_CTRL, USR, OS, SPFLT", "%ld of 128 wrong", wrong);
}

/*
 * For the comparison with QEMU's plugins: no DELAY, no instruction that is
 * restarted and no access of 16 bytes, as plugins count attempts and halves.
 */
static void run_both(const struct entry *e, const struct entry *end)
{
	for (; e < end; e++) {
		if (e->fn == f_self_modifying || e->fn == f_spflt_insns ||
		    e->fn == f_vectors)
			continue;
		measure0(e->fn);
		user_run(e->fn);
	}
}

SUITE(test_compare, "compare")
{
	set_pce(1);
	pmu_quiet();
	run_both(__start_code_table, __stop_code_table);
	run_both(__start_modern_code, __stop_modern_code);
	handle_ints(count_trap);
	user_run(f_int80);
	user_run(f_syscall);
	print("done 1 0\n");
	for (;;)
		asm volatile("cli; hlt");
}
