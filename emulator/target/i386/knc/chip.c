/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: what a thread has beside the PMU, as its kernel needs it
 *
 * Vectors are loaded and stored, and nothing more.  INIT does not change them.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "tcg/tcg.h"
#include "tcg/helper-tcg.h"
#include "internal.h"
#include "exec/cpu_ldst.h"

/* The instruction cache: TR5 takes commands, TR12 has bits of control. */
#define MSR_TR5         0x07
#define MSR_TR12        0x0e

#define MSR_PLATFORM_ID 0x17

/* Beside the PMU's and the TSC */
static const KncRange chip_msrs[] = {
    { MSR_TR5, MSR_TR5 },
    { MSR_TR12, MSR_TR12 },
    { MSR_IA32_APICBASE, MSR_IA32_APICBASE },
    { MSR_MTRRcap, MSR_MTRRcap },
    { MSR_MCG_CAP, MSR_MCG_CTL },
    { MSR_MTRRphysBase(0), MSR_MTRRphysMask(7) },
    { MSR_MTRRfix64K_00000, MSR_MTRRfix64K_00000 },
    { MSR_MTRRfix16K_80000, MSR_MTRRfix16K_A0000 },
    { MSR_MTRRfix4K_C0000, MSR_MTRRfix4K_F8000 },
    { MSR_PAT, MSR_PAT },
    { MSR_MTRRdefType, MSR_MTRRdefType },
    { MSR_MC0_CTL, MSR_MC0_CTL + 4 * MCE_BANKS_DEF - 1 },
    { MSR_EFER, MSR_FMASK },
    { MSR_FSBASE, MSR_KERNELGSBASE },
};

/*
 * What an ordinary kernel accesses without asking whether it exists.  Intel's
 * kernel for the cards says that the chip has no MISC_ENABLE.
 */
static const KncRange pc_msrs[] = {
    { MSR_PLATFORM_ID, MSR_PLATFORM_ID },   /* to load microcode */
    { MSR_IA32_UCODE_REV, MSR_IA32_UCODE_REV },
    { MSR_IA32_SYSENTER_CS, MSR_IA32_SYSENTER_EIP },    /* -cpu knc has it */
    { MSR_IA32_MISC_ENABLE, MSR_IA32_MISC_ENABLE }, /* limits of CPUID */
    { MSR_TSC_AUX, MSR_TSC_AUX },           /* -cpu knc,+rdtscp */
};

/* QEMU would let guests write all others, and read most of them as 0. */
bool knc_chip_has_msr(const CPUX86State *env, uint32_t msr)
{
    return knc_among(chip_msrs, ARRAY_SIZE(chip_msrs), msr) ||
           (!env->knc.strict &&
            knc_among(pc_msrs, ARRAY_SIZE(pc_msrs), msr));
}

#define SIBLINGS_SHIFT  16
#define SIBLINGS_MASK   (0xffu << SIBLINGS_SHIFT)

/*
 * CPUID leaf 1: logical processors of the package, as the machine says.
 * Programs choose routines by the other bits.
 */
void knc_cpuid(CPUX86State *env, uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
    uint32_t siblings = env->knc.siblings;

    if ((uint32_t)env->regs[R_EAX] != 1) {
        return;
    }
    if (siblings) {
        *ebx = (*ebx & ~SIBLINGS_MASK) | siblings << SIBLINGS_SHIFT;
    }
    if (env->knc.strict ||
        (env->knc.strict_user && (env->hflags & HF_CPL_MASK))) {
        *ecx &= CPUID_EXT_HYPERVISOR;
        *edx &= KNC_CPUID_1_EDX | CPUID_HT;
    }
}

bool knc_chip_rdmsr(CPUX86State *env, uint32_t msr, uint64_t *val)
{
    switch (msr) {
    case MSR_TR5:
        *val = 0;
        return true;
    case MSR_TR12:
        *val = env->knc_chip.tr12;
        return true;
    default:
        return false;
    }
}

bool knc_chip_wrmsr(CPUX86State *env, uint32_t msr, uint64_t val)
{
    switch (msr) {
    case MSR_TR5:
        return true;
    case MSR_TR12:
        env->knc_chip.tr12 = val;
        return true;
    default:
        return false;
    }
}

