#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# guest-module.sh - in the guest: for each line of the plan (a fault, and tests)
# the tests with the sound driver, then with the faulty one. If the sound one
# fails, whatever was here before has left the machine dirty; if a driver cannot
# be unloaded, nothing more can be told here. Both end this boot.
cd /tests || exit 1

unload()
{
	_left=20
	while grep -q '^knc_pmu ' /proc/modules; do
		rmmod knc_pmu 2>/dev/null && return 0
		_left=$((_left - 1))
		[ $_left -gt 0 ] || return 1
		sleep 0.1
	done
}

# one DRIVER TITLE TEST... - leaves what the tests said in /tmp/told
one()
{
	_driver=$1 _title=$2
	shift 2
	unload || exit 1
	cp "mutants/$_driver.ko" modules/knc_pmu.ko
	dmesg -c >/dev/null
	echo "@begin $_title"
	TEST_DRIVER=module ./run mutant "$@" >/tmp/told 2>&1
	dmesg | grep -E "$splats" | sed 's/^/FAIL boot-mutant /' >>/tmp/told
	unload || echo "FAIL boot the driver cannot be unloaded"
	cat /tmp/told
	echo "@end $_title"
}

splats='BUG|WARNING|Oops|INFO: [^N]|Uhhuh|unknown NMI|Dazed|unchecked MSR|irq loop stuck'
dmesg -n 1
while read -r fault tests; do
	# shellcheck disable=SC2086
	one sound0 "sound0 $fault" $tests
	! grep -q '^FAIL' /tmp/told || exit 1
	# shellcheck disable=SC2086
	one "$fault" "fault $fault" $tests
done <plan
