/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: the caches of the cores
 *
 * Documentation/emulator.rst says what is modelled.  There is no directory: a
 * core searches the other cores' caches.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "caches.h"

/* A line is its physical address, with these in the low bits. */
#define LINE_VALID      1ull
#define LINE_DIRTY      2ull
#define LINE_SHARED     4ull    /* another core may have it as well */
#define LINE_THREAD     8ull    /* the thread known to have used it last */
#define LINE_THREADS    (LINE_THREAD * (KNC_CORE_THREADS - 1))
#define LINE_STATE      (LINE_VALID | LINE_DIRTY | LINE_SHARED | \
                         LINE_THREADS | ENTRY_USED)

/* The hardware prefetcher: its pages, and how far it is ahead */
#define STREAM_BITS     12
#define STREAM_LINES    (1 << (STREAM_BITS - KNC_LINE_BITS))
#define AHEAD           4

/* The core that modified a line last, as far as there is room */
static struct {
    uint64_t line;
    const KncCore *core;
} writers[4096];

static KncCore *cores;

KncCore *knc_core_new(void)
{
    KncCore *core = g_new0(KncCore, 1);

    core->next = cores;
    cores = core;
    return core;
}

void knc_core_reset(KncCore *core)
{
    size_t start = offsetof(KncCore, start_reset_fields);

    memset((char *)core + start, 0, sizeof(*core) - start);
}

static inline uint64_t *set_of(uint64_t (*cache)[KNC_CACHE_WAYS], int sets,
                               uint64_t line)
{
    return cache[(line >> KNC_LINE_BITS) & (sets - 1)];
}

#define l1_of(core, kind) \
    ((kind) == KNC_KIND_CODE ? (core)->l1i : (core)->l1d)

/* Find a line without using it. */
static inline uint64_t *peek_line(uint64_t (*cache)[KNC_CACHE_WAYS], int sets,
                                  uint64_t line)
{
    return find(set_of(cache, sets, line), KNC_CACHE_WAYS, line | LINE_VALID,
                LINE_STATE & ~LINE_VALID);
}

static inline uint64_t *find_line(uint64_t (*cache)[KNC_CACHE_WAYS], int sets,
                                  uint64_t line)
{
    uint64_t *hit = peek_line(cache, sets, line);

    if (hit) {
        touch(set_of(cache, sets, line), KNC_CACHE_WAYS, hit);
    }
    return hit;
}

/* Into an L1 cache.  Returns the line that was replaced, or 0. */
static uint64_t insert_line(uint64_t (*cache)[KNC_CACHE_WAYS], uint64_t line)
{
    uint64_t *set = set_of(cache, KNC_L1_SETS, line);

    return replace(set, KNC_CACHE_WAYS, victim_of(set), line | LINE_VALID);
}

/* Returns the line with its state, or 0 if it was not in the cache. */
static uint64_t drop_line(uint64_t (*cache)[KNC_CACHE_WAYS], int sets,
                          uint64_t line)
{
    uint64_t *at = peek_line(cache, sets, line);
    uint64_t old = at ? *at : 0;

    if (at) {
        *at = 0;
    }
    return old;
}

/*
 * Another core wants a line, with @take exclusively.  A modified line is
 * written back to memory.  Returns true if this core had the line.
 */
static bool snooped(KncCore *core, uint64_t line, bool take)
{
    uint64_t *outer = peek_line(core->l2, KNC_L2_SETS, line);
    uint64_t *inner = peek_line(core->l1d, KNC_L1_SETS, line);
    uint64_t *counts;
    bool dirty;

    if (!outer) {
        return false;
    }
    dirty = (inner ? *inner | *outer : *outer) & LINE_DIRTY;
    counts = core->snooped[((inner ? *inner : *outer) & LINE_THREADS) /
                           LINE_THREAD];
    counts[dirty ? KNC_SNOOP_HITM : KNC_SNOOP_HIT]++;
    if (inner && (*inner & LINE_DIRTY)) {
        counts[KNC_SNOOP_WRITTEN_BACK]++;
    }
    if (take) {
        drop_line(core->l1d, KNC_L1_SETS, line);
        drop_line(core->l1i, KNC_L1_SETS, line);
        drop_line(core->l2, KNC_L2_SETS, line);
    } else {
        *outer = (*outer & ~LINE_DIRTY) | LINE_SHARED;
        if (inner) {
            *inner = (*inner & ~LINE_DIRTY) | LINE_SHARED;
        }
    }
    return true;
}

/*
 * Ask the other cores for a line: with @take all of them, else until one has
 * it.  Returns true if one had it.
 */
