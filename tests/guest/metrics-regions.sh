#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# knc-metrics --regions: of programs that are marked for likwid, in C and in Fortran
. ./lib.sh

# value REGION THREAD METRIC - out of the CSV
value()
{
	cell value "region=$1,thread=$2,metric=$3"
}

# counted REGION [WHICH] - of its first thread, in the file that the program has written
counted()
{
	awk -F'\t' -v region="$1" -v which="${2:-7}" '$1 == region { print $which; exit }' "$tmp"/file.*
}

# count_by_hand PROGRAM - reads and page walks of each region, in the file
count_by_hand()
{
	rm -f "$tmp"/file.*
	into said env KNC_REGIONS="reads=4:0:0:u,walks=4:2:u" KNC_REGIONS_FILE="$tmp/file" "$1"
	[ "$(tail -n 1 "$tmp"/file.*)" = '# end' ] || fail "$1: $(cat "$tmp"/file.* "$tmp/said")"
}

# 2 MiB are read side by side, and a number in each of its 512 pages 100 times. Loops have
# some reads more, by what calls them. The threads of a core share its TLB: while one still reads
# side by side, each 64 reads of another thread's second loop may take its page from it. With
# three others, of 51200 reads, these are up to 512 + 3 * 800 walks in 262144 reads.
for program in ./marked ./marked-fortran; do
	into said knc-metrics -u --regions --per-thread -f csv -o "$tmp/csv" \
		-M cpi_thread,ipc,l1_tlb_miss_ratio $program
	for thread in '' 0; do
		between "$program, side by side" "$(value 'side by side' "$thread" l1_tlb_miss_ratio)" \
			0.195 1.112
		between "$program, page by page" "$(value 'page by page' "$thread" l1_tlb_miss_ratio)" \
			99.9 100.2
		between "$program, ipc" "$(value 'side by side' "$thread" ipc)" 0.2 0.501
	done
	count_by_hand $program
	between "$program: reads" "$(counted 'side by side')" 262144 262160
	between "$program: reads of pages" "$(counted 'page by page')" 51200 51220
	between "$program: walks" "$(counted 'side by side' 8)" 512 2912
	between "$program: walks of pages" "$(counted 'page by page' 8)" 51200 51300
done
[ "$(grep -c '^page by page,,[0-3],' "$tmp/csv")" -eq 3 ] || fail "Fortran: $(cat "$tmp/csv")"

# The threads of a program, and the other formats
into said knc-metrics -u --regions --per-thread -o "$tmp/text" -M tlb,l1_hit_rate ./marked
has text '^page by page: 4 calls, 4 threads, 0\.00[0-9]+ seconds$'
has text '^ +3 +1 +0\.00[0-9]+ +(100(\.[0-2][0-9]*)?|99\.9[0-9]*) '
has text '^l1_tlb_miss_ratio +(100(\.[0-2][0-9]*)?|99\.9[0-9]*) %$'
has text 'no value: the emulator has no model of L1_DATA_HIT_INFLIGHT_PF1'
[ "$(grep -c '^thread  calls  .*l1_tlb_miss_ratio' "$tmp/text")" -eq 2 ] ||
	fail "not a table of threads for each of 2 regions"
[ "$(grep -c '^[0-9]* runs$' "$tmp/text")" -eq 1 ] || fail "$(head -n 3 "$tmp/text")"
into said knc-metrics -u --regions -f json -o "$tmp/json" --perf 'env perf' -M ipc ./calls 5
into out python3 -c 'import json, sys
region, = json.load(open(sys.argv[1]))["rows"]
print(region["region"], region["calls"], region["thread"], region["metrics"]["ipc"]["value"])' "$tmp/json"
has out '^call, or "two" 5 None 0\.(4[0-9]*|5)$'

into said knc-metrics -u --regions --first-call -o "$tmp/text" -M ipc ./calls 5
has text '^call, or "two", first call: 1 call, 1 thread'
has text '^call, or "two", later calls: 4 calls, 1 thread'

# Two processes are one program; and what is not there is told.
into said knc-metrics -u --regions -o "$tmp/text" -M ipc sh -c './calls 2 & ./calls 3; wait'
has text '^call, or "two": 5 calls, 2 threads'
level=$(cat /proc/sys/kernel/perf_event_paranoid)
echo 1 >/proc/sys/kernel/perf_event_paranoid
into said knc-metrics -u --regions -o "$tmp/text" -M ipc python3 -c 'import os
os.setuid(65534)
os.execv("./calls", ["calls", "2"])'
echo "$level" >/proc/sys/kernel/perf_event_paranoid
has text '^call, or "two": 2 calls'
# After one another, or side by side: the clock is the core's.
for twice in './calls 500; ./calls 500' './calls 500 & ./calls 500; wait'; do
	into said knc-metrics -u --regions -o "$tmp/text" -M clock_rate sh -c "$twice"
	between "clock of $twice" "$(awk '$1 == "clock_rate" { print $2 }' "$tmp/text")" 0.7 1.1
done
knc-metrics --regions -M ipc ./nosuch 2>"$tmp/said" && fail "no program: status 0"
has said 'nosuch.*No such file'
knc-metrics --regions -M ipc ./calls 1 3 >"$tmp/said" 2>&1
status=$?
[ $status -eq 3 ] || fail "a program with status 3: status $status: $(cat "$tmp/said")"

# Something else has a counter all the time.
perf stat -a -e cycles:D -o /dev/null sleep 60 &
pid=$!
sleep 0.5
knc-metrics --regions -M ipc ./calls 1 2>"$tmp/said"
status=$?
kill $pid
[ $status -eq 1 ] || fail "without a counter: status $status"
has said 'something else has the counters'
has said '^knc-metrics: 1 of 1 calls are not counted'
ls -d /tmp/knc-????????????????* 2>/dev/null && fail "files are left"
ok
