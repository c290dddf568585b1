#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf stat -M: listed, in groups, weak groups broken up, d_ratio. metrics-truth has each metric's
# value.
. ./lib.sh
[ "$pmu" = cpu ] || skip "perf's tables are for a PMU called cpu"

into list perf list metric
for m in cpi_thread cpi_core vectorization_intensity l1_tlb_miss_ratio; do
	has list "^ *$m\$"
done
perf list --raw-dump metricgroup | tr ' ' '\n' >"$tmp/groups"
for g in cpi tlb cache vector pairing density branch memory summary; do
	has groups "^$g\$"
done

# value METRIC PROGRAM... - as JSON has it, with all its digits
value()
{
	_metric=$1
	shift
	into said perf stat -j -o "$tmp/json" -M "$_metric" "$@"
	sed -n "s/.*\"metric-value\" : \([-0-9.na]*\),.*[\" ]$_metric\"}.*/\1/p" \
		"$tmp/json"
}

# Of 0 by 0 d_ratio makes 0: the loop has no vector instructions.
between vectorization_intensity "$(value vectorization_intensity ./gt --spin20 100000)" 0 0
# 64 reads of each line
between l1_read_miss_ratio "$(value l1_read_miss_ratio:u ./walk 1)" 1.5 2

# A group has several metrics, of three events: they take turns, and none is 0.
into said perf stat -o "$tmp/tlb" -M tlb ./walk 4096
for m in l1_tlb_miss_ratio l2_tlb_miss_ratio l1_tlb_misses_per_l2_tlb_miss; do
	has tlb "$m"
done

# What perf cannot have in one run it does not compute, with 0 for what was not counted.
into said perf stat -o "$tmp/memory" -M memory true
grep -q 'memory_read_bytes\|memory_bandwidth' "$tmp/memory" && fail "$(cat "$tmp/memory")"
perf stat -M memory_bandwidth true 2>&1 | grep -q 'Cannot find metric or group' ||
	fail "perf has a memory_bandwidth"

# All CPUs, all metrics
into said perf stat -a -o "$tmp/all" -M summary -- sleep 0.5
for m in cpi_thread cpi_core vectorization_intensity; do
	has all "$m"
done
ok
