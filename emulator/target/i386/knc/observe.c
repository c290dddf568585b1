/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: the observer, which collects accesses for the model of
 * the memory hierarchy
 *
 * The accesses of an instruction are dropped if it does not complete.  It has
 * completed when the next one begins.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "exec/memopidx.h"
#include "exec.h"
#include "internal.h"
#include "observer.h"

KncObserver *knc_observer_new(void)
{
    return g_new0(KncObserver, 1);
}

void knc_observer_reset(KncObserver *o)
{
    memset(o, 0, sizeof(*o));
}

/* Give the model one instruction after the other, for CMASK. */
static void knc_pmu_flush_matching(KncPmuState *s)
{
    KncObserver *o = s->observer;

    for (int i = 0, n; i < o->accesses; i += n) {
        int ring = o->access[i].ring;
        KncPmuEvents ev[KNC_PMU_RINGS] = {};

        n = 1;
        while (i + n < o->accesses && !o->access[i + n].first) {
            n++;
        }
        knc_mem_accesses(s->core, s->thread, &o->access[i], n, ev);
        for (int e = KNC_OBSERVED; e < KNC_EVENTS; e++) {
            s->observed[ring].n[e] += ev[ring].n[e];
        }
        knc_pmu_match(s, ring, &ev[ring]);
    }
}

/* Snoops up to now were not observed: do not count them. */
static void knc_pmu_forget_snoops(KncPmuState *s)
{
    for (int i = 0; i < KNC_SNOOPS; i++) {
        s->snooped[i] = s->core->snooped[s->thread][i];
    }
}

/* Count the snoops of other cores, for the ring since the last fold. */
static void knc_pmu_take_snoops(KncPmuState *s)
{
    static const KncPmuEvent event[KNC_SNOOPS] = {
        [KNC_SNOOP_HIT] = KNC_SNP_HIT_L2,
        [KNC_SNOOP_HITM] = KNC_SNP_HITM_L2,
        [KNC_SNOOP_WRITTEN_BACK] = KNC_DATA_CACHE_LINES_WRITTEN_BACK,
    };

    if (!knc_mem_has_others()) {
        return;
    }
    for (int i = 0; i < KNC_SNOOPS; i++) {
        uint64_t now = s->core->snooped[s->thread][i];

        s->observed[s->ring].n[event[i]] += now - s->snooped[i];
        s->snooped[i] = now;
    }
}

/* Conditions have changed: forget the latest accesses. */
static void knc_observer_rely(KncPmuState *s)
{
    KncObserver *o = s->observer;

    o->wait = s->careful ? -1 : o->may_wait;
    o->find_again = o->may_find_again && !s->careful;
    knc_pmu_forget_latest(o);
}

/* @shared: accesses must not wait, as another thread counts their events. */
void knc_observer_configure(KncPmuState *s, bool observing, bool shared)
{
    KncObserver *o = s->observer;

    if (!observing) {
        knc_pmu_forget_snoops(s);
        s->token = 0;
        o->accesses = o->completed = 0;
        o->again = o->completed_again = 0;
        o->branch_token = 0;
        o->line = o->code_page = -1;
    }
    o->may_wait = shared ? 0 : ACCESSES_WAIT;
    o->may_find_again = !shared && !(s->serves & NEEDS_MATCHES);
    knc_observer_rely(s);
}

/* Each access is looked at by itself while an overflow is near. */
void knc_observer_careful(KncPmuState *s, bool careful)
{
    if (s->careful != careful) {
        s->careful = careful;
        knc_observer_rely(s);
    }
}

/* The instructions before this one have completed. */
static inline void knc_pmu_complete(KncObserver *o, uint32_t token)
{
    o->completed = o->accesses;
    o->completed_again = o->again;
    o->access_token = token;
}

