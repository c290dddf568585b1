/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: sets of entries, the most recently used first
 */
#ifndef I386_KNC_CACHES_H
#define I386_KNC_CACHES_H

#include "memory.h"

/* Put an entry first; the @way entries before it move back. */
static inline uint64_t *to_front(uint64_t *set, int way, uint64_t entry)
{
    memmove(set + 1, set, way * sizeof(*set));
    set[0] = entry;
    return set;
}

/* Find @key apart from the bits in @ignore, and put the entry first. */
static inline uint64_t *find(uint64_t *set, int ways, uint64_t key,
                             uint64_t ignore)
{
    if (likely(((set[0] ^ key) & ~ignore) == 0)) {
        return set;
    }
    for (int way = 1; way < ways; way++) {
        if (((set[way] ^ key) & ~ignore) == 0) {
            return to_front(set, way, set[way]);
        }
    }
    return NULL;
}

/* caches.c */
bool knc_l1d_access(KncCore *core, int thread, uint64_t line, bool write,
                    KncPmuEvents *ev);
bool knc_l1i_access(KncCore *core, int thread, uint64_t line,
                    KncPmuEvents *ev);
void knc_prefetch_l1(KncCore *core, int thread, uint64_t line, bool write,
                     KncPmuEvents *ev);
void knc_prefetch_l2(KncCore *core, int thread, uint64_t line, int hint,
                     KncPmuEvents *ev);
void knc_evict(KncCore *core, uint64_t line, int level, KncPmuEvents *ev);

#endif /* I386_KNC_CACHES_H */
