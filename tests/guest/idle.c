// SPDX-License-Identifier: GPL-2.0-only
/*
 * The idle driver of the cards' kernel masks the LVT entry as a thread wakes from deep
 * idle, so that an overflow in that time is lost. The emulated card has no such states:
 * a module here does the same to the PMU.
 */
#include "lib.h"

/* A period shorter than it takes to wake */
#define PERIOD		10007
#define SLEEPS		5

/* The idle driver's module */
static const char *sleeper;

static u64 parameter(const char *name)
{
	return must_number(text_of("/sys/module/%s/parameters/%s", sleeper, name));
}

static void choose_state(const char *number)
{
	must_write(text_of("/sys/module/%s/parameters/state", sleeper), number);
}

/* run.c has loaded it before our driver, which looks up its functions, as on the card. */
static void need_sleeper(const char *name)
{
	if (!cards_kernel())
		skip("that idle driver is the cards' own kernel's");
	module_need();
	sleeper = name;
	if (access(text_of("/sys/module/%s", name), F_OK))
		skip("the kernel has no cpuidle, or a driver for it");
}

/* After each sleep that loses an interrupt, all periods have their samples. */
static void sleep_and_sample(struct ring *r)
{
	u64 before = parameter("lost");

	for (int i = 0; i < SLEEPS; i++) {
		struct tally asleep = {}, after = {};

		usleep(15000);
		ring_tally(r, &asleep, spin_lo, spin_hi);
		spin(20 * PERIOD / 2);
		ring_tally(r, &after, spin_lo, spin_hi);
		must(after.samples - after.outside >= 18, "%llu samples after sleep %d, want 20",
		     after.samples - after.outside, i);
	}
	must(parameter("lost") >= before + SLEEPS, "%llu interrupts were lost in %d sleeps",
	     parameter("lost") - before, SLEEPS);
}

static void test_states(void)
{
	int fd, cpu = cpus_online() - 1;
	struct ring r;

	pin(cpu);
	fd = ring_open(&r, 64, sampling_attr(INSTRUCTIONS, PERIOD, PERF_SAMPLE_IP,
					     .exclude_kernel = 0), -1, cpu, -1);
	ev_on(fd);
	choose_state("0");
	sleep_and_sample(&r);
	choose_state("1");
	sleep_and_sample(&r);
	ring_close(&r, fd);
}

TEST("idle-lost", 60)
{
	need_sleeper("knc_test_idle");
	test_states();
}

TEST("idle-lost-other", 60)
{
	need_sleeper("knc_test_idle_other");
	test_states();
}
