/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: headers of the accelerator that newer versions split
 *
 * Not in compat.h, which cpu.h includes too early for these.
 */
#ifndef I386_KNC_EXEC_H
#define I386_KNC_EXEC_H

#include "compat.h"

#if KNC_QEMU(10, 1)
#include "accel/tcg/cpu-loop.h"
#include "accel/tcg/cpu-mmu-index.h"
#include "accel/tcg/getpc.h"
#include "accel/tcg/probe.h"
#include "exec/cputlb.h"
#include "exec/icount.h"
#include "exec/target_page.h"
#include "exec/tlb-flags.h"
#include "exec/translation-block.h"
#include "tcg/insn-start-words.h"
#include "accel/accel-cpu-ops.h"
#define KNC_INSN_START_WORDS    INSN_START_WORDS
#else
#include "exec/exec-all.h"
#if KNC_QEMU(10, 0)
#include "system/accel-ops.h"
#include "tcg/insn-start-words.h"
#else
#include "sysemu/accel-ops.h"
#endif
#define KNC_INSN_START_WORDS    TARGET_INSN_START_WORDS
#endif

#if KNC_QEMU(10, 0)
#include "accel/tcg/cpu-ops.h"
#include "system/reset.h"
#else
#include "hw/core/tcg-cpu-ops.h"
#include "sysemu/reset.h"
#endif

#endif /* I386_KNC_EXEC_H */
