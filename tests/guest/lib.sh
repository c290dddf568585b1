# SPDX-License-Identifier: GPL-2.0-only
# What the test scripts share; read with ".", in the guest.
# shellcheck shell=sh disable=SC2034

name=$1
tmp=/tmp/$name
rm -rf "$tmp"
mkdir "$tmp"

fail()
{
	echo "FAIL $name $*"
	exit 1
}

skip()
{
	echo "skip $name $*"
	exit 0
}

ok()
{
	echo "ok $name"
	exit 0
}

# As gt finds it
if [ -e /sys/bus/event_source/devices/knc/type ]; then
	pmu=knc
else
	pmu=cpu
fi
