/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU test device
 *
 * Shows a test program what hardware does not tell about the PMU of a thread:
 * true counts, lost interrupts, and accesses to each kind of register.
 *
 *   base + 0  write  select thread (31:16) and item (15:0), latch its value
 *   base + 4  read   low half of the latched value
 *             write  low half of the number of events for a burst
 *   base + 8  read   high half of the latched value
 *             write  counter (31:16) of this thread that gets a burst of
 *                    events, and bits 47:32 of their number (15:0)
 *   base + c  write  mark: put the value into the trace
 *   base + 10 write  number of instructions before an order is carried out
 *   base + 14 write  where they start: at the next write of this register, or 0
 *                    to start at once
 *   base + 18 write  order for a thread (31:16): rings whose instructions count
 *                    (9:8), action (3:0)
 *
 * With limit=SECONDS it ends QEMU when so much of the guest's time has passed.
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "cpu.h"
#include "hw/isa/isa.h"
#include "target/i386/knc/internal.h"

#define TYPE_KNC_PMU_TESTDEV "knc-pmu-testdev"
OBJECT_DECLARE_SIMPLE_TYPE(KncPmuTestDev, KNC_PMU_TESTDEV)

#define IOBASE          0x5e0
#define REG_SELECT      0x0
#define REG_LOW         0x4
#define REG_HIGH        0x8
#define REG_MARK        0xc
#define REG_AFTER       0x10
#define REG_WRITTEN     0x14
#define REG_ORDER       0x18
#define REG_SIZE        0x20

/* Two in a row are of counters 0 and 1, or of ring 0 and rings 1 to 3. */
enum {
    ITEM_MAGIC          = 0,    /* "KNCP" */
    ITEM_LOST           = 1,    /* edges */
    ITEM_EDGES          = 2,
    ITEM_DELIVERED      = 3,
    ITEM_TOTAL          = 4,    /* events counted; writes add none */
    ITEM_OVERFLOWS      = 6,
    ITEM_RDMSRS         = 8,    /* of PMU registers */
    ITEM_WRMSRS         = 9,
    ITEM_RDPMCS         = 10,
    ITEM_LVTPCS         = 11,
    ITEM_EOIS           = 12,
    ITEM_INSTRUCTIONS   = 16,
    ITEM_BRANCHES       = 18,
    ITEM_CYCLES         = 20,
    ITEM_INJECTED       = 24,   /* orders carried out */
    ITEM_INJECT_LEFT    = 25,   /* instructions before the order */
    ITEM_STOPPED        = 26,
    ITEM_GLOBAL_STATUS  = 28,
};

#define MAGIC           0x4b4e4350

#define BURST_MAX       (1ull << 40)

/* As of timeout(1) */
#define LIMIT_STATUS    124

struct KncPmuTestDev {
    ISADevice parent_obj;

    MemoryRegion io;
    uint64_t latch;
    uint32_t burst_low;
    uint32_t after;
    uint32_t msr;
    uint32_t limit;
};

/* What has happened: members of the state */
static const size_t happened[] = {
#define AT(member)      offsetof(KncPmuState, member)
    [ITEM_LOST] = AT(tally.lost),
    [ITEM_EDGES] = AT(tally.edges),
    [ITEM_DELIVERED] = AT(tally.delivered),
    [ITEM_OVERFLOWS] = AT(regs.counter[0].overflows),
    [ITEM_OVERFLOWS + 1] = AT(regs.counter[1].overflows),
    [ITEM_RDMSRS] = AT(tally.rdmsrs),
    [ITEM_WRMSRS] = AT(tally.wrmsrs),
    [ITEM_RDPMCS] = AT(tally.rdpmcs),
    [ITEM_LVTPCS] = AT(tally.lvtpc_writes),
    [ITEM_EOIS] = AT(tally.eoi_writes),
    [ITEM_INJECTED] = AT(inject.fired),
#undef AT
};

/*
 * Any item.  @self: this thread is the one that asks, and its executing
 * instruction is not part of the result.
 */
static uint64_t testdev_item(CPUX86State *env, int item, bool self)
{
    KncPmuState *s = &env->knc_pmu;
    KncPmuTruth truth;

    if (self && (s->tb_flags & HF_KNC_OBSERVE_MASK)) {
        knc_pmu_flush_accesses(s);
    }
    knc_pmu_truth(env, self ? knc_pmu_self(s) : 0, &truth);
    switch (item) {
    case ITEM_MAGIC:
        return MAGIC;
    case ITEM_TOTAL:
    case ITEM_TOTAL + 1:
        return truth.total[item - ITEM_TOTAL];
    case ITEM_INSTRUCTIONS:
    case ITEM_INSTRUCTIONS + 1:
        return truth.sum[item - ITEM_INSTRUCTIONS].n[KNC_INSTRUCTIONS_EXECUTED];
    case ITEM_BRANCHES:
    case ITEM_BRANCHES + 1:
        return truth.sum[item - ITEM_BRANCHES].n[KNC_BRANCHES];
    case ITEM_CYCLES:
    case ITEM_CYCLES + 1:
        return truth.sum[item - ITEM_CYCLES].n[KNC_CPU_CLK_UNHALTED];
    case ITEM_INJECT_LEFT:
        return knc_inject_left(s);
    case ITEM_STOPPED:
        return knc_inject_stopped(env_cpu(env));
    case ITEM_GLOBAL_STATUS:
        return s->regs.status;
    default:
        return item < ARRAY_SIZE(happened) && happened[item] ?
               *(uint64_t *)((char *)s + happened[item]) : -1;
    }
}

