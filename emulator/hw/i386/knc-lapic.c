/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: the local APIC as the chip has it
 *
 * The APIC is QEMU's.  What differs are the fields of three registers: the ID
 * has bits 31:23, the logical ID and the destination of an interrupt command
 * 31:16.  This region lies in front of QEMU's, and passes all else on.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "cpu.h"
#include "exec/memop.h"
#include "hw/i386/apic_internal.h"
#include "hw/i386/knc-board.h"

#define APIC_ID             0x20
#define APIC_LDR            0xd0
#define APIC_ICR            0x300
#define   ICR_LOGICAL       (1u << 11)
#define   ICR_SHORTHAND     (3u << 18)
#define   ICR_MODE          (7u << 8)
#define   ICR_LOWEST        (1u << 8)
#define APIC_ICR2           0x310

#define IDS                 256
#define QEMU_ID_SHIFT       24
#define KNC_ID_SHIFT        23
#define KNC_DEST_SHIFT      16
#define KNC_DEST_ALL        0xffff

OBJECT_DECLARE_SIMPLE_TYPE(KncLapic, KNC_LAPIC)

typedef struct KncLapicRegs {
    uint32_t ldr, icr, icr2;
} KncLapicRegs;

struct KncLapic {
    SysBusDevice parent_obj;

    MemoryRegion io;
    MemoryRegion *plain; /* QEMU's; it knows whose access it is */
    KncLapicRegs regs[IDS];
    uint32_t boot_id;
};

/* Of the thread that makes the access; NULL if the monitor does */
static KncLapicRegs *lapic_self(KncLapic *s)
{
    return current_cpu ? &s->regs[X86_CPU(current_cpu)->apic_id] : NULL;
}

static uint64_t lapic_pass_read(KncLapic *s, hwaddr addr, unsigned size)
{
    uint64_t val = 0;

    memory_region_dispatch_read(s->plain, addr, &val, size_memop(size),
                                MEMTXATTRS_UNSPECIFIED);
    return val;
}

static void lapic_pass_write(KncLapic *s, hwaddr addr, uint64_t val,
                             unsigned size)
{
    memory_region_dispatch_write(s->plain, addr, val, size_memop(size),
                                 MEMTXATTRS_UNSPECIFIED);
}

/* Send the command to one APIC, or as the shorthand in it says. */
static void lapic_send(KncLapic *s, uint32_t dest, uint32_t command)
{
    lapic_pass_write(s, APIC_ICR2, dest << QEMU_ID_SHIFT, 4);
    lapic_pass_write(s, APIC_ICR, command & ~ICR_LOGICAL, 4);
}

/* To those whose logical ID has a bit of @dest, or to the first of them */
static void lapic_send_logical(KncLapic *s, uint32_t dest, uint32_t command)
{
    CPUState *cs;

    CPU_FOREACH(cs) {
        uint32_t id = X86_CPU(cs)->apic_id;

        if (s->regs[id].ldr & dest) {
            lapic_send(s, id, command);
            if ((command & ICR_MODE) == ICR_LOWEST) {
                return;
            }
        }
    }
}

static void lapic_command(KncLapic *s, KncLapicRegs *regs, uint32_t command)
{
    uint32_t dest = regs->icr2 >> KNC_DEST_SHIFT;

    regs->icr = command;
    if (command & ICR_SHORTHAND) {
        lapic_send(s, 0, command);
    } else if (command & ICR_LOGICAL) {
        lapic_send_logical(s, dest, command);
    } else if (dest < 0xff || dest == KNC_DEST_ALL) {
        lapic_send(s, dest & 0xff, command);
    }
}

static uint64_t lapic_read(void *opaque, hwaddr addr, unsigned size)
{
    KncLapicRegs *regs = lapic_self(opaque);

    if (!regs) {
        return -1;
    }
    switch (addr) {
    case APIC_ID:
        return lapic_pass_read(opaque, addr, size) >> QEMU_ID_SHIFT
                                                   << KNC_ID_SHIFT;
    case APIC_LDR:
        return regs->ldr << KNC_DEST_SHIFT;
    case APIC_ICR:
        return regs->icr;
    case APIC_ICR2:
        return regs->icr2;
    default:
        return lapic_pass_read(opaque, addr, size);
    }
}

static void lapic_write(void *opaque, hwaddr addr, uint64_t val, unsigned size)
{
    KncLapicRegs *regs = lapic_self(opaque);

    if (!regs) {
        return;
    }
    switch (addr) {
    case APIC_ID: /* is the place of the thread on the chip */
        break;
    case APIC_LDR:
        regs->ldr = val >> KNC_DEST_SHIFT;
        break;
    case APIC_ICR:
        lapic_command(opaque, regs, val);
        break;
    case APIC_ICR2:
        regs->icr2 = val & MAKE_64BIT_MASK(KNC_DEST_SHIFT, 16);
        break;
    default:
        lapic_pass_write(opaque, addr, val, size);
        break;
    }
}

KNC_WORD_OPS(lapic);

/* Of the system, or by INIT.  QEMU would have its first CPU boot. */
static void lapic_reset(APICCommonState *apic)
{
    KncLapic *s = KNC_LAPIC(object_resolve_path_component(qdev_get_machine(),
                                                          TYPE_KNC_LAPIC));
    bool waits = apic->cpu->apic_id != s->boot_id;

    memset(&s->regs[apic->cpu->apic_id], 0, sizeof(s->regs[0]));
    apic->apicbase = (apic->apicbase & ~MSR_IA32_APICBASE_BSP) |
                     (waits ? 0 : MSR_IA32_APICBASE_BSP);
    apic->wait_for_sipi = waits;
    CPU(apic->cpu)->halted = waits;
}

/* The CPUs and their APICs are there. */
static void lapic_realize(DeviceState *dev, Error **errp)
{
    KncLapic *s = KNC_LAPIC(dev);
    APICCommonState *apic = APIC_COMMON(X86_CPU(first_cpu)->apic_state);

    s->plain = &apic->io_memory;
    APIC_COMMON_GET_CLASS(apic)->reset = lapic_reset;
    memory_region_init_io(&s->io, OBJECT(dev), &lapic_ops, s, TYPE_KNC_LAPIC,
                          TARGET_PAGE_SIZE);
    sysbus_init_mmio(SYS_BUS_DEVICE(dev), &s->io);
}

KNC_DEVICE(KncLapic, lapic, KNC_LAPIC, NULL,
           DEFINE_PROP_UINT32("boot-id", KncLapic, boot_id, 0))
