// SPDX-License-Identifier: GPL-2.0-only
/*
 * A group leader is freed while a member still points to it. As root, with software events
 * alone, on any machine with a second CPU that can go offline:
 *
 *	gcc -O2 leader.c && ./a.out 1
 *
 * The leader loses its CPU, and another event joins it when the CPU is back. Prints that
 * the member is refused, or accepted, which is the defect: a kernel with KASAN then reports
 * a use after free in _perf_ioctl().
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_event(int cpu, int group)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(attr),
	};

	return syscall(SYS_perf_event_open, &attr, -1, cpu, group, PERF_FLAG_FD_CLOEXEC);
}

int main(int argc, char **argv)
{
	int cpu = argc > 1 ? atoi(argv[1]) : 1, leader = open_event(cpu, -1), member;
	char command[128];

	snprintf(command, sizeof(command),
		 "cd /sys/devices/system/cpu/cpu%d && echo 0 >online && echo 1 >online", cpu);
	if (leader < 0 || system(command)) {
		fprintf(stderr, "a leader whose CPU comes back: %s\n", strerror(errno));
		return 2;
	}
	member = open_event(cpu, leader);
	printf("the member: %s\n", member < 0 ? strerror(errno) : "accepted");
	if (member < 0)
		return errno != ENODEV;

	close(leader);
	sleep(1);
	ioctl(member, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
	return 1;
}
