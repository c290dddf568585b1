/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: a model of memory hierarchy and branch prediction
 *
 * This only counts; it has no influence on what the guest does.  The caches are
 * in caches.c; Documentation/emulator.rst says what is modelled.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "caches.h"

#define SMALL_BITS      12

/* An entry is its page's virtual address, with these in the low bits. */
#define TLB_VALID       1ull
#define TLB_LARGE       2ull
#define TLB_THREAD      4

static uint64_t tlb_key(int thread, uint64_t vaddr, int bits)
{
    return (vaddr & MAKE_64BIT_MASK(bits, 64 - bits)) |
           (bits == KNC_LARGE_BITS ? TLB_LARGE : 0) |
           thread * TLB_THREAD | TLB_VALID;
}

/* Returns true on a hit.  A miss inserts the page. */
static inline bool tlb_access(uint64_t (*tlb)[KNC_TLB_WAYS], int sets,
                              int thread, uint64_t vaddr, int bits)
{
    uint64_t key = tlb_key(thread, vaddr, bits);
    uint64_t *set = tlb[(key >> bits) & (sets - 1)];
    uint64_t *hit = find(set, KNC_TLB_WAYS, key, 0);

    if (likely(hit)) {
        touch(set, KNC_TLB_WAYS, hit);
        return true;
    }
    replace(set, KNC_TLB_WAYS, victim_of(set), key);
    return false;
}

/* A walk, which is a long one if the second level misses as well */
static void page_walk(KncCore *core, int thread, uint64_t vaddr,
                      KncPmuEvent walk, KncPmuEvent long_walk, KncPmuEvents *ev)
{
    core->tlb_used = true;
    ev->n[walk]++;
    ev->n[long_walk] += !tlb_access(core->tlb2, KNC_TLB2_SETS, thread, vaddr,
                                    KNC_LARGE_BITS);
}

static inline void dtlb_access(KncCore *core, int thread, uint64_t vaddr,
                               int bits, KncPmuEvents *ev)
{
    bool hit = bits < KNC_LARGE_BITS ?
               tlb_access(core->dtlb, KNC_DTLB_SETS, thread, vaddr,
                          SMALL_BITS) :
               tlb_access(core->dtlb_large, KNC_DTLB_LARGE_SETS, thread, vaddr,
                          KNC_LARGE_BITS);

    if (!hit) {
        page_walk(core, thread, vaddr, KNC_DATA_PAGE_WALK,
                  KNC_LONG_DATA_PAGE_WALK, ev);
    }
}

/*
 * One access, which misses if any of its lines does.  Returns the number of
 * entries of @access that it has.
 */
static inline int data_access(KncCore *core, int thread,
                              const KncAccess *access, KncPmuEvents *ev)
{
    uint64_t line = access->paddr & MAKE_64BIT_MASK(KNC_LINE_BITS, 58);
    uint64_t last = access->vaddr + access->size - 1;
    bool write = access->kind == KNC_KIND_WRITE;
    bool miss = access->uncached && !write;

    ev->n[write ? KNC_DATA_WRITE : KNC_DATA_READ]++;
    ev->n[KNC_DATA_READ_OR_WRITE]++;

    dtlb_access(core, thread, access->vaddr, access->page_bits, ev);
    if (access->crosses) {
        dtlb_access(core, thread, last, access[1].page_bits, ev);
    }
    if (!access->uncached) {
        miss = !knc_l1d_access(core, thread, line, write, ev);
        if ((access->vaddr ^ last) >> KNC_LINE_BITS) {
            line = access->crosses ? access[1].paddr :
                   line + (1 << KNC_LINE_BITS);
            miss |= !knc_l1d_access(core, thread, line, write, ev);
        }
    }
    if (miss) {
        ev->n[write ? KNC_DATA_WRITE_MISS : KNC_DATA_READ_MISS]++;
        ev->n[KNC_DATA_READ_MISS_OR_WRITE_MISS]++;
    }
    return access->crosses ? 2 : 1;
}

static inline void code_access(KncCore *core, int thread,
                               const KncAccess *access, KncPmuEvents *ev)
{
    uint64_t line = access->paddr & MAKE_64BIT_MASK(KNC_LINE_BITS, 58);

    ev->n[KNC_CODE_READ]++;
    if (!tlb_access(core->itlb, KNC_ITLB_SETS, thread, access->vaddr,
                    SMALL_BITS)) {
        page_walk(core, thread, access->vaddr, KNC_CODE_PAGE_WALK,
                  KNC_LONG_CODE_PAGE_WALK, ev);
    }
    ev->n[KNC_CODE_CACHE_MISS] += !knc_l1i_access(core, thread, line, ev);
}

static void hint_access(KncCore *core, int thread, const KncAccess *access,
                        KncPmuEvents *ev)
{
    uint64_t line = access->paddr & MAKE_64BIT_MASK(KNC_LINE_BITS, 58);
    int level = access->hint & KNC_HINT_LEVEL;

    dtlb_access(core, thread, access->vaddr, access->page_bits, ev);
    if (access->hint & KNC_HINT_EVICT) {
        knc_evict(core, line, level, ev);
    } else if (level == KNC_HINT_L1) {
        ev->n[KNC_L1_DATA_PF1]++;
        if (access->uncached) {
            ev->n[KNC_L1_DATA_PF1_DROP]++;
        } else {
            knc_prefetch_l1(core, thread, line, access->hint & KNC_HINT_WRITE,
                            ev);
        }
    } else {
        ev->n[KNC_L1_DATA_PF2]++;
        if (!access->uncached) {
            knc_prefetch_l2(core, thread, line, access->hint, ev);
        }
    }
}

