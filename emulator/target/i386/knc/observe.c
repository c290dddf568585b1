/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: the observer, which collects accesses for the model of
 * the memory hierarchy
 *
 * Accesses wait in access[] until the thread's turn ends, or so many wait that
 * they could overflow a counter.  Those of an instruction that does not
 * complete are dropped.  It has completed when the next one begins.
 *
 *   0             completed          waiting     may_wait          ACCESSES_MAX
 *   +---------------+------------------+------------+--------------------+
 *   | to the model, | of the executing | free       | for accesses of    |
 *   | or wait       | instruction      |            | the same helper    |
 *   +---------------+------------------+------------+--------------------+
 *
 * Generated code and helpers make the accesses of an instruction as follows.
 * Its token is how many instructions its block has left, with itself: here 3.
 *
 *   token = 3         only if it calls a helper, or by knc_pmu_report()
 *   first access      access_token is not 3, so completed = waiting, and
 *                     access_token = 3
 *   each access       if waiting would exceed may_wait, knc_pmu_make_room():
 *                     all before completed goes to the model, and may_wait is
 *                     worked out anew.  If it is still too small, the
 *                     instruction is left, and executed again alone; a helper
 *                     sets check_due instead.  Then waiting++
 *   fault             knc_pmu_abandon(3): waiting = completed
 *   next instruction  if check_due: all to the model, and leave if a counter
 *                     has wrapped
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "exec/memopidx.h"
#include "internal.h"
#include "observer.h"

KncObserver *knc_observer_new(void)
{
    return g_new0(KncObserver, 1);
}

/*
 * Give the model one instruction after the other, for CMASK: the first @n
 * entries.
 */
static void knc_pmu_model_matching(KncPmuState *s, int entries)
{
    KncObserver *o = s->observer;

    for (int i = 0, n; i < entries; i += n) {
        KncPmuEvents ev = {};

        n = 1;
        while (i + n < entries && !o->access[i + n].first) {
            n++;
        }
        knc_mem_accesses(s->core, s->thread, &o->access[i], n, &ev);
        for (int e = KNC_OBSERVED; e < KNC_EVENTS; e++) {
            s->seen.observed.n[e] += ev.n[e];
        }
        knc_pmu_match(s, &ev);
    }
}

/* Snoops up to now were not observed: do not count them. */
static void knc_pmu_forget_snoops(KncPmuState *s)
{
    for (int i = 0; i < KNC_SNOOPS; i++) {
        s->seen.snooped[i] = s->core->snooped[s->thread][i];
    }
}

/* Count the snoops of other cores. */
static void knc_pmu_take_snoops(KncPmuState *s)
{
    static const KncPmuEvent event[KNC_SNOOPS] = {
        [KNC_SNOOP_HIT] = KNC_SNP_HIT_L2,
        [KNC_SNOOP_HITM] = KNC_SNP_HITM_L2,
        [KNC_SNOOP_WRITTEN_BACK] = KNC_DATA_CACHE_LINES_WRITTEN_BACK,
    };

    for (int i = 0; i < KNC_SNOOPS; i++) {
        uint64_t now = s->core->snooped[s->thread][i];

        s->seen.observed.n[event[i]] += now - s->seen.snooped[i];
        s->seen.snooped[i] = now;
    }
}

static void knc_pmu_forget_lines(KncPmuState *s)
{
    memset(s->seen.filter.line, (uint8_t)NO_LINE, sizeof(s->seen.filter.line));
    memset(s->observer->lines, 0, sizeof(s->observer->lines));
}

static void knc_pmu_forget_set(KncPmuState *s, int set)
{
    for (; set < KNC_FILTER_ROWS; set += KNC_L1_SETS) {
        memset(s->seen.filter.line[set], (uint8_t)NO_LINE,
               sizeof(s->seen.filter.line[0]));
    }
}

