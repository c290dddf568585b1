// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A blocked matrix multiplication, of which one phase is measured: the inner
 * product of the blocks, not the copying of a block into place.
 *
 *	cc -O2 -I include -o matmul Documentation/examples/matmul.c
 *	perf stat -e cpu/instructions_executed,spflt/,instructions ./matmul
 *	perf record -e cpu/instructions_executed,spflt/ -c 10000 ./matmul
 */
#include <stdio.h>
#include <stdlib.h>

#include "knc_pmu_user.h"

#define N	96
#define BLOCK	16

static double a[N][N], b[N][N], c[N][N];
static double block[BLOCK][BLOCK];

/* Not measured: a block of b, transposed, to lie close together. */
static void __attribute__((noinline)) pack(int k0, int j0)
{
	for (int k = 0; k < BLOCK; k++)
		for (int j = 0; j < BLOCK; j++)
			block[j][k] = b[k0 + k][j0 + j];
}

/* Measured */
static void __attribute__((noinline)) multiply(int i0, int k0, int j0)
{
	for (int i = i0; i < i0 + BLOCK; i++)
		for (int j = 0; j < BLOCK; j++) {
			double sum = 0;

			for (int k = 0; k < BLOCK; k++)
				sum += a[i][k0 + k] * block[j][k];
			c[i][j0 + j] += sum;
		}
}

int main(void)
{
	double trace = 0;

	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			a[i][j] = i + j;
			b[i][j] = i + 2 * j;
		}

	for (int j = 0; j < N; j += BLOCK)
		for (int k = 0; k < N; k += BLOCK) {
			pack(k, j);
			for (int i = 0; i < N; i += BLOCK)
				spflt_region
					multiply(i, k, j);
		}

	for (int i = 0; i < N; i++)
		trace += c[i][i];
	printf("trace %.0f\n", trace);

	return trace != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
