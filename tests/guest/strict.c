// SPDX-License-Identifier: GPL-2.0-only
/*
 * With run-uos --strict-user: what programs of a card get for an instruction that the chip
 * lacks. This program itself is made by scripts/build-k1om.
 */
#include "lib.h"

#include <cpuid.h>

/* In bytes, as the assembler of build-k1om would rewrite the first */
static void cmov(void)
{
	asm volatile(".byte 0x0f, 0x44, 0xc0" : : : "eax");
}

static void sse(void)
{
	asm volatile(".byte 0x0f, 0x57, 0xc0 /* xorps %xmm0, %xmm0 */");
}

static void fence(void)
{
	asm volatile(".byte 0x0f, 0xae, 0xe8 /* lfence */");
}

/* Another compiler's, with a C library that wants SSE2 */
static void ordinary(void)
{
	execl("./matmul", "./matmul", NULL);
}

TEST(strict_user, "strict-user", 30)
{
	static void (*const run[])(void) = { cmov, sse, fence, ordinary };
	unsigned int a, b, c, d = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(run); i++) {
		int status = -1;
		pid_t pid = fork();

		if (!pid) {
			run[i]();
			_exit(0);
		}
		waitpid(pid, &status, 0);
		must(WTERMSIG(status) == SIGILL, "%zu: wait status %#x", i, status);
	}
	must(__get_cpuid(1, &a, &b, &c, &d) && !(d & (bit_CMOV | bit_SSE)) && d & bit_FXSAVE,
	     "CPUID leaf 1: EDX is %#x", d);
}
