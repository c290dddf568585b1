// SPDX-License-Identifier: GPL-2.0-only
/* Every register: width, reserved bits, RO, WO; numbers without a register */
#include "bare.h"

/* Bits in @valid can be written one by one; others fault and change nothing. */
static void bits(const char *name, u32 msr, u64 valid)
{
	u64 wrong = 0;

	for (int i = 0; i < 64; i++) {
		int fault;

		wrmsr(msr, 0);
		fault = wrmsr_faults(msr, BIT(i));
		if (fault != (valid & BIT(i) ? -1 : GP) ||
		    rdmsr(msr) != (valid & BIT(i)))
			wrong |= BIT(i);
	}
	wrmsr(msr, valid);
	if (rdmsr(msr) != valid)
		wrong = -1;
	wrmsr(msr, 0);
	result(!wrong, name, "wrong bits 0x%lx", wrong);
}

static void write_only(void)
{
	u64 wrong = 0;

	for (int i = 0; i < 64; i++)
		if (wrmsr_faults(MSR_OVF, BIT(i)) != (i < 2 ? -1 : GP))
			wrong |= BIT(i);
	result(!wrong, "registers: reserved bits of OVF_CTRL", "wrong bits 0x%lx", wrong);
	check("registers: reading OVF_CTRL faults", rdmsr_faults(MSR_OVF), GP);
}

static void read_only(void)
{
	check("registers: writing STATUS faults", wrmsr_faults(MSR_STATUS, 0), GP);
	check("registers: reading STATUS", rdmsr_faults(MSR_STATUS), -1);
}

/* Between the registers, of an architectural PMU, and of nothing */
static void absent(void)
{
	static const u32 nobodys[] = {
		0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x2a, 0x2b,
		0xc1, 0x186, 0x309, 0x345, 0x38d, 0x38f, 0x390, 0x12345, 0xc0000104,
	};
	static const u32 of_a_pc[] = { 0x17, 0x8b, 0x174, 0x1a0 };
	int want = modern() ? -1 : GP;
	u64 wrong = 0;

	for (u32 i = 0; i < ARRAY_SIZE(nobodys); i++)
		if (rdmsr_faults(nobodys[i]) != GP || wrmsr_faults(nobodys[i], 0) != GP)
			wrong |= BIT(i);
	check("registers: those that neither chip nor PC has fault", wrong, 0);
	wrong = 0;
	for (u32 i = 0; i < ARRAY_SIZE(of_a_pc); i++)
		if (rdmsr_faults(of_a_pc[i]) != want || wrmsr_faults(of_a_pc[i], 0) != want)
			wrong |= BIT(i);
	check("registers: those of a PC are not the chip's", wrong, 0);
}

static void accesses(void)
{
	mark();
	rdmsr(MSR_STATUS);
	rdmsr_faults(MSR_OVF);
	rdmsr(0xc0000080);
	wrmsr(MSR_OVF, 0);
	wrmsr(MSR_CNT0, 0);
	wrmsr_faults(MSR_STATUS, 0);
	apic_write(APIC_LVTPC, LVT_MASKED);
	apic_write(APIC_EOI, 0);
	apic_write(APIC_EOI, 0);
	asm volatile("rdpmc" : : "c"(0) : "rax", "rdx");
	result(since(0, ITEM_RDMSRS) == 1 && since(0, ITEM_WRMSRS) == 2 &&
	       since(0, ITEM_LVTPCS) == 1 && since(0, ITEM_EOIS) == 2 &&
	       since(0, ITEM_RDPMCS) == 1,
	       "test device: number of accesses", "wrong");
	check("test device: magic", item(0, ITEM_MAGIC), 0x4b4e4350);
	check("test device: no such item", item(0, 999), -1ul);
	check("test device: no such thread", item(999, ITEM_MAGIC), -1ul);
}

static void identity(void)
{
	u32 r[4], max;

	cpuid(0, r);
	max = r[0];
	result(r[1] == 0x756e6547 && r[3] == 0x49656e69 && r[2] == 0x6c65746e,
	       "cpu: GenuineIntel", "it is not");
	cpuid(1, r);
	check("cpu: family 11", (r[0] >> 8 & 15) + (r[0] >> 20 & 255), 11);
	check("cpu: model 1", r[0] >> 4 & 15, 1);
	check("cpu: no PDCM", r[2] >> 15 & 1, 0);
	check("cpu: no DS", r[3] >> 21 & 1, 0);
	cpuid(10, r);
	result(max < 10 || !(r[0] & 0xff), "cpu: no architectural PMU",
	       "leaf 0xA is 0x%x", r[0]);
}

static void time_stamp(void)
{
	u64 a, b;

	wrmsr(MSR_TSC, 1ul << 50);
	a = rdtsc();
	b = rdmsr(MSR_TSC);
	result(a >= 1ul << 50 && a < (1ul << 50) + (1ul << 36) && b > a,
	       "registers: TSC can be set", "0x%lx, 0x%lx", a, b);
}

SUITE(test_registers, "registers")
{
	identity();
	pmu_quiet();
	bits("registers: bits of counter 0", MSR_CNT0, WRAP - 1);
	bits("registers: bits of counter 1", MSR_CNT1, WRAP - 1);
	bits("registers: bits of EVTSEL0", MSR_SEL0, 0xffffffff & ~BIT(19));
	bits("registers: bits of EVTSEL1", MSR_SEL1, 0xffffffff & ~BIT(19));
	bits("registers: bits of SPFLT_CONTROL", MSR_SPFLT, SPFLT_PREF | 3);
	bits("registers: bits of GLOBAL_CTRL", MSR_GLOBAL, 3);
	pmu_quiet();
	write_only();
	read_only();
	absent();
	accesses();
	time_stamp();
}
