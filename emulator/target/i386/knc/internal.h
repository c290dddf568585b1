/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: functions and helpers shared by its files
 */
#ifndef I386_KNC_INTERNAL_H
#define I386_KNC_INTERNAL_H

#include "memory.h"
#include "trace.h"

#define CNTR_MASK               MAKE_64BIT_MASK(0, 40)
#define COUNTERS_MASK           MAKE_64BIT_MASK(0, KNC_PMU_COUNTERS)

#define EVTSEL_EVENT            0x0000ffff
#define EVTSEL_USR              (1u << 16)
#define EVTSEL_OS               (1u << 17)
#define EVTSEL_EDGE             (1u << 18)
#define EVTSEL_INT              (1u << 20)
#define EVTSEL_ANY              (1u << 21)
#define EVTSEL_EN               (1u << 22)
#define EVTSEL_INV              (1u << 23)
#define EVTSEL_CMASK_SHIFT      24

#define SPFLT_USER_PREF         (1ull << 63)

/* What a thread needs counted: flags of its blocks (HF_KNC_*), and these */
#define NEEDS_MATCHES           1

/* The other threads of the core of @env */
#define KNC_FOREACH_OTHER(other, env) \
    for (other = (env)->knc_pmu.next; other != (env); \
         other = other->knc_pmu.next)

static inline int knc_pmu_cpu(CPUX86State *env)
{
    return env_cpu(env)->cpu_index;
}

static inline int knc_pmu_current_ring(CPUX86State *env)
{
    return knc_pmu_ring(env->hflags & HF_CPL_MASK);
}

static inline uint64_t knc_pmu_pc(CPUX86State *env)
{
    return env->hflags & HF_CS64_MASK ? env->eip :
           (uint32_t)(env->eip + env->segs[R_CS].base);
}

static inline bool knc_pmu_matches(const KncPmuCounter *c)
{
    return c->mode == KNC_MODE_MATCHES || c->mode == KNC_MODE_NO_MATCHES;
}

/* clock.c: all slots that the thread has executed */
uint64_t knc_clock_slots(const CPUX86State *env);

/* Issue slots since the last fold */
static inline uint64_t knc_pmu_slots(const KncPmuState *s)
{
    const CPUX86State *env = container_of(s, CPUX86State, knc_pmu);

    if (!s->tb_flags) {
        return 0;
    }
    return knc_clock_slots(env) - s->count.folded - s->count.uncounted;
}

/* events.c: what the event select register asks for */
typedef struct KncPmuEventName {
    uint16_t code;
    KncPmuEvent event;
    const char *name;
} KncPmuEventName;

const KncPmuEventName *knc_pmu_event(int i);
void knc_pmu_configure_event(KncPmuCounter *c, int n);
uint32_t knc_pmu_event_needs(const KncPmuCounter *c);
bool knc_pmu_counts_asleep(const KncPmuCounter *c);

/* registers.c: the registers, RDPMC and SPFLT */
void knc_pmu_configure(CPUX86State *env);

/* count.c: from issue slots to counters */

KncPmuEvents knc_pmu_pending(const KncPmuState *s, int self);
uint64_t knc_pmu_increment(const KncPmuState *s, int n,
                           const KncPmuEvents *ev);
uint64_t knc_pmu_value(CPUX86State *env, int n, int self);
void knc_pmu_count(CPUX86State *env, int n, uint64_t increment);
bool knc_pmu_fold(CPUX86State *env);
void knc_pmu_refuel(CPUX86State *env);
int knc_pmu_slot_cost(CPUX86State *env);
void knc_pmu_stop(CPUX86State *env);
bool knc_pmu_observed_overflow(const KncPmuState *s);
int knc_pmu_may_wait(const KncPmuState *s, bool all);
int knc_pmu_self(KncPmuState *s);

/* core.c: the core's time, and thread count mode */
uint64_t knc_pmu_slept(const KncPmuState *s);
void knc_pmu_advance(KncPmuState *s, uint64_t cycles);
uint64_t knc_pmu_ever(CPUX86State *env, int self, int rings, KncPmuEvent event);
uint64_t knc_pmu_others(CPUX86State *env, int n, const KncPmuCounter *c);
void knc_pmu_match(KncPmuState *s, const KncPmuEvents *ev);
bool knc_pmu_fold_others(CPUX86State *env);
void knc_pmu_serve(CPUX86State *env);
void knc_pmu_want(CPUX86State *env, uint32_t wanted);
int knc_pmu_running(CPUX86State *env);

/* cpu.c: a thread is realized and reset, halts, and has boundaries */
bool knc_pmu_boundary(CPUX86State *env);
void knc_cpu_class_init(ObjectClass *oc);

/* model.c: what CPUID says of the caches */
void knc_set_caches(CPUX86State *env);

/* xsave.c */
void knc_set_xsave(CPUX86State *env);
void knc_hide_xsave(CPUX86State *env, uint32_t *eax, uint32_t *ebx,
                    uint32_t *ecx, uint32_t *edx);

