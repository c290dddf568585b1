#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# knc-metrics on the card: as perf stat -M has it, of a program and attached
. ./lib.sh

# Attached by turns to a program that goes on
./gt --spin20 4000000000000 &
pid=$!
knc-metrics -u -f csv -o "$tmp/csv" -M cpi_thread,branch -t 0.3 -p $pid 2>"$tmp/said"
status=$?
kill $pid
[ "$status" -eq 0 ] || fail "-p: $(tail -n 2 "$tmp/said")"
between "attached, cpi_thread" "$(cell value metric=cpi_thread)" 1.99 2.5
between "attached, mispredicted" "$(cell value metric=branch_mispredict_ratio)" 0 1

# Until it ends; then it is not there.
./gt --spin20 4000000000000 &
pid=$!
{ sleep 2; kill $pid; } &
into said knc-metrics -u -M cpi_thread,branch -t 100 -p "$pid"
has said "no process $pid any more: 1 of 2 turns"
knc-metrics -M ipc -p $pid 2>"$tmp/said" && fail "attached to no process"
has said "^knc-metrics: no process $pid\$"

# Two runs are alike, and what is told of both says so.
into said knc-metrics -u -r 2 -f csv -o "$tmp/csv" -M branch_mispredict_ratio,ipc \
	./gt --spin20 100000
between "least ipc" "$(cell min metric=ipc)" 0.45 0.501
between "most ipc" "$(cell max metric=ipc)" 0.45 0.501

# What the program prints stays what it is, and each run reads the same.
echo hello | knc-metrics -M tlb -o "$tmp/report" sh -c 'cat; printf "1%%\r2%%" >&2' \
	>"$tmp/out" 2>"$tmp/said" || fail "sh: $(cat "$tmp/said")"
[ "$(cat "$tmp/out")" = "$(printf 'hello\nhello\nhello')" ] || fail "$(cat "$tmp/out")"
[ "$(cat "$tmp/said")" = "$(printf '1%%\r2%%1%%\r2%%1%%\r2%%')" ] || fail "$(cat "$tmp/said")"
knc-metrics -M ipc sh -c 'kill -9 $$' 2>/dev/null
status=$?
[ "$status" -eq 137 ] || fail "a program that was killed: status $status"

# A program that is not there, also on what is as another machine
for perf in perf 'env perf'; do
	knc-metrics --perf "$perf" -M ipc ./nosuch 2>"$tmp/said" && fail "$perf ./nosuch: status 0"
	has said 'No such file'
done
ok
