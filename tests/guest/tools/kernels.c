// SPDX-License-Identifier: GPL-2.0-only
/*
 * Four kernels of likwid-bench, each in a region of its name. Each goes four times through
 * arrays of 2 MiB, of which no cache holds one.
 */
#include <likwid-marker.h>

#define SIZE	(1 << 18)
#define PASSES	4

static volatile double a[SIZE], b[SIZE], c[SIZE];

#define KERNEL(name, statement) do {			\
	LIKWID_MARKER_START(name);			\
	for (int pass = 0; pass < PASSES; pass++)	\
		for (int i = 0; i < SIZE; i++)		\
			statement;			\
	LIKWID_MARKER_STOP(name);			\
} while (0)

int main(void)
{
	double x = 1;

	for (int i = 0; i < SIZE; i++) {
		a[i] = 0;
		b[i] = 0;
		c[i] = 0;
	}
	/* What was written above leaves the caches. */
	KERNEL("before", x += a[i]);
	KERNEL("load", x += a[i]);
	KERNEL("store", a[i] = x);
	KERNEL("copy", a[i] = b[i]);
	KERNEL("triad", a[i] = b[i] + x * c[i]);
	return x != 1;
}
