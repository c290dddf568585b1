// SPDX-License-Identifier: GPL-2.0-only
/*
 * "walk STRIDE" reads one byte, STRIDE farther each time, in a circle of 1 MiB:
 * more than the TLBs and the L1 data cache hold. By 4096 each read needs another
 * page, by 64 another line. "walk STRIDE write" writes in place of reading.
 */
#include "loops.h"

#include <sys/mman.h>

#define MEMORY		(1UL << 20)
#define READS		4000000

static void walk_read(char *memory, unsigned long stride)
{
	unsigned long at = 0, n = READS;

	asm volatile("1: movb (%2,%0), %%al; add %3, %0; and %4, %0; dec %1; jnz 1b"
		     : "+r"(at), "+r"(n) : "r"(memory), "r"(stride), "r"(MEMORY - 1)
		     : "memory", "cc", "al");
}

static void walk_write(char *memory, unsigned long stride)
{
	unsigned long at = 0, n = READS;

	asm volatile("1: movb %%al, (%2,%0); add %3, %0; and %4, %0; dec %1; jnz 1b"
		     : "+r"(at), "+r"(n) : "r"(memory), "r"(stride), "r"(MEMORY - 1)
		     : "memory", "cc");
}

int main(int argc, char **argv)
{
	char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	must(memory != MAP_FAILED, "no memory");
	must(argc >= 2 && strtoul(argv[1], NULL, 0), "by how much?");
	(argc > 2 ? walk_write : walk_read)(memory, strtoul(argv[1], NULL, 0));
	return 0;
}
