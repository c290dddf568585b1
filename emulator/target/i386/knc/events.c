/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: what an event select register asks for
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "internal.h"

static const KncPmuEventName knc_pmu_events[] = {
#define EVENT(code, name) { code, KNC_##name, #name }
#include "events.h.inc"
#undef EVENT
};

#define EVTSEL_UMASK            0x0000ff00
/* From outside the core: counter 0 only */
#define UMASK_L2                0x00001000

/* The event with index @i in the list, or NULL */
const KncPmuEventName *knc_pmu_event(int i)
{
    return i < ARRAY_SIZE(knc_pmu_events) ? &knc_pmu_events[i] : NULL;
}

static int knc_pmu_find_event(uint32_t evtsel)
{
    for (int i = 0; i < ARRAY_SIZE(knc_pmu_events); i++) {
        if (knc_pmu_events[i].code == (evtsel & EVTSEL_EVENT)) {
            return knc_pmu_events[i].event;
        }
    }
    return -1;
}

/*
 * CMASK, INV and E for an event that occurs at most once per cycle and never in
 * two consecutive cycles: CMASK 1 and E do not change the count, and no cycle
 * reaches a larger CMASK.  The same holds for snoops.
 *
 * CPU_CLK_UNHALTED and FE_STALLED occur in consecutive cycles.  An edge is the
 * first cycle of such a row: knc_pmu_edge_event().  With INV it is the first
 * cycle after the row; in that of CPU_CLK_UNHALTED no counter counts.
 */
static KncPmuMode knc_pmu_single_mode(KncPmuEvent event, int cmask, bool inv,
                                      bool edge)
{
    if (edge) {
        return cmask < 2 && !(inv && event == KNC_CPU_CLK_UNHALTED) ?
               KNC_MODE_EVENTS : KNC_MODE_NOTHING;
    }
    if (cmask < 2) {
        return inv ? KNC_MODE_NO_EVENTS : KNC_MODE_EVENTS;
    }
    return inv ? KNC_MODE_CYCLES : KNC_MODE_NOTHING;
}

/*
 * All events of an instruction occur in one cycle, and no two instructions
 * share a cycle: each instruction that matches is an edge.
 */
static KncPmuMode knc_pmu_observed_mode(int cmask, bool inv, bool edge)
{
    if (inv && !edge) {
        return KNC_MODE_NO_MATCHES;
    }
    return cmask || edge ? KNC_MODE_MATCHES : KNC_MODE_EVENTS;
}

/*
 * A counter sees cycles of the core while the core is not halted and the thread
 * is in one of the counter's rings.
 */
static KncPmuEvent knc_pmu_edge_event(const KncPmuCounter *c)
{
    if (c->event == KNC_FE_STALLED) {
        return KNC_STALL_BEGINS;
    }
    if (c->event != KNC_CPU_CLK_UNHALTED) {
        return c->event;
    }
    return (c->evtsel & EVTSEL_OS) && (c->evtsel & EVTSEL_USR) ?
           KNC_UNHALTED_BEGINS : KNC_RING_BEGINS;
}

/* Derive the mode of counter @n from its event select register. */
void knc_pmu_configure_event(KncPmuCounter *c, int n)
{
    int cmask = c->evtsel >> EVTSEL_CMASK_SHIFT;
    bool inv = cmask && (c->evtsel & EVTSEL_INV);
    bool edge = c->evtsel & EVTSEL_EDGE;
    int event = knc_pmu_find_event(c->evtsel);

    c->any = false;
    if (event < 0 || (n && (c->evtsel & EVTSEL_UMASK) == UMASK_L2)) {
        c->mode = KNC_MODE_NOTHING;
        return;
    }
    c->event = event;
    c->threshold = MAX(cmask, 1);
    if (event >= KNC_OBSERVED && event < KNC_SNOOPED) {
        c->mode = knc_pmu_observed_mode(cmask, inv, edge);
    } else {
        c->mode = knc_pmu_single_mode(event, cmask, inv, edge);
        c->event = edge ? knc_pmu_edge_event(c) : event;
    }

    /*
     * Cycles belong to the core already, not to one of its threads.  Victims
     * have no thread context, which always counts (327357-001 table 1-5).
     */
    if (event == KNC_L2_VICTIM_REQ_WITH_DATA ||
        ((c->evtsel & EVTSEL_ANY) && event != KNC_CPU_CLK_UNHALTED)) {
        /*
         * Not modelled: two threads that stall in one cycle (only one issues),
         * and which cycles of two threads are consecutive.  For cycles without
         * an event 327357-001 does not say which thread's ring decides.
         */
        if (inv || edge || (cmask && event == KNC_FE_STALLED)) {
            c->mode = KNC_MODE_NOTHING;
        }
        c->any = c->mode != KNC_MODE_NOTHING;
    }
}

/* What a counter's event needs: flags of blocks, NEEDS_MATCHES */
uint32_t knc_pmu_event_needs(const KncPmuCounter *c)
{
    uint32_t needs = HF_KNC_PMU_MASK | HF_KNC_OBSERVE_MASK;

    if (c->mode == KNC_MODE_NOTHING || c->event < KNC_OBSERVED) {
        return 0;
    }
    if (c->event == KNC_BRANCHES_MISPREDICTED ||
        c->event == KNC_PIPELINE_FLUSHES) {
        needs |= HF_KNC_PREDICT_MASK;
    }
    return needs | (knc_pmu_matches(c) ? NEEDS_MATCHES : 0);
}

/* Returns true if the counter counts while the thread is halted. */
bool knc_pmu_counts_asleep(const KncPmuCounter *c)
{
    return (c->rings & (1 << KNC_PMU_RING0)) &&
           (c->mode == KNC_MODE_CYCLES || c->mode == KNC_MODE_NO_EVENTS ||
            c->mode == KNC_MODE_NO_MATCHES ||
            (c->mode == KNC_MODE_EVENTS && c->event == KNC_CPU_CLK_UNHALTED));
}
