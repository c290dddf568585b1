#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# A program with the vector unit's instructions, as this machine's compiler makes it and as a card's
# does: what it computes, and its counts, also where each instruction is begun again; and while it
# is sampled. The book's commands have vectors.c.
. ./lib.sh

# counted PROGRAM... - vector instructions and active elements, as it prints them
counted()
{
	into out perf stat -x, -o "$tmp/csv" -e vpu_instructions_executed:u,vpu_elements_active:u "$@"
	_got="$(count vpu_instructions_executed:u) $(count vpu_elements_active:u)"
	[ "$_got" = "$(cat "$tmp/out")" ] || fail "$*: counts $_got, not $(cat "$tmp/out")"
}

symbols_once
for machine in '' -card; do
	counted ./families$machine
	counted ./families$machine step
	right=$(cat "$tmp/out")
	for event in vpu_data_read vpu_data_write vpu_data_read_miss vpu_data_write_miss \
		     vpu_instructions_executed vpu_elements_active instructions; do
		into out perf record -o "$tmp/data" -c 101 -e $event:u ./families$machine
		[ "$(cat "$tmp/out")" = "$right" ] || fail "$event: $(cat "$tmp/out")"
		echo "# $(tail -n 1 "$tmp/said")"
	done
done
ok
