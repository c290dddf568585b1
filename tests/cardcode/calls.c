// SPDX-License-Identifier: GPL-2.0-only
/* One half of the program: what is called */
#include "calls.h"

#include <math.h>

double sum(double a, float b, int i, long double c)
{
	return a + b + i + c;
}

float product(float a, double b)
{
	return a * b;
}

long double longest(double a, long double b)
{
	return a * b;
}

struct one get_one(struct one x, int i)
{
	x.d += i;
	return x;
}

struct two get_two(int i, struct two x)
{
	struct two y = { x.b * i, x.a + i };

	return y;
}

struct mixed get_mixed(struct mixed x, double d)
{
	x.i += 3;
	x.d *= d;
	return x;
}

struct small get_small(struct small x)
{
	x.f += x.i;
	return x;
}

struct large get_large(struct large x, double d)
{
	x.d[2] += d;
	return x;
}

union either get_either(union either x)
{
	x.d *= 2;
	return x;
}

double _Complex turn(double _Complex z, int i)
{
	return conj(z) + i;
}

float _Complex turnf(float _Complex z)
{
	return z - 2;
}

double last_call(double a)
{
	return sum(a, 1, 2, 3);
}

int is_less(double a, double b)
{
	return a < b ? 1 : a > b ? 2 : a == b ? 3 : 4;
}

/* The letters of @what are the arguments' types. */
double variadic_list(const char *what, va_list ap)
{
	double total = 0;
	struct mixed m;
	struct small s;
	struct two t;
	struct wide w;

	for (; *what; what++) {
		switch (*what) {
		case 'd':
			total += va_arg(ap, double);
			break;
		case 'i':
			total += va_arg(ap, int);
			break;
		case 'l':
			total += va_arg(ap, long double);
			break;
		case 'm':
			m = va_arg(ap, struct mixed);
			total += m.i * m.d;
			break;
		case 's':
			s = va_arg(ap, struct small);
			total += s.i * s.f;
			break;
		case 't':
			t = va_arg(ap, struct two);
			total += t.a / t.b;
			break;
		case 'w':
			w = va_arg(ap, struct wide);
			total += w.f[0] + 2 * w.f[3];
			break;
		case 'c':
			total += cimag(va_arg(ap, double _Complex));
			break;
		}
		total *= 3;
	}
	return total;
}

double variadic(const char *what, ...)
{
	double total;
	va_list ap;

	va_start(ap, what);
	total = variadic_list(what, ap);
	va_end(ap);
	return total;
}

static double half(double x)
{
	return x / 2;
}

double (*chosen(int i))(double)
{
	return i ? half : sqrt;
}
