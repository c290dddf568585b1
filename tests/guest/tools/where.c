// SPDX-License-Identifier: GPL-2.0-only
/*
 * "where" misses the L1 data cache on one line, which it prints, and counts down on
 * another; "where even" misses equally on eight lines. A loop is one statement, so all of
 * its instructions are of one line.
 */
#include "loops.h"

#include <sys/mman.h>

#define MEMORY		(4UL << 20)
#define PASSES		16
#define TURNS		2000000UL

/* A read for each line of the cache, so many times */
#define WALK(memory, passes) do {							\
	unsigned long _left = passes;							\
	char *_at;									\
	asm volatile("1: mov %2, %1; 2: movb (%1), %%al; add $64, %1; cmp %3, %1; jb 2b;"\
		     "dec %0; jnz 1b"							\
		     : "+r"(_left), "=&r"(_at) : "r"(memory), "r"((memory) + MEMORY)	\
		     : "memory", "cc", "al");						\
} while (0)

/* Not static: gcc 14 would call it walk.isra.0. */
int __attribute__((noinline)) walk(char *memory)
{
	WALK(memory, PASSES);
	return __LINE__ - 1;
}

static void __attribute__((noinline)) walk_evenly(char *memory)
{
	WALK(memory, PASSES / 8);
	WALK(memory, PASSES / 8);
	WALK(memory, PASSES / 8);
	WALK(memory, PASSES / 8);
	WALK(memory, PASSES / 8);
	WALK(memory, PASSES / 8);
	WALK(memory, PASSES / 8);
	WALK(memory, PASSES / 8);
}

static void __attribute__((noinline)) count_down(void)
{
	unsigned long n = TURNS;

	asm volatile("1: dec %0; jnz 1b" : "+r"(n) : : "cc");
}

int main(int argc, char **argv)
{
	char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	(void)argv;
	must(memory != MAP_FAILED, "no memory");
	if (argc > 1)
		walk_evenly(memory);
	else
		printf("where.c:%d\n", walk(memory));
	count_down();
	return 0;
}
