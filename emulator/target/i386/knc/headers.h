/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: headers of QEMU that it has moved
 *
 * Not in compat.h, which cpu.h includes too early for these
 */
#ifndef I386_KNC_HEADERS_H
#define I386_KNC_HEADERS_H

#include "compat.h"

#if KNC_QEMU(11, 0)
#include "accel/tcg/cpu-loop.h"
#include "hw/core/boards.h"
#include "hw/core/hotplug.h"
#include "hw/core/irq.h"
#include "hw/core/loader.h"
#include "hw/core/qdev-properties-system.h"
#include "hw/core/qdev-properties.h"
#include "hw/core/sysbus.h"
#else
#include "hw/boards.h"
#include "hw/hotplug.h"
#include "hw/irq.h"
#include "hw/loader.h"
#include "hw/qdev-properties-system.h"
#include "hw/qdev-properties.h"
#include "hw/sysbus.h"
#endif

#if KNC_QEMU(10, 2)
#include "accel/accel-cpu-ops.h"
#include "accel/tcg/cpu-ldst.h"
#include "accel/tcg/cpu-mmu-index.h"
#include "accel/tcg/getpc.h"
#include "accel/tcg/probe.h"
#include "accel/tcg/tcg-accel-ops.h"
#include "exec/cputlb.h"
#include "exec/target_page.h"
#include "exec/tlb-flags.h"
#include "exec/translation-block.h"
#include "system/address-spaces.h"
#else
#include "exec/address-spaces.h"
#include "exec/cpu_ldst.h"
#include "exec/exec-all.h"
#endif

#if KNC_QEMU(10, 0)
#include "accel/tcg/cpu-ops.h"
#include "system/reset.h"
#include "system/runstate.h"
#include "system/tcg.h"
#include "tcg/insn-start-words.h"
#include "tcg/startup.h"
#else
#include "hw/core/tcg-cpu-ops.h"
#include "sysemu/accel-ops.h"
#include "sysemu/reset.h"
#include "sysemu/runstate.h"
#include "sysemu/tcg.h"
#endif
#if KNC_QEMU(10, 0) && !KNC_QEMU(10, 2)
#include "system/accel-ops.h"
#endif

#endif /* I386_KNC_HEADERS_H */
