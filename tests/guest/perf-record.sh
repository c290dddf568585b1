#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf record, perf report, perf script: how many samples, and of what
. ./lib.sh
symbols_once
data=$tmp/data

# On one CPU: perf opens an event for each, and a task that migrates starts another period.
record()
{
	into said taskset -c 1 perf record -q -o "$data" "$@"
	into script perf script -i "$data" -F comm,event,ip,sym,period
}

# The samples in the loop
hot()
{
	grep -cE ' spin20(_lo)?$' "$tmp/script"
}

# 20 million instructions, 0xf4240 iterations of 20, and what a program takes to begin
start_of instructions:u
all=$((20000000 + start))
record -c 100000 -e instructions:u -- ./gt --spin20 f4240
n=$(grep -c . "$tmp/script")
between "samples of -c 100000" "$n" $(((all - 1000) / 100000)) $(((all + 1000) / 100000))
[ "$(hot)" -eq 200 ] || fail "-c 100000: $(hot) of $n samples are in the loop"

into report perf report -i "$data" --stdio --percent-limit 50
has report '^ *(9[0-9]\.[0-9]*|100\.00)%.* spin20'

# by frequency, which is how perf does it unless told
record -F 500 -e cycles -- ./gt --spin20 2000000
n=$(grep -c . "$tmp/script")
[ "$n" -ge 20 ] || fail "-F 500: $n samples"
has script spin20

# call chains, in the kernel too
into said perf record -q -g -o "$data" -c 20000 -e instructions -- ./gt --spin20 f4240
into script perf script -i "$data" -F ip,sym
# a sample is a paragraph; its callers are the lines after the first
awk 'BEGIN { RS = "" } /spin20/ && /main/ { n++ } END { exit n < 900 }' "$tmp/script" ||
	fail "-g: the loop's callers are not there"

# children, and what they execute
record -c 100000 -e instructions:u -- sh -c './gt --spin20 f4240 & ./gt --spin20 f4240; wait'
between "samples of two children" "$(hot)" 398 402
ok
