/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: what a thread has beside the PMU and the vector unit
 */
#ifndef I386_KNC_CHIP_H
#define I386_KNC_CHIP_H

/* CPUID leaf 1, as far as the chip has it; ECX is 0 */
#define KNC_CPUID_1_EDX \
    (CPUID_FP87 | CPUID_VME | CPUID_DE | CPUID_PSE | CPUID_TSC | CPUID_MSR | \
     CPUID_PAE | CPUID_MCE | CPUID_CX8 | CPUID_APIC | CPUID_MTRR | CPUID_MCA | \
     CPUID_PAT | CPUID_FXSR)

/* Numbers of instructions or registers that the chip has */
typedef struct KncRange {
    uint32_t first, last;
} KncRange;

static inline bool knc_among(const KncRange *some, int n, uint32_t number)
{
    for (int i = 0; i < n; i++) {
        if (number >= some[i].first && number <= some[i].last) {
            return true;
        }
    }
    return false;
}

typedef struct KncChip {
    uint64_t tr12;
} KncChip;

#endif /* I386_KNC_CHIP_H */
