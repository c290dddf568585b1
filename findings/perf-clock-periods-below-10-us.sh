#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: perf record -e cpu-clock -c 1000 takes a sample each 1,000 ns, or says that it cannot:
#	a sample's period is the time that it stands for.
# Seen: samples are 10,000 ns apart, as with -c 10000, because the kernel sets its timer to that at
#	least. Each has the period 1,000 all the same, so the periods add up to a tenth of the time
#	at most. Nothing is said of it: no lost or throttled samples, status 0.
# Versions: linux-perf 7.3.4-1~bpo13+1 of trixie-backports, Linux 6.18
# Hurts: times computed of periods ("Event count" of perf report): too small by a factor of ten.
# shellcheck disable=SC1091,SC2016,SC2034,SC2094,SC2154
. "$(dirname "$(realpath "$0")")/lib.sh"

packages 'trixie trixie-backports' linux-perf=7.3.4-1~bpo13+1
run usr/bin/perf version
for period in 1000 10000; do
	run usr/bin/perf record -q -o data -e cpu-clock -c "$period" \
		sh -c 'i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done' >/dev/null 2>&1 || exit 2
	run usr/bin/perf report --stats -i data 2>/dev/null | grep -E 'LOST|THROTTLE' >>lost
	run usr/bin/perf script -i data --ns -F time,period 2>/dev/null | tr -d : >samples
	median=$(awk 'NR > 1 { printf "%d\n", ($1 - last) * 1e9 } { last = $1 }' samples |
		sort -n | sed -n "$(($(wc -l <samples) / 2))p")
	periods=$(awk '{ print $2 }' samples | sort -u | tr '\n' ' ')
	echo "-c $period: period ${periods}of each sample, half of them ${median} ns apart or less"
done >told
cat told
expect "a period of 1,000 ns, a distance of about 10,000" \
	grep -Eq '^-c 1000: period 1000 of .* ([89]|[12][0-9])[0-9]{3} ns' told
expect "the same distance with -c 10000" \
	grep -Eq '^-c 10000: period 10000 of .* ([89]|[12][0-9])[0-9]{3} ns' told
expect "no message of lost or throttled samples" [ ! -s lost ]
