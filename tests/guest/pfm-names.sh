#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# libpfm4 knows the processor, and its names are the manual's events
. ./lib.sh

into names ./pfm names

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
ok
