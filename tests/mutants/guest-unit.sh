#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# guest-unit.sh NAME... - in the guest: load one KUnit module after the other, and
# tell what each has put into the kernel's log. None is unloaded: one that has
# failed may be in use. One that has crashed has no end, and the next is loaded.
cd /mutants || exit 1
dmesg -n 1
# Else the boot would end.
echo 0 >/proc/sys/kernel/panic_on_oops
for name; do
	dmesg -c >/dev/null
	echo "@begin $name"
	insmod "$name.ko" >/tmp/insmod 2>&1 &
	pid=$! left=450
	while [ $left -gt 0 ] && kill -0 $pid 2>/dev/null; do
		sleep 0.2
		left=$((left - 1))
		# The case is no more, and KUnit would wait for it for minutes.
		[ $((left % 5)) -ne 0 ] || ! dmesg | grep -q 'Oops:' || continue 2
	done
	# A case that does not come to its end: nothing can be done here any more.
	[ $left -gt 0 ] || exit 1
	wait $pid
	echo "insmod $?"
	dmesg -c
	echo "@end $name"
done
