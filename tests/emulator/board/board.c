// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the card's kernel relies on, checked without any kernel: the boot protocol and the
 * tables, the SBOX, the local APIC, the console's rings, and the vectors; and the same of a
 * mainline kernel. Nothing here is shared with the emulator. Results go to the console. What
 * follows are the differences from a PC (pc.c), then the suites that the command line names.
 */
#include "../bare.h"

#define READ(type, a)	(*(volatile type *)(u64)(a))

#define CR0_PE		BIT(0)
#define CR0_EM		BIT(2)
#define CR0_TS		BIT(3)
#define CR0_PG		BIT(31)

#define DBOX_POST	(0x8007c0000ul + 0x242c)
#define SBOX		0x8007d0000ul
#define HOST_WINDOW	0x8001000000ul
#define ISA_PORTS	0x8002000000ul
#define ETC_LOW		0x1074
#define ETC_HIGH	0x1078
#define THERMAL_STATUS	0x107c
#define ETC_FREEZE	BIT(31)
#define CLOCK_RATIO	0x402c
#define IOAPIC		0xa800
#define IOAPIC_ENTRIES	26
#define ICR0		0xa9d0
#define ICRS		8
#define ICR_SEND	BIT(13)
#define ICR_MASKED	BIT(16)
#define SCRATCH(n)	(0xab20 + 4 * (n))
#define DOORBELL1	0xcc94
#define DOORBELL_REQUEST	BIT(31)
#define STATE_POWER_OFF	2
#define STATE_CRASH	0xdead

#define APIC_LDR	0xd0
#define ICR_LOWEST	(1 << 8)
#define ICR_INIT	(5 << 8)
#define ICR_STARTUP	(6 << 8)
#define ICR_LOGICAL	BIT(11)
#define ICR_ASSERT	BIT(14)
#define ICR_LEVEL	BIT(15)
#define ICR_OTHERS	(3 << 18)

#define HOST_READY	0xbad0
#define CARD_READY	0xc0de
#define HOST_OPEN	0xbad1
#define HVC		2
#define VEC_FIXED	0x40
#define VEC_HVC		0x50

#define E820_RAM	1

/* A mainline kernel's: where the image is, and two characters */
#define DOWNLOAD	0x4000000
#define POST(a, b)	((a) | (b) << 8)

/* The rings' headers: the host's, and the card's */
struct host_header {
	u32 host_magic, card_magic;
	u16 host_version, card_version;
	u32 unused;
	u64 out_addr;
	u32 out_write, out_size;
	u64 in_header, in_addr;
	u32 in_read, in_size;
};

struct card_header {
	u32 out_read, in_write, host_status;
};

/* A mainline kernel's, one for each direction */
struct ring {
	u32 magic, size, unused1[14];
	u32 head, unused2[15];
	u32 tail, unused3[15];
	u8 data[];
};

struct vectors {
	u64 vector[32][8];
	u32 mask[8];
} __attribute__((aligned(64)));

extern u64 pml4[512], pdpt[512], pd[4 * 512];

void vectors_save(struct vectors *to);
void vectors_load(const struct vectors *from);
void map_memory(void);

/* What head.S has found at the entry for mainline kernels */
u32 entry_cr0, entry_flags, entry_address;

static u64 pdpt_host[512] __attribute__((aligned(4096)));
static u64 far_pd[2][512] __attribute__((aligned(4096)));
static volatile struct host_header *host;
static volatile struct ring *ring_in, *ring_out;
static const u32 *region;
static struct card_header card;
static u8 input[4096];
static u8 *boot_params;
static volatile u32 came[MAX_CPUS], input_irqs;
static u32 cpus;

const struct window windows[] = {
	{ APIC, 4096 }, { SBOX, 0x10000 }, { SBOX + IOAPIC, 0x240 },
	{ ISA_PORTS + TESTDEV, 32 },
	{ HOST_WINDOW, sizeof(struct host_header) }, { HOST_WINDOW, 8192 },
};

const u32 windows_quiet = 4, windows_all = ARRAY_SIZE(windows);

/* The machine */

static u32 sbox(u32 reg)
{
	return READ(u32, SBOX + reg);
}

static void sbox_write(u32 reg, u32 val)
{
	READ(u32, SBOX + reg) = val;
}

/* The chip's DELAY, of 1000 cycles: a microsecond */
void relax(void)
{
	asm volatile(ASM_DELAY : : "a"(1000) : "memory");
}

