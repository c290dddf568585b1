// SPDX-License-Identifier: GPL-2.0-only
/*
 * numbers text - print a million doubles, and parse them; on stdout a sum over all that was
 * printed and parsed, every 50,000.
 * numbers math - what the functions of <math.h> return, as doubles in binary: 5,000 for each
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;

static u64 random_bits(void)
{
	static u64 state = 1;
	u64 z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Any double that is a number, or one whose size is from 2^-@range to 2^@range */
static double any_number(int range)
{
	u64 bits = random_bits();
	double x;

	if (range)
		bits = (bits & ~(0x7ffull << 52)) | (1023 - range + bits % (2 * range)) << 52;
	memcpy(&x, &bits, sizeof(x));
	return x - x == 0 ? x : 0;
}

static int text(void)
{
	static const char * const formats[] = { "%.17g", "%a", "%.3e", "%f", "%g", "%.40g" };
	u64 total = 0, bits;
	char said[400];
	int i;

	for (i = 1; i <= 1000000; i++) {
		const char *format = formats[i % 6];
		double x = any_number(i % 6 == 1 || i % 4 == 0 ? 100 : 0), back;
		char *c;

		snprintf(said, sizeof(said), format, x);
		for (c = said; *c; c++)
			total = total * 31 + *c;
		back = strtod(said, NULL);
		memcpy(&bits, &back, sizeof(bits));
		total = total * 31 + bits;
		if (i % 6 < 2 && back != x)
			printf("%s is %a, and not %a\n", said, back, x);
		if (i % 50000 == 0)
			printf("%d %llx\n", i, (unsigned long long)total);
	}
	return 0;
}

static void put(double x)
{
	fwrite(&x, sizeof(x), 1, stdout);
}

/* Names of functions, by the range of what they are called with: tests/cardcode reads these. */
#define OF_ONE(F, G) \
	F(sin, 20) F(cos, 20) F(tan, 20) F(atan, 20) F(asinh, 20) F(exp, 9) F(exp2, 9) \
	F(expm1, 9) F(sinh, 9) F(cosh, 9) F(tanh, 9) F(cbrt, 100) F(erf, 3) F(erfc, 4) \
	F(floor, 60) F(ceil, 60) F(rint, 60) F(round, 60) F(trunc, 60) F(fabs, 100) \
	F(logb, 100) F(asin, 1) F(acos, 1) F(tgamma, 6) F(lgamma, 9) \
	G(sqrt, 500) G(log, 500) G(log2, 500) G(log10, 500) G(log1p, 100) G(acosh, 100) \
	G(atanh, 1) G(sqrtf, 60) G(logf, 60) G(expf, 6) G(sinf, 10) G(j0, 6) G(y1, 6)
#define OF_TWO(F) \
	F(pow, 8) F(atan2, 50) F(hypot, 100) F(fmod, 30) F(remainder, 30) F(fmax, 9) \
	F(fdim, 9) F(copysign, 9) F(nextafter, 100) F(powf, 6)

#define ANY(f, range) for (i = 0; i < 5000; i++) put(f(any_number(range)));
#define POSITIVE(f, range) for (i = 0; i < 5000; i++) put(f(fabs(any_number(range))));
#define TWO(f, range) for (i = 0; i < 5000; i++) put(f(fabs(any_number(range)), any_number(range)));

int main(int argc, char **argv)
{
	int i;

	if (argc == 2 && !strcmp(argv[1], "text"))
		return text();
	OF_ONE(ANY, POSITIVE)
	OF_TWO(TWO)
	return 0;
}
