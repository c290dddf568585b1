#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Six events of the demo's program take turns on two counters: perf's scaled counts are
# within 10 % of those without turns. The program reads its array in a part of its time
# only, so it takes several runs. (Its few branch misses come in bursts: of 24 runs they are
# still 2 % off.)
. ./lib.sh

runs=6

# count EVENTS RUNS - each one's count, name, and part of the time
count()
{
	perf stat -a -x, -o "$tmp/csv" -e "$1" sh -c "
		i=0
		while [ \$i -lt $2 ]; do
			./workload || exit
			i=\$((i + 1))
		done" >"$tmp/said" 2>&1 || fail "perf stat -e $1: $(tail -n 2 "$tmp/said" "$tmp/csv")"
	grep -v '^#' "$tmp/csv" | grep . | cut -d, -f1,3,5
}

all=
for pair in instructions:u,cycles:u branches:u,L1-dcache-loads:u \
	L1-dcache-load-misses:u,L1-dcache-stores:u; do
	count $pair 0 >>"$tmp/none"
	count $pair 1 >>"$tmp/alone"
	all=$all,$pair
done
count "${all#,}" $runs >"$tmp/turns"

# What runs beside the program: a shell's start, and the kernel
awk -F, -v runs=$runs '
FILENAME ~ /none$/ { none[$2] = $1; next }
FILENAME ~ /alone$/ { alone[$2] = $1 - none[$2]; next }
{
	got = ($1 - none[$2]) / runs
	print "# " $2 ": " got " for " alone[$2] ", with " $3 " % of the time"
	n++
	if ($3 > 40)
		why = why " " $2 " takes no turns;"
	if (!(got > alone[$2] * 0.9 && got < alone[$2] * 1.1))
		why = why " " $2 " is " got ", not " alone[$2] ";"
}
END {
	if (n != 6)
		why = why " " n " events"
	if (why) {
		print why >"/dev/stderr"
		exit 1
	}
}' "$tmp/none" "$tmp/alone" "$tmp/turns" 2>"$tmp/why" || fail "$(cat "$tmp/why")"
ok
