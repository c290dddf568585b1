/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: true counts, and "info knc-pmu" in the monitor
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "monitor/hmp.h"
#include "monitor/monitor.h"
#include "internal.h"

void knc_pmu_truth(CPUX86State *env, int self, KncPmuTruth *truth)
{
    KncPmuState *s = &env->knc_pmu;
    int current = knc_pmu_current_ring(env);

    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        truth->total[n] = s->regs.counter[n].total;
    }
    for (int ring = 0; ring < KNC_PMU_RINGS; ring++) {
        KncPmuEvents ev = knc_pmu_pending(s, ring, ring == current ? self : 0);

        for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
            truth->total[n] += knc_pmu_increment(s, n, ring, &ev);
        }
        for (int i = 0; i < KNC_EVENTS; i++) {
            truth->sum[ring].n[i] = s->tally.true_count[ring].n[i] + ev.n[i];
        }
    }
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
    monitor_printf(mon, "  %-36s %20s %20s\n", "true counts", "ring 0",
                   "rings 1 to 3");
    for (int code = 0; code <= EVTSEL_EVENT; code++) {
        e = knc_pmu_event(code);
        if (e) {
            knc_pmu_dump_rings(mon, e->name,
                               truth.sum[KNC_PMU_RING0].n[e->event],
                               truth.sum[KNC_PMU_RING3].n[e->event]);
        }
    }
    knc_pmu_dump_rings(mon, "descriptors", s->tally.descriptors[KNC_PMU_RING0],
                       s->tally.descriptors[KNC_PMU_RING3]);
    knc_pmu_dump_rings(mon, "waits", s->tally.waits[KNC_PMU_RING0],
                       s->tally.waits[KNC_PMU_RING3]);
}

static void knc_pmu_hmp_info(Monitor *mon, const QDict *qdict)
{
    CPUState *cs;

    CPU_FOREACH(cs) {
        if (X86_CPU(cs)->env.knc.pmu) {
            run_on_cpu(cs, knc_pmu_dump, RUN_ON_CPU_HOST_PTR(mon));
        }
    }
}

static void knc_pmu_register(void)
{
    monitor_register_hmp("knc-pmu", true, knc_pmu_hmp_info);
}

type_init(knc_pmu_register)
