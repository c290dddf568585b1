/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _KNC_COMPAT_PERF_CORE_H
#define _KNC_COMPAT_PERF_CORE_H

/* user_regs.c: where the kernel is entered by SYSCALL */
extern unsigned long compat_syscall_begin, compat_syscall_end;

/* idle.c: interrupts that are lost on the way from deep idle */
void compat_watch_idle(void);

#endif /* _KNC_COMPAT_PERF_CORE_H */
