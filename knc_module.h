/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module's interior: what knc_module.c and the side that knows the kernel's
 * perf core have of each other. That side is knc_perf.c, but for the kernel of
 * the cards, whose perf core is another: compat/2.6.38/perf_core.c.
 */
#ifndef _KNC_MODULE_H
#define _KNC_MODULE_H

#include <linux/perf_event.h>

/* knc_module.c: scheduling; the other side adds what its perf core asks for. */
extern const struct pmu knc_pmu_callbacks;

int knc_event_init(struct perf_event *event);
void knc_event_destroy(struct perf_event *event);

/* RDPMC is, or has been, open to a program */
extern bool knc_rdpmc_open;

/* The other side */

/* In the NMI: knc_pmi(), and what perf core wants to know of it */
int knc_perf_pmi(struct pt_regs *regs);

/**
 * knc_perf_prepare() - find what the kernel does not export, before all else
 *
 * Return: 0, or an error if nothing works without it.
 */
int knc_perf_prepare(void);

/**
 * knc_perf_is_cpu_pmu() - whether perf's generic events are to be ours
 *
 * Return: false if the kernel's own driver has them, and keeps them.
 */
bool knc_perf_is_cpu_pmu(void);

/**
 * knc_perf_register() - make a PMU of knc_pmu_callbacks
 * @is_cpu_pmu: what knc_perf_is_cpu_pmu() said
 *
 * Return: the PMU, or an error pointer.
 */
struct pmu *knc_perf_register(bool is_cpu_pmu);
void knc_perf_unregister(struct pmu *pmu);

#endif /* _KNC_MODULE_H */
