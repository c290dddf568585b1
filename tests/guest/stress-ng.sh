#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# stress-ng --perf: what it has events for, it counts
. ./lib.sh

into said stress-ng --cpu 1 --cpu-method loop --cpu-ops 3 --perf --metrics
# "  12,345 Instructions  1.23 M/sec (0.5 instr. per cycle)"
for e in 'CPU Cycles' Instructions 'Branch Instructions' 'Cache References'; do
	n=$(sed -n "s/.* \([0-9,]*\) $e .*/\1/p" "$tmp/said" | tr -d , | head -n 1)
	between "$e" "$n" 100001 1e15
done
ok
