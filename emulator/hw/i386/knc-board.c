/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: the card as a machine
 *
 * RAM, up to 62 cores with 4 threads each, the SBOX, the DBOX, and a host of
 * which there is nothing but the console.  There is no firmware, no ACPI and no
 * port.  An ISA bus for the devices of tests has its ports in memory.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/log.h"
#include "qemu/units.h"
#include "cpu.h"
#include "hw/i386/apic_internal.h"
#include "hw/i386/x86.h"
#include "hw/isa/isa.h"
#include "hw/i386/knc-board.h"

#define TYPE_KNC_MACHINE    MACHINE_TYPE_NAME("knc")
OBJECT_DECLARE_SIMPLE_TYPE(KncMachineState, KNC_MACHINE)

#define CORES               62
#define THREADS             4
/* The local APICs are behind the end of the lower part. */
#define RAM_BELOW_4G        0xe0000000ull
#define RAM_MIN             (64 * MiB)
#define RAM_MAX             (16 * GiB)
#define PORTS               0x10000
#define FIRMWARE            (64 * KiB)
#define HLT                 0xf4

/* In front of RAM, and of QEMU's APIC, whose priority is 0x1000 */
#define PRIORITY            0x2000

struct KncMachineState {
    X86MachineState parent_obj;

    MemoryRegion ports, isa_ports, ram_below, ram_above, firmware;
    hwaddr entry;
    bool mainline; /* the property: how the kernel is started, its console */
};

static uint64_t ports_read(void *opaque, hwaddr port, unsigned size)
{
    qemu_log_mask(LOG_UNIMP, "knc: IN from port 0x%" HWADDR_PRIx "\n", port);
    return -1;
}

static void ports_write(void *opaque, hwaddr port, uint64_t val, unsigned size)
{
    qemu_log_mask(LOG_UNIMP, "knc: OUT to port 0x%" HWADDR_PRIx "\n", port);
}

static const MemoryRegionOps ports_ops = {
    .read = ports_read,
    .write = ports_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
};

static uint64_t board_memory(MachineState *machine)
{
    KncMachineState *s = KNC_MACHINE(machine);
    MemoryRegion *system = get_system_memory();
    uint64_t below = MIN(machine->ram_size, RAM_BELOW_4G);

    memory_region_init_alias(&s->ram_below, NULL, "knc-ram-below-4g",
                             machine->ram, 0, below);
    memory_region_add_subregion(system, 0, &s->ram_below);
    if (machine->ram_size > below) {
        memory_region_init_alias(&s->ram_above, NULL, "knc-ram-above-4g",
                                 machine->ram, below,
                                 machine->ram_size - below);
        memory_region_add_subregion(system, 4 * GiB, &s->ram_above);
    }
    /* Where the firmware would begin, a thread that gets an INIT halts. */
    memory_region_init_rom(&s->firmware, NULL, "knc-no-firmware", FIRMWARE,
                           &error_abort);
    memset(memory_region_get_ram_ptr(&s->firmware), HLT, FIRMWARE);
    memory_region_add_subregion(system, 4 * GiB - FIRMWARE, &s->firmware);
    return below;
}

static void board_check(MachineState *machine)
{
    unsigned int cores = machine->smp.cpus / THREADS;

    if (machine->smp.threads != THREADS || machine->smp.cores != cores ||
        cores > CORES || machine->smp.max_cpus != machine->smp.cpus) {
        error_report("-M knc: a card has 1 to %d cores with %d threads each: "
                     "-smp N,cores=N/%d,threads=%d", CORES, THREADS, THREADS,
                     THREADS);
        exit(1);
    }
    if (machine->ram_size < RAM_MIN || machine->ram_size > RAM_MAX) {
        error_report("-M knc: needs -m %d to %d", (int)(RAM_MIN / MiB),
                     (int)(RAM_MAX / MiB));
        exit(1);
    }
    if (KNC_MACHINE(machine)->mainline &&
        machine->ram_size < KNC_RING_BASE + KNC_RING_SIZE) {
        error_report("-M knc,mainline=on: needs -m 257 or more");
        exit(1);
    }
}

/* On a card it is the first thread of the last core that boots. */
static uint32_t board_boot_id(KncMachineState *s)
{
    return s->mainline ? MACHINE(s)->smp.cpus - THREADS : 0;
}

static void board_add(MachineState *machine, DeviceState *dev, hwaddr addr)
{
    object_property_add_child(OBJECT(machine), object_get_typename(OBJECT(dev)),
                              OBJECT(dev));
    sysbus_realize_and_unref(SYS_BUS_DEVICE(dev), &error_fatal);
    sysbus_mmio_map_overlap(SYS_BUS_DEVICE(dev), 0, addr, PRIORITY);
}

