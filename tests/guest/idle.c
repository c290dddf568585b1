// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the idle driver of the cards' kernel does to the PMU as a thread wakes from
 * deep idle: an overflow comes while the LVT entry is masked, and is lost.
 */
#define _GNU_SOURCE
#include "lib.h"

#include <fcntl.h>
#include <sys/mman.h>

#define APIC_BASE	0xfee00000
#define APIC_LVTPC	0x340
#define LVT_NMI		(4 << 8)
#define LVT_MASKED	(1 << 16)
#define MSR_STATUS	0x2d

#define PERIOD		1000003

/* The local APIC of whichever hardware thread this runs on */
static volatile u32 *map_apic(void)
{
	int fd = open("/dev/mem", O_RDWR | O_SYNC);
	void *map;

	if (fd < 0)
		skip("no /dev/mem");
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, APIC_BASE);
	close(fd);
	if (map == MAP_FAILED)
		skip("/dev/mem gives no APIC: %s", strerror(errno));
	return map;
}

TEST(idle_lost, "idle-lost", 60)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	volatile u32 *lvtpc = map_apic() + APIC_LVTPC / 4;
	struct tally before = {}, after = {};
	struct ring r;
	int fd;

	if (!kernel_before(3, 0))
		skip("that idle driver is the cards' own kernel's");
	pin(1);
	sample_limit(NO_SAMPLE_LIMIT);
	attr.sample_period = PERIOD;
	attr.sample_type = PERF_SAMPLE_IP;
	fd = ev_open(&attr, -1, 1, -1);
	ring_map(&r, fd, 8, PERF_SAMPLE_IP);
	ev_on(fd);
	spin(10 * PERIOD / 2);
	ring_tally(&r, &before, spin_lo, spin_hi);
	must(before.samples >= 9, "%llu samples, want 10",
	     (unsigned long long)before.samples);

	/* Two periods: one overflow at least comes here. */
	*lvtpc = LVT_NMI | LVT_MASKED;
	spin(2 * PERIOD / 2);
	if (have_msr())
		must(rdmsr_on(1, MSR_STATUS), "nothing has overflowed with the entry masked");
	*lvtpc = LVT_NMI;

	usleep(20000);
	spin(10 * PERIOD / 2);
	ev_off(fd);
	ring_tally(&r, &after, spin_lo, spin_hi);
	must(after.samples >= 9, "%llu samples after an interrupt was lost, want 10",
	     (unsigned long long)after.samples);
	ring_unmap(&r);
	close(fd);
}
