#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# What perf calls, or finds in the kernel: perf trace, annotate, its scripts, and
# the size of a terminal that it is not told
. ./lib.sh
data=$tmp/data

# The system calls of a program, by the kernel's tracepoints
perf trace -e write,openat sh -c 'echo hello >/tmp/perf-tools/hello' >"$tmp/out" 2>&1 ||
	fail "perf trace: $(tail -n 2 "$tmp/out")"
grep -q 'openat(dfd: CWD, .*flags: CREAT|TRUNC|WRONLY.*) *= 3' "$tmp/out" ||
	fail "perf trace prints no openat: $(head -n 2 "$tmp/out")"
grep -q 'write(fd: 1.*count: 6[,)].* = 6' "$tmp/out" ||
	fail "perf trace prints no write: $(head -n 2 "$tmp/out")"

# The instructions of the hot function, by objdump. On one CPU: perf opens an event for
# each, and a task that migrates starts another period.
taskset -c 1 perf record -q -g -c 100000 -e instructions:u -o "$data" ./gt --spin20 f4240 \
	>"$tmp/out" 2>&1 || fail "perf record: $(tail -n 2 "$tmp/out")"
grep -q 'Warning\|bpf' "$tmp/out" && fail "perf record warns: $(head -n 2 "$tmp/out")"
perf annotate -i "$data" --stdio -s spin20_lo >"$tmp/out" 2>&1 ||
	perf annotate -i "$data" --stdio -s spin20 >"$tmp/out" 2>&1
grep -qE '[1-9][0-9]*\.[0-9]+ +: +[0-9a-f]+:' "$tmp/out" ||
	fail "perf annotate shows no instruction: $(head -n 3 "$tmp/out")"

# Its scripts in Python
perf script -l >"$tmp/out" 2>&1
for s in flamegraph stackcollapse syscall-counts failed-syscalls-by-pid; do
	grep -q "^ *$s" "$tmp/out" || fail "perf script -l has no $s"
done
perf script report stackcollapse -i "$data" >"$tmp/out" 2>"$tmp/said" ||
	fail "stackcollapse: $(tail -n 2 "$tmp/said")"
[ -s "$tmp/said" ] && fail "stackcollapse says: $(head -n 1 "$tmp/said")"
# gt's calls, outermost first, and how often that was seen
grep -qE '^gt;.*;spin20(_lo)? 200$' "$tmp/out" ||
	fail "stackcollapse: $(head -n 2 "$tmp/out")"

# And pictures of what they say, on the card itself
perf script -i "$data" >"$tmp/out" 2>"$tmp/said" || fail "perf script: $(tail -n 2 "$tmp/said")"
knc-draw flame "$tmp/out" >"$tmp/flame" 2>&1 || fail "knc-draw flame: $(tail -n 1 "$tmp/flame")"
grep -q '^200 samples of instructions:u;' "$tmp/flame" ||
	fail "knc-draw flame: $(head -n 1 "$tmp/flame")"
grep -qE '^ *(9[0-9]|100)\.[0-9]% +(9[0-9]|100)\.[0-9]% .* spin20' "$tmp/flame" ||
	fail "knc-draw flame: $(head -n 3 "$tmp/flame")"
last=$(($(nproc) - 1))
perf stat -a -A -x, -o "$tmp/csv" -e instructions:u \
	taskset -c $last ./gt --spin20 f4240 || fail "perf stat -a -A"
knc-draw card "$tmp/csv" --svg "$tmp/svg" >"$tmp/card" 2>&1 ||
	fail "knc-draw card: $(tail -n 1 "$tmp/card")"
grep -q "^most: *core $((last / 4)) thread $((last % 4)): 20\.*" "$tmp/card" ||
	fail "knc-draw card: $(grep most "$tmp/card")"
grep -q '</svg>' "$tmp/svg" || fail "knc-draw card: half a picture"

# Five events take turns.
perf stat -a -A -j -o "$tmp/json" -e instructions,cycles,branches,branch-misses,cache-misses \
	taskset -c $last ./gt --spin20 f4240 || fail "perf stat -a -A -j"
knc-draw card "$tmp/json" >"$tmp/card" 2>&1 || fail "knc-draw card: $(tail -n 1 "$tmp/card")"
grep -q "^~: estimates; $(nproc) threads" "$tmp/card" ||
	fail "knc-draw card: $(tail -n 1 "$tmp/card")"
ok