static bool snoop_others(KncCore *core, uint64_t line, bool take)
{
    bool found = false;

    for (KncCore *other = cores; other && (take || !found);
         other = other->next) {
        if (other != core) {
            found |= snooped(other, line, take);
        }
    }
    return found;
}

/* A line leaves the L2 cache, and so the L1 caches as well. */
static void l2_evicted(KncCore *core, uint64_t victim, KncPmuEvents *ev)
{
    uint64_t line = victim & ~LINE_STATE;
    uint64_t inner = drop_line(core->l1d, KNC_L1_SETS, line);

    drop_line(core->l1i, KNC_L1_SETS, line);
    if (inner & LINE_DIRTY) {
        ev->n[KNC_DATA_CACHE_LINES_WRITTEN_BACK]++;
    }
    if ((inner | victim) & LINE_DIRTY) {
        ev->n[KNC_L2_VICTIM_REQ_WITH_DATA]++;
    }
}

/*
 * Fetch a line into the L2, in place of the entry @at of its set.  After a
 * @write no other core has it.  Returns true if another one had it.
 */
static bool l2_fill(KncCore *core, uint64_t *line, bool write, uint64_t *at,
                    KncPmuEvents *ev)
{
    bool found = snoop_others(core, *line, write);
    uint64_t victim;

    *line |= found && !write ? LINE_SHARED : 0;
    victim = replace(set_of(core->l2, KNC_L2_SETS, *line), KNC_CACHE_WAYS, at,
                     *line | LINE_VALID);
    if (victim) {
        l2_evicted(core, victim, ev);
    }
    return found;
}

/* Where an L1 miss finds its line; before L2_MISSES: in which state */
typedef enum L2Result {
    L2_HIT_E,
    L2_HIT_M,
    L2_HIT_S,
    L2_MISSES,
    L2_FROM_CACHE = L2_MISSES,
    L2_FROM_MEMORY,
} L2Result;

/* An L1 miss.  *@line gets the state that the line has in the L1. */
static L2Result l2_access(KncCore *core, int thread, uint64_t *line, bool write,
                          KncPmuEvents *ev)
{
    uint64_t *hit = find_line(core->l2, KNC_L2_SETS, *line);
    uint64_t state = thread * LINE_THREAD;

    if (hit) {
        L2Result was = *hit & LINE_SHARED ? L2_HIT_S :
                       *hit & LINE_DIRTY ? L2_HIT_M : L2_HIT_E;

        if (write && was == L2_HIT_S) {
            snoop_others(core, *line, true);
            *hit &= ~LINE_SHARED;
        }
        *hit = (*hit & ~LINE_THREADS) | state;
        *line |= state | (*hit & LINE_SHARED);
        return was;
    }
    *line |= state;
    return l2_fill(core, line, write,
                   victim_of(set_of(core->l2, KNC_L2_SETS, *line)), ev) ?
           L2_FROM_CACHE : L2_FROM_MEMORY;
}

/* Put a line into the L1 data cache; a modified victim goes to the L2. */
static void l1d_insert(KncCore *core, uint64_t line, KncPmuEvents *ev)
{
    uint64_t victim = insert_line(core->l1d, line);

    if (victim & LINE_DIRTY) {
        uint64_t *outer = find_line(core->l2, KNC_L2_SETS,
                                    victim & ~LINE_STATE);

        ev->n[KNC_DATA_CACHE_LINES_WRITTEN_BACK]++;
        *outer |= LINE_DIRTY;
    }
}

/* Make a line of the L1 data cache exclusive to this core. */
static void l1d_take(KncCore *core, uint64_t *hit)
{
    uint64_t line = *hit & ~LINE_STATE;
    uint64_t *outer = peek_line(core->l2, KNC_L2_SETS, line);

    snoop_others(core, line, true);
    *hit &= ~LINE_SHARED;
    *outer &= ~LINE_SHARED;
}

/* An L1 miss; kinds are KNC_KIND_READ, KNC_KIND_WRITE and KNC_KIND_CODE. */
static void count_miss(L2Result where, int kind, KncPmuEvents *ev)
{
    static const KncPmuEvent event[][KNC_KINDS] = {
        [L2_HIT_E] = { KNC_L2_READ_HIT_E, KNC_L2_WRITE_HIT, KNC_L2_READ_HIT_E },
        [L2_HIT_M] = { KNC_L2_READ_HIT_M, KNC_L2_WRITE_HIT, KNC_L2_READ_HIT_M },
        [L2_HIT_S] = { KNC_L2_READ_HIT_S, KNC_L2_WRITE_HIT, KNC_L2_READ_HIT_S },
        [L2_FROM_CACHE] = {
            KNC_L2_DATA_READ_MISS_CACHE_FILL, KNC_L2_DATA_WRITE_MISS_CACHE_FILL,
            KNC_L2_CODE_READ_MISS_CACHE_FILL,
        },
        [L2_FROM_MEMORY] = {
            KNC_L2_DATA_READ_MISS_MEM_FILL, KNC_L2_DATA_WRITE_MISS_MEM_FILL,
            KNC_L2_CODE_READ_MISS_MEM_FILL,
        },
    };

    ev->n[event[where][kind]]++;
    if (where >= L2_MISSES && kind != KNC_KIND_WRITE) {
        ev->n[KNC_L2_READ_MISS]++;
    }
}

