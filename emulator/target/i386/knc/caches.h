/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: sets of entries, with pseudo-LRU replacement
 *
 * An entry that is used has its bit set.  When all of a set have it, those of
 * the others are cleared.  The first entry without it is replaced.
 */
#ifndef I386_KNC_CACHES_H
#define I386_KNC_CACHES_H

#include "memory.h"

/* Of a line's physical address, and of a page's virtual one */
#define ENTRY_USED      32ull

/* Find @key apart from the bits in @ignore. */
static inline uint64_t *find(uint64_t *set, int ways, uint64_t key,
                             uint64_t ignore)
{
    for (int way = 0; way < ways; way++) {
        if (((set[way] ^ key) & ~(ignore | ENTRY_USED)) == 0) {
            return &set[way];
        }
    }
    return NULL;
}

/* Returns true if other entries' bits were cleared. */
static inline bool touch(uint64_t *set, int ways, uint64_t *entry)
{
    int used = 0;

    if (*entry & ENTRY_USED) {
        return false;
    }
    *entry |= ENTRY_USED;
    for (int way = 0; way < ways; way++) {
        used += (set[way] & ENTRY_USED) != 0;
    }
    if (used < ways) {
        return false;
    }
    for (int way = 0; way < ways; way++) {
        set[way] &= ~ENTRY_USED;
    }
    *entry |= ENTRY_USED;
    return true;
}

/* The entry to replace */
static inline uint64_t *victim_of(uint64_t *set)
{
    while (*set & ENTRY_USED) {
        set++;
    }
    return set;
}

/* Returns what @entry has replaced. */
static inline uint64_t replace(uint64_t *set, int ways, uint64_t *at,
                               uint64_t entry)
{
    uint64_t old = *at;

    *at = entry;
    touch(set, ways, at);
    return old;
}

/* caches.c */
bool knc_l1_access(KncCore *core, int thread, uint64_t line, int kind,
                   KncVectorAccess vector, KncPmuEvents *ev);
bool knc_l1_quick(KncCore *core, int thread, uint64_t line, int kind,
                  KncQuick *quick);
void knc_prefetch_l1(KncCore *core, int thread, uint64_t line, bool write,
                     KncPmuEvents *ev);
void knc_prefetch_l2(KncCore *core, int thread, uint64_t line, int hint,
                     KncPmuEvents *ev);
void knc_evict(KncCore *core, uint64_t line, int level, KncPmuEvents *ev);

#endif /* I386_KNC_CACHES_H */
