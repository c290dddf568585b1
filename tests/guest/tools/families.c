// SPDX-License-Identifier: GPL-2.0-only
/*
 * families - each family of the vector unit's instructions, and the same in C; what needs no more
 * than registers and is in tests/emulator/mvex.py is not here. Prints how many vector instructions
 * and active elements that were, or which family differs.
 *
 * "families step": after each of these instructions a signal takes the operands' pages away, and
 * they come back one by one, where an instruction faults.
 *
 * No assembler knows the instructions. Their operands are zmm17, the result; zmm18; zmm19, or
 * memory at (%rsi); k1, their mask; k2. No compiler uses these registers.
 */
#include "loops.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE	4096
#define TRAP	0x100	/* in EFLAGS: TF */

union vector {
	float f[16];
	double d[8];
	int i[16];
	unsigned int u[16], g[16];
	unsigned long q[8], gq[8];
	short h[32];
	unsigned char b[64];
} __attribute__((may_alias));

/* As an instruction leaves it, as it was, as it has to be */
static union {
	struct {
		union vector d, a, b;	/* zmm17, zmm18, zmm19 */
		unsigned int k1, k2;
	};
	unsigned char bytes[3 * PAGE];
} x __attribute__((aligned(PAGE))), in, want;

/* Offsets of operands in memory: zmm19's; of others where a page or a line ends */
#define B	128
#define PAGE_END	(2 * PAGE)
#define LINE_END	(PAGE + 64)

static const char *family;
static unsigned int mask;
static unsigned long insns, elements, faults, trap;

static unsigned int draw(void)
{
	static unsigned long seed;
	const char *given = getenv("TEST_FUZZ_SEED");

	if (!seed)
		seed = given ? strtoul(given, NULL, 0) | 1 : 1;
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return seed >> 32;
}

/* Floats are from 1 to 4: a double has all bits of a product and a sum. For g, zmm18 is indices. */
static void begin(char part)
{
	for (int i = 0; i < 48; i++) {
		union vector *v = &x.d + i / 16;
		union vector one = { .u = { (draw() & 0x80ffffff) + 0x3f800000 } };

		if (part == 'f')
			v->f[i % 16] = one.f[0];
		else if (part == 'd')
			v->d[i % 16 / 2] = one.f[0];
		else
			v->u[i % 16] = draw() >> (draw() & 31);
		if (part == 'g')
			x.a.i[i % 16] = (int)(draw() & 7) * 16 + i % 16 - 64;
	}
	x.b.q[3] = x.a.q[3];
	x.k1 = mask;
	x.k2 = draw() & 0xffff;
	in = x;
	want = x;
}

static void executed(int n, unsigned int active)
{
	insns += n;
	for (; active; active &= active - 1)
		elements += n;
}

/* A gather or scatter does the elements in the line of the lowest one, again and again. */
static void by_line(int lane, int size)
{
	unsigned int left = mask & ((1 << 64 / size) - 1);

	want.k1 = 0;
	if (lane)
		return;
	do {
		int line = PAGE;

		executed(1, left);
		for (int i = 0; i < 64 / size; i++) {
			int its = in.a.i[i] * size >> 6;

			if (left >> i & 1 && (line == PAGE || line == its)) {
				line = its;
				left ^= 1 << i;
			}
		}
	} while (left);
}

static void take(int sig)
{
	if (sig == SIGTRAP)
		mprotect(&x, sizeof(x), PROT_NONE);
	else if (faults < 100000)
		mprotect(x.bytes + faults++ % 3 * PAGE, PAGE, PROT_READ | PROT_WRITE);
	else
		fail("FAIL %s: it faults again and again", family);
}

