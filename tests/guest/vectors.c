// SPDX-License-Identifier: GPL-2.0-only
/*
 * The vector unit belongs to a task: another task, a signal's handler, a move to another CPU,
 * a fork and a tracer leave its registers and masks as they are. A new program has zeros.
 */
#include "lib.h"

/* What a card's own kernel loads is searched for instructions of the unit. */
#ifndef __k1om__
#include <elf.h>
#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define HI16_ZMM	1664	/* registers 16 to 31 in the area of XSAVE */
#define MASKS		1088
#define XSAVE_AREA	2688
#define ROUNDS		60

struct unit {
	unsigned int vector[32][16];
	unsigned int mask[8];
} __attribute__((aligned(64)));

static void fill(struct unit *u, unsigned int seed)
{
	unsigned int i;

	for (i = 0; i < 32 * 16; i++)
		u->vector[i / 16][i % 16] = seed * 0x9e3779b1 + i * 0x01010101;
	for (i = 0; i < 8; i++)
		u->mask[i] = (seed * 0x3141 + i * 0x1111) & 0xffff;
}

static int same(const struct unit *a, const struct unit *b)
{
	return !memcmp(a->vector, b->vector, sizeof(a->vector)) &&
	       !memcmp(a->mask, b->mask, sizeof(a->mask));
}

static void check_over(unsigned int seed, const char *what, long nr, long a, long b, long c)
{
	struct unit mine, found;

	fill(&mine, seed);
	unit_over(&mine, &found, nr, a, b, c);
	must(same(&mine, &found), "%s", what);
}

static void take(int sig)
{
	(void)sig;
	check_over(0x5eed, "in the function that takes a signal", SYS_sched_yield, 0, 0, 0);
}

static void *rounds(void *arg)
{
	const struct timespec wait = { .tv_nsec = 100000 };
	long id = (long)arg, cpus = sysconf(_SC_NPROCESSORS_ONLN), i;

	for (i = 0; i < ROUNDS; i++) {
		unsigned long cpu = 1ul << (id + i) % cpus;
		unsigned int seed = id * ROUNDS + i;

		check_over(seed, "yield", SYS_sched_yield, 0, 0, 0);
		check_over(seed, "sleep", SYS_nanosleep, (long)&wait, 0, 0);
		check_over(seed, "another CPU", SYS_sched_setaffinity, 0, sizeof(cpu), (long)&cpu);
		check_over(seed, "a signal", SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
	}
	return NULL;
}

TEST("vector-tasks", 60)
{
	pthread_t thread[6];
	long i;

	signal(SIGUSR1, take);
	for (i = 0; i < 6; i++)
		must(!pthread_create(&thread[i], NULL, rounds, (void *)i), "thread");
	for (i = 0; i < 6; i++)
		pthread_join(thread[i], NULL);
}

TEST("vector-fork", 60)
{
	struct unit mine, found;
	pid_t pid;

	fill(&mine, 7);
	pid = unit_over(&mine, &found, SYS_fork, 0, 0, 0);
	must(same(&mine, &found), "%s", pid ? "the parent" : "the child");
	if (!pid)
		_exit(0);
	reap(pid);
}

/* The 16 elements of a load come at once, also over the end of a period. */
TEST("vector-sample", 60)
{
	static const u64 periods[] = { 100, 999, 1600 };
	static char line[64] __attribute__((aligned(64)));
	unsigned int i, loads, samples;
	struct record rec;
	struct ring r;
	int fd;

	pin(0);
	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		fd = ring_open(&r, 8, sampling_attr(VPU_ELEMENTS, periods[i], PERF_SAMPLE_IP),
			       0, -1, -1);
		ev_on(fd);
		for (loads = 0; loads < 2000; loads++)	/* vmovaps (%rdi),%zmm16 */
			asm volatile(".byte 0x62, 0xe1, 0x78, 0x08, 0x28, 0x07" : : "D" (line));
		ev_off(fd);
		for (samples = 0; ring_sample(&r, &rec); samples++)
			;
		must(ev_count(fd) == 32000, "counted %llu elements, not 32000", ev_count(fd));
		must(samples == 32000 / periods[i], "%u samples, one in %llu", samples, periods[i]);
		ring_close(&r, fd);
	}
}

/* The tracer reads a stopped task's registers, and changes one. */
TEST("vector-ptrace", 60)
{
	static unsigned char area[XSAVE_AREA];
	struct iovec iov = { area, sizeof(area) };
	struct unit mine, found;
	int status;
	pid_t pid;

	fill(&mine, 9);
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		unit_over(&mine, &found, SYS_kill, getpid(), SIGSTOP, 0);
		mine.vector[20][3]++;
		_exit(!same(&mine, &found));
	}
	waitpid(pid, &status, 0);
	must(WIFSTOPPED(status), "the child's status is %#x", status);
	must(!ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov), "GETREGSET: %m");
	must(!memcmp(area + HI16_ZMM, mine.vector[16], 16 * 64), "the tracer reads others");
	++*(unsigned int *)(area + HI16_ZMM + 4 * 64 + 3 * 4);
	must(!ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &iov), "SETREGSET: %m");
	ptrace(PTRACE_CONT, pid, 0, 0);
	reap(pid);
}

/* A new program begins with zeros; an exec that fails changes nothing. */
TEST("vector-exec", 60)
{
	static const char *const argv[] = { "gt", "--list", NULL };
	static unsigned char area[XSAVE_AREA], none[16 * 64];
	struct iovec iov = { area, sizeof(area) };
	struct unit mine, found;
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		check_over(3, "a failed exec", SYS_execve, (long)"/nowhere", (long)argv, 0);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		fill(&mine, 11);
		unit_over(&mine, &found, SYS_execve, (long)"/proc/self/exe", (long)argv, 0);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	must(WIFSTOPPED(status), "the child's status is %#x", status);
	/* Until its first system call: the registers are loaded, and saved again. */
	ptrace(PTRACE_SYSCALL, pid, 0, 0);
	waitpid(pid, &status, 0);
	must(WIFSTOPPED(status), "the new program's status is %#x", status);
	must(!ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov), "GETREGSET: %m");
	must(!memcmp(area + HI16_ZMM, none, sizeof(none)), "the old program's registers");
	must(!memcmp(area + MASKS, none, 8 * 8), "the old program's masks");
	ptrace(PTRACE_DETACH, pid, 0, SIGKILL);
	waitpid(pid, &status, 0);
}
#endif
