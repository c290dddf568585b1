// SPDX-License-Identifier: GPL-2.0-only
/*
 * An idle driver like the cards' own, for one CPU of the emulated card, which has no deep idle
 * states. It does the same to the PMU: it saves the registers except STATUS, clears them, and
 * restores them in the same order, the LVT entry last. Until then so many instructions are
 * executed that an event with a short period overflows, and its interrupt is lost.
 *
 * The functions have the names of the cards' driver; knc_test_idle_other.c has others.
 */
#include <linux/cpuidle.h>
#include <linux/module.h>
#include <linux/sched.h>

#include <asm/apic.h>
#include <asm/msr.h>
#include <asm/system.h>

#define STATES		2
#define PERFCTR		0x20
#define EVNTSEL		0x28
#define SPFLT_CONTROL	0x2c
#define GLOBAL_STATUS	0x2d
#define OVF_CONTROL	0x2e
#define GLOBAL_CTRL	0x2f

/* How many turns of a loop the CPU takes to wake */
#define TURNS		20000

/* The state to use, if the governor asks for it */
static int state;
module_param(state, int, 0644);
/* How many times it has lost an interrupt */
static unsigned long lost;
module_param(lost, ulong, 0444);

/* The registers that are saved and restored, in this order */
static const u32 registers[] = {
	GLOBAL_CTRL, PERFCTR, PERFCTR + 1, EVNTSEL, EVNTSEL + 1, SPFLT_CONTROL,
};

/* Clears the registers as a reset does; GLOBAL_CTRL first, which stops the counters. */
static void lose(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(registers); i++)
		wrmsrl(registers[i], 0);
	apic_write(APIC_LVTPC, APIC_LVT_MASKED);
	wrmsrl(OVF_CONTROL, 3);
}

static void sleep_deeply(void)
{
	u64 saved[ARRAY_SIZE(registers)], status;
	u32 lvtpc;
	int i;

	for (i = 0; i < ARRAY_SIZE(registers); i++)
		rdmsrl(registers[i], saved[i]);
	lvtpc = apic_read(APIC_LVTPC);
	lose();
	for (i = 0; i < ARRAY_SIZE(registers); i++)
		wrmsrl(registers[i], saved[i]);
	for (i = 0; i < TURNS; i++)
		barrier();
	rdmsrl(GLOBAL_STATUS, status);
	apic_write(APIC_LVTPC, lvtpc);
	lost += !!status;
}

/* Interrupts are off: the one that wakes the CPU comes after the registers are restored. */
static int enter(void)
{
	current_thread_info()->status &= ~TS_POLLING;
	/* from here on it takes an interrupt to wake the CPU */
	smp_mb();
	if (!need_resched()) {
		sleep_deeply();
		safe_halt();
	}
	current_thread_info()->status |= TS_POLLING;
	local_irq_enable();
	return 0;
}

static int mic_idle_enter_cc6(struct cpuidle_device *dev, struct cpuidle_state *state)
{
	return enter();
}

static int mic_idle_enter_pc3(struct cpuidle_device *dev, struct cpuidle_state *state)
{
	return enter();
}

/* Leaves the governor one state. */
static int prepare(struct cpuidle_device *dev)
{
	int i;

	for (i = 0; i < STATES; i++)
		dev->states[CPUIDLE_DRIVER_STATE_START + i].flags =
			CPUIDLE_FLAG_DEEP | (i == state ? 0 : CPUIDLE_FLAG_IGNORE);
	return 0;
}

/* Without an owner: each device would hold a reference to it. */
static struct cpuidle_driver driver = {
	.name = "knc_test_idle",
};

static struct cpuidle_device device = {
	.state_count = CPUIDLE_DRIVER_STATE_START + STATES,
	.prepare = prepare,
	.states[CPUIDLE_DRIVER_STATE_START] = {
		.name = "CC6",
		.enter = mic_idle_enter_cc6,
	},
	.states[CPUIDLE_DRIVER_STATE_START + 1] = {
		.name = "PC3",
		.enter = mic_idle_enter_pc3,
	},
};

static int __init knc_test_idle_init(void)
{
	int ret = cpuidle_register_driver(&driver);

	if (ret)
		return ret;
	/* The last one sleeps deeply. */
	device.cpu = num_online_cpus() - 1;
	ret = cpuidle_register_device(&device);
	if (ret)
		cpuidle_unregister_driver(&driver);
	return ret;
}
module_init(knc_test_idle_init);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("An idle driver like that of the cards, for tests");