/* The thread begins to observe, or does so no longer. */
void knc_observer_start(KncPmuState *s)
{
    KncObserver *o = s->observer;

    s->seen.token = s->seen.access_token = 0;
    s->seen.check_due = s->seen.alone = false;
    s->seen.filter.hits = 0;
    s->seen.filter.code = NO_LINE;
    o->waiting = o->completed = 0;
    o->branch_token = 0;
    o->code_page = -1;
    knc_pmu_forget_snoops(s);
    knc_pmu_forget_lines(s);
}

void knc_observer_reset(KncPmuState *s)
{
    memset(s->observer, 0, sizeof(*s->observer));
    knc_observer_start(s);
}

static void knc_pmu_set_may_wait(KncPmuState *s)
{
    KncObserver *o = s->observer;

    o->may_wait = s->seen.alone ? ACCESSES_MAX - 2 :
               MIN(knc_pmu_may_wait(s, !o->filters), ACCESSES_WAIT);
}

/* With @all, accesses that do not change the model are reported as well. */
void knc_observer_refuel(KncPmuState *s, bool all)
{
    KncObserver *o = s->observer;

    all |= s->share.serves & NEEDS_MATCHES;
    if (o->filters == all) {
        o->filters = !all;
        knc_pmu_forget_lines(s);
    }
    knc_pmu_set_may_wait(s);
}

/* What waits has completed; the next accesses are of @token. */
static inline void knc_pmu_complete(KncPmuState *s, uint32_t token)
{
    s->observer->completed = s->observer->waiting;
    s->observer->hits_off = 0;
    s->seen.access_token = token;
}

/* Give the model the first @entries accesses, and let others wait. */
static void knc_pmu_model(KncPmuState *s, int entries)
{
    KncObserver *o = s->observer;

    if (s->share.serves & NEEDS_MATCHES) {
        knc_pmu_model_matching(s, entries);
    } else {
        knc_mem_accesses(s->core, s->thread, o->access, entries,
                         &s->seen.observed);
    }
    o->waiting -= entries;
    o->completed -= entries;
    memmove(o->access, o->access + entries,
            o->waiting * sizeof(o->access[0]));
    knc_pmu_set_may_wait(s);
}

/*
 * Between two instructions: give the model all accesses, and count those that
 * do not change it.
 */
void knc_pmu_flush_accesses(KncPmuState *s)
{
    uint64_t reads = (uint32_t)s->seen.filter.hits;
    uint64_t writes = s->seen.filter.hits / KNC_HIT_WRITE;

    s->seen.observed.n[KNC_DATA_READ] += reads;
    s->seen.observed.n[KNC_DATA_WRITE] += writes;
    s->seen.observed.n[KNC_DATA_READ_OR_WRITE] += reads + writes;
    s->seen.filter.hits = 0;
    s->seen.check_due = false;
    knc_pmu_take_snoops(s);
    knc_pmu_complete(s, 0);
    knc_pmu_model(s, s->observer->waiting);
}

/*
 * Other threads have executed: they may have changed the caches and TLBs that
 * this one shares with them.
 */
void knc_observer_begin_turn(KncPmuState *s)
{
    if (s->tb_flags & HF_KNC_OBSERVE_MASK) {
        knc_pmu_forget_lines(s);
    }
}

/* The model gets the accesses in the order of the turns. */
void knc_observer_end_turn(KncPmuState *s)
{
    if (s->tb_flags & HF_KNC_OBSERVE_MASK) {
        knc_pmu_flush_accesses(s);
    }
}

/* As many accesses wait as may.  @ra is 0 if the block cannot be left here. */
static void __attribute__((noinline))
knc_pmu_make_room(CPUX86State *env, int entries, uintptr_t ra)
{
    KncPmuState *s = &env->knc_pmu;
    KncObserver *o = s->observer;

    if (s->seen.access_token != s->seen.token) {
        knc_pmu_complete(s, 0);
    }
    knc_pmu_model(s, o->completed);
    if (o->waiting + entries <= o->may_wait) {
        return;
    }
    if (ra) {
        s->seen.alone = true;
        knc_tcg_leave_before(env, ra);
    }
    s->seen.check_due = true;
    knc_pmu_stop(env);
    if (o->waiting + entries > ACCESSES_MAX) {
        /* No room left: count them even if the instruction faults later. */
        knc_pmu_complete(s, s->seen.token);
        knc_pmu_model(s, o->completed);
    }
}

