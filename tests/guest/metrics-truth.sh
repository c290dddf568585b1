#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Every metric of a program of which all is known, as perf prints it, with its unit, as
# knc-metrics prints it, and by hand
. ./lib.sh
[ "$pmu" = cpu ] || skip "perf's tables are for a PMU called cpu"

# true_counts PROGRAM... - instructions, cycles and branches of ring 3, by the emulator,
# which counts them only on threads whose PMU counts
true_counts()
{
	perf stat -a -e instructions:u -o /dev/null \
		sh -c './gt --true; "$@"; ./gt --true' true_counts "$@" |
		awk 'NR == 1 { i = $1; c = $2; b = $3 } END { print $1 - i, $2 - c, $3 - b }'
}

# printed METRIC FILE - its value and unit, out of a report of knc-metrics
printed()
{
	awk -v m="$1" '$1 == m { gsub(/[~,]/, ""); print $2, $3 }' "$2"
}

# agree METRIC UNIT VALUE PERCENT [PROGRAM...] - what knc-metrics has printed of it, into
# $ours, and what perf prints of the program, if it has the metric
agree()
{
	_m=$1 _unit=$2 _value=$3 _margin=$4
	shift 4
	printed $_m "$ours" >"$tmp/value"
	read -r _got _its <"$tmp/value"
	[ "$_its" = "$_unit" ] || fail "knc-metrics: $_m is in \"$_its\", not \"$_unit\""
	near "knc-metrics: $_m" "$_got" "$_value" "$_margin" 0.001
	[ $# -gt 0 ] || return 0
	perf stat -o "$tmp/stat" -M $_m:u "$@" || fail "perf stat -M $_m"
	sed -n "s/.*# *\([-0-9.]*\) \(.*\)$_m:u.*/\1 \2/p" "$tmp/stat" >"$tmp/value"
	read -r _got _its <"$tmp/value"
	[ "$_its" = "$_unit" ] || fail "perf: $_m is in \"$_its\", not \"$_unit\""
	near "perf: $_m" "$_got" "$_value" "$_margin" 0.05
}

# near WHAT VALUE WANTED PERCENT ROUNDING
near()
{
	# shellcheck disable=SC2046
	between "$1" "$2" $(awk -v w="$3" -v p="$4" -v r="$5" \
		'BEGIN { print w * (1 - p / 100) - r, w * (1 + p / 100) + r }')
}

reads=2000000
ours=$tmp/true
into said knc-metrics -u -o "$ours" ./walk 64
read -r insns cycles branches <<-EOT
	$(true_counts ./walk 64)
EOT
between "true instructions" "$insns" $((5 * reads)) $((5 * reads + 600000))
between "true branches" "$branches" $reads $((reads + 150000))

by_hand()
{
	awk -v i="$insns" -v c="$cycles" -v r=$reads "BEGIN { print $1 }"
}
agree cpi_thread '' "$(by_hand 'c / i')" 3 ./walk 64
agree cpi_core '' "$(by_hand 'c / i')" 3 ./walk 64
agree ipc '' "$(by_hand 'i / c')" 3 ./walk 64
# One thread of a core of 1 GHz, and what the program does not take in ring 3, a fifth
agree clock_rate GHz 0.82 8
agree l1_read_miss_ratio % 100 2 ./walk 64
# One page for 64 lines; the second level holds the table of these pages.
agree l1_tlb_miss_ratio % "$(by_hand '100 / 64')" 2 ./walk 64
agree l2_tlb_miss_ratio % 0 0 ./walk 64
# It is wrong when a loop ends, and in what begins and ends the program.
agree branch_mispredict_ratio % 0.1 100 ./walk 64
agree l1_l2_bytes Bytes "$(by_hand '64 * r')" 2 ./walk 64
agree latency_impact clocks "$(by_hand '(c - i - r) / r')" 5
# The half of the memory that the kernel has left modified in L2, of 512 KiB
agree memory_write_bytes Bytes 524288 40
# Each line comes from memory, except two of each page by the hardware prefetcher.
agree memory_read_bytes Bytes "$(by_hand '64 * r')" 2
agree hwp_bytes Bytes "$(by_hand '62 * r')" 2
# Its five events were counted in five runs, of about the same length.
printed clock_rate "$ours" >"$tmp/value"
read -r rate _ <"$tmp/value"
agree memory_bandwidth GB/s "$(by_hand "64 * r / (c / $rate)")" 10
agree memory_read_bandwidth GB/s "$(by_hand "64 * r / (c / $rate)")" 10
agree memory_write_bandwidth GB/s "$(by_hand "524288 / (c / $rate)")" 50

# The prefetcher's are no misses.
agree memory_read_bytes_by_l2 Bytes "$(by_hand '2 * r')" 2
agree vpu_share % 0 0 ./walk 64
agree l1_compute_to_data '' 0 0 ./walk 64
agree l2_compute_to_data '' 0 0 ./walk 64

# Of what the emulator has no model there is no number.
none=$(grep -c 'no value: the emulator has no model of' "$ours")
lacking=$(knc-metrics --list | grep -c 'the emulator has no model of')
[ "$none" -eq "$lacking" ] || fail "$none metrics without a model, not $lacking"
for m in $(knc-metrics --list | sed -n 's/^\([a-z]\w*\)  (.*/\1/p'); do
	grep -q "agree $m " "$0" || [ "$(printed $m "$ours" | cut -d' ' -f1)" = - ] ||
		fail "nobody has computed $m by hand"
done

knc-metrics -u -o "$ours" -M l1_write_miss_ratio,l1_l2_bytes ./walk 64 write
agree l1_write_miss_ratio % 100 2 ./walk 64 write
# Of two that write at the same time each thread counts the victims of its core, of which -a takes one
# thread's; not of two in turn.
both="taskset -c 1 ./walk 64 write & taskset -c 2 ./walk 64 write; wait"
knc-metrics -u -o "$ours" -M memory_write_bytes,memory_read_bytes,clock_rate sh -c "$both"
has true 'memory_write_bytes.* no value: .*two of a core ran at the same time in [0-9]{2,3} %'
# A mean of both, no sum
agree clock_rate GHz 0.82 8
agree memory_read_bytes Bytes "$(by_hand '2 * 64 * r')" 5
knc-metrics -u -a -o "$ours" -M memory_write_bytes sh -c "$both"
agree memory_write_bytes Bytes "$(by_hand '2 * 64 * r')" 5
has true 'is counted by one thread of each core'
knc-metrics -u -o "$ours" -M memory_write_bytes sh -c "./walk 64 write; ./walk 64 write"
agree memory_write_bytes Bytes "$(by_hand '2 * 64 * r')" 5
knc-metrics -u -o "$ours" -M l1_write_miss_ratio,l1_l2_bytes ./walk 64 write
# Each line comes, and goes back.
agree l1_l2_bytes Bytes "$(by_hand '2 * 64 * r')" 2 ./walk 64 write
# The prefetcher has no part in 32 lines, of which the L1 has room for 8.
knc-metrics -u -o "$ours" -M l1_misses_in_l2 ./walk 4096 rows
agree l1_misses_in_l2 % 100 1

# Of four instructions a vector load, of 16 floats, and an addition of 3 of them
knc-metrics -u -o "$ours" -M vectorization_intensity,vpu_share,l1_compute_to_data,vpu_read_miss_ratio ./vpu
agree vectorization_intensity '' 9.5 1 ./vpu
agree vpu_share % 50 2 ./vpu
agree l1_compute_to_data '' 19 2 ./vpu
agree vpu_read_miss_ratio % 0 0 ./vpu

# The table of pages is another one each time.
knc-metrics -u -o "$ours" -M tlb ./walk 2097152
agree l1_tlb_miss_ratio % 100 2 ./walk 2097152
agree l2_tlb_miss_ratio % 100 2 ./walk 2097152
agree l1_tlb_misses_per_l2_tlb_miss '' 1 2 ./walk 2097152
ok
