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

/* An entry is its page's virtual address, with these in the low bits. */
#define TLB_VALID       1ull
#define TLB_LARGE       2ull
#define TLB_THREAD      4

static uint64_t tlb_key(int thread, uint64_t vaddr, bool large)
{
    int bits = large ? KNC_LARGE_BITS : TARGET_PAGE_BITS;

    return (vaddr & MAKE_64BIT_MASK(bits, 64 - bits)) |
           (large ? TLB_LARGE : 0) | thread * TLB_THREAD | TLB_VALID;
}

/* Returns true on a hit.  A miss inserts the page. */
static inline bool find_page(uint64_t *set, uint64_t key)
{
    uint64_t *hit = find(set, KNC_TLB_WAYS, key, 0);

    if (likely(hit)) {
        touch(set, KNC_TLB_WAYS, hit);
        return true;
    }
    replace(set, KNC_TLB_WAYS, victim_of(set), key);
    return false;
}

/* A miss has a walk, which is a long one if the second level misses as well. */
static inline void tlb_access(KncCore *core, int thread,
                              const KncAccess *access, KncPmuEvents *ev)
{
    uint64_t vaddr = access->vaddr, table = vaddr >> KNC_LARGE_BITS;
    bool code = access->kind == KNC_KIND_CODE;

    if (!find_page(core->tlb[knc_tlb_set(access)],
                   tlb_key(thread, vaddr, access->large))) {
        core->tlb_used = true;
        ev->n[code ? KNC_CODE_PAGE_WALK : KNC_DATA_PAGE_WALK]++;
        ev->n[code ? KNC_LONG_CODE_PAGE_WALK : KNC_LONG_DATA_PAGE_WALK] +=
            !find_page(core->tlb[KNC_TLB2 + table % KNC_TLB2_SETS],
                       tlb_key(thread, vaddr, true));
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
    bool miss = access->uncached && !write, vector = access->vector;

    ev->n[write ? KNC_DATA_WRITE : KNC_DATA_READ]++;
    ev->n[KNC_DATA_READ_OR_WRITE]++;
    ev->n[write ? KNC_VPU_DATA_WRITE : KNC_VPU_DATA_READ] += vector;

    tlb_access(core, thread, access, ev);
    if (access->crosses) {
        tlb_access(core, thread, &access[1], ev);
    }
    if (!access->uncached) {
        miss = !knc_l1_access(core, thread, line, access->kind, access->vector,
                              ev);
        if ((access->vaddr ^ last) >> KNC_LINE_BITS) {
            line = access->crosses ? access[1].paddr :
                   line + (1 << KNC_LINE_BITS);
            miss |= !knc_l1_access(core, thread, line, access->kind,
                                   access->vector, ev);
        }
    }
    if (miss) {
        ev->n[write ? KNC_DATA_WRITE_MISS : KNC_DATA_READ_MISS]++;
        ev->n[KNC_DATA_READ_MISS_OR_WRITE_MISS]++;
        ev->n[write ? KNC_VPU_DATA_WRITE_MISS : KNC_VPU_DATA_READ_MISS] +=
            vector;
    }
    return access->crosses ? 2 : 1;
}

static inline void code_access(KncCore *core, int thread,
                               const KncAccess *access, KncPmuEvents *ev)
{
    uint64_t line = access->paddr & MAKE_64BIT_MASK(KNC_LINE_BITS, 58);

    ev->n[KNC_CODE_READ]++;
    tlb_access(core, thread, access, ev);
    ev->n[KNC_CODE_CACHE_MISS] += !knc_l1_access(core, thread, line,
                                                 KNC_KIND_CODE, KNC_NO_VECTOR,
                                                 ev);
}

static void hint_access(KncCore *core, int thread, const KncAccess *access,
                        KncPmuEvents *ev)
{
    uint64_t line = access->paddr & MAKE_64BIT_MASK(KNC_LINE_BITS, 58);
    int level = access->hint & KNC_HINT_LEVEL;

    tlb_access(core, thread, access, ev);
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

/* Would the access change its TLB? */
bool knc_mem_page_used(KncCore *core, int thread, const KncAccess *access)
{
    uint64_t *set = core->tlb[knc_tlb_set(access)];
    uint64_t *hit = find(set, KNC_TLB_WAYS,
                         tlb_key(thread, access->vaddr, access->large), 0);

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
    uint64_t *set = core->tlb[knc_tlb_set(access)];
    uint64_t *hit = find(set, KNC_TLB_WAYS,
                         tlb_key(thread, access->vaddr, access->large), 0);

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
        case KNC_KIND_VECTOR:
            ev->n[KNC_VPU_INSTRUCTIONS_EXECUTED]++;
            ev->n[KNC_VPU_ELEMENTS_ACTIVE] += a->size;
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

static void tlb_drop(KncCore *core, uint64_t key, uint64_t mask)
{
    uint64_t *tlb = core->tlb[0];

    for (int i = 0; core->tlb_used && i < KNC_TLB_SETS * KNC_TLB_WAYS; i++) {
        if ((tlb[i] & mask & ~ENTRY_USED) == key) {
            tlb[i] = 0;
        }
    }
}

#define TLB_OWNER_MASK  (TLB_VALID | 3 * TLB_THREAD)

/*
 * Pages in the upper half of the address space are taken for global ones: they
 * are dropped with @global only.
 */
void knc_mem_flush_tlb(KncCore *core, int thread, bool global)
{
    uint64_t mask = TLB_OWNER_MASK | (global ? 0 : 1ull << 63);

    tlb_drop(core, thread * TLB_THREAD | TLB_VALID, mask);
}

void knc_mem_flush_page(KncCore *core, int thread, uint64_t vaddr)
{
    tlb_drop(core, tlb_key(thread, vaddr, false), -1);
    tlb_drop(core, tlb_key(thread, vaddr, true), -1);
}
