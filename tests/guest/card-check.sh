#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# tools/card-check on the card: each section is there, and the self-test passes. Where something
# else uses the counters the self-test is not done, and what was there counts on.
. ./lib.sh

# check DIR - with the self-test that is in DIR
check()
{
	(cd "$1" && sh /tests/card-check) >"$tmp/said" 2>&1 || fail "status $?"
	! grep 'not found' "$tmp/said" || fail "a program is not there"
}

# said PATTERN... - in lines
said()
{
	for want; do
		grep -qE -- "$want" "$tmp/said" || {
			sed 's/^/# /' "$tmp/said"
			fail "without: $want"
		}
	done
}

# hide FILE CONTENT... - put this in its place
hide()
{
	_file=$1
	shift
	printf '%s\n' "$@" >"$tmp/hidden"
	mount --bind "$tmp/hidden" "$_file" || fail "mount: status $?"
}

check .
said '== kernel' '^CONFIG_KALLSYMS=y|config.gz: not there' 'vendor_id.*GenuineIntel' \
	"threads: $(nproc)" 'cpu0/topology/thread_siblings_list: 0-3' 'cpuidle/current_driver: ' \
	'== driver' ': 7 formats, [1-9][0-9]* events' '^RAS: not loaded' '^oprofile: not loaded' \
	"^VTune's drivers: not loaded" '^all modules: .*knc_test_loop' '== before the self-test' \
	'cpu0/cpuidle/state|cpu 0: POLL' 'pc6_entered_count: not there' '^ *PMI: ' \
	'== self-test' '^status 0' '== after the self-test' '== end'
for part in '== before/,/== self-test' '== after/,/== end'; do
	sed -n "/^$part/p" "$tmp/said" >"$tmp/part"
	for want in '^ *PMI: ' 'pc6_entered_count: ' 'registered as "|Performance Events: knc '; do
		has part "$want"
	done
done
# CPU 0, and the threads of the core of the last CPU
last=$(($(nproc) - 1))
for cpu in 0 $((last - 3)) $((last - 2)) $((last - 1)) "$last"; do
	for how in ', of two' ', of two, with sleeps'; do
		said "^ok cpu $cpu: instructions$how: counted 2000000, want 2000000" \
			"^ok cpu $cpu: branches$how: counted 1000000, want 1000000"
	done
	said "^ok cpu $cpu: instructions: counted 2000000" \
		"^ok cpu $cpu: generic instructions: counted 2000000" \
		"^ok cpu $cpu: samples: got 200, want 200" \
		"^ok cpu $cpu: samples, with sleeps: got 200, want 200" \
		"^ok cpu $cpu: cycles of the CPU, with sleeps" \
		"^ok cpu $cpu: samples of the CPU, with sleeps: got [1-9]" \
		"^ok cpu $cpu: instructions of the CPU, with sleeps"
done
[ "$(grep -c '^ok cpu ' "$tmp/said")" -eq 55 ] || fail "other checks than these"
said '^self-test: all is as it should be'

# A self-test that has two seconds
mkdir "$tmp/short"
cp selftest-short "$tmp/short/selftest"
check "$tmp/short"
said '^ok cpu 0: instructions, of two:' '^self-test: FAILED: it has not ended in time' \
	'^status 1' '== end'

# Modules that would use the counters
for module in sep3_15 vtsspp oprofile; do
	hide /proc/modules "$module 1 0 - Live 0x0" "knc_pmu 1 0 - Live 0x0"
	check .
	umount /proc/modules
	said "^self-test: not done: .*loaded: $module" '^status 2' '== end'
	! grep -q '^ok' "$tmp/said" || fail "it has counted beside $module"
done

ok
