#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf stat -M: groups, weak groups broken up, d_ratio. metrics-truth has each metric's value.
. ./lib.sh
[ "$pmu" = cpu ] || skip "perf's tables are for a PMU called cpu"

# Of 0 by 0 d_ratio makes 0: the loop has no vector instructions.
into said perf stat -o "$tmp/none" -M vectorization_intensity ./gt --spin20 100000
has none '# +0(\.0+)? +vectorization_intensity$'

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
