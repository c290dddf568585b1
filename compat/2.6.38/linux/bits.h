/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _KNC_COMPAT_LINUX_BITS_H
#define _KNC_COMPAT_LINUX_BITS_H

#include <linux/bitops.h>

#include "../bits.h"

#define BIT_ULL			COMPAT_BIT_ULL
#define GENMASK_ULL		COMPAT_GENMASK_ULL
#define sign_extend64		compat_sign_extend64

#endif /* _KNC_COMPAT_LINUX_BITS_H */
