// SPDX-License-Identifier: GPL-2.0-only
/*
 * x86_perf_event_update() adds 2^(bits of the counter) too much or too little, if a PMI comes
 * between its read of the counter and its exchange. On any x86 PMU, of real hardware:
 *
 *	gcc -O2 read-again.c && ./a.out [READS]
 *
 * The event overflows every few thousand instructions of the kernel, most of which are in
 * read(2). Each time it goes on from the same value, so that a read which a PMI has
 * interrupted does not see it. Prints how many of the reads gave a count that went back,
 * or on by more than 2^30.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS,
		.size = sizeof(attr), .sample_period = 5003, .exclude_user = 1,
	};
	unsigned long long reads = argc > 1 ? strtoull(argv[1], NULL, 0) : 100000000;
	unsigned long long i, value, last = 0, wrong = 0;
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd < 0) {
		perror("perf_event_open: a sampled event of the kernel");
		return 2;
	}
	for (i = 0; i < reads && read(fd, &value, sizeof(value)) == sizeof(value); i++) {
		wrong += i && value - last > 1ULL << 30;
		last = value;
	}
	printf("%llu of %llu counts are wrong\n", wrong, i);
	return !!wrong;
}
