/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: the CPU models knc and knc-strict, and their properties
 *
 * They are no entries of QEMU's table, of which machine types choose versions.
 * The last CPUID leaf is below 0xA: there is no architectural PMU.
 */
#include "qemu/osdep.h"
#include "qemu/units.h"
#include "cpu.h"
#include "qapi/error.h"
#include "internal.h"

#define KNC_CACHE(kind, lvl, bytes, n) \
    (&(CPUCacheInfo) { \
        .type = kind, \
        .level = lvl, \
        .size = bytes, \
        .line_size = 64, \
        .associativity = 8, \
        .partitions = 1, \
        .sets = n, \
        .lines_per_tag = 1, \
        .self_init = 1, \
        .no_invd_sharing = true, \
        .inclusive = (lvl) == 2, \
        KNC_SHARED_BY_CORE \
    })

static const CPUCaches caches = {
    .l1d_cache = KNC_CACHE(DATA_CACHE, 1, 32 * KiB, 64),
    .l1i_cache = KNC_CACHE(INSTRUCTION_CACHE, 1, 32 * KiB, 64),
    .l2_cache = KNC_CACHE(UNIFIED_CACHE, 2, 512 * KiB, 1024),
};

/* Of KncPmuConfig */
static KNC_PROPERTY properties[] = {
    DEFINE_PROP_BOOL("pmu-always", X86CPU, env.knc.always, false),
    DEFINE_PROP_BOOL("pmu-observe", X86CPU, env.knc.observe, false),
    DEFINE_PROP_BOOL("strict-user", X86CPU, env.knc.strict_user, false),
    DEFINE_PROP_UINT32("knc-siblings", X86CPU, env.knc.siblings, 0),
    DEFINE_PROP_BOOL("pmu-stray", X86CPU, env.knc.stray, false),
    DEFINE_PROP_BOOL("knc-prefetcher", X86CPU, env.knc.prefetcher, true),
    KNC_PROPERTIES_END
};

/* After x86_cpu_realizefn() has set the caches of other models */
void knc_set_caches(CPUX86State *env)
{
#if KNC_QEMU(10, 1)
    env->cache_info = caches;
#else
    env->cache_info_cpuid2 = env->cache_info_cpuid4 = env->cache_info_amd =
        caches;
#endif
}

/*
 * The x86-64 baseline and nothing later.  Knights Corner has no MMX, SSE or
 * CMOV, but ordinary kernels and programs need them.
 */
static void knc_init(Object *obj)
{
    X86CPU *cpu = X86_CPU(obj);
    CPUX86State *env = &cpu->env;

    object_property_set_str(obj, "vendor", CPUID_VENDOR_INTEL, &error_abort);
    object_property_set_int(obj, "family", 11, &error_abort);
    object_property_set_int(obj, "model", 1, &error_abort);
    object_property_set_int(obj, "stepping", 3, &error_abort);
    object_property_set_str(obj, "model-id",
                            "Intel(R) Xeon Phi(TM) coprocessor (emulated)",
                            &error_abort);
    object_property_set_uint(obj, "min-level", 4, &error_abort);
    object_property_set_uint(obj, "min-xlevel", 0x80000008, &error_abort);
    cpu->enable_l3_cache = false;
    env->features[FEAT_1_EDX] =
        CPUID_FP87 | CPUID_DE | CPUID_PSE | CPUID_TSC | CPUID_MSR | CPUID_PAE |
        CPUID_MCE | CPUID_CX8 | CPUID_APIC | CPUID_SEP | CPUID_MTRR |
        CPUID_PGE | CPUID_MCA | CPUID_CMOV | CPUID_PAT | CPUID_CLFLUSH |
        CPUID_MMX | CPUID_FXSR | CPUID_SSE | CPUID_SSE2;
    env->features[FEAT_1_ECX] =
        CPUID_EXT_SSE3 | CPUID_EXT_CX16 | CPUID_EXT_HYPERVISOR;
    env->features[FEAT_8000_0001_EDX] =
        CPUID_EXT2_LM | CPUID_EXT2_SYSCALL | CPUID_EXT2_NX;
    env->features[FEAT_8000_0001_ECX] = CPUID_EXT3_LAHF_LM;
    env->knc.pmu = true;
}

/* As on a card: a Pentium in 64 bits.  strict.c.inc has the rest. */
static void strict_init(Object *obj)
{
    CPUX86State *env = &X86_CPU(obj)->env;

    /*
     * QEMU has CR4.OSFXSR only with SSE, which CPUID hides.  It does not
     * emulate VME.
     */
    env->features[FEAT_1_EDX] = (KNC_CPUID_1_EDX & ~CPUID_VME) | CPUID_SSE;
    env->features[FEAT_1_ECX] = CPUID_EXT_HYPERVISOR;
    env->knc.strict = true;
}

static void knc_class_init(ObjectClass *oc, KNC_CLASS_DATA *data)
{
    X86_CPU_CLASS(oc)->model_description = "Knights Corner coprocessor";
    device_class_set_props(DEVICE_CLASS(oc), properties);
    object_class_property_add_str(oc, "knc-pmu", knc_pmu_counts, NULL);
    knc_cpu_class_init(oc);
}

static const TypeInfo types[] = {
    {
        .name = X86_CPU_TYPE_NAME("knc"),
        .parent = TYPE_X86_CPU,
        .instance_init = knc_init,
        .class_init = knc_class_init,
    }, {
        .name = X86_CPU_TYPE_NAME("knc-strict"),
        .parent = X86_CPU_TYPE_NAME("knc"),
        .instance_init = strict_init,
    },
};

DEFINE_TYPES(types)