/* A new entry for the executing instruction, with room for another one */
static inline KncAccess *knc_pmu_new_access(CPUX86State *env, int kind,
                                            int entries, uintptr_t ra)
{
    KncPmuState *s = &env->knc_pmu;
    KncObserver *o = s->observer;
    KncAccess *access;
    bool first;

    if (unlikely(o->waiting + entries > o->may_wait)) {
        knc_pmu_make_room(env, entries, ra);
    }
    first = s->seen.access_token != s->seen.token || kind == KNC_KIND_CODE;
    if (first) {
        knc_pmu_complete(s, kind == KNC_KIND_CODE ? 0 : s->seen.token);
    }
    access = &o->access[o->waiting];
    access->kind = kind;
    access->first = first;
    return access;
}

static void knc_pmu_forget_pages_of(KncPmuState *s, int set)
{
    uint64_t *lines = &s->observer->lines[set];

    for (; *lines; *lines &= *lines - 1) {
        knc_pmu_forget_set(s, ctz64(*lines));
    }
}

/*
 * The model will get an access.  It may evict any other line of the same L1
 * set, or let it be unused, and the same with pages.
 */
static void knc_pmu_forget_others(KncPmuState *s, const KncAccess *access)
{
    uint64_t last = access->vaddr + access->size - 1;

    if (access->crosses) {
        knc_pmu_forget_lines(s);
    } else if (s->observer->filters) {
        knc_pmu_forget_set(s, knc_pmu_l1_set(access->vaddr));
        knc_pmu_forget_set(s, knc_pmu_l1_set(last));
        if (!knc_mem_page_used(s->core, s->thread, access)) {
            knc_pmu_forget_pages_of(s, knc_tlb_set(access));
        }
    }
}

/*
 * The first access of an instruction that the model knows is made at once, and
 * is in the filter from then on.  Returns false for any other.
 */
static bool knc_pmu_quick(KncPmuState *s, const KncAccess *access)
{
    KncObserver *o = s->observer;
    uint64_t line = access->vaddr & -LINE_SIZE;
    uint64_t *row = knc_pmu_row(s, line);
    KncQuick quick;
    int page_set;

    if (!o->filters || access->uncached ||
        (access->vaddr ^ (access->vaddr + access->size - 1)) & -LINE_SIZE) {
        return false;
    }
    if (o->waiting) {
        knc_pmu_complete(s, 0);
        knc_pmu_model(s, o->waiting);
    }
    if (!knc_mem_quick(s->core, s->thread, access, &quick)) {
        return false;
    }
    page_set = knc_tlb_set(access);
    if (quick.page_cleared) {
        knc_pmu_forget_pages_of(s, page_set);
    }
    if (quick.cleared) {
        knc_pmu_forget_set(s, knc_pmu_l1_set(line));
    }
    o->lines[page_set] |= 1ull << knc_pmu_l1_set(line);
    if (access->kind == KNC_KIND_CODE) {
        row[KNC_KIND_CODE] = line;
    } else {
        row[KNC_KIND_READ] = line;
        row[KNC_KIND_WRITE] = quick.own ? line : NO_LINE;
    }
    return true;
}

