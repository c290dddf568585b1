/* SPDX-License-Identifier: GPL-2.0-only */
/* States of a CPU. That kernel's notifier reports two (kernel.c). */
#ifndef _KNC_COMPAT_LINUX_CPUHOTPLUG_H
#define _KNC_COMPAT_LINUX_CPUHOTPLUG_H

enum cpuhp_state {
	CPUHP_BP_PREPARE_DYN,
	CPUHP_AP_ONLINE_DYN,
	COMPAT_CPUHP_STATES
};

/* These return the state, or an error. They call nothing when a CPU goes offline. */
int cpuhp_setup_state(enum cpuhp_state state, const char *name,
		      int (*startup)(unsigned int cpu),
		      int (*teardown)(unsigned int cpu));
int cpuhp_setup_state_nocalls(enum cpuhp_state state, const char *name,
			      int (*startup)(unsigned int cpu),
			      int (*teardown)(unsigned int cpu));
void cpuhp_remove_state_nocalls(enum cpuhp_state state);
#define cpuhp_remove_state	cpuhp_remove_state_nocalls

#endif /* _KNC_COMPAT_LINUX_CPUHOTPLUG_H */
