/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: the kernel, and what the card's bootstrap leaves for it:
 * Linux's Documentation/x86/boot.rst, and ours, board.rst
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "qemu/units.h"
#include "cpu.h"
#include "hw/i386/apic_internal.h"
#include "hw/i386/x86.h"
#include "hw/i386/knc-board.h"

/* Where things are; the kernel may overwrite all but the last. */
#define PARAMS_ADDR         0x90000
#define GDT_ADDR            0x91000
#define TABLES_ADDR         0x92000 /* 6 pages */
#define CMDLINE_ADDR        0x98000
#define CMDLINE_SIZE        0x1000
#define SFI_ADDR            0xe0000
#define KERNEL_ADDR         0x100000

/* The same of a mainline kernel: the command line follows the image. */
#define DOWNLOAD_ADDR       0x4000000
#define INITRD_ADDR         (2 * DOWNLOAD_ADDR)

#define LOW_END             0xa0000
#define PAGE                0x1000u

/* The boot parameters, and in them the header from the image */
#define PARAM_E820_COUNT    0x1e8
#define PARAM_HEADER        0x1f1
#define   SETUP_SECTS       0x1f1
#define   BOOT_FLAG         0x1fe
#define   HEADER_JUMP_SIZE  0x201
#define   HEADER_MAGIC      0x202
#define   HEADER_VERSION    0x206
#define   LOADER            0x210
#define     LOADER_UNKNOWN  0xff
#define   LOAD_FLAGS        0x211
#define     KEEP_SEGMENTS   (1 << 6)
#define   RAMDISK_ADDR      0x218
#define   RAMDISK_SIZE      0x21c
#define   CMDLINE_PTR       0x228
#define   RAMDISK_MAX       0x22c
#define   ALIGNMENT         0x230
#define   PREFERRED_ADDR    0x258
#define   INIT_SIZE         0x260
#define     VERSION_INIT    0x020a
#define PARAM_E820          0x2d0
#define   E820_ENTRY        20
#define     E820_RAM        1
#define     E820_RESERVED   2
#define PARAMS_SIZE         0x1000
#define VERSION_MIN         0x0206
#define ENTRY_64            0x200

#define BOOT_CS             0x10
#define GDT_TSS             0x20

/* 4 GiB in pages of 2 MiB */
static void boot_page_tables(void)
{
    g_autofree uint64_t *table = g_malloc0(6 * PAGE);
    int per_page = PAGE / sizeof(*table);

    table[0] = cpu_to_le64((TABLES_ADDR + PAGE) | 3);
    for (int i = 0; i < 4; i++) {
        table[per_page + i] = cpu_to_le64((TABLES_ADDR + (2 + i) * PAGE) | 3);
    }
    for (int i = 0; i < 4 * per_page; i++) {
        table[2 * per_page + i] = cpu_to_le64(i * 2 * (uint64_t)MiB | 0x83);
    }
    rom_add_blob_fixed("knc-page-tables", table, 6 * PAGE, TABLES_ADDR);
}

/* Code, data, and a TSS, which the kernel's decompressor loads */
static void boot_gdt(bool mainline)
{
    uint64_t gdt[] = {
        0, 0,
        mainline ? 0x00cf9b000000ffff : 0x00af9b000000ffff, 0x00cf93000000ffff,
        0x0000890000000067, 0,
    };

    for (int i = 0; i < ARRAY_SIZE(gdt); i++) {
        gdt[i] = cpu_to_le64(gdt[i]);
    }
    rom_add_blob_fixed("knc-gdt", gdt, sizeof(gdt), GDT_ADDR);
}

/* A table of the SFI: a header of 24 bytes, and entries; their sum is 0. */
static void sfi_finish(uint8_t *table, uint32_t size)
{
    uint8_t sum = 0;

    stl_le_p(table + 4, size);
    for (uint32_t i = 0; i < size; i++) {
        sum -= table[i];
    }
    table[9] = sum;
}

static guint sfi_begin(GByteArray *sfi, const char *signature)
{
    guint start = ROUND_UP(sfi->len, 16);
    uint8_t header[24] = { 0 };

    g_byte_array_set_size(sfi, start);
    memcpy(header, signature, 4);
    header[8] = 1;
    memcpy(header + 10, "KNCPMUQEMU    ", 14);
    g_byte_array_append(sfi, header, sizeof(header));
    return start;
}

static void sfi_append(GByteArray *sfi, uint64_t val, int size)
{
    val = cpu_to_le64(val);
    g_byte_array_append(sfi, (uint8_t *)&val, size);
}