static void wait_us(u32 us)
{
	while (us--)
		relax();
}

static void interrupts_on(void)
{
	asm volatile("sti" : : : "memory");
}

static void interrupts_off(void)
{
	asm volatile("cli" : : : "memory");
}

static void post(u32 code)
{
	READ(u32, DBOX_POST) = code;
}

/* The system is off, or has crashed: the host is told. */
void quit(int failed)
{
	if (entry_cr0)
		post(failed ? POST('K', 'P') : POST('K', 'H'));
	else
		sbox_write(DOORBELL1, (failed ? STATE_CRASH : STATE_POWER_OFF) | DOORBELL_REQUEST);
	for (;;)
		asm volatile("hlt");
}

/* The first 4 GiB as they are, and 1 GiB at the SBOX and at the host's window */
void map_memory(void)
{
	pml4[0] = (u64)pdpt | 7;
	pml4[1] = (u64)pdpt_host | 7;
	for (u64 i = 0; i < 4 * 512; i++)
		pd[i] = i << 21 | 0x87;
	for (u64 i = 0; i < 4; i++)
		pdpt[i] = (u64)(pd + 512 * i) | 7;
	pdpt[SBOX >> 30] = (u64)far_pd[0] | 7;
	pdpt_host[0] = (u64)far_pd[1] | 7;
	for (u64 i = 0; i < 512; i++) {
		far_pd[0][i] = 0x800000000 | i << 21 | 0x87;
		far_pd[1][i] = 0x8000000000 | i << 21 | 0x87;
	}
	pd[PAGED_AREA >> 21] = (u64)paged_table | 7;
}

/* The console */

static void ring_put(const char *s, u32 size)
{
	u32 head = ring_out->head;

	while (size--) {
		while (head - ring_out->tail == ring_out->size)
			relax();
		ring_out->data[head++ % ring_out->size] = *s++;
		if (head - ring_out->tail == ring_out->size || !size)
			ring_out->head = head;
	}
}

static void host_put(const char *s, u32 size)
{
	volatile struct card_header *header = &card;
	volatile char *ring = (char *)host->out_addr;
	u32 mask = host->out_size - 1, at = host->out_write;

	while (size--) {
		while (((at + 1) & mask) == header->out_read)
			relax();
		ring[at] = *s++;
		at = (at + 1) & mask;
		if (((at + 1) & mask) == header->out_read || !size)
			host->out_write = at;
	}
}

/* Each writes @size bytes, as many as there is room for at a time. */
void put(const char *s, u32 size)
{
	if (ring_out)
		ring_put(s, size);
	else
		host_put(s, size);
}

static void take_irq(struct regs *r)
{
	came[this_cpu()]++;
	input_irqs += r->vector == VEC_HVC;
	apic_write(APIC_EOI, 0);
}

void setup_machine(void)
{
	boot_params = (u8 *)(u64)boot_info;
	handlers[VEC_FIXED] = take_irq;
	handlers[VEC_HVC] = take_irq;
	cmdline = (char *)(u64)READ(u32, boot_params + 0x228);
	if (entry_cr0) {
		map_memory();
		/* The first channel is the console. */
		region = (u32 *)number_of("phi.ring=");
		ring_in = (struct ring *)((u8 *)region + region[18]);
		ring_out = (struct ring *)((u8 *)region + region[20]);
		return;
	}
	host = (struct host_header *)number_of("vcons_hdr_addr=");
	if (!host || host->host_magic != HOST_READY)
		quit(1);
	host->card_version = host->host_version;
	host->in_header = (u64)&card;
	host->in_addr = (u64)input;
	host->card_magic = CARD_READY;
}

const void *behind_program(void)
{
	return (void *)(u64)READ(u32, boot_params + 0x218);
}

SUITE(crash, "crash")
{
	quit(1);
}

/* What the bootstrap leaves */

static u64 e820_ram(void)
{
	u64 sum = 0;

	for (int i = 0; i < boot_params[0x1e8]; i++) {
		const u8 *e = boot_params + 0x2d0 + 20 * i;

		if (READ(u32, e + 16) == E820_RAM)
			sum += READ(u64, e + 8);
	}
	return sum;
}

static u8 sum(const u8 *table)
{
	u8 n = 0;

	for (u32 i = 0; i < READ(u32, table + 4); i++)
		n += table[i];
	return n;
}

