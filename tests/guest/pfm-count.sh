#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Counting and sampling by libpfm4's names: in a program, and in a perf that has them
. ./lib.sh

./pfm count >"$tmp/said" 2>&1 || fail "count: $(tail -n 1 "$tmp/said")"
./pfm sample >"$tmp/said" 2>&1 || fail "sample: $(tail -n 1 "$tmp/said")"

# 0x100000 rounds of 20 instructions
perf stat -x, -o "$tmp/csv" --pfm-events knc::INSTRUCTIONS_EXECUTED:u \
	./gt --spin20 100000 || fail "--pfm-events: $(tail -n 2 "$tmp/csv")"
n=$(awk -F, '/INSTRUCTIONS_EXECUTED/ { print $1 }' "$tmp/csv")
case $n in
'' | *[!0-9]*) fail "--pfm-events: \"$n\": $(tail -n 1 "$tmp/csv")" ;;
esac
[ "$n" -ge 20971520 ] && [ "$n" -le 21171520 ] || fail "--pfm-events: $n, not 20971520"
ok
