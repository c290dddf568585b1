/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: what a thread has beside the PMU, as its kernel needs it
 */
#ifndef I386_KNC_CHIP_H
#define I386_KNC_CHIP_H

#define KNC_VECTORS         32
#define KNC_VECTOR_SIZE     64
#define KNC_VECTOR_ELEMENT  4
#define KNC_MASKS           8

/* Argument of the helpers: the vector in 4:0, and the MMU index */
#define KNC_VECTOR_HIGH     0x20
#define KNC_VECTOR_MMU_SHIFT 8

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
    uint32_t vector[KNC_VECTORS][KNC_VECTOR_SIZE / KNC_VECTOR_ELEMENT];
    uint16_t mask[KNC_MASKS];
    uint64_t tr12;
} KncChip;

#endif /* I386_KNC_CHIP_H */