/* inject.c: an interruption at a chosen instruction */
uint32_t knc_inject_needs(const KncPmuState *s);
uint64_t knc_inject_fuel(const KncPmuState *s, uint64_t fuel);
void knc_inject_count(KncPmuState *s, uint64_t instructions);
uint64_t knc_inject_left(const KncPmuState *s);
bool knc_inject_stopped(CPUState *cs);
void knc_inject_release(CPUState *cs);
bool knc_inject_due(CPUX86State *env);
bool knc_inject_holds(CPUX86State *env);
void knc_inject_written(CPUX86State *env, uint32_t msr);
void knc_inject_order(CPUX86State *env, uint32_t after, uint32_t msr,
                      uint32_t order);

/* observe.c: accesses for the model of the memory hierarchy */
KncObserver *knc_observer_new(void);
void knc_observer_reset(KncPmuState *s);
void knc_observer_start(KncPmuState *s);
void knc_observer_refuel(KncPmuState *s, bool all);
void knc_observer_begin_turn(KncPmuState *s);
void knc_observer_end_turn(KncPmuState *s);
void knc_observer_fetch(CPUX86State *env);
void knc_pmu_flush_accesses(KncPmuState *s);
void knc_pmu_abandon(KncPmuState *s, uint32_t token);
void knc_pmu_hint(CPUX86State *env, uint64_t addr, uint32_t info, uintptr_t ra);
void knc_pmu_vector(CPUX86State *env, int elements);
void knc_pmu_vector_access(CPUX86State *env, uint64_t addr, int size,
                           bool store, int mmu_idx, KncVectorAccess how);
uint32_t knc_mxcsr(CPUX86State *env, uint32_t value);   /* vector.c */

/* branch.c: branches and interrupts in the pipeline */
void knc_pmu_interrupt(CPUX86State *env);
void knc_pmu_resolve_branch(CPUX86State *env);

/* monitor.c: what a thread has counted, by counter and by ring */
typedef struct KncPmuTruth {
    uint64_t total[KNC_PMU_COUNTERS];
    KncPmuEvents sum[KNC_PMU_RINGS];
} KncPmuTruth;

/* Without the @self slots of the executing instruction */
void knc_pmu_truth(CPUX86State *env, int self, KncPmuTruth *truth);
char *knc_pmu_counts(Object *cpu, Error **errp);

/* chip.c: registers that are not of the PMU */
bool knc_chip_has_msr(const CPUX86State *env, uint32_t msr);
bool knc_chip_rdmsr(CPUX86State *env, uint32_t msr, uint64_t *val);
bool knc_chip_wrmsr(CPUX86State *env, uint32_t msr, uint64_t val);

/* apic.c: the interrupt line and its edges; the local APIC */
void knc_apic_realize(X86CPU *cpu);
int knc_apic_deliver(CPUX86State *env);
void knc_pmu_raise(CPUX86State *env);
void knc_pmu_deliver(CPUX86State *env);
void knc_pmu_clear_status(CPUX86State *env, uint32_t mask);

/* tcg.c: calls into the accelerator */

/* Give the local APIC an @edge, as knc_apic_deliver(), or the thread an NMI. */
int knc_tcg_interrupt(CPUX86State *env, bool edge);

/*
 * Find the physical address of a fetch (of its page) or of an access.  Return
 * false if it faults.
 */
bool knc_tcg_find_code(CPUX86State *env, uint64_t vaddr, uint64_t *paddr);
bool knc_tcg_find_data(CPUX86State *env, uint64_t vaddr, int mmu_idx,
                       KncAccess *access);

/* Leave the block before the instruction for which a helper was called. */
G_NORETURN void knc_tcg_leave_before(CPUX86State *env, uintptr_t ra);

/* The same, for another thread's turn.  Returns if QEMU cannot leave here. */
void knc_tcg_wait(CPUX86State *env, uintptr_t ra);

/* clock.c: the card clock, which follows what the threads execute */
void knc_clock_set_sleeps(bool sleeps);
int64_t knc_clock_read(void);
void knc_clock_wake(CPUState *cs);
void knc_clock_init(CPUState *cs);
void knc_clock_armed(void);
void knc_clock_pass(CPUX86State *env, uint64_t slots);
void knc_clock_limit(CPUX86State *env);
void knc_clock_yield(CPUX86State *env, int64_t cycles);
uint64_t knc_clock_tsc(CPUX86State *env, uintptr_t ra);

/* The thread that executes after @cs: maybe @cs again, or NULL for none */
CPUState *knc_clock_next(CPUState *cs);

/* All threads are idle, but the clock can still jump to a timer. */
bool knc_clock_idle(void);

/* QEMU is about to execute instructions of @cs, and has. */
void knc_clock_begin(CPUState *cs);
void knc_clock_end(CPUState *cs);

/* thread.c */
void knc_thread_init(AccelOpsClass *ops);

#endif /* I386_KNC_INTERNAL_H */
