// SPDX-License-Identifier: GPL-2.0-only
/*
 * The upper half of the Mandelbrot set, a tile for each thread of a card: four threads of
 * a core are one above the other. Documentation/uneven.rst sees it.
 *
 *	cc -o mandelbrot -O2 -static -pthread mandelbrot.c
 *
 * Numbers have 28 bits behind the point, as compilers for a card differ in how they pass
 * a double.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BITS		28
#define ONE		(1L << BITS)
#define THREADS		4
#define PIXELS		6
#define MOST_STEPS	1000

static long cpus;
static long inside;

static long steps(long cx, long cy)
{
	long x = 0, y = 0, n;

	for (n = 0; n < MOST_STEPS && x * x + y * y < 4 * ONE * ONE; n++) {
		long square = (x * x - y * y) >> BITS;

		y = ((x * y) >> (BITS - 1)) + cy;
		x = square + cx;
	}
	return n;
}

static void *work(void *arg)
{
	long cpu = (long)arg, columns = cpus / THREADS * PIXELS, rows = THREADS * PIXELS, found = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		perror("sched_setaffinity");
		exit(EXIT_FAILURE);
	}
	for (long pixel = 0; pixel < PIXELS * PIXELS; pixel++) {
		long column = cpu / THREADS * PIXELS + pixel % PIXELS;
		long row = cpu % THREADS * PIXELS + pixel / PIXELS;

		/* -2.2 to 0.8, and 1.05 to 0 */
		found += steps(ONE * 3 * column / columns - ONE * 22 / 10,
			       ONE * 105 / 100 * (rows - row) / rows) == MOST_STEPS;
	}
	__atomic_fetch_add(&inside, found, __ATOMIC_RELAXED);
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
	printf("%ld threads, %ld pixels in the set\n", cpus, inside);
	return 0;
}
