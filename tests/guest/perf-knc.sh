#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf with a PMU that is called knc, next to the kernel's own
. ./lib.sh

[ $pmu = knc ] || skip "the PMU is called $pmu here"
# Whoever loads it is told what the generic events are here, and what to type.
dmesg | grep -q 'knc_pmu: .*counts them wrongly: use knc/cpu-cycles/, knc/instructions/' ||
	fail "loading does not say that generic events are another driver's"
dmesg | grep -q 'knc_pmu: .*or boot with initcall_blacklist=init_hw_perf_events' ||
	fail "loading does not say how they could be right"
# It is as it says: of two events of that driver's one has no counter, and is 0.
perf stat -x, -o "$tmp/csv" -e instructions,branches ./gt --spin20 f4240
[ "$(awk -F, '$3 == "instructions" || $3 == "branches" { n += $1 == 0 } END { print n }' \
	"$tmp/csv")" -ge 1 ] || fail "the kernel's own driver counts both: $(cat "$tmp/csv")"
# What the documentation says to type in their place
perf list knc >"$tmp/list" 2>&1 || fail "perf list knc: $(tail -n 1 "$tmp/list")"
for e in instructions branch-instructions l2_read_miss; do
	grep -q "^ *knc/$e/ " "$tmp/list" || fail "perf list knc has no knc/$e/"
done
grep -q cpu/ "$tmp/list" && fail "perf list knc has another PMU's events"
perf stat -x, -o "$tmp/csv" -e knc/instructions/,knc/branch-instructions/ \
	./gt --spin20 f4240 || fail "perf stat: $(tail -n 2 "$tmp/csv")"
[ "$(awk -F, '$3 == "knc/instructions/" && $1 >= 20000000 ||
	$3 == "knc/branch-instructions/" && $1 >= 1000000' "$tmp/csv" | grep -c .)" -eq 2 ] ||
	fail "by their names: $(cat "$tmp/csv")"
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
