#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The example of Documentation/examples under perf: the measured phase, no more
. ./lib.sh
symbols_once

[ $pmu = cpu ] || skip "the PMU is called $pmu here"
into said perf stat -x ';' -o "$tmp/csv" -e cpu/instructions_executed,spflt/u -e instructions:u \
	./matmul
has said '^trace [1-9][0-9]*$'
region=$(awk -F';' '$3 ~ /spflt/ { print $1 }' "$tmp/csv")
all=$(awk -F';' '$3 == "instructions:u" { print $1 }' "$tmp/csv")
case "$region$all" in
'' | *[!0-9]*) fail "perf stat: $(tail -n 2 "$tmp/csv")" ;;
esac
# 216 products of blocks, 16 * 16 * 16 multiplications each
least=$((216 * 16 * 16 * 16))
[ "$region" -ge "$least" ] || fail "the phase has $region instructions, not even $least"
[ "$region" -lt "$all" ] || fail "the phase has $region of $all instructions"
[ $((all - region)) -ge 50000 ] || fail "all but the phase is $((all - region)) instructions"

into said perf record -q --per-thread -c 10007 -o "$tmp/data" \
	-e cpu/instructions_executed,spflt/u -- ./matmul
into script perf script -i "$tmp/data" -F ip,sym
n=$(grep -c . "$tmp/script")
[ "$n" -ge $((region / 10007 - 1)) ] || fail "$n samples, want $((region / 10007))"
# main() has the two SPFLT, and what leads from the one to the call
elsewhere=$(grep -vE '\<(multiply|main)$' "$tmp/script")
[ -z "$elsewhere" ] || fail "samples are elsewhere: $(echo "$elsewhere" | head -n 3)"
inside=$(grep -cE '\<multiply$' "$tmp/script")
[ "$inside" -ge $((n * 95 / 100)) ] || fail "$inside of $n samples are in the phase itself"
ok
