#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# guest.sh BOOT TEST... - runs each test in the guest, and checks the machine at the end.
# A test is a function of the program gt, or a script; it prints "ok", "FAIL" or "skip".
#
# Environment: TEST_PREFIX, which goes before the names of the tests; TEST_SCALE
# and TEST_PMIS (see lib.h); TEST_DRIVER: "module", or "builtin" where there is
# nothing to load.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
cd /tests || exit 1
boot=$1
shift

# The driver is loaded for each test, except those that load it themselves.
load_driver()
{
	[ "$TEST_DRIVER" = module ] || return 0
	grep -q '^knc_pmu ' /proc/modules || insmod modules/knc_pmu.ko
}

# Tests may leave CPUs offline: bring them back. If one does not come back the kernel is
# stuck, and the boot ends.
all_online()
{
	for c in /sys/devices/system/cpu/cpu[1-9]*/online; do
		[ ! -e "$c" ] || [ "$(cat "$c")" = 1 ] || echo 1 >"$c"
	done &
	_left=300
	while kill -0 $! 2>/dev/null; do
		if [ $_left -eq 0 ]; then
			echo "FAIL boot-$boot the CPUs do not come back"
			sleep 1
			echo b >/proc/sysrq-trigger
		fi
		_left=$((_left - 1))
		sleep 0.1
	done
}

# KCSAN delays the driver at random, for thousands of instructions: not in tests that count
# the kernel's instructions, or need an overflow at the same one twice.
kcsan()
{
	[ ! -e /sys/kernel/debug/kcsan ] || echo "$1" >/sys/kernel/debug/kcsan
}

run_one()
{
	case $1 in
	load-fails | reset-state | modprobe | wrong-cpu | load-beside) ;;
	*) load_driver || { echo "FAIL $1 the driver does not load"; return; } ;;
	esac
	case $1 in
	count-kernel | count-rings | race-nmi-waits) kcsan off ;;
	esac
	if [ -e "$1.sh" ]; then
		sh "./$1.sh" "$1"
	else
		./gt "$1"
	fi
	kcsan on
}

helpers='msr knc_test_loop'
# These tests send NMIs that have no handler.
[ "$boot" != races ] || helpers="$helpers knc_test_nmi"
for m in $helpers; do
	[ ! -e "modules/$m.ko" ] || insmod "modules/$m.ko"
done
for name; do
	echo "# begin $name at $(cut -d' ' -f1 /proc/uptime)"
	run_one "$name" >/tmp/out 2>&1
	sed "s/^\(ok\|FAIL\|skip\) $name\( \|\$\)/\1 $TEST_PREFIX$name\2/" /tmp/out
	grep -qE "^(ok|FAIL|skip) $name( |\$)" /tmp/out ||
		echo "FAIL $TEST_PREFIX$name said nothing"
	all_online
done

# the lockup that a test has caused
[ "$boot" != watchdog ] || export TEST_LOG_OK='Call Trace:$'
echo "# begin boot-$boot at $(cut -d' ' -f1 /proc/uptime)"
sh ./boot.sh "boot-$boot"
sh ./gcov.sh
exit 0
