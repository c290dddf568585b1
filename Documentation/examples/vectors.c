// SPDX-License-Identifier: GPL-2.0-only
/*
 * A sum over a matrix with the card's vector unit; Documentation/tutorial.rst measures it. The
 * instructions are in bytes, because no assembler of a distribution knows them.
 *
 *	cc -o vectors -O2 -g -static vectors.c
 *	./vectors scalar | vector | stride
 */
#include <stdio.h>
#include <string.h>

/* vpxord %zmm0,%zmm0,%zmm0; vmovaps %zmm0,(%rdi) */
#define CLEAR	".byte 0x62,0xf1,0x79,0x08,0xef,0xc0\n"
#define STORE	".byte 0x62,0xf1,0x78,0x08,0x29,0x07"

#define N	256
#define LANES	16

static float matrix[N][N] __attribute__((aligned(64)));
static float total[LANES] __attribute__((aligned(64)));
static int rows[LANES] __attribute__((aligned(64)));

static void __attribute__((noinline)) scalar(void)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			total[0] += matrix[i][j];
}

/* zmm0 has the sums of 16 columns; the loops themselves use no SSE register. */
static void __attribute__((noinline)) vector(void)
{
	asm volatile(CLEAR);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j += LANES)
			/* vaddps (%rdi),%zmm0,%zmm0 */
			asm volatile(".byte 0x62,0xf1,0x78,0x08,0x58,0x07"
				     : : "D" (&matrix[i][j]), "m" (matrix));
	asm volatile(STORE : "=m" (total) : "D" (total));
}

/* The same down the columns: a vector is gathered from 16 rows, one element of each. */
static void __attribute__((noinline)) stride(void)
{
	for (int i = 0; i < LANES; i++)
		rows[i] = i * N;
	asm volatile(CLEAR ".byte 0x62,0xf1,0x79,0x08,0x6f,0x0f"	/* vmovdqa32 (%rdi),%zmm1 */
		     : : "D" (rows), "m" (rows));
	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i += LANES)
			asm volatile(".byte 0xc5,0xf8,0x46,0xc9\n"	/* kxnor %k1,%k1 */
				     /* 1: vgatherdps (%rdi,%zmm1,4),%zmm2{%k1}; jknzd %k1,1b */
				     ".byte 0x62,0xf2,0x79,0x09,0x92,0x14,0x8f\n"
				     ".byte 0xc4,0xe0,0x70,0x75,0xf4\n"
				     /* vaddps %zmm2,%zmm0,%zmm0 */
				     ".byte 0x62,0xf1,0x78,0x08,0x58,0xc2"
				     : : "D" (&matrix[i][j]), "m" (matrix));
	asm volatile(STORE : "=m" (total) : "D" (total));
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "scalar";
	float sum = 0;

	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			matrix[i][j] = i ^ j;
	if (!strcmp(how, "vector"))
		vector();
	else if (!strcmp(how, "stride"))
		stride();
	else
		scalar();
	for (int i = 0; i < LANES; i++)
		sum += total[i];
	printf("sum %.0f\n", sum);
	return 0;
}
