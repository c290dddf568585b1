#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# knc-metrics on the card: as perf stat -M has it, of a program and attached
. ./lib.sh

metrics="python3 tools/knc-metrics"
# value METRIC FILE - out of the CSV
value()
{
	awk -F, -v name="$1" '$1 == name { print $2 }' "$2"
}

$metrics -u -f csv -o "$tmp/csv" -M cpi,tlb ./walk 4096 2>"$tmp/said" ||
	fail "$(tail -n 2 "$tmp/said")"
# Two clocks for each instruction, and more while the core has something else to do
between cpi_thread "$(value cpi_thread "$tmp/csv")" 1.99 2.2
between ipc "$(value ipc "$tmp/csv")" 0.45 0.501
between l1_tlb_miss_ratio "$(value l1_tlb_miss_ratio "$tmp/csv")" 90 101

if [ "$pmu" = cpu ]; then
	for m in ipc l1_tlb_miss_ratio; do
		$metrics -u -f csv -o "$tmp/ours" -M $m ./walk 4096 2>/dev/null ||
			fail "$m: status $?"
		perf stat -j -o "$tmp/json" -M $m:u ./walk 4096 || fail "perf stat -M $m"
		theirs=$(sed -n "s/.*\"metric-value\" : \([-0-9.]*\),.*[\" ]$m:u\"}.*/\1/p" "$tmp/json")
		ours=$(value $m "$tmp/ours")
		# Two runs, each with what the core had to do besides
		between "$m, of perf's $theirs" "$ours" \
			"$(awk -v v="$theirs" 'BEGIN { print v * 0.9 }')" \
			"$(awk -v v="$theirs" 'BEGIN { print v * 1.1 }')"
	done
fi

# Attached by turns to a program that goes on
./gt --spin20 4000000000000 &
pid=$!
$metrics -u -f csv -o "$tmp/csv" -M cpi_thread,vpu_share -t 0.3 -p $pid 2>"$tmp/said"
status=$?
kill $pid
[ "$status" -eq 0 ] || fail "-p: $(tail -n 2 "$tmp/said")"
between "attached, cpi_thread" "$(value cpi_thread "$tmp/csv")" 1.99 2.5
between "attached, vpu_share" "$(value vpu_share "$tmp/csv")" 0 0

# Two runs are alike, and what is told of both says so.
$metrics -u -r 2 -f csv -o "$tmp/csv" -M branch_mispredict_ratio,ipc ./gt --spin20 100000 \
	2>/dev/null || fail "-r 2"
between "least ipc" "$(awk -F, '$1 == "ipc" { print $4 }' "$tmp/csv")" 0.45 0.501
between "spread of ipc" "$(awk -F, '$1 == "ipc" { print $5 - $4 }' "$tmp/csv")" 0 0.051

# a program that is not there
$metrics -M ipc ./nosuch 2>"$tmp/said" && fail "a program that is not there: status 0"
grep -q 'No such file' "$tmp/said" || fail "$(tail -n 1 "$tmp/said")"
ok
