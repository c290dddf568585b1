#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf record, perf report, perf script: how many samples, and of what
. ./lib.sh
data=$tmp/data

# On one CPU: perf opens an event for each, and a task that migrates starts another period.
record()
{
	taskset -c 1 perf record -q -o "$data" "$@" >"$tmp/said" 2>&1 ||
		fail "perf record $*: $(tail -n 2 "$tmp/said")"
	perf script -i "$data" -F comm,event,ip,sym,period >"$tmp/script" 2>"$tmp/said" ||
		fail "perf script: $(tail -n 2 "$tmp/said")"
}

# 20 million instructions: 0xf4240 iterations of 20
record -c 100000 -e instructions:u -- ./gt --spin20 f4240
n=$(grep -c . "$tmp/script")
[ "$n" -eq 200 ] || fail "-c 100000: $n samples of 20 million and a start"
hot=$(grep -c ' spin20\(_lo\)\{0,1\}$' "$tmp/script")
[ "$hot" -eq 200 ] || fail "-c 100000: $hot of $n samples are in the loop"

perf report -i "$data" --stdio --percent-limit 50 >"$tmp/report" 2>/dev/null ||
	fail "perf report"
grep -q '^ *9[0-9]\.[0-9]*%.* spin20\|^ *100\.00%.* spin20' "$tmp/report" ||
	fail "perf report does not name the hot function: $(grep % "$tmp/report" | head -n 1)"

# by frequency, which is how perf does it unless told
record -F 500 -e cycles -- ./gt --spin20 2000000
n=$(grep -c . "$tmp/script")
[ "$n" -ge 20 ] || fail "-F 500: $n samples"
grep -q spin20 "$tmp/script" || fail "-F 500: none of them in the loop"

# call chains, in the kernel too
perf record -q -g -o "$data" -c 20000 -e instructions -- ./gt --spin20 f4240 >"$tmp/said" 2>&1 ||
	fail "perf record -g: $(tail -n 2 "$tmp/said")"
perf script -i "$data" -F ip,sym >"$tmp/script" 2>/dev/null
# a sample is a paragraph; its callers are the lines after the first
awk 'BEGIN { RS = "" } /spin20/ && /main/ { n++ } END { exit n < 900 }' "$tmp/script" ||
	fail "-g: the loop's callers are not there"

# children, and what they execute
record -c 100000 -e instructions:u -- sh -c './gt --spin20 f4240 & ./gt --spin20 f4240; wait'
hot=$(grep -c ' spin20\(_lo\)\{0,1\}$' "$tmp/script")
[ "$hot" -ge 398 ] && [ "$hot" -le 402 ] || fail "two children: $hot samples, want 400"

# every CPU at once
record -a -c 100000 -e instructions:u -- ./gt --spin20 f4240
hot=$(grep -c ' spin20\(_lo\)\{0,1\}$' "$tmp/script")
[ "$hot" -ge 199 ] && [ "$hot" -le 201 ] || fail "-a: $hot samples, want 200"
ok