static const u8 *sfi(const char *name)
{
	const u8 *syst = (u8 *)0xe0000;

	while (!same(syst, "SYST", 4) && syst < (u8 *)0x100000)
		syst += 16;
	if (same(name, "SYST", 4))
		return syst;
	for (u32 i = 24; i < READ(u32, syst + 4); i += 8) {
		const u8 *table = (u8 *)READ(u64, syst + i);

		if (same(table, name, 4))
			return table;
	}
	return 0;
}

SUITE(test_boot, "board")
{
	const u8 *list = sfi("CPUS"), *ioapic = sfi("APIC");
	u32 wrong = 0, r[4];

	check("boot: the header of the image is in the parameters",
	      same(boot_params + 0x202, "HdrS", 4), 1);
	check("boot: a type of loader", boot_params[0x210], 0xff);
	check("boot: the initrd's size", READ(u32, boot_params + 0x21c), 6);
	check("boot: the initrd", same((void *)(u64)READ(u32, boot_params + 0x218),
				       "initrd", 6), 1);
	check("boot: RAM in the memory map, except 640 KiB to 1 MiB",
	      e820_ram(), number_of("ram=") - 0x60000);

	check("sfi: SYST", sum(sfi("SYST")), 0);
	check("sfi: CPUS", sum(list), 0);
	check("sfi: APIC", sum(ioapic), 0);
	cpus = (READ(u32, list + 4) - 24) / 4;
	check("sfi: number of threads", cpus, number_of("threads="));
	for (u32 i = 0; i < cpus; i++)
		wrong += READ(u32, list + 24 + 4 * i) != i;
	check("sfi: IDs of threads", wrong, 0);
	check("sfi: the I/O APIC is in the SBOX", READ(u64, ioapic + 24), SBOX + IOAPIC);

	cpuid(1, r);
	check("cpuid: logical processors of the package", r[1] >> 16 & 0xff, 248);
}

SUITE(test_ports, "board")
{
	static const u16 some[] = { 0x20, 0x60, 0x71, 0x3f8, 0xcf8, 0xffff };
	u32 wrong = 0;

	for (u32 i = 0; i < ARRAY_SIZE(some); i++) {
		outb(some[i], 0);
		wrong += inb(some[i]) != 0xff;
	}
	check("ports: read as all ones", wrong, 0);
	/* knc-pmu-testdev: its magic number, "KNCP" */
	READ(u32, ISA_PORTS + TESTDEV) = 0;
	check("ports: those of the ISA bus are in memory", READ(u32, ISA_PORTS + TESTDEV + 4),
	      0x4b4e4350);
}

/* The SBOX */

static u64 etc_read(void)
{
	u32 high, low;

	do {
		high = sbox(ETC_HIGH);
		low = sbox(ETC_LOW);
	} while (high != sbox(ETC_HIGH));
	return low | (u64)high << 32;
}

SUITE(test_etc, "board")
{
	u64 tsc, etc, ratio, low5 = 0;

	etc = etc_read();
	tsc = rdtsc();
	for (int i = 0; i < 10000; i++) {
		low5 |= sbox(ETC_LOW) & 31;
		relax();
	}
	etc = etc_read() - etc;
	tsc = rdtsc() - tsc;
	check("sbox: bits 4:0 of the elapsed time", low5, 0);
	/* 2^5 each 64 ns: 500 a microsecond, which has the core's MHz cycles */
	ratio = sbox(CLOCK_RATIO);
	ratio = 4000 / (sbox(SCRATCH(4)) >> 25 & 31) * (ratio >> 1 & 0xff) /
		((ratio >> 9 & 3) == 3 ? 1 : (ratio >> 9 & 3) == 2 ? 2 : 4);
	check("sbox: the core's clock in MHz", ratio, 1000);
	check("sbox: elapsed time and TSC, in microseconds",
	      etc / 500 + 1 >= tsc / ratio && etc / 500 <= tsc / ratio + 1, 1);

	sbox_write(THERMAL_STATUS, ETC_FREEZE);
	etc = etc_read();
	wait_us(100);
	check("sbox: frozen elapsed time", etc_read() - etc, 0);
	check("sbox: says that it is frozen", sbox(THERMAL_STATUS), ETC_FREEZE);
	sbox_write(THERMAL_STATUS, 0);
	etc = etc_read() - etc;
	check("sbox: continues where it was", etc < 500, 1);
	etc = etc_read();
	wait_us(10);
	check("sbox: it counts again", etc_read() - etc >= 5000, 1);
}

