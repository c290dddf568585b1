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

# into FILE COMMAND... - what it prints goes to $tmp/FILE, its messages to $tmp/said,
# which may be the same, and it must not fail
into()
{
	_file=$tmp/$1
	shift
	rm -f "$_file" "$tmp/said"
	"$@" >>"$_file" 2>>"$tmp/said" ||
		fail "$*: status $?: $(cat "$_file" "$tmp/said" | tail -n 2)"
}

# has FILE PATTERN - a line of $tmp/FILE matches this extended regular expression
has()
{
	grep -qE -- "$2" "$tmp/$1" ||
		fail "$1 has no \"$2\": $(grep . "$tmp/$1" | head -n 3)"
}

# column NAME TABLE... - its values in tables of data/
column()
{
	_column=$1
	shift
	awk -F, -v name="$_column" '
		FNR == 1 { for (i = 1; i <= NF; i++) if ($i == name) n = i; next }
		{ print $n }' "$@"
}

# cell COLUMN NAME=VALUE[,...] - of the first row of knc-metrics' $tmp/csv that has these
cell()
{
	awk -F, -v column="$1" -v row="$2" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; n = split(row, want, /[,=]/); next }
		{
			for (i = 1; i < n && $at[want[i]] == want[i + 1]; i += 2)
				;
			if (i > n) { print $at[column]; exit }
		}' "$tmp/csv"
}

# count EVENT - what perf stat has counted of it: columns 3 and 1 of $tmp/csv
count()
{
	awk -F, -v name="$1" '$3 == name { print $1 }' "$tmp/csv"
}

# start_of EVENT - set $start to its count for a program that does nothing: the C library decides
start_of()
{
	into said perf stat -x, -o "$tmp/csv" -e "$1" ./gt --spin20 1
	start=$(count "$1")
}

# perf record reads the kernel's symbols three times, and the kernel takes long to write them. From
# here on perf reads a copy of the global ones, so that the test must not load a module.
symbols_once()
{
	# One for all tests of the boot: the driver's own symbols may be old.
	[ -s /tmp/kallsyms ] || grep -F ' T ' /proc/kallsyms >/tmp/kallsyms
	mount --bind /tmp/kallsyms /proc/kallsyms || fail "no copy of kallsyms"
	trap 'umount /proc/kallsyms' EXIT
}

# As gt finds it
if [ -e /sys/bus/event_source/devices/knc/type ]; then
	pmu=knc
else
	pmu=cpu
fi
