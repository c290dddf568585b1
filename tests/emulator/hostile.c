// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random values for registers, the test device and the local APIC, on all threads
 * at once. The emulator must survive them, must not take more memory
 * (test_emulator.py checks that), and must count correctly afterwards.
 */
#include "bare.h"

#define ROUNDS		15000

extern code f_rep_movsb, f_loop;

static volatile int going;

static void valid_register(void)
{
	/* Those that can be written; event select registers get an event. */
	static const u64 bits[VALUES] = { WRAP - 1, WRAP - 1, 0, 0, SPFLT_PREF | 3, 3, 3 };
	u32 i = any() % VALUES, msr = pmu_registers[i];

	wrmsr(msr == MSR_STATUS ? MSR_OVF : msr, bits[i] ? any_value() & bits[i] : any_select());
}

/* Its ports, with threads that exist and threads that do not */
static void test_device(void)
{
	u32 port = TESTDEV + (any() & 0x1c), cpu = any() % (ncpus() + 2);

	if (any() & 1)
		inl(port);
	else
		outl(port, (any() & 0xffff) | (any() & 1 ? cpu << 16 : any()));
}

static void local_apic(void)
{
	u64 r = any();

	switch (r & 7) {
	case 0:
		apic_write(APIC_SVR, 0xff | (r & 0x100));
		break;
	case 1:
		apic_write(APIC_LVTPC, any() & ~0x700ul);
		break;
	case 2:
		apic_write(APIC_EOI, any());
		break;
	case 3:
		/* An NMI for a CPU, which may not exist */
		send_nmi(any() % (ncpus() + 2));
		break;
	default:
		apic_write(APIC_LVTPC, r & 8 ? LVT_NMI : VEC_PMI);
	}
}

static void code_of_its_own(void)
{
	static code *const some[] = { f_nops, f_rep_movsb, f_loop };
	u64 r = any();

	some[r % 3]();
	asm volatile(ASM_SPFLT : : "a"(r));
	asm volatile(ASM_DELAY : : "a"(r & 0xffff));
	asm volatile(ASM_VPREFETCH0 : : "a"(any()) : "memory");
	asm volatile(ASM_CLEVICT1 : : "a"(pages[r % 16]) : "memory");
	asm volatile("rdpmc" : : "c"(r & 1) : "rax", "rdx");
	if (!(r & 0x3f00))
		write_cr3(read_cr3());
}

static void take_nmi(struct regs *r)
{
	if (any() & 1)
		wrmsr(MSR_OVF, any() & 3);
	/* Else every instruction could cause another NMI. */
	wrmsr(MSR_GLOBAL, any() & any() & 3);
	if (any() & 1)
		apic_write(APIC_LVTPC, LVT_NMI);
}

static void harass(void)
{
	valid_register();
	test_device();
	local_apic();
	code_of_its_own();
}

static void keep_harassing(void)
{
	while (going)
		harass();
}

/* Take back all orders, and switch the counters off. */
static void calm(void)
{
	apic_write(APIC_SVR, 0x1ff);
	for (int n = 0; n < ncpus(); n++) {
		outl(TESTDEV + 0x10, 0);
		outl(TESTDEV + 0x14, 0);
		outl(TESTDEV + 0x18, n << 16);
	}
	delay(10000000);
	pmu_quiet();
}

static u64 counted;

static void count_nops(void)
{
	calm();
	counted = count0(f_nops, EV_INSTRUCTIONS);
}

SUITE(test_hostile, "hostile")
{
	start_cpus();
	handlers[2] = take_nmi;
	going = 1;
	for (int n = 0; n < ncpus(); n++)
		seeds[n] = n + 1;
	for (int n = 1; n < ncpus(); n++)
		on_cpu_start(n, keep_harassing);
	for (int i = 0; i < ROUNDS; i++)
		harass();
	going = 0;
	/* This also releases a stopped CPU. */
	calm();
	for (int n = 1; n < ncpus(); n++)
		on_cpu_wait(n);
	count_nops();
	check("hostile: CPU 0 counts as before", counted, 106);
	for (int n = 1; n < ncpus(); n++) {
		on_cpu(n, count_nops);
		check("hostile: another one, too", counted, 106);
	}
}
