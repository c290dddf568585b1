#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The newest perf with our tables: it describes all events, counts them by name, and computes
# a metric
. ./lib.sh

into list perf list --details
has list '^ *cpu/event=0xcb,(period=[0-9]*,)?umask=0x10/$'
n=0
for e in $(column name data/knc_events*.csv | tr A-Z a-z); do
	grep -A1 -E "^ *$e( |\$)" "$tmp/list" | grep -q '\[[A-Z0-9v]' || fail "$e is not described"
	n=$((n + 1))
done
[ "$n" -gt 0 ] || fail "the tables have no events"

# 0x100000 rounds of 20 instructions
into said perf stat -x, -o "$tmp/csv" -e instructions_executed:u ./gt --spin20 100000
between instructions_executed "$(count instructions_executed:u)" 20971520 21171520

# 2000000 reads, each of another page
into said perf stat -x, -o "$tmp/csv" -M l1_tlb_miss_ratio:u ./walk 4096
between l1_tlb_miss_ratio "$(awk -F, '/l1_tlb_miss_ratio/ { print $6 }' "$tmp/csv")" 99.5 100.1
ok
