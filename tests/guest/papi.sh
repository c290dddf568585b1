#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# PAPI and libpfm4: 14 presets, the manual's events, a program that counts and samples, perf
. ./lib.sh

into presets papi_avail -a
has presets '^Number Hardware Counters *: 2$'
presets=$(grep -c '^PAPI_[A-Z0-9_]* *0x8' "$tmp/presets")
[ "$presets" -eq 14 ] || fail "papi_avail has $presets presets of 14"
for p in TOT_CYC TOT_INS BR_INS BR_MSP L1_DCM L1_DCA L1_ICM L1_ICA TLB_DM TLB_IM LD_INS \
	 SR_INS L2_LDM VEC_INS; do
	has presets "^PAPI_$p "
done
into said ./papi
# 0x100000 rounds of 20 instructions
start_of instructions:u
into said perf stat -x, -o "$tmp/csv" --pfm-events knc::INSTRUCTIONS_EXECUTED:u \
	./gt --spin20 100000
between --pfm-events "$(awk -F, '/INSTRUCTIONS_EXECUTED/ { print $1 }' "$tmp/csv")" \
	$((20970520 + start)) $((20972520 + start))

# Where it sees tracepoints, PAPI lists them as well, a thousand of them, and takes
# minutes here.
umount /sys/kernel/tracing /sys/kernel/debug 2>/dev/null
trap 'mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
	mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null' EXIT
into native papi_native_avail
column name data/knc_events.csv >"$tmp/names"
[ -s "$tmp/names" ] || fail "the table has no events"
while read -r e; do
	has native "^\| (knc::)?$e( |\$)"
done <"$tmp/names"
ok
