// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each of four cores counts for itself, but in one cache line; Documentation/uneven.rst finds it.
 *
 *	cc -o sharing -O2 -g -static -pthread sharing.c
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

#define CORES	4

#ifdef FIXED
#define ALIGNED	__attribute__((aligned(64)))	/* one in each line of the cache */
#else
#define ALIGNED
#endif

static struct {
	volatile long count ALIGNED;
} counts[CORES];

static void *work(void *arg)
{
	long core = (long)arg;
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(4 * core, &cpu);
	pthread_setaffinity_np(pthread_self(), sizeof(cpu), &cpu);
	for (int i = 0; i < 1000000; i++)
		counts[core].count++;
	return NULL;
}

int main(void)
{
	pthread_t thread[CORES];
	long sum = 0;

	for (long i = 0; i < CORES; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	for (int i = 0; i < CORES; i++) {
		pthread_join(thread[i], NULL);
		sum += counts[i].count;
	}
	printf("%ld\n", sum);
	return 0;
}
