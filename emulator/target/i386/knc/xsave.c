/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: an ordinary kernel saves the vector unit for its programs
 *
 * The chip has no XSAVE.  -cpu knc has it, with the components of AVX-512,
 * whose part of the area holds the unit's registers and masks.  CPUID shows
 * that to ring 0 alone: programs find the chip's.  QEMU has the other
 * components.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "tcg/tcg.h"
#include "tcg/helper-tcg.h"
#include "tcg/tcg-cpu.h"
#include "headers.h"
#include "internal.h"

#define UNIT_BITS   (XSTATE_OPMASK_MASK | XSTATE_ZMM_Hi256_MASK | \
                     XSTATE_Hi16_ZMM_MASK)
#define XCR0_BITS   (XSTATE_FP_MASK | XSTATE_SSE_MASK | XSTATE_YMM_MASK | \
                     UNIT_BITS)
#define AVX512_BITS (CPUID_EXT_XSAVE | CPUID_EXT_OSXSAVE | CPUID_EXT_AVX)

#define LEVEL       4           /* the chip's last CPUID leaf */
#define LEVEL_XSAVE 0xd
#define ZMM_LOW     16          /* registers with a part in other components */

/* After QEMU has taken away what its AVX-512 would need */
void knc_set_xsave(CPUX86State *env)
{
    if (!env->knc.strict) {
        env->features[FEAT_1_ECX] |= CPUID_EXT_XSAVE | CPUID_EXT_AVX;
        env->features[FEAT_7_0_EBX] |= CPUID_7_0_EBX_AVX512F;
        env->features[FEAT_XSAVE_XCR0_LO] = XCR0_BITS;
        /* QEMU allows CR4.OSXSAVE only with one of these; not XSAVEOPT. */
        env->features[FEAT_XSAVE] = CPUID_XSAVE_XGETBV1;
        env->cpuid_level = MAX(env->cpuid_level, LEVEL_XSAVE);
        /* From 10.0 on it forgets the sizes of what its TCG does not have. */
        x86_ext_save_areas[XSTATE_OPMASK_BIT].size = sizeof(XSaveOpmask);
        x86_ext_save_areas[XSTATE_ZMM_Hi256_BIT].size = sizeof(XSaveZMM_Hi256);
        x86_ext_save_areas[XSTATE_Hi16_ZMM_BIT].size = sizeof(XSaveHi16_ZMM);
    }
}

/* A program's CPUID */
void knc_hide_xsave(CPUX86State *env, uint32_t *eax, uint32_t *ebx,
                    uint32_t *ecx, uint32_t *edx)
{
    uint32_t leaf = env->regs[R_EAX];

    if (env->knc.strict || !(env->hflags & HF_CPL_MASK)) {
        return;
    }
    if (leaf == 0) {
        *eax = LEVEL;
    } else if (leaf == 1) {
        *ecx &= ~AVX512_BITS;
    } else if (leaf > LEVEL && leaf <= LEVEL_XSAVE) {
        cpu_x86_cpuid(env, LEVEL, env->regs[R_ECX], eax, ebx, ecx, edx);
    }
}

/* The flag of AVX says that the kernel saves the unit, all of it. */
void knc_sync_avx(CPUX86State *env)
{
    if (env->knc.pmu && (env->xcr0 & UNIT_BITS) != UNIT_BITS) {
        env->hflags &= ~HF_AVX_EN_MASK;
    }
}

typedef struct Area {
    CPUX86State *env;
    target_ulong addr;
    uintptr_t ra;
    bool store;
    bool clear;         /* there is no area: the registers become 0 */
} Area;

/* @count quadwords of one page, between the area and a register */
static void area_copy(Area *area, int at, uint64_t *value, int count)
{
    CPUX86State *env = area->env;
    target_ulong addr = area->addr + at;
    void *host;

    if (area->clear) {
        memset(value, 0, 8 * count);
        return;
    }
    host = probe_access(env, addr, 8 * count,
                        area->store ? MMU_DATA_STORE : MMU_DATA_LOAD,
                        knc_data_mmu_index(env), area->ra);
    for (int i = 0; i < count; i++) {
        if (!host && area->store) {
            cpu_stq_data_ra(env, addr + 8 * i, value[i], area->ra);
        } else if (!host) {
            value[i] = cpu_ldq_data_ra(env, addr + 8 * i, area->ra);
        } else if (area->store) {
            stq_le_p(host + 8 * i, value[i]);
        } else {
            value[i] = ldq_le_p(host + 8 * i);
        }
    }
}

static void area_copy_unit(Area *area, uint64_t which)
{
    CPUX86State *env = area->env;

    if (which & XSTATE_OPMASK_MASK) {
        area_copy(area, offsetof(X86XSaveArea, opmask_state), env->opmask_regs,
                  NB_OPMASK_REGS);
    }
    for (int i = 0; i < ARRAY_SIZE(env->xmm_regs); i++) {
        uint64_t *q = &env->xmm_regs[i].ZMM_Q(0);

        if (i < ZMM_LOW && (which & XSTATE_ZMM_Hi256_MASK)) {
            area_copy(area, offsetof(X86XSaveArea, zmm_hi256_state) + 32 * i,
                      q + 4, 4);
        } else if (i >= ZMM_LOW && (which & XSTATE_Hi16_ZMM_MASK)) {
            area_copy(area, offsetof(X86XSaveArea, hi16_zmm_state) +
                      64 * (i - ZMM_LOW), q, 8);
        }
    }
}

/* After QEMU's part, which has checked the operand */
void helper_knc_xsave(CPUX86State *env, target_ulong area, uint64_t which)
{
    area_copy_unit(&(Area) { env, area, GETPC(), true }, which & env->xcr0);
}

/* What a program has written may have masks of more than 16 bits. */
void helper_knc_xrstor(CPUX86State *env, target_ulong area, uint64_t which)
{
    uintptr_t ra = GETPC();
    uint64_t there = cpu_ldq_data_ra(env, area +
                                     offsetof(X86XSaveArea, header.xstate_bv),
                                     ra);

    which &= env->xcr0;
    area_copy_unit(&(Area) { env, area, ra, false }, which & there);
    area_copy_unit(&(Area) { env, .clear = true }, which & ~there);
    for (int i = 0; i < NB_OPMASK_REGS; i++) {
        env->opmask_regs[i] &= 0xffff;
    }
}
