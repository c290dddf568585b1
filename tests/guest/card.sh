#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# A whole card: perf stat and perf record on each of its 244 threads
. ./lib.sh
symbols_once

threads=244
[ "$(nproc)" -eq $threads ] || fail "$(nproc) threads are online, not $threads"
knc=$(grep -c '^model name.*Xeon Phi' /proc/cpuinfo)
[ "$knc" -eq $threads ] || fail "$knc of $threads threads are Knights Corner's"

# One write starts both counters of a thread, so that they count the same instructions.
# Each takes two cycles or more.
perf stat -a -A -x, -o "$tmp/csv" -e '{instructions,cycles}' sleep 1 ||
	fail "perf stat: $(tail -n 2 "$tmp/csv")"
wrong=$(awk -F, -v threads=$threads '
	/^CPU[0-9]+,/ { count[$1, $4] = $2; seen[$1] = 1 }
	END {
		for (cpu in seen) {
			n++
			i = count[cpu, "instructions"]
			c = count[cpu, "cycles"]
			if (!(i > 0) || !(c >= 2 * i))
				print cpu ": " i " instructions in " c " cycles"
		}
		if (n != threads)
			print n " threads have counted"
	}' "$tmp/csv")
[ -z "$wrong" ] || fail "perf stat -a -A: $(echo "$wrong" | head -n 3)"

# 0x100000 iterations of 20 instructions, on the last thread and nowhere else
perf stat -a -A -x, -o "$tmp/csv" -e instructions:u \
	busybox taskset -c $((threads - 1)) ./gt --spin20 100000 ||
	fail "perf stat of a loop: $(tail -n 2 "$tmp/csv")"
last=$(awk -F, -v cpu="CPU$((threads - 1))" '$1 == cpu { print $2 }' "$tmp/csv")
[ "${last:-0}" -ge 20971520 ] || fail "the loop's thread has ${last:-no} instructions"
busy=$(awk -F, '/^CPU/ && $2 >= 20971520' "$tmp/csv" | grep -c .)
[ "$busy" -eq 1 ] || fail "$busy threads have counted the loop"

# One interrupt at least on each thread
perf record -q -a -e instructions -c 10000 -o "$tmp/data" sleep 1 >"$tmp/out" 2>&1 ||
	fail "perf record: $(tail -n 2 "$tmp/out")"
perf script -i "$tmp/data" -F cpu | sort -u >"$tmp/cpus"
[ "$(grep -c . "$tmp/cpus")" -eq $threads ] ||
	fail "samples of $(grep -c . "$tmp/cpus") threads, not of $threads"
ok
