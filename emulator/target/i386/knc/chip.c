/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: registers and CPUID beside the PMU, as its kernel needs them
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "internal.h"

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
void helper_knc_cpuid(CPUX86State *env)
{
    uint32_t leaf = env->regs[R_EAX], siblings = env->knc.siblings;
    uint32_t eax, ebx, ecx, edx;

    cpu_x86_cpuid(env, leaf, env->regs[R_ECX], &eax, &ebx, &ecx, &edx);
    knc_hide_xsave(env, &eax, &ebx, &ecx, &edx);
    if (leaf == 1 && siblings) {
        ebx = (ebx & ~SIBLINGS_MASK) | siblings << SIBLINGS_SHIFT;
    }
    if (leaf == 1 &&
        (env->knc.strict ||
         (env->knc.strict_user && (env->hflags & HF_CPL_MASK)))) {
        ecx &= CPUID_EXT_HYPERVISOR;
        edx &= KNC_CPUID_1_EDX | CPUID_HT;
    }
    env->regs[R_EAX] = eax;
    env->regs[R_EBX] = ebx;
    env->regs[R_ECX] = ecx;
    env->regs[R_EDX] = edx;
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