static void knc_pmu_flush_again(KncPmuState *s)
{
    KncObserver *o = s->observer;
    KncPmuEvents *ev = &s->observed[s->ring];
    uint64_t reads = o->again & AGAIN_MASK;
    uint64_t writes = o->again / AGAIN_ONE(KNC_KIND_WRITE) & AGAIN_MASK;

    ev->n[KNC_DATA_READ] += reads;
    ev->n[KNC_DATA_WRITE] += writes;
    ev->n[KNC_DATA_READ_OR_WRITE] += reads + writes;
    ev->n[KNC_CODE_READ] += o->again / AGAIN_ONE(KNC_KIND_CODE);
    o->again = o->completed_again = 0;
}

/* Give the model the accesses of all completed instructions. */
void knc_pmu_flush_accesses(KncPmuState *s)
{
    KncObserver *o = s->observer;

    knc_pmu_complete(o, 0);
    knc_pmu_take_snoops(s);
    if (!o->accesses) {
        return;
    }
    if (s->serves & NEEDS_MATCHES) {
        knc_pmu_flush_matching(s);
    } else {
        knc_mem_accesses(s->core, s->thread, o->access, o->accesses,
                         s->observed);
    }
    o->accesses = o->completed = 0;
    knc_pmu_flush_again(s);
    if (o->find_again) {
        knc_pmu_forget_latest(o);
    }
}

/* A new entry for the executing instruction */
static inline KncAccess *knc_pmu_new_access(CPUX86State *env, int kind)
{
    KncPmuState *s = &env->knc_pmu;
    KncObserver *o = s->observer;
    KncAccess *access;
    bool first = o->access_token != s->token || kind == KNC_KIND_CODE;

    if (unlikely(o->accesses >= ACCESSES_MAX - 1)) {
        /* No room left: count them even if the instruction faults later. */
        knc_pmu_flush_accesses(s);
    }
    if (first) {
        knc_pmu_complete(o, kind == KNC_KIND_CODE ? 0 : s->token);
    }
    access = &o->access[o->accesses];
    access->kind = kind;
    access->first = first;
    access->ring = knc_pmu_current_ring(env);
    return access;
}

/* Record the fetch of a line.  Returns false if it faults. */
static bool knc_pmu_fetch_line(CPUX86State *env, uint64_t line)
{
    KncObserver *o = env->knc_pmu.observer;
    KncAccess *access;

    if ((line ^ o->code_page) & TARGET_PAGE_MASK) {
        if (!knc_tcg_find_code(env, line, &o->code_paddr)) {
            return false;
        }
        o->code_page = line & TARGET_PAGE_MASK;
    }
    o->line = line;
    access = knc_pmu_new_access(env, KNC_KIND_CODE);
    access->vaddr = line;
    access->size = 1;
    access->paddr = o->code_paddr | (line & ~TARGET_PAGE_MASK);
    access->uncached = access->crosses = false;
    knc_pmu_set_latest(o, access);
    o->accesses++;
    return true;
}

/* Returns true if the fetch changes nothing in the model: only count it. */
static inline bool knc_pmu_fetch_again(KncObserver *o, uint64_t line)
{
    if (line == o->line) {
        return true;
    }
    if (!knc_pmu_find_again(o, KNC_KIND_CODE, line, 1)) {
        return false;
    }
    o->line = line;
    o->again += AGAIN_ONE(KNC_KIND_CODE);
    return true;
}

/* Fetch the lines from @line on, the first of which is a new one. */
static void __attribute__((noinline))
knc_pmu_fetch_new(CPUX86State *env, uint64_t line, uint64_t last)
{
    KncObserver *o = env->knc_pmu.observer;

    for (; line <= last; line += LINE_SIZE) {
        if (!knc_pmu_fetch_again(o, line) && !knc_pmu_fetch_line(env, line)) {
            return;
        }
    }
}

/* Fetch the code from @pc to @last, at the start of an instruction. */
static inline void knc_pmu_fetch(CPUX86State *env, uint64_t pc, uint64_t last)
{
    KncObserver *o = env->knc_pmu.observer;

    o->access_token = 0;
    for (uint64_t line = pc & -LINE_SIZE; line <= last; line += LINE_SIZE) {
        if (unlikely(!knc_pmu_fetch_again(o, line))) {
            knc_pmu_fetch_new(env, line, last);
            return;
        }
    }
}

