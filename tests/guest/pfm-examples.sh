#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# libpfm4's own examples: a program is counted, a CPU, and the example itself, and 20
# notifications of it come
. ./lib.sh

# 1000000 rounds of 20 instructions, the last of which is a branch
into said ./examples/task -e instructions:u,branches:u ./gt --spin20 f4240
value()
{
	sed -n "s/^ *\([0-9]*\) $1 (0.00% scaling.*/\1/p" "$tmp/said"
}
between "task: instructions:u" "$(value instructions:u)" 20000000 20300000
between "task: branches:u" "$(value branches:u)" 1000000 1050000

into said ./examples/syst -c 1 -d 2 -e instructions
[ "$(grep -cE '^CPU1 val=[1-9][0-9]* .* ratio=1.00 instructions$' "$tmp/said")" -eq 2 ] ||
	fail "syst: $(tail -n 1 "$tmp/said")"

# It waits in a loop for its alarm, for ten seconds.
into said ./examples/self instructions:u branches:u
[ "$(grep -cE '^INITIAL: +[0-9]{1,3} ' "$tmp/said")" -eq 2 ] || fail "self: $(head -n 1 "$tmp/said")"
[ "$(grep -cE '^FINAL: +[1-9][0-9]{5,} .*\(0.00% scaling' "$tmp/said")" -eq 2 ] ||
	fail "self: $(tail -n 2 "$tmp/said")"

into said timeout 120 ./examples/notify_self
[ "$(grep -c '^Notification:' "$tmp/said")" -eq 20 ] ||
	fail "notify_self: $(grep -c '^Notification:' "$tmp/said") of 20"
ok
