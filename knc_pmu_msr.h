/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Registers of the Knights Corner core PMU, and the only code that touches them. Every
 * register is private to a hardware thread (327357-001, Table 1-2).
 */
#ifndef _KNC_PMU_MSR_H
#define _KNC_PMU_MSR_H

#include <linux/bits.h>
#include <linux/types.h>

#include <asm/apic.h>
#include <asm/msr.h>

/* Of CPUID's family 11; model 0 is Knights Ferry. */
#define KNC_MODEL			0x01

#define KNC_NUM_COUNTERS		2
#define KNC_COUNTER_MASK		(BIT(KNC_NUM_COUNTERS) - 1)

/*
 * A write sets all 40 bits of a counter (1.4.3.2). The longest period is 2^39 - 1, so
 * bit 39 is set until the counter wraps.
 */
#define KNC_COUNTER_WIDTH		40
#define KNC_COUNTER_BITS		GENMASK_ULL(KNC_COUNTER_WIDTH - 1, 0)
#define KNC_COUNTER_SIGN		BIT_ULL(KNC_COUNTER_WIDTH - 1)
#define KNC_MAX_PERIOD			(KNC_COUNTER_SIGN - 1)

/* Table 1-2. 0x22-0x27, 0x2a and 0x2b are not PMU registers. */
#define KNC_MSR_PERFCTR0		0x20
#define KNC_MSR_EVNTSEL0		0x28
#define KNC_MSR_SPFLT_CONTROL		0x2c
#define KNC_MSR_GLOBAL_STATUS		0x2d	/* read only */
#define KNC_MSR_GLOBAL_OVF_CTRL		0x2e	/* write only */
#define KNC_MSR_GLOBAL_CTRL		0x2f

/* IA32_PerfEvtSelX, Table 1-5 */
#define KNC_EVNTSEL_EVENT		GENMASK_ULL(7, 0)
#define KNC_EVNTSEL_UMASK		GENMASK_ULL(15, 8)
#define KNC_EVNTSEL_USR			BIT_ULL(16)
#define KNC_EVNTSEL_OS			BIT_ULL(17)
#define KNC_EVNTSEL_EDGE		BIT_ULL(18)
#define KNC_EVNTSEL_INT			BIT_ULL(20)
#define KNC_EVNTSEL_ANY			BIT_ULL(21)	/* thread count mode */
#define KNC_EVNTSEL_EN			BIT_ULL(22)
#define KNC_EVNTSEL_INV			BIT_ULL(23)
#define KNC_EVNTSEL_CMASK		GENMASK_ULL(31, 24)

/* PERF_SPFLT_CONTROL, Table 1-7; bits 1:0 enable the filter per counter */
#define KNC_SPFLT_USER_PREFERENCE	BIT_ULL(63)

/* The unit tests have recording versions of these five. */
#ifndef KNC_PMU_RECORD_ACCESSES

static __always_inline void knc_wrmsr(u32 msr, u64 value)
{
	wrmsrq(msr, value);
}

static __always_inline u64 knc_rdmsr(u32 msr)
{
	u64 value;

	rdmsrq(msr, value);
	return value;
}

static __always_inline u64 knc_read_counter(u32 idx)
{
	u32 low, high;

	/* Zero-extended by the processor (Table 1-1). */
	asm volatile("rdpmc" : "=a" (low), "=d" (high) : "c" (idx));
	return ((u64)high << 32) | low;
}

/* The local APIC is memory-mapped. Newer kernels do not export apic_write(). */
static __always_inline void knc_write_lvtpc(u32 value)
{
	native_apic_mem_write(APIC_LVTPC, value);
}

static __always_inline u32 knc_read_lvtpc(void)
{
	return native_apic_mem_read(APIC_LVTPC);
}

#endif /* !KNC_PMU_RECORD_ACCESSES */

static __always_inline u32 knc_perfctr_msr(unsigned int idx)
{
	return KNC_MSR_PERFCTR0 + idx;
}

static __always_inline u32 knc_evntsel_msr(unsigned int idx)
{
	return KNC_MSR_EVNTSEL0 + idx;
}

static __always_inline void knc_write_counter(unsigned int idx, u64 value)
{
	knc_wrmsr(knc_perfctr_msr(idx), value & KNC_COUNTER_BITS);
}

static __always_inline void knc_write_evntsel(unsigned int idx, u64 value)
{
	knc_wrmsr(knc_evntsel_msr(idx), value);
}

static __always_inline void knc_write_global_ctrl(u32 counters)
{
	knc_wrmsr(KNC_MSR_GLOBAL_CTRL, counters);
}

/* In KNC_STOP a PMI or a reader asks with this whether the counters run all the same. */
static __always_inline u64 knc_read_global_ctrl(void)
{
	return knc_rdmsr(KNC_MSR_GLOBAL_CTRL) & KNC_COUNTER_MASK;
}

static __always_inline u64 knc_read_status(void)
{
	return knc_rdmsr(KNC_MSR_GLOBAL_STATUS) & KNC_COUNTER_MASK;
}

static __always_inline void knc_clear_status(u64 counters)
{
	knc_wrmsr(KNC_MSR_GLOBAL_OVF_CTRL, counters);
}

static __always_inline void knc_write_spflt(u64 value)
{
	knc_wrmsr(KNC_MSR_SPFLT_CONTROL, value);
}

static __always_inline u64 knc_read_spflt(void)
{
	return knc_rdmsr(KNC_MSR_SPFLT_CONTROL);
}

/* As an NMI the PMI samples code with interrupts off, too. Delivery masks the entry (1.4.3.9). */
static __always_inline void knc_unmask_lvtpc(void)
{
	knc_write_lvtpc(APIC_DM_NMI);
}

static __always_inline void knc_mask_lvtpc(void)
{
	knc_write_lvtpc(APIC_DM_NMI | APIC_LVT_MASKED);
}

static __always_inline bool knc_lvtpc_is_masked(void)
{
	return knc_read_lvtpc() & APIC_LVT_MASKED;
}

#endif /* _KNC_PMU_MSR_H */
