/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: the host's half of a mainline kernel's console
 *
 * A region of the card's memory with a header, and a ring for each direction.
 * The indices of a ring run freely: its producer writes the head, its consumer
 * the tail.  Both sides poll; here the write of an index is noticed.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/bswap.h"
#include "qemu/cutils.h"
#include "chardev/char-fe.h"
#include "cpu.h"
#include "hw/boards.h"
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

static struct {
    MemoryRegion io;
    CharBackend chr;
    uint8_t data[KNC_RING_SIZE];
} ring;

static uint32_t ring_word(int offset)
{
    return ldl_le_p(ring.data + offset);
}

static void ring_set(int offset, uint32_t val)
{
    stl_le_p(ring.data + offset, val);
}

/* How much is in a ring: never more than fits, whatever the indices are */
static uint32_t ring_used(int offset, uint32_t size)
{
    uint32_t used = ring_word(offset + RING_HEAD) -
                    ring_word(offset + RING_TAIL);

    return MIN(used, size);
}

/* Take what the card has written. */
static void ring_drain(void)
{
    uint32_t head = ring_word(OUT + RING_HEAD);
    uint32_t left = ring_used(OUT, OUT_SIZE);

    while (left) {
        uint32_t at = (head - left) % OUT_SIZE, n = MIN(left, OUT_SIZE - at);

        qemu_chr_fe_write_all(&ring.chr, ring.data + OUT + RING_DATA + at, n);
        left -= n;
    }
    ring_set(OUT + RING_TAIL, head);
}

static int ring_can_receive(void *opaque)
{
    return IN_SIZE - ring_used(IN, IN_SIZE);
}

static void ring_receive(void *opaque, const uint8_t *buf, int count)
{
    uint32_t head = ring_word(IN + RING_HEAD);

    while (count--) {
        ring.data[IN + RING_DATA + head++ % IN_SIZE] = *buf++;
    }
    ring_set(IN + RING_HEAD, head);
}

static uint64_t ring_read(void *opaque, hwaddr addr, unsigned size)
{
    return ldn_le_p(ring.data + addr, size);
}

static void ring_write(void *opaque, hwaddr addr, uint64_t val, unsigned size)
{
    stn_le_p(ring.data + addr, size, val);
    if (addr == OUT + RING_HEAD) {
        ring_drain();
    } else if (addr == IN + RING_TAIL) {
        qemu_chr_fe_accept_input(&ring.chr);
    }
}

static const MemoryRegionOps ring_ops = {
    .read = ring_read,
    .write = ring_write,
    .impl.max_access_size = 8,
    .valid.max_access_size = 8,
    .endianness = DEVICE_LITTLE_ENDIAN,
};

void knc_ring_reset(void)
{
    struct tm now;

    qemu_get_timedate(&now, 0);
    memset(ring.data, 0, sizeof(ring.data));
    for (int i = 0; i < ARRAY_SIZE(header); i++) {
        ring_set(4 * i, header[i]);
    }
    stq_le_p(ring.data + HOST_TIME, mktimegm(&now) * NANOSECONDS_PER_SECOND);
    ring_set(IN, RING_MAGIC);
    ring_set(IN + RING_SIZE, IN_SIZE);
    ring_set(OUT, RING_MAGIC);
    ring_set(OUT + RING_SIZE, OUT_SIZE);
    qemu_chr_fe_accept_input(&ring.chr);
}

/* In front of the RAM */
void knc_ring_init(MemoryRegion *system, Chardev *chr)
{
    memory_region_init_io(&ring.io, NULL, &ring_ops, NULL, "knc-ring",
                          KNC_RING_SIZE);
    memory_region_add_subregion_overlap(system, KNC_RING_BASE, &ring.io, 1);
    qemu_chr_fe_init(&ring.chr, chr, &error_abort);
    qemu_chr_fe_set_handlers(&ring.chr, ring_can_receive, ring_receive,
                             NULL, NULL, NULL, NULL, true);
}
