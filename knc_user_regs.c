// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registers that a program had when it left user mode, for a PMI that interrupts
 * the kernel: all of them, at any instruction of the kernel's entry and exit.
 *
 * After the entry they are in task_pt_regs(). During the entry the processor and the
 * kernel push a struct pt_regs, its last member first, and the exit pops it. In both,
 * members above the stack pointer are in memory, and members below it in the registers.
 */
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/string.h>

#include <asm/cpu_entry_area.h>
#include <asm/msr.h>
#include <asm/processor.h>
#include <asm/ptrace.h>
#include <asm/segment.h>

#include "knc_pmu.h"

/* General registers come first in struct pt_regs, up to RDI. If SP is elsewhere, @frame has all. */
static void knc_merge_regs(struct pt_regs *user, const struct pt_regs *frame,
			   const struct pt_regs *regs)
{
	unsigned long general = offsetof(struct pt_regs, orig_ax);
	unsigned long start = (unsigned long)frame;

	*user = *frame;
	if (regs->sp > start && regs->sp <= (unsigned long)&frame->ip)
		memcpy(user, regs, min(regs->sp - start, general));
}

/* The end of the stack on which an exception or interrupt entered, or 0 */
static unsigned long knc_entry_stack_end(unsigned long sp)
{
	struct cpu_entry_area *area = get_cpu_entry_area(smp_processor_id());
	unsigned long stack = (unsigned long)&area->entry_stack_page;

	if (sp > stack && sp <= stack + sizeof(area->entry_stack_page))
		return stack + sizeof(area->entry_stack_page);
	if (sp > CEA_ESTACK_BOT(&area->estacks, DB) && sp <= CEA_ESTACK_TOP(&area->estacks, DB))
		return CEA_ESTACK_TOP(&area->estacks, DB);
	if (sp > CEA_ESTACK_BOT(&area->estacks, MCE) && sp <= CEA_ESTACK_TOP(&area->estacks, MCE))
		return CEA_ESTACK_TOP(&area->estacks, MCE);

	return 0;
}

static void knc_entry_stack_regs(struct pt_regs *user, unsigned long end,
				 const struct pt_regs *regs)
{
	struct pt_regs *frame = (struct pt_regs *)end - 1;
	const struct pt_regs *saved = task_pt_regs(current);

	/*
	 * An exit pushes the program's RDI to orig_ax, and with page table isolation has
	 * CR3 in RDI. The frame may also belong to an exception in the kernel.
	 */
	if (regs->sp > (unsigned long)&frame->ip || !user_mode(frame) ||
	    (regs->sp <= (unsigned long)&frame->orig_ax && frame->orig_ax == saved->di &&
	     !memcmp(&frame->ip, &saved->ip, sizeof(*frame) - offsetof(struct pt_regs, ip)))) {
		*user = *saved;
		return;
	}

	knc_merge_regs(user, frame, regs);
	/* The entry pushes RDI first, and moves it to its place later. */
	if (regs->sp > (unsigned long)frame)
		user->di = regs->di;
	/* The exit restores RDI last, from task_pt_regs(): RDI has the address there. */
	if (user->di == (unsigned long)&saved->di)
		user->di = saved->di;
}

/*
 * The kernel's code from SYSCALL's entry to its SYSRET. Only there can the stack pointer
 * still be the program's, which may point to another program's registers on the entry
 * stack. So the instruction pointer decides where the registers are: before saves_sp the
 * stack pointer is saved nowhere, before loads_sp it is not the kernel's yet.
 */
static unsigned long knc_syscall_entry, knc_syscall_length;
static unsigned long knc_syscall_saves_sp, knc_syscall_loads_sp;

/* The offset behind @bytes in the entry, or 0 */
static unsigned long knc_syscall_find(const char *bytes)
{
	unsigned long at;

	for (at = 0; at < 1024; at++)
		if (!memcmp((void *)(knc_syscall_entry + at), bytes, strlen(bytes)))
			return at + strlen(bytes);
	return 0;
}

/* All CPUs have one entry. If it has no MOVs to and from %gs, task_pt_regs() alone is used. */
void knc_find_syscall(void)
{
	rdmsrq(MSR_LSTAR, knc_syscall_entry);
	knc_syscall_saves_sp = knc_syscall_find("\x65\x48\x89");
	knc_syscall_loads_sp = knc_syscall_find("\x65\x48\x8b");
	if (knc_syscall_saves_sp && knc_syscall_saves_sp < knc_syscall_loads_sp)
		knc_syscall_length = knc_syscall_find("\x48\x0f\x07");
}

/* SYSCALL saves the address in RCX and the flags in R11, and leaves the stack pointer. */
static void knc_syscall_gap(struct pt_regs *user, const struct pt_regs *regs,
			    unsigned long sp)
{
	*user = *regs;
	user->ip = regs->cx;
	user->flags = regs->r11;
	user->sp = sp;
	user->cs = __USER_CS;
	user->ss = __USER_DS;
}

static void knc_syscall_regs(struct pt_regs *user, const struct pt_regs *regs)
{
	const struct pt_regs *saved = task_pt_regs(current);
	unsigned long done = regs->ip - knc_syscall_entry;

	if (done < knc_syscall_saves_sp)
		knc_syscall_gap(user, regs, regs->sp);
	else if (regs->sp > (unsigned long)saved && regs->sp <= (unsigned long)&saved->ip)
		knc_merge_regs(user, saved, regs);
	else if (done < knc_syscall_loads_sp ||
		 (regs->sp > (unsigned long)&saved->ip && regs->sp <= (unsigned long)(saved + 1)))
		knc_syscall_gap(user, regs, this_cpu_read(cpu_tss_rw.x86_tss.sp2));
	else
		*user = *saved;
}

/**
 * knc_user_regs() - the registers of the program that an NMI has interrupted
 * @user: they are stored here; 0 for a thread of the kernel
 * @regs: the interrupted context, in the kernel
 */
void knc_user_regs(struct pt_regs *user, const struct pt_regs *regs)
{
	const struct pt_regs *saved = task_pt_regs(current);
	unsigned long end = knc_entry_stack_end(regs->sp);

	if (current->flags & PF_KTHREAD)
		*user = (struct pt_regs){ .cs = __USER_CS };
	else if (regs->ip - knc_syscall_entry < knc_syscall_length)
		knc_syscall_regs(user, regs);
	else if (end)
		knc_entry_stack_regs(user, end, regs);
	else
		knc_merge_regs(user, saved, regs);

	if (!user_mode(user))
		user->cs = __USER_CS;
}
