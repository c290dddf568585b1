/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: what branches and interrupts do to the pipeline; INT and
 * INTO, which count when they are executed
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "internal.h"
#include "observer.h"

static void knc_pmu_branched(KncPmuState *s, int result)
{
    KncPmuEvents ev = {};

    ev.n[KNC_BRANCHES_MISPREDICTED] = (result & KNC_BRANCH_WRONG) != 0;
    ev.n[KNC_PIPELINE_FLUSHES] = (result & KNC_BRANCH_FLUSHES) != 0;
    s->seen.observed.n[KNC_BRANCHES_MISPREDICTED] +=
        ev.n[KNC_BRANCHES_MISPREDICTED];
    s->seen.observed.n[KNC_PIPELINE_FLUSHES] += ev.n[KNC_PIPELINE_FLUSHES];
    knc_pmu_match(s, &ev);
}

/*
 * The branch that ended the previous block went to the current address.  A far
 * branch is not predicted.
 */
void knc_pmu_resolve_branch(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;
    KncObserver *o = s->observer;
    int result = KNC_BRANCH_FLUSHES;

    if (!o->branch_token) {
        return;
    }
    o->branch_token = 0;
    if (!o->branch_far) {
        result = knc_mem_branch(&o->predictor, o->branch_pc, o->branch_next,
                                knc_pmu_pc(env));
    }
    if (result) {
        knc_pmu_branched(s, result);
    }
}

/* A branch begins: it is the last instruction of its block. */
void helper_knc_pmu_branch(CPUX86State *env, uint32_t offset, uint32_t size)
{
    KncPmuState *s = &env->knc_pmu;
    KncObserver *o = s->observer;

    o->branch_token = s->seen.token;
    o->branch_far = size & KNC_BRANCH_FAR;
    o->branch_pc = (knc_pmu_pc(env) & TARGET_PAGE_MASK) + offset;
    o->branch_next = o->branch_pc + (size & ~KNC_BRANCH_FAR);
}

/* An interrupt or exception, which flushes the pipeline, is about to come. */
void knc_pmu_interrupt(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;

    s->mov_ss = false;
    /* If it interrupts a repeated string instruction, a row of stalls ends. */
    s->count.stalls += s->count.stalling;
    s->count.stalling = 0;
    if (s->tb_flags & HF_KNC_OBSERVE_MASK) {
        knc_pmu_flush_accesses(s);
        knc_pmu_resolve_branch(env);
        if (s->tb_flags & HF_KNC_PREDICT_MASK) {
            knc_pmu_branched(s, KNC_BRANCH_FLUSHES);
        }
        if (knc_pmu_observed_overflow(s)) {
            knc_pmu_stop(env);
        }
        s->seen.token = 0;
    }
}

/* A branch has completed; generated code cannot know whether it does. */
void helper_knc_retire_branch(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;

    if (s->tb_flags) {
        s->count.uncounted--;
        s->count.branches++;
    }
}
