/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: the local APIC as the chip has it
 *
 * The APIC is QEMU's.  What differs are the fields of three registers: the ID
 * has bits 31:23, the logical ID and the destination of an interrupt command
 * 31:16.  This region lies in front of QEMU's, and passes all else on.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/bitops.h"
#include "cpu.h"
#include "exec/memop.h"
#include "hw/core/cpu.h"
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

/* In front of QEMU's, whose priority is 0x1000 */
#define PRIORITY            0x2000

typedef struct KncLapic {
    uint32_t ldr, icr, icr2;
} KncLapic;

static MemoryRegion region;
static MemoryRegion *plain; /* QEMU's; it knows whose access it is */
static KncLapic lapics[IDS];
static uint32_t boot_id;

/* Of the thread that makes the access; NULL if the monitor does */
static KncLapic *lapic_self(void)
{
    return current_cpu ? &lapics[X86_CPU(current_cpu)->apic_id] : NULL;
}

static uint64_t lapic_pass_read(hwaddr addr, unsigned size)
{
    uint64_t val = 0;

    memory_region_dispatch_read(plain, addr, &val, size_memop(size),
                                MEMTXATTRS_UNSPECIFIED);
    return val;
}

static void lapic_pass_write(hwaddr addr, uint64_t val, unsigned size)
{
    memory_region_dispatch_write(plain, addr, val, size_memop(size),
                                 MEMTXATTRS_UNSPECIFIED);
}

/* Send the command to one APIC, or as the shorthand in it says. */
static void lapic_send(uint32_t dest, uint32_t command)
{
    lapic_pass_write(APIC_ICR2, dest << QEMU_ID_SHIFT, 4);
    lapic_pass_write(APIC_ICR, command & ~ICR_LOGICAL, 4);
}

/* To those whose logical ID has a bit of @dest, or to the first of them */
static void lapic_send_logical(uint32_t dest, uint32_t command)
{
    CPUState *cs;

    CPU_FOREACH(cs) {
        uint32_t id = X86_CPU(cs)->apic_id;

        if (lapics[id].ldr & dest) {
            lapic_send(id, command);
            if ((command & ICR_MODE) == ICR_LOWEST) {
                return;
            }
        }
    }
}

static void lapic_command(KncLapic *s, uint32_t command)
{
    uint32_t dest = s->icr2 >> KNC_DEST_SHIFT;

    s->icr = command;
    if (command & ICR_SHORTHAND) {
        lapic_send(0, command);
    } else if (command & ICR_LOGICAL) {
        lapic_send_logical(dest, command);
    } else if (dest < 0xff || dest == KNC_DEST_ALL) {
        lapic_send(dest & 0xff, command);
    }
}

static uint64_t lapic_read(void *opaque, hwaddr addr, unsigned size)
{
    KncLapic *s = lapic_self();

    if (!s) {
        return -1;
    }
    switch (addr) {
    case APIC_ID:
        return lapic_pass_read(addr, size) >> QEMU_ID_SHIFT << KNC_ID_SHIFT;
    case APIC_LDR:
        return s->ldr << KNC_DEST_SHIFT;
    case APIC_ICR:
        return s->icr;
    case APIC_ICR2:
        return s->icr2;
    default:
        return lapic_pass_read(addr, size);
    }
}

static void lapic_write(void *opaque, hwaddr addr, uint64_t val, unsigned size)
{
    KncLapic *s = lapic_self();

    if (!s) {
        return;
    }
    switch (addr) {
    case APIC_ID: /* is the place of the thread on the chip */
        break;
    case APIC_LDR:
        s->ldr = val >> KNC_DEST_SHIFT;
        break;
    case APIC_ICR:
        lapic_command(s, val);
        break;
    case APIC_ICR2:
        s->icr2 = val & MAKE_64BIT_MASK(KNC_DEST_SHIFT, 16);
        break;
    default:
        lapic_pass_write(addr, val, size);
        break;
    }
}

static const MemoryRegionOps lapic_ops = {
    .read = lapic_read,
    .write = lapic_write,
    .impl.min_access_size = 4,
    .impl.max_access_size = 4,
    .valid.min_access_size = 4,
    .valid.max_access_size = 4,
    .endianness = DEVICE_LITTLE_ENDIAN,
};

/* Of the system, or by INIT.  QEMU would have its first CPU boot. */
static void lapic_reset(APICCommonState *apic)
{
    bool waits = apic->cpu->apic_id != boot_id;

    memset(&lapics[apic->cpu->apic_id], 0, sizeof(lapics[0]));
    apic->apicbase = (apic->apicbase & ~MSR_IA32_APICBASE_BSP) |
                     (waits ? 0 : MSR_IA32_APICBASE_BSP);
    apic->wait_for_sipi = waits;
    CPU(apic->cpu)->halted = waits;
}

/* The CPUs and their APICs are there. */
void knc_lapic_init(MemoryRegion *system, uint32_t id)
{
    APICCommonState *apic = APIC_COMMON(X86_CPU(first_cpu)->apic_state);

    boot_id = id;
    plain = &apic->io_memory;
    APIC_COMMON_GET_CLASS(apic)->reset = lapic_reset;
    memory_region_init_io(&region, NULL, &lapic_ops, NULL, "knc-lapic",
                          TARGET_PAGE_SIZE);
    memory_region_add_subregion_overlap(system, APIC_DEFAULT_ADDRESS, &region,
                                        PRIORITY);
}
