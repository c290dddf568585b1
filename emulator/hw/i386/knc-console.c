/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: the host's half of the virtual console
 *
 * Two rings, of which each side owns what it consumes (board.rst).  The real
 * host polls; here the write of an index is noticed.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/bswap.h"
#include "chardev/char-fe.h"
#include "cpu.h"
#include "hw/boards.h"
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

static struct {
    MemoryRegion io;
    CharBackend chr;
    uint8_t data[WINDOW_SIZE];
    uint32_t out_read;
    uint32_t in_write;
} console;

static uint32_t console_word(int offset)
{
    return ldl_le_p(console.data + offset);
}

static hwaddr console_card_addr(int offset)
{
    return ldq_le_p(console.data + offset);
}

/* The card chooses the addresses: they need not be those of memory. */
static void console_write_card(hwaddr addr, const void *from, hwaddr size)
{
    MemTxAttrs attrs = { .memory = true };

    address_space_write(&address_space_memory, addr, attrs, from, size);
}

static void console_tell(int field, uint32_t val)
{
    val = cpu_to_le32(val);
    console_write_card(console_card_addr(IN_HEADER) + field, &val, sizeof(val));
}

static bool console_ready(void)
{
    return console_word(CARD_MAGIC) == CARD_READY;
}

/* Take what the card has written. */
static void console_drain(void)
{
    uint32_t write = console_word(OUT_WRITE) % RING_SIZE;

    while (console.out_read != write) {
        uint32_t end = write > console.out_read ? write : RING_SIZE;

        qemu_chr_fe_write_all(&console.chr,
                              console.data + RING + console.out_read,
                              end - console.out_read);
        console.out_read = end % RING_SIZE;
    }
    console_tell(CARD_OUT_READ, console.out_read);
}

static uint32_t console_in_size(void)
{
    uint32_t size = console_word(IN_SIZE);

    return is_power_of_2(size) ? size : 0;
}

/* One byte stays free, so that a full ring is not an empty one. */
static int console_can_receive(void *opaque)
{
    uint32_t size = console_in_size();

    if (!console_ready() || !size) {
        return 0;
    }
    return (console_word(IN_READ) - console.in_write - 1) & (size - 1);
}

static void console_receive(void *opaque, const uint8_t *buf, int count)
{
    uint32_t size = console_in_size();

    for (int i = 0; i < count; i++) {
        console_write_card(console_card_addr(IN_ADDR) + console.in_write,
                           &buf[i], 1);
        console.in_write = (console.in_write + 1) & (size - 1);
    }
    console_tell(CARD_IN_WRITE, console.in_write);
    knc_sbox_interrupt(KNC_SBOX_HVC);
}

static uint64_t console_read(void *opaque, hwaddr addr, unsigned size)
{
    return ldn_le_p(console.data + addr, size);
}

static void console_write(void *opaque, hwaddr addr, uint64_t val,
                          unsigned size)
{
    bool was_ready = console_ready();

    stn_le_p(console.data + addr, size, val);
    if (addr >= RING || !console_ready()) {
        return;
    }
    if (!was_ready) {
        console.in_write = 0;
        console_tell(CARD_HOST_STATUS, HOST_OPEN);
        qemu_chr_fe_accept_input(&console.chr);
    }
    if (!was_ready || addr == OUT_WRITE) {
        console_drain();
    }
    if (addr == IN_READ) {
        qemu_chr_fe_accept_input(&console.chr);
    }
}

static const MemoryRegionOps console_ops = {
    .read = console_read,
    .write = console_write,
    .impl.max_access_size = 4,
    .valid.max_access_size = 8,
    .endianness = DEVICE_LITTLE_ENDIAN,
};

void knc_console_reset(void)
{
    memset(console.data, 0, sizeof(console.data));
    console.out_read = console.in_write = 0;
    stl_le_p(console.data + HOST_MAGIC, HOST_READY);
    stl_le_p(console.data + RING_VERSIONS, RING_VERSION);
    stq_le_p(console.data + OUT_ADDR, KNC_CONSOLE_BASE + RING);
    stl_le_p(console.data + OUT_SIZE, RING_SIZE);
}

void knc_console_init(MemoryRegion *system, Chardev *chr)
{
    memory_region_init_io(&console.io, NULL, &console_ops, NULL, "knc-console",
                          WINDOW_SIZE);
    memory_region_add_subregion(system, KNC_CONSOLE_BASE, &console.io);
    qemu_chr_fe_init(&console.chr, chr, &error_abort);
    qemu_chr_fe_set_handlers(&console.chr, console_can_receive, console_receive,
                             NULL, NULL, NULL, NULL, true);
}
