/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: what the instructions of the vector unit compute, lane by
 * lane (Intel document 327364-001, as others quote it)
 *
 * Documentation/emulator.rst says what is not public.
 */
#include "qemu/osdep.h"
#include <math.h>
#include "qemu/host-utils.h"
#include "cpu.h"
#include "vector.h"

#define KNC_FOREACH_LANE(v, i, n) \
    for (int i = 0; i < (n); i++) \
        if ((v)->mask >> i & 1)

/* Elements are @type, in @part of a vector: a, b, and d, the old result */
#define LANES(name, type, part, n, result) \
static void glue(knc_, name)(KncLanes *v) \
{ \
    KNC_FOREACH_LANE(v, i, n) { \
        type a = v->a->part(i), b = v->b->part(i), d = v->d->part(i); \
        \
        (void)a, (void)b, (void)d; \
        v->d->part(i) = (result); \
    } \
}

#define COMPARE(name, type, part, n, condition) \
static void glue(knc_, name)(KncLanes *v) \
{ \
    KNC_FOREACH_LANE(v, i, n) { \
        type a = v->a->part(i), b = v->b->part(i); \
        \
        v->k |= (uint32_t)(condition) << i; \
    } \
}

/* Integers */

#define UNSIGNED(name, result)  LANES(name, uint32_t, ZMM_L, 16, result)
#define SIGNED(name, result)    LANES(name, int32_t, ZMM_L, 16, result)
#define QUADS(name, result)     LANES(name, uint64_t, ZMM_Q, 8, result)

UNSIGNED(vpandd, a & b)
QUADS(vpandq, a & b)
UNSIGNED(vpandnd, ~a & b)
QUADS(vpandnq, ~a & b)
UNSIGNED(vpord, a | b)
QUADS(vporq, a | b)
UNSIGNED(vpxord, a ^ b)
QUADS(vpxorq, a ^ b)
UNSIGNED(vpaddd, a + b)
UNSIGNED(vpsubd, a - b)
UNSIGNED(vpsubrd, b - a)
SIGNED(vpminsd, MIN(a, b))
UNSIGNED(vpminud, MIN(a, b))
SIGNED(vpmaxsd, MAX(a, b))
UNSIGNED(vpmaxud, MAX(a, b))
UNSIGNED(vpmulld, a * b)
UNSIGNED(vpmulhud, (uint64_t)a * b >> 32)
SIGNED(vpmulhd, (int64_t)a * b >> 32)
UNSIGNED(vpmadd231d, a * b + d)
UNSIGNED(vpsllvd, b > 31 ? 0 : a << b)
UNSIGNED(vpsrlvd, b > 31 ? 0 : a >> b)
SIGNED(vpsravd, a >> MIN((uint32_t)b, 31))
UNSIGNED(vpslld, v->imm > 31 ? 0 : b << v->imm)
UNSIGNED(vpsrld, v->imm > 31 ? 0 : b >> v->imm)
SIGNED(vpsrad, b >> MIN(v->imm, 31))

/* The mask chooses: these have all lanes. */
#define BLEND(name, part, n) \
static void knc_##name(KncLanes *v) \
{ \
    for (int i = 0; i < (n); i++) { \
        v->d->part(i) = v->mask >> i & 1 ? v->b->part(i) : v->a->part(i); \
    } \
}

BLEND(vpblendmd, ZMM_L, 16)
BLEND(vpblendmq, ZMM_Q, 8)
BLEND(vblendmps, ZMM_L, 16)
BLEND(vblendmpd, ZMM_Q, 8)

/* The predicate in bits 2:0 of imm8, by whether a is less or equal */
static bool knc_predicate(int imm, bool less, bool equal)
{
    bool result = (imm & 3) == 0 ? equal : (imm & 3) == 1 ? less :
                  (imm & 3) == 2 ? less || equal : false;

    return result ^ (imm >> 2 & 1);
}

COMPARE(vpcmpeqd, uint32_t, ZMM_L, 16, a == b)
COMPARE(vpcmpgtd, int32_t, ZMM_L, 16, a > b)
COMPARE(vpcmpltd, int32_t, ZMM_L, 16, a < b)
COMPARE(vptestmd, uint32_t, ZMM_L, 16, (a & b) != 0)
COMPARE(vpcmpd, int32_t, ZMM_L, 16, knc_predicate(v->imm, a < b, a == b))
COMPARE(vpcmpud, uint32_t, ZMM_L, 16, knc_predicate(v->imm, a < b, a == b))

static void knc_set_k(KncLanes *v, int i, bool bit)
{
    v->k = deposit32(v->k, i, 1, bit);
}

