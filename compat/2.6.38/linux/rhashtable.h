/* SPDX-License-Identifier: GPL-2.0-only */
/* A hash table of a fixed size, with as much of the interface as the driver uses */
#ifndef _KNC_COMPAT_LINUX_RHASHTABLE_H
#define _KNC_COMPAT_LINUX_RHASHTABLE_H

#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#define COMPAT_RHASH_BITS	13

/* Of newer kernels. That kernel's hash_ptr() has few buckets for aligned pointers. */
#define COMPAT_GOLDEN_RATIO_64	0x61c8864680b583ebULL

struct rhash_head {
	struct hlist_node node;
};

struct rhashtable_params {
	size_t head_offset;
	size_t key_offset;
	size_t key_len;
	bool automatic_shrinking;
};

struct rhashtable {
	struct hlist_head *tbl;
	const struct rhashtable_params *params;
	spinlock_t lock;		/* of those that insert and remove; readers need none */
	atomic_t nelems;
};

static inline int rhashtable_init(struct rhashtable *ht,
				  const struct rhashtable_params *params)
{
	ht->tbl = kzalloc(sizeof(*ht->tbl) << COMPAT_RHASH_BITS, GFP_KERNEL);
	ht->params = params;
	spin_lock_init(&ht->lock);

	return ht->tbl ? 0 : -ENOMEM;
}

/* Keys are pointers. */
static inline u64 compat_rhash_key(const void *key)
{
	return *(const u64 *)key;
}

static inline struct hlist_head *compat_rhash_bucket(struct rhashtable *ht, const void *key)
{
	return ht->tbl + (compat_rhash_key(key) * COMPAT_GOLDEN_RATIO_64 >>
			  (64 - COMPAT_RHASH_BITS));
}

static inline void *compat_rhash_find(struct rhashtable *ht, const void *key)
{
	struct hlist_node *node;

	for (node = rcu_dereference_raw(compat_rhash_bucket(ht, key)->first); node;
	     node = rcu_dereference_raw(node->next)) {
		void *object = (void *)node - ht->params->head_offset;

		if (compat_rhash_key(object + ht->params->key_offset) == compat_rhash_key(key))
			return object;
	}

	return NULL;
}

/* As that of newer kernels, it needs no caller that holds a lock. */
static inline void *compat_rhash_lookup(struct rhashtable *ht, const void *key)
{
	void *object;

	rcu_read_lock_sched();
	object = compat_rhash_find(ht, key);
	rcu_read_unlock_sched();

	return object;
}

#define rhashtable_lookup_fast(ht, key, params)	compat_rhash_lookup(ht, key)

static inline int compat_rhash_insert(struct rhashtable *ht, struct rhash_head *head)
{
	const void *key = (void *)head - ht->params->head_offset + ht->params->key_offset;
	unsigned long flags;
	int ret = -EEXIST;

	spin_lock_irqsave(&ht->lock, flags);
	if (!compat_rhash_find(ht, key)) {
		hlist_add_head_rcu(&head->node, compat_rhash_bucket(ht, key));
		atomic_inc(&ht->nelems);
		ret = 0;
	}
	spin_unlock_irqrestore(&ht->lock, flags);

	return ret;
}

#define rhashtable_lookup_insert_fast(ht, head, params)	compat_rhash_insert(ht, head)

static inline int compat_rhash_remove(struct rhashtable *ht, struct rhash_head *head)
{
	unsigned long flags;

	spin_lock_irqsave(&ht->lock, flags);
	hlist_del_rcu(&head->node);
	atomic_dec(&ht->nelems);
	spin_unlock_irqrestore(&ht->lock, flags);

	return 0;
}

#define rhashtable_remove_fast(ht, head, params)	compat_rhash_remove(ht, head)

static inline void rhashtable_free_and_destroy(struct rhashtable *ht,
					       void (*free)(void *object, void *arg),
					       void *arg)
{
	struct hlist_node *node, *next;
	unsigned int i;

	for (i = 0; i < 1U << COMPAT_RHASH_BITS; i++) {
		for (node = ht->tbl[i].first; node; node = next) {
			next = node->next;
			free((void *)node - ht->params->head_offset, arg);
		}
	}
	kfree(ht->tbl);
}

#endif /* _KNC_COMPAT_LINUX_RHASHTABLE_H */
