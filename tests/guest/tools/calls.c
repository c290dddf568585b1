// SPDX-License-Identifier: GPL-2.0-only
/* calls N [STATUS]: calls a region N times, each 1000 rounds, and ends with this status. */
#include "loops.h"

#include "../../../include/knc_pmu_regions.h"

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;

	while (n-- > 0) {
		knc_region_begin("call, or \"two\"");
		spin20(1000);
		knc_region_end("call, or \"two\"");
	}
	return argc > 2 ? atoi(argv[2]) : 0;
}
