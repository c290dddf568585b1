# SPDX-License-Identifier: GPL-2.0-only
#
# Fuzzers from elsewhere, as an unprivileged user, beside a loop that is counted. Read with
# "." by the tests of each program.
# shellcheck shell=sh disable=SC2154
seconds=${TEST_FUZZ_SECONDS:-6}
there=/strangers
[ -d $there ] || skip "the programs are not here"

# strangers PROGRAM ARG... - for that long, and a little longer than the loop
strangers()
{
	_program=$1
	shift
	echo 0 >/proc/sys/kernel/perf_event_paranoid
	mkdir -p /tmp/user
	chown user /tmp/user
	busybox su -s /bin/sh user -c "cd /tmp/user && exec env \
LD_LIBRARY_PATH=$there/lib/x86_64-linux-gnu timeout $((seconds + 5)) \
$there/lib64/ld-linux-x86-64.so.2 $there/usr/bin/$_program $*" >"$tmp/out" 2>&1 &
	_pid=$!
	sleep 2
	kill -0 $_pid 2>/dev/null || fail "$_program has ended: $(tail -n 2 "$tmp/out")"
	TEST_FUZZ_SECONDS=$seconds ./gt witness >"$tmp/witness" 2>&1
	kill -0 $_pid 2>/dev/null || fail "$_program has ended: $(tail -n 2 "$tmp/out")"
	# Its children may hold events: kill them.
	wait $_pid
	_left=50
	while busybox pkill -9 -u user 2>/dev/null && [ $_left -gt 0 ]; do
		_left=$((_left - 1))
		sleep 0.1
	done
	echo 2 >/proc/sys/kernel/perf_event_paranoid
	grep '^#' "$tmp/witness"
	grep -q '^ok witness ' "$tmp/witness" ||
		fail "beside $_program: $(grep -E '^(FAIL|skip)' "$tmp/witness")"
}