static void boot_sfi(MachineState *machine)
{
    g_autoptr(GByteArray) sfi = g_byte_array_new();
    const CPUArchIdList *cpus =
        MACHINE_GET_CLASS(machine)->possible_cpu_arch_ids(machine);
    guint syst_end, cpus_table, apic;

    /* The addresses of the others are filled in when they are known. */
    sfi_begin(sfi, "SYST");
    sfi_append(sfi, 0, 8);
    sfi_append(sfi, 0, 8);
    syst_end = sfi->len;

    cpus_table = sfi_begin(sfi, "CPUS");
    for (int i = 0; i < cpus->len; i++) {
        sfi_append(sfi, cpus->cpus[i].arch_id, 4);
    }
    sfi_finish(sfi->data + cpus_table, sfi->len - cpus_table);

    apic = sfi_begin(sfi, "APIC");
    sfi_append(sfi, KNC_SBOX_BASE + KNC_SBOX_IOAPIC, 8);
    sfi_finish(sfi->data + apic, sfi->len - apic);

    stq_le_p(sfi->data + syst_end - 16, SFI_ADDR + cpus_table);
    stq_le_p(sfi->data + syst_end - 8, SFI_ADDR + apic);
    sfi_finish(sfi->data, syst_end);
    rom_add_blob_fixed("knc-sfi", sfi->data, sfi->len, SFI_ADDR);
}

static void boot_e820_add(uint8_t *params, uint64_t addr, uint64_t size,
                          uint32_t type)
{
    uint8_t *e = params + PARAM_E820 + E820_ENTRY * params[PARAM_E820_COUNT]++;

    stq_le_p(e, addr);
    stq_le_p(e + 8, size);
    stl_le_p(e + 16, type);
}

static void boot_e820(uint8_t *params, uint64_t below_4g, uint64_t above_4g)
{
    boot_e820_add(params, 0, LOW_END, E820_RAM);
    boot_e820_add(params, SFI_ADDR, KERNEL_ADDR - SFI_ADDR, E820_RESERVED);
    boot_e820_add(params, KERNEL_ADDR, below_4g - KERNEL_ADDR, E820_RAM);
    if (above_4g) {
        boot_e820_add(params, 4 * GiB, above_4g, E820_RAM);
    }
}

static void *boot_read(const char *file, gsize *size)
{
    g_autoptr(GError) error = NULL;
    char *data;

    if (!g_file_get_contents(file, &data, size, &error)) {
        error_report("%s", error->message);
        exit(1);
    }
    return data;
}

static void boot_initrd(uint8_t *params, const char *file, uint64_t end,
                        hwaddr kernel_end, bool mainline)
{
    g_autofree void *data = NULL;
    uint64_t max = ldl_le_p(params + RAMDISK_MAX) + 1ull;
    hwaddr addr;
    gsize size;

    data = boot_read(file, &size);
    max = MIN(max, end);
    addr = max > size ? ROUND_DOWN(max - size, PAGE) : 0;
    if (mainline && addr > INITRD_ADDR) {
        addr = INITRD_ADDR;
    }
    if (addr < kernel_end) {
        error_report("%s: does not fit in memory", file);
        exit(1);
    }
    rom_add_blob_fixed("knc-initrd", data, size, addr);
    stl_le_p(params + RAMDISK_ADDR, addr);
    stl_le_p(params + RAMDISK_SIZE, size);
}

/* The host appends where the console is. */
static void boot_cmdline(uint8_t *params, const char *given, hwaddr addr,
                         bool mainline)
{
    g_autofree char *console = mainline ?
        g_strdup_printf("memmap=%dK$0x%x phi.ring=0x%x,0x%x",
                        KNC_RING_SIZE / 1024, KNC_RING_BASE, KNC_RING_BASE,
                        KNC_RING_SIZE) :
        g_strdup_printf("vcons_hdr_addr=0x%llx", KNC_CONSOLE_BASE);
    g_autofree char *cmdline = g_strdup_printf("%s %s", given ?: "", console);

    if (strlen(cmdline) >= CMDLINE_SIZE) {
        error_report("-append: longer than %d characters", CMDLINE_SIZE - 1);
        exit(1);
    }
    rom_add_blob_fixed("knc-cmdline", cmdline, strlen(cmdline) + 1, addr);
    stl_le_p(params + CMDLINE_PTR, addr);
}

static gsize boot_check(const char *file, const uint8_t *image, gsize size)
{
    gsize setup;

    if (size < PARAM_E820 || lduw_le_p(image + BOOT_FLAG) != 0xaa55 ||
        memcmp(image + HEADER_MAGIC, "HdrS", 4) ||
        lduw_le_p(image + HEADER_VERSION) < VERSION_MIN) {
        error_report("%s: is not a bzImage", file);
        exit(1);
    }
    setup = ((image[SETUP_SECTS] ?: 4) + 1) * 512;
    if (size <= setup + ENTRY_64) {
        error_report("%s: ends after %zu bytes", file, size);
        exit(1);
    }
    return setup;
}

