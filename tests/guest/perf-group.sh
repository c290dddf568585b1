#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# A group whose leader alone samples, and all are read: {cpu-clock,...}:S
#
# n_cycles and its like are set through eval.
# shellcheck disable=SC2154
. ./lib.sh
data=$tmp/data

perf record -q -o "$data" -e '{cpu-clock,cycles,instructions}:S' -- \
	./gt --spin20 3000000 >"$tmp/said" 2>&1 || fail "perf record: $(tail -n 2 "$tmp/said")"
perf script -i "$data" -F event,period,sym >"$tmp/script" 2>"$tmp/said" ||
	fail "perf script: $(tail -n 2 "$tmp/said")"

# For each sample of the leader a line for each event, with what it grew by
for e in cpu-clock cycles instructions; do
	n=$(grep -c " $e:" "$tmp/script")
	eval "n_$(echo $e | tr - _)=$n"
	[ "$n" -ge 50 ] || fail "$n lines of $e: $(head -n 3 "$tmp/script")"
done
[ "$n_cycles" -eq "$n_instructions" ] || fail "$n_cycles of cycles, $n_instructions of instructions"

# 0x3000000 iterations of 20 instructions, but for what came after the last sample, and
# what the kernel executed for the samples, which is much where it checks itself
most=12
[ "${TEST_SCALE:-1}" -eq 1 ] || most=20
total=$(awk '$2 ~ /^instructions/ { sum += $1 } END { printf "%d", sum }' "$tmp/script")
want=$((0x3000000 * 20))
[ "$total" -ge $((want * 9 / 10)) ] && [ "$total" -le $((want * most / 10)) ] ||
	fail "instructions add up to $total of $want"
zero=$(awk '$1 == 0 && $2 ~ /^(instructions|cycles)/' "$tmp/script" | grep -c .)
[ "$zero" -le $((n_cycles / 20)) ] || fail "$zero samples in which nothing was counted"

# the same with a leader of our own
perf record -q -o "$data" -c 1000000 -e '{instructions:u,branches:u}:S' -- \
	./gt --spin20 f4240 >"$tmp/said" 2>&1 || fail "perf record: $(tail -n 2 "$tmp/said")"
perf script -i "$data" -F event,period >"$tmp/script" 2>/dev/null
total=$(awk '$2 ~ /^branches/ { sum += $1 } END { printf "%d", sum }' "$tmp/script")
[ "$total" -ge 900000 ] && [ "$total" -le 1100000 ] || fail "branches add up to $total"
ok
