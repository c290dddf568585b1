// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts what is known beforehand, for tools/report. One file that any
 * compiler for the card takes, with headers of any age: link it statically.
 *
 * Prints a line for each check; ends with 1 if one has failed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

typedef unsigned long long u64;
typedef unsigned int u32;

/* perf_event_open(2), as it was first: 64 bytes */
struct attr {
	u32 type, size;
	u64 config, period, sample_type, read_format, flags;
	u32 wakeup, bp_type;
	u64 config1;
};

#define SYS_OPEN	298
#define DISABLED	(1ULL << 0)
#define EXCLUDE_KERNEL	(1ULL << 5)
#define SAMPLE_IP	(1ULL << 0)
#define IOC_ENABLE	0x2400
#define IOC_DISABLE	0x2401

#define TYPE_HARDWARE	0
#define TYPE_RAW	4
#define INSTRUCTIONS	0x16
#define BRANCHES	0x12

static int bad;

static void result(const char *name, int good, const char *what, u64 got, u64 want)
{
	printf("%s %s: %s %llu, want %llu\n", good ? "ok" : "FAIL", name, what, got, want);
	bad |= !good;
}

static int open_event(u32 type, u64 config, u64 period, int group)
{
	struct attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.type = type;
	attr.size = sizeof(attr);
	attr.config = config;
	attr.period = period;
	attr.sample_type = period ? SAMPLE_IP : 0;
	attr.flags = EXCLUDE_KERNEL | (group < 0 ? DISABLED : 0);
	fd = syscall(SYS_OPEN, &attr, 0, -1, group, 0);
	if (fd < 0) {
		printf("FAIL type %u, config 0x%llx: %s\n", type, config, strerror(errno));
		bad = 1;
	}
	return fd;
}

/* Two instructions for each round, one of them a branch; the rest is the same. */
static void spin(u64 rounds)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r" (rounds) : : "cc");
}

static u64 counted(int fd, int of, u64 rounds)
{
	u64 before = 0, after = 0;

	if (read(of, &before, sizeof(before)) != sizeof(before))
		return 0;
	ioctl(fd, IOC_ENABLE, 0);
	spin(rounds);
	ioctl(fd, IOC_DISABLE, 0);
	if (read(of, &after, sizeof(after)) != sizeof(after))
		return 0;
	return after - before;
}

/* What a long run has more than a short one is the loop's alone. */
static void check_count(const char *name, int fd, int of, u64 per_round)
{
	u64 few = counted(fd, of, 1000), many = counted(fd, of, 1001000);

	result(name, many - few == 1000000 * per_round, "counted", many - few,
	       1000000 * per_round);
}

static void check_counts(void)
{
	int fd = open_event(TYPE_RAW, INSTRUCTIONS, 0, -1), second;

	if (fd < 0)
		return;
	check_count("instructions", fd, fd, 2);
	second = open_event(TYPE_RAW, BRANCHES, 0, fd);
	if (second >= 0) {
		check_count("instructions, of two", fd, fd, 2);
		check_count("branches, of two", fd, second, 1);
		close(second);
	}
	close(fd);
	fd = open_event(TYPE_HARDWARE, 1 /* instructions */, 0, -1);
	if (fd < 0)
		return;
	check_count("generic instructions", fd, fd, 2);
	close(fd);
}

/* One sample for each period, and all of them */
static void check_samples(void)
{
	const u64 period = 100003, rounds = 200 * period / 2;
	long page = sysconf(_SC_PAGESIZE);
	int fd = open_event(TYPE_RAW, INSTRUCTIONS, period, -1);
	char *map;
	u64 head;

	if (fd < 0)
		return;
	map = mmap(NULL, 9 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		printf("FAIL the sample buffer: %s\n", strerror(errno));
		bad = 1;
		return;
	}
	counted(fd, fd, rounds);
	/* Where the data end is told at byte 1024; a record is 8 bytes and the address. */
	head = *(volatile u64 *)(map + 1024);
	result("samples", head / 16 >= 199 && head / 16 <= 201, "got", head / 16, 200);
	munmap(map, 9 * page);
	close(fd);
}

/* Which of the registers can be read, on the first thread */
static void show_registers(void)
{
	static const u32 regs[] = { 0x20, 0x21, 0x28, 0x29, 0x2c, 0x2d, 0x2f };
	int fd = open("/dev/cpu/0/msr", O_RDONLY);
	unsigned int i;
	u64 value;

	if (fd < 0) {
		printf("/dev/cpu/0/msr: %s\n", strerror(errno));
		return;
	}
	for (i = 0; i < ARRAY_SIZE(regs); i++) {
		if (pread(fd, &value, sizeof(value), regs[i]) == sizeof(value))
			printf("register 0x%x: 0x%llx\n", regs[i], value);
		else
			printf("register 0x%x: %s\n", regs[i], strerror(errno));
	}
	close(fd);
}

int main(void)
{
	show_registers();
	check_counts();
	check_samples();
	puts(bad ? "self-test: FAILED" : "self-test: all is as it should be");
	return bad;
}
