#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf with a PMU that is called knc, next to the kernel's own
. ./lib.sh

[ $pmu = knc ] || skip "the PMU is called $pmu here"
perf stat -x, -o "$tmp/csv" -e knc/instructions_executed/u -e knc/event=0x12/u \
	./gt --spin20 f4240 || fail "perf stat: $(tail -n 2 "$tmp/csv")"
insns=$(awk -F, '$3 == "knc/instructions_executed/u" { print $1 }' "$tmp/csv")
branches=$(awk -F, '$3 == "knc/event=0x12/u" { print $1 }' "$tmp/csv")
[ "${insns:-0}" -ge 20000000 ] && [ "$insns" -le 20300000 ] || fail "instructions: $insns"
[ "${branches:-0}" -ge 1000000 ] && [ "$branches" -le 1050000 ] || fail "branches: $branches"

perf record -q -o "$tmp/data" -e knc/instructions_executed,period=100000/u -- \
	./gt --spin20 f4240 >"$tmp/said" 2>&1 || fail "perf record: $(tail -n 2 "$tmp/said")"
n=$(perf script -i "$tmp/data" -F ip,sym 2>/dev/null | grep -c spin20)
[ "$n" -ge 199 ] && [ "$n" -le 201 ] || fail "perf record: $n samples, want 200"
ok
