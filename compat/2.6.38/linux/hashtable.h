/* SPDX-License-Identifier: GPL-2.0-only */
/* Hash tables of a fixed size; lists that know their head's type came with 3.9. */
#ifndef _KNC_COMPAT_LINUX_HASHTABLE_H
#define _KNC_COMPAT_LINUX_HASHTABLE_H

#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/rculist.h>

#define DEFINE_HASHTABLE(name, bits)	struct hlist_head name[1 << (bits)]

#define compat_hash_slot(table, key)					\
	(&(table)[hash_long(key, ilog2(ARRAY_SIZE(table)))])

#define hash_add_rcu(table, node, key)					\
	hlist_add_head_rcu(node, compat_hash_slot(table, key))
#define hash_del_rcu(node)		hlist_del_init_rcu(node)

#define compat_hash_entry(node, type, member) ({			\
	struct hlist_node *compat_node = rcu_dereference_raw(node);	\
	compat_node ? hlist_entry(compat_node, type, member) : NULL;	\
})

/* What must be held is not checked. */
#define hash_for_each_possible_rcu(table, pos, member, key, ...)	\
	for (pos = compat_hash_entry(compat_hash_slot(table, key)->first, \
				     typeof(*(pos)), member);		\
	     pos;							\
	     pos = compat_hash_entry((pos)->member.next, typeof(*(pos)), member))

#define hash_for_each_possible_safe(table, pos, next_node, member, key)	\
	for (pos = compat_hash_entry(compat_hash_slot(table, key)->first, \
				     typeof(*(pos)), member);		\
	     pos && ({ next_node = (pos)->member.next; 1; });		\
	     pos = compat_hash_entry(next_node, typeof(*(pos)), member))

#define hash_for_each_safe(table, bucket, next_node, pos, member)	\
	for ((bucket) = 0; (bucket) < ARRAY_SIZE(table); (bucket)++)	\
		for (pos = compat_hash_entry((table)[bucket].first,	\
					     typeof(*(pos)), member);	\
		     pos && ({ next_node = (pos)->member.next; 1; });	\
		     pos = compat_hash_entry(next_node, typeof(*(pos)), member))

#endif /* _KNC_COMPAT_LINUX_HASHTABLE_H */
