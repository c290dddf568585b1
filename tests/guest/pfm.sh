#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# libpfm4 knows the processor, its names are the manual's events, and a perf with them counts
. ./lib.sh

into names ./pfm
table=data/knc_events.csv
column name $table >"$tmp/column"
column umask $table | paste "$tmp/column" - >"$tmp/two"
column event $table | paste "$tmp/two" - | while read -r event umask code; do
	# 4 is PERF_TYPE_RAW
	printf '%s,4,0x%x\n' "$event" $((umask << 8 | code))
done | sort >"$tmp/want"
sort "$tmp/names" >"$tmp/got"
[ -s "$tmp/want" ] || fail "the table has no events"
cmp -s "$tmp/want" "$tmp/got" || fail "$(diff "$tmp/want" "$tmp/got" | head -n 4 | tr '\n' ' ')"

# 0x100000 rounds of 20 instructions
into said perf stat -x, -o "$tmp/csv" --pfm-events knc::INSTRUCTIONS_EXECUTED:u \
	./gt --spin20 100000
between --pfm-events "$(awk -F, '/INSTRUCTIONS_EXECUTED/ { print $1 }' "$tmp/csv")" \
	20971520 21171520
ok
