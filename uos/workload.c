// SPDX-License-Identifier: GPL-2.0-only
/*
 * Something for the demo to measure: a sieve that takes nearly all of the time,
 * and a checksum that takes little, so that a profile has an order to show.
 */
#include <stdio.h>
#include <stdlib.h>

#define LIMIT	1000000
#define ROUNDS	20

static unsigned char composite[LIMIT];

__attribute__((noinline)) static void find_primes(void)
{
	for (int n = 2; n < LIMIT; n++)
		composite[n] = 0;

	for (int n = 2; n * n < LIMIT; n++) {
		if (composite[n])
			continue;
		for (int m = n * n; m < LIMIT; m += n)
			composite[m] = 1;
	}
}

__attribute__((noinline)) static unsigned int checksum(void)
{
	unsigned int sum = 0;

	for (int n = 2; n < LIMIT; n += 4)
		sum = sum * 31 + composite[n];
	return sum;
}

__attribute__((noinline)) static int count_primes(void)
{
	int count = 0;

	for (int n = 2; n < LIMIT; n++)
		count += !composite[n];
	return count;
}

int main(void)
{
	unsigned int sum = 0;
	int count = 0;

	for (int round = 0; round < ROUNDS; round++) {
		find_primes();
		sum += checksum();
	}
	count = count_primes();
	printf("%d primes below %d (checksum %08x)\n", count, LIMIT, sum);

	/* The number of primes below a million is known. */
	return count == 78498 ? EXIT_SUCCESS : EXIT_FAILURE;
}
