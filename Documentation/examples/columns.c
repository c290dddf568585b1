// SPDX-License-Identifier: GPL-2.0-only
/*
 * A sum over a matrix that is slow for a reason; Documentation/tutorial.rst finds it.
 *
 *	cc -o columns -O2 -g -static -Wl,--eh-frame-hdr columns.c
 */
#include <stdio.h>

#define N	512

static double matrix[N][N];

static void __attribute__((noinline)) fill(void)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			matrix[i][j] = i ^ j;
}

static double __attribute__((noinline)) sum(void)
{
	double total = 0;

#ifndef FIXED
	/* Down a column: each element is in another cache line. */
	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++)
			total += matrix[i][j];
#else
	/* Along a row: eight elements are in a cache line. */
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			total += matrix[i][j];
#endif
	return total;
}

int main(void)
{
	fill();
	printf("sum %.0f\n", sum());
	return 0;
}
