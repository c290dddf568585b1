/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: the state of the observer, and what need not wait
 */
#ifndef I386_KNC_OBSERVER_H
#define I386_KNC_OBSERVER_H

/* Room for accesses, and how many may wait for the next block */
#define ACCESSES_MAX            512
#define ACCESSES_WAIT           256
#define LINE_SIZE               (1 << KNC_LINE_BITS)

/*
 * Going again to the latest line of a set of a cache, in the latest page of a
 * set of a TLB, changes nothing, unless a line is written to for the first
 * time.  Such accesses are only counted, in one word: a field for each kind,
 * which is full long before it could run into the next.  That is looked at
 * once for each block, which has room for all of its accesses.
 */
#define AGAIN_BITS              21
#define AGAIN_MASK              MAKE_64BIT_MASK(0, AGAIN_BITS)
#define AGAIN_ONE(kind)         (1ull << ((kind) * AGAIN_BITS))
#define AGAIN_FULL              ((AGAIN_ONE(KNC_KIND_READ) | \
                                  AGAIN_ONE(KNC_KIND_WRITE) | \
                                  AGAIN_ONE(KNC_KIND_CODE)) * \
                                 MAKE_64BIT_MASK(12, AGAIN_BITS - 12))

/* The sets of the TLBs, in the low bits of a page; the last is of none. */
enum {
    PAGE_DATA,
    PAGE_CODE = PAGE_DATA + KNC_DTLB_SETS,
    PAGE_LARGE = PAGE_CODE + KNC_ITLB_SETS,
    PAGE_SETS = 64,
};

/* An access that waits: virtual addresses, -1 for none */
typedef struct KncLatest {
    uint64_t line;
    uint64_t page;              /* its number, and its set */
} KncLatest;

struct KncObserver {
    KncAccess access[ACCESSES_MAX];
    int accesses;
    int completed;              /* those of instructions before this one */
    int may_wait;               /* how many may wait, */
    int wait;                   /* and -1 while an overflow is near */
    uint32_t access_token;      /* 0: none since the last look */

    uint32_t branch_token;      /* 0: no branch to be looked at */
    bool branch_far;            /* it is not predicted */
    int branch_ring;
    uint64_t branch_pc;
    uint64_t branch_next;

    uint64_t line;              /* the line of code that was fetched last */
    uint64_t code_page;         /* the page that was looked up for one, */
    uint64_t code_paddr;        /* and where it is */

    /* The latest of each kind in each set of a cache */
    KncLatest latest[KNC_L1_SETS][KNC_KINDS + 1];
    uint64_t page[PAGE_SETS];   /* and the latest page of each set of a TLB */
    bool may_find_again;        /* nobody needs all accesses one by one, */
    bool find_again;            /* and no overflow is near either */
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
 * An access waits that is not like one before it.  Whatever else is in the
 * same set of an L1 cache may have to leave it for this, or for its line to
 * come into the L2 cache.
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

/* Returns true if the access is like one before it. */
static inline bool knc_pmu_find_again(KncObserver *o, int kind, uint64_t vaddr,
                                      int size)
{
    const KncLatest *latest = &knc_pmu_latest(o, vaddr)[kind];

    return (latest->line ^ vaddr) <= LINE_SIZE - size &&
           latest->page == o->page[latest->page % PAGE_SETS];
}

#endif /* I386_KNC_OBSERVER_H */
