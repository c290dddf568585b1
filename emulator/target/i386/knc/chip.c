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
#include "exec.h"
#include "internal.h"
#if KNC_QEMU(10, 1)
#include "accel/tcg/cpu-ldst.h"
#else
#include "exec/cpu_ldst.h"
#endif

/* The instruction cache: TR5 takes commands, TR12 has bits of control. */
#define MSR_TR5         0x07
#define MSR_TR12        0x0e

/* CPUID leaf 1: logical processors of the package, as the machine says */
#define SIBLINGS_SHIFT  16
#define SIBLINGS_MASK   (0xffu << SIBLINGS_SHIFT)

void knc_cpuid(CPUX86State *env, uint32_t *ebx)
{
    uint32_t siblings = env_archcpu(env)->knc.siblings;

    if (siblings && (uint32_t)env->regs[R_EAX] == 1) {
        *ebx = (*ebx & ~SIBLINGS_MASK) | siblings << SIBLINGS_SHIFT;
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

/* Where a vector is in memory: an access of 64 bytes, which is within a page */
static void *knc_vector_host(CPUX86State *env, target_ulong addr,
                             uint32_t info, MMUAccessType type, uintptr_t ra)
{
    int mmu_idx = info >> KNC_VECTOR_MMU_SHIFT;
    void *host;

    if (addr % KNC_VECTOR_SIZE) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
    }
    host = probe_access(env, addr, KNC_VECTOR_SIZE, type, mmu_idx, ra);
    if (host && (env->knc_pmu.tb_flags & HF_KNC_OBSERVE_MASK)) {
        knc_pmu_helper_access(env_cpu(env), addr,
                              make_memop_idx(MO_512, mmu_idx), type);
    }
    return host;
}

void helper_knc_vector_load(CPUX86State *env, target_ulong addr, uint32_t info)
{
    uint64_t *vector = env->knc_chip.vector[info % KNC_VECTORS];
    void *host = knc_vector_host(env, addr, info, MMU_DATA_LOAD, GETPC());

    for (int i = 0; i < KNC_VECTOR_SIZE / 8; i++) {
        vector[i] = host ? ldq_le_p(host + 8 * i) :
                    cpu_ldq_data_ra(env, addr + 8 * i, GETPC());
    }
}

void helper_knc_vector_store(CPUX86State *env, target_ulong addr, uint32_t info)
{
    const uint64_t *vector = env->knc_chip.vector[info % KNC_VECTORS];
    void *host = knc_vector_host(env, addr, info, MMU_DATA_STORE, GETPC());

    for (int i = 0; i < KNC_VECTOR_SIZE / 8; i++) {
        if (host) {
            stq_le_p(host + 8 * i, vector[i]);
        } else {
            cpu_stq_data_ra(env, addr + 8 * i, vector[i], GETPC());
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
