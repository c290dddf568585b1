/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: the SBOX, the card's system interface, and the DBOX
 *
 * Those of its registers that the card's kernel uses without its power
 * management and, for a mainline kernel, those that were read on a card.
 * Others read as 0, ignore what is written, and are shown by "-d unimp".
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/timer.h"
#include "cpu.h"
#include "hw/i386/apic-msidef.h"
#include "hw/i386/apic_internal.h"
#include "hw/pci/msi.h"
#include "hw/i386/knc-board.h"
#include "target/i386/knc/trace.h"

#define ETC_LOW             0x1074  /* elapsed time counter */
#define ETC_HIGH            0x1078
#define THERMAL_STATUS      0x107c
#define   ETC_FREEZE        (1u << 31)
#define CLOCK_RATIO         0x402c
#define   RATIO_FEEDBACK(n) ((n) << 1)
#define   RATIO_HALF        (2 << 9)
#define   RATIO_GOAL        16
#define CORE_FREQUENCY      0x4100
#define   FREQUENCY_BOOTED  0x80010000u
#define CORE_VOLTAGE        0x4104
#define IOAPIC_ID           KNC_SBOX_IOAPIC
#define IOAPIC_VERSION      (KNC_SBOX_IOAPIC + 0x4)
#define IOAPIC_ENTRY0       (KNC_SBOX_IOAPIC + 0x40)
#define   IOAPIC_ENTRIES    26
#define   ENTRY_MASKED      (1u << 16)
#define ICR0                0xa9d0
#define   ICRS              8
#define   ICR_VECTOR        0xffu
#define   ICR_SEND          (1u << 13)
#define   ICR_MASKED        (1u << 16)
#define SCRATCH(n)          (0xab20 + 4 * (n))
#define DOORBELL1           0xcc94
#define   DOORBELL_REQUEST  (1u << 31)

#define DBOX_POST           0x242c
#define   POST(a, b)        ((a) | (b) << 8)

/*
 * The core's clock in MHz is 4000 / ICC * FEEDBACK / 2, with ICC, 20, in bits
 * 29:25 of scratch register 4.  The emulated clock has a cycle a nanosecond.
 */
#define CLOCK_FEEDBACK      10
#define RATIO               (RATIO_HALF | RATIO_FEEDBACK(CLOCK_FEEDBACK))

/* Of scratch register 4, bits 3:0 are the threads of a core. */
static const struct {
    uint32_t addr, value;
} on_card[] = {
    { CORE_FREQUENCY, FREQUENCY_BOOTED | RATIO },
    { CORE_VOLTAGE, 0xab }, /* 250 mV, and 5 mV for each step above 1 */
    { SCRATCH(0), 0x02e80000 }, { SCRATCH(6), 0x02000403 },
    { SCRATCH(7), 0x00000373 }, { SCRATCH(8), 0x00008086 },
    { SCRATCH(9), 0x3664fa13 }, { SCRATCH(11), 0x000000ff },
    { SCRATCH(12), 0x66400218 }, { SCRATCH(13), 0x0000b120 },
};

/* States of Linux's system that end the card's operation, and a crash */
#define STATE_HALT          1
#define STATE_RESTART       3
#define STATE_CRASH         0xdead

OBJECT_DECLARE_SIMPLE_TYPE(KncSbox, KNC_SBOX)

struct KncSbox {
    SysBusDevice parent_obj;

    MemoryRegion io, dbox;
    uint32_t download; /* from the bootstrap; 0 without a mainline kernel */
    uint32_t size;     /* from the loader */
    uint32_t post;
    uint32_t thermal;
    uint64_t frozen;        /* the elapsed time, while it is frozen */
    uint64_t behind;        /* time in which it was */
    uint32_t ioapic[2 * IOAPIC_ENTRIES];
    uint32_t icr[2 * ICRS]; /* low and high half */
};

/* It counts 2^5 each 64 ns: its five lowest bits are 0. */
static uint64_t sbox_elapsed(KncSbox *s)
{
    uint64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

    if (s->thermal & ETC_FREEZE) {
        now = s->frozen;
    }
    return (now - s->behind) / 64 << 5;
}

static void sbox_freeze(KncSbox *s, uint32_t val)
{
    uint64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

    val &= ETC_FREEZE;
    if (val && !s->thermal) {
        s->frozen = now;
    } else if (!val && s->thermal) {
        s->behind += now - s->frozen;
    }
    s->thermal = val;
}

/* The message of interrupt @n; the host's is a pulse. */
static void sbox_send(void *opaque, int n, int level)
{
    uint32_t *icr = &KNC_SBOX(opaque)->icr[2 * n];
    MSIMessage msg = { icr[1] << MSI_ADDR_DEST_ID_SHIFT, icr[0] & ICR_VECTOR };

    if (level && !(icr[0] & ICR_MASKED)) {
        APIC_COMMON_GET_CLASS(X86_CPU(first_cpu)->apic_state)->send_msi(&msg);
    }
}

/* ICR_SEND is an order: it reads as 0. */
static void sbox_write_icr(KncSbox *s, int n, uint32_t val)
{
    s->icr[n] = val & (n % 2 ? 0xff : ICR_VECTOR | ICR_MASKED);
    if (!(n % 2) && val & ICR_SEND) {
        sbox_send(s, n / 2, 1);
    }
}

