#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# With dynamic debug the kernel's log has the reason for each refusal, and perf prints what
# the documentation's table says.
. ./lib.sh
symbols_once

control=/sys/kernel/debug/dynamic_debug/control
[ -e $control ] || skip "this kernel has no dynamic debug"

# says LINES COMMAND...: what perf prints, held against a regular expression
says()
{
	_want=$1
	shift
	"$@" >"$tmp/out" 2>&1
	grep -qE -- "$_want" "$tmp/out" ||
		fail "$*: not \"$_want\" but: $(grep . "$tmp/out" | head -n 3)"
}

# The log since "mark"
n=0
mark()
{
	n=$((n + 1))
	echo "$name $n" >/dev/kmsg
}

since_mark()
{
	dmesg | sed "1,/$name $n\$/d"
}

# refused REASON LINES COMMAND...
refused()
{
	_reason=$1
	shift
	mark
	says "$@"
	shift
	since_mark | grep -qF "knc_pmu: event refused: $_reason" ||
		fail "$*: the log has no \"$_reason\": $(since_mark | tail -n 2)"
}

# Without dynamic debug the log has no reason.
mark
says '<not supported> +bus-cycles' perf stat -e bus-cycles true
since_mark | grep -q 'event refused' && fail "a reason, though dynamic debug is off"

echo 'format "event refused" +p' >$control || fail "$control: $(cat $control | wc -l) lines"
no='<not supported> +'
refused "generic event without counterpart" "${no}bus-cycles" perf stat -e bus-cycles true
refused "cache event without counterpart" "${no}LLC-stores" perf stat -e LLC-stores true
refused "reserved bits in config" "${no}r80016" perf stat -e r80016 true
refused "unknown bits in config1" "${no}cpu/config1=2,event=0x16/" \
	perf stat -e cpu/config1=2,event=0x16/ true
refused "its group does not fit the counters" "${no}branches" \
	perf stat -e '{cycles,instructions,branches}' true
refused "its group does not fit the counters" \
	"Invalid event .cpu/l2_write_hit/. in per-thread mode" \
	perf record -o "$tmp/d" -e '{cpu/l2_read_miss/,cpu/l2_write_hit/}' true
refused "no precise samples" "cycles:p: PMU Hardware doesn't support sampling" \
	perf record -o "$tmp/d" -e cycles:p true
refused "no branch records" "PMU Hardware or event type doesn't support branch stack" \
	perf record -o "$tmp/d" -b true
refused "no guests to count" "${no}cycles:G" perf stat -e cycles:G true
refused "thread count mode needs privilege" "Access to performance monitoring .* is limited" \
	su user -c "perf stat -e cpu/instructions_executed,any/u true"
echo 'format "event refused" -p' >$control

# perf or perf core refuse these.
cpu=/sys/devices/system/cpu/cpu3/online
echo 0 >$cpu
says "No such device - did you specify an out-of-range profile CPU" \
	perf stat -e cycles -C 1,3 true
echo 1 >$cpu
says "unknown term 'nosuch' for pmu 'cpu'" perf stat -e cpu/nosuch/ true
says "value too big for format( .event.)?, maximum is 255" perf stat -e cpu/event=0x116/ true
says "bits 32 of config .* not supported by kernel" perf stat -e cpu/config=0x100000016/ true
says "Access to performance monitoring .* is limited" su user -c "perf stat -a true"
says "Access to performance monitoring .* is limited" \
	su user -c "perf stat -e instructions:k true"
ok
