// SPDX-License-Identifier: GPL-2.0-only
/*
 * Part of knc_pmu_test.c: the program's registers, found at each instruction of the
 * kernel's entry and exit (arch/x86/entry/calling.h and entry_64.S) that moves them
 * between the processor and a stack. sample-entry and sample-syscall-regs of tests/guest
 * go through these, too; but not with page table isolation, nor on the stacks of #DB and #MC.
 */
#define STALE		0x5a5a5a5a5a5a5a5aUL
#define RETURN_ADDRESS	0xffffffff81234567UL
#define USER_FLAGS	0x246UL
#define KERNEL_IP	0xffffffff81000042UL
#define SYSCALL_IP	0xffffffff82000000UL
#define CR3		0x7ebcb000UL

/* The processor, the stacks, and what the program had */
static struct {
	struct kunit *test;
	struct cpu_entry_area *area;
	unsigned long end;	/* of the stack for entries from user mode */
	struct task_struct *task;
	struct pt_regs *saved;
	struct pt_regs program, cpu;
	const char *path;
	unsigned int step;
} entry;

/* Gives each register a value of the program, all of them different. */
static void entry_begin(const char *path)
{
	unsigned long *reg = (unsigned long *)&entry.program;
	unsigned int i;

	/* Older entries have left frames of user mode on the stacks. */
	memset(&entry.area->entry_stack_page, 0x5b, sizeof(entry.area->entry_stack_page));
	memset(&entry.area->estacks, 0x5b, sizeof(entry.area->estacks));
	memset(entry.task->stack, 0x5b, THREAD_SIZE);

	for (i = 0; i < sizeof(entry.program) / sizeof(long); i++)
		reg[i] = 0x1000 + i;
	entry.program.orig_ax = -1;
	entry.program.cs = __USER_CS;
	entry.program.ss = __USER_DS;
	entry.program.flags = USER_FLAGS;
	entry.path = path;
	entry.step = 0;

	entry.cpu = entry.program;
	entry.cpu.cs = __KERNEL_CS;
	entry.cpu.ss = __KERNEL_DS;
	entry.cpu.ip = KERNEL_IP;
	entry.cpu.flags = 2;
}

/* An NMI comes before the next instruction. */
static void entry_check(void)
{
	const unsigned long *expected = (unsigned long *)&entry.program;
	struct pt_regs user;
	const unsigned long *got = (unsigned long *)&user;
	unsigned int i;

	memset(&user, 0x77, sizeof(user));
	knc_user_regs(&user, &entry.cpu);
	/* the number of a system call or error code, not a register */
	user.orig_ax = -1;
	for (i = 0; i < sizeof(user) / sizeof(long); i++)
		KUNIT_EXPECT_EQ_MSG(entry.test, got[i], expected[i], "%s, step %u, register %u",
				    entry.path, entry.step, i);
	entry.step++;
}

static void entry_check_at(unsigned long sp)
{
	entry.cpu.sp = sp;
	entry_check();
}

static void entry_push(unsigned long value)
{
	entry.cpu.sp -= sizeof(long);
	*(unsigned long *)entry.cpu.sp = value;
	entry_check();
}

static unsigned long entry_pop(void)
{
	unsigned long value = *(unsigned long *)entry.cpu.sp;

	entry.cpu.sp += sizeof(long);
	return value;
}

/* In the order in which PUSH_REGS pushes them; POP_REGS takes them the other way. */
static const size_t entry_order[] = {
	offsetof(struct pt_regs, si), offsetof(struct pt_regs, dx), offsetof(struct pt_regs, cx),
	offsetof(struct pt_regs, ax), offsetof(struct pt_regs, r8), offsetof(struct pt_regs, r9),
	offsetof(struct pt_regs, r10), offsetof(struct pt_regs, r11),
	offsetof(struct pt_regs, bx), offsetof(struct pt_regs, bp),
	offsetof(struct pt_regs, r12), offsetof(struct pt_regs, r13),
	offsetof(struct pt_regs, r14), offsetof(struct pt_regs, r15),
};

/* IP to SS, which the processor pushes and pops together */
static void *entry_iret(struct pt_regs *regs)
{
	return (void *)regs + offsetof(struct pt_regs, ip);
}

static unsigned long *entry_reg(unsigned int i)
{
	return (void *)&entry.cpu + entry_order[i];
}

