// SPDX-License-Identifier: GPL-2.0-only
/* How much of a CPU sampling may take. */
#include "lib.h"

#include <sys/klog.h>

#define CONSOLE_OFF	6
#define CONSOLE_ON	7

/*
 * kernel.perf_cpu_time_max_percent: interrupts that take longer than that lower the rate of
 * samples. At 1 % of a hundred thousand a second each may take 100 ns, which no interrupt does.
 */
TEST("sample-cpu-time", 60)
{
	const long rate = 100000;
	int fd, i;

	/* in this order: each is made anew from the other */
	sysctl_set("kernel/perf_cpu_time_max_percent", 25);
	sysctl_set("kernel/perf_event_max_sample_rate", rate);
	sysctl_set("kernel/perf_cpu_time_max_percent", 1);
	/* It is told on the console, too, where it would be taken for an accident. */
	must(!klogctl(CONSOLE_OFF, NULL, 0), "the console: %m");
	fd = ev_open(sampling_attr(INSTRUCTIONS, 20011, PERF_SAMPLE_IP), 0, -1, -1);
	for (i = 0; i < 50 && sysctl_get("kernel/perf_event_max_sample_rate") == rate; i++)
		measured_spin(fd, 2000000);
	close(fd);
	usleep(10000);
	klogctl(CONSOLE_ON, NULL, 0);
	must(sysctl_get("kernel/perf_event_max_sample_rate") < rate,
	     "interrupts take as long as they like");
}
