#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# knc-metrics --threads, of processes that only count: a core issues from one thread in every
# other cycle, from four in each
. ./lib.sh
cores=$(($(nproc) / 4))

into said knc-metrics --threads 1,4 -M cpi_core -o "$tmp/threads" \
	sh -c 'for i in $(seq {}); do ./gt --spin 1000000 & done; wait'
has threads "^Fastest: $cores threads?, 1 on each core$"
while read -r each all ran _ ipc cpi_core of_core _; do
	case $each/$all in
	"1/$cores") least=0.4 most=0.51 ;;
	"4/$((4 * cores))") least=0.2 most=0.27 ;;
	*) continue ;;
	esac
	between "$all threads, that ran" "$ran" "$(awk "BEGIN { print $all / 2 }")" "$all.1"
	between "$all threads, ipc" "$ipc" "$least" "$most"
	between "$all threads, ipc of a core" "$(awk "BEGIN { print $of_core * $cpi_core }")" 0.5 1.1
	echo "$all" >>"$tmp/seen"
done <"$tmp/threads"
[ "$(wc -l <"$tmp/seen")" -eq 2 ] || fail "numbers of threads: $(cat "$tmp/threads")"
ok
