/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: instructions that let time pass, PAUSE and DELAY, and those
 * that count bits
 */
#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "internal.h"

/*
 * PAUSE takes a while: a thread that spins executes fewer instructions.  So do
 * a device, one that is not there, and code that is written as it executes.
 */
#define PAUSE_SLOTS             256
#define DEVICE_SLOTS            128

static void knc_pmu_delay(CPUX86State *env, uint64_t slots)
{
    KncPmuState *s = &env->knc_pmu;

    knc_clock_pass(env, slots);
    if (s->tb_flags) {
        s->count.replays += slots;
        s->count.stalls += slots != 0;
        s->tally.waits[s->count.ring] += slots;
    }
}

/* DELAY: as many cycles as its operand says, 2^32 - 1 at most */
void helper_knc_delay(CPUX86State *env, target_ulong cycles)
{
    int slot_cycles = env->knc_pmu.count.slot_cycles;

    knc_pmu_delay(env, DIV_ROUND_UP(MIN(cycles, UINT32_MAX),
                                    (uint64_t)slot_cycles));
}

void knc_pmu_wait_for_device(CPUState *cs)
{
    CPUX86State *env = &X86_CPU(cs)->env;

    if (env->knc.pmu) {
        knc_pmu_delay(env, DEVICE_SLOTS);
    }
}

/* The thread keeps its turn. */
void knc_pmu_pause(CPUX86State *env)
{
    CPUState *cs = env_cpu(env);

    if (env->knc.pmu) {
        knc_pmu_delay(env, PAUSE_SLOTS);
        cs->exception_index = -1;
        cpu_loop_exit(cs);
    }
}

/* A count of 0 sets ZF, no bit found CF; the others are cleared. */
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
