#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: perf data convert --to-json writes for each sample which event it is of.
# Seen: a sample has a time, a process, a thread, a command and a call chain, neither the event's
#	name nor a period. Samples of two events are one list. perf script has both for each.
# Versions: linux-perf 7.3.4-1~bpo13+1 of trixie-backports; 6.1.176-1 of bookworm does the same
# Hurts: whatever reads that file: clock ticks and page faults become one profile, in which one
#	fault weighs as much as a tick, though its period is another.
. "$(dirname "$(realpath "$0")")/lib.sh"

packages 'trixie trixie-backports' linux-perf=7.3.4-1~bpo13+1
run usr/bin/perf version
run usr/bin/perf record -q -o data -e cpu-clock,page-faults \
	sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done' 2>/dev/null || exit 2
run usr/bin/perf script -i data -F event,period 2>/dev/null >script
run usr/bin/perf data convert -i data --to-json json >/dev/null 2>&1 || exit 2
sed '1,/"samples"/d' json >samples
echo "perf script: $(grep -c cpu-clock script) samples of cpu-clock, $(
	grep -c page-faults script) of page-faults; JSON: $(grep -c '"timestamp"' samples) samples"
echo "keys: $(grep -o '"[a-z]*":' samples | sort -u | tr '\n' ' ')"
all()
{
	[ "$(wc -l <script)" -eq "$(grep -c '"timestamp"' samples)" ]
}
silent()
{
	! grep -Eq 'cpu-clock|page-faults|"event|"name|"period' samples
}
expect "samples of both events in perf script" grep -q page-faults script
expect "as many samples in JSON" all
expect "no event and no period there" silent
