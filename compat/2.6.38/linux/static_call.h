/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * No call can be patched. The one that the driver has is a function of
 * perf_core.c, which knows what that kernel's perf core wants beside.
 */
#ifndef _KNC_COMPAT_LINUX_STATIC_CALL_H
#define _KNC_COMPAT_LINUX_STATIC_CALL_H

struct perf_event;
struct perf_sample_data;
struct pt_regs;

#define DECLARE_STATIC_CALL(name, function)				\
	int name(struct perf_event *event, struct perf_sample_data *data, \
		 struct pt_regs *regs)
#define static_call(name)		name

#endif /* _KNC_COMPAT_LINUX_STATIC_CALL_H */
