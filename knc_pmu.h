/* SPDX-License-Identifier: GPL-2.0-only */
/* Interfaces between the driver's files */
#ifndef _KNC_PMU_H
#define _KNC_PMU_H

#include <linux/perf_event.h>

#include "knc_softmask.h"

/* knc_config.c: the events */
#define KNC_CONFIG1_SPFLT	BIT_ULL(0)		/* of attr.config1 */

extern const struct attribute_group knc_pmu_format_group;
extern const struct attribute_group knc_pmu_events_group;

int knc_event_config(struct perf_event *event);
unsigned long knc_event_counters(const struct perf_event *event);

/* knc_pmu.c: starts, stops and reads counters */
int knc_pmu_probe(void);
void knc_pmu_reset(struct knc_cpu_pmu *kc);
void knc_pmu_quiesce(struct knc_cpu_pmu *kc);
void knc_event_start(struct perf_event *event);
bool knc_event_stop(struct perf_event *event);
void knc_event_read(struct perf_event *event);

/* knc_pmi.c: the interrupt */
int knc_pmi(struct pt_regs *regs);
void knc_pmi_replay(struct knc_cpu_pmu *kc);

/* knc_user_regs.c, or compat/2.6.38/user_regs.c: the registers of an interrupted program */
void knc_find_syscall(void);
void knc_user_regs(struct pt_regs *user, const struct pt_regs *regs);

/* spflt.c: user-controlled counting */
void knc_spflt_init(void);
int knc_spflt_event_init(struct perf_event *event);
void knc_spflt_reset(struct knc_cpu_pmu *kc);
void knc_spflt_update(struct knc_cpu_pmu *kc);

/* knc_sched.c: which event is on which counter, in a module */
extern const struct pmu knc_pmu_callbacks;

/* knc_module.c: loads, and accepts events */
bool knc_event_is_ours(const struct perf_event *event);
int knc_event_init(struct perf_event *event);

/*
 * knc_register.c, or compat/2.6.38/perf_core.c. Call knc_perf_prepare() first: it returns
 * -EBUSY if another driver has raw events, -ENOMEM, or -ENOENT if 2.6.38 lacks a function.
 */
int knc_perf_prepare(void);
struct pmu *knc_perf_register(void);

/* knc_nmi.c, or compat/2.6.38/perf_core.c: the NMI, and what a module needs to sample */
int knc_nmi(unsigned int type, struct pt_regs *regs);
bool knc_find_overflow(void);

#endif /* _KNC_PMU_H */
