/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: the host's half of a mainline kernel's console
 *
 * A region of the card's memory with a header, and a ring for each direction.
 * The indices of a ring run freely: its producer writes the head, its consumer
 * the tail.  Both sides poll; here the write of an index is noticed.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/cutils.h"
#include "chardev/char-fe.h"
#include "cpu.h"
#include "hw/i386/knc-board.h"

/* A ring; its head and tail are in cache lines of their own. */
#define RING_MAGIC          0x474e4952 /* "RING" */
#define RING_SIZE           0x04
#define RING_HEAD           0x40
#define RING_TAIL           0x80
#define RING_DATA           0xc0

#define IN                  0x1000
#define IN_SIZE             0x1000
#define OUT                 0x4000
#define OUT_SIZE            0x10000

/* The region's header, and the only channel: the console */
static const uint32_t header[] = {
    0x52494850 /* "PHIR" */, 1 /* version */, KNC_RING_SIZE, 1 /* channel */,
    [16] = 1 /* a console */, 0, IN, IN_SIZE, OUT, OUT_SIZE,
};
#define HOST_TIME           0x10    /* in nanoseconds, 64 bits */

OBJECT_DECLARE_SIMPLE_TYPE(KncRing, KNC_RING)

struct KncRing {
    SysBusDevice parent_obj;

    MemoryRegion io;
    CharBackend chr;
    uint8_t data[KNC_RING_SIZE];
};

static uint32_t ring_word(KncRing *s, int offset)
{
    return ldl_le_p(s->data + offset);
}

static void ring_set(KncRing *s, int offset, uint32_t val)
{
    stl_le_p(s->data + offset, val);
}

/* How much is in a ring: never more than fits, whatever the indices are */
static uint32_t ring_used(KncRing *s, int offset, uint32_t size)
{
    uint32_t used = ring_word(s, offset + RING_HEAD) -
                    ring_word(s, offset + RING_TAIL);

    return MIN(used, size);
}

/* Take what the card has written. */
static void ring_drain(KncRing *s)
{
    uint32_t head = ring_word(s, OUT + RING_HEAD);
    uint32_t left = ring_used(s, OUT, OUT_SIZE);

    while (left) {
        uint32_t at = (head - left) % OUT_SIZE, n = MIN(left, OUT_SIZE - at);

        qemu_chr_fe_write_all(&s->chr, s->data + OUT + RING_DATA + at, n);
        left -= n;
    }
    ring_set(s, OUT + RING_TAIL, head);
}

static int ring_can_receive(void *opaque)
{
    return IN_SIZE - ring_used(opaque, IN, IN_SIZE);
}

static void ring_receive(void *opaque, const uint8_t *buf, int count)
{
    KncRing *s = opaque;
    uint32_t head = ring_word(s, IN + RING_HEAD);

    while (count--) {
        s->data[IN + RING_DATA + head++ % IN_SIZE] = *buf++;
    }
    ring_set(s, IN + RING_HEAD, head);
}

static uint64_t ring_read(void *opaque, hwaddr addr, unsigned size)
{
    return ldn_le_p(KNC_RING(opaque)->data + addr, size);
}

static void ring_write(void *opaque, hwaddr addr, uint64_t val, unsigned size)
{
    KncRing *s = opaque;

    stn_le_p(s->data + addr, size, val);
    if (addr == OUT + RING_HEAD) {
        ring_drain(s);
    } else if (addr == IN + RING_TAIL) {
        qemu_chr_fe_accept_input(&s->chr);
    }
}

static const MemoryRegionOps ring_ops = {
    .read = ring_read,
    .write = ring_write,
    .impl.max_access_size = 8,
    .valid.max_access_size = 8,
    .endianness = DEVICE_LITTLE_ENDIAN,
};

static void ring_reset(Object *obj, ResetType type)
{
    KncRing *s = KNC_RING(obj);
    struct tm now;

    qemu_get_timedate(&now, 0);
    memset(s->data, 0, sizeof(s->data));
    for (int i = 0; i < ARRAY_SIZE(header); i++) {
        ring_set(s, 4 * i, header[i]);
    }
    stq_le_p(s->data + HOST_TIME, mktimegm(&now) * NANOSECONDS_PER_SECOND);
    ring_set(s, IN, RING_MAGIC);
    ring_set(s, IN + RING_SIZE, IN_SIZE);
    ring_set(s, OUT, RING_MAGIC);
    ring_set(s, OUT + RING_SIZE, OUT_SIZE);
    qemu_chr_fe_accept_input(&s->chr);
}

static void ring_realize(DeviceState *dev, Error **errp)
{
    KncRing *s = KNC_RING(dev);

    memory_region_init_io(&s->io, OBJECT(dev), &ring_ops, s, TYPE_KNC_RING,
                          KNC_RING_SIZE);
    sysbus_init_mmio(SYS_BUS_DEVICE(dev), &s->io);
    qemu_chr_fe_set_handlers(&s->chr, ring_can_receive, ring_receive,
                             NULL, NULL, s, NULL, true);
}

KNC_DEVICE(KncRing, ring, KNC_RING, ring_reset,
           DEFINE_PROP_CHR("chardev", KncRing, chr))
