// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A program that is marked for likwid, with two regions in each of its threads: one adds up
 * numbers that lie side by side, the other one from each page.
 *
 *	cc -O2 -pthread -DLIKWID_PERFMON -I include -o marked Documentation/examples/marked.c
 *	knc-metrics --regions -M cpi,tlb ./marked
 */
#include <likwid-marker.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS	4
#define PAGES	512
#define PAGE	(4096 / sizeof(long))

static long numbers[PAGES * PAGE];

static long __attribute__((noinline)) add(size_t step, int times)
{
	volatile const long *number = numbers;
	long sum = 0;

	while (times--)
		for (size_t i = 0; i < PAGES * PAGE; i += step)
			sum += number[i];
	return sum;
}

static void *work(void *sum)
{
	LIKWID_MARKER_THREADINIT;
	LIKWID_MARKER_REGISTER("side by side");
	LIKWID_MARKER_REGISTER("page by page");

	LIKWID_MARKER_START("side by side");
	*(long *)sum += add(1, 1);
	LIKWID_MARKER_STOP("side by side");

	LIKWID_MARKER_START("page by page");
	*(long *)sum += add(PAGE, 100);
	LIKWID_MARKER_STOP("page by page");

	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	long sums[THREADS] = { 0 }, sum = 0;

	for (size_t i = 0; i < PAGES * PAGE; i++)
		numbers[i] = 1;

	LIKWID_MARKER_INIT;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, &sums[i]))
			return EXIT_FAILURE;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		sum += sums[i];
	}
	LIKWID_MARKER_CLOSE;

	printf("%ld\n", sum);
	return EXIT_SUCCESS;
}
