// SPDX-License-Identifier: GPL-2.0-only
/* Overflow, the interrupt line, and the place of the interrupt */
#include "bare.h"

extern code f_loop10, f_fault_load, f_fault_rep, f_fault_fetch, f_int80, f_hlt,
	f_syscall, f_indirect, f_shadow, traced;
extern char at_shadow_end[], at_fault[], at_rep_end[], at_loop[], at_hlt_end[], user_stub[];

/* An interrupt after ten instructions of ring 0 */
static void arm(u32 lvt)
{
	arm_pmi(EV_INSTRUCTIONS | SEL_OS | SEL_INT, 10, lvt);
}

/* With an interrupt if @interrupt is SEL_INT */
static void run_nops(u64 after, u64 interrupt)
{
	arm_pmi(EV_INSTRUCTIONS | SEL_OS | interrupt, after, LVT_NMI);
	measure0(f_nops);
}

static void wrap(void)
{
	mark();
	run_nops(50, 0);
	check("overflow: goes on from 0", rdmsr(MSR_CNT0), 106 - 50);
	check("overflow: STATUS without INT", rdmsr(MSR_STATUS), 1);
	check("overflow: no interrupt without INT", pmi.count, 0);
	check("overflow: no edge without INT", since(0, ITEM_EDGES), 0);
	check("overflow: counted once", since(0, ITEM_OVERFLOWS0), 1);
	check("overflow: LVTPC as it was", apic_read(APIC_LVTPC), LVT_NMI);
	measure0(f_nops);
	check("overflow: STATUS is sticky", rdmsr(MSR_STATUS), 1);
	wrmsr(MSR_OVF, 2);
	check("overflow: other bit of OVF_CTRL", rdmsr(MSR_STATUS), 1);
	wrmsr(MSR_OVF, 0);
	check("overflow: OVF_CTRL 0 clears nothing", rdmsr(MSR_STATUS), 1);
	wrmsr(MSR_OVF, 1);
	check("overflow: OVF_CTRL clears STATUS", rdmsr(MSR_STATUS), 0);

	/* A write of 0 is no overflow. */
	wrmsr(MSR_CNT0, WRAP - 1);
	wrmsr(MSR_CNT0, 0);
	check("overflow: not by a write", rdmsr(MSR_STATUS), 0);

	/* The last event before 0, and the one after it */
	run_nops(107, 0);
	check("overflow: not before 2^40", rdmsr(MSR_STATUS), 0);
	check("overflow: at 2^40 - 1", rdmsr(MSR_CNT0), WRAP - 1);
	run_nops(106, 0);
	check("overflow: at 2^40", rdmsr(MSR_STATUS), 1);
	check("overflow: the wrmsr that stops it counts", rdmsr(MSR_CNT0), 0);
}

/* The interrupt comes before the instruction after the overflow. */
static void precise(void)
{
	int wrong = 0;

	for (int n = 1; n <= 101; n++) {
		wrong += misses((char *)f_nops + n - 1, f_nops, EV_INSTRUCTIONS, n);
		arm_pmi(EV_INSTRUCTIONS | SEL_USR | SEL_INT, n, LVT_NMI);
		user_run(f_nops);
		wrong += !came_at((char *)f_nops + n - 1, USER_CS);
	}
	check("pmi: no skid after any of 101 instructions", wrong, 0);

	for (int n = 1; n <= 9; n++) {
		wrong += misses(at_loop, f_loop10, EV_BRANCHES, n + 1);
		/* 2 cycles an instruction: an odd number waits for the end. */
		wrong += misses((char *)f_nops + n - 1, f_nops, EV_CYCLES, 2 * n - n % 2);
	}
	check("pmi: no skid after branches and cycles", wrong, 0);
}

static void where(const char *name, code *fn, u64 sel, int after, void *rip, u64 cs)
{
	arm_pmi(sel | SEL_INT, after, LVT_NMI);
	user_run(fn);
	result(came_at(rip, cs), name,
	       "%d interrupts, STATUS 0x%lx, at 0x%lx:0x%lx, not 0x%lx:0x%lx",
	       pmi.count, pmi.status, pmi.cs, pmi.rip, cs, (u64)rip);
}

static int breaks;

static void step_over(struct regs *r)
{
	breaks++;
	r->rflags |= BIT(16); /* RF */
}

static void set_breakpoint(void *rip, u64 on)
{
	handlers[1] = on ? step_over : 0;
	breaks = 0;
	asm volatile("movq %0, %%dr0; movq %1, %%dr7" : : "r"(rip), "r"(on));
}

/* A breakpoint on an instruction is a fault of it: what comes before it is first. */
static void at_breakpoint(const char *name, code *fn, int after, void *rip)
{
	set_breakpoint(rip, 1);
	where(name, fn, EV_INSTRUCTIONS | SEL_USR, after, rip, USER_CS);
	check(text("%s: the breakpoint", name), breaks, 1);
	set_breakpoint(0, 0);
}

