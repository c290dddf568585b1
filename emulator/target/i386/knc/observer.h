/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: the state of the observer; accesses that are only counted
 */
#ifndef I386_KNC_OBSERVER_H
#define I386_KNC_OBSERVER_H

/* Room for accesses, and how many may wait for the next block */
#define ACCESSES_MAX            512
#define ACCESSES_WAIT           256
#define LINE_SIZE               (1 << KNC_LINE_BITS)

/*
 * An access to the latest line of its cache set, in the latest page of its TLB
 * set, does not change the model, unless it is the first write to the line.
 * Such accesses are only counted, in one word with a field for each kind.  A
 * block checks AGAIN_FULL once, which leaves room for all of its accesses.
 */
#define AGAIN_BITS              21
#define AGAIN_MASK              MAKE_64BIT_MASK(0, AGAIN_BITS)
#define AGAIN_ONE(kind)         (1ull << ((kind) * AGAIN_BITS))
#define AGAIN_FULL              ((AGAIN_ONE(KNC_KIND_READ) | \
                                  AGAIN_ONE(KNC_KIND_WRITE) | \
                                  AGAIN_ONE(KNC_KIND_CODE)) * \
                                 MAKE_64BIT_MASK(12, AGAIN_BITS - 12))

/* TLB sets, in the low bits of KncLatest.page; no TLB has the last one. */
enum {
    PAGE_DATA,
    PAGE_CODE = PAGE_DATA + KNC_DTLB_SETS,
    PAGE_LARGE = PAGE_CODE + KNC_ITLB_SETS,
    PAGE_SETS = 64,
};

/* The latest access: virtual addresses, -1 for none */
typedef struct KncLatest {
    uint64_t line;
    uint64_t page;              /* number * PAGE_SETS + set */
} KncLatest;

struct KncObserver {
    KncAccess access[ACCESSES_MAX];
    int accesses;
    int completed;              /* by instructions before this one */
    int may_wait;               /* how many may wait for the next block */
    int wait;                   /* may_wait, or -1 while an overflow is near */
    uint32_t access_token;      /* instruction of the last access, or 0 */

    uint32_t branch_token;      /* 0: no branch to resolve */
    bool branch_far;            /* and so not predicted */
    int branch_ring;
    uint64_t branch_pc;
    uint64_t branch_next;

    uint64_t line;              /* the latest line of code */
    uint64_t code_page;         /* the latest page of code */
    uint64_t code_paddr;        /* its physical address */

    /* The latest of each kind in each set of a cache, and of each TLB set */
    KncLatest latest[KNC_L1_SETS][KNC_KINDS + 1];
    uint64_t page[PAGE_SETS];
    bool may_find_again;        /* no counter needs the accesses one by one */
    bool find_again;            /* and no overflow is near */
    uint64_t again;
    uint64_t completed_again;
    KncPredictor predictor;
};

static inline void knc_pmu_forget_latest(KncObserver *o)
{
    memset(&o->latest, -1, sizeof(o->latest));
}

static inline KncLatest *knc_pmu_latest(KncObserver *o, uint64_t vaddr)
{
    return o->latest[(vaddr >> KNC_LINE_BITS) % KNC_L1_SETS];
}

/* The page of an access, as in KncLatest */
static inline uint64_t knc_pmu_page(const KncAccess *access)
{
    uint64_t small = access->vaddr >> TARGET_PAGE_BITS;
    uint64_t large = access->vaddr >> KNC_LARGE_BITS;

    if (access->kind == KNC_KIND_CODE) {
        return small * PAGE_SETS + PAGE_CODE + small % KNC_ITLB_SETS;
    }
    if (access->page_bits >= KNC_LARGE_BITS) {
        return large * PAGE_SETS + PAGE_LARGE + large % KNC_DTLB_LARGE_SETS;
    }
    return small * PAGE_SETS + PAGE_DATA + small % KNC_DTLB_SETS;
}

/*
 * Record an access that the model has to see.  It may evict any other line of
 * the same L1 set, so what is known of that set is forgotten.
 */
static inline void knc_pmu_set_latest(KncObserver *o, const KncAccess *access)
{
    uint64_t last = access->vaddr + access->size - 1;
    bool one_line = (access->vaddr ^ last) < LINE_SIZE;
    KncLatest *latest = knc_pmu_latest(o, access->vaddr);
    KncLatest was = latest[KNC_KIND_WRITE];
    KncLatest now;

    if (access->crosses) {
        knc_pmu_forget_latest(o);
    }
    if (access->crosses || !o->find_again) {
        return;
    }
    memset(latest, -1, sizeof(o->latest[0]));
    if (!one_line) {
        memset(knc_pmu_latest(o, last), -1, sizeof(o->latest[0]));
    }
    now.line = access->vaddr & -LINE_SIZE;
    now.page = knc_pmu_page(access);
    o->page[now.page % PAGE_SETS] = now.page;
    if (!one_line || access->uncached || access->kind == KNC_KIND_HINT) {
        return;
    }
    if (access->kind == KNC_KIND_WRITE ||
        (was.line == now.line && was.page == now.page)) {
        latest[KNC_KIND_WRITE] = now;
    }
    latest[access->kind == KNC_KIND_CODE ? KNC_KIND_CODE : KNC_KIND_READ] = now;
}

/* Returns true if the access does not change the model. */
static inline bool knc_pmu_find_again(KncObserver *o, int kind, uint64_t vaddr,
                                      int size)
{
    const KncLatest *latest = &knc_pmu_latest(o, vaddr)[kind];

    return (latest->line ^ vaddr) <= LINE_SIZE - size &&
           latest->page == o->page[latest->page % PAGE_SETS];
}

#endif /* I386_KNC_OBSERVER_H */
