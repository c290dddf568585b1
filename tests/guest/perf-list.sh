#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf list: the generic events, and each of the driver's own
. ./lib.sh

into list perf list
for e in cpu-cycles instructions branch-instructions branch-misses cache-references \
	 cache-misses stalled-cycles-frontend L1-dcache-load-misses; do
	has list "^ *$e( |\$)"
done
for e in bus-cycles ref-cycles stalled-cycles-backend node-loads; do
	grep -qE "^ *$e( |\$)" "$tmp/list" && fail "perf list has $e"
done
n=0
for e in $(column name data/knc_events*.csv | tr A-Z a-z); do
	has list "(^| )$pmu/$e/"
	n=$((n + 1))
done
[ "$n" -gt 0 ] || fail "the tables have no events"
ok