/* Record the fetch of a line.  Returns false if it faults. */
static bool __attribute__((noinline))
knc_pmu_fetch_line(CPUX86State *env, uint64_t line, uintptr_t ra)
{
    KncPmuState *s = &env->knc_pmu;
    KncObserver *o = s->observer;
    KncAccess fetch = { .kind = KNC_KIND_CODE, .vaddr = line, .size = 1 };
    KncAccess *access;

    knc_pmu_complete(s, 0);
    if ((line ^ o->code_page) & TARGET_PAGE_MASK) {
        if (!knc_tcg_find_code(env, line, &o->code_paddr)) {
            return false;
        }
        o->code_page = line & TARGET_PAGE_MASK;
    }
    fetch.paddr = o->code_paddr | (line & ~TARGET_PAGE_MASK);
    if (knc_pmu_quick(s, &fetch)) {
        s->seen.filter.code = line;
        s->seen.observed.n[KNC_CODE_READ]++;
        return true;
    }
    access = knc_pmu_new_access(env, KNC_KIND_CODE, 1, ra);
    s->seen.filter.code = line;
    fetch.first = access->first;
    *access = fetch;
    knc_pmu_forget_others(s, access);
    o->waiting++;
    return true;
}

/* Returns true if the fetch changes nothing in the model: only count it. */
static inline bool knc_pmu_fetch_again(KncPmuState *s, uint64_t line)
{
    if (line == s->seen.filter.code) {
        return true;
    }
    if (!knc_pmu_find_again(s, KNC_KIND_CODE, line, 1)) {
        return false;
    }
    s->seen.filter.code = line;
    s->seen.observed.n[KNC_CODE_READ]++;
    return true;
}

/* Fetch the code from @pc to @last, at the start of an instruction. */
static inline void knc_pmu_fetch(CPUX86State *env, uint64_t pc, uint64_t last,
                                 uintptr_t ra)
{
    for (uint64_t line = pc & -LINE_SIZE; line <= last; line += LINE_SIZE) {
        if (unlikely(!knc_pmu_fetch_again(&env->knc_pmu, line)) &&
            !knc_pmu_fetch_line(env, line, ra)) {
            return;
        }
    }
}

/* The instruction at the current address is fetched, but has a breakpoint. */
void knc_observer_fetch(CPUX86State *env)
{
    uint64_t pc = knc_pmu_pc(env);

    if (env->knc_pmu.tb_flags & HF_KNC_OBSERVE_MASK) {
        knc_pmu_fetch(env, pc, pc, 0);
    }
}

/*
 * The instruction before this one has completed: if events of the model
 * overflowed a counter, leave the block here.
 */
static void knc_pmu_look(CPUX86State *env, uintptr_t ra)
{
    KncPmuState *s = &env->knc_pmu;

    if (knc_pmu_observed_overflow(s)) {
        s->seen.token = 0;
        knc_tcg_leave_before(env, ra);
    }
}

/* A helper has made more accesses than may wait. */
void helper_knc_pmu_check(CPUX86State *env)
{
    KncPmuState *s = &env->knc_pmu;

    knc_pmu_complete(s, 0);
    knc_pmu_model(s, s->observer->waiting);
    s->seen.check_due = false;
    knc_pmu_look(env, GETPC());
}

/* A block begins, in another line or after a branch that is predicted. */
void helper_knc_pmu_block(CPUX86State *env, uint32_t size)
{
    uint64_t pc = knc_pmu_pc(env);

    if (unlikely(env->knc_pmu.observer->branch_token)) {
        knc_pmu_resolve_branch(env);
        knc_pmu_look(env, GETPC());
    }
    knc_pmu_fetch(env, pc, pc + size - 1, GETPC());
}

/*
 * An instruction begins that is not within the previous one's line.  @offset is
 * from the start of the page in which the block begins.
 */
void helper_knc_pmu_line(CPUX86State *env, uint32_t offset, uint32_t size)
{
    uint64_t pc = (knc_pmu_pc(env) & TARGET_PAGE_MASK) + offset;

    knc_pmu_fetch(env, pc, pc + size - 1, GETPC());
}