/* Before the fault and after it, in another line than the instruction before it */
static void fetched_twice(void)
{
	u64 lines = count3(f_nops, EV_CODE_READ);

	set_breakpoint((char *)f_nops + 64, 1);
	check("code: an instruction with a breakpoint", count3(f_nops, EV_CODE_READ),
	      lines + 1);
	set_breakpoint(0, 0);
}

/* Interrupts at the ends of the emulator's blocks, and at changes of the ring */
static void places(void)
{
	u64 insns = EV_INSTRUCTIONS | SEL_USR;

	handlers[14] = map_and_retry;
	handle_ints(ignore);
	map_page(0, 0);
	where("pmi: before a fault in the next instruction", f_fault_load,
	      insns, 3, at_fault, USER_CS);
	map_page(0, 0);
	where("pmi: not because of an instruction that faulted", f_fault_load,
	      insns, 4, at_fault + 2, USER_CS);
	pages[0][0] = 0xc3;
	map_page(0, 0);
	where("pmi: before a fault in fetching", f_fault_fetch, insns, 3,
	      (void *)PAGED_AREA, USER_CS);
	map_page(0, 1);
	map_page(1, 0);
	where("pmi: after a rep string, all of it", f_fault_rep, insns, 4, at_rep_end, USER_CS);
	where("pmi: after int, in its handler", f_int80, insns, 3,
	      trap_stubs + 16 * VEC_INT80, KERNEL_CS);
	where("pmi: after syscall, at its entry", f_syscall, insns, 3,
	      syscall_entry, KERNEL_CS);
	where("pmi: after iretq, in ring 3", f_nops,
	      EV_INSTRUCTIONS | SEL_OS, 1, user_stub, USER_CS);
	handlers[14] = 0;
	handle_ints(0);
	at_breakpoint("pmi: before a breakpoint", f_nops, 10, (char *)f_nops + 9);
	at_breakpoint("pmi: before a breakpoint that a call reaches", f_indirect, 4, f_empty);
	fetched_twice();
	for (int n = 3; n <= 4; n++)
		result(!misses(at_shadow_end, f_shadow, EV_INSTRUCTIONS, n),
		       "pmi: not in the shadow of MOV SS", "%d at 0x%lx", pmi.count, pmi.rip);
	result(!misses(at_hlt_end, f_hlt, EV_INSTRUCTIONS, 3), "pmi: after hlt, which it ends",
	       "%d at 0x%lx", pmi.count, pmi.rip);
}

static void overflow_again(void)
{
	wrmsr(MSR_CNT0, WRAP - 10);
	measure0(f_nops);
}

/* Delivery masks the entry; an edge while it is masked is lost. */
static void auto_mask(void)
{
	mark();
	run_nops(10, SEL_INT);
	check("line: an interrupt", pmi.count, 1);
	check("line: delivery sets the mask bit", apic_read(APIC_LVTPC), LVT_NMI | LVT_MASKED);
	check("line: delivered", since(0, ITEM_DELIVERED), 1);

	/* STATUS is still set: the line stays up, without an edge. */
	apic_write(APIC_LVTPC, LVT_NMI);
	overflow_again();
	check("line: no edge while STATUS is set", pmi.count, 1);
	check("line: one edge so far", since(0, ITEM_EDGES), 1);

	/* Cleared, but masked: lost, even if it is unmasked afterwards. */
	wrmsr(MSR_OVF, 1);
	apic_write(APIC_LVTPC, LVT_NMI | LVT_MASKED);
	overflow_again();
	check("line: edge while masked", since(0, ITEM_LOST), 1);
	apic_write(APIC_LVTPC, LVT_NMI);
	check("line: unmasking brings nothing back", pmi.count, 1);
	overflow_again();
	check("line: lost until STATUS is cleared", pmi.count, 1);

	/* Cleared and unmasked: the next one comes. */
	wrmsr(MSR_OVF, 1);
	overflow_again();
	check("line: the next edge", pmi.count, 2);
	check("line: edges", since(0, ITEM_EDGES), 3);
	check("line: lost", since(0, ITEM_LOST), 1);
	check("line: delivered in the end", since(0, ITEM_DELIVERED), 2);
}

/* A disabled APIC takes no interrupt, and masks the entry. */
static void takes_none(const char *how)
{
	check(text("line: %s, the entry is masked", how), apic_read(APIC_LVTPC),
	      LVT_NMI | LVT_MASKED);
	apic_write(APIC_LVTPC, LVT_NMI);
	check(text("line: %s, a write leaves it masked", how), apic_read(APIC_LVTPC),
	      LVT_NMI | LVT_MASKED);
	measure0(f_nops);
	check(text("line: %s, no interrupt", how), pmi.count, 0);
	check(text("line: %s, the edge is lost", how), since(0, ITEM_LOST), 1);
}

/* For good, as far as QEMU 7.2 goes */
static void disabled_by_base(void)
{
	u64 base = rdmsr(MSR_APIC_BASE);

	mark();
	arm(LVT_NMI);
	wrmsr(MSR_APIC_BASE, base & ~APIC_BASE_ENABLE);
	apic_write(APIC_SVR, 0x1ff);
	takes_none("APIC disabled by APIC_BASE");
	wrmsr(MSR_APIC_BASE, base);
}

