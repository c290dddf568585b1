#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf stat: generic events, the driver's own names, raw codes
. ./lib.sh

stat()
{
	into said perf stat -x, -o "$tmp/csv" "$@"
}

# 0x100000 iterations of 20 instructions, one of them a branch
spin="./gt --spin20 100000"
insns=20971520
branches=1048576

start_of instructions:u
insns_all=$((insns + start))
start_of branches:u
branches_all=$((branches + start))
stat -e instructions:u,branches:u $spin
between instructions:u "$(count instructions:u)" $((insns_all - 1000)) $((insns_all + 1000))
between branches:u "$(count branches:u)" $((branches_all - 1000)) $((branches_all + 1000))

stat -e cpu/instructions_executed/u -e cpu/event=0x12,name=mine/u $spin
between instructions_executed "$(count cpu/instructions_executed/u)" \
	$((insns_all - 1000)) $((insns_all + 1000))
between mine "$(count mine)" $((branches_all - 1000)) $((branches_all + 1000))

stat -e r0016:u $spin
between r0016:u "$(count r0016:u)" $((insns_all - 1000)) $((insns_all + 1000))

# What is counted unasked: four hardware events, which two counters can show. perf's
# own test wants as many fields in each line, so none with a second metric.
stat $spin
for e in cycles instructions branches branch-misses; do
	has csv ",$e,"
done
grep -q stalled "$tmp/csv" && fail "unasked: $(grep stalled "$tmp/csv" | head -n 1)"
odd=$(grep , "$tmp/csv" | awk -F, 'NF != 7' | head -n 1)
[ -z "$odd" ] || fail "not seven fields: $odd"

# and what this PMU does not have is "not supported", not 0
perf stat -x, -o "$tmp/csv" -e bus-cycles $spin
has csv '<not supported>'
ok
