/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _KNC_COMPAT_PERF_CORE_H
#define _KNC_COMPAT_PERF_CORE_H

struct perf_event;

/* target.c: the task that an event is for */
int compat_get_target(struct perf_event *event);
void compat_put_target(const struct perf_event *event);
void compat_watch_forks(void);
void compat_unwatch_forks(void);

/* user_regs.c: where the kernel is entered by SYSCALL */
extern unsigned long compat_syscall_begin, compat_syscall_end;

/* idle.c: interrupts that are lost on the way from deep idle */
void compat_watch_idle(void);
void compat_unwatch_idle(void);

#endif /* _KNC_COMPAT_PERF_CORE_H */
