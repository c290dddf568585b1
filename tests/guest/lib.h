/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the guest tests share: opening and reading events, sample buffers, loops of
 * known length, and the emulator's test device.
 *
 * A test is what follows TEST(). It passes when it returns; fail() and
 * skip() end it otherwise. Any process or thread of the test may call them, and the
 * first call decides. What it has open is closed as its process ends.
 */
#ifndef KNC_TESTS_GUEST_LIB_H
#define KNC_TESTS_GUEST_LIB_H

/* This header is each file's first. */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"

typedef unsigned long long u64;
typedef uint32_t u32;

struct test {
	const char *name;
	void (*run)(void);
	unsigned int seconds;		/* until the test has failed */
	struct test *next;
};

void test_register(struct test *t);

#define TEST(testname, limit)	TEST_AT(testname, limit, __LINE__)
#define TEST_AT(...)		TEST_IN_LINE(__VA_ARGS__)
#define TEST_IN_LINE(testname, limit, n, ...)				\
	static void run_##n(void);					\
	static void __attribute__((constructor)) register_##n(void)	\
	{								\
		static struct test t = {				\
			.name = testname, .run = run_##n, .seconds = limit, \
		};							\
									\
		test_register(&t);					\
	}								\
	static void run_##n(void)					\
	__VA_ARGS__

enum verdict { PASSED, FAILED, SKIPPED };

