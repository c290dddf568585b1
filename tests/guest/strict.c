// SPDX-License-Identifier: GPL-2.0-only
/*
 * With run-uos --strict-user: what programs of a card get for an instruction that the chip
 * lacks. This program itself is made by scripts/build-k1om.
 */
#include "lib.h"

/* On a card's own kernel all that is loaded is searched for such instructions. */
#ifndef __k1om__
#include <cpuid.h>

static void run(int n)
{
	/* In bytes, as the assembler of build-k1om would rewrite it */
	if (!n)
		asm volatile(".byte 0x0f, 0x44, 0xc0 /* cmove */" : : : "eax");
	else	/* another compiler's, with a C library that wants SSE2 */
		execl("./matmul", "./matmul", NULL);
}

TEST("strict-user", 30)
{
	unsigned int a, b, c, d = 0;
	int n, status;
	pid_t pid;

	for (n = 0; n < 2; n++) {
		pid = fork();
		if (!pid) {
			run(n);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		must(WTERMSIG(status) == SIGILL, "%d: wait status %#x", n, status);
	}
	must(__get_cpuid(1, &a, &b, &c, &d) && !(d & (bit_CMOV | bit_SSE)) && d & bit_FXSAVE,
	     "CPUID leaf 1: EDX is %#x", d);
}
#endif
