/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: a thread is realized and reset, and halts; its boundaries
 *
 * QEMU calls a CPU and its accelerator through tables of functions.  Those of a
 * CPU with the PMU are QEMU's with a few replaced, which call QEMU's in turn.
 */
#include "qemu/osdep.h"
#include "qemu/config-file.h"
#include "qemu/option.h"
#include "cpu.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "exec/helper-proto.h"
#include "internal.h"

static const struct TCGCPUOps *plain_ops;   /* QEMU's */
static struct TCGCPUOps ops;
static void (*plain_interrupt)(CPUState *cs, int mask);
static DeviceRealize x86_realize;

/*
 * Between two blocks: detect an overflow now, as the next block may not count.
 * Returns true if that raised an interrupt.
 */
bool knc_pmu_boundary(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;
    bool wakes = s->share.asleep && !env_cpu(env)->halted;
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
        s->share.asleep = false;
    }
    return raised;
}

/* HLT, or INIT, has been executed; knc_pmu_boundary() ends the halt. */
static void knc_pmu_halt(CPUX86State *env)
{
    knc_pmu_boundary(env);
    env->knc_pmu.inject.stopped = false;
    env->knc_pmu.share.asleep = true;
    knc_pmu_configure(env);
}

/* A PMI after an instruction comes before a fault of the next one. */
static void knc_pmi_first(CPUState *cs)
{
    if (knc_pmu_boundary(&X86_CPU(cs)->env)) {
        cs->exception_index = -1;
        cpu_loop_exit(cs);
    }
}

static bool knc_tlb_fill(CPUState *cs, vaddr addr, int size,
                         MMUAccessType type, int mmu_idx, bool probe,
                         uintptr_t ra)
{
    if (type == MMU_INST_FETCH && !probe) {
        if (plain_ops->tlb_fill(cs, addr, size, type, mmu_idx, true, ra)) {
            return true;
        }
        knc_pmi_first(cs);
    }
    return plain_ops->tlb_fill(cs, addr, size, type, mmu_idx, probe, ra);
}

static bool knc_check_breakpoint(CPUState *cs)
{
    if (!plain_ops->debug_check_breakpoint(cs)) {
        return false;
    }
    knc_pmi_first(cs);
    knc_observer_fetch(&X86_CPU(cs)->env);
    return true;
}

static bool knc_exec_interrupt(CPUState *cs, int request)
{
    CPUX86State *env = &X86_CPU(cs)->env;
    uint32_t flags = env->knc_pmu.tb_flags;

    if (knc_pmu_boundary(env)) {
        request |= cs->interrupt_request & CPU_INTERRUPT_NMI;
    }
    if (env->knc_pmu.tb_flags != flags) {
        /* Do not chain the next block to the last one. */
        knc_set_interrupt(cs, CPU_INTERRUPT_EXITTB);
    }
    /* No NMI between MOV SS or POP SS and the next instruction */
    if (env->knc_pmu.mov_ss && (env->hflags & HF_INHIBIT_IRQ_MASK)) {
        request &= ~CPU_INTERRUPT_NMI;
    }
    if (x86_cpu_pending_interrupt(cs, request) &
        (CPU_INTERRUPT_NMI | CPU_INTERRUPT_MCE | CPU_INTERRUPT_HARD)) {
        knc_pmu_interrupt(env);
    }
    return plain_ops->cpu_exec_interrupt(cs, request);
}

static void knc_do_interrupt(CPUState *cs)
{
    CPUX86State *env = &X86_CPU(cs)->env;
    bool is_int = env->exception_is_int;

    knc_pmu_interrupt(env);
    plain_ops->do_interrupt(cs);
    if (is_int) {
        helper_knc_retire_branch(env);
    }
}

/* This instruction and the rest of its block have not been executed. */
static void knc_restore_state(CPUState *cs, const TranslationBlock *tb,
                              const uint64_t *data)
{
    CPUX86State *env = &X86_CPU(cs)->env;
    KncPmuState *s = &env->knc_pmu;
    uint64_t ours = data[1] >> KNC_UNWIND_SHIFT;
    uint64_t plain[TARGET_INSN_START_WORDS];

    memcpy(plain, data, sizeof(plain));
    plain[1] &= KNC_UNWIND_CC_OP;
    plain_ops->restore_state_to_opc(cs, tb, plain);
    if (tb->flags & HF_KNC_PMU_MASK) {
        s->count.branches -= knc_pmu_unwind_branches(ours);
        s->count.uncounted -= knc_pmu_unwind_uncounted(ours);
        if (tb->flags & HF_KNC_OBSERVE_MASK) {
            s->seen.filter.hits -= knc_pmu_unwind_hits(ours);
            knc_pmu_abandon(s, knc_pmu_unwind_slots(ours));
        }
    }
}

/* INIT and reset have cleared these. */
static void knc_exec_enter(CPUState *cs)
{
    CPUX86State *env = &X86_CPU(cs)->env;

    plain_ops->cpu_exec_enter(cs);
    env->hflags |= env->knc_pmu.tb_flags;
    env->mxcsr = knc_mxcsr(env, env->mxcsr);
}

