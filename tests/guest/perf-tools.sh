#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# What perf calls, or finds in the kernel: perf trace, annotate, its scripts
. ./lib.sh
symbols_once
data=$tmp/data

# The system calls of a program, by the kernel's tracepoints
into said perf trace -e write,openat sh -c 'echo hello >/tmp/perf-tools/hello'
has said 'openat\(dfd: CWD, .*flags: CREAT\|TRUNC\|WRONLY.*\) *= 3'
has said 'write\(fd: 1.*count: 6[,)].* = 6'

# The instructions of the hot function, by objdump. On one CPU: perf opens an event for
# each, and a task that migrates starts another period.
into said taskset -c 1 perf record -q -g -c 100000 -e instructions:u -o "$data" \
	./gt --spin20 f4240
grep -q 'Warning\|bpf' "$tmp/said" && fail "perf record warns: $(head -n 2 "$tmp/said")"
perf annotate -i "$data" --stdio -s spin20_lo >"$tmp/out" 2>&1 ||
	perf annotate -i "$data" --stdio -s spin20 >"$tmp/out" 2>&1
has out '[1-9][0-9]*\.[0-9]+ +: +[0-9a-f]+:'

# Its scripts in Python
into said perf script -l
for s in flamegraph stackcollapse syscall-counts failed-syscalls-by-pid; do
	has said "^ *$s"
done
into out perf script report stackcollapse -i "$data"
[ -s "$tmp/said" ] && fail "stackcollapse says: $(head -n 1 "$tmp/said")"
# gt's calls, outermost first, and how often that was seen
has out '^gt;.*;spin20(_lo)? 200$'

ok
