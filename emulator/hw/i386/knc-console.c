/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: the host's half of the virtual console
 *
 * Two rings, of which each side owns what it consumes (board.rst).  The real
 * host polls; here the write of an index is noticed.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "chardev/char-fe.h"
#include "cpu.h"
#include "hw/i386/knc-board.h"

/* In the host's memory: the header, and the output's ring behind it */
#define HOST_MAGIC          0x00
#define   HOST_READY        0xbad0
#define CARD_MAGIC          0x04
#define   CARD_READY        0xc0de
#define RING_VERSIONS       0x08    /* 15:0 of the host, 31:16 of the card */
#define   RING_VERSION      1
#define OUT_ADDR            0x10
#define OUT_WRITE           0x18
#define OUT_SIZE            0x1c
#define IN_HEADER           0x20    /* addresses on the card */
#define IN_ADDR             0x28
#define IN_READ             0x30
#define IN_SIZE             0x34
#define RING                0x1000
#define RING_SIZE           0x1000
#define WINDOW_SIZE         (RING + RING_SIZE)

/* In the card's header */
#define CARD_OUT_READ       0x0
#define CARD_IN_WRITE       0x4
#define CARD_HOST_STATUS    0x8
#define   HOST_OPEN         0xbad1

OBJECT_DECLARE_SIMPLE_TYPE(KncConsole, KNC_CONSOLE)

struct KncConsole {
    SysBusDevice parent_obj;

    MemoryRegion io;
    qemu_irq irq;
    CharBackend chr;
    uint8_t data[WINDOW_SIZE];
    uint32_t out_read;
    uint32_t in_write;
};

static uint32_t console_word(KncConsole *s, int offset)
{
    return ldl_le_p(s->data + offset);
}

static hwaddr console_card_addr(KncConsole *s, int offset)
{
    return ldq_le_p(s->data + offset);
}

/* The card chooses the addresses: they need not be those of memory. */
static void console_write_card(hwaddr addr, const void *from, hwaddr size)
{
    MemTxAttrs attrs = { .memory = true };

    address_space_write(&address_space_memory, addr, attrs, from, size);
}

static void console_tell(KncConsole *s, int field, uint32_t val)
{
    val = cpu_to_le32(val);
    console_write_card(console_card_addr(s, IN_HEADER) + field, &val, 4);
}

static bool console_ready(KncConsole *s)
{
    return console_word(s, CARD_MAGIC) == CARD_READY;
}

/* Take what the card has written. */
static void console_drain(KncConsole *s)
{
    uint32_t write = console_word(s, OUT_WRITE) % RING_SIZE;

    while (s->out_read != write) {
        uint32_t end = write > s->out_read ? write : RING_SIZE;

        qemu_chr_fe_write_all(&s->chr, s->data + RING + s->out_read,
                              end - s->out_read);
        s->out_read = end % RING_SIZE;
    }
    console_tell(s, CARD_OUT_READ, s->out_read);
}

static uint32_t console_in_size(KncConsole *s)
{
    uint32_t size = console_word(s, IN_SIZE);

    return is_power_of_2(size) ? size : 0;
}

/* One byte stays free, so that a full ring is not an empty one. */
static int console_can_receive(void *opaque)
{
    KncConsole *s = opaque;
    uint32_t size = console_in_size(s);

    if (!console_ready(s) || !size) {
        return 0;
    }
    return (console_word(s, IN_READ) - s->in_write - 1) & (size - 1);
}

static void console_receive(void *opaque, const uint8_t *buf, int count)
{
    KncConsole *s = opaque;
    uint32_t size = console_in_size(s);

    for (int i = 0; i < count; i++) {
        console_write_card(console_card_addr(s, IN_ADDR) + s->in_write, &buf[i],
                           1);
        s->in_write = (s->in_write + 1) & (size - 1);
    }
    console_tell(s, CARD_IN_WRITE, s->in_write);
    qemu_irq_pulse(s->irq);
}

static uint64_t console_read(void *opaque, hwaddr addr, unsigned size)
{
    return ldn_le_p(KNC_CONSOLE(opaque)->data + addr, size);
}

static void console_write(void *opaque, hwaddr addr, uint64_t val,
                          unsigned size)
{
    KncConsole *s = opaque;
    bool was_ready = console_ready(s);

    stn_le_p(s->data + addr, size, val);
    if (addr >= RING || !console_ready(s)) {
        return;
    }
    if (!was_ready) {
        s->in_write = 0;
        console_tell(s, CARD_HOST_STATUS, HOST_OPEN);
        qemu_chr_fe_accept_input(&s->chr);
    }
    if (!was_ready || addr == OUT_WRITE) {
        console_drain(s);
    }
    if (addr == IN_READ) {
        qemu_chr_fe_accept_input(&s->chr);
    }
}

static const MemoryRegionOps console_ops = {
    .read = console_read,
    .write = console_write,
    .impl.max_access_size = 4,
    .valid.max_access_size = 8,
    .endianness = DEVICE_LITTLE_ENDIAN,
};

static void console_reset(Object *obj, ResetType type)
{
    KncConsole *s = KNC_CONSOLE(obj);

    memset(s->data, 0, sizeof(s->data));
    s->out_read = s->in_write = 0;
    stl_le_p(s->data + HOST_MAGIC, HOST_READY);
    stl_le_p(s->data + RING_VERSIONS, RING_VERSION);
    stq_le_p(s->data + OUT_ADDR, KNC_CONSOLE_BASE + RING);
    stl_le_p(s->data + OUT_SIZE, RING_SIZE);
}

static void console_realize(DeviceState *dev, Error **errp)
{
    KncConsole *s = KNC_CONSOLE(dev);

    memory_region_init_io(&s->io, OBJECT(dev), &console_ops, s,
                          TYPE_KNC_CONSOLE, WINDOW_SIZE);
    sysbus_init_mmio(SYS_BUS_DEVICE(dev), &s->io);
    sysbus_init_irq(SYS_BUS_DEVICE(dev), &s->irq);
    qemu_chr_fe_set_handlers(&s->chr, console_can_receive, console_receive,
                             NULL, NULL, s, NULL, true);
}

KNC_DEVICE(KncConsole, console, KNC_CONSOLE, console_reset,
           DEFINE_PROP_CHR("chardev", KncConsole, chr))
