#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# tools/card-check where the last CPU has an idle driver like the cards' own
# shellcheck source=../guest/lib.sh
. ./lib.sh

sh ./card-check >"$tmp/said" 2>&1 || fail "status $?"
for want in '== kernel' '== processor' GenuineIntel 'threads: 8' \
	'cpu0/topology/thread_siblings_list: 0-3' 'current_driver: knc_test_idle' '== driver' \
	'knc_pmu ' 'knc/type: 4' 'RAS: not loaded' \
	'all modules: knc_pmu knc_test_idle knc_test_loop' '== before the self-test' \
	'registered as "knc"' 'cpu 7: CC6: ' '== self-test' \
	'^ok cpu 0: instructions: counted 2000000, want 2000000' \
	'^ok cpu 4: branches, of two, with sleeps: counted 1000000, want 1000000' \
	'^ok cpu 7: samples, with sleeps: got 200, want 200' \
	'^ok cpu 7: samples of the CPU, with sleeps: got ' \
	'^self-test: all is as it should be' '^status 0' '== after the self-test' '== end'; do
	has said "$want"
done
! grep 'not found' "$tmp/said" || fail "a program is not there"
[ "$(cat /sys/module/knc_test_idle/parameters/lost)" -gt 0 ] ||
	fail "no overflow as a CPU wakes"
ok