/* Operands: the prefix's first byte, vvvv, ModRM, the prefix's last byte, of which 0x70 are SSS */
#define REG3	0xa0, 2, 0xcb, 0x01
#define MEM3	0xe0, 2, 0x0e, 0x01
#define REG2	0xa0, 0, 0xcb, 0x09
#define MEM2	0xe0, 0, 0x0e, 0x09
#define HIGH	0xe0, 0, 0x4e, 0x09
#define MASK	0xb0, 2, 0xd3, 0x01
#define CARRY	0xa0, 2, 0xcb, 0x09
#define SHIFT2	0xb0, 1, 0xd3, 0x01
#define VSIB	0xe0, 0, 0x0c, 0x01
#define BYTES(...)	".byte " #__VA_ARGS__ "\n\t"
#define V(...)	V_(__VA_ARGS__)
#define V_(p0, vvvv, modrm, p2, map, pp, w, opcode, ...)	\
	BYTES(0x62, (p0) + (map), (w) * 128 + (15 - (vvvv)) * 8 + (pp), p2, opcode, modrm,	\
	      ##__VA_ARGS__)
#define PAIR(sss, pp, w, low, disp8)	\
	V(MEM2 + (sss), 2, pp, w, low) V(HIGH + (sss), 2, pp, w, (low) + 4, disp8)
/* 1: gather; jkzd %k1, 2f; gather; jknzd %k1, 1b; 2: */
#define INDEXED(w, opcode, sib)	\
	V(VSIB, 2, 1, w, opcode, sib) BYTES(0xc4, 0xe0, 0x70, 0x74, 12)	\
	V(VSIB, 2, 1, w, opcode, sib) BYTES(0xc4, 0xe0, 0x70, 0x75, -24)
#define MASKS(opcode)	BYTES(0xc5, 0xf8, opcode, 0xd1)	/* %k1, %k2 */
#define KMOV_K2	MASKS(0x92)	/* from %ecx */

/* n instructions, with a memory operand at an offset, and what each lane has then */
#define T(part, lanes, n, at, insn, ...)	\
	for (int round = 0; round < 5; round++) {	\
		union vector *from = (void *)(in.bytes + (at));	\
		union vector *into = (void *)(want.bytes + (at));	\
		int nth = 0;	\
		\
		mask = ((unsigned short[]) { 0xffff, 0x5ac3, 0x8001, 0x0f00, 0 })[round];	\
		begin(#part[0]);	\
		/* kmov %eax, %k1; vmovaps (%rdi), %zmm17 to 19; and back */	\
		asm volatile("lea -128(%%rsp), %%rsp; pushf; xor %4, (%%rsp); popf\n\t"	\
			     BYTES(0xc5, 0xf8, 0x92, 0xc8) KMOV_K2	\
			     BYTES(0x62, 0xe1, 0x78, 0x08, 0x28, 0x4f, 0)	\
			     BYTES(0x62, 0xe1, 0x78, 0x08, 0x28, 0x57, 1)	\
			     BYTES(0x62, 0xe1, 0x78, 0x08, 0x28, 0x5f, 2) insn	\
			     BYTES(0x62, 0xe1, 0x78, 0x08, 0x29, 0x4f, 0)	\
			     BYTES(0xc5, 0xf8, 0x93, 0xc1, 0xc5, 0xf8, 0x93, 0xca)	\
			     "pushf; xor %4, (%%rsp); popf; lea 128(%%rsp), %%rsp"	\
			     : "+a"(x.k1), "+c"(x.k2) : "D"(&x), "S"(x.bytes + (at)), "r"(trap)	\
			     : "memory", "cc");	\
		for (int i = 0; i < (lanes); i++) {	\
			typeof(in.d.part[0]) a = in.a.part[i], b = in.b.part[i];	\
			typeof(a) d = in.d.part[i], *to = &want.d.part[i];	\
			int on = mask >> i & 1, k = want.k2 >> i & 1;	\
			\
			(void)a, (void)b, (void)d, (void)to, (void)k, (void)from, (void)into;	\
			__VA_ARGS__;	\
			nth += on;	\
		}	\
		executed(4, 0xffff);	\
		executed(n, mask & ((1 << (lanes)) - 1));	\
		must(!memcmp(&x, &want, sizeof(x)), "FAIL %s, line %d, mask %#x", family,	\
		     __LINE__, mask);	\
	}
#define T1(part, lanes, insn, ...)	T(part, lanes, 1, B, insn, __VA_ARGS__)
#define SET(place, value)	do { if (on) (place) = (value); } while (0)
#define S(value)	SET(*to, value)
#define BIT(k, value)	(k = (k & ~(1u << i)) | (unsigned int)!!(value) << i)
#define K(value)	BIT(want.k2, value)
#define CARRIES(value)	unsigned long r = (value); K(on ? r >> 32 & 1 : want.k2 >> i & 1); S(r)
#define AT(memory)	(*(typeof(to))((memory).bytes + PAGE_END + (int)sizeof(d) * in.a.i[i]))

int main(int argc, char **argv)
{
	(void)argv;
	signal(SIGTRAP, take);
	signal(SIGSEGV, take);
	trap = argc > 1 ? TRAP : 0;
	for (unsigned int i = 0; i < sizeof(x); i += 2)	/* normal floats of 16 bits */
		(&x.d)[i / 64].h[i % 64 / 2] = (draw() & 0xbfff) | 0x400;

	family = "loads";
	T(f, 16, 1, PAGE, V(MEM2 + 0x30, 1, 0, 0, 0x28), unsigned int h = from->h[i];
	  SET(want.d.u[i], (h & 0x80000000) + (h & 0x7fff) * 0x2000 + 0x38000000))
	T(i, 16, 1, PAGE + 16, V(MEM2 + 0x50, 1, 1, 0, 0x6f), S((signed char)from->b[i]))
	T(i, 16, 1, PAGE + 7, V(MEM2 + 0x40, 2, 1, 0, 0x58), S(from->b[0]))
	T(d, 8, 1, PAGE + 32, V(MEM2, 2, 1, 1, 0x1b), S(from->d[i & 3]))
	T1(f, 16, V(MEM3 + 0x10, 1, 0, 0, 0x58), S(a + in.b.f[0]))
	T1(d, 8, V(MEM3 + 0x20, 1, 1, 1, 0x59), S(a * in.b.d[i & 3]))
	family = "stores";
	T(d, 8, 1, PAGE, V(MEM2, 1, 1, 1, 0x29), SET(into->d[i], d))
	T(f, 16, 1, PAGE, V(MEM2 + 0x40, 1, 0, 0, 0x29), SET(into->b[i], d < 0 ? 0 : d + 0.5))
	T(i, 16, 1, PAGE, V(MEM2 + 0x40, 1, 1, 0, 0x7f), SET(into->b[i], d))
	T(i, 16, 1, PAGE, V(MEM2 + 0x70, 1, 1, 0, 0x7f), int h = d < -32768 ? -32768 : d;
	  SET(into->h[i], h > 32767 ? 32767 : h))
	family = "swizzles";
	T1(f, 16, V(REG3 + 0x30, 1, 0, 0, 0x58), S(a + in.b.f[(i & ~3) + "\1\2\0\3"[i & 3]]))
	T1(d, 8, V(REG2 + 0x20, 1, 1, 1, 0x28), S(in.b.d[i ^ 2]))
	family = "floats";
	T1(d, 8, V(REG3, 2, 1, 1, 0x6d), S(b - a))
	T1(f, 16, V(MEM3, 2, 1, 0, 0xa8), S((double)a * d + b))
	T1(f, 16, V(REG3, 2, 1, 0, 0xbc), S(d - (double)a * b))
	T1(f, 16, V(REG3, 2, 1, 0, 0xa4), S((double)a * in.b.f[(i & ~3) + 1] + in.b.f[i & ~3]))
	family = "integers";
	T1(u, 16, V(REG3, 2, 1, 0, 0xb5), S(a * b + d))
	T1(q, 8, V(REG3, 1, 1, 1, 0xdf), S(~a & b))
	family = "compares";
	T1(d, 8, V(MASK, 1, 1, 1, 0xc2, 6), K(on && a > b), want.k2 &= 0xff)
	T1(u, 16, V(MASK, 2, 1, 0, 0x27), K(on && (a & b)))
	family = "blends";
	T1(f, 16, V(REG3, 2, 1, 0, 0x65), *to = on ? b : a)
	family = "masks";
	/* kortest %k1, %k1 */
	T(u, 16, 0, B, BYTES(0xc5, 0xf8, 0x98, 0xc9) "setc %%cl; setz %%ch\n\t" KMOV_K2,
	  K(!i ? mask == 0xffff : i == 8 && !mask))
	/* kconcath %k2, %k1, %rcx; kextract $3, %rcx, %k2 */
	T(u, 16, 0, B, BYTES(0xc5, 0xf0, 0x95, 0xca) BYTES(0xc4, 0xe3, 0x79, 0x3e, 0xd1, 3), K(on))
	/* jkzd %k1, 1f; jknzd %k1, 2f; 1: mov $1, %cl; 2: */
	T(u, 16, 0, B, "xor %%ecx, %%ecx\n\t" BYTES(0xc4, 0xe0, 0x70, 0x74, 5)
	  BYTES(0xc4, 0xe0, 0x70, 0x75, 2) "mov $1, %%cl\n\t" KMOV_K2, K(!i && !mask))
	family = "shifts";
	T1(u, 16, V(SHIFT2, 1, 1, 0, 0x72, 7), S(b >> 7))
	family = "permutes";
	T1(u, 16, V(REG3, 2, 1, 0, 0x36), S(in.b.u[a & 15]))
	T1(u, 16, V(REG2, 3, 1, 0, 0x07, 0x1b), S(in.b.u[i ^ 12]))
	T1(u, 16, V(REG2, 1, 1, 0, 0x70, 0xb1), S(in.b.u[i ^ 1]))
	T1(u, 16, V(REG3, 3, 1, 0, 0x03, 5), S(i < 11 ? in.b.u[i + 5] : in.a.u[i - 11]))
	family = "carries";
	T1(u, 16, V(CARRY, 2, 1, 0, 0x5c), CARRIES((unsigned long)d + b + k))
	T1(u, 16, V(CARRY, 2, 1, 0, 0x6e), CARRIES((unsigned long)b - d - k))
	T1(i, 16, V(REG3, 2, 1, 0, 0xcd), a += (unsigned int)b; S(a); BIT(want.k1, on && a < 0))
	family = "extremes";
	T1(f, 16, V(REG3, 2, 1, 0, 0x52), S(a < b ? a : b))
	T1(d, 8, V(REG3, 2, 1, 1, 0x53), S(a > b ? a : b))
	family = "conversions";
	T1(f, 16, V(REG2, 2, 1, 0, 0x42), S((int)(in.b.u[i] >> 23 & 255) - 127))
	T1(f, 16, V(REG2, 3, 1, 0, 0x26, 0), S(b / (b > -2 && b < 2 ? 1 : 2)))
	T1(f, 16, V(REG2, 3, 1, 0, 0x52, 0x13), S((int)(b * 16) / 16.0))
	T1(f, 16, V(REG2, 3, 1, 0, 0xcb, 0x33), SET(want.d.i[i], b * 256))
	T1(i, 16, V(REG2, 3, 0, 0, 0xcb, 0x30), SET(want.d.f[i], b / 256.0))
	T1(d, 8, V(REG2, 1, 2, 0, 0x7a), S(in.b.u[i]))
	/* vcvtpd2ps: the upper half becomes 0. */
	T1(f, 8, V(REG2, 1, 1, 1, 0x5a), S(in.b.d[i]); want.d.f[i + 8] = 0)
	family = "gathers, scatters";
	T(g, 16, 0, PAGE_END, INDEXED(0, 0x92, 0x96), by_line(i, sizeof(d)); S(AT(in)))
	T(gq, 8, 0, PAGE_END, INDEXED(1, 0x90, 0xd6), by_line(i, sizeof(d)); S(AT(in)))
	T(g, 16, 0, PAGE_END, INDEXED(0, 0xa0, 0x96), by_line(i, sizeof(d)); SET(AT(want), d))
	T(gq, 8, 0, PAGE_END, INDEXED(1, 0xa2, 0xd6), by_line(i, sizeof(d)); SET(AT(want), d))
	family = "unaligned";
	T(u, 16, 2, PAGE_END - 20, PAIR(0, 0, 0, 0xd0, 16), S(from->u[nth]))
	T(f, 16, 2, LINE_END - 20, PAIR(0, 0, 0, 0xd1, 16), S(from->f[nth]))
	T(i, 16, 2, PAGE_END - 5, PAIR(0x40, 0, 0, 0xd0, 64), S(from->b[nth]))
	T(u, 16, 2, PAGE_END - 12, PAIR(0, 1, 0, 0xd0, 16), SET(into->u[nth], d))
	T(q, 8, 2, LINE_END - 24, PAIR(0, 1, 1, 0xd0, 8), SET(into->q[nth], d))

	must(!trap == !faults, "%lu faults", faults);
	printf("%lu %lu\n", insns, elements);
	return 0;
}
