#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# papi_avail and papi_native_avail: the chip's 14 presets and the manual's events
. ./lib.sh

papi_avail -a >"$tmp/presets" 2>&1 || fail "papi_avail: $(tail -n 2 "$tmp/presets")"
grep -q '^Number Hardware Counters *: 2$' "$tmp/presets" ||
	fail "papi_avail: $(grep 'Number Hardware' "$tmp/presets")"
presets=$(grep -c '^PAPI_[A-Z0-9_]* *0x8' "$tmp/presets")
[ "$presets" -eq 14 ] || fail "papi_avail has $presets presets of 14"
for p in TOT_CYC TOT_INS BR_INS BR_MSP L1_DCM L1_DCA L1_ICM L1_ICA TLB_DM TLB_IM LD_INS \
	 SR_INS L2_LDM VEC_INS; do
	grep -q "^PAPI_$p " "$tmp/presets" || fail "papi_avail has no PAPI_$p"
done

# Where it sees tracepoints, PAPI lists them as well, a thousand of them, and takes
# minutes here.
umount /sys/kernel/tracing /sys/kernel/debug 2>/dev/null
papi_native_avail >"$tmp/native" 2>&1
status=$?
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
[ "$status" -eq 0 ] || fail "papi_native_avail: $(tail -n 2 "$tmp/native")"
column=$(head -n 1 data/knc_events.csv | tr , '\n' | grep -n '^name$' | cut -d: -f1)
n=0
for e in $(tail -n +2 data/knc_events.csv | cut -d, -f"$column"); do
	grep -qE "^\| (knc::)?$e( |\$)" "$tmp/native" || fail "papi_native_avail has no $e"
	n=$((n + 1))
done
[ "$n" -eq 59 ] || fail "the table has $n events"
ok
