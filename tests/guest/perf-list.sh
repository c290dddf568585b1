#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf list: each event of the driver's own
. ./lib.sh

into list perf list
n=0
for e in $(column name data/knc_events*.csv | tr A-Z a-z); do
	has list "(^| )$pmu/$e/"
	n=$((n + 1))
done
[ "$n" -gt 0 ] || fail "the tables have no events"
ok
