/* SPDX-License-Identifier: GPL-2.0-only */
/* That kernel does not load modules by the CPU's model. */
#ifndef _KNC_COMPAT_ASM_CPU_DEVICE_ID_H
#define _KNC_COMPAT_ASM_CPU_DEVICE_ID_H

#include <asm/processor.h>

struct x86_cpu_id {
	u16 vendor, family, model;
};

/* MODULE_DEVICE_TABLE() makes this name. */
#define x86cpu_device_id		x86_cpu_id

#define X86_MATCH_VENDOR_FAM_MODEL(vendor, family, model, data)		\
	{ X86_VENDOR_##vendor, family, model }

/* For a table with one entry */
static inline bool x86_match_cpu(const struct x86_cpu_id *id)
{
	return boot_cpu_data.x86_vendor == id->vendor &&
	       boot_cpu_data.x86 == id->family &&
	       boot_cpu_data.x86_model == id->model;
}

#endif /* _KNC_COMPAT_ASM_CPU_DEVICE_ID_H */