/* PUSH_REGS from RDX on, then CLEAR_REGS */
static void entry_push_and_clear(void)
{
	unsigned int i;

	for (i = 1; i < ARRAY_SIZE(entry_order); i++)
		entry_push(*entry_reg(i));
	/* R15 to R8, and some that the kernel uses soon */
	memset(&entry.cpu, 0, offsetof(struct pt_regs, ax));
	entry.cpu.cx = 0;
	entry.cpu.dx = 0;
	entry.cpu.si = 0;
	entry_check();
}

/* An exception or an interrupt from user mode, on the stack that ends at @end */
static void entry_exception(unsigned long end, const char *path)
{
	unsigned long *place;

	entry_begin(path);
	/* The last entry was at the same place, with other registers, and its exit left RDI. */
	memcpy(entry_iret(entry.saved), entry_iret(&entry.program), 5 * sizeof(long));
	entry.saved->di = STALE;
	*((unsigned long *)end - 6) = STALE;
	/* the processor pushes these */
	memcpy((void *)end - 5 * sizeof(long), entry_iret(&entry.program), 5 * sizeof(long));
	entry_check_at(end - 5 * sizeof(long));
	entry_push(-1);
	/* or it was at another place, with -1 in RDI */
	entry.saved->ip++;
	entry.saved->di = -1;
	entry_check();

	/* call error_entry: PUSH_AND_CLEAR_REGS save_ret=1 */
	entry_push(RETURN_ADDRESS);
	entry_push(entry.cpu.si);
	place = (unsigned long *)entry.cpu.sp + 1;
	entry.cpu.si = *place;
	entry_check();
	*place = entry.cpu.di;
	entry_check();
	entry_push_and_clear();
	entry_push(RETURN_ADDRESS);
	entry.cpu.di = end - sizeof(struct pt_regs);
	entry.cpu.ax = 0;
	entry_check();
}

static void test_user_exception(struct kunit *test)
{
	entry_exception(entry.end, "exception");
	entry_exception(CEA_ESTACK_TOP(&entry.area->estacks, DB), "#DB");
	entry_exception(CEA_ESTACK_TOP(&entry.area->estacks, MCE), "#MC");
}

/* With the registers in task_pt_regs(), any stack may be in use. */
static void test_user_kernel(struct kunit *test)
{
	struct cpu_entry_area *area = entry.area;
	struct pt_regs *frame = (struct pt_regs *)entry.end - 1;

	entry_begin("kernel");
	*entry.saved = entry.program;
	memset(&entry.cpu, 0x5a, sizeof(entry.cpu));
	entry.cpu.cs = __KERNEL_CS;

	/* the task's stack, another stack, and none */
	entry_check_at((unsigned long)entry.saved);
	entry_check_at((unsigned long)entry.saved - 1000);
	entry_check_at((unsigned long)(entry.saved + 1) + 8);
	entry_check_at((unsigned long)area);
	entry_check_at((unsigned long)&area->entry_stack_page);
	entry_check_at(CEA_ESTACK_TOP(&area->estacks, DF));
	entry_check_at(CEA_ESTACK_TOP(&area->estacks, NMI));

	/* an exception from kernel mode on the stack for entries from user mode */
	frame->cs = __KERNEL_CS;
	entry_check_at((unsigned long)frame - 8);
	frame = (struct pt_regs *)CEA_ESTACK_TOP(&area->estacks, DB) - 1;
	frame->cs = __KERNEL_CS;
	entry_check_at((unsigned long)frame - 8);
}

/* POP_REGS, except RDI, from task_pt_regs() */
static void entry_pop_regs(void)
{
	struct pt_regs cpu = entry.cpu;
	unsigned int i;

	*entry.saved = entry.program;
	memset(&entry.cpu, 0x5a, sizeof(entry.cpu));
	memcpy(entry_iret(&entry.cpu), entry_iret(&cpu), 5 * sizeof(long));
	entry_check_at((unsigned long)entry.saved);
	for (i = ARRAY_SIZE(entry_order); i--;) {
		*entry_reg(i) = entry_pop();
		entry_check();
	}
	entry.cpu.di = entry.cpu.sp;
	entry_check();
}