static bool in_l1(KncCore *core, uint64_t line)
{
    uint64_t address = line & ~LINE_STATE;

    return (line & LINE_VALID) &&
           (peek_line(core->l1d, KNC_L1_SETS, address) ||
            peek_line(core->l1i, KNC_L1_SETS, address));
}

/*
 * The hardware prefetches a line, for writing if that is what the stream does.
 * It takes the place of a line that no L1 cache has, so that accesses which the
 * L1 hits need no model: KncFilter.  The L2 does not see these, so all lines
 * that an L1 cache has count as used.
 */
static void hardware_prefetch(KncCore *core, int thread, uint64_t line,
                              bool write, KncPmuEvents *ev)
{
    uint64_t *set = set_of(core->l2, KNC_L2_SETS, line), *at = NULL;

    if (peek_line(core->l2, KNC_L2_SETS, line)) {
        ev->n[KNC_HWP_L2HIT]++;
        return;
    }
    for (int way = 0; !at && way < KNC_CACHE_WAYS; way++) {
        if (!(set[way] & ENTRY_USED)) {
            if (in_l1(core, set[way])) {
                touch(set, KNC_CACHE_WAYS, &set[way]);
            } else {
                at = &set[way];
            }
        }
    }
    for (int way = 0; !at && way < KNC_CACHE_WAYS; way++) {
        if (!in_l1(core, set[way])) {
            at = &set[way];
        }
    }
    if (!at) {
        return;
    }
    ev->n[KNC_HWP_L2MISS]++;
    line |= thread * LINE_THREAD;
    l2_fill(core, &line, write, at, ev);
}

/* The streams' table: that of @page first, a new one for @miss, or NULL */
static KncStream *find_stream(KncCore *core, uint64_t page, bool miss)
{
    KncStream *stream = core->stream, found = { .page = page, .last = -2 };
    int i = 0;

    if (stream[0].page == page) {
        return stream;
    }
    while (i < KNC_STREAMS - 1 && stream[i].page != page) {
        i++;
    }
    if (stream[i].page == page) {
        found = stream[i];
    } else if (!miss) {
        return NULL;
    }
    memmove(stream + 1, stream, i * sizeof(*stream));
    stream[0] = found;
    return stream;
}

/* An L1 miss, which the hardware prefetcher may follow */
static void follow(KncCore *core, int thread, uint64_t line, bool write,
                   bool miss, KncPmuEvents *ev)
{
    uint64_t page = line & MAKE_64BIT_MASK(STREAM_BITS, 64 - STREAM_BITS);
    int at = (line - page) >> KNC_LINE_BITS;
    KncStream *s;
    int step, ahead;
    bool goes_on;

    if (!core->prefetcher) {
        return;
    }
    s = find_stream(core, page | LINE_VALID, miss);
    if (!s) {
        return;
    }
    step = at - s->last;
    goes_on = s->direction && step == s->direction;
    if (!goes_on && !miss) {
        return;
    }
    s->direction = step == 1 || step == -1 ? step : 0;
    s->last = at;
    for (ahead = goes_on ? AHEAD : 1; s->direction && ahead <= AHEAD; ahead++) {
        int next = at + ahead * s->direction;

        if (next >= 0 && next < STREAM_LINES) {
            hardware_prefetch(core, thread,
                              page + ((uint64_t)next << KNC_LINE_BITS), write,
                              ev);
        }
    }
}

/* Does a store write the whole line, which is neither read nor prefetched? */
static bool is_stream(KncVectorAccess vector)
{
    return vector == KNC_VECTOR_STRONG || vector == KNC_VECTOR_WEAK;
}