/* Returns false if the access faults. */
static bool knc_pmu_access(CPUX86State *env, uint64_t addr, int size, int kind,
                           int mmu_idx, KncVectorAccess vector, uintptr_t ra)
{
    KncPmuState *s = &env->knc_pmu;
    uint64_t last = addr + size - 1;
    bool crosses = (addr ^ last) & TARGET_PAGE_MASK;
    KncAccess *access = knc_pmu_new_access(env, kind, 1 + crosses, ra);

    access->vaddr = addr;
    access->size = size;
    access->crosses = crosses;
    access->vector = vector;
    if (!knc_tcg_find_data(env, addr, mmu_idx, access)) {
        return false;
    }
    if (unlikely(crosses)) {
        access[1] = (KncAccess) {
            .kind = kind, .vaddr = last & TARGET_PAGE_MASK,
        };
        if (!knc_tcg_find_data(env, access[1].vaddr, mmu_idx, &access[1])) {
            return false;
        }
        s->observer->waiting++;
    }
    s->observer->waiting++;
    knc_pmu_forget_others(s, access);
    if (!access->uncached && knc_mem_contended(s->core, access->paddr,
                                               kind == KNC_KIND_WRITE)) {
        knc_clock_yield(env, TRANSFER);
    }
    return true;
}

/* The executing instruction has fewer hits than its block has counted. */
static void knc_pmu_take_off(KncPmuState *s, uint64_t hits)
{
    s->seen.filter.hits -= hits;
    s->observer->hits_off += hits;
}

/*
 * An access that generated code did not find in the filter.  The block has
 * counted it as a hit unless it may or may not be executed.
 */
static void knc_pmu_report(CPUX86State *env, uint64_t addr, uint32_t info,
                           int kind, uintptr_t ra)
{
    KncPmuState *s = &env->knc_pmu;
    uint64_t one = kind == KNC_KIND_WRITE ? KNC_HIT_WRITE : KNC_HIT_READ;
    bool counted = !(info & KNC_ACCESS_MAYBE);
    int size = info & KNC_ACCESS_SIZE;
    int mmu_idx = info >> KNC_ACCESS_MMU_SHIFT & KNC_ACCESS_MMU;
    KncAccess access = { .kind = kind, .vaddr = addr, .size = size };

    s->seen.token = info >> KNC_ACCESS_TOKEN_SHIFT;
    if (counted && s->seen.access_token != s->seen.token &&
        knc_tcg_find_data(env, addr, mmu_idx, &access) &&
        knc_pmu_quick(s, &access)) {
        return;
    }
    if (!counted && knc_pmu_find_again(s, kind, addr, size)) {
        if (s->seen.access_token != s->seen.token) {
            knc_pmu_complete(s, s->seen.token);
        }
        knc_pmu_take_off(s, -one);
    } else if (knc_pmu_access(env, addr, size, kind, mmu_idx, KNC_NO_VECTOR,
                              info & KNC_ACCESS_LATE ? 0 : ra) && counted) {
        knc_pmu_take_off(s, one);
    }
}

void helper_knc_pmu_load(CPUX86State *env, target_ulong addr, uint32_t info)
{
    knc_pmu_report(env, addr, info, KNC_KIND_READ, GETPC());
}

void helper_knc_pmu_store(CPUX86State *env, target_ulong addr, uint32_t info)
{
    knc_pmu_report(env, addr, info, KNC_KIND_WRITE, GETPC());
}

/* A prefetch or eviction; nothing happens without a mapped page. */
void knc_pmu_hint(CPUX86State *env, uint64_t addr, uint32_t info, uintptr_t ra)
{
    KncPmuState *s = &env->knc_pmu;
    KncAccess *access = knc_pmu_new_access(env, KNC_KIND_HINT, 1, ra);

    access->vaddr = addr;
    access->size = 1;
    access->crosses = false;
    access->hint = info & KNC_ACCESS_SIZE;
    if (knc_tcg_find_data(env, addr, info >> KNC_ACCESS_MMU_SHIFT, access)) {
        s->observer->waiting++;
        knc_pmu_forget_others(s, access);
    }
}

void helper_knc_hint(CPUX86State *env, target_ulong addr, uint32_t info)
{
    knc_pmu_hint(env, addr, info, GETPC());
}

