#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf list: the generic events, and each of the driver's own
. ./lib.sh

perf list >"$tmp/list" 2>"$tmp/said" || fail "perf list: $(tail -n 2 "$tmp/said")"
for e in cpu-cycles instructions branch-instructions branch-misses cache-references \
	 cache-misses stalled-cycles-frontend L1-dcache-load-misses; do
	grep -qE "^ *$e( |\$)" "$tmp/list" || fail "perf list has no $e"
done
for e in bus-cycles ref-cycles stalled-cycles-backend node-loads; do
	grep -qE "^ *$e( |\$)" "$tmp/list" && fail "perf list has $e"
done
n=0
for table in data/knc_events.csv data/knc_events_extra.csv; do
	column=$(head -n 1 $table | tr , '\n' | grep -n '^name$' | cut -d: -f1)
	for e in $(tail -n +2 $table | cut -d, -f"$column" | tr A-Z a-z); do
		grep -qE "(^| )$pmu/$e/" "$tmp/list" || fail "perf list has no $pmu/$e/"
		n=$((n + 1))
	done
done
[ "$n" -eq 63 ] || fail "the tables have $n events"
ok