/* The set of the TLB that an access uses, and its key there */
static uint64_t *tlb_set(KncCore *core, int thread, const KncAccess *access,
                         uint64_t *key)
{
    bool large = access->kind != KNC_KIND_CODE &&
                 access->page_bits >= KNC_LARGE_BITS;
    int bits = large ? KNC_LARGE_BITS : SMALL_BITS;
    uint64_t page = access->vaddr >> bits;

    *key = tlb_key(thread, access->vaddr, bits);
    return access->kind == KNC_KIND_CODE ? core->itlb[page % KNC_ITLB_SETS] :
           large ? core->dtlb_large[page % KNC_DTLB_LARGE_SETS] :
           core->dtlb[page % KNC_DTLB_SETS];
}

/* Would the access change its TLB? */
bool knc_mem_page_used(KncCore *core, int thread, const KncAccess *access)
{
    uint64_t key, *set = tlb_set(core, thread, access, &key);
    uint64_t *hit = find(set, KNC_TLB_WAYS, key, 0);

    return hit && (*hit & ENTRY_USED);
}

/*
 * An access within a line that hits the TLB and the L1 cache, and that has no
 * event but its own.  Returns false for any other, which is not made.
 */
bool knc_mem_quick(KncCore *core, int thread, const KncAccess *access,
                   KncQuick *quick)
{
    uint64_t line = access->paddr & MAKE_64BIT_MASK(KNC_LINE_BITS, 58);
    uint64_t key, *set = tlb_set(core, thread, access, &key);
    uint64_t *hit = find(set, KNC_TLB_WAYS, key, 0);

    if (!hit || !knc_l1_quick(core, thread, line, access->kind, quick)) {
        return false;
    }
    quick->page_cleared = touch(set, KNC_TLB_WAYS, hit);
    return true;
}

/* @n entries */
void knc_mem_accesses(KncCore *core, int thread, const KncAccess *access,
                      int n, KncPmuEvents *ev)
{
    for (int i = 0; i < n; ) {
        const KncAccess *a = &access[i];

        switch (a->kind) {
        case KNC_KIND_CODE:
            code_access(core, thread, a, ev);
            i++;
            break;
        case KNC_KIND_HINT:
            hint_access(core, thread, a, ev);
            i++;
            break;
        default:
            i += data_access(core, thread, a, ev);
        }
    }
}

/*
 * A branch at @pc went to @target; @next is the address behind it.  A branch
 * that is not in the buffer is not predicted, so it cannot be mispredicted, but
 * it flushes the pipeline if it is taken.
 */
int knc_mem_branch(KncPredictor *p, uint64_t pc, uint64_t next,
                   uint64_t target)
{
    KncBranchTarget *set = p->target[pc & (KNC_BTB_SETS - 1)];
    bool taken = target != next;
    int result = 0;
    KncBranchTarget b;
    int way;

    for (way = 0; way < KNC_BTB_WAYS; way++) {
        if (set[way].valid && set[way].pc == pc) {
            break;
        }
    }
    if (way == KNC_BTB_WAYS) {
        if (!taken) {
            return 0;
        }
        result = KNC_BRANCH_FLUSHES;
        b = (KncBranchTarget) {
            .pc = pc, .target = target, .counter = 3, .valid = true,
        };
        way--;
    } else {
        b = set[way];
        if ((b.counter > 1) != taken || (taken && b.target != target)) {
            result = KNC_BRANCH_WRONG | KNC_BRANCH_FLUSHES;
        }
        if (taken) {
            b.counter = MIN(b.counter + 1, 3);
            b.target = target;
        } else {
            b.counter = MAX(b.counter - 1, 0);
        }
    }
    memmove(set + 1, set, way * sizeof(*set));
    set[0] = b;
    return result;
}

static void tlb_drop(uint64_t *tlb, int entries, uint64_t key, uint64_t mask)
{
    for (int i = 0; i < entries; i++) {
        if ((tlb[i] & mask & ~ENTRY_USED) == key) {
            tlb[i] = 0;
        }
    }
}

static void tlb_drop_all(KncCore *core, uint64_t key, uint64_t mask)
{
    tlb_drop(core->dtlb[0], KNC_DTLB_SETS * KNC_TLB_WAYS, key, mask);
    tlb_drop(core->dtlb_large[0], KNC_DTLB_LARGE_SETS * KNC_TLB_WAYS, key,
             mask);
    tlb_drop(core->itlb[0], KNC_ITLB_SETS * KNC_TLB_WAYS, key, mask);
    tlb_drop(core->tlb2[0], KNC_TLB2_SETS * KNC_TLB_WAYS, key, mask);
}

#define TLB_OWNER_MASK  (TLB_VALID | 3 * TLB_THREAD)

/*
 * Pages in the upper half of the address space are taken for global ones: they
 * are dropped with @global only.
 */
void knc_mem_flush_tlb(KncCore *core, int thread, bool global)
{
    uint64_t mask = TLB_OWNER_MASK | (global ? 0 : 1ull << 63);

    if (!core->tlb_used) {
        return;
    }
    tlb_drop_all(core, thread * TLB_THREAD | TLB_VALID, mask);
}

void knc_mem_flush_page(KncCore *core, int thread, uint64_t vaddr)
{
    static const int bits[] = { SMALL_BITS, KNC_LARGE_BITS };

    if (!core->tlb_used) {
        return;
    }
    for (int i = 0; i < ARRAY_SIZE(bits); i++) {
        tlb_drop_all(core, tlb_key(thread, vaddr, bits[i]), -1);
    }
}
