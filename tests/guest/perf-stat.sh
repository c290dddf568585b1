#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf stat: generic events, the driver's own names, raw codes, CPU-wide
. ./lib.sh

stat()
{
	into said perf stat -x, -o "$tmp/csv" "$@"
}

# 0x100000 iterations of 20 instructions, one of them a branch
spin="./gt --spin20 100000"
insns=20971520
branches=1048576

# three at once take turns, and perf scales; the kernel's own are much more where it
# checks itself
most=34
[ "${TEST_SCALE:-1}" -eq 1 ] || most=50
stat -e cycles,instructions,branches ./gt --spin20 2000000
between instructions "$(count instructions)" $((insns * 31)) $((insns * most))
between branches "$(count branches)" $((branches * 31)) $((branches * most))
between cycles "$(count cycles)" $((insns * 62)) $((insns * 2 * most))

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

# all the generic ones
stat -e cycles,instructions,branches,cache-references,cache-misses,branch-misses \
	-e stalled-cycles-frontend ./gt --spin20 2000000
between "one of seven" "$(count instructions)" $((insns * 31)) $((insns * most))

# What is counted unasked: four hardware events, which two counters can show. perf's
# own test wants as many fields in each line, so none with a second metric.
stat $spin
for e in cycles instructions branches branch-misses; do
	has csv ",$e,"
done
grep -q stalled "$tmp/csv" && fail "unasked: $(grep stalled "$tmp/csv" | head -n 1)"
odd=$(grep , "$tmp/csv" | awk -F, 'NF != 7' | head -n 1)
[ -z "$odd" ] || fail "not seven fields: $odd"

# all CPUs, each on a line of its own
stat -a -A -e instructions:u -- sleep 0.2
cpus=$(grep -c '^CPU[0-9]*,' "$tmp/csv")
[ "$cpus" -eq "$(nproc)" ] || fail "-a -A has $cpus lines"
grep -q 'not supported\|not counted' "$tmp/csv" && fail "-a: $(cat "$tmp/csv")"

# and what this PMU does not have is "not supported", not 0
perf stat -x, -o "$tmp/csv" -e bus-cycles $spin
has csv '<not supported>'
ok
