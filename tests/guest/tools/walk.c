// SPDX-License-Identifier: GPL-2.0-only
/*
 * "walk STRIDE" reads one byte, STRIDE farther each time, in a circle of 2 MiB: four
 * times what the L2 holds, as pages are not spread evenly over its sets. By 4096 each
 * read needs another page, by 64 another line. "walk STRIDE write" writes in place of
 * reading.
 *
 * "walk STRIDE rows" reads the first byte of each of 32 rows, STRIDE bytes apart: by 4096 all of
 * these are in one set of the L1.
 *
 * "walk 2097152" reads in a circle of 512 MiB. Each read needs another table of pages:
 * more than the second-level TLB holds. All of these pages are the kernel's page of zeroes.
 */
#include "loops.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#define MEMORY		(2UL << 20)
#define FAR		(2UL << 20)
#define FAR_MEMORY	(512UL << 20)
#define READS		2000000
#define ROWS		32

#define WALK(name, access)							\
	static void name(char *memory, unsigned long size, unsigned long stride) \
	{									\
		unsigned long at = 0, n = READS;				\
										\
		asm volatile("1: movb " access "; add %3, %0; and %4, %0; dec %1; jnz 1b" \
			     : "+r"(at), "+r"(n) : "r"(memory), "r"(stride), "r"(size - 1) \
			     : "memory", "cc", "al");				\
	}

WALK(walk_read, "(%2,%0), %%al")
WALK(walk_write, "%%al, (%2,%0)")

static void walk_rows(char *memory, unsigned long size, unsigned long stride)
{
	(void)size;
	for (unsigned long n = 0; n < READS; n++)
		((volatile char *)memory)[n % ROWS * stride];
}

int main(int argc, char **argv)
{
	unsigned long stride = argc >= 2 ? strtoul(argv[1], NULL, 0) : 0;
	unsigned long size = stride < FAR ? MEMORY : FAR_MEMORY;
	char *memory;

	/* No large page. Linux before 3.15 does not know this. */
	if (stride < FAR)
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
		      (stride < FAR ? MAP_POPULATE : MAP_NORESERVE), -1, 0);
	must(memory != MAP_FAILED, "no memory");
	must(stride, "by how much?");
	(argc < 3 ? walk_read : argv[2][0] == 'r' ? walk_rows : walk_write)(memory, size, stride);
	return 0;
}