/*
 * An instruction begins with an overflow near: if the completed ones overflowed
 * a counter, leave the block before this one.
 */
static void knc_pmu_look(CPUX86State *env, uintptr_t ra)
{
    KncPmuState *s = &env->knc_pmu;

    knc_pmu_flush_accesses(s);
    if (knc_pmu_observed_overflow(s)) {
        s->token = 0;
        knc_tcg_leave_before(env, ra);
    }
}

void helper_knc_pmu_check(CPUX86State *env)
{
    if (env->knc_pmu.observer->accesses) {
        knc_pmu_look(env, GETPC());
    }
}

/* The start of a block that cannot just record its fetch */
static void __attribute__((noinline))
knc_pmu_block_due(CPUX86State *env, uint32_t size, uintptr_t ra)
{
    KncPmuState *s = &env->knc_pmu;
    KncObserver *o = s->observer;
    uint64_t pc = knc_pmu_pc(env);

    if (o->accesses > o->may_wait || o->again & AGAIN_FULL) {
        knc_pmu_flush_accesses(s);
    }
    knc_pmu_resolve_branch(env);
    if (s->careful) {
        knc_pmu_look(env, ra);
    }
    knc_pmu_fetch(env, pc, pc + size - 1);
}

/* A block begins: the instructions of the previous one have completed. */
void helper_knc_pmu_block(CPUX86State *env, uint32_t size)
{
    KncObserver *o = env->knc_pmu.observer;
    uint64_t pc = knc_pmu_pc(env);

    if (unlikely(o->accesses > o->wait || o->again & AGAIN_FULL ||
                 o->branch_token)) {
        knc_pmu_block_due(env, size, GETPC());
    } else {
        knc_pmu_fetch(env, pc, pc + size - 1);
    }
}

/*
 * An instruction begins that is not within the previous one's line.  @offset is
 * from the start of the page in which the block begins.
 */
void helper_knc_pmu_line(CPUX86State *env, uint32_t offset, uint32_t size)
{
    uint64_t pc = (knc_pmu_pc(env) & TARGET_PAGE_MASK) + offset;

    knc_pmu_fetch(env, pc, pc + size - 1);
}

static void knc_pmu_access(CPUX86State *env, uint64_t addr, int size, int kind,
                           int mmu_idx)
{
    KncObserver *o = env->knc_pmu.observer;
    KncAccess *access = knc_pmu_new_access(env, kind);
    uint64_t last = addr + size - 1;

    access->vaddr = addr;
    access->size = size;
    access->crosses = (addr ^ last) & TARGET_PAGE_MASK;
    if (!knc_tcg_find_data(env, addr, mmu_idx, access)) {
        return;
    }
    if (unlikely(access->crosses)) {
        if (!knc_tcg_find_data(env, last & TARGET_PAGE_MASK, mmu_idx,
                               access + 1)) {
            return;
        }
        access[1].first = false;
        o->accesses++;
    }
    o->accesses++;
    knc_pmu_set_latest(o, access);
}

static inline void knc_pmu_report(CPUX86State *env, uint64_t addr,
                                  uint32_t info, int kind)
{
    KncObserver *o = env->knc_pmu.observer;
    int size = info & KNC_ACCESS_SIZE;

    if (likely(knc_pmu_find_again(o, kind, addr, size))) {
        if (o->access_token != env->knc_pmu.token) {
            knc_pmu_complete(o, env->knc_pmu.token);
        }
        o->again += AGAIN_ONE(kind);
    } else {
        knc_pmu_access(env, addr, size, kind, info >> KNC_ACCESS_MMU_SHIFT);
    }
}

void helper_knc_pmu_load(CPUX86State *env, target_ulong addr, uint32_t info)
{
    knc_pmu_report(env, addr, info, KNC_KIND_READ);
}

void helper_knc_pmu_store(CPUX86State *env, target_ulong addr, uint32_t info)
{
    knc_pmu_report(env, addr, info, KNC_KIND_WRITE);
}

