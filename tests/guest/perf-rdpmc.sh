#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf's own test of RDPMC, where this perf has it
. ./lib.sh

number=$(perf test list 2>&1 | sed -n 's/^ *\([0-9]*\): .*rdpmc.*/\1/p' | head -n 1)
[ -n "$number" ] || skip "this perf has no test of rdpmc"
perf test -v "$number" >"$tmp/said" 2>&1 || fail "perf test $number: $(tail -n 3 "$tmp/said")"
grep -q ': Ok$' "$tmp/said" || {
	grep -q 'Skip' "$tmp/said" && skip "perf test: $(grep Skip "$tmp/said")"
	fail "perf test $number: $(tail -n 3 "$tmp/said")"
}
ok
