/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: the registers (Intel document 327357-001, section 1.4.3),
 * RDPMC and SPFLT
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "tcg/helper-tcg.h"
#include "internal.h"

#define MSR_TSC                 0x10
#define MSR_PERF_CNTR0          0x20
#define MSR_PERF_CNTR1          0x21
#define MSR_PERF_EVTSEL0        0x28
#define MSR_PERF_EVTSEL1        0x29
#define MSR_SPFLT_CONTROL       0x2c
#define MSR_GLOBAL_STATUS       0x2d
#define MSR_GLOBAL_OVF_CTRL     0x2e
#define MSR_GLOBAL_CTRL         0x2f

#define EVTSEL_VALID            (0xffffffffu & ~(1u << 19))
#define SPFLT_VALID             (SPFLT_USER_PREF | COUNTERS_MASK)

static bool knc_pmu_counting(KncPmuState *s, int n)
{
    return (s->regs.counter[n].evtsel & EVTSEL_EN) &&
           (s->regs.global_ctrl & (1u << n)) &&
           (!(s->regs.spflt & (1u << n)) || (s->regs.spflt & SPFLT_USER_PREF));
}

/* The counter still counts the same events of the other threads. */
static bool knc_pmu_same_sum(const KncPmuCounter *c, const KncPmuCounter *old)
{
    return old->any && c->rings == old->rings && c->event == old->event &&
           knc_pmu_matches(c) == knc_pmu_matches(old);
}

static void knc_pmu_configure_counter(CPUX86State *env, int n)
{
    KncPmuState *s = &env->knc_pmu;
    KncPmuCounter c = s->regs.counter[n];

    c.rings = 0;
    if (knc_pmu_counting(s, n)) {
        if (c.evtsel & EVTSEL_OS) {
            c.rings |= 1 << KNC_PMU_RING0;
        }
        if (c.evtsel & EVTSEL_USR) {
            c.rings |= 1 << KNC_PMU_RING3;
        }
    }
    knc_pmu_configure_event(&c, n);
    if (c.any && c.rings && !knc_pmu_same_sum(&c, &s->regs.counter[n])) {
        c.others = knc_pmu_others(env, n, &c);
    }
    s->regs.counter[n] = c;
}

/* Call this after every change of a control register or a counter. */
void knc_pmu_configure(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;
    uint32_t all = knc_inject_needs(s), wanted = 0;

    all |= env->knc.always ? HF_KNC_PMU_MASK : 0;
    all |= env->knc.observe ? HF_KNC_MASK : 0;
    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        KncPmuCounter *c = &s->regs.counter[n];
        uint32_t needs = 0;

        knc_pmu_configure_counter(env, n);
        if (knc_pmu_counting(s, n)) {
            needs = HF_KNC_PMU_MASK;
        }
        /*
         * With such an event programmed the model runs even where the counter
         * does not count, as caches do not depend on counters.  A thread that
         * halts with its counters stopped has left what was measured: it runs
         * without the model until it writes a register.
         */
        if ((c->evtsel & EVTSEL_EN) &&
            (s->regs.global_ctrl || !s->share.asleep)) {
            needs |= knc_pmu_event_needs(c);
        }
        all |= needs;
        wanted |= c->any && c->rings ? needs : 0;
        if (s->share.asleep && knc_pmu_counts_asleep(c)) {
            wanted |= HF_KNC_PMU_MASK;
        }
    }
    s->share.needs = all;
    knc_pmu_serve(env);
    knc_pmu_refuel(env);
    knc_pmu_want(env, wanted);
}

/* For the trace: instructions that the thread had completed before this one */
static uint64_t knc_pmu_insn_number(CPUX86State *env)
{
    return knc_pmu_ever(env, knc_pmu_self(&env->knc_pmu),
                        (1 << KNC_PMU_RINGS) - 1, KNC_INSTRUCTIONS_EXECUTED);
}

/* The counter without the executing instruction */
static uint64_t knc_pmu_read_own(CPUX86State *env, int n)
{
    KncPmuState *s = &env->knc_pmu;

    if (s->tb_flags & HF_KNC_OBSERVE_MASK) {
        knc_pmu_flush_accesses(s);
    }
    return knc_pmu_value(env, n, knc_pmu_self(s)) & CNTR_MASK;
}

static bool knc_pmu_read(CPUX86State *env, uint32_t msr, uint64_t *val)
{
    KncPmuState *s = &env->knc_pmu;

    switch (msr) {
    case MSR_PERF_CNTR0:
    case MSR_PERF_CNTR1:
        *val = knc_pmu_read_own(env, msr - MSR_PERF_CNTR0);
        return true;
    case MSR_PERF_EVTSEL0:
    case MSR_PERF_EVTSEL1:
        *val = s->regs.counter[msr - MSR_PERF_EVTSEL0].evtsel;
        return true;
    case MSR_SPFLT_CONTROL:
        *val = s->regs.spflt;
        return true;
    case MSR_GLOBAL_STATUS:
        *val = s->regs.status;
        return true;
    case MSR_GLOBAL_CTRL:
        *val = s->regs.global_ctrl;
        return true;
    default:
        return false;
    }
}

