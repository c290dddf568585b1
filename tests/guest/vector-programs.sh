#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Programs with the vector unit's instructions, as this machine's compiler makes them and as a
# card's does: what they compute, and its counts, also where each instruction is begun again; and
# while they are sampled
. ./lib.sh

# counted COUNTS PROGRAM... - vector instructions and active elements, as said or as it prints
counted()
{
	_want=$1
	shift
	into out perf stat -x, -o "$tmp/csv" -e vpu_instructions_executed:u,vpu_elements_active:u "$@"
	[ "$_want" ] || _want=$(cat "$tmp/out")
	_got="$(count vpu_instructions_executed:u) $(count vpu_elements_active:u)"
	[ "$_got" = "$_want" ] || fail "$*: counts $_got, not $_want"
}

symbols_once
for machine in '' -card; do
	counted '' ./families$machine
	counted '' ./families$machine step
	right=$(cat "$tmp/out")
	counted '4098 65568' ./vectors$machine vector
	has out '^sum 8355840$'
	counted '69635 622640' ./vectors$machine stride
	has out '^sum 8355840$'
	for event in vpu_data_read vpu_data_write vpu_data_read_miss vpu_data_write_miss \
		     vpu_instructions_executed vpu_elements_active instructions; do
		into out perf record -o "$tmp/data" -c 101 -e $event:u ./families$machine
		[ "$(cat "$tmp/out")" = "$right" ] || fail "$event: $(cat "$tmp/out")"
		echo "# $(tail -n 1 "$tmp/said")"
	done
done
ok