/*
 * Where the kernel ends, and what it needs until it knows its memory.  It may
 * move from where it was loaded to where it wants to be, or to what is aligned.
 */
static hwaddr boot_kernel_end(const uint8_t *image, hwaddr addr, hwaddr end,
                              bool mainline)
{
    if (lduw_le_p(image + HEADER_VERSION) >= VERSION_INIT) {
        hwaddr runs = mainline ? addr + ldl_le_p(image + ALIGNMENT) :
                                 ldq_le_p(image + PREFERRED_ADDR);

        end = MAX(end, runs + ldl_le_p(image + INIT_SIZE));
    }
    return end;
}

hwaddr knc_boot_load(MachineState *machine, DeviceState *sbox,
                     uint64_t below_4g, bool mainline)
{
    g_autofree uint8_t *params = g_malloc0(PARAMS_SIZE);
    g_autofree uint8_t *image = NULL;
    const char *file = machine->kernel_filename;
    uint64_t room = mainline ? KNC_RING_BASE : below_4g;
    hwaddr start, end, cmdline = CMDLINE_ADDR;
    gsize size, setup;

    if (!file) {
        error_report("-M knc has no firmware: it needs a -kernel");
        exit(1);
    }
    image = boot_read(file, &size);
    setup = boot_check(file, image, size);
    start = mainline ? DOWNLOAD_ADDR + setup : KERNEL_ADDR;
    end = start + size - setup;
    if (mainline) {
        cmdline = end;
        end += CMDLINE_SIZE;
        /* The address, the APIC ID that boots, and that it is ready */
        qdev_prop_set_uint32(sbox, "download", DOWNLOAD_ADDR | 1 |
                             (machine->smp.cpus - machine->smp.threads) << 1);
        qdev_prop_set_uint32(sbox, "size", size);
    }
    end = boot_kernel_end(image, start, end, mainline);
    if (end > room) {
        error_report("%s: does not fit in memory: it ends at 0x%" HWADDR_PRIx
                     ", the limit is 0x%" PRIx64, file, end, room);
        exit(1);
    }
    rom_add_blob_fixed("knc-kernel", image + setup, size - setup, start);

    memcpy(params + PARAM_HEADER, image + PARAM_HEADER,
           HEADER_MAGIC + image[HEADER_JUMP_SIZE] - PARAM_HEADER);
    params[LOADER] = LOADER_UNKNOWN;
    if (mainline) {
        params[LOAD_FLAGS] |= KEEP_SEGMENTS;
    }
    boot_cmdline(params, machine->kernel_cmdline, cmdline, mainline);
    boot_e820(params, below_4g, machine->ram_size - below_4g);
    if (machine->initrd_filename) {
        boot_initrd(params, machine->initrd_filename, room, end, mainline);
    }
    rom_add_blob_fixed("knc-boot-params", params, PARAMS_SIZE, PARAMS_ADDR);
    boot_page_tables();
    boot_gdt(mainline);
    boot_sfi(machine);
    return start + (mainline ? 0 : ENTRY_64);
}

void knc_boot_cpu(CPUX86State *env, hwaddr entry, bool mainline)
{
    int data = DESC_P_MASK | DESC_S_MASK | DESC_G_MASK | DESC_B_MASK |
               DESC_W_MASK | DESC_A_MASK;

    if (mainline) {
        cpu_x86_update_cr0(env, CR0_ET_MASK | CR0_PE_MASK);
    } else {
        cpu_x86_update_cr4(env, CR4_PAE_MASK);
        cpu_x86_update_cr3(env, TABLES_ADDR);
        cpu_load_efer(env, MSR_EFER_LME);
        cpu_x86_update_cr0(env, CR0_PG_MASK | CR0_ET_MASK | CR0_PE_MASK);
    }
    env->gdt.base = GDT_ADDR;
    env->gdt.limit = GDT_TSS + 15;
    env->idt.limit = 0;
    cpu_x86_load_seg_cache(env, R_CS, BOOT_CS, 0, 0xffffffff,
                           DESC_P_MASK | DESC_S_MASK | DESC_G_MASK |
                           (mainline ? DESC_B_MASK : DESC_L_MASK) |
                           DESC_CS_MASK | DESC_R_MASK | DESC_A_MASK);
    for (int i = 0; i < 6; i++) {
        if (i != R_CS) {
            cpu_x86_load_seg_cache(env, i, BOOT_CS + 8, 0, 0xffffffff, data);
        }
    }
    env->regs[R_ESI] = PARAMS_ADDR;
    env->eip = entry;
}
