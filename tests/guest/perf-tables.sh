#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf's own tables: "perf list" has all events by topic, described, once each; they
# count by their names in either case, and sample
. ./lib.sh
[ "$pmu" = cpu ] || skip "perf's tables are for a PMU called cpu"

perf list --long-desc >"$tmp/list" 2>"$tmp/said" || fail "perf list: $(tail -n 2 "$tmp/said")"
for topic in cache 'floating point' frontend memory pipeline 'virtual memory'; do
	grep -qx "$topic:" "$tmp/list" || fail "perf list has no topic \"$topic\""
done
n=0
for table in data/knc_events.csv data/knc_events_extra.csv; do
	column=$(head -n 1 $table | tr , '\n' | grep -n '^name$' | cut -d: -f1)
	for e in $(tail -n +2 $table | cut -d, -f"$column" | tr A-Z a-z); do
		[ "$(grep -cE "^ *$e( |\$)" "$tmp/list")" -eq 1 ] ||
			fail "perf list has $e $(grep -cE "^ *$e( |\$)" "$tmp/list") times"
		grep -A1 -E "^ *$e( |\$)" "$tmp/list" | grep -q '\[[A-Z0-9v]' ||
			fail "$e is not described"
		n=$((n + 1))
	done
done
[ "$n" -eq 63 ] || fail "the tables have $n events"
grep -q 'read the same, so a sum over them' "$tmp/list" || fail "no long descriptions"

# 0x100000 rounds of 20 instructions
for e in INSTRUCTIONS_EXECUTED:u instructions_executed:u; do
	perf stat -x, -o "$tmp/csv" -e $e ./gt --spin20 100000 || fail "$e: $(cat "$tmp/csv")"
	n=$(sed -n "s/^\([0-9]*\),,$e,.*/\1/p" "$tmp/csv")
	[ "${n:-0}" -ge 20971520 ] && [ "$n" -le 21171520 ] || fail "$e: ${n:-no count}"
done

# 40 times 250000 branches
perf record -q -o "$tmp/data" -c 250000 -e branches:u ./gt --spin20 989680 \
	>"$tmp/said" 2>&1 || fail "perf record: $(tail -n 2 "$tmp/said")"
n=$(perf script -i "$tmp/data" -F period 2>/dev/null | grep -c 250000)
[ "$n" -eq 40 ] || fail "$n samples of 40"
ok