/* A prefetch or eviction; nothing happens without a mapped page. */
void helper_knc_hint(CPUX86State *env, target_ulong addr, uint32_t info)
{
    KncObserver *o = env->knc_pmu.observer;
    KncAccess *access = knc_pmu_new_access(env, KNC_KIND_HINT);

    access->vaddr = addr;
    access->size = 1;
    access->crosses = false;
    access->hint = info & KNC_ACCESS_SIZE;
    if (knc_tcg_find_data(env, addr, info >> KNC_ACCESS_MMU_SHIFT, access)) {
        o->accesses++;
        knc_pmu_set_latest(o, access);
    }
}

/*
 * QEMU loads a descriptor in two halves, the chip in one read.  Returns true
 * for the second half, and makes the first one the whole.
 */
static bool knc_pmu_second_half(CPUX86State *env, uint64_t addr, int size,
                                MMUAccessType type)
{
    KncObserver *o = env->knc_pmu.observer;
    KncAccess *first = &o->access[o->accesses - 1];
    uint64_t in_gdt = addr - env->gdt.base, in_ldt = addr - env->ldt.base;

    if (type != MMU_DATA_LOAD || size != 4 || !o->accesses ||
        o->access_token != env->knc_pmu.token ||
        first->kind != KNC_KIND_READ || first->vaddr != addr - 4 ||
        first->size != 4 || (first->vaddr ^ addr) & TARGET_PAGE_MASK ||
        !((in_gdt % 8 == 4 && in_gdt <= env->gdt.limit) ||
          (in_ldt % 8 == 4 && in_ldt <= env->ldt.limit))) {
        return false;
    }
    first->size = 8;
    knc_pmu_set_latest(o, first);
    env->knc_pmu.descriptors[knc_pmu_current_ring(env)]++;
    return true;
}

/* A helper has made an access. */
void knc_pmu_helper_access(CPUState *cs, vaddr addr, MemOpIdx oi,
                           MMUAccessType type)
{
    CPUX86State *env = &X86_CPU(cs)->env;
    int size = memop_size(get_memop(oi));

    /* Accesses of interrupt delivery have no token, and do not count. */
    if (env->knc_pmu.token && !knc_pmu_second_half(env, addr, size, type)) {
        knc_pmu_access(env, addr, size,
                       type == MMU_DATA_STORE ? KNC_KIND_WRITE : KNC_KIND_READ,
                       get_mmuidx(oi));
    }
}

/* The executing instruction does not complete. */
void knc_pmu_abandon(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;
    KncObserver *o = s->observer;

    if (s->token) {
        if (o->access_token == s->token) {
            o->accesses = o->completed;
            o->again = o->completed_again;
            knc_pmu_forget_latest(o);
        }
        if (o->branch_token == s->token) {
            o->branch_token = 0;
        }
        s->token = 0;
    }
}

/* TLB entries are dropped; the accesses up to here still used them. */
static void knc_pmu_forget_pages(KncPmuState *s)
{
    if (s->tb_flags & HF_KNC_OBSERVE_MASK) {
        knc_pmu_flush_accesses(s);
    }
    s->observer->line = s->observer->code_page = -1;
}

/* A control register is about to be written. */
void knc_pmu_write_cr(CPUX86State *env, int reg, uint64_t val)
{
    static const uint32_t dropping[] = {
        [0] = CR0_PG_MASK | CR0_WP_MASK | CR0_PE_MASK,
        [4] = CR4_PGE_MASK | CR4_PAE_MASK | CR4_PSE_MASK,
    };
    KncPmuState *s = &env->knc_pmu;
    bool global = reg < ARRAY_SIZE(dropping) &&
                  ((val ^ env->cr[reg]) & dropping[reg]);

    if (s->core && (global || reg == 3)) {
        knc_pmu_forget_pages(s);
        knc_mem_flush_tlb(s->core, s->thread,
                          global || !(env->cr[4] & CR4_PGE_MASK));
    }
}

void knc_pmu_flush_page(CPUX86State *env, uint64_t vaddr)
{
    KncPmuState *s = &env->knc_pmu;

    if (s->core) {
        knc_pmu_forget_pages(s);
        knc_mem_flush_page(s->core, s->thread, vaddr);
    }
}
