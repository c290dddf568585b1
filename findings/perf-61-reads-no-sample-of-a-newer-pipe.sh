#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: perf report reads the samples that a newer perf has written to a pipe, or fails.
# Seen: perf 6.1 report prints its head, no sample, and ends with status 0. The reason, "failed to
#	process sample", is on stderr only. perf 6.1 script reads the samples of the same data.
# Versions: linux-perf 6.1 of bookworm; 7.3.4-1~bpo13+1 of trixie-backports writes
# Hurts: profiles of a machine with a newer perf. Scripts have an empty report and no error.
. "$(dirname "$(realpath "$0")")/lib.sh"

packages 'trixie trixie-backports' linux-perf=7.3.4-1~bpo13+1
run usr/bin/perf record -q -o - -e cpu-clock -F 2000 \
	sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done' >pipe 2>/dev/null
root=$work/old
packages bookworm linux-perf=6.1.176-1
run usr/bin/perf report -i - --stdio <pipe >report 2>said
echo "perf 6.1 report: status $?, $(grep -c % report) lines of samples; stderr: $(cat said)" | tee told
run usr/bin/perf script -i - <pipe >script 2>/dev/null
echo "perf 6.1 script: $(grep -c 'cpu-clock:' script) samples" | tee -a told
expect "status 0 and no sample" grep -q 'status 0, 0 lines' told
expect "samples in perf script" grep -q 'cpu-clock:' script
