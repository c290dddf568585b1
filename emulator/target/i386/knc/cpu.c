/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: a thread is realized and reset, halts, and has
 * boundaries between its blocks
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "internal.h"

/*
 * Between two blocks: detect an overflow now, as the next block may not count.
 * Returns true if that raised an interrupt.
 */
bool knc_pmu_boundary(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;
    bool wakes = s->asleep && !env_cpu(env)->halted;
    bool raised = false;

    if (wakes && knc_pmu_running(env) == 1) {
        s->core->wakes++;
    }
    if (s->tb_flags) {
        raised = knc_pmu_fold(env);
        knc_pmu_serve(env);
        knc_pmu_refuel(env);
    }
    if (wakes) {
        s->asleep = false;
    }
    return raised;
}

/* HLT has been executed; knc_pmu_boundary() ends the halt. */
void knc_pmu_halt(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;

    if (s->core) {
        knc_pmu_boundary(env);
        knc_inject_halt(env);
        s->asleep = true;
        knc_pmu_configure(env);
    }
}

/* The PMU is not part of vmstate_x86_cpu, so the CPU must not migrate. */
static const VMStateDescription vmstate_knc_pmu = {
    .name = "knc-pmu",
    .unmigratable = 1,
};

bool knc_pmu_realize(X86CPU *cpu, Error **errp)
{
    if (!cpu->knc.pmu) {
        return true;
    }
    if (!tcg_enabled()) {
        error_setg(errp, "knc-pmu needs TCG");
        return false;
    }
    if (knc_icount_replays()) {
        error_setg(errp, "knc-pmu goes with neither record nor replay");
        return false;
    }
    if (!knc_icount_is_ours()) {
        error_setg(errp, "knc-pmu needs -icount shift=0,sleep=off, or sleep=on "
                   "for a console or network");
        return false;
    }
    /* QEMU cannot remove one of the CPUs that share a host thread. */
    DEVICE_GET_CLASS(cpu)->hotpluggable = false;
    knc_clock_enable(knc_icount_sleeps());
    vmstate_register(NULL, VMSTATE_INSTANCE_ID_ANY, &vmstate_knc_pmu, cpu);
    return true;
}

static void knc_pmu_attach(CPUX86State *env)
{
    X86CPU *cpu = env_archcpu(env);
    KncPmuState *s = &env->knc_pmu;
    CPUState *cs;

    s->observer = knc_observer_new();
    s->thread = cpu->thread_id % KNC_CORE_THREADS;
    CPU_FOREACH(cs) {
        X86CPU *other = X86_CPU(cs);

        if (other->env.knc_pmu.core &&
            other->socket_id == cpu->socket_id &&
            other->die_id == cpu->die_id &&
            knc_same_module(other, cpu) &&
            other->core_id == cpu->core_id &&
            other->thread_id / KNC_CORE_THREADS ==
            cpu->thread_id / KNC_CORE_THREADS) {
            s->core = other->env.knc_pmu.core;
        }
    }
    if (!s->core) {
        s->core = knc_core_new();
    }
    s->core->thread[s->thread] = env;
}

/* Disable Unmasked Exceptions: always 1 on the chip */
#define MXCSR_DUE       (1u << 21)

uint32_t knc_mxcsr(CPUX86State *env, uint32_t value)
{
    return env_archcpu(env)->knc.strict ? value | MXCSR_DUE : value;
}

/* Not called for INIT, which does not change the PMU (1.4.4) */
void knc_pmu_reset(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;

    if (!env_archcpu(env)->knc.pmu) {
        return;
    }
    if (!s->core) {
        knc_pmu_attach(env);
    }
    memset(s, 0, offsetof(KncPmuState, end_reset_fields));
    knc_observer_reset(s->observer);
    knc_core_reset(s->core);
    knc_pmu_configure(env);
    knc_clock_wake(env_cpu(env));
}
