// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registers that a program had when it left user mode, for a PMI that interrupts the
 * kernel. That kernel's perf core uses three of them: the address, and for callers the
 * frame and stack pointers. A system call does not save the last two, so they are 0,
 * except in the first instructions of the kernel, where RBP is still the program's.
 */
#include <linux/sched.h>
#include <linux/smp.h>

#include <asm/desc.h>
#include <asm/processor.h>
#include <asm/ptrace.h>
#include <asm/segment.h>

#include "../../knc_pmu.h"
#include "perf_core.h"

unsigned long compat_syscall_begin, compat_syscall_end;

/* SYSCALL has put the address in RCX, which the kernel saves last. Regs of a replay have no SP. */
static bool compat_in_syscall_gap(const struct pt_regs *regs)
{
	return (regs->sp && regs->sp < TASK_SIZE_MAX) ||
	       (regs->ip >= compat_syscall_begin && regs->ip < compat_syscall_end &&
		regs->cx < TASK_SIZE_MAX);
}

/* From the processor's own pointer, because the symbol is not exported */
static const struct x86_hw_tss *compat_this_tss(void)
{
	const struct desc_struct *gdt = get_cpu_gdt_table(smp_processor_id());
	const tss_desc *tss = (const tss_desc *)&gdt[GDT_ENTRY_TSS];

	return (const struct x86_hw_tss *)(tss->base0 | tss->base1 << 16 |
					   (unsigned long)tss->base2 << 24 |
					   (unsigned long)tss->base3 << 32);
}

/*
 * An exception with an IST stack leaves the program's registers there. The debug stack is
 * two stacks: while the kernel is on the upper one, exceptions enter on the lower one.
 */
static struct pt_regs *compat_exception_regs(const struct pt_regs *regs)
{
	const struct x86_hw_tss *tss = compat_this_tss();
	unsigned long end = ALIGN(regs->sp, EXCEPTION_STKSZ);
	unsigned int i;

	for (i = 0; i < N_EXCEPTION_STACKS; i++)
		if (end == tss->ist[i] ||
		    (i == DEBUG_STACK - 1 && end == tss->ist[i] + EXCEPTION_STKSZ))
			return (struct pt_regs *)end - 1;

	return NULL;
}

/* Where the registers are after the kernel's entry */
static const struct pt_regs *compat_saved_regs(const struct pt_regs *regs)
{
	struct pt_regs *saved = compat_exception_regs(regs);

	/* An exception within the kernel has none. */
	return saved && user_mode(saved) ? saved : task_pt_regs(current);
}

/* knc_perf_prepare() has found where that is. */
void knc_find_syscall(void)
{
}

void knc_user_regs(struct pt_regs *user, const struct pt_regs *regs)
{
	const struct pt_regs *saved = compat_saved_regs(regs);

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
