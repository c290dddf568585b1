// SPDX-License-Identifier: GPL-2.0-only
/*
 * prefetch N M - N vprefetch0 and M vprefetch1, which nothing else on the card executes.
 */
#include <stdlib.h>

int main(int argc, char **argv)
{
	static char line[64];
	long n = argc > 2 ? atol(argv[1]) : 0;
	long m = argc > 2 ? atol(argv[2]) : 0;

	for (; n > 0; n--)
		asm volatile(".byte 0xc5, 0xf8, 0x18, 0x08" : : "a"(line));
	for (; m > 0; m--)
		asm volatile(".byte 0xc5, 0xf8, 0x18, 0x10" : : "a"(line));
	return 0;
}