SUITE(test_registers, "board")
{
	u32 wrong = 0;

	check("sbox: all threads of a core work", sbox(SCRATCH(4)) & 15, 15);
	check("ioapic: number of entries", sbox(IOAPIC + 4) >> 16 & 0xff,
	      IOAPIC_ENTRIES - 1);
	for (int i = 0; i < IOAPIC_ENTRIES; i++)
		wrong += sbox(IOAPIC + 0x40 + 8 * i) != ICR_MASKED;
	check("ioapic: entries are masked", wrong, 0);
	for (int i = 0; i < IOAPIC_ENTRIES; i++) {
		sbox_write(IOAPIC + 0x44 + 8 * i, 0xffffff00 + i);
		sbox_write(IOAPIC + 0x40 + 8 * i, 0xa930 + i);
	}
	for (int i = 0; i < IOAPIC_ENTRIES; i++) {
		wrong += sbox(IOAPIC + 0x40 + 8 * i) != 0xa930u + i;
		wrong += sbox(IOAPIC + 0x44 + 8 * i) != (u32)i;
		sbox_write(IOAPIC + 0x40 + 8 * i, ICR_MASKED);
	}
	check("ioapic: a direct array, with the destination in bits 7:0", wrong, 0);

	wrong = 0;
	for (u32 reg = 0; reg < 0x1000; reg += 4) {
		sbox_write(reg, 0xffffffff);
		wrong += sbox(reg) != 0;
	}
	check("sbox: unknown registers read as 0", wrong, 0);

	wrmsr(0xe, 0x1234);
	check("msr: TR12 keeps what is written", rdmsr(0xe), 0x1234);
	wrmsr(0xe, 0);
	wrmsr(0x7, 1);
	check("msr: TR5 takes commands", rdmsr(0x7), 0);
}

/* Other threads */

/* How many threads have started so often */
static u32 started(u32 times)
{
	u32 n = 0;

	for (u32 id = 0; id < cpus; id++)
		n += cpu_starts(id) == (int)times;
	return n;
}

/* INIT and SIPI to all others at once, as the card's kernel sends them */
static void start_all(u32 times)
{
	copy_trampoline();
	apic_write(APIC_ICR, ICR_OTHERS | ICR_LEVEL | ICR_ASSERT | ICR_INIT);
	wait_us(100);
	apic_write(APIC_ICR, ICR_OTHERS | ICR_LEVEL | ICR_INIT);
	apic_write(APIC_ICR, ICR_OTHERS | ICR_STARTUP | TRAMPOLINE >> 12);
	for (int i = 0; i < 20000 && started(times) < cpus - 1; i++)
		wait_us(10);
}

SUITE(test_threads, "board")
{
	u32 starts = 0;

	start_all(1);
	for (u32 id = 1; id < cpus; id++)
		starts += cpu_starts(id);
	check("threads: all up by one INIT and one SIPI", starts, cpus - 1);
	check("threads: each once", started(1), cpus - 1);
	for (u32 id = 1; id < cpus; id++)
		on_cpu(id, interrupts_on);
}

/* Interrupts of the SBOX, to thread 0 and, if there is one, 1 */
SUITE(test_sbox_interrupts, "board")
{
	u32 dest = cpus > 1, before, wrong = 0;

	for (int i = 0; i < ICRS; i++) {
		sbox_write(ICR0 + 8 * i + 4, dest);
		sbox_write(ICR0 + 8 * i, VEC_FIXED);
		wrong += sbox(ICR0 + 8 * i) != VEC_FIXED;
		wrong += sbox(ICR0 + 8 * i + 4) != dest;
	}
	check("sbox: registers of interrupts", wrong, 0);
	before = came[dest];
	interrupts_on();
	for (int i = 0; i < ICRS; i++) {
		sbox_write(ICR0 + 8 * i, VEC_FIXED | ICR_SEND);
		wait_us(50);
	}
	check("sbox: each sends its interrupt", came[dest] - before, ICRS);
	check("sbox: the order to send is not kept", sbox(ICR0), VEC_FIXED);
	sbox_write(ICR0, VEC_FIXED | ICR_MASKED | ICR_SEND);
	wait_us(50);
	check("sbox: none while masked", came[dest] - before, ICRS);
	check("sbox: the mask is kept", sbox(ICR0), VEC_FIXED | ICR_MASKED);
	interrupts_off();
}

