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
 * which is full long before it could run into the next.
 */
#define AGAIN_BITS              21
#define AGAIN_MASK              MAKE_64BIT_MASK(0, AGAIN_BITS)
#define AGAIN_ONE(kind)         (1ull << ((kind) * AGAIN_BITS))
#define AGAIN_FULL              ((AGAIN_ONE(KNC_KIND_READ) | \
                                  AGAIN_ONE(KNC_KIND_WRITE) | \
                                  AGAIN_ONE(KNC_KIND_CODE)) << 12)

/* The sets of the TLBs, in the low bits of a line; the last is of none. */
enum {
    PAGE_DATA,
    PAGE_CODE = PAGE_DATA + KNC_DTLB_SETS,
    PAGE_LARGE = PAGE_CODE + KNC_ITLB_SETS,
    PAGE_SETS = LINE_SIZE,
};

struct KncObserver {
    KncAccess access[ACCESSES_MAX];
    int accesses;
    int completed;              /* those of instructions before this one */
    int wait;                   /* how many may wait */
    uint32_t access_token;

    uint32_t branch_token;      /* 0: no branch to be looked at */
    bool branch_far;            /* it is not predicted */
    int branch_ring;
    uint64_t branch_pc;
    uint64_t branch_next;

    uint64_t line;              /* the line of code that was fetched last */
    uint64_t code_page;         /* the page that was looked up for one, */
    uint64_t code_paddr;        /* and where it is */

    /* Of the accesses that wait: virtual addresses, -1 for none */
    struct {
        uint64_t line[KNC_KINDS][KNC_L1_SETS];
        uint64_t page[PAGE_SETS];
    } latest;
    bool may_find_again;        /* nobody needs all accesses one by one, */
    bool find_again;            /* and no overflow is near either */
    int ring;                   /* in which the block began */
    uint64_t again;
    uint64_t completed_again;
    KncPredictor predictor;
};

static inline void knc_pmu_forget_latest(KncObserver *o)
{
    memset(&o->latest, -1, sizeof(o->latest));
}

static inline uint64_t *knc_pmu_latest_line(KncObserver *o, int kind,
                                            uint64_t vaddr)
{
    return &o->latest.line[kind][(vaddr >> KNC_LINE_BITS) % KNC_L1_SETS];
}

/*
 * An access waits that is not like one before it.  Whatever else is in the
 * same set of an L1 cache may have to leave it for this, or for its line to
 * come into the L2 cache.
 */
static inline void knc_pmu_set_latest(KncObserver *o, const KncAccess *access)
{
    uint64_t last = access->vaddr + access->size - 1;
    uint64_t dirty = *knc_pmu_latest_line(o, KNC_KIND_WRITE, access->vaddr);
    int bits = TARGET_PAGE_BITS;
    uint64_t line;
    int set;

    if (access->crosses) {
        knc_pmu_forget_latest(o);
    }
    if (access->crosses || !o->find_again) {
        return;
    }
    for (int kind = 0; kind < KNC_KINDS; kind++) {
        *knc_pmu_latest_line(o, kind, access->vaddr) = -1;
        *knc_pmu_latest_line(o, kind, last) = -1;
    }
    if (access->kind == KNC_KIND_CODE) {
        set = PAGE_CODE + (access->vaddr >> bits) % KNC_ITLB_SETS;
    } else if (access->page_bits >= KNC_LARGE_BITS) {
        bits = KNC_LARGE_BITS;
        set = PAGE_LARGE + (access->vaddr >> bits) % KNC_DTLB_LARGE_SETS;
    } else {
        set = PAGE_DATA + (access->vaddr >> bits) % KNC_DTLB_SETS;
    }
    o->latest.page[set] = access->vaddr >> bits;
    if ((access->vaddr ^ last) >> KNC_LINE_BITS || access->uncached ||
        access->kind == KNC_KIND_HINT) {
        return;
    }
    line = (access->vaddr & -LINE_SIZE) | set;
    if (access->kind == KNC_KIND_WRITE || dirty == line) {
        *knc_pmu_latest_line(o, KNC_KIND_WRITE, line) = line;
    }
    if (access->kind == KNC_KIND_WRITE) {
        *knc_pmu_latest_line(o, KNC_KIND_READ, line) = line;
    } else {
        *knc_pmu_latest_line(o, access->kind, line) = line;
    }
}

/* Returns true if the access is like one before it. */
static inline bool knc_pmu_find_again(KncObserver *o, int kind, uint64_t vaddr,
                                      uint64_t last)
{
    uint64_t line = *knc_pmu_latest_line(o, kind, vaddr);
    int set = line % LINE_SIZE;
    int bits = set < PAGE_LARGE ? TARGET_PAGE_BITS : KNC_LARGE_BITS;

    return ((line ^ vaddr) | (line ^ last)) < LINE_SIZE &&
           o->latest.page[set] == vaddr >> bits && !(o->again & AGAIN_FULL);
}

#endif /* I386_KNC_OBSERVER_H */
