#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The kernels of likwid-bench with which likwid's developers tested these events on a card
# (likwid issue 3): a store reads its line first, and the line is written back.
. ./lib.sh

# moves KERNEL METRIC TIMES SLACK - so many times an array's 8 MiB, to so many KiB
moves()
{
	bytes=$(cell value "region=$1,metric=$2")
	between "$1, $2" "$bytes" $((($3 * 8192 - $4) * 1024)) $((($3 * 8192 + $4) * 1024))
	echo "# $1, $2: $bytes"
}

# A cache may keep 512 KiB of what was written, and another task may evict as much, uncounted.
into said knc-metrics -u --regions -f csv -o "$tmp/csv" -M l1_l2_bytes,memory_write_bytes ./kernels
for row in 'load 1 0' 'store 2 1' 'copy 3 1' 'triad 4 1'; do
	set -- $row
	moves "$1" l1_l2_bytes "$2" 64
	moves "$1" memory_write_bytes "$3" 1152
done
ok
