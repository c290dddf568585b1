/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: headers of the accelerator that 10.0 has elsewhere
 *
 * Not in compat.h, which cpu.h includes too early for these.
 */
#ifndef I386_KNC_EXEC_H
#define I386_KNC_EXEC_H

#include "compat.h"

#include "exec/exec-all.h"
#if KNC_QEMU(10, 0)
#include "accel/tcg/cpu-ops.h"
#include "system/accel-ops.h"
#include "system/reset.h"
#include "tcg/insn-start-words.h"
#else
#include "hw/core/tcg-cpu-ops.h"
#include "sysemu/accel-ops.h"
#include "sysemu/reset.h"
#endif

#endif /* I386_KNC_EXEC_H */