/* Carries, borrows and signs, to the other mask; with @from also from it */
#define CARRY(name, from, result, carry) \
static void knc_##name(KncLanes *v) \
{ \
    KNC_FOREACH_LANE(v, i, 16) { \
        uint64_t a = v->a->ZMM_L(i), b = v->b->ZMM_L(i); \
        uint64_t k = from ? v->k >> i & 1 : 0, r = (result); \
        \
        (void)k; \
        v->d->ZMM_L(i) = r; \
        knc_set_k(v, i, carry); \
    } \
}

CARRY(vpadcd, true, a + b + k, r >> 32 & 1)
CARRY(vpaddsetcd, false, a + b + k, r >> 32 & 1)
CARRY(vpsbbd, true, a - b - k, r >> 32 & 1)
CARRY(vpsubsetbd, false, a - b - k, r >> 32 & 1)
CARRY(vpsbbrd, true, b - a - k, r >> 32 & 1)
CARRY(vpsubrsetbd, false, b - a - k, r >> 32 & 1)
CARRY(vpaddsetsd, false, a + b + k, r >> 31 & 1)

/* Elements that change places: a source may be the destination. */
#define PLACES(name, part, n, result) \
static void knc_##name(KncLanes *v) \
{ \
    ZMMReg a = *v->a, b = *v->b; \
    \
    (void)a; \
    KNC_FOREACH_LANE(v, i, n) { \
        v->d->part(i) = (result); \
    } \
}
#define PERMUTE(name, result)   PLACES(name, ZMM_L, 16, result)

static uint32_t knc_align(const ZMMReg *a, const ZMMReg *b, int i)
{
    return i < 16 ? b->ZMM_L(i) : a->ZMM_L(i - 16);
}

PERMUTE(vpshufd, b.ZMM_L((i & ~3) + (v->imm >> 2 * (i & 3) & 3)))
PERMUTE(vpermf32x4, b.ZMM_L(4 * (v->imm >> 2 * (i / 4) & 3) + (i & 3)))
PERMUTE(vpermd, b.ZMM_L(a.ZMM_L(i) & 15))
PERMUTE(valignd, knc_align(&a, &b, i + (v->imm & 15)))
PERMUTE(vpmadd233d, a.ZMM_L(i) * b.ZMM_L((i & ~3) + 1) + b.ZMM_L(i & ~3))

/* Floating point */

static const FloatRoundMode rounding[] = {
    float_round_nearest_even, float_round_down, float_round_up,
    float_round_to_zero,
};

void knc_set_rounding(float_status *fp, int rc)
{
    set_float_rounding_mode(rounding[rc & 3], fp);
}

/* Fixed point: bits 6:4 of imm8 say how many bits are behind the point. */
static int knc_fraction(int imm)
{
    static const uint8_t bits[] = { 0, 4, 5, 8, 16, 24, 31, 32 };

    return bits[imm >> 4 & 7];
}

#ifdef CONFIG_CPUID_H
static bool has_fma;    /* of the host, and vectors of 256 bits */

static void __attribute__((constructor)) knc_look_at_host(void)
{
    __builtin_cpu_init();
    has_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

/* A status without FZ and without flags */
static float_status knc_unflushed(const float_status *fp)
{
    float_status s = *fp;

    set_flush_to_zero(false, &s);
    set_float_exception_flags(0, &s);
    return s;
}

/*
 * The result of an operation with *@fp, which is a variable.  Before QEMU 10
 * softfloat flushes what is tiny before it has been rounded.
 */
#define ROUNDED(bits, fp, operation) ({ \
    float_status *outer = (fp), unflushed; \
    bool flush = get_flush_to_zero(outer); \
    glue(float, bits) rounded; \
    \
    if (flush) { \
        unflushed = knc_unflushed(outer); \
        fp = &unflushed; \
    } \
    rounded = (operation); \
    fp = outer; \
    flush ? glue(knc_flush, bits)(rounded, &unflushed, fp) : rounded; \
})

#define BITS    32
#include "vector-float.c.inc"
#undef BITS
#define BITS    64
#include "vector-float.c.inc"
#undef BITS

LANES(vgmaxabsps, float32, ZMM_S, 16,
      knc_extreme32(float32_abs(a), float32_abs(b), true, &v->fp))

static float32 knc_scale(float32 a, int n, float_status *fp)
{
    return ROUNDED(32, fp, float32_scalbn(a, n, fp));
}

LANES(vscaleps, float32, ZMM_S, 16,
      knc_scale(a, (int32_t)float32_val(b), &v->fp))

CARRY(vaddsetsps, false, knc_add32(a, b, &v->fp), r >> 31 & 1)
PERMUTE(vfmadd233ps, knc_muladd32(a.ZMM_S(i), b.ZMM_S((i & ~3) + 1),
                                  b.ZMM_S(i & ~3), 0, &v->fp))

