// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that uses PAPI: two presets at once, native events, a third event, and
 * overflow
 */
#include "loops.h"

#include <papi.h>

#define ROUNDS		1000000
/* Instructions of PAPI between the counter's start and its stop */
#define SLACK		20000
#define OVERFLOWS	40

static volatile int overflows;

#define papi(call) do {							\
	int rc_ = (call);						\
									\
	must(rc_ == PAPI_OK, #call ": %s", PAPI_strerror(rc_));		\
} while (0)

static int new_set(void)
{
	int set = PAPI_NULL, rc;

	rc = PAPI_library_init(PAPI_VER_CURRENT);
	must(rc == PAPI_VER_CURRENT, "PAPI_library_init: %s",
	     rc > 0 ? "another version" : PAPI_strerror(rc));
	papi(PAPI_create_eventset(&set));
	return set;
}

static void check(const char *what, long long got, long long want)
{
	must(got >= want && got <= want + SLACK, "%s: %lld, not %lld", what, got, want);
}

/*
 * The loop between start and stop, with these two. A third event is refused, and changes
 * nothing: for PAPI the kernel's EINVAL means that a group does not fit.
 */
static void test_count(const char *insns, const char *branches, const char *third)
{
	long long values[2];
	int set = new_set(), rc;

	papi(PAPI_add_named_event(set, insns));
	papi(PAPI_add_named_event(set, branches));
	rc = PAPI_add_named_event(set, third);
	must(rc == PAPI_EINVAL || rc == PAPI_ECNFLCT, "a third event: %s",
	     rc == PAPI_OK ? "was taken" : PAPI_strerror(rc));
	papi(PAPI_start(set));
	spin20(ROUNDS);
	papi(PAPI_stop(set, values));
	check(insns, values[0], (long long)ROUNDS * PER_ROUND);
	check(branches, values[1], ROUNDS);
}

static void on_overflow(int set, void *address, long long vector, void *context)
{
	(void)set;
	(void)address;
	(void)vector;
	(void)context;
	overflows++;
}

static void test_overflow(void)
{
	const int period = ROUNDS * PER_ROUND / OVERFLOWS;
	int set = new_set(), code;
	long long value;

	papi(PAPI_add_named_event(set, "PAPI_TOT_INS"));
	papi(PAPI_event_name_to_code("PAPI_TOT_INS", &code));
	papi(PAPI_overflow(set, code, period, 0, on_overflow));
	papi(PAPI_start(set));
	spin20(ROUNDS);
	papi(PAPI_stop(set, &value));
	/* Each handler's own instructions count, and add up to less than a period. */
	must(overflows == value / period && overflows >= OVERFLOWS,
	     "%d overflows at %lld instructions, %d apart", overflows, value, period);
}

int main(void)
{
	test_count("PAPI_TOT_INS", "PAPI_BR_INS", "PAPI_TOT_CYC");
	test_count("INSTRUCTIONS_EXECUTED", "BRANCHES", "CPU_CLK_UNHALTED");
	test_overflow();
	return 0;
}