/* Where @size bytes of one line are in memory: one access */
static void *knc_vector_host(CPUX86State *env, target_ulong addr, int size,
                             uint32_t info, MMUAccessType type, uintptr_t ra)
{
    int mmu_idx = info >> KNC_VECTOR_MMU_SHIFT;
    void *host = probe_access(env, addr, size, type, mmu_idx, ra);

    if (host && (env->knc_pmu.tb_flags & HF_KNC_OBSERVE_MASK)) {
        knc_pmu_helper_access(env_cpu(env), addr,
                              make_memop_idx(MO_8, mmu_idx), type);
    }
    return host;
}

static void knc_vector_aligned(CPUX86State *env, target_ulong addr, int size,
                               uintptr_t ra)
{
    if (addr % size) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
    }
}

/* Elements of a vector from the one at byte @first on */
static void knc_vector_load(CPUX86State *env, target_ulong addr, int first,
                            int size, uint32_t info, uintptr_t ra)
{
    uint32_t *vector = env->knc_chip.vector[info % KNC_VECTORS];
    void *host = knc_vector_host(env, addr, size, info, MMU_DATA_LOAD, ra);

    for (int i = 0; i < size; i += KNC_VECTOR_ELEMENT) {
        vector[(first + i) / KNC_VECTOR_ELEMENT] = host ?
            (uint32_t)ldl_le_p(host + i) : cpu_ldl_data_ra(env, addr + i, ra);
    }
}

void helper_knc_vector_load(CPUX86State *env, target_ulong addr, uint32_t info)
{
    knc_vector_aligned(env, addr, KNC_VECTOR_SIZE, GETPC());
    knc_vector_load(env, addr, 0, KNC_VECTOR_SIZE, info, GETPC());
}

/* The low or the high part of a vector in memory; no part if it is aligned */
void helper_knc_vector_unpack(CPUX86State *env, target_ulong addr,
                              uint32_t info)
{
    int in_line = addr % KNC_VECTOR_SIZE, low = KNC_VECTOR_SIZE - in_line;

    knc_vector_aligned(env, addr, KNC_VECTOR_ELEMENT, GETPC());
    if (!(info & KNC_VECTOR_HIGH)) {
        knc_vector_load(env, addr, 0, low, info, GETPC());
    } else if (in_line) {
        knc_vector_load(env, addr - in_line, low, in_line, info, GETPC());
    }
}

/*
 * probe_access() drops only blocks of code that have the first byte.  Drop
 * those that have another one, as long as the page has any.
 */
static void knc_vector_drop_code(CPUX86State *env, target_ulong addr,
                                 uint32_t info, uintptr_t ra)
{
    int mmu_idx = info >> KNC_VECTOR_MMU_SHIFT;

    for (int i = 1; i < KNC_VECTOR_SIZE; i++) {
        if (tlb_vaddr_to_host(env, addr, MMU_DATA_STORE, mmu_idx)) {
            return;
        }
        probe_access(env, addr + i, 1, MMU_DATA_STORE, mmu_idx, ra);
    }
}

void helper_knc_vector_store(CPUX86State *env, target_ulong addr, uint32_t info)
{
    const uint32_t *vector = env->knc_chip.vector[info % KNC_VECTORS];
    void *host;

    knc_vector_aligned(env, addr, KNC_VECTOR_SIZE, GETPC());
    host = knc_vector_host(env, addr, KNC_VECTOR_SIZE, info, MMU_DATA_STORE,
                           GETPC());
    if (host) {
        knc_vector_drop_code(env, addr, info, GETPC());
    }
    for (int i = 0; i < KNC_VECTOR_SIZE; i += KNC_VECTOR_ELEMENT) {
        uint32_t val = vector[i / KNC_VECTOR_ELEMENT];

        if (host) {
            stl_le_p(host + i, val);
        } else {
            cpu_stl_data_ra(env, addr + i, val, GETPC());
        }
    }
}

uint32_t helper_knc_mask_read(CPUX86State *env, uint32_t n)
{
    return env->knc_chip.mask[n];
}

void helper_knc_mask_write(CPUX86State *env, uint32_t n, uint32_t val)
{
    env->knc_chip.mask[n] = val;
}