/* The local APIC */

/* What a thread's own APIC has */
static volatile u32 told_id, told_ldr, told_icr2;

static void tell(void)
{
	told_id = apic_read(APIC_ID);
	told_ldr = apic_read(APIC_LDR);
	told_icr2 = apic_read(APIC_ICR2);
}

static void set_ldr(void)
{
	apic_write(APIC_LDR, BIT(this_cpu() % 16) << 16);
}

static void set_icr2(void)
{
	apic_write(APIC_ICR2, 0x12340000);
}

static void send(u32 dest, u32 command)
{
	apic_write(APIC_ICR2, dest << 16);
	apic_write(APIC_ICR, command | VEC_FIXED | ICR_ASSERT);
	wait_us(100);
}

/* The threads that got one interrupt since the last time, as a sum of id + 1 */
static u64 who(void)
{
	static u32 before[MAX_CPUS];
	u64 which = 0;

	for (u32 id = 0; id < cpus; id++) {
		which += (came[id] - before[id]) * (id + 1);
		before[id] = came[id];
	}
	return which;
}

SUITE(test_apic, "board")
{
	u32 last = cpus - 1, first_of_two, wrong = 0;

	for (u32 id = 1; id < cpus; id++) {
		on_cpu(id, set_ldr);
		on_cpu(id, tell);
		wrong += told_id != id << 23;
		wrong += told_ldr != BIT(id % 16) << 16;
	}
	check("apic: ID in 31:23, LDR in 31:16, of each thread", wrong, 0);
	set_ldr();
	interrupts_on();
	who();

	apic_write(APIC_ICR2, 0x12345678);
	check("apic: the destination has bits 31:16", apic_read(APIC_ICR2), 0x12340000);
	send(last, 0);
	check("apic: physical, the last thread", who(), cpus);
	send(0x100 + last, 0);
	check("apic: physical, a thread that no card has", who(), 0);
	send(0xffff, 0);
	check("apic: physical, all", who(), (u64)cpus * (cpus + 1) / 2);
	check("apic: the command can be read", apic_read(APIC_ICR) & 0xfff, VEC_FIXED);
	if (cpus > 10) {
		u64 tens = 0;

		for (u32 id = 10; id < cpus; id += 16)
			tens += id + 1;
		send(BIT(10), ICR_LOGICAL);
		check("apic: logical, bit 10 of 16", who(), tens);
	}
	send(BIT(1) | BIT(3), ICR_LOGICAL | ICR_LOWEST);
	first_of_two = who();
	check("apic: logical, lowest priority: one of them",
	      first_of_two == 2 || first_of_two == 4, 1);
	apic_write(APIC_ICR, ICR_OTHERS | ICR_ASSERT | VEC_FIXED);
	wait_us(100);
	check("apic: all but self", who(), (u64)cpus * (cpus + 1) / 2 - 1);
	interrupts_off();
}

/* Vectors */

static struct vectors in[2], out[2];
static u32 words[32] __attribute__((aligned(64)));
static u8 fx[512] __attribute__((aligned(16)));

static void fill(struct vectors *v, u64 seed)
{
	u64 *words = (u64 *)v;

	for (u32 i = 0; i < 32 * 8; i++)
		words[i] = (seed + i) * 0x9e3779b97f4a7c15ul;
	for (u32 i = 0; i < 8; i++)
		v->mask[i] = (seed * 31 + i * 0x1357) & 0xffff;
}

static void load1(void)
{
	vectors_load(&in[1]);
}

static void save1(void)
{
	vectors_save(&out[1]);
}

/* The vector of the fault of an instruction with @a in %rdi, or -1 */
static int move(code *insn, const void *a)
{
	return faults((void (*)(u64, u64))insn, (u64)a, 0);
}

