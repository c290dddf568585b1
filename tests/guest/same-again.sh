#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Counts, samples and times of several programs at once on two cores: test_guest.py
# compares those of two boots.
. ./lib.sh
symbols_once

busy()
{
	for _ in 1 2 3 4 5; do
		./gt --spin20 40000 &
	done
	./workload
	sleep 0.05
	wait
}

busy >/dev/null
perf stat -a -x, -e cycles,instructions,branches,L1-dcache-load-misses,branch-misses \
	-e context-switches,cpu-migrations sh -c './workload & ./gt --spin20 40000; wait' \
	2>&1 >/dev/null | sed 's/^/# /'
perf record -q -a -c 100003 -e instructions -o "$tmp/data" -- ./workload >/dev/null 2>&1 ||
	fail "perf record"
perf script -i "$tmp/data" -F comm,tid,cpu,time,ip >"$tmp/script" 2>/dev/null
[ "$(wc -l <"$tmp/script")" -gt 2000 ] || fail "$(wc -l <"$tmp/script") samples"
echo "# $(wc -l <"$tmp/script") samples: $(sha256sum <"$tmp/script")"
sed -n 's/^/# /; 1,3p' "$tmp/script"
echo "# $(sha256sum </proc/interrupts) at $(cat /proc/uptime)"
ok
