#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Counting and sampling by libpfm4's names: in a program, and in a perf that has them
. ./lib.sh

into said ./pfm count
into said ./pfm sample

# 0x100000 rounds of 20 instructions
into said perf stat -x, -o "$tmp/csv" --pfm-events knc::INSTRUCTIONS_EXECUTED:u \
	./gt --spin20 100000
between --pfm-events "$(awk -F, '/INSTRUCTIONS_EXECUTED/ { print $1 }' "$tmp/csv")" \
	20971520 21171520
ok