static void knc_exec_exit(CPUState *cs)
{
    if (cs->halted) {
        knc_pmu_halt(&X86_CPU(cs)->env);
    }
    plain_ops->cpu_exec_exit(cs);
}

static void knc_handle_interrupt(CPUState *cs, int mask)
{
    if (mask & CPU_INTERRUPT_INIT) {
        knc_clock_init(cs);
    }
    knc_clock_wake(cs);
    knc_inject_release(cs);
    plain_interrupt(cs, mask);
}

/* All CPUs of a machine have the same tables. */
static void knc_take_tables(CPUClass *cc)
{
    AccelOpsClass *accel =
        ACCEL_OPS_CLASS(object_class_by_name(ACCEL_OPS_NAME("tcg")));

    if (plain_ops) {
        return;
    }
    plain_ops = cc->tcg_ops;
    ops = *plain_ops;
    ops.cpu_exec_enter = knc_exec_enter;
    ops.cpu_exec_exit = knc_exec_exit;
    ops.cpu_exec_interrupt = knc_exec_interrupt;
    ops.debug_check_breakpoint = knc_check_breakpoint;
    ops.do_interrupt = knc_do_interrupt;
    ops.restore_state_to_opc = knc_restore_state;
    ops.tlb_fill = knc_tlb_fill;
    cc->tcg_ops = &ops;

    plain_interrupt = accel->handle_interrupt;
    accel->handle_interrupt = knc_handle_interrupt;
    knc_thread_init(accel);
}

/* The PMU is not part of vmstate_x86_cpu, so the CPU must not migrate. */
static const VMStateDescription vmstate_knc_pmu = {
    .name = "knc-pmu",
    .unmigratable = 1,
};

/* What the card's clock needs */
static bool knc_check_icount(QemuOpts *opts, Error **errp)
{
    if (opts && qemu_opt_get(opts, "rr")) {
        error_setg(errp, "knc-pmu goes with neither record nor replay");
        return false;
    }
    if (!opts || g_strcmp0(qemu_opt_get(opts, "shift"), "0")) {
        error_setg(errp, "knc-pmu needs -icount shift=0,sleep=off, or sleep=on "
                   "for a console or network");
        return false;
    }
    return true;
}

static void knc_pmu_attach(CPUX86State *env)
{
    X86CPU *cpu = env_archcpu(env);
    KncPmuState *s = &env->knc_pmu, *last = NULL;
    CPUState *cs;

    s->observer = knc_observer_new();
    s->thread = cpu->thread_id % KNC_CORE_THREADS;
    CPU_FOREACH(cs) {
        X86CPU *other = X86_CPU(cs);
        KncPmuState *t = &other->env.knc_pmu;

        if (t->core && other->apic_id - t->thread == cpu->apic_id - s->thread) {
            last = t;
        }
    }
    if (last) {
        s->core = last->core;
        s->next = last->next;
        last->next = env;
    } else {
        s->core = knc_core_new();
        s->core->prefetcher = env->knc.prefetcher;
        s->next = env;
    }
}

/* Of the system.  INIT does not change the PMU (1.4.4). */
static void knc_pmu_reset(void *opaque)
{
    CPUX86State *env = opaque;
    KncPmuState *s = &env->knc_pmu;

    memset(s, 0, offsetof(KncPmuState, end_reset_fields));
    knc_observer_reset(s);
    knc_core_reset(s->core);
    knc_pmu_configure(env);
    knc_clock_wake(env_cpu(env));
}

/* The most that CPUID leaf 4 can express */
#define MOST_CORES      64

static void knc_realize(DeviceState *dev, Error **errp)
{
    ERRP_GUARD();
    QemuOpts *icount = qemu_opts_find(qemu_find_opts("icount"), NULL);
    X86CPU *cpu = X86_CPU(dev);

    if (!tcg_enabled()) {
        error_setg(errp, "knc-pmu needs TCG");
        return;
    }
    if (!knc_check_icount(icount, errp)) {
        return;
    }
    if (cpu->core_id >= MOST_CORES) {
        error_setg(errp, "knc-pmu has %d cores at most; the largest card has "
                   "61", MOST_CORES);
        return;
    }
    knc_clock_set_sleeps(qemu_opt_get_bool(icount, "sleep", true));
    knc_take_tables(CPU_GET_CLASS(dev));
    x86_realize(dev, errp);
    if (*errp) {
        return;
    }
    vmstate_register(NULL, VMSTATE_INSTANCE_ID_ANY, &vmstate_knc_pmu, cpu);
    knc_set_caches(&cpu->env);
    knc_set_xsave(&cpu->env);
    knc_apic_realize(cpu);
    knc_pmu_attach(&cpu->env);
    qemu_register_reset(knc_pmu_reset, &cpu->env);
}

void knc_cpu_class_init(ObjectClass *oc)
{
    /* QEMU cannot remove one of the CPUs that share a host thread. */
    DEVICE_CLASS(oc)->hotpluggable = false;
    device_class_set_parent_realize(DEVICE_CLASS(oc), knc_realize,
                                    &x86_realize);
}
