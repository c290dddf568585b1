/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What knc_module.c and the part that knows the kernel's perf core have of each other.
 * That part is knc_perf.c, but for the kernel of the cards compat/2.6.38/perf_core.c.
 */
#ifndef _KNC_MODULE_H
#define _KNC_MODULE_H

#include <linux/perf_event.h>

/* knc_module.c: scheduling; the other part adds what its perf core asks for. */
extern const struct pmu knc_pmu_callbacks;

int knc_event_init(struct perf_event *event);

/* The other part */

/* RDPMC is, or has been, open to a program. */
extern bool knc_rdpmc_open;

/* In the NMI: knc_pmi(), and what perf core wants to know of it */
int knc_perf_pmi(struct pt_regs *regs);

/**
 * knc_perf_prepare() - find what the kernel does not export, before all else
 *
 * Return: 0; -EBUSY if another driver has perf's generic events and keeps them; or
 * another error if nothing works.
 */
int knc_perf_prepare(void);

/**
 * knc_perf_register() - make a PMU of knc_pmu_callbacks
 *
 * Return: the PMU, or an error pointer.
 */
struct pmu *knc_perf_register(void);
void knc_perf_unregister(struct pmu *pmu);

#endif /* _KNC_MODULE_H */
