// SPDX-License-Identifier: GPL-2.0-only
/*
 * vpu - in each round a load of 16 floats, and an addition of those that a mask names, 3 of 16.
 * No assembler knows the vector unit's instructions.
 */
#include <stdio.h>

#define ROUNDS	5000000
#define MASK	0x0111

static float floats[16] __attribute__((aligned(64)));

int main(void)
{
	long left = ROUNDS;

	asm volatile(".byte 0xc5, 0xf8, 0x92, 0xc8\n\t"	/* kmov %eax, %k1 */
		     "1:\n\t"
		     /* vmovaps (%rdi), %zmm3; vaddps %zmm3, %zmm2, %zmm1 {%k1} */
		     ".byte 0x62, 0xf1, 0x78, 0x08, 0x28, 0x1f\n\t"
		     ".byte 0x62, 0xf1, 0x68, 0x09, 0x58, 0xcb\n\t"
		     "dec %0\n\t"
		     "jnz 1b"
		     : "+r"(left) : "a"(MASK), "D"(floats) : "memory", "cc");
	printf("%d rounds\n", ROUNDS);
	return 0;
}
