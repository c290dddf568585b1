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
    KncPmuEvents ev = knc_pmu_pending(s, self);

    for (int n = 0; n < KNC_PMU_COUNTERS; n++) {
        truth->total[n] = s->regs.counter[n].total +
                          knc_pmu_increment(s, n, &ev);
    }
    memcpy(truth->sum, s->tally.true_count, sizeof(truth->sum));
    for (int i = 0; i < KNC_EVENTS; i++) {
        truth->sum[s->count.ring].n[i] += ev.n[i];
    }
}

static void knc_pmu_dump_rings(GString *text, const char *name, uint64_t ring0,
                               uint64_t ring3)
{
    g_string_append_printf(text, "  %-36s %20" PRIu64 " %20" PRIu64 "\n", name,
                           ring0, ring3);
}

/* Between two turns, where nothing changes */
static void knc_pmu_dump(CPUState *cs, run_on_cpu_data data)
{
    GString *text = data.host_ptr;
    CPUX86State *env = &X86_CPU(cs)->env;
    KncPmuState *s = &env->knc_pmu;
    const KncPmuEventName *e;
    KncPmuTruth truth;

    knc_pmu_truth(env, 0, &truth);
    g_string_append_printf(text, "CPU#%d, thread %d of its core\n"
                           "  %-36s %20s %20s\n", knc_pmu_cpu(env), s->thread,
                           "true counts", "ring 0", "rings 1 to 3");
    for (int i = 0; (e = knc_pmu_event(i)); i++) {
        knc_pmu_dump_rings(text, e->name, truth.sum[KNC_PMU_RING0].n[e->event],
                           truth.sum[KNC_PMU_RING3].n[e->event]);
    }
    knc_pmu_dump_rings(text, "descriptors", s->tally.descriptors[KNC_PMU_RING0],
                       s->tally.descriptors[KNC_PMU_RING3]);
    knc_pmu_dump_rings(text, "waits", s->tally.waits[KNC_PMU_RING0],
                       s->tally.waits[KNC_PMU_RING3]);
}

/* The property "knc-pmu" of a CPU, for QMP */
char *knc_pmu_counts(Object *cpu, Error **errp)
{
    GString *text = g_string_new(NULL);

    run_on_cpu(CPU(cpu), knc_pmu_dump, RUN_ON_CPU_HOST_PTR(text));
    return g_string_free(text, false);
}

static void knc_pmu_hmp_info(Monitor *mon, const QDict *qdict)
{
    CPUState *cs;

    CPU_FOREACH(cs) {
        if (X86_CPU(cs)->env.knc.pmu) {
            g_autofree char *text = knc_pmu_counts(OBJECT(cs), NULL);

            monitor_printf(mon, "%s", text);
        }
    }
}

static void knc_pmu_register(void)
{
    monitor_register_hmp("knc-pmu", true, knc_pmu_hmp_info);
}

type_init(knc_pmu_register)
