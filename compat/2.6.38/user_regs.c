// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registers that a program had when it left user mode, for a PMI that finds the
 * kernel. That kernel's perf core looks at three of them: the address, and for callers
 * the frame and stack pointers. A system call does not save the last two, so they are 0
 * but in the first instructions of the kernel, where RBP is the program's.
 */
#include <linux/sched.h>

#include <asm/processor.h>
#include <asm/ptrace.h>
#include <asm/segment.h>

#include "../../knc_pmu.h"
#include "perf_core.h"

unsigned long compat_syscall_begin, compat_syscall_end;

/* SYSCALL has put the address in RCX, and it is saved as the last of all. */
static bool compat_in_syscall_gap(const struct pt_regs *regs)
{
	return regs->sp < TASK_SIZE_MAX ||
	       (regs->ip >= compat_syscall_begin && regs->ip < compat_syscall_end &&
		regs->cx < TASK_SIZE_MAX);
}

/* knc_perf_prepare() has found where that is. */
void knc_find_syscall(void)
{
}

void knc_user_regs(struct pt_regs *user, const struct pt_regs *regs)
{
	const struct pt_regs *saved = task_pt_regs(current);

	*user = (struct pt_regs){ .cs = __USER_CS };
	if (current->flags & PF_KTHREAD)
		return;

	if (compat_in_syscall_gap(regs)) {
		user->ip = regs->cx;
		user->flags = regs->r11;
		user->bp = regs->bp;
	} else {
		user->ip = saved->ip;
		user->flags = saved->flags;
	}
}
