// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cases of the vector unit, which vectors.py puts behind the program: the state before each, the
 * code, and the state that is expected. Each runs in ring 0, and in ring 3 with two of the unit's
 * events counted. What differs is printed, for vectors.py to judge.
 */
#include "bare.h"

#define CHUNK		64
#define MEMORY		4		/* its page; those beside it are not there */
#define MEMORY_SIZE	1024
#define BEHIND		0xa5		/* in the rest of the page */
#define ARITHMETIC	0x8d5		/* of RFLAGS */
#define FLAGS_GIVEN	BIT(32)
#define STICKY		0x3f		/* of MXCSR */
#define CPUID_XSAVE	BIT(26)
#define CR4_OSXSAVE	BIT(18)
#define XCR0_ALL	0xe7		/* x87, SSE, YMM, and the three of AVX-512 */

struct image {
	u64 vector[32][8];
	u32 mask[8];
	u64 reg[16];
	u64 flags;
	u32 mxcsr, unused[21];
	u8 memory[MEMORY_SIZE];
};

/* Then the code, and so many patches of the state before, and of the expected one */
struct one {
	u32 size, code_size, before, after;
	u8 code[];
};

struct patch {
	u16 at, size;
	u8 bytes[];
};

struct file {
	u32 magic, count;	/* "VCAS" */
	struct image defaults;
	struct one first;
};

extern u8 case_code[4096];
extern code case_body;
extern char case_end[];
void case_load(const struct image *image);
void case_save(struct image *image);

struct image case_now __attribute__((aligned(64)));
static struct image before, wanted __attribute__((aligned(64)));
static u64 fault, fault_error;

static void copy(void *to, const void *from, u32 size)
{
	asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

static void note_fault(struct regs *r)
{
	fault = r->vector;
	fault_error = r->error;
	r->rip = (u64)case_end;
}

/* Where the state is saved for each task, the kernel has to have it on before it is used. */
static void enable(void)
{
	u32 r[4];

	cpuid(1, r);
	if (!(r[2] & CPUID_XSAVE))
		return;
	write_cr4(read_cr4() | CR4_OSXSAVE);
	asm volatile(".byte 0x0f, 0x01, 0xd1 /* xsetbv */" : : "a"(XCR0_ALL), "c"(0), "d"(0));
}

static const u8 *apply(struct image *image, const u8 *p, u32 count)
{
	while (count--) {
		const struct patch *patch = (void *)p;

		copy((u8 *)image + patch->at, patch->bytes, patch->size);
		p += (sizeof(*patch) + patch->size + 3) & ~3ul;
	}
	return p;
}

static void try_load(u64 image, u64 unused)
{
	case_load((void *)image);
}

static void show(u32 n, int ring, u32 chunk)
{
	print("differs %d %d %d", n, ring, chunk);
	for (int i = 0; i < CHUNK / 8; i++)
		print(" %lx", ((u64 *)&case_now)[chunk * CHUNK / 8 + i]);
	print("\n");
}

static void run_one(u32 n, int ring, int flags)
{
	u64 arithmetic = flags ? ARITHMETIC : 0;
	u8 *page = pages[MEMORY];
	int vector;

	case_now = before;
	case_now.flags = 2 | arithmetic;
	for (u32 i = MEMORY_SIZE; i < 4096; i++)
		page[i] = BEHIND;
	copy(page, before.memory, MEMORY_SIZE);
	vector = faults(try_load, (u64)&case_now, 0);
	if (vector >= 0) {
		print("case %d %d no-state %d 0 0 0 0\n", n, ring, vector);
		return;
	}
	fault = -1;
	fault_error = 0;
	program(ring ? EV_VPU_ELEMENTS | SEL_USR : 0, ring ? EV_VPU_INSTRUCTIONS | SEL_USR : 0);
	for (int v = 0; v < 32; v++)
		handlers[v] = v == 2 ? 0 : note_fault;
	if (ring)
		user_run(case_body);
	else
		measure0(case_body);
	for (int v = 0; v < 32; v++)
		handlers[v] = 0;
	case_save(&case_now);
	copy(case_now.memory, page, MEMORY_SIZE);
	case_now.flags &= ARITHMETIC;
	case_now.mxcsr &= ~STICKY;
	vector = 0;
	for (u32 i = MEMORY_SIZE; i < 4096; i++)
		vector |= page[i] != BEHIND;
	print("case %d %d ran %d %d %d %ld %ld\n", n, ring, (u32)fault, (u32)fault_error, vector,
	      rdmsr(MSR_CNT0), rdmsr(MSR_CNT1));
	/* Flags that the case does not change are what they were. */
	if (!(wanted.flags & FLAGS_GIVEN))
		wanted.flags = arithmetic;
	wanted.flags &= ARITHMETIC;
	for (u32 i = 0; i < sizeof(case_now) / CHUNK; i++)
		if (!same((u8 *)&case_now + i * CHUNK, (u8 *)&wanted + i * CHUNK, CHUNK))
			show(n, ring, i);
}

static void expect(const struct one *one, const u8 *patches)
{
	wanted = before;
	wanted.flags = 0;
	apply(&wanted, patches, one->after);
	wanted.mxcsr &= ~STICKY;
}

SUITE(run_cases, "cases")
{
	const struct file *file = behind_program();
	const struct one *one;

	enable();
	map_page(MEMORY - 1, 0);
	map_page(MEMORY, 1);
	map_page(MEMORY + 1, 0);
	one = &file->first;
	for (u32 n = 0; n < file->count; n++) {
		const u8 *p = one->code + ((one->code_size + 3) & ~3u);

		before = file->defaults;
		p = apply(&before, p, one->before);
		copy(case_code, one->code, one->code_size);
		case_code[one->code_size] = 0xc3;	/* ret */
		for (int ring = 0; ring < 2; ring++) {
			expect(one, p);
			run_one(n, 3 * ring, !ring);
		}
		one = (void *)((u8 *)one + one->size);
	}
}
