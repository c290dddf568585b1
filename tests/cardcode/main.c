// SPDX-License-Identifier: GPL-2.0-only
/*
 * The other half: prints what an x86-64 computes, whose compiler passes these things in SSE
 * registers. All results are exact, and do not depend on how a computation is rounded.
 */
#include "calls.h"

#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static volatile double three = 3, tenth = 0.1;

/* What is stored, cast or returned is a double, and no more: how often it is not */
static int excess(void)
{
	volatile double stored;
	int wrong = 0, i;

	for (i = 1; i < 1000; i++) {
		double a = tenth * i, b = a / three;

		stored = b;
		wrong += stored != b;
		stored = a * b;
		wrong += stored != (double)(a * b);
		stored = sum(a, 2, i, 0);
		wrong += stored != sum(a, 2, i, 0);
		stored = (float)(a * b);
		wrong += stored != (float)(a * b);
	}
	return wrong;
}

static void rounding(void)
{
	static const int modes[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST };
	fenv_t kept;
	size_t i;

	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		fesetround(modes[i]);
		printf("%d %ld %.0f %.0f\n", fegetround() == modes[i], lrint(tenth * 25),
		       rint(-three / 2), nearbyint(three / 2));
	}
	feclearexcept(FE_ALL_EXCEPT);
	three = three / 0.0;
	printf("%d %d", !!fetestexcept(FE_DIVBYZERO), !!fetestexcept(FE_INVALID));
	feholdexcept(&kept);
	feraiseexcept(FE_INVALID);
	printf(" %d %d", !!fetestexcept(FE_DIVBYZERO), !!fetestexcept(FE_INVALID));
	fesetenv(&kept);
	printf(" %d %d\n", !!fetestexcept(FE_DIVBYZERO), !!fetestexcept(FE_INVALID));
	three = 3;
}

static void jumps(void)
{
	jmp_buf back;
	volatile double x = 1;

	if (!setjmp(back)) {
		x = 2.5;
		longjmp(back, 1);
	}
	printf("%g\n", x);
}

int main(void)
{
	struct mixed m = { 4, 1.5 };
	struct small s = { 3, 0.25 };
	struct two t = { 6, 4 };
	struct wide w = { { 1, 2, 3, 4 } };
	struct large l = { { 1, 2, 3 }, 'x' };
	union either e = { .d = 1.25 };
	double _Complex z = turn(2 + 3 * I, 1);
	float _Complex f = turnf(20 - 10 * I);

	printf("%g %g %Lg %g %g\n", sum(1.5, 2.5, 3, 4), product(3, 1.5), longest(2, 2.25),
	       last_call(1), get_one((struct one){ 1 }, 2).d);
	t = get_two(2, t);
	m = get_mixed(m, 3);
	printf("%g %g %ld %g %g %g %g\n", t.a, t.b, m.i, m.d, get_small(s).f,
	       get_large(l, 2).d[2], get_either(e).d);
	printf("%g %g %g %g %g\n", creal(z), cimag(z), crealf(f), cimagf(f), cabs(3 + 4 * I));
	printf("%d %d %d %d\n", is_less(1, 2), is_less(2, 1), is_less(1, 1), is_less(NAN, 1));
	printf("%g\n", variadic("dimsdltwcmmmmdwtd", 1.5, 2, m, s, 2.5, 3.5L, t, w, 1 + 4.0 * I,
				m, m, m, m, 8.25, w, t, 0.5));
	printf("%g %g\n", chosen(0)(16), chosen(1)(16));
	printf("%g %g %d\n", strtod("1e23", NULL), atof("-0x1.8p3"), (int)strtold("77.9", NULL));
	printf("%a %a\n", (double)(unsigned long)(three * 0x1p62), (double)~0ul);
	rounding();
	jumps();
	printf("%d\n", excess());
	return 0;
}
