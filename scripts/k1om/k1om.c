// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * <fenv.h> for a card: exceptions and rounding of the x87 alone. musl's for x86-64 also changes
 * MXCSR, which belongs to the vector unit on this chip.
 */
#include <fenv.h>

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