/* RDI, and RAX for a moment (SWITCH_TO_USER_CR3_STACK) */
static void entry_switch_cr3(void)
{
	entry_push(entry.program.di);
	entry_push(entry.cpu.ax);
	entry.cpu.di = CR3;
	entry_check();
	entry.cpu.ax = entry_pop();
	entry_check();
	entry.cpu.di = entry_pop();
	entry_check();
}

static void test_user_iret(struct kunit *test)
{
	entry_begin("IRET");
	entry.program.cs = __USER32_CS;
	entry_pop_regs();
	entry_check_at(entry.end);
	entry_push(entry.program.ss);
	entry_push(entry.program.sp);
	entry_push(entry.program.flags);
	entry_push(entry.program.cs);
	entry_push(entry.program.ip);
	entry_switch_cr3();
}

static void test_user_sysret(struct kunit *test)
{
	entry_begin("SYSRET");
	entry.program.cx = entry.program.ip;
	entry.program.r11 = entry.program.flags;
	entry_pop_regs();
	entry.cpu.ip = SYSCALL_IP + 150;
	entry_check_at(entry.end);
	entry_push(entry.program.sp);
	entry_switch_cr3();
	entry_check_at(entry_pop());
	entry_check_at(entry.end - 2048);
}

/* A kernel thread has no registers of a program, nor has a task that has not run yet. */
static void test_user_none(struct kunit *test)
{
	static const struct pt_regs none = { .cs = __USER_CS };
	struct pt_regs user;

	entry_begin("none");
	entry.task->flags = PF_KTHREAD;
	knc_user_regs(&user, &entry.cpu);
	KUNIT_EXPECT_EQ(test, memcmp(&user, &none, sizeof(user)), 0);

	entry.task->flags = 0;
	memset(entry.saved, 0, sizeof(*entry.saved));
	entry.cpu.sp = (unsigned long)entry.saved - 1000;
	knc_user_regs(&user, &entry.cpu);
	KUNIT_EXPECT_EQ(test, memcmp(&user, &none, sizeof(user)), 0);
}

static int knc_user_regs_init(struct kunit *test)
{
	knc_test_init(test);
	entry.area = vzalloc(sizeof(*entry.area));
	entry.test = test;
	entry.task = new_object(test, sizeof(*entry.task));
	entry.task->stack = new_object(test, THREAD_SIZE);
	entry.saved = task_pt_regs(entry.task);
	entry.end = (unsigned long)(&entry.area->entry_stack_page + 1);
	fake.runs = entry.task;
	fake.entry_area = entry.area;
	knc_syscall_entry = SYSCALL_IP;
	knc_syscall_saves_sp = 12;
	knc_syscall_loads_sp = 64;
	knc_syscall_length = 200;

	return entry.area ? 0 : -ENOMEM;
}

static void knc_user_regs_exit(struct kunit *test)
{
	vfree(entry.area);
	knc_test_exit(test);
}

/* The entry saves the stack pointer, loads the kernel's, and ends with SYSRETQ. */
static void test_find_syscall(struct kunit *test)
{
	static const u8 sysretq[] = { 0x48, 0x0f, 0x07 };

	knc_syscall_saves_sp = 0;
	knc_syscall_loads_sp = 0;
	knc_syscall_length = 0;
	knc_find_syscall();
	KUNIT_EXPECT_GT(test, knc_syscall_saves_sp, 0);
	KUNIT_EXPECT_LE(test, knc_syscall_saves_sp, 12);
	KUNIT_EXPECT_GT(test, knc_syscall_loads_sp, knc_syscall_saves_sp);
	KUNIT_EXPECT_LE(test, knc_syscall_loads_sp, 64);
	KUNIT_EXPECT_EQ(test, memcmp(sysretq, (void *)(knc_syscall_entry + knc_syscall_length) -
				     sizeof(sysretq), sizeof(sysretq)), 0);
	KUNIT_EXPECT_EQ(test, knc_syscall_find("not in the code"), 0);
}

static struct kunit_case knc_user_regs_cases[] = {
	KUNIT_CASE(test_find_syscall),
	KUNIT_CASE(test_user_exception),
	KUNIT_CASE(test_user_kernel),
	KUNIT_CASE(test_user_iret),
	KUNIT_CASE(test_user_sysret),
	KUNIT_CASE(test_user_none),
	{}
};
