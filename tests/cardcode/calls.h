/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions that the two halves of a program call in each other */
#include <complex.h>
#include <stdarg.h>

struct one { double d; };
struct two { float a, b; };
struct mixed { long i; double d; };
struct small { int i; float f; };
struct large { double d[3]; char c; };
union either { double d; long i; };
struct wide { _Alignas(16) float f[4]; };

double sum(double a, float b, int i, long double c);
float product(float a, double b);
long double longest(double a, long double b);
struct one get_one(struct one x, int i);
struct two get_two(int i, struct two x);
struct mixed get_mixed(struct mixed x, double d);
struct small get_small(struct small x);
struct large get_large(struct large x, double d);
union either get_either(union either x);
double _Complex turn(double _Complex z, int i);
float _Complex turnf(float _Complex z);
double last_call(double a);
int is_less(double a, double b);
double variadic(const char *what, ...);
double variadic_list(const char *what, va_list ap);
double (*chosen(int i))(double);
