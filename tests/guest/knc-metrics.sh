#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# knc-metrics on the card: as perf stat -M has it, of a program and attached
. ./lib.sh

metrics="python3 scripts/knc-metrics"
# value METRIC FILE - out of the CSV
value()
{
	awk -F, -v name="$1" '$1 == name { print $2 }' "$2"
}

$metrics -u -f csv -o "$tmp/csv" -M cpi,tlb ./walk 4096 2>"$tmp/said" ||
	fail "$(tail -n 2 "$tmp/said")"
between cpi_thread "$(value cpi_thread "$tmp/csv")" 1.999 2.001
between ipc "$(value ipc "$tmp/csv")" 0.4995 0.5005
between l1_tlb_miss_ratio "$(value l1_tlb_miss_ratio "$tmp/csv")" 90 101

if [ "$pmu" = cpu ]; then
	for m in ipc l1_tlb_miss_ratio; do
		$metrics -u -f csv -o "$tmp/ours" -M $m ./walk 4096 2>/dev/null ||
			fail "$m: status $?"
		perf stat -j -o "$tmp/json" -M $m:u ./walk 4096 || fail "perf stat -M $m"
		theirs=$(sed -n "s/.*\"metric-value\" : \([-0-9.]*\),.*[\" ]$m:u\"}.*/\1/p" "$tmp/json")
		ours=$(value $m "$tmp/ours")
		# Two runs: clocks are the core's, and it may have something else to do.
		between "$m, of perf's $theirs" "$ours" \
			"$(awk -v v="$theirs" 'BEGIN { print v * 0.97 }')" \
			"$(awk -v v="$theirs" 'BEGIN { print v * 1.03 }')"
	done
fi

# Attached by turns to a program that goes on: two clocks for each, and more while
# the core has something else to do
./gt --spin20 4000000000000 &
pid=$!
$metrics -u -f csv -o "$tmp/csv" -M cpi_thread,vpu_share -t 0.3 -p $pid 2>"$tmp/said"
status=$?
kill $pid
[ "$status" -eq 0 ] || fail "-p: $(tail -n 2 "$tmp/said")"
between "attached, cpi_thread" "$(value cpi_thread "$tmp/csv")" 1.99 2.5
between "attached, vpu_share" "$(value vpu_share "$tmp/csv")" 0 0

# Two runs are alike, and the spread of what ring 3 does says so.
$metrics -u -r 2 -f csv -o "$tmp/csv" -M branch_mispredict_ratio,ipc ./gt --spin20 10000 \
	2>/dev/null || fail "-r 2"
between "spread of ipc" "$(awk -F, '$1 == "ipc" { print $5 - $4 }' "$tmp/csv")" 0 0.001

# a program that is not there
$metrics -M ipc ./nosuch 2>"$tmp/said" && fail "a program that is not there: status 0"
grep -q 'No such file' "$tmp/said" || fail "$(tail -n 1 "$tmp/said")"
ok
