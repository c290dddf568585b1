/* SPDX-License-Identifier: GPL-2.0-only */
/* Bits and fields as in newer kernels; tests/static tests each of them. */
#ifndef _KNC_COMPAT_BITS_H
#define _KNC_COMPAT_BITS_H

#include <linux/types.h>

#define COMPAT_BIT_ULL(nr)		(1ULL << (nr))
#define COMPAT_GENMASK_ULL(high, low)	((~0ULL << (low)) & (~0ULL >> (63 - (high))))

/* The lowest bit of the mask is the value of a 1 in the field. */
#define COMPAT_FIELD_GET(mask, value)	(((value) & (mask)) / ((mask) & -(mask)))

static inline s64 compat_sign_extend64(u64 value, int sign_bit)
{
	int shift = 63 - sign_bit;

	return (s64)(value << shift) >> shift;
}

#endif /* _KNC_COMPAT_BITS_H */
