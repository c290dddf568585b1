#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf's own tables: "perf list" has all events by topic, described, once each; they
# count by their names in either case, and sample
. ./lib.sh
[ "$pmu" = cpu ] || skip "perf's tables are for a PMU called cpu"

into list perf list --long-desc
for topic in cache 'floating point' frontend memory pipeline 'virtual memory'; do
	has list "^$topic:\$"
done
n=0
for e in $(column name data/knc_events*.csv | tr A-Z a-z); do
	times=$(grep -cE "^ *$e( |\$)" "$tmp/list")
	[ "$times" -eq 1 ] || fail "perf list has $e $times times"
	grep -A1 -E "^ *$e( |\$)" "$tmp/list" | grep -q '\[[A-Z0-9v]' ||
		fail "$e is not described"
	n=$((n + 1))
done
[ "$n" -gt 0 ] || fail "the tables have no events"
# a long description
has list 'read the same, so a sum over them'

# 0x100000 rounds of 20 instructions
for e in INSTRUCTIONS_EXECUTED:u instructions_executed:u; do
	into said perf stat -x, -o "$tmp/csv" -e $e ./gt --spin20 100000
	between $e "$(count $e)" 20971520 21171520
done

# 40 times 250000 branches
into said perf record -q -o "$tmp/data" -c 250000 -e branches:u ./gt --spin20 989680
n=$(perf script -i "$tmp/data" -F period 2>/dev/null | grep -c 250000)
[ "$n" -eq 40 ] || fail "$n samples of 40"
ok
