// SPDX-License-Identifier: GPL-2.0-only
/*
 * "relax WIDTH" smooths a plane of 56 rows in place, column by column. Rows of 512 numbers are 4096
 * bytes apart: a column is in one set of the L1 data cache, and the TLB holds all of its pages.
 */
#include <stdio.h>
#include <stdlib.h>

#define COLUMNS		512
#define HEIGHT		56
#define SWEEPS		20

static void __attribute__((noinline)) relax(double *a, long width)
{
	for (long i = 1; i < COLUMNS - 1; i++)
		for (double *at = a + width + i; at < a + (HEIGHT - 1) * width; at += width)
			*at = 0.25 * (at[-width] + at[width] + at[-1] + at[1]);
}

int main(int argc, char **argv)
{
	long width = argc > 1 ? atol(argv[1]) : COLUMNS;
	double *a = aligned_alloc(4096, HEIGHT * (COLUMNS + 64) * sizeof(*a));

	if (!a || width < COLUMNS || width > COLUMNS + 64)
		return 1;
	for (long n = 0; n < HEIGHT * width; n++)
		a[n] = n % 7;
	for (int n = 0; n < SWEEPS; n++)
		relax(a, width);
	printf("%f\n", a[HEIGHT / 2 * width + COLUMNS / 2]);
	return 0;
}