/*
 * QEMU loads a descriptor in two halves, the chip in one read.  Returns true
 * for the second half, and makes the first one the whole.
 */
static bool knc_pmu_second_half(CPUX86State *env, uint64_t addr, int size,
                                MMUAccessType type)
{
    KncObserver *o = env->knc_pmu.observer;
    KncAccess *first = o->waiting ? &o->access[o->waiting - 1] : NULL;
    uint64_t in_gdt = addr - env->gdt.base, in_ldt = addr - env->ldt.base;

    if (type != MMU_DATA_LOAD || size != 4 || !first ||
        env->knc_pmu.seen.access_token != env->knc_pmu.seen.token ||
        first->kind != KNC_KIND_READ || first->vaddr != addr - 4 ||
        first->size != 4 || (first->vaddr ^ addr) & TARGET_PAGE_MASK ||
        !((in_gdt % 8 == 4 && in_gdt <= env->gdt.limit) ||
          (in_ldt % 8 == 4 && in_ldt <= env->ldt.limit))) {
        return false;
    }
    first->size = 8;
    knc_pmu_forget_others(&env->knc_pmu, first);
    env->knc_pmu.tally.descriptors[knc_pmu_current_ring(env)]++;
    return true;
}

/* A helper has made an access. */
void knc_pmu_helper_access(CPUState *cs, vaddr addr, MemOpIdx oi,
                           MMUAccessType type)
{
    CPUX86State *env = &X86_CPU(cs)->env;
    int size = memop_size(get_memop(oi));

    /* Accesses of interrupt delivery have no token, and do not count. */
    if (env->knc_pmu.seen.token &&
        !knc_pmu_second_half(env, addr, size, type)) {
        knc_pmu_access(env, addr, size,
                       type == MMU_DATA_STORE ? KNC_KIND_WRITE : KNC_KIND_READ,
                       get_mmuidx(oi), KNC_NO_VECTOR, 0);
    }
}

/* A vector instruction executes, with so many active elements. */
void knc_pmu_vector(CPUX86State *env, int elements)
{
    if (env->knc_pmu.seen.token) {
        KncAccess *access = knc_pmu_new_access(env, KNC_KIND_VECTOR, 1, 0);

        access->size = elements;
        env->knc_pmu.observer->waiting++;
    }
}

/* It accesses a line. */
void knc_pmu_vector_access(CPUX86State *env, uint64_t addr, int size,
                           bool store, int mmu_idx, KncVectorAccess how)
{
    if (env->knc_pmu.seen.token) {
        knc_pmu_access(env, addr, size,
                       store ? KNC_KIND_WRITE : KNC_KIND_READ, mmu_idx, how, 0);
    }
}

/* An instruction does not complete. */
void knc_pmu_abandon(KncPmuState *s, uint32_t token)
{
    KncObserver *o = s->observer;

    if (token && s->seen.access_token == token) {
        o->waiting = o->completed;
        s->seen.filter.hits += o->hits_off;
        knc_pmu_complete(s, 0);
        knc_pmu_forget_lines(s);
    }
    if (o->branch_token == token) {
        o->branch_token = 0;
    }
    s->seen.token = 0;
}

/* TLB entries are dropped; the accesses up to here still used them. */
static void knc_pmu_forget_pages(KncPmuState *s)
{
    if (s->tb_flags & HF_KNC_OBSERVE_MASK) {
        knc_pmu_flush_accesses(s);
        knc_pmu_forget_lines(s);
    }
    s->seen.filter.code = NO_LINE;
    s->observer->code_page = -1;
}

/* A control register is about to be written. */
void helper_knc_write_cr(CPUX86State *env, uint32_t reg, target_ulong val)
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

void helper_knc_flush_page(CPUX86State *env, target_ulong vaddr)
{
    KncPmuState *s = &env->knc_pmu;

    if (s->core) {
        knc_pmu_forget_pages(s);
        knc_mem_flush_page(s->core, s->thread, vaddr);
    }
}
