#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# bpftrace: samples of hardware:instructions, by program
. ./lib.sh

while :; do
	./gt --spin20 1000000
done &
pid=$!
timeout 200 bpftrace -e 'hardware:instructions:1000000 { @[comm] = count(); }
	interval:s:3 { exit(); }' >"$tmp/said" 2>&1
status=$?
kill $pid
[ "$status" -eq 0 ] || fail "status $status: $(tail -n 2 "$tmp/said")"
n=$(sed -n 's/^@\[gt\]: //p' "$tmp/said")
[ "${n:-0}" -ge 20 ] || fail "${n:-no} samples of gt: $(tail -n 3 "$tmp/said")"
ok
