/* SPDX-License-Identifier: GPL-2.0-only */
/* That kernel has min() and max() in this header. */
#include <linux/kernel.h>