/* Of eight lanes; results of 32 bits are in the low half, the high half is 0 */
#define WIDEN(name, result)     PLACES(name, ZMM_Q, 8, result)
#define NARROW(name, result) \
static void knc_##name(KncLanes *v) \
{ \
    ZMMReg b = *v->b; \
    \
    KNC_FOREACH_LANE(v, i, 8) { \
        v->d->ZMM_L(i) = (result); \
    } \
    memset(&v->d->ZMM_L(8), 0, 32); \
}

static float32 knc_narrow(float64 a, float_status *fp)
{
    return ROUNDED(32, fp, float64_to_float32(a, fp));
}

WIDEN(vcvtps2pd, float32_to_float64(b.ZMM_S(i), &v->fp))
WIDEN(vcvtdq2pd, int32_to_float64(b.ZMM_L(i), &v->fp))
WIDEN(vcvtudq2pd, uint32_to_float64(b.ZMM_L(i), &v->fp))
NARROW(vcvtpd2ps, knc_narrow(b.ZMM_D(i), &v->fp))
NARROW(vcvtfxpntpd2dq, knc_to_fixed64(b.ZMM_D(i), true, v))
NARROW(vcvtfxpntpd2udq, knc_to_fixed64(b.ZMM_D(i), false, v))
LANES(vcvtfxpntps2dq, float32, ZMM_S, 16, knc_to_fixed32(b, true, v))
LANES(vcvtfxpntps2udq, float32, ZMM_S, 16, knc_to_fixed32(b, false, v))

static float_status *knc_rounded_by_imm(KncLanes *v)
{
    knc_set_rounding(&v->fp, v->imm);
    return &v->fp;
}

SIGNED(vcvtfxpntdq2ps, int32_to_float32_scalbn(b, -knc_fraction(v->imm),
                                               knc_rounded_by_imm(v)))
UNSIGNED(vcvtfxpntudq2ps, uint32_to_float32_scalbn(b, -knc_fraction(v->imm),
                                                   knc_rounded_by_imm(v)))

/*
 * Approximations: the correctly rounded value, or one next to it.  Denormal
 * arguments and results are zeros.
 */
static float32 knc_approximate(float32 b, double (*f)(double), float_status *fp)
{
    union {
        float64 bits;
        double value;
    } x;

    if (float32_is_any_nan(b)) {
        return knc_quiet32(b, fp);
    }
    b = float32_is_denormal(b) ? float32_set_sign(float32_zero,
                                                  float32_is_neg(b)) : b;
    x.bits = float32_to_float64(b, fp);
    x.value = f(x.value);
    if (isinf(x.value) && !float32_is_infinity(b)) {
        float_raise(float_flag_divbyzero, fp);
    }
    if (isnan(x.value)) {
        float_raise(float_flag_invalid, fp);
        return float32_default_nan(fp);
    }
    set_flush_to_zero(true, fp);
    knc_set_rounding(fp, 0);
    return float64_to_float32(x.bits, fp);
}

static double knc_reciprocal(double x)
{
    return 1 / x;
}

static double knc_reciprocal_root(double x)
{
    return 1 / sqrt(x);
}

#define APPROXIMATE(name, f) \
    LANES(name, float32, ZMM_S, 16, knc_approximate(b, f, &v->fp))

APPROXIMATE(vrcp23ps, knc_reciprocal)
APPROXIMATE(vrsqrt23ps, knc_reciprocal_root)
APPROXIMATE(vlog2ps, log2)

/* The power of two of a number with 24 bits behind the point */
static float32 knc_exp2(int32_t b, float_status *fp)
{
    union {
        float64 bits;
        double value;
    } x = { .value = exp2(ldexp(b, -24)) };

    if (b == INT32_MAX) {
        return float32_infinity;
    }
    set_flush_to_zero(true, fp);
    knc_set_rounding(fp, 0);
    return float64_to_float32(x.bits, fp);
}

LANES(vexp223ps, float32, ZMM_S, 16, knc_exp2(float32_val(b), &v->fp))

#define NP      0
#define P66     1
#define PF3     2
#define PF2     3
#define W0      0
#define W1      1
#define WIG     2
#define DIGIT(n)    ((n + 1) << 8)
#define ROW(name, map, prefix, w, opcode, shape, operand, eh, lanes) \
    { #name, map, prefix, w, (opcode) & 0xff, ((opcode) >> 8) - 1, \
      KNC_##shape, KNC_##operand, KNC_##eh, lanes },
#define VECTOR(name, ...)   ROW(name, __VA_ARGS__, knc_##name)
#define MOVE(name, ...)     ROW(name, __VA_ARGS__, NULL)

const KncVectorInsn knc_vector_insns[] = {
#include "vector-insns.h.inc"
};

const int knc_vector_insns_n = ARRAY_SIZE(knc_vector_insns);
