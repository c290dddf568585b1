// SPDX-License-Identifier: GPL-2.0-only
/*
 * A BPF program reads an event while the kernel changes it: at each function of perf
 * core that adds or removes events, and at instructions of the driver. The program must
 * get what the event has counted, and must not change the count.
 */
#include "lib.h"

#include <linux/bpf.h>
#include <stddef.h>

/* What the program leaves: calls, reads refused or gone backwards, and counts */
struct seen {
	u64 calls, refused, highest, last, back;
};

static int sys_bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static int new_map(u32 type, u32 value_size, u32 flags)
{
	union bpf_attr attr = {
		.map_type = type, .key_size = 4, .value_size = value_size,
		.max_entries = 1, .map_flags = flags,
	};

	return sys_bpf(BPF_MAP_CREATE, &attr);
}

#define INSN(op, d, s, o, i)	{ .code = op, .dst_reg = d, .src_reg = s, .off = o, .imm = i }
#define MAP(d, kind, fd)	INSN(BPF_LD | BPF_DW | BPF_IMM, d, kind, 0, fd), { .imm = 0 }
#define LOAD(d, s, o)		INSN(BPF_LDX | BPF_MEM | BPF_DW, d, s, o, 0)
#define STORE(d, s, o)		INSN(BPF_STX | BPF_MEM | BPF_DW, d, s, o, 0)
#define ADD(d, i)		INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define MOVE(d, s)		INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define SET(d, i)		INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define JUMP(o)			INSN(BPF_JMP | BPF_JA, 0, 0, o, 0)
#define JUMP_IF_0(d, o)		INSN(BPF_JMP | BPF_JEQ | BPF_K, d, 0, o, 0)
#define JUMP_IF_GE(d, s, o)	INSN(BPF_JMP | BPF_JGE | BPF_X, d, s, o, 0)
#define INCREMENT(o)		LOAD(1, 6, o), ADD(1, 1), STORE(6, 1, o)

#define SEEN(field)		((short)offsetof(struct seen, field))

static int load_program(int events, int seen)
{
	/* struct bpf_perf_event_value, below the frame */
	const struct bpf_insn insns[] = {
		MAP(6, BPF_PSEUDO_MAP_VALUE, seen),
		INCREMENT(SEEN(calls)),
		MAP(1, BPF_PSEUDO_MAP_FD, events),
		SET(2, 0),
		MOVE(3, 10),
		ADD(3, -24),
		SET(4, 24),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_perf_event_read_value),
		JUMP_IF_0(0, 4),
		INCREMENT(SEEN(refused)),
		JUMP(10),
		LOAD(7, 10, -24),
		LOAD(2, 6, SEEN(last)),
		JUMP_IF_GE(7, 2, 3),
		INCREMENT(SEEN(back)),
		STORE(6, 7, SEEN(last)),
		LOAD(2, 6, SEEN(highest)),
		JUMP_IF_GE(2, 7, 1),
		STORE(6, 7, SEEN(highest)),
		SET(0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	static char log[65536];
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_KPROBE,
		.insn_cnt = ARRAY_SIZE(insns), .insns = (u64)insns,
		.license = (u64)"GPL",
		.log_buf = (u64)log, .log_size = sizeof(log), .log_level = 1,
	};
	int fd = sys_bpf(BPF_PROG_LOAD, &attr);

	if (fd < 0)
		note("%.400s", log);
	return fd;
}

struct function {
	u64 address, size;
	char name[64];
};

static struct function *functions;
static size_t nr_functions;

static int by_address(const void *a, const void *b)
{
	const struct function *fa = a, *fb = b;

	return fa->address < fb->address ? -1 : fa->address > fb->address;
}

/* Reads those functions of the kernel and its modules that @wanted() accepts. */
static void read_functions(bool (*wanted)(const char *name, const char *module))
{
	FILE *f = fopen("/proc/kallsyms", "re");
	u64 address;
	char line[512], name[256], module[64], type;
	struct function *all = NULL;
	size_t n = 0, i, next;

	must(f, "/proc/kallsyms: %m");
	while (fgets(line, sizeof(line), f)) {
		int got;

		module[0] = '\0';
		got = sscanf(line, "%llx %c %255s [%63[^]]", &address, &type, name, module);
		if (got < 3 || (type != 't' && type != 'T'))
			continue;
		if (n % 4096 == 0) {
			all = realloc(all, (n + 4096) * sizeof(*all));
			must(all, "no memory");
		}
		all[n].address = address;
		all[n].size = wanted(name, module);
		snprintf(all[n++].name, sizeof(all->name), "%.63s", name);
	}
	fclose(f);
	qsort(all, n, sizeof(*all), by_address);
	functions = all;
	for (i = 0; i + 1 < n; i++) {
		if (!all[i].size || !strncmp(all[i].name, "__pfx_", 6))
			continue;
		next = i + 1;
		while (next + 1 < n && (all[next].address == all[i].address ||
					!strncmp(all[next].name, "__pfx_", 6)))
			next++;
		all[i].size = all[next].address - all[i].address;
		functions[nr_functions++] = all[i];
	}
}

