# SPDX-License-Identifier: GPL-2.0-only
# What the test scripts share; read with ".", in the guest.
# shellcheck shell=sh disable=SC2034

# Not empty: what follows deletes /tmp/$name.
name=${1:?no name}
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

# between WHAT VALUE LEAST MOST - the value is a number, as awk may print it
# (1.49e-05, too), and from one to the other
between()
{
	awk -v v="$2" -v least="$3" -v most="$4" 'BEGIN {
		number = v ~ /^[-+]?[0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?$/
		exit !(number && v + 0 >= least && v + 0 <= most)
	}' || fail "$1 is \"$2\", not in $3..$4"
}

# As gt finds it
if [ -e /sys/bus/event_source/devices/knc/type ]; then
	pmu=knc
else
	pmu=cpu
fi