/* Returns true on a hit. */
bool knc_l1_access(KncCore *core, int thread, uint64_t line, int kind,
                   KncVectorAccess vector, KncPmuEvents *ev)
{
    uint64_t *hit = find_line(l1_of(core, kind), KNC_L1_SETS, line);
    bool write = kind == KNC_KIND_WRITE;
    L2Result where;

    if (hit) {
        if (write) {
            if (*hit & LINE_SHARED) {
                l1d_take(core, hit);
            }
            *hit = (*hit & ~LINE_THREADS) | LINE_DIRTY | thread * LINE_THREAD;
        }
        return true;
    }
    where = l2_access(core, thread, &line, write, ev);
    if (where >= L2_MISSES && is_stream(vector)) {
        ev->n[vector == KNC_VECTOR_STRONG ?
              KNC_L2_STRONGLY_ORDERED_STREAMING_VSTORES_MISS :
              KNC_L2_WEAKLY_ORDERED_STREAMING_VSTORE_MISS]++;
    } else {
        count_miss(where, kind, ev);
    }
    if (kind == KNC_KIND_CODE) {
        insert_line(core->l1i, line);
    } else {
        l1d_insert(core, line | (write ? LINE_DIRTY : 0), ev);
    }
    if (!is_stream(vector)) {
        follow(core, thread, line & ~LINE_STATE, write, where >= L2_MISSES, ev);
    }
    return false;
}

/*
 * A hit that changes no line except in what is used; a write hits a line that
 * this thread has modified.
 */
bool knc_l1_quick(KncCore *core, int thread, uint64_t line, int kind,
                  KncQuick *quick)
{
    uint64_t *hit = peek_line(l1_of(core, kind), KNC_L1_SETS, line);

    if (!hit) {
        return false;
    }
    quick->own = (*hit & (LINE_DIRTY | LINE_SHARED | LINE_THREADS)) ==
                 (LINE_DIRTY | thread * LINE_THREAD);
    if (kind == KNC_KIND_WRITE && !quick->own) {
        return false;
    }
    quick->cleared = touch(set_of(l1_of(core, kind), KNC_L1_SETS, line),
                           KNC_CACHE_WAYS, hit);
    return true;
}

/*
 * Prefetch a line into the L2.  If the L2 does not have it, that counts as a
 * demand that was filled, and as @miss.  Returns the line with its state.
 */
static uint64_t prefetch(KncCore *core, int thread, uint64_t line, bool write,
                         KncPmuEvent miss, KncPmuEvents *ev)
{
    L2Result where = l2_access(core, thread, &line, write, ev);

    if (where >= L2_MISSES) {
        ev->n[miss]++;
        count_miss(where, write ? KNC_KIND_WRITE : KNC_KIND_READ, ev);
    }
    return line;
}

/*
 * Does the access take a line that another core has modified?  A write makes
 * this core the one, a read leaves none.
 */
bool knc_mem_contended(const KncCore *core, uint64_t paddr, bool write)
{
    uint64_t line = paddr >> KNC_LINE_BITS;
    int i = line % ARRAY_SIZE(writers);
    bool contended = writers[i].line == line && writers[i].core &&
                     writers[i].core != core;

    if (write || contended) {
        writers[i].line = line;
        writers[i].core = write ? core : NULL;
    }
    return contended;
}

/* vprefetch0, vprefetchnta, vprefetche0, vprefetchenta */
void knc_prefetch_l1(KncCore *core, int thread, uint64_t line, bool write,
                     KncPmuEvents *ev)
{
    uint64_t *hit = find_line(core->l1d, KNC_L1_SETS, line);

    if (hit) {
        if (write && (*hit & LINE_SHARED)) {
            l1d_take(core, hit);
        }
        return;
    }
    ev->n[KNC_L1_DATA_PF1_MISS]++;
    line = prefetch(core, thread, line, write, KNC_L2_DATA_PF1_MISS, ev);
    l1d_insert(core, line, ev);
}

/* vprefetch1, vprefetche1; the misses of vprefetch2, vprefetche2 are drops. */
void knc_prefetch_l2(KncCore *core, int thread, uint64_t line, int hint,
                     KncPmuEvents *ev)
{
    bool write = hint & KNC_HINT_WRITE;
    uint64_t *inner = peek_line(core->l1d, KNC_L1_SETS, line);

    if (write && inner && (*inner & LINE_SHARED)) {
        l1d_take(core, inner);
    }
    ev->n[KNC_L2_DATA_PF2]++;
    prefetch(core, thread, line, write,
             hint & KNC_HINT_DROP ? KNC_L2_DATA_PF2_DROP : KNC_L2_DATA_PF2_MISS,
             ev);
}

/* clevict0, clevict1 */
void knc_evict(KncCore *core, uint64_t line, int level, KncPmuEvents *ev)
{
    uint64_t old;

    if (level == KNC_HINT_L2) {
        old = drop_line(core->l2, KNC_L2_SETS, line);
        if (old) {
            l2_evicted(core, old, ev);
        }
        return;
    }
    old = drop_line(core->l1d, KNC_L1_SETS, line);
    if (old & LINE_DIRTY) {
        ev->n[KNC_DATA_CACHE_LINES_WRITTEN_BACK]++;
        *peek_line(core->l2, KNC_L2_SETS, line) |= LINE_DIRTY;
    }
}