/* In what they print, %m is errno's text. */
void end_test(enum verdict v, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define fail(...) end_test(FAILED, __VA_ARGS__)
#define skip(...) end_test(SKIPPED, __VA_ARGS__)
#define must(cond, ...) do { if (!(cond)) fail(__VA_ARGS__); } while (0)

/* The number in this environment variable, or @otherwise */
u64 setting(const char *name, u64 otherwise);

/* Random numbers, the same from the same state: any, and less than @n */
u64 random_bits(u64 *state);
u64 random_below(u64 *state, u64 n);

/* By how much lengths are divided on a slow kernel (check-debug); else 1 */
unsigned int scale(void);

/* The PMU under test */

struct pmu {
	char name[32];
	u32 type;			/* PERF_TYPE_RAW: it owns the generic events, too */
};

const struct pmu *pmu(void);
/* A driver that is loaded again may have another type. */
void pmu_forget(void);
/* Contents of a file under the PMU's directory in sysfs; NULL if absent. */
char *pmu_file(const char *path);
/* "event=0x16,umask=0" through the format/ files; false if a term is unknown. */
bool pmu_parse(const char *terms, struct perf_event_attr *attr);

#define CODE(event, umask)	((u64)(event) | (u64)(umask) << 8)
#define INSTRUCTIONS		CODE(0x16, 0x00)
#define BRANCHES		CODE(0x12, 0x00)
#define CYCLES			CODE(0x2a, 0x00)
#define L2_READ_MISS		CODE(0xcb, 0x10)	/* counter 0 only */
#define VPU_ELEMENTS		CODE(0x18, 0x20)
#define L2_WRITE_HIT		CODE(0xcc, 0x10)	/* counter 0 only */

#define EVTSEL_USR		(1ULL << 16)
#define EVTSEL_OS		(1ULL << 17)
#define EVTSEL_EDGE		(1ULL << 18)
#define EVTSEL_INT		(1ULL << 20)
#define EVTSEL_ANY		(1ULL << 21)
#define EVTSEL_EN		(1ULL << 22)
#define EVTSEL_INV		(1ULL << 23)

/*
 * An attr for this PMU: disabled, both rings. Other fields may follow, such as .inherit = 1, also
 * those that are set here.
 */
#pragma GCC diagnostic ignored "-Woverride-init"
#define attr_of(event, ...)	any_attr(pmu()->type, event, ##__VA_ARGS__)
#define software_attr(event, ...) any_attr(PERF_TYPE_SOFTWARE, event, ##__VA_ARGS__)
#define any_attr(kind, event, ...) ((struct perf_event_attr){			\
	.type = (kind), .size = sizeof(struct perf_event_attr),			\
	.config = (event), .disabled = 1, ##__VA_ARGS__ })
/* The same, user mode only */
#define user_attr(event, ...) attr_of(event, .exclude_kernel = 1, .exclude_hv = 1, ##__VA_ARGS__)
/* The same, with a sample of this type (PERF_SAMPLE_*) each @period events */
#define sampling_attr(event, period, type, ...) \
	user_attr(event, .sample_period = (period), .sample_type = (type), ##__VA_ARGS__)
/* User mode only, and read as struct times */
#define times_attr(event, ...)	user_attr(event, .read_format = READ_TIMES, ##__VA_ARGS__)
/* User mode only, in SPFLT regions */
#define spflt_attr(event, ...)	user_attr(event, .config1 = 1, ##__VA_ARGS__)
void spflt_need(void);			/* fail() where there is no SPFLT */

int sys_open(struct perf_event_attr attr, pid_t pid, int cpu, int group,
	     unsigned long flags);
/* Must succeed */
int ev_open(struct perf_event_attr attr, pid_t pid, int cpu, int group);
/* Without a group, and enabled */
int ev_start(struct perf_event_attr attr, pid_t pid, int cpu);
/* This task, any CPU, no group, user mode only, disabled. */
#define ev_self(config)	ev_open(user_attr(config), 0, -1, -1)
/* Must fail with this errno */
void ev_refused(struct perf_event_attr attr, pid_t pid, int cpu, int group,
		int want, const char *what);
/* A sibling of @leader, like @attr except for its event */
int ev_join(struct perf_event_attr attr, u64 config, int leader);
void ev_ioctl(int fd, unsigned long req, unsigned long arg);
#define ev_on(fd)	ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)
#define ev_off(fd)	ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0)
void ev_period(int fd, u64 period);
u64 ev_count(int fd);
u64 ev_end(int fd);

struct times {
	u64 value, enabled, running;
};

#define READ_TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)
struct times ev_times(int fd);

/* Sample buffers */

struct ring {
	struct perf_event_mmap_page *page;
	size_t size;			/* of the data area */
	u64 sample_type;
	unsigned int regs;		/* how many in PERF_SAMPLE_REGS_USER */
	u64 tail;
};

struct record {
	u32 type;
	u32 misc;
	/* of a PERF_RECORD_SAMPLE */
	u64 ip, period;
	u64 nr_chain;
	u64 chain[128];
	/* of PERF_SAMPLE_READ, in PERF_FORMAT_GROUP: of the leader and its siblings */
	u64 nr_values;
	u64 values[8];
	/* of PERF_SAMPLE_REGS_USER, lowest register first, and PERF_SAMPLE_STACK_USER */
	u64 abi, regs[24];
	u64 stack_size;
	unsigned char stack[256];
	u64 lost;			/* of a PERF_RECORD_LOST */
};

void ring_map(struct ring *r, int fd, unsigned int pages, u64 sample_type);
/* An event, and its buffer */
int ring_open(struct ring *r, unsigned int pages, struct perf_event_attr attr, pid_t pid,
	      int cpu, int group);
/* This task's instructions in user mode, addresses alone */
int ring_self(struct ring *r, unsigned int pages, u64 period);
void ring_close(struct ring *r, int fd);
bool ring_next(struct ring *r, struct record *rec);
/* The next record that is a sample */
bool ring_sample(struct ring *r, struct record *rec);
void ring_unmap(struct ring *r);

struct tally {
	u64 samples, lost, throttles, unthrottles;
	u64 outside;			/* samples not in [lo, hi) */
	u64 last_outside;
	u64 period_sum;
};

/* Empty the buffer and count; lo == hi: any address will do */
void ring_tally(struct ring *r, struct tally *t, const char *lo, const char *hi);
/* One more or one less; nothing lost or throttled, and all from the loop */
void samples_near(u64 got, u64 want, const char *what);
void samples_whole(const struct tally *t, const char *what);

/* Loops (loops.S): addresses and lengths are exact. */

/* n iterations of 2 instructions, 1 of them a branch */
void spin(u64 n);
extern char spin_lo[], spin_hi[];
/* n iterations of 20 instructions, 1 of them a branch */
void spin20(u64 n);
extern char spin20_lo[], spin20_hi[];
/* ioctl(fd, ENABLE, 0); spin(n); ioctl(fd, DISABLE, 0) without a library call in
 * between; returns the sum of the two results: 0
 */
long measured_spin(int fd, u64 n);
long measured_spin20(int fd, u64 n);
/* measured_spin() of one event, which must succeed */
void ev_spin(int fd, u64 n);
/* How many instructions an event counts of it besides the loop */
u64 spin_cost(void);
/* The module's loop in the kernel, with interrupts off */
struct knc_test_loop;
void kernel_loop(struct knc_test_loop *run, u64 n);

/* CPUs and processes */

int cpus_online(void);
#define pin(cpu)	pin_pid(0, cpu)
void pin_pid(pid_t pid, int cpu);
bool try_pin(pid_t pid, int cpu);
void set_online(int cpu, bool online);
int try_online(int cpu, bool online);	/* once: 0, or -1 with errno */
pid_t must_fork(void);
/* The statement after it is what the child does, which exits then. */
#define in_child(pid)	for ((pid) = must_fork(); !(pid); (pid) = 1, _exit(0))
/* The same, and then it is waited for. */
#define by_child()	for (pid_t pid_ = must_fork(); !pid_ || (reap(pid_), false); _exit(0))
void reap(pid_t pid);			/* must have exited with 0 */
void reap_all(const pid_t *pids, int n);
void end_child(pid_t pid);		/* kills it, and waits for its end */
/* fn(arg, i) in n children at once, child i pinned to CPU i if pinned */
void start_children(pid_t *pids, int n, bool pinned, void (*fn)(void *arg, int i), void *arg);
/* The same until they have exited */
void in_children(int n, bool pinned, void (*fn)(void *arg, int i), void *arg);
/* A byte through a pipe, from one process to another that waits for it */
void must_pipe(int ends[2]);
void pipe_wake(const int ends[2]);
void pipe_wait(const int ends[2]);
void *shared(size_t size);		/* zeroed, survives fork */
u64 now_ns(void);			/* CLOCK_MONOTONIC */
/* spin20(), and how many iterations it has executed in that time */
u64 spin_for_ms(unsigned int ms);
u64 rdmsr_on(int cpu, u32 msr);		/* /dev/cpu/N/msr */
#define have_msr()	(!access("/dev/cpu/0/msr", F_OK))
void msr_need(void);			/* skip() where there is none */
void wrmsr_on(int cpu, u32 msr, u64 value);
/* The counter (0, 1) that counts this event on a CPU, or -1 */
int counter_of(int cpu, u64 config);
/* The page of an event, without a sample buffer */
struct perf_event_mmap_page *page_of(int fd);
u64 plain_rdpmc(u32 counter);
/* False if RDPMC faults */
bool try_rdpmc(u32 counter, u64 *value);
bool kernel_before(unsigned int version, unsigned int patchlevel);
/* Linux 2.6.38, which the cards have: its perf core has fewer features. */
#define cards_kernel()	kernel_before(3, 0)
/* False if the file is not there, or has no number */
bool file_number(const char *path, u64 *n);
u64 must_number(const char *path);
void must_write(const char *path, const char *text);
long sysctl_get(const char *name);	/* e.g. "kernel/perf_event_paranoid" */
void sysctl_set(const char *name, long value);

/* Samples a second: more than any test can take, and what each test begins with */
#define NO_SAMPLE_LIMIT	100000000
void sample_limit(long per_second);
void become_nobody(void);
/* Runs fn as nobody; its failures are the test's. */
void as_nobody(void (*fn)(void));
/* The line with this name, such as "CAL:", of /proc/interrupts; -1: all CPUs */
u64 interrupts_of(const char *name, int cpu);
#define pmi_line()	interrupts_of("PMI:", -1)

/* The PMU counts to the instruction, on this CPU or on each; and samples. */
void must_count(const char *when);
void must_be_sound(const char *after);
void must_sample(const char *when);

/* The driver, where it is a module */

bool driver_is_module(void);
void module_need(void);			/* skip() where it is built in */
bool driver_loaded(void);
void must_load(void);
/* how many times the kernel's log has this text */
unsigned int in_log(const char *text);

/* The emulator's test device */

enum td_item {
	TD_MAGIC		= 0,
	TD_LOST_EDGES		= 1,
	TD_EDGES		= 2,
	TD_DELIVERED		= 3,
	TD_COUNTED0		= 4,
	TD_COUNTED1		= 5,
	TD_OVERFLOWS0		= 6,
	TD_OVERFLOWS1		= 7,
	TD_RDMSRS		= 8,
	TD_WRMSRS		= 9,
	TD_RDPMCS		= 10,
	TD_LVTPCS		= 11,
	TD_INSN_KERNEL		= 16,
	TD_INSN_USER		= 17,
	TD_BRANCH_KERNEL	= 18,
	TD_BRANCH_USER		= 19,
	TD_CYCLES_USER		= 21,
	TD_INJECTED		= 24,	/* orders carried out */
	TD_INJECT_LEFT		= 25,	/* instructions to go */
	TD_STOPPED		= 26,
	TD_GLOBAL_STATUS	= 28,
};

/* What td_inject() does to a hardware thread */
enum td_action {
	TD_NOTHING		= 0,
	TD_NMI			= 1,	/* of another source than the PMU */
	TD_STOP			= 3,	/* until an interrupt or another order */
	TD_SKID			= 4,	/* each PMI is @after instructions late from now on */
};

bool td_present(void);
void td_need(void);			/* skip() where there is no test device */
u64 td_read(int cpu, enum td_item item);
u64 td_counted(int cpu);			/* by both counters */
u64 td_sum(enum td_item item);		/* over all online CPUs */
/*
 * Does @action to a hardware thread after @after instructions of the kernel. An order
 * replaces the last one of that thread; TD_SKID stays beside others. TD_NOTHING ends
 * all of them and lets a stopped thread go on.
 */
void td_inject(int cpu, enum td_action action, u32 after);
/* Adds @events to this hardware thread's counters at once; one that is off does not count. */
void td_burst(u64 events);

/* unit.S */
struct unit;

long unit_over(const struct unit *before, struct unit *after, long nr, long a, long b, long c);

#endif
