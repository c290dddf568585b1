// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What programs for a Knights Corner need and libraries have in SSE only: the floating-point
 * environment, as musl has it, and functions of libgcc that gcc calls: 128-bit integers, powers,
 * complex numbers. build-k1om puts this into its C library. A function of libgcc that is
 * not here is missing when a program is linked: libgcc's own would be wrong without a word.
 *
 * long double is what the x87 computes in: a double or a float loses nothing by it.
 */
#include <fenv.h>
#include <math.h>
#include <stdbool.h>

typedef unsigned __int128 u128;
typedef __int128 s128;
typedef unsigned long u64;

/* Exceptions and rounding of the x87 alone: MXCSR belongs to the vector unit. */

static void change_exceptions(int clear, int set)
{
	fenv_t env;

	__asm__ volatile ("fnstenv %0" : "=m" (env));
	env.__status_word = (env.__status_word & ~(clear & FE_ALL_EXCEPT)) |
			    (set & FE_ALL_EXCEPT);
	__asm__ volatile ("fldenv %0" : : "m" (env));
}

int feclearexcept(int mask)
{
	change_exceptions(mask, 0);
	return 0;
}

int feraiseexcept(int mask)
{
	change_exceptions(0, mask);
	return 0;
}

int fetestexcept(int mask)
{
	unsigned short status;

	__asm__ volatile ("fnstsw %0" : "=a" (status));
	return status & mask & FE_ALL_EXCEPT;
}

int fegetround(void)
{
	unsigned short control;

	__asm__ volatile ("fnstcw %0" : "=m" (control));
	return control & FE_TOWARDZERO;
}

/* musl's fesetround() has checked the mode. */
__attribute__((visibility("hidden"))) int __fesetround(int mode)
{
	unsigned short control;

	__asm__ volatile ("fnstcw %0" : "=m" (control));
	control = (control & ~FE_TOWARDZERO) | mode;
	__asm__ volatile ("fldcw %0" : : "m" (control));
	return 0;
}

int fegetenv(fenv_t *env)
{
	__asm__ volatile ("fnstenv %0" : "=m" (*env));
	return 0;
}

int fesetenv(const fenv_t *env)
{
	if (env == FE_DFL_ENV)
		__asm__ volatile ("fninit");
	else
		__asm__ volatile ("fldenv %0" : : "m" (*env));
	return 0;
}

/* 128-bit integers */

u128 __udivmodti4(u128 n, u128 d, u128 *rest)
{
	u64 high = n >> 64, low = n, quotient, remainder;
	u128 result = 0, left = 0;
	int i;

	if (!(d >> 64)) {
		/* The two steps of a division by hand, of 64 bits each */
		result = (u128)(high / (u64)d) << 64;
		__asm__ ("divq %4" : "=a" (quotient), "=d" (remainder)
			 : "a" (low), "d" (high % (u64)d), "r" ((u64)d) : "cc");
		result |= quotient;
		left = remainder;
	} else {
		for (i = 127; i >= 0; i--) {
			left = left << 1 | (n >> i & 1);
			if (left >= d) {
				left -= d;
				result |= (u128)1 << i;
			}
		}
	}
	if (rest)
		*rest = left;
	return result;
}

u128 __udivti3(u128 n, u128 d)
{
	return __udivmodti4(n, d, 0);
}

u128 __umodti3(u128 n, u128 d)
{
	u128 rest;

	__udivmodti4(n, d, &rest);
	return rest;
}

s128 __divti3(s128 n, s128 d)
{
	u128 result = __udivmodti4(n < 0 ? -(u128)n : n, d < 0 ? -(u128)d : d, 0);

	return (n < 0) != (d < 0) ? -result : result;
}

s128 __modti3(s128 n, s128 d)
{
	u128 rest;

	__udivmodti4(n < 0 ? -(u128)n : n, d < 0 ? -(u128)d : d, &rest);
	return n < 0 ? -rest : rest;
}

int __popcountdi2(long n)
{
	u64 bits;
	int count = 0;

	for (bits = n; bits; bits &= bits - 1)
		count++;
	return count;
}

/*
 * Rounded once, by the caller: if there are more than 64 bits, the last of them is 1 if any below
 * is, and float and double have fewer.
 */
static long double from_u128(u128 n)
{
	int shift = n >> 64 ? 64 - __builtin_clzl(n >> 64) : 0;
	u128 below = ((u128)1 << shift) - 1;

	return ldexpl((u64)(n >> shift) | ((n & below) != 0), shift);
}

