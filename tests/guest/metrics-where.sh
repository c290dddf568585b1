#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# knc-metrics by function and line, by interval, by core and thread: a program of which it
# is known which line misses the cache, and how often
. ./lib.sh
symbols_once

# Reads of where.c, each of another line of the cache
misses=$((16 * (4 << 20) / 64))

# of FUNCTION NAME COLUMN - out of the CSV of --by
of()
{
	cell "$3" "function=$1,metric=$2"
}

line=$(./where)
line=${line#where.c:}
mkdir "$tmp/a (b)" && cp where "$tmp/a (b)"
into said knc-metrics --by line -u -f csv -o "$tmp/csv" -M l1_l2_bytes,ipc "$tmp/a (b)/where"
[ "$(of walk DATA_READ_MISS_OR_WRITE_MISS line)" = "$line" ] ||
	fail "the misses are of line $line, not $(of walk DATA_READ_MISS_OR_WRITE_MISS line)"
# All but what the last period has not been completed by
between "misses of the line" "$(of walk DATA_READ_MISS_OR_WRITE_MISS count)" \
	$((misses - 10000)) $((misses + 10000))
between "their share" "$(of walk DATA_READ_MISS_OR_WRITE_MISS share)" 0.99 1
between "bytes" "$(of walk l1_l2_bytes value)" $((misses * 64 * 97 / 100)) \
	$((misses * 64 * 103 / 100))
between "ipc of the loop" "$(of count_down ipc value)" 0.48 0.52
# 2 instructions of 2000000 turns, 4 of each read
between "instructions of the loop" "$(of count_down INSTRUCTIONS_EXECUTED share)" 0.47 0.51
[ -z "$(of count_down l1_l2_bytes value)" ] || fail "bytes that rest on no samples"
has csv 'l1_l2_bytes,.*too few samples: 0 of DATA_READ_MISS_OR_WRITE_MISS'

into said knc-metrics --by line -u -o "$tmp/text" -M l1_l2_bytes ./where even
has text '^no line has a quarter of l1_l2_bytes: none is hot$'
[ "$(grep -cE '^where.c:[0-9]+  walk_evenly' "$tmp/text")" -eq 8 ] ||
	fail "even: $(grep -c walk_evenly "$tmp/text") lines"

# As from another machine: by a pipe, with symbols of the files below --symfs
into said knc-metrics --by line --perf 'env perf' --symfs / -u -o "$tmp/text" -M l1_l2_bytes ./where
has text "^hot: where.c:$line  walk has (9[89]|100)% of l1_l2_bytes$"
# The instruction after the read, and the read before it
has text '^ +(9[89]|100)\.[0-9]%  [0-9a-f]+:  '
has text '^ +0\.0%  [0-9a-f]+:  .*\(%r'

# Each interval's bytes; the sum is what the program has.
into said knc-metrics -I 5 -u -f csv -o "$tmp/csv" -M l1_l2_bytes,ipc ./where
between "bytes of all intervals" "$(awk -F, '$4 == "l1_l2_bytes" { sum += $5 }
	END { printf "%d", sum }' "$tmp/csv")" $((misses * 64)) $((misses * 64 * 103 / 100))
n=$(grep -c ',l1_l2_bytes,' "$tmp/csv")
[ "$n" -ge 3 ] || fail "$n intervals"
[ "$(cut -d, -f1,4 "$tmp/csv" | sort -u | grep -c '^[12],')" -eq 2 ] ||
	fail "$(cut -d, -f1,4 "$tmp/csv" | sort -u)"

# place CORE THREAD METRIC - out of the CSV of --per-core or --per-thread
place()
{
	cell value "core=$1,thread=$2,metric=$3"
}

# On one thread of the core: its clocks are the core's, not four times as many.
into said knc-metrics -a --per-core -f csv -o "$tmp/csv" -M cpi taskset -c 1 ./where
between "cpi of the core" "$(place 0 '' cpi_core)" 1.9 2.1
between "clocks of the core" "$(place 0 '' clock_rate)" 0.9 1.05
for m in cpi_thread ipc; do
	[ -z "$(place 0 '' $m)" ] || fail "$m of a core: $(place 0 '' $m)"
done
# The kernel clears 4 MiB for it.
into said knc-metrics -a --per-core -f csv -o "$tmp/csv" -M memory_write_bytes taskset -c 1 ./where
between "bytes that the core wrote" "$(place 0 '' memory_write_bytes)" $((3 << 20)) $((12 << 20))
into said knc-metrics -a --per-thread -f csv -o "$tmp/csv" --perf 'env perf' \
	-M l1_l2_bytes taskset -c 1 ./where
between "bytes of the thread" "$(place 0 1 l1_l2_bytes)" $((misses * 64)) \
	$((misses * 64 * 135 / 100))
between "bytes of another" "$(place 0 2 l1_l2_bytes)" 0 $((misses * 64 / 10))
ok
