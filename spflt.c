// SPDX-License-Identifier: GPL-2.0-only
/*
 * User-controlled counting: PERF_SPFLT_CONTROL (327357-001, 1.4.3.4).
 */
#include "knc_pmu.h"

/*
 * No counter filtered, user preference "do not count". INIT leaves both as
 * they were (1.4.4).
 */
void knc_spflt_reset(void)
{
	knc_write_spflt(0);
}
