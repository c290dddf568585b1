/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: what the parts of the board share
 */
#ifndef HW_I386_KNC_BOARD_H
#define HW_I386_KNC_BOARD_H

#include "target/i386/knc/headers.h"
#include "migration/vmstate.h"
#if KNC_QEMU(10, 0)
#include "system/rtc.h"
#include "system/system.h"
#define KNC_RESET           ResetType
#else
#include "sysemu/rtc.h"
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
/* In the host's memory: what a host gives a card is far from its start. */
#define KNC_CONSOLE_BASE    0x8001000000ull
/* No card has this: ports of QEMU's ISA devices */
#define KNC_ISA_BASE        0x8002000000ull

/* The SBOX's interrupt for input on the console */
#define KNC_SBOX_HVC        2

/*
 * The registers of the SBOX, and those of the DBOX: an input for each interrupt
 * that the host sends
 */
#define TYPE_KNC_SBOX       "knc-sbox"
/* The local APIC's registers in their places */
#define TYPE_KNC_LAPIC      "knc-lapic"
/* The host's half of the virtual console, and of a mainline kernel's */
#define TYPE_KNC_CONSOLE    "knc-console"
#define TYPE_KNC_RING       "knc-ring"

/*
 * knc-boot.c: the kernel, whose entry it returns, the tables that it finds, and
 * what a mainline one reads in the SBOX; the first CPU's state
 */
hwaddr knc_boot_load(MachineState *machine, DeviceState *sbox,
                     uint64_t below_4g, bool mainline);
void knc_boot_cpu(CPUX86State *env, hwaddr entry, bool mainline);

/* Registers of 32 bits: @name##_read() and @name##_write() */
#define KNC_WORD_OPS(name) \
static const MemoryRegionOps name##_ops = { \
    .read = name##_read, \
    .write = name##_write, \
    .impl.min_access_size = 4, \
    .impl.max_access_size = 4, \
    .valid.min_access_size = 4, \
    .valid.max_access_size = 4, \
    .endianness = DEVICE_LITTLE_ENDIAN, \
}

/*
 * A device of the board: @Name is its structure, and the functions and tables
 * that begin with @stem are its own.  None of them can migrate.
 */
#define KNC_DEVICE(Name, stem, NAME, enter_reset, ...) \
static const struct VMStateDescription stem##_vmstate = { \
    .name = TYPE_##NAME, .unmigratable = 1, \
}; \
static KNC_PROPERTY stem##_properties[] = { __VA_ARGS__, KNC_PROPERTIES_END }; \
static void stem##_class_init(ObjectClass *oc, KNC_CLASS_DATA *data) \
{ \
    DEVICE_CLASS(oc)->realize = stem##_realize; \
    DEVICE_CLASS(oc)->vmsd = &stem##_vmstate; \
    RESETTABLE_CLASS(oc)->phases.enter = enter_reset; \
    device_class_set_props(DEVICE_CLASS(oc), stem##_properties); \
} \
static const TypeInfo stem##_info[] = { { \
    .name = TYPE_##NAME, \
    .parent = TYPE_SYS_BUS_DEVICE, \
    .instance_size = sizeof(Name), \
    .class_init = stem##_class_init, \
} }; \
DEFINE_TYPES(stem##_info)

#endif /* HW_I386_KNC_BOARD_H */
