// SPDX-License-Identifier: GPL-2.0-only
/* The macros for bits and fields in compat/2.6.38, against a newer kernel's */
#include <kunit/test.h>
#include <linux/bitfield.h>
#include <linux/bitops.h>
#include <linux/bits.h>
#include <linux/module.h>

#include "../../compat/2.6.38/bits.h"

static void test_single_bits(struct kunit *test)
{
	unsigned int nr;

	for (nr = 0; nr < 64; nr++)
		KUNIT_EXPECT_EQ(test, COMPAT_BIT_ULL(nr), BIT_ULL(nr));
}

static void test_genmask(struct kunit *test)
{
#define CHECK(high, low)						\
	KUNIT_EXPECT_EQ(test, COMPAT_GENMASK_ULL(high, low), GENMASK_ULL(high, low))

	CHECK(0, 0);
	CHECK(7, 0);
	CHECK(15, 8);
	CHECK(31, 24);
	CHECK(32, 31);
	CHECK(39, 0);
	CHECK(63, 0);
	CHECK(63, 63);
	CHECK(62, 1);
#undef CHECK
}

static void test_field_get(struct kunit *test)
{
	static const u64 values[] = {
		0, 1, 0x80, 0xff, 0x12cb10cb, 0x8000000000000000, 0xfedcba9876543210, ~0ULL,
	};
	unsigned int i;

#define CHECK(mask, value)						\
	KUNIT_EXPECT_EQ(test, COMPAT_FIELD_GET(mask, value), FIELD_GET(mask, value))

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		CHECK(GENMASK_ULL(7, 0), values[i]);
		CHECK(GENMASK_ULL(15, 8), values[i]);
		CHECK(GENMASK_ULL(31, 24), values[i]);
		CHECK(BIT_ULL(0), values[i]);
		CHECK(BIT_ULL(63), values[i]);
		CHECK(GENMASK_ULL(63, 40), values[i]);
		CHECK(GENMASK_ULL(63, 0), values[i]);
	}
#undef CHECK
}

static void test_sign_extend(struct kunit *test)
{
	static const u64 values[] = {
		0, 1, 0x7fffffffff, 0x8000000000, 0xffffffffff, 0x10000000000, ~0ULL,
	};
	unsigned int i;
	int bit;

	for (i = 0; i < ARRAY_SIZE(values); i++)
		for (bit = 0; bit < 64; bit++)
			KUNIT_EXPECT_EQ(test, compat_sign_extend64(values[i], bit),
					sign_extend64(values[i], bit));
}

static struct kunit_case knc_compat_cases[] = {
	KUNIT_CASE(test_single_bits),
	KUNIT_CASE(test_genmask),
	KUNIT_CASE(test_field_get),
	KUNIT_CASE(test_sign_extend),
	{}
};

static struct kunit_suite knc_compat_suite = {
	.name = "knc_compat",
	.test_cases = knc_compat_cases,
};

kunit_test_suite(knc_compat_suite);

MODULE_DESCRIPTION("Tests of what an old kernel lacks");
MODULE_LICENSE("GPL");
