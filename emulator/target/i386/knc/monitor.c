/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: "info knc-pmu" in the monitor, and the items that
 * hw/i386/knc-pmu-testdev.c shows
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "monitor/hmp.h"
#include "monitor/monitor.h"
#include "internal.h"

/* What a thread has counted, by counter and by ring */
typedef struct KncPmuTruth {
    uint64_t total[KNC_PMU_COUNTERS];
    KncPmuEvents sum[KNC_PMU_RINGS];
} KncPmuTruth;

/* Without the @self slots of the executing instruction */
static void knc_pmu_truth(CPUX86State *env, int self, KncPmuTruth *truth)
{
    KncPmuState *s = &env->knc_pmu;
    int current = knc_pmu_current_ring(env);

    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        truth->total[n] = s->counter[n].total;
    }
    for (int ring = 0; ring < KNC_PMU_RINGS; ring++) {
        KncPmuEvents ev = knc_pmu_pending(s, ring, ring == current ? self : 0);

        for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
            truth->total[n] += knc_pmu_increment(s, n, ring, &ev);
        }
        for (int i = 0; i < KNC_EVENTS; i++) {
            truth->sum[ring].n[i] = s->true_count[ring].n[i] + ev.n[i];
        }
    }
}

/*
 * An item for the test device.  @self: this thread is the one that asks, and
 * its executing instruction is not part of the result.
 */
uint64_t knc_pmu_test_item(CPUX86State *env, int item, bool self)
{
    KncPmuState *s = &env->knc_pmu;
    const uint64_t *happened[] = {
        [1] = &s->lost,
        [2] = &s->edges,
        [3] = &s->delivered,
        [6] = &s->counter[0].overflows,
        [7] = &s->counter[1].overflows,
        [8] = &s->rdmsrs,
        [9] = &s->wrmsrs,
        [10] = &s->rdpmcs,
        [11] = &s->lvtpc_writes,
        [12] = &s->eoi_writes,
    };
    KncPmuTruth truth;

    if (item == 0) {
        return 0x4b4e4350;
    }
    if (item < ARRAY_SIZE(happened) && happened[item]) {
        return *happened[item];
    }
    if (self && (s->tb_flags & HF_KNC_OBSERVE_MASK)) {
        knc_pmu_flush_accesses(s);
    }
    knc_pmu_truth(env, self ? knc_pmu_self(s) : 0, &truth);
    switch (item) {
    case 4:
    case 5:
        return truth.total[item - 4];
    case 16:
    case 17:
        return truth.sum[item - 16].n[KNC_INSTRUCTIONS_EXECUTED];
    case 18:
    case 19:
        return truth.sum[item - 18].n[KNC_BRANCHES];
    case 20:
    case 21:
        return truth.sum[item - 20].n[KNC_CPU_CLK_UNHALTED];
    case 24:
        return s->inject.fired;
    case 25:
        return knc_inject_left(s);
    case 26:
        return knc_inject_stopped(env_cpu(env));
    case 27:
        return s->global_ctrl;
    case 28:
        return s->status;
    case 29:
        return s->inject.late;
    default:
        return -1;
    }
}

/* For the test device: @events at once, as in ring 3, to reach 2^40 quickly */
void knc_pmu_test_burst(CPUX86State *env, int n, uint64_t events)
{
    KncPmuState *s = &env->knc_pmu;
    bool line;

    if (!(s->counter[n].rings & (1 << KNC_PMU_RING3))) {
        return;
    }
    knc_pmu_fold(env);
    line = s->pmi;
    knc_pmu_count(env, n, events);
    if (!line && s->pmi) {
        knc_pmu_raise(env);
    }
    knc_pmu_refuel(env);
}

void knc_pmu_test_mark(CPUX86State *env, uint32_t value)
{
    trace_knc_pmu_mark(knc_pmu_cpu(env), value);
}

static void knc_pmu_dump_rings(Monitor *mon, const char *name, uint64_t ring0,
                               uint64_t ring3)
{
    monitor_printf(mon, "  %-36s %20" PRIu64 " %20" PRIu64 "\n", name, ring0,
                   ring3);
}

/* Between two turns, where nothing changes */
static void knc_pmu_dump(CPUState *cs, run_on_cpu_data data)
{
    Monitor *mon = data.host_ptr;
    CPUX86State *env = &X86_CPU(cs)->env;
    KncPmuState *s = &env->knc_pmu;
    const KncPmuEventName *e;
    KncPmuTruth truth;

    knc_pmu_truth(env, 0, &truth);
    monitor_printf(mon, "CPU#%d, thread %d of its core\n", knc_pmu_cpu(env),
                   s->thread);
    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        KncPmuCounter *c = &s->counter[n];

        monitor_printf(mon, "  PerfEvtSel%d 0x%08x  PerfCntr%d 0x%010" PRIx64
                       "  events %" PRIu64 "  overflows %" PRIu64 "\n",
                       n, c->evtsel, n,
                       (uint64_t)(knc_pmu_value(env, n, 0) & CNTR_MASK),
                       truth.total[n],
                       c->overflows);
    }
    monitor_printf(mon, "  GLOBAL_CTRL 0x%x  GLOBAL_STATUS 0x%x  "
                   "SPFLT_CONTROL 0x%016" PRIx64 "\n",
                   s->global_ctrl, s->status,
                   s->spflt);
    monitor_printf(mon, "  line %d  edges %" PRIu64 "  delivered %" PRIu64
                   "  lost %" PRIu64 "\n",
                   s->pmi != 0, s->edges,
                   s->delivered, s->lost);
    monitor_printf(mon, "  %-36s %20s %20s\n", "true counts", "ring 0",
                   "rings 1 to 3");
    for (int i = 0; (e = knc_pmu_event(i)); i++) {
        knc_pmu_dump_rings(mon, e->name, truth.sum[KNC_PMU_RING0].n[e->event],
                           truth.sum[KNC_PMU_RING3].n[e->event]);
    }
    knc_pmu_dump_rings(mon, "descriptors", s->descriptors[KNC_PMU_RING0],
                       s->descriptors[KNC_PMU_RING3]);
    knc_pmu_dump_rings(mon, "waits", s->waits[KNC_PMU_RING0],
                       s->waits[KNC_PMU_RING3]);
}

static void knc_pmu_hmp_info(Monitor *mon, const QDict *qdict)
{
    bool found = false;
    CPUState *cs;

    CPU_FOREACH(cs) {
        if (X86_CPU(cs)->knc.pmu) {
            run_on_cpu(cs, knc_pmu_dump, RUN_ON_CPU_HOST_PTR(mon));
            found = true;
        }
    }
    if (!found) {
        monitor_printf(mon, "No CPU has this PMU\n");
    }
}

static void knc_pmu_register(void)
{
    monitor_register_hmp("knc-pmu", true, knc_pmu_hmp_info);
}

type_init(knc_pmu_register)