static uint64_t testdev_select(uint32_t select)
{
    CPUState *cs = qemu_get_cpu(select >> 16);

    if (!cs || !X86_CPU(cs)->env.knc.pmu) {
        return -1;
    }
    return testdev_item(&X86_CPU(cs)->env, select & 0xffff, cs == current_cpu);
}

/* Events at once, as in ring 3, to reach 2^40 quickly */
static void testdev_burst(KncPmuTestDev *s, uint32_t high)
{
    uint64_t events = s->burst_low | (uint64_t)(high & 0xffff) << 32;
    CPUX86State *env = &X86_CPU(current_cpu)->env;
    KncPmuState *pmu = &env->knc_pmu;
    int n = high >> 16;
    bool line;

    if (!env->knc.pmu || n >= KNC_PMU_COUNTERS || events > BURST_MAX ||
        !(pmu->regs.counter[n].rings & (1 << KNC_PMU_RING3))) {
        return;
    }
    knc_pmu_fold(env);
    line = pmu->regs.pmi;
    knc_pmu_count(env, n, events);
    if (!line && pmu->regs.pmi) {
        knc_pmu_raise(env);
    }
    knc_pmu_refuel(env);
}

static void testdev_order(KncPmuTestDev *s, uint32_t order)
{
    CPUState *cs = qemu_get_cpu(order >> 16);

    if (cs && X86_CPU(cs)->env.knc.pmu) {
        knc_inject_order(&X86_CPU(cs)->env, s->after, s->msr, order & 0xffff);
        if (cs == current_cpu) {
            /* A block that is chained to this one may have other flags. */
            cpu_interrupt(cs, CPU_INTERRUPT_EXITTB);
        }
    }
}

static uint64_t testdev_read(void *opaque, hwaddr addr, unsigned size)
{
    KncPmuTestDev *s = opaque;

    switch (addr) {
    case REG_LOW:
        return (uint32_t)s->latch;
    case REG_HIGH:
        return s->latch >> 32;
    default:
        return 0xffffffff;
    }
}

static void testdev_write(void *opaque, hwaddr addr, uint64_t val,
                          unsigned size)
{
    KncPmuTestDev *s = opaque;

    if (!current_cpu) {
        return;
    }
    switch (addr) {
    case REG_SELECT:
        s->latch = testdev_select(val);
        break;
    case REG_LOW:
        s->burst_low = val;
        break;
    case REG_HIGH:
        testdev_burst(s, val);
        break;
    case REG_MARK:
        trace_knc_pmu_mark(current_cpu->cpu_index, val);
        break;
    case REG_AFTER:
        s->after = val;
        break;
    case REG_WRITTEN:
        s->msr = val;
        break;
    case REG_ORDER:
        testdev_order(s, val);
        break;
    }
}

static const MemoryRegionOps testdev_ops = {
    .read = testdev_read,
    .write = testdev_write,
    .valid.min_access_size = 4,
    .valid.max_access_size = 4,
    .endianness = DEVICE_LITTLE_ENDIAN,
};

static void testdev_expire(void *opaque)
{
    KncPmuTestDev *s = opaque;

    /* A guest that is off halts: its clock skips to this time at once. */
    if (qemu_shutdown_requested_get() || !runstate_is_running()) {
        return;
    }
    error_report("the guest's limit of %" PRIu32 " s has come", s->limit);
    exit(LIMIT_STATUS);
}

static void testdev_realize(DeviceState *dev, Error **errp)
{
    KncPmuTestDev *s = KNC_PMU_TESTDEV(dev);

    if (s->limit) {
        timer_mod(timer_new_ns(QEMU_CLOCK_VIRTUAL, testdev_expire, s),
                  s->limit * NANOSECONDS_PER_SECOND);
    }
    memory_region_init_io(&s->io, OBJECT(dev), &testdev_ops, s,
                          TYPE_KNC_PMU_TESTDEV, REG_SIZE);
    memory_region_add_subregion(isa_address_space_io(ISA_DEVICE(dev)),
                                IOBASE, &s->io);
}

static void testdev_init(Object *obj)
{
    object_property_add_uint32_ptr(obj, "limit", &KNC_PMU_TESTDEV(obj)->limit,
                                   OBJ_PROP_FLAG_READWRITE);
}

static void testdev_class_init(ObjectClass *klass, KNC_CLASS_DATA *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);

    dc->realize = testdev_realize;
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
}

static const TypeInfo testdev_info[] = { {
    .name          = TYPE_KNC_PMU_TESTDEV,
    .parent        = TYPE_ISA_DEVICE,
    .instance_size = sizeof(KncPmuTestDev),
    .instance_init = testdev_init,
    .class_init    = testdev_class_init,
} };

DEFINE_TYPES(testdev_info)
