/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: its interrupt line, and the local APIC
 *
 * The line has one bit for both counters.  The thread's local APIC sees rising
 * edges only.  It is QEMU's; the functions here stand before those that access
 * its registers.
 */
#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "cpu.h"
#include "hw/i386/apic_internal.h"
#include "internal.h"

#define APIC_EOI        0xb0
#define APIC_LVTPC      0x340
#define APIC_TIMER      0x380
#define LVTPC_VALID     (0xff | APIC_LVT_DELIV_MOD | APIC_LVT_MASKED)

/* The shortest period of the timer, in ns, as in KVM */
#define TIMER_MIN       (200 * SCALE_US)

static const MemoryRegionOps *plain;    /* QEMU's */
static MemoryRegionOps ops;

/* Reserved bits are 0, and the mask bit is set while the APIC is disabled. */
static APICCommonState *knc_apic_settle(CPUState *cs)
{
    APICCommonState *s = APIC_COMMON(X86_CPU(cs)->apic_state);

    s->lvt[APIC_LVT_PERFORM] &= LVTPC_VALID;
    if (!(s->spurious_vec & APIC_SV_ENABLE) ||
        !(s->apicbase & MSR_IA32_APICBASE_ENABLE)) {
        s->lvt[APIC_LVT_PERFORM] |= APIC_LVT_MASKED;
    }
    return s;
}

static uint64_t knc_apic_read(void *opaque, hwaddr addr, unsigned size)
{
    if (current_cpu) {
        knc_apic_settle(current_cpu);
    }
    return plain->read(opaque, addr, size);
}

/* A timer of a few nanoseconds would leave a guest no time. */
static void knc_apic_limit_timer(APICCommonState *s, void *opaque)
{
    uint32_t least = TIMER_MIN >> s->count_shift;

    if (s->lvt[APIC_LVT_TIMER] & APIC_LVT_TIMER_PERIODIC &&
        s->initial_count && s->initial_count < least) {
        plain->write(opaque, APIC_TIMER, least, 4);
    }
}

static void knc_apic_write(void *opaque, hwaddr addr, uint64_t val,
                           unsigned size)
{
    APICCommonState *s;
    CPUX86State *env;

    if (!current_cpu || addr >= TARGET_PAGE_SIZE) {
        plain->write(opaque, addr, val, size);
        return;
    }
    /* APIC_BASE may have disabled it before. */
    s = knc_apic_settle(current_cpu);
    env = &s->cpu->env;
    if (addr == APIC_EOI) {
        env->knc_pmu.tally.eoi_writes++;
        trace_knc_pmu_eoi(knc_pmu_cpu(env), env->hflags & HF_CPL_MASK);
    }
    plain->write(opaque, addr, val, size);
    knc_apic_settle(current_cpu);
    knc_apic_limit_timer(s, opaque);
    if (addr == APIC_LVTPC) {
        env->knc_pmu.tally.lvtpc_writes++;
        trace_knc_pmu_lvtpc(knc_pmu_cpu(env), env->hflags & HF_CPL_MASK,
                            s->lvt[APIC_LVT_PERFORM]);
    }
}

void knc_apic_realize(X86CPU *cpu)
{
    MemoryRegion *io;

    if (!cpu->apic_state) {
        return;
    }
    io = &APIC_COMMON(cpu->apic_state)->io_memory;
    if (!plain) {
        plain = io->ops;
        ops = *plain;
        ops.read = knc_apic_read;
        ops.write = knc_apic_write;
    }
    io->ops = &ops;
}

/*
 * The PMU's line has risen.  Delivery sets the mask bit of the LVT entry; an
 * edge that comes while the bit is set is lost.
 *
 * Returns the delivery mode, or a negative value if the edge was lost.
 */
int knc_apic_deliver(CPUX86State *env)
{
    APICCommonState *s;
    uint32_t lvt, lint1, mode;

    if (!env_archcpu(env)->apic_state) {
        return -1;
    }
    s = knc_apic_settle(env_cpu(env));
    lvt = s->lvt[APIC_LVT_PERFORM];
    mode = (lvt & APIC_LVT_DELIV_MOD) >> APIC_LVT_DELIV_MOD_SHIFT;
    /* This entry cannot have the other modes, INIT and ExtINT. */
    if (lvt & APIC_LVT_MASKED ||
        (mode != APIC_DM_FIXED && mode != APIC_DM_SMI && mode != APIC_DM_NMI)) {
        return -1;
    }
    /* QEMU delivers those entries of its LVT alone that a pin asks for. */
    lint1 = s->lvt[APIC_LVT_LINT1];
    s->lvt[APIC_LVT_LINT1] = lvt;
    APIC_COMMON_GET_CLASS(s)->external_nmi(s);
    s->lvt[APIC_LVT_LINT1] = lint1;
    s->lvt[APIC_LVT_PERFORM] |= APIC_LVT_MASKED;
    return mode;
}

void knc_pmu_raise(CPUX86State *env)
{
    env->knc_pmu.tally.edges++;
    trace_knc_pmu_raise(knc_pmu_cpu(env));
    if (!knc_inject_holds(env)) {
        knc_pmu_deliver(env);
    }
}

void knc_pmu_deliver(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;
    int mode = knc_tcg_interrupt(env, true);

    if (mode < 0) {
        s->tally.lost++;
        trace_knc_pmu_lost(knc_pmu_cpu(env));
    } else {
        s->tally.delivered++;
        trace_knc_pmu_deliver(knc_pmu_cpu(env), mode);
    }
}

void knc_pmu_clear_status(CPUX86State *env, uint32_t mask)
{
    KncPmuState *s = &env->knc_pmu;
    bool line = s->regs.pmi;

    s->regs.status &= ~mask;
    s->regs.pmi &= s->regs.status;
    if (line && !s->regs.pmi) {
        trace_knc_pmu_lower(knc_pmu_cpu(env));
    }
}