static void disabled(void)
{
	mark();
	apic_write(APIC_LVTPC, -1);
	check("line: reserved bits of LVTPC", apic_read(APIC_LVTPC), LVT_MASKED | 0x7ff);
	arm(LVT_NMI);
	apic_write(APIC_SVR, 0xff);
	takes_none("APIC disabled");
	apic_write(APIC_SVR, 0x1ff);
	check("line: APIC enabled, the entry still masked",
	      apic_read(APIC_LVTPC), LVT_NMI | LVT_MASKED);
}

static void two_counters(void)
{
	mark();
	/* Both by the same instruction: one edge, one interrupt, two bits */
	arm(LVT_NMI);
	wrmsr(MSR_SEL1, EV_INSTRUCTIONS | SEL_OS | SEL_INT | SEL_EN);
	wrmsr(MSR_CNT1, WRAP - 10);
	measure0(f_nops);
	check("line: both counters at once, STATUS", pmi.status, 3);
	check("line: both counters at once, one edge", since(0, ITEM_EDGES), 1);
	check("line: both counters at once, one interrupt", pmi.count, 1);

	/* One of two bits cleared: the line stays up, so no new edge. */
	apic_write(APIC_LVTPC, LVT_NMI);
	wrmsr(MSR_OVF, 1);
	wrmsr(MSR_CNT0, WRAP - 10);
	wrmsr(MSR_CNT1, 0);
	measure0(f_nops);
	check("line: up while one bit is set", since(0, ITEM_EDGES), 1);
	check("line: no interrupt while one bit is set", pmi.count, 1);
	wrmsr(MSR_OVF, 2);
	overflow_again();
	check("line: still up through the other bit", since(0, ITEM_EDGES), 1);
	wrmsr(MSR_OVF, 3);
	overflow_again();
	check("line: down when both are cleared", pmi.count, 2);

	/* A bit that was set with INT off does not hold the line. */
	arm(LVT_NMI);
	wrmsr(MSR_SEL1, EV_INSTRUCTIONS | SEL_OS | SEL_EN);
	wrmsr(MSR_CNT1, WRAP - 5);
	measure0(f_nops);
	check("line: a counter without INT leaves it alone", pmi.count, 1);
	check("line: the other counter's STATUS", pmi.status, 3);
}

static void fixed_vector(void)
{
	mark();
	arm(VEC_PMI);
	asm volatile("sti; nop");
	measure0(f_nops);
	asm volatile("cli");
	check("line: fixed vector", pmi.count, 1);
	check("line: fixed vector, precise", pmi.rip, (u64)f_nops + 9);
	check("line: fixed vector, masked as well", apic_read(APIC_LVTPC),
	      VEC_PMI | LVT_MASKED);
	check("line: EOI", since(0, ITEM_EOIS), 1);

	/* With interrupts off it waits in the APIC. */
	arm(VEC_PMI);
	measure0(f_nops);
	check("line: fixed vector, interrupts off", pmi.count, 0);
	asm volatile("sti; nop; cli");
	check("line: fixed vector, interrupts on", pmi.count, 1);
}

/* What the entry cannot do: INIT, ExtINT, and what is no mode */
static void no_mode(void)
{
	static const u32 modes[] = { 1, 3, 5, 6, 7 };

	mark();
	for (u32 i = 0; i < ARRAY_SIZE(modes); i++) {
		arm(modes[i] << 8 | VEC_PMI);
		measure0(f_nops);
	}
	check("line: other modes deliver nothing", since(0, ITEM_DELIVERED), 0);
	check("line: their edges are lost", since(0, ITEM_LOST), ARRAY_SIZE(modes));
}

SUITE(test_overflow, "overflow")
{
	wrap();
	precise();
	places();
	auto_mask();
	disabled();
	two_counters();
	fixed_vector();
	no_mode();
	disabled_by_base();
}

/* For test_emulator.py's trace: a PMI with the seven steps, a lost one, and others */
static void seven_steps(struct regs *r)
{
	wrmsr(MSR_GLOBAL, 0);
	wrmsr(MSR_OVF, rdmsr(MSR_STATUS));
	apic_write(APIC_LVTPC, LVT_NMI);
	wrmsr(MSR_CNT0, 0);
	apic_write(APIC_EOI, 0);
}

SUITE(test_trace, "trace")
{
	arm_pmi(EV_INSTRUCTIONS | SEL_USR | SEL_INT, 7, LVT_NMI);
	handlers[2] = seven_steps;
	set_pce(1);
	outl(TESTDEV + 12, 1);
	user_run(traced);
	outl(TESTDEV + 12, 2);
	apic_write(APIC_LVTPC, LVT_MASKED);
	wrmsr(MSR_CNT0, WRAP - 1);
	user_run(f_empty);
	wrmsr_faults(MSR_STATUS, 5);
	rdmsr_faults(MSR_OVF);
	outl(TESTDEV + 12, 3);
}
