// SPDX-License-Identifier: GPL-2.0-only
/* Prints each name of libpfm4's for this CPU, and the type and config that it is. */
#include "loops.h"

#include <perfmon/pfmlib_perf_event.h>

static struct perf_event_attr encode(const char *name)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	pfm_perf_encode_arg_t arg = { .attr = &attr, .size = sizeof(arg) };
	int rc = pfm_get_os_event_encoding(name, PFM_PLM3, PFM_OS_PERF_EVENT, &arg);

	must(rc == PFM_SUCCESS, "%s: %s", name, pfm_strerror(rc));
	return attr;
}

int main(void)
{
	pfm_pmu_info_t pmu = { .size = sizeof(pmu) };
	pfm_event_info_t info = { .size = sizeof(info) };
	int i, rc = pfm_initialize();

	must(rc == PFM_SUCCESS, "pfm_initialize: %s", pfm_strerror(rc));
	rc = pfm_get_pmu_info(PFM_PMU_INTEL_KNC, &pmu);
	must(rc == PFM_SUCCESS, "the PMU knc: %s", pfm_strerror(rc));
	must(pmu.is_present, "libpfm4 does not take this for a Knights Corner");
	must(pmu.num_cntrs == 2, "%d counters", pmu.num_cntrs);
	for (i = pmu.first_event; i >= 0; i = pfm_get_event_next(i)) {
		struct perf_event_attr attr;
		char name[128];

		rc = pfm_get_event_info(i, PFM_OS_PERF_EVENT, &info);
		must(rc == PFM_SUCCESS, "event %d: %s", i, pfm_strerror(rc));
		snprintf(name, sizeof(name), "knc::%s", info.name);
		attr = encode(name);
		/* without the bits that the kernel sets */
		printf("%s,%u,0x%llx\n", info.name, attr.type,
		       (unsigned long long)attr.config & 0xffff);
	}
	return 0;
}