static u128 to_u128(long double x)
{
	u64 high = x * 0x1p-64L;

	return (u128)high << 64 | (u64)(x - high * 0x1p64L);
}

static long double power(long double x, int n)
{
	unsigned int left = n < 0 ? -(unsigned int)n : n;
	long double result = 1;

	for (; left; left >>= 1) {
		if (left & 1)
			result *= x;
		x *= x;
	}
	return n < 0 ? 1 / result : result;
}

long double __floatuntixf(u128 n)
{
	return (u64)(n >> 64) * 0x1p64L + (u64)n;
}

long double __floattixf(s128 n)
{
	return (long)(n >> 64) * 0x1p64L + (u64)n;
}

#define OF_TYPE(sf, type) \
type __powi##sf##2(type x, int n) { return power(x, n); } \
u128 __fixuns##sf##ti(type x) { return x < 1 ? 0 : to_u128(x); } \
s128 __fix##sf##ti(type x) { return x < 0 ? -to_u128(-(long double)x) : to_u128(x); }
#define FROM_INTEGER(sf, type) \
type __floatunti##sf(u128 n) { return from_u128(n); } \
type __floatti##sf(s128 n) { return n < 0 ? -from_u128(-(u128)n) : from_u128(n); }

OF_TYPE(sf, float)
OF_TYPE(df, double)
OF_TYPE(xf, long double)
FROM_INTEGER(sf, float)
FROM_INTEGER(df, double)

/* Complex numbers, as the C standard's annex G has them */

static long double _Complex pair(long double x, long double y)
{
	long double _Complex z;

	__real__ z = x;
	__imag__ z = y;
	return z;
}

/* An infinity becomes 1, anything else 0, with its sign. */
static long double boxed(long double x)
{
	return copysignl(isinf(x) ? 1 : 0, x);
}

static long double without_nan(long double x)
{
	return isnan(x) ? copysignl(0, x) : x;
}

long double _Complex __mulxc3(long double a, long double b, long double c, long double d)
{
	long double x = a * c - b * d, y = a * d + b * c;
	bool left = isinf(a) || isinf(b), right = isinf(c) || isinf(d);
	bool over = isinf(a * c) || isinf(b * d) || isinf(a * d) || isinf(b * c);

	if (!isnan(x) || !isnan(y) || !(left || right || over))
		return pair(x, y);
	if (left) {
		a = boxed(a);
		b = boxed(b);
	}
	if (right) {
		c = boxed(c);
		d = boxed(d);
	}
	a = without_nan(a);
	b = without_nan(b);
	c = without_nan(c);
	d = without_nan(d);
	return pair(INFINITY * (a * c - b * d), INFINITY * (a * d + b * c));
}

long double _Complex __divxc3(long double a, long double b, long double c, long double d)
{
	long double exponent = logbl(fmaxl(fabsl(c), fabsl(d))), square, x, y;
	int scale = isfinite(exponent) ? exponent : 0;

	c = scalbnl(c, -scale);
	d = scalbnl(d, -scale);
	square = c * c + d * d;
	x = scalbnl((a * c + b * d) / square, -scale);
	y = scalbnl((b * c - a * d) / square, -scale);
	if (!isnan(x) || !isnan(y))
		return pair(x, y);
	if (square == 0 && (!isnan(a) || !isnan(b)))
		return pair(copysignl(INFINITY, c) * a, copysignl(INFINITY, c) * b);
	if ((isinf(a) || isinf(b)) && isfinite(c) && isfinite(d)) {
		a = boxed(a);
		b = boxed(b);
		return pair(INFINITY * (a * c + b * d), INFINITY * (b * c - a * d));
	}
	if (isinf(exponent) && exponent > 0 && isfinite(a) && isfinite(b)) {
		c = boxed(c);
		d = boxed(d);
		return pair(0 * (a * c + b * d), 0 * (b * c - a * d));
	}
	return pair(x, y);
}

float _Complex __mulsc3(float a, float b, float c, float d)
{
	return __mulxc3(a, b, c, d);
}

float _Complex __divsc3(float a, float b, float c, float d)
{
	return __divxc3(a, b, c, d);
}

double _Complex __muldc3(double a, double b, double c, double d)
{
	return __mulxc3(a, b, c, d);
}

double _Complex __divdc3(double a, double b, double c, double d)
{
	return __divxc3(a, b, c, d);
}
