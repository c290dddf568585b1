// SPDX-License-Identifier: GPL-2.0-only
/*
 * A fixed piece of work over 2 MiB of memory, which scripts/bench-emulator times: sorting, a
 * checksum, a list, a matrix and calls. The result only shows that the work has been done.
 */
#include "bare.h"

#define WORDS	(64 * 1024)
#define BYTES	(1024 * 1024)
#define SIZE	96
#define ROUNDS	12

static u32 words[WORDS];
static u8 bytes[BYTES];
static u32 crc_table[256];
static u32 a[SIZE][SIZE], b[SIZE][SIZE], c[SIZE][SIZE];
static struct node { struct node *next; u64 value; } nodes[WORDS];

static u32 seed;

static u32 random(void)
{
	seed = seed * 1664525 + 1013904223;
	return seed >> 8;
}

static void sort(u32 *v, long lo, long hi)
{
	while (lo < hi) {
		u32 pivot = v[lo + (hi - lo) / 2];
		long i = lo, j = hi;

		while (i <= j) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i <= j) {
				u32 t = v[i];

				v[i++] = v[j];
				v[j--] = t;
			}
		}
		sort(v, lo, j);
		lo = i;
	}
}

static u32 checksum(void)
{
	u32 crc = ~0u;

	for (int i = 0; i < BYTES; i++)
		crc = crc_table[(crc ^ bytes[i]) & 0xff] ^ crc >> 8;
	return crc;
}

static u64 list(void)
{
	u64 sum = 0;

	for (int i = 0; i < WORDS; i++) {
		nodes[i].next = &nodes[i * 40503l % WORDS];
		nodes[i].value = i;
	}
	for (struct node *n = nodes + 1, *end = n + WORDS - 2; n < end; n++)
		sum += n->next->value;
	return sum;
}

static u32 matrix(void)
{
	u32 trace = 0;

	for (int i = 0; i < SIZE; i++)
		for (int j = 0; j < SIZE; j++) {
			u32 sum = 0;

			for (int k = 0; k < SIZE; k++)
				sum += a[i][k] * b[k][j];
			c[i][j] = sum;
		}
	for (int i = 0; i < SIZE; i++)
		trace += c[i][i];
	return trace;
}

static u32 __attribute__((noinline)) fibonacci(u32 n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static u64 work(void)
{
	u64 sum = 0;

	seed = 1;
	for (int i = 0; i < 256; i++) {
		u32 r = i;

		for (int j = 0; j < 8; j++)
			r = r & 1 ? r >> 1 ^ 0xedb88320 : r >> 1;
		crc_table[i] = r;
	}
	for (int n = 0; n < ROUNDS; n++) {
		for (int i = 0; i < WORDS; i++)
			words[i] = random();
		for (int i = 0; i < BYTES; i++)
			bytes[i] = i * n;
		for (int i = 0; i < SIZE; i++)
			for (int j = 0; j < SIZE; j++) {
				a[i][j] = random();
				b[i][j] = random();
			}
		sort(words, 0, WORDS - 1);
		sum += words[WORDS / 2] + checksum() + list() + matrix() +
		       fibonacci(24);
	}
	return sum;
}

SUITE(bench_off, "bench-off")
{
	u64 start, end, sum;

	work();		/* QEMU translates it */
	start = rdtsc();
	sum = work();
	end = rdtsc();
	print("time %ld result %lx\n", end - start, sum);
}

static void bench(u64 event0, u64 event1)
{
	wrmsr(MSR_SEL0, event0 | SEL_OS | SEL_USR | SEL_EN);
	wrmsr(MSR_SEL1, event1 | SEL_OS | SEL_USR | SEL_EN);
	wrmsr(MSR_GLOBAL, 3);
	bench_off();
	pmu_quiet();
}

SUITE(bench_count, "bench-count")
{
	bench(EV_INSTRUCTIONS, EV_CYCLES);
}

SUITE(bench_cache, "bench-cache")
{
	bench(EV_DATA_READ_MISS, EV_DATA_WRITE_MISS);
}

/* A sample each 500 misses: an overflow is always near. */
#define PERIOD	500

static u64 samples;

static void sample(struct regs *r)
{
	wrmsr(MSR_GLOBAL, 0);
	wrmsr(MSR_OVF, 1);
	apic_write(APIC_LVTPC, LVT_NMI);
	wrmsr(MSR_CNT0, WRAP - PERIOD);
	samples++;
	wrmsr(MSR_GLOBAL, 3);
}

SUITE(bench_sample, "bench-sample")
{
	handlers[2] = sample;
	overflow_after(PERIOD, 0, LVT_NMI);
	bench(EV_DATA_READ_MISS | SEL_INT, EV_DATA_WRITE_MISS);
	handlers[2] = 0;
	result(samples > 100, "bench: samples", "%ld", samples);
}

/* Sixteen instructions in a loop, on registers, or on a page of memory at %rdi */
#define REPEAT(n, insn) do {						\
	u32 left;							\
									\
	asm volatile("1:\n\t.irp i, 0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7\n\t"	\
		     insn "\n\t.endr\n\tdecl %0\n\tjnz 1b"			\
		     : "=r"(left) : "0"(n), "D"(floats) : "memory", "cc");	\
} while (0)

#define LOOPS		2000000

static float floats[256] __attribute__((aligned(64)));

static void begin_floats(void)
{
	/* Of a row that comes close to 1, which no operation leaves exact */
	for (u32 i = 0; i < ARRAY_SIZE(floats); i++)
		*(u32 *)&floats[i] = i % 64 < 32 ? 0x3f7ff000 : 0x3a800001;
}

/* Four times as many instructions for as many floats */
SUITE(bench_mulps, "bench-mulps")
{
	begin_floats();
	asm volatile("movaps (%0), %%xmm8; movaps 128(%0), %%xmm9" : : "D"(floats));
	REPEAT(LOOPS * 4, "mulps %%xmm8, %%xmm\\i; addps %%xmm9, %%xmm\\i");
}

SUITE(bench_vfmadd, "bench-vfmadd")
{
	begin_floats();
	asm volatile(".byte 0x62, 0x71, 0x78, 0x08, 0x28, 0x07 /* vmovaps (%%rdi), %%zmm8 */\n\t"
		     ".byte 0x62, 0x71, 0x78, 0x08, 0x28, 0x4f, 2 /* 128(%%rdi), %%zmm9 */"
		     : : "D"(floats));
	/* vfmadd213ps %zmm9, %zmm8, %zmm0 to 7 */
	REPEAT(LOOPS, ".byte 0x62, 0xd2, 0x39, 0x08, 0xa8, 0xc1 + 8 * \\i");
}

#define MOVES(fn, name, insn)						\
	static void fn(void);						\
	SUITE(fn, name) { REPEAT(LOOPS, insn); }

MOVES(movaps_load, "bench-movaps-load", "movaps 64 * \\i(%%rdi), %%xmm\\i")
MOVES(movaps_store, "bench-movaps-store", "movaps %%xmm\\i, 64 * \\i(%%rdi)")
MOVES(vmovaps_load, "bench-vmovaps-load",
      ".byte 0x62, 0xf1, 0x78, 0x08, 0x28, 0x47 + 8 * \\i, \\i")
MOVES(vmovaps_store, "bench-vmovaps-store",
      ".byte 0x62, 0xf1, 0x78, 0x08, 0x29, 0x47 + 8 * \\i, \\i")