SUITE(test_vectors, "vectors")
{
	fill(&in[0], 1);
	fill(&in[1], 1000);
	vectors_load(&in[0]);
	on_cpu(1, load1);
	vectors_save(&out[0]);
	on_cpu(1, save1);
	check("vectors: 32, and 8 masks, saved and restored",
	      same(&in[0], &out[0], sizeof(*in)), 1);
	check("vectors: each thread has its own", same(&in[1], &out[1], sizeof(*in)), 1);
	in[0].mask[3] |= 0xabcd0000;
	vectors_load(&in[0]);
	vectors_save(&out[0]);
	check("vectors: masks have 16 bits", out[0].mask[3], in[0].mask[3] & 0xffff);
	in[0].mask[3] &= 0xffff;

	for (u32 i = 0; i < sizeof(fx); i++)
		fx[i] = 0x55;
	write_cr4(read_cr4() | 0x200);
	asm volatile("fninit; fxsave %0; fxrstor %0" : "+m"(fx));
	vectors_load(&in[0]);
	for (u32 i = 160; i < 416; i++)
		fx[i] = i;
	asm volatile("fxrstor %0" : : "m"(fx));
	vectors_save(&out[0]);
	for (u32 i = 0; i < 32; i++) {
		in[0].vector[i][0] = 0;
		in[0].vector[i][1] = 0;
	}
	check("vectors: FXRSTOR clears bits 127:0", same(&in[0], &out[0], sizeof(*in)), 1);
	for (u32 i = 160; i < 416; i++)
		fx[i] = 0x55;
	asm volatile("fxsave %0" : "+m"(fx));
	check("vectors: FXSAVE does not save them", fx[160] == 0x55 && fx[415] == 0x55, 1);
}

/* %zmm17 from (%rdi), and to it, and a return */
static code *const vmovapd = INSN(0x62, 0xe1, 0xf9, 0x08, 0x28, 0x0f);
static code *const vmovnrngoapd = INSN(0x62, 0xe1, 0xfa, 0x88, 0x29, 0x0f);
static code *const vloadunpackld = INSN(0x62, 0xe2, 0x78, 0x08, 0xd0, 0x0f);
/* From 64(%rdi): the displacement counts elements. */
static code *const vloadunpackhd = INSN(0x62, 0xe2, 0x78, 0x08, 0xd4, 0x4f, 16);

/* vmovaps (%rdi), %zmm0 and back; kmov %eax, %k1 and back */
#define LOAD		INSN(0x62, 0xf1, 0x78, 0x08, 0x28, 0x07)
#define STORE		INSN(0x62, 0xf1, 0x78, 0x08, 0x29, 0x07)
#define KMOV		INSN(0xc5, 0xf8, 0x92, 0xc8)
#define KMOV_BACK	INSN(0xc5, 0xf8, 0x93, 0xc1)

/* There is a page with the words, and none behind it. */
#define NO_PAGE		((u8 *)PAGED_AREA + 4096)

static const struct {
	const char *name;
	code *insn;
	const void *at;
	u64 cr0;
	int fault;
} moves[] = {
	{ "load while TS is set", LOAD, out, CR0_TS, NM },
	{ "load while EM is set", LOAD, out, CR0_EM, UD },
	{ "load of what is not aligned", LOAD, (u8 *)out + 32, 0, GP },
	{ "load from no page", LOAD, NO_PAGE + 64, 0, PF },
	{ "store while TS is set", STORE, out, CR0_TS, NM },
	{ "store to what is not aligned", STORE, (u8 *)out + 8, 0, GP },
	{ "store to no page", STORE, NO_PAGE, 0, PF },
	{ "kmov while TS is set", KMOV, 0, CR0_TS, NM },
	{ "kmov back while TS is set", KMOV_BACK, 0, CR0_TS, NM },
	{ "kmov of 64 bits", INSN(0xc4, 0xe1, 0xf8, 0x92, 0xc8), 0, 0, UD },
	{ "between them while TS is set", INSN(0x62, 0xf1, 0x78, 0x08, 0x28, 0xc1), out, CR0_TS,
	  NM },
	{ "after a prefix", INSN(0x66, 0x62, 0xf1, 0x78, 0x08, 0x28, 0x07), out, 0, UD },
	{ "a prefix of zeros", INSN(0x62, 0xf0, 0, 0, 0x18, 0x0f), out, 0, UD },
	{ "vloadunpackld of half words", vloadunpackld, (u8 *)out + 2, 0, GP },
	{ "vloadunpackld while TS is set", vloadunpackld, words, CR0_TS, NM },
	{ "vloadunpacklq of words", INSN(0x62, 0xe2, 0xf8, 0x08, 0xd0, 0x0f), words + 1, 0, GP },
	{ "vloadunpackld from no page", vloadunpackld, NO_PAGE, 0, PF },
	{ "vloadunpackld from the end of a page", vloadunpackld, NO_PAGE - 4, 0, -1 },
	{ "vloadunpackhd from the next one", vloadunpackhd, NO_PAGE - 4, 0, PF },
	{ "vloadunpackhd of nothing there", vloadunpackhd, NO_PAGE - 64, 0, -1 },
};

