/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: a model of memory hierarchy and branch prediction
 */
#ifndef I386_KNC_MEMORY_H
#define I386_KNC_MEMORY_H

#include "headers.h"
#include "pmu.h"

#define KNC_CACHE_WAYS          8
#define KNC_L2_SETS             1024

#define KNC_LARGE_BITS          21  /* the smallest pages that are large */
#define KNC_TLB_WAYS            4
#define KNC_DTLB_SETS           16
#define KNC_DTLB_LARGE_SETS     2
#define KNC_ITLB_SETS           8
#define KNC_TLB2_SETS           16

/* The first sets of the TLBs */
enum {
    KNC_DTLB,
    KNC_DTLB_LARGE = KNC_DTLB + KNC_DTLB_SETS,
    KNC_ITLB = KNC_DTLB_LARGE + KNC_DTLB_LARGE_SETS,
    KNC_TLB2 = KNC_ITLB + KNC_ITLB_SETS,
    KNC_TLB_SETS = KNC_TLB2 + KNC_TLB2_SETS,
};

#define KNC_STREAMS             16

/* A page of 4 KiB that the hardware prefetcher has seen misses in */
typedef struct KncStream {
    uint64_t page;          /* physical address, and LINE_VALID */
    int8_t last;            /* the line of the page that was used last */
    int8_t direction;       /* 1 or -1; 0: none yet */
} KncStream;

struct KncCore {
    bool prefetcher;
    uint64_t clock;             /* latest time of any thread, in cycles */
    uint64_t wakes;             /* number of ends of a halt of all threads */
    KncCore *next;              /* in the list of all cores */
    uint64_t snooped[KNC_CORE_THREADS][KNC_SNOOPS];

    struct {} start_reset_fields;
    int64_t tsc_adjust;         /* of the time-stamp counter of all threads */
    uint64_t l1d[KNC_L1_SETS][KNC_CACHE_WAYS];
    uint64_t l1i[KNC_L1_SETS][KNC_CACHE_WAYS];
    uint64_t l2[KNC_L2_SETS][KNC_CACHE_WAYS];
    KncStream stream[KNC_STREAMS];  /* the latest one first */
    uint64_t tlb[KNC_TLB_SETS][KNC_TLB_WAYS];
    bool tlb_used;
};

/* An access to memory, or the fetch of a line of code */
typedef struct KncAccess {
    uint64_t vaddr;
    uint64_t paddr;
    uint8_t kind;
    uint8_t size;           /* of a vector instruction: active elements */
    bool large;             /* in a large page, and not code */
    bool first;             /* of its instruction */
    bool uncached;
    bool crosses;           /* a page boundary: the next entry has the rest */
    uint8_t hint;           /* KncHint */
    uint8_t vector;         /* KncVectorAccess */
} KncAccess;

/* The set of the first level in which an access looks for its page */
static inline int knc_tlb_set(const KncAccess *access)
{
    uint64_t small = access->vaddr >> TARGET_PAGE_BITS;
    uint64_t large = access->vaddr >> KNC_LARGE_BITS;

    if (access->kind == KNC_KIND_CODE) {
        return KNC_ITLB + small % KNC_ITLB_SETS;
    }
    return access->large ? KNC_DTLB_LARGE + large % KNC_DTLB_LARGE_SETS :
           KNC_DTLB + small % KNC_DTLB_SETS;
}

/* What an access that is modelled at once has changed: memory.c */
typedef struct KncQuick {
    bool own;               /* the thread has modified the line */
    bool cleared;           /* other lines of the set are not used any more */
    bool page_cleared;      /* nor are other pages of their set */
} KncQuick;

/* What a branch does to the pipeline */
#define KNC_BRANCH_WRONG    1   /* mispredicted */
#define KNC_BRANCH_FLUSHES  2

KncCore *knc_core_new(void);
void knc_core_reset(KncCore *core);

void knc_mem_accesses(KncCore *core, int thread, const KncAccess *access,
                      int n, KncPmuEvents *ev);
bool knc_mem_page_used(KncCore *core, int thread, const KncAccess *access);
bool knc_mem_quick(KncCore *core, int thread, const KncAccess *access,
                   KncQuick *quick);
int knc_mem_branch(KncPredictor *p, uint64_t pc, uint64_t next,
                   uint64_t target);
bool knc_mem_contended(const KncCore *core, uint64_t paddr, bool write);
void knc_mem_flush_tlb(KncCore *core, int thread, bool global);
void knc_mem_flush_page(KncCore *core, int thread, uint64_t vaddr);

#endif /* I386_KNC_MEMORY_H */