static void board_init(MachineState *machine)
{
    KncMachineState *s = KNC_MACHINE(machine);
    MemoryRegion *system = get_system_memory();
    DeviceState *lapic, *sbox, *console;
    uint64_t below_4g;

    board_check(machine);
    below_4g = board_memory(machine);
    x86_cpus_init(X86_MACHINE(machine), CPU_VERSION_LATEST);
    if (!X86_CPU(first_cpu)->env.knc.strict) {
        error_report("-M knc: its CPU is knc-strict");
        exit(1);
    }
    memory_region_init_io(&s->ports, NULL, &ports_ops, NULL, "knc-no-ports",
                          PORTS);
    memory_region_add_subregion(get_system_io(), 0, &s->ports);
    memory_region_init(&s->isa_ports, NULL, "knc-isa-ports", PORTS);
    memory_region_add_subregion(system, KNC_ISA_BASE, &s->isa_ports);
    isa_bus_new(NULL, system, &s->isa_ports, &error_abort);
    lapic = qdev_new(TYPE_KNC_LAPIC);
    qdev_prop_set_uint32(lapic, "boot-id", board_boot_id(s));
    board_add(machine, lapic, APIC_DEFAULT_ADDRESS);
    sbox = qdev_new(TYPE_KNC_SBOX);
    s->entry = knc_boot_load(machine, sbox, below_4g, s->mainline);
    board_add(machine, sbox, KNC_SBOX_BASE);
    sysbus_mmio_map(SYS_BUS_DEVICE(sbox), 1, KNC_DBOX_BASE);
    console = qdev_new(s->mainline ? TYPE_KNC_RING : TYPE_KNC_CONSOLE);
    qdev_prop_set_chr(console, "chardev", serial_hd(0));
    board_add(machine, console, s->mainline ? KNC_RING_BASE : KNC_CONSOLE_BASE);
    if (!s->mainline) {
        sysbus_connect_irq(SYS_BUS_DEVICE(console), 0,
                           qdev_get_gpio_in(sbox, KNC_SBOX_HVC));
    }
}

static void board_reset(MachineState *machine, KNC_RESET reason)
{
    KncMachineState *s = KNC_MACHINE(machine);
    CPUState *cs;

    qemu_devices_reset(reason);
    CPU_FOREACH(cs) {
        x86_cpu_after_reset(X86_CPU(cs));
    }
    cs = cpu_by_arch_id(board_boot_id(s));
    knc_boot_cpu(&X86_CPU(cs)->env, s->entry, s->mainline);
}

static bool board_get_mainline(Object *obj, Error **errp)
{
    return KNC_MACHINE(obj)->mainline;
}

static void board_set_mainline(Object *obj, bool val, Error **errp)
{
    KNC_MACHINE(obj)->mainline = val;
}

static HotplugHandler *board_hotplug_handler(MachineState *machine,
                                             DeviceState *dev)
{
    return object_dynamic_cast(OBJECT(dev), TYPE_CPU) ?
           HOTPLUG_HANDLER(machine) : NULL;
}

/* However many a card has, its CPUID says 248 threads: 62 cores of 4. */
static GlobalProperty board_properties[] = {
    { X86_CPU_TYPE_NAME("knc"), "knc-siblings", "248" },
};

static void board_class_init(ObjectClass *oc, KNC_CLASS_DATA *data)
{
    MachineClass *mc = MACHINE_CLASS(oc);
    HotplugHandlerClass *hc = HOTPLUG_HANDLER_CLASS(oc);

    mc->desc = "Knights Corner coprocessor card";
    mc->family = "knc";
    mc->init = board_init;
    mc->reset = board_reset;
    mc->max_cpus = CORES * THREADS;
    mc->default_cpu_type = X86_CPU_TYPE_NAME("knc-strict");
    mc->default_ram_id = "knc.ram";
    mc->no_floppy = 1;
    mc->no_cdrom = 1;
    mc->no_parallel = 1;
    mc->get_hotplug_handler = board_hotplug_handler;
    hc->pre_plug = x86_cpu_pre_plug;
    hc->plug = x86_cpu_plug;
    compat_props_add(mc->compat_props, board_properties,
                     G_N_ELEMENTS(board_properties));
    object_class_property_add_bool(oc, "mainline", board_get_mainline,
                                   board_set_mainline);
    object_class_property_set_description(oc, "mainline",
        "start the kernel at its 32-bit entry, with the console in the ring");
}

static const TypeInfo board_info[] = { {
    .name = TYPE_KNC_MACHINE,
    .parent = TYPE_X86_MACHINE,
    .instance_size = sizeof(KncMachineState),
    .class_init = board_class_init,
    .interfaces = (InterfaceInfo[]) {
        { TYPE_HOTPLUG_HANDLER },
        { }
    },
} };

DEFINE_TYPES(board_info)