SUITE(test_moves, "vectors")
{
	u64 old = read_cr0();

	paged_table[0] = ((u64)words & ~4095ul) | 7;
	for (u32 i = 0; i < ARRAY_SIZE(moves); i++) {
		write_cr0(old | moves[i].cr0);
		check(text("vectors: %s", moves[i].name),
		      move(moves[i].insn, moves[i].at), moves[i].fault);
		write_cr0(old);
	}
	paged_table[0] = 0;
}

/* As the cards' kernel does it: the first use of the unit after a switch of tasks */
static u32 uses;

static void take_unit(struct regs *r)
{
	(void)r;
	write_cr0(read_cr0() & ~CR0_TS);
	uses++;
}

SUITE(test_lazy, "vectors")
{
	/* vpaddd %zmm2, %zmm1, %zmm1 */
	code *add = INSN(0x62, 0xf1, 0x71, 0x08, 0xfe, 0xca);
	u32 *sum = (u32 *)in[0].vector[1], *more = (u32 *)in[0].vector[2];

	vectors_load(&in[0]);
	handlers[NM] = take_unit;
	write_cr0(read_cr0() | CR0_TS);
	add();
	add();
	handlers[NM] = 0;
	check("vectors: #NM at the first use after a switch", uses, 1);
	for (u32 i = 0; i < 16; i++)
		sum[i] += 2 * more[i];
	vectors_save(&out[0]);
	check("vectors: it is executed then", same(&in[0], &out[0], sizeof(*in)), 1);
}

/* Code that has been executed, and is overwritten by one store */
SUITE(test_new_code, "vectors")
{
	static const u8 places[] = { 0, 16, 32, 48, 58 };
	static u8 line[2][64] __attribute__((aligned(64)));
	u32 sum[2] = { };

	for (u32 round = 0; round < 2; round++) {
		for (u32 i = 0; i < ARRAY_SIZE(places); i++) {
			u8 *at = &line[1][places[i]];

			at[0] = 0xb8; /* movl $(1 or 256), %eax; ret */
			*(u32 *)(at + 1) = round ? 256 : 1;
			at[5] = 0xc3;
		}
		move(vmovapd, line[1]);
		move(vmovnrngoapd, line[0]);
		for (u32 i = 0; i < ARRAY_SIZE(places); i++)
			sum[round] += ((int (*)(void))&line[0][places[i]])();
	}
	check("vectors: a store of code", sum[0], ARRAY_SIZE(places));
	check("vectors: a store over it", sum[1], 256 * ARRAY_SIZE(places));
}

/* The console */

/* More than the ring, in lines that the test knows */
SUITE(test_output, "vectors")
{
	for (int n = 0; n < 1500; n++)
		print("line %d%d%d%d of the console's ring, as wide as that\n", n / 1000,
		      n / 100 % 10, n / 10 % 10, n % 10);
}

static u8 host_get(void)
{
	volatile struct card_header *header = &card;
	u32 at = host->in_read;
	u8 c;

	while (at == header->in_write)
		relax();
	c = input[at];
	host->in_read = (at + 1) % sizeof(input);
	return c;
}

static u8 ring_get(void)
{
	u8 c;

	while (ring_in->head == ring_in->tail)
		relax();
	c = ring_in->data[ring_in->tail % ring_in->size];
	ring_in->tail++;
	return c;
}

/* Bytes that are not "begin\n", then the alphabet without end: more than the ring has */
static u32 wrong_input(u8 (*get)(void))
{
	static const u8 first[] = "begin\n";
	u32 wrong = 0;

	print("type\n");
	for (u32 n = 0; n < 10000; n++)
		wrong += get() != (n < 6 ? first[n] : 'a' + (n - 6) % 26);
	return wrong;
}

