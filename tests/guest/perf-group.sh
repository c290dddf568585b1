#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# A group of which the leader samples and all are read: {cpu-clock,...}:S
. ./lib.sh
symbols_once
data=$tmp/data

into said perf record -q -o "$data" -e '{cpu-clock,cycles,instructions}:S' -- \
	./gt --spin20 1000000
into script perf script -i "$data" -F event,period,sym

# lines EVENT - each sample of the leader has one of each event, with what it grew by
lines()
{
	grep -c " $1:" "$tmp/script"
}
for e in cpu-clock cycles instructions; do
	[ "$(lines $e)" -ge 50 ] || fail "$(lines $e) lines of $e: $(head -n 3 "$tmp/script")"
done
[ "$(lines cycles)" -eq "$(lines instructions)" ] ||
	fail "$(lines cycles) of cycles, $(lines instructions) of instructions"

# 0x1000000 iterations of 20 instructions, less those after the last sample, and more by
# the kernel's for the samples, which are many in a kernel that checks itself
most=12
[ "${TEST_SCALE:-1}" -eq 1 ] || most=20
total=$(awk '$2 ~ /^instructions/ { sum += $1 } END { printf "%d", sum }' "$tmp/script")
want=$((0x1000000 * 20))
[ "$total" -ge $((want * 9 / 10)) ] && [ "$total" -le $((want * most / 10)) ] ||
	fail "instructions add up to $total of $want"
zero=$(awk '$1 == 0 && $2 ~ /^(instructions|cycles)/' "$tmp/script" | grep -c .)
[ "$zero" -le $(($(lines cycles) / 20)) ] || fail "$zero samples in which nothing was counted"

# the same with a leader of our own
into said perf record -q -o "$data" -c 1000000 -e '{instructions:u,branches:u}:S' -- \
	./gt --spin20 f4240
into script perf script -i "$data" -F event,period
total=$(awk '$2 ~ /^branches/ { sum += $1 } END { printf "%d", sum }' "$tmp/script")
[ "$total" -ge 900000 ] && [ "$total" -le 1100000 ] || fail "branches add up to $total"
ok
