/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: instructions that count bits
 *
 * ZF is set for a count of 0, CF if no bit was found; the others are cleared.
 */
#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "cpu.h"
#include "exec/helper-proto.h"

/* Zeros from bit @start on; @bits if the operand has no such bit */
static int knc_trailing(uint64_t value, int64_t start, int bits)
{
    start = MAX(start, 0);
    if (start >= bits) {
        return bits;
    }
    value >>= start;
    return value ? ctz64(value) : bits - start;
}

target_ulong helper_knc_count_bits(CPUX86State *env, target_ulong old,
                                   target_ulong value, uint32_t how)
{
    int bits = how & KNC_BITS_64 ? 64 : 32;
    int64_t start = how & KNC_BITS_64 ? (int64_t)old : (int32_t)old;
    bool none = false;
    int count;

    value &= MAKE_64BIT_MASK(0, bits);
    switch (how & KNC_BITS_KIND) {
    case KNC_BITS_LZCNT:
        count = clz64(value) - (64 - bits);
        none = !value;
        break;
    case KNC_BITS_TZCNT:
        count = knc_trailing(value, 0, bits);
        none = !value;
        break;
    case KNC_BITS_TZCNTI:
        count = knc_trailing(value, start, bits);
        none = start >= bits || !(value >> MAX(start, 0));
        break;
    default:
        count = ctpop64(value);
        break;
    }
    env->cc_src = (count ? 0 : CC_Z) | (none ? CC_C : 0);
    return count;
}
