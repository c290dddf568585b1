/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: instructions that let time pass, PAUSE and DELAY
 */
#include "qemu/osdep.h"
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
