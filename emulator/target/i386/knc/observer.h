/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: the state of the observer; accesses that are only counted
 */
#ifndef I386_KNC_OBSERVER_H
#define I386_KNC_OBSERVER_H

/* Room for accesses, and how many wait at most, except a helper's */
#define ACCESSES_MAX            512
#define ACCESSES_WAIT           256
#define LINE_SIZE               (1 << KNC_LINE_BITS)

/* Cycles for which a core keeps the turn with a line that it took */
#define TRANSFER                250

/* In KncFilter: no address is in this line. */
#define NO_LINE                 0x8080808080808080ull

struct KncObserver {
    /* See observe.c */
    KncAccess access[ACCESSES_MAX];
    int waiting;
    int completed;              /* of instructions before this one */
    int may_wait;               /* so many cannot overflow a counter */
    uint64_t hits_off;          /* of KncFilter.hits, by this instruction */

    uint32_t branch_token;      /* 0: no branch to resolve */
    bool branch_far;            /* and so not predicted */
    uint64_t branch_pc;
    uint64_t branch_next;

    uint64_t code_page;         /* the latest page of code */
    uint64_t code_paddr;        /* its physical address */

    /* Of each TLB set, a bit for each L1 set of which KncFilter has lines */
    uint64_t lines[KNC_TLB_SETS];
    bool filters;               /* no counter needs the accesses one by one */
    KncPredictor predictor;
};

static inline int knc_pmu_l1_set(uint64_t vaddr)
{
    return (vaddr >> KNC_LINE_BITS) % KNC_L1_SETS;
}

static inline uint64_t *knc_pmu_row(KncPmuState *s, uint64_t vaddr)
{
    return s->seen.filter.line[(vaddr >> KNC_LINE_BITS) % KNC_FILTER_ROWS];
}

/* Returns true if the access does not change the model. */
static inline bool knc_pmu_find_again(KncPmuState *s, int kind, uint64_t vaddr,
                                      int size)
{
    return (knc_pmu_row(s, vaddr)[kind] ^ vaddr) <= LINE_SIZE - size;
}

#endif /* I386_KNC_OBSERVER_H */