static uint64_t knc_pmu_reserved(uint32_t msr)
{
    switch (msr) {
    case MSR_PERF_CNTR0:
    case MSR_PERF_CNTR1:
        return ~CNTR_MASK;
    case MSR_PERF_EVTSEL0:
    case MSR_PERF_EVTSEL1:
        return ~(uint64_t)EVTSEL_VALID;
    case MSR_SPFLT_CONTROL:
        return ~SPFLT_VALID;
    case MSR_GLOBAL_OVF_CTRL:
    case MSR_GLOBAL_CTRL:
        return ~COUNTERS_MASK;
    default:
        /* Read-only, or no register */
        return -1;
    }
}

static void knc_pmu_write(CPUX86State *env, uint32_t msr, uint64_t val)
{
    KncPmuState *s = &env->knc_pmu;

    /* The old settings apply to this instruction. */
    knc_pmu_fold(env);
    switch (msr) {
    case MSR_PERF_CNTR0:
    case MSR_PERF_CNTR1:
        s->regs.counter[msr - MSR_PERF_CNTR0].value = val;
        break;
    case MSR_PERF_EVTSEL0:
    case MSR_PERF_EVTSEL1:
        s->regs.counter[msr - MSR_PERF_EVTSEL0].evtsel = val;
        break;
    case MSR_SPFLT_CONTROL:
        s->regs.spflt = val;
        break;
    case MSR_GLOBAL_OVF_CTRL:
        knc_pmu_clear_status(env, val);
        break;
    case MSR_GLOBAL_CTRL:
        s->regs.global_ctrl = val;
        break;
    default:
        g_assert_not_reached();
    }
    knc_pmu_configure(env);
}

static G_NORETURN void knc_pmu_gp(CPUX86State *env, bool write, uint64_t val,
                                  uintptr_t ra)
{
    trace_knc_pmu_gp(knc_pmu_cpu(env), env->hflags & HF_CPL_MASK,
                     knc_pmu_insn_number(env), (uint32_t)env->regs[R_ECX],
                     write, val);
    raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
}

static void knc_pmu_return(CPUX86State *env, uint64_t val)
{
    env->regs[R_EAX] = (uint32_t)val;
    env->regs[R_EDX] = val >> 32;
}

static uint64_t knc_pmu_tsc(CPUX86State *env, uintptr_t ra)
{
    return knc_clock_tsc(env, ra) + env->knc_pmu.core->tsc_adjust;
}

void helper_knc_rdtsc(CPUX86State *env)
{
    if ((env->cr[4] & CR4_TSD_MASK) && (env->hflags & HF_CPL_MASK)) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, GETPC());
    }
    knc_pmu_return(env, knc_pmu_tsc(env, GETPC()));
}

/* Return false if QEMU has the register in ECX. */
uint32_t helper_knc_rdmsr(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;
    uint32_t msr = env->regs[R_ECX];
    uintptr_t ra = GETPC();
    uint64_t val;

    if (msr == MSR_TSC) {
        val = knc_pmu_tsc(env, ra);
    } else if (knc_chip_has_msr(env, msr)) {
        if (!knc_chip_rdmsr(env, msr, &val)) {
            return false;
        }
    } else if (knc_pmu_read(env, msr, &val)) {
        s->tally.rdmsrs++;
        trace_knc_pmu_rdmsr(knc_pmu_cpu(env), env->hflags & HF_CPL_MASK,
                            knc_pmu_insn_number(env), msr, val);
    } else {
        knc_pmu_gp(env, false, 0, ra);
    }
    knc_pmu_return(env, val);
    return true;
}

uint32_t helper_knc_wrmsr(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;
    uint32_t msr = env->regs[R_ECX];
    uint64_t val = (uint32_t)env->regs[R_EAX] |
                   (uint64_t)(uint32_t)env->regs[R_EDX] << 32;
    uintptr_t ra = GETPC();

    if (msr == MSR_TSC) {
        env->knc_pmu.core->tsc_adjust = val - knc_clock_tsc(env, ra);
        return true;
    }
    if (knc_chip_has_msr(env, msr)) {
        return knc_chip_wrmsr(env, msr, val);
    }
    if (val & knc_pmu_reserved(msr) || knc_pmu_reserved(msr) == -1) {
        knc_pmu_gp(env, true, val, ra);
    }
    s->tally.wrmsrs++;
    trace_knc_pmu_wrmsr(knc_pmu_cpu(env), env->hflags & HF_CPL_MASK,
                        knc_pmu_insn_number(env), msr, val);
    knc_pmu_write(env, msr, val);
    knc_inject_written(env, msr);
    return true;
}

void helper_knc_rdpmc(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;
    uint32_t n = env->regs[R_ECX];
    uint64_t val;

    if ((!(env->cr[4] & CR4_PCE_MASK) && (env->hflags & HF_CPL_MASK)) ||
        n >= KNC_PMU_COUNTERS) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, GETPC());
    }
    val = knc_pmu_read_own(env, n);
    s->tally.rdpmcs++;
    trace_knc_pmu_rdpmc(knc_pmu_cpu(env), env->hflags & HF_CPL_MASK,
                        knc_pmu_insn_number(env), n, val);
    knc_pmu_return(env, val);
}

void helper_knc_spflt(CPUX86State *env, target_ulong val)
{
    KncPmuState *s = &env->knc_pmu;

    trace_knc_pmu_spflt(knc_pmu_cpu(env), env->hflags & HF_CPL_MASK,
                        knc_pmu_insn_number(env), val & 1);
    knc_pmu_fold(env);
    s->regs.spflt = (s->regs.spflt & ~SPFLT_USER_PREF) |
                    (val & 1 ? SPFLT_USER_PREF : 0);
    knc_pmu_configure(env);
}
