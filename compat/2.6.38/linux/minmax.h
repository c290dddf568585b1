/* SPDX-License-Identifier: GPL-2.0-only */
/* That kernel has them there. */
#include <linux/kernel.h>