static bool of_driver(const char *name, const char *module)
{
	if (driver_is_module())
		return !strcmp(module, "knc_pmu") && strcmp(name, "cleanup_module") &&
		       strcmp(name, "init_module");
	return !module[0] && !strncmp(name, "knc_", 4);
}

/* Functions of perf core, and of its x86 part, that work on an event */
static bool of_perf_core(const char *name, const char *module)
{
	static const char * const names[] = {
		"event_sched_in", "event_sched_out", "group_sched_in", "group_sched_out",
		"merge_sched_in", "visit_groups_merge", "ctx_sched_in", "ctx_sched_out",
		"ctx_resched", "perf_event_sched_in", "add_event_to_ctx", "list_add_event",
		"list_del_event", "perf_event_set_state", "perf_event_update_time",
		"perf_event_update_sibling_time", "perf_event_update_userpage",
		"__perf_event_enable", "__perf_event_disable", "event_function",
		"__perf_event_read", "__perf_event_task_sched_in",
		"__perf_event_task_sched_out", "__perf_remove_from_context",
		"__perf_event_period", "__perf_install_in_context", "perf_pmu_disable",
		"perf_pmu_enable", "perf_pmu_nop_void", "__perf_event_overflow",
		"perf_event_overflow", "perf_prepare_sample", "perf_output_sample",
		"perf_event_context_sched_in", "perf_event_context_sched_out",
		"perf_rotate_context", "perf_adjust_period", "__pmu_ctx_sched_out",
		"__pmu_ctx_sched_in", "pmu_groups_sched_in", "ctx_groups_sched_in",
		"group_can_go_on", "perf_log_throttle",
		"x86_pmu_add", "x86_pmu_del", "x86_pmu_start", "x86_pmu_stop",
		"x86_pmu_enable", "x86_pmu_disable", "x86_pmu_read", "x86_pmu_event_idx",
		"x86_schedule_events", "x86_assign_hw_event", "x86_pmu_start_txn",
		"x86_pmu_commit_txn", "x86_pmu_cancel_txn", "collect_events",
		"x86_perf_event_set_period", "x86_perf_event_update",
		"perf_event_nmi_handler", "perf_sched_cb_inc", "native_write_msr",
	};
	size_t i, length = strcspn(name, ".");

	if (module[0])
		return false;
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == length && !strncmp(name, names[i], length))
			return true;
	return false;
}

/* Returns -1 where the kernel allows no probe. */
static int attach(u64 address, int program)
{
	static u64 type;
	struct perf_event_attr attr = {
		.size = sizeof(attr), .config2 = address, .sample_period = 1,
	};
	int fd;

	if (!type && !file_number("/sys/bus/event_source/devices/kprobe/type", &type))
		skip("this kernel has no kprobes for perf");
	attr.type = type;
	fd = sys_open(attr, -1, 0, -1, 0);
	if (fd < 0)
		return -1;
	ev_ioctl(fd, PERF_EVENT_IOC_SET_BPF, program);
	ev_on(fd);
	return fd;
}

/*
 * What can happen to the event that is read: it runs alone, after others, beside and moved by
 * them, across task switches and ends of periods. In user mode, each round counts the same.
 */
#define PERIOD		1009

static struct {
	int watched, beside, constrained, leader;
	struct ring ring;
	u64 samples;
	pid_t pid;
} on;

static void open_events(void)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	int there[2];

	must_pipe(there);
	in_child(on.pid) {
		pipe_wake(there);
		for (;;) {
			spin(500);
			sched_yield();
		}
	}
	pipe_wait(there);
	ev_start(attr, on.pid, -1);
	on.beside = ev_self(INSTRUCTIONS);
	on.constrained = ev_self(L2_READ_MISS);
	on.leader = ev_self(BRANCHES);
	ev_join(attr, BRANCHES, on.leader);
	on.watched = ring_self(&on.ring, 16, PERIOD);
}

