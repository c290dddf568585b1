// SPDX-License-Identifier: GPL-2.0-only
/*
 * The idle driver of the cards' kernel masks the LVT entry as a thread wakes from deep
 * idle, so that an overflow in that time is lost. The emulated card has no such states:
 * a module here does the same to the PMU.
 */
#include "lib.h"

#define IDLE		"/tests/modules/knc_test_idle.ko"
#define IDLE_OTHER	"/tests/modules/knc_test_idle_other.ko"

/* The hardware thread that sleeps deeply, and a period shorter than it takes to wake */
#define CPU		1
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

/* Loads the idle driver first, as on the card: our driver looks up its functions. */
static void insert_sleeper(const char *file, const char *name)
{
	if (!cards_kernel())
		skip("that idle driver is the cards' own kernel's");
	module_need();
	sleeper = name;
	must_unload();
	/* left by a test that has failed */
	syscall(SYS_delete_module, "knc_test_idle", O_NONBLOCK);
	syscall(SYS_delete_module, "knc_test_idle_other", O_NONBLOCK);
	if (module_insert(file)) {
		must(errno == ENODEV || errno == EBUSY || errno == ENOENT, "%s: %m", file);
		must_load();
		skip("the kernel has no cpuidle, or a driver for it");
	}
	must_load();
}

static void remove_sleeper(void)
{
	must_unload();
	must(!syscall(SYS_delete_module, sleeper, O_NONBLOCK), "%s: %m", sleeper);
	must_load();
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
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	struct ring r;
	int fd;

	pin(CPU);
	attr.exclude_kernel = 0;
	attr.sample_period = PERIOD;
	attr.sample_type = PERF_SAMPLE_IP;
	fd = ring_open(&r, 64, attr, -1, CPU, -1);
	ev_on(fd);
	choose_state("0");
	sleep_and_sample(&r);
	choose_state("1");
	sleep_and_sample(&r);
	ring_close(&r, fd);
}

TEST(idle_lost, "idle-lost", 60)
{
	insert_sleeper(IDLE, "knc_test_idle");
	test_states();
	remove_sleeper();
}

TEST(idle_lost_other, "idle-lost-other", 60)
{
	insert_sleeper(IDLE_OTHER, "knc_test_idle_other");
	test_states();
	remove_sleeper();
}

/* A sleeping CPU is in one of the probed functions as the driver goes. */
TEST(idle_reload, "idle-reload", 60)
{
	u64 before;

	insert_sleeper(IDLE, "knc_test_idle");
	pin(0);
	before = parameter("slept");
	for (int i = 0; i < 20; i++) {
		usleep(2000);
		must_unload();
		usleep(2000);
		must_load();
	}
	must(parameter("slept") > before, "the CPU has not slept");
	remove_sleeper();
}
