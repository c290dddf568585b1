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

target_ulong helper_knc_count_bits(CPUX86State *env, target_ulong old,
                                   target_ulong value, uint32_t how)
{
    int bits = how & KNC_BITS_64 ? 64 : 32;
    int64_t start = 0;
    bool none = false;
    int count;

    value &= MAKE_64BIT_MASK(0, bits);
    switch (how & KNC_BITS_KIND) {
    case KNC_BITS_LZCNT:
        count = clz64(value) - (64 - bits);
        none = !value;
        break;
    case KNC_BITS_TZCNTI:
        start = how & KNC_BITS_64 ? (int64_t)old : (int32_t)old;
        start = MIN(MAX(start, 0), bits);
        /* fall through */
    case KNC_BITS_TZCNT:
        none = start == bits || !(value >> start);
        /* The whole operand if it has no bit @start */
        count = none ? bits - start % bits : ctz64(value >> start);
        break;
    default:
        count = ctpop64(value);
        break;
    }
    env->cc_src = (count ? 0 : CC_Z) | (none ? CC_C : 0);
    return count;
}