static void one_round(void)
{
	struct tally t = {};
	int i;

	kill(on.pid, SIGCONT);
	measured_spin(on.watched, 300);
	/* another event has its counter in between */
	measured_spin(on.beside, 1000);
	ev_on(on.beside);
	spin(1000);
	measured_spin(on.watched, 300);
	ev_off(on.beside);
	/* an event for counter 0 only moves it */
	ev_on(on.watched);
	measured_spin(on.constrained, 300);
	ev_count(on.watched);
	for (i = 0; i < 3; i++)
		sched_yield();
	ev_off(on.watched);
	measured_spin(on.leader, 1000);
	measured_spin(on.watched, 300);
	ring_tally(&on.ring, &t, NULL, NULL);
	must(!t.lost && !t.throttles, "samples lost, or throttled");
	on.samples += t.samples;
	/* or it would be busy for as long as probes are put in and taken out */
	kill(on.pid, SIGSTOP);
}

static struct seen *seen;
static int program;

static void prepare(void)
{
	int events, values, zero = 0;
	union bpf_attr attr = { };

	pin(cpus_online() - 1);
	open_events();
	events = new_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 0);
	if (events < 0 && errno == ENOSYS)
		skip("this kernel has no BPF");
	values = new_map(BPF_MAP_TYPE_ARRAY, sizeof(*seen), BPF_F_MMAPABLE);
	must(events >= 0 && values >= 0, "maps: %m");
	seen = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, values, 0);
	must(seen != MAP_FAILED, "the map of results: %m");
	attr.map_fd = events;
	attr.key = (u64)&zero;
	attr.value = (u64)&on.watched;
	must(!sys_bpf(BPF_MAP_UPDATE_ELEM, &attr), "the event in its map: %m");
	program = load_program(events, values);
	must(program >= 0, "the program: %m");
}

static struct {
	u64 each;			/* what a round counts */
	u64 count;
	u64 probes, refused, calls;
} tried;

static void measure(void)
{
	u64 before, again;

	one_round();
	before = ev_count(on.watched);
	one_round();
	tried.each = ev_count(on.watched) - before;
	one_round();
	again = ev_count(on.watched) - before - tried.each;
	must(again == tried.each, "a round counts %llu, and then %llu", tried.each, again);
	tried.count = ev_count(on.watched);
}

static void try_at(const struct function *f, u64 offset)
{
	int fd = attach(f->address + offset, program);
	u64 want, got;

	if (fd < 0) {
		tried.refused++;
		return;
	}
	/* in the log: after a panic it tells where the probe was */
	file_write("/dev/kmsg",
		   text_of("a program reads an event at %s+%llu\n", f->name, offset));
	tried.probes++;
	memset(seen, 0, sizeof(*seen));
	one_round();
	close(fd);
	want = tried.count + tried.each;
	got = ev_count(on.watched);
	must(got == want, "read at %s+%llu, an event has %llu more instead of %llu", f->name,
	     offset, got - tried.count, tried.each);
	must(seen->highest <= got, "at %s+%llu a program reads %llu of an event of %llu", f->name,
	     offset, seen->highest, got);
	must(!seen->back, "at %s+%llu a program reads less than before, %llu times", f->name,
	     offset, seen->back);
	must(on.samples == got / PERIOD, "read at %s+%llu, an event of %llu has %llu samples",
	     f->name, offset, got, on.samples);
	tried.calls += seen->calls - seen->refused;
	tried.count = got;
}

/* At each function, and at one in TEST_STRIDE instructions of it */
static void try_all(bool (*wanted)(const char *name, const char *module), bool within)
{
	u64 stride = setting("TEST_STRIDE", 97), seed = setting("TEST_SEED", 1), offset;
	size_t i;

	if (kernel_before(5, 5))
		skip("no BPF programs that leave what they have seen");
	read_functions(wanted);
	must(nr_functions > 10, "%zu functions", nr_functions);
	prepare();
	measure();
	for (i = 0; i < nr_functions; i++)
		try_at(&functions[i], 0);
	for (i = 0; within && i < nr_functions; i++)
		for (offset = 1; offset < functions[i].size; offset++)
			if (!random_below(&seed, stride))
				try_at(&functions[i], offset);
	end_child(on.pid);
	note("%llu probes, %llu places refused, %llu reads, %llu counted in a round",
	     tried.probes, tried.refused, tried.calls, tried.each);
	must(tried.calls, "nothing was read");
}

TEST("bpf-read-del", 1200)
{
	try_all(of_driver, true);
}

TEST("bpf-read-add", 1200)
{
	try_all(of_perf_core, false);
}
