/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs of this folder count: a loop whose length is known. */
#ifndef TOOLS_LOOPS_H
#define TOOLS_LOOPS_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* 20 instructions a round, one of them a branch; see loops.S */
void spin20(unsigned long n);

#define PER_ROUND	20

__attribute__((noreturn, format(printf, 1, 2)))
static inline void fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	exit(1);
}

#define must(condition, ...) do { if (!(condition)) fail(__VA_ARGS__); } while (0)

#endif /* TOOLS_LOOPS_H */
