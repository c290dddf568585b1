/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: what the parts of the board share
 */
#ifndef HW_I386_KNC_BOARD_H
#define HW_I386_KNC_BOARD_H

#include "target/i386/knc/compat.h"
#include "exec/hwaddr.h"
#include "exec/address-spaces.h"
#include "exec/memory.h"
#if KNC_QEMU(10, 0)
#include "system/reset.h"
#include "system/rtc.h"
#include "system/runstate.h"
#include "system/system.h"
#define KNC_RESET           ResetType
#else
#include "sysemu/reset.h"
#include "sysemu/rtc.h"
#include "sysemu/runstate.h"
#include "sysemu/sysemu.h"
#define KNC_RESET           ShutdownCause
#endif

/* Physical addresses; Documentation/board.rst has their sources. */
#define KNC_RING_BASE       0x10000000
#define KNC_RING_SIZE       0x100000
#define KNC_DBOX_BASE       0x8007c0000ull
#define KNC_DBOX_SIZE       0x10000
#define KNC_SBOX_BASE       0x8007d0000ull
#define KNC_SBOX_SIZE       0x10000
#define KNC_SBOX_IOAPIC     0xa800
#define KNC_HOST_BASE       0x8000000000ull
/* No card has this: ports of QEMU's ISA devices */
#define KNC_ISA_BASE        0x8002000000ull

/* The SBOX's interrupt for input on the console */
#define KNC_SBOX_HVC        2

/*
 * knc-sbox.c: the registers, those of the DBOX too; for a mainline kernel those
 * that were read on a card, and where it is loaded; interrupt @n as the host
 * sends it
 */
void knc_sbox_init(MemoryRegion *system);
void knc_sbox_mainline(uint32_t download, uint32_t size);
void knc_sbox_interrupt(int n);

/* knc-lapic.c: the local APIC's registers in their places; an interrupt */
void knc_lapic_init(MemoryRegion *system, uint32_t boot_id);
void knc_lapic_deliver(uint8_t dest, uint8_t vector);

/* knc-console.c: the host's half of the virtual console */
void knc_console_init(MemoryRegion *system, Chardev *chr);
hwaddr knc_console_header(void);
void knc_console_reset(void);

/* knc-ring.c: the same for a mainline kernel */
void knc_ring_init(MemoryRegion *system, Chardev *chr);
void knc_ring_reset(void);

/*
 * knc-boot.c: the kernel, whose entry it returns, and the tables that it finds;
 * the first CPU's state
 */
hwaddr knc_boot_load(MachineState *machine, uint64_t below_4g, bool mainline);
void knc_boot_cpu(CPUX86State *env, hwaddr entry, bool mainline);

#endif /* HW_I386_KNC_BOARD_H */
