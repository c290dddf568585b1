#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: duration_time of "perf stat PROGRAM" is the time that the program took, in ns.
# Seen: perf 7.3.4 prints 0 if it starts the program itself, and leaves the unit out. Events of the
#	kernel begin at exec(); the tool's own event is never begun. With -a, -p or -D 1 it is right.
# Versions: linux-perf 7.3.4-1~bpo13+1 of trixie-backports, Linux 6.18
# Hurts: whatever divides counts by duration_time. perf 6.1 prints the time.
. "$(dirname "$(realpath "$0")")/lib.sh"

packages 'trixie trixie-backports' linux-perf=7.3.4-1~bpo13+1
run usr/bin/perf stat -x, -o counts -e cpu-clock -e duration_time sleep 0.2 2>/dev/null || exit 2
run usr/bin/perf stat -x, -o later -D 1 -e cpu-clock -e duration_time sleep 0.2 2>/dev/null || exit 2
echo "of a program that took 0.2 s: $(grep duration counts); with -D 1: $(grep duration later)"
expect "0" grep -q '^0,,duration_time,' counts
expect "190,000,000 or so with -D 1" grep -Eq '^[12][0-9]{8},' later