SUITE(test_input, "vectors")
{
	check("console: the host has opened it", card.host_status, HOST_OPEN);
	check("console: its ring", host->out_size, 4096);
	sbox_write(ICR0 + 8 * HVC + 4, 0);
	sbox_write(ICR0 + 8 * HVC, VEC_HVC);
	/* Not before: input interrupts, and other tests count interrupts. */
	host->in_size = sizeof(input);
	host->in_read = 0;
	interrupts_on();
	check("console: each byte of the input", wrong_input(host_get), 0);
	interrupts_off();
	check("console: interrupts came with it", input_irqs > 1, 1);
}

/* The host writes to the card's memory, and to nothing else that is there. */
SUITE(test_no_memory, "vectors")
{
	u64 icr2 = APIC + APIC_ICR2;

	set_icr2();
	host->in_header = (u64)&host->out_write;
	host->out_write = host->out_write;
	host->in_header = icr2;
	host->out_write = host->out_write;
	host->in_header = (u64)&card;
	check("console: it writes to no device", apic_read(APIC_ICR2), 0x12340000);
}

SUITE(test_threads_again, "board")
{
	on_cpu(1, set_icr2);
	start_all(2);
	check("threads: INIT and SIPI start them again", started(2), cpus - 1);
	on_cpu(1, tell);
	check("apic: INIT has cleared the LDR", told_ldr, 0);
	check("apic: and the ICR", told_icr2, 0);
}

SUITE(test_vectors_kept, "vectors")
{
	on_cpu(1, save1);
	check("vectors: INIT leaves them", same(&in[1], &out[1], sizeof(*in)), 1);
}

/* A mainline kernel */

/* Read on a card, except the clock: there it has 0x16, for 1100 MHz */
static const struct {
	u32 reg, value;
} on_card[] = {
	{ 0x402c, 0x04140414 }, { 0x4100, 0x80010414 }, { 0x4104, 0xab }, { 0x3004, 0 },
	{ SCRATCH(0), 0x02e80000 }, { SCRATCH(1), 0 }, { SCRATCH(4), 0x2800e6cf },
	{ SCRATCH(6), 0x02000403 }, { SCRATCH(8), 0x8086 }, { SCRATCH(13), 0xb120 },
};

SUITE(test_mainline, "mainline")
{
	u32 id = this_cpu(), wrong = 0;

	check("mainline: protected mode without paging", entry_cr0 & (CR0_PG | CR0_PE), CR0_PE);
	check("mainline: interrupts are off", entry_flags & BIT(9), 0);
	check("mainline: KEEP_SEGMENTS", boot_params[0x211] & BIT(6), BIT(6));
	check("mainline: the image is at 64 MiB", entry_address, DOWNLOAD + 1024);
	check("mainline: the command line follows it", (u64)cmdline, DOWNLOAD + sbox(SCRATCH(5)));
	check("mainline: the initrd is at 128 MiB", READ(u32, boot_params + 0x218), 2 * DOWNLOAD);
	test_boot();
	check("mainline: the first thread of the last core boots", id, cpus - 4);
	check("mainline: its APIC says so", rdmsr(MSR_APIC_BASE) & BIT(8), BIT(8));
	check("mainline: the loader knows it", sbox(SCRATCH(2)), DOWNLOAD | id << 1 | 1);
	for (u32 i = 0; i < ARRAY_SIZE(on_card); i++)
		wrong += sbox(on_card[i].reg) != on_card[i].value;
	check("mainline: registers that were read on a card", wrong, 0);
	check("mainline: the bootstrap's last POST code", READ(u32, DBOX_POST), POST('F', 'F'));
	post(POST('K', '0'));
	check("mainline: a POST code of ours", READ(u32, DBOX_POST), POST('K', '0'));

	start_all(1);
	check("mainline: the others start, thread 0 as well", started(1), cpus - 1);
}

SUITE(test_rings, "mainline")
{
	check("ring: the region", same(region, "PHIR", 4) && region[1] == 1 &&
	      region[2] == 1 << 20 && region[3] == 1, 1);
	check("ring: its channel is a console", region[16], 1);
	check("ring: the host's time, 2020-01-01", READ(u64, region + 4), 1577836800000000000);
	READ(u64, region + 6) = 1;
	check("ring: the card's flags are kept", READ(u64, region + 6), 1);
	check("ring: magic numbers and sizes", ring_in->magic == ring_out->magic &&
	      same((void *)&ring_in->magic, "RING", 4) && ring_in->size == region[19] &&
	      ring_out->size == region[21], 1);
	check("ring: each byte of the input", wrong_input(ring_get), 0);
	test_output();
}
