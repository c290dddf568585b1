/* SPDX-License-Identifier: GPL-2.0-only */
/* That kernel has it there. */
#include <linux/sched.h>
