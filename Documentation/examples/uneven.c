// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work that is dealt unevenly to all threads of a card; Documentation/uneven.rst
 * sees it.
 *
 *	cc -o uneven -O2 -static -pthread uneven.c
 *
 * The rows of a triangle are summed up, each longer than the one before it, by a
 * thread on each CPU.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROWS_PER_CPU	32

static long cpus;
static volatile unsigned long total;

static unsigned long sum_row(long row)
{
	unsigned long sum = 0;

	for (long i = 0; i <= row; i++) {
		sum += i;
		/* The compiler knows a formula for this. */
		__asm__("" : "+r" (sum));
	}
	return sum;
}

static void *work(void *arg)
{
	long cpu = (long)arg, rows = cpus * ROWS_PER_CPU;
	unsigned long sum = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		perror("sched_setaffinity");
		exit(EXIT_FAILURE);
	}
#ifndef FIXED
	/* A block of neighbours for each: the last one has the longest. */
	for (long row = cpu * ROWS_PER_CPU; row < (cpu + 1) * ROWS_PER_CPU; row++)
		sum += sum_row(row);
	(void)rows;
#else
	/* In turn: each has long ones and short ones. */
	for (long row = cpu; row < rows; row += cpus)
		sum += sum_row(row);
#endif
	__atomic_fetch_add(&total, sum, __ATOMIC_RELAXED);
	return NULL;
}

int main(void)
{
	pthread_t *threads;

	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	threads = calloc(cpus, sizeof(*threads));
	if (!threads)
		return EXIT_FAILURE;
	for (long cpu = 0; cpu < cpus; cpu++) {
		if (pthread_create(&threads[cpu], NULL, work, (void *)cpu)) {
			fprintf(stderr, "no thread for CPU %ld\n", cpu);
			return EXIT_FAILURE;
		}
	}
	for (long cpu = 0; cpu < cpus; cpu++)
		pthread_join(threads[cpu], NULL);
	printf("%ld threads, sum %lu\n", cpus, total);
	return 0;
}