/* The host learns that the card's kernel has ended. */
static void sbox_doorbell(uint32_t val)
{
    uint32_t state = val & ~DOORBELL_REQUEST;

    if (!(val & DOORBELL_REQUEST)) {
        return;
    }
    if (state >= STATE_HALT && state <= STATE_RESTART) {
        qemu_system_shutdown_request(SHUTDOWN_CAUSE_GUEST_SHUTDOWN);
    } else if (state == STATE_CRASH) {
        qemu_system_guest_panicked(NULL);
    } else {
        qemu_log_mask(LOG_UNIMP, "knc-sbox: doorbell with 0x%x\n", state);
    }
}

/* Which of the @count words from @first on @addr is, or -1 */
static int sbox_index(hwaddr addr, hwaddr first, int count)
{
    return addr >= first && addr < first + 4 * count ? (addr - first) / 4 : -1;
}

static uint64_t sbox_read(void *opaque, hwaddr addr, unsigned size)
{
    KncSbox *s = opaque;
    int entry = sbox_index(addr, IOAPIC_ENTRY0, 2 * IOAPIC_ENTRIES);
    int icr = sbox_index(addr, ICR0, 2 * ICRS);

    if (entry >= 0) {
        return s->ioapic[entry];
    }
    if (icr >= 0) {
        return s->icr[icr];
    }
    for (int i = 0; s->download && i < ARRAY_SIZE(on_card); i++) {
        if (on_card[i].addr == addr) {
            return on_card[i].value;
        }
    }
    switch (addr) {
    case ETC_LOW:
        return (uint32_t)sbox_elapsed(s);
    case ETC_HIGH:
        return sbox_elapsed(s) >> 32;
    case THERMAL_STATUS:
        return s->thermal;
    case CLOCK_RATIO:
        return RATIO << RATIO_GOAL | RATIO;
    case SCRATCH(2):
        return s->download;
    case SCRATCH(4):
        return 0x2800e6cf;
    case SCRATCH(5):
        return s->size;
    case IOAPIC_ID:
    case DOORBELL1:
        return 0;
    case IOAPIC_VERSION:
        return (IOAPIC_ENTRIES - 1) << 16;
    default:
        qemu_log_mask(LOG_UNIMP, "knc-sbox: read of 0x%04" HWADDR_PRIx "\n",
                      addr);
        return 0;
    }
}

static void sbox_write(void *opaque, hwaddr addr, uint64_t val, unsigned size)
{
    KncSbox *s = opaque;
    int entry = sbox_index(addr, IOAPIC_ENTRY0, 2 * IOAPIC_ENTRIES);
    int icr = sbox_index(addr, ICR0, 2 * ICRS);

    if (entry >= 0) {
        /* The destination is in bits 7:0 of the high half. */
        s->ioapic[entry] = val & (entry % 2 ? 0xff : 0x1afff);
    } else if (icr >= 0) {
        sbox_write_icr(s, icr, val);
    } else if (addr == THERMAL_STATUS) {
        sbox_freeze(s, val);
    } else if (addr == DOORBELL1) {
        sbox_doorbell(val);
    } else {
        qemu_log_mask(LOG_UNIMP, "knc-sbox: write of 0x%08" PRIx64
                      " to 0x%04" HWADDR_PRIx "\n", val, addr);
    }
}

KNC_WORD_OPS(sbox);

static uint64_t dbox_read(void *opaque, hwaddr addr, unsigned size)
{
    if (addr == DBOX_POST) {
        return KNC_SBOX(opaque)->post;
    }
    qemu_log_mask(LOG_UNIMP, "knc-dbox: read of 0x%04" HWADDR_PRIx "\n", addr);
    return 0;
}

/*
 * How far the boot is: two characters, which the host reads.  Mainline kernels
 * report their end in no other way.
 */
static void dbox_write(void *opaque, hwaddr addr, uint64_t val, unsigned size)
{
    if (addr != DBOX_POST) {
        qemu_log_mask(LOG_UNIMP, "knc-dbox: write of 0x%08" PRIx64
                      " to 0x%04" HWADDR_PRIx "\n", val, addr);
        return;
    }
    KNC_SBOX(opaque)->post = val;
    trace_knc_board_post(val & 0xff, val >> 8 & 0xff);
    if (val == POST('K', 'H')) {
        qemu_system_shutdown_request(SHUTDOWN_CAUSE_GUEST_SHUTDOWN);
    } else if (val == POST('K', 'P')) {
        qemu_system_guest_panicked(NULL);
    }
}

KNC_WORD_OPS(dbox);

static void sbox_reset(Object *obj, ResetType type)
{
    KncSbox *s = KNC_SBOX(obj);

    s->post = POST('F', 'F');
    s->thermal = 0;
    s->behind = 0;
    memset(s->icr, 0, sizeof(s->icr));
    for (int n = 0; n < 2 * IOAPIC_ENTRIES; n++) {
        s->ioapic[n] = n % 2 ? 0 : ENTRY_MASKED;
    }
}

static void sbox_realize(DeviceState *dev, Error **errp)
{
    KncSbox *s = KNC_SBOX(dev);

    memory_region_init_io(&s->io, OBJECT(dev), &sbox_ops, s, TYPE_KNC_SBOX,
                          KNC_SBOX_SIZE);
    sysbus_init_mmio(SYS_BUS_DEVICE(dev), &s->io);
    memory_region_init_io(&s->dbox, OBJECT(dev), &dbox_ops, s, "knc-dbox",
                          KNC_DBOX_SIZE);
    sysbus_init_mmio(SYS_BUS_DEVICE(dev), &s->dbox);
    qdev_init_gpio_in(dev, sbox_send, ICRS);
}

KNC_DEVICE(KncSbox, sbox, KNC_SBOX, sbox_reset,
           DEFINE_PROP_UINT32("download", KncSbox, download, 0),
           DEFINE_PROP_UINT32("size", KncSbox, size, 0))
