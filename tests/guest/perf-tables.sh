#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf's own tables: "perf list" has all events by topic, described, once each; they
# count by their names in either case
. ./lib.sh
[ "$pmu" = cpu ] || skip "perf's tables are for a PMU called cpu"

into list perf list --long-desc
for topic in cache 'floating point' frontend memory pipeline 'virtual memory'; do
	has list "^$topic:\$"
done
column name data/knc_events*.csv | tr A-Z a-z >"$tmp/events"
[ -s "$tmp/events" ] || fail "the tables have no events"
awk 'NR == FNR { times[$1] = 0; next }
	name { described[name] = /\[[A-Z0-9v]/; name = "" }
	$1 in times { times[$1]++; name = $1 }
	END { for (e in times) if (times[e] != 1 || !described[e]) print e, times[e] " times" }
	' "$tmp/events" "$tmp/list" >"$tmp/wrong"
[ ! -s "$tmp/wrong" ] || fail "perf list: not once, or not described: $(cat "$tmp/wrong")"
# a long description
has list 'read the same, so a sum over them'

# 0x100000 rounds of 20 instructions
start_of instructions:u
for e in INSTRUCTIONS_EXECUTED:u instructions_executed:u; do
	into said perf stat -x, -o "$tmp/csv" -e $e ./gt --spin20 100000
	between $e "$(count $e)" $((20970520 + start)) $((20972520 + start))
done
ok
