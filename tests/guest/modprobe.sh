#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The kernel loads the driver for this processor, and the log says so.
. ./lib.sh

[ "$TEST_DRIVER" = module ] || skip "the driver is no module here"
alias=$(cat /sys/devices/system/cpu/modalias) || fail "the processor has no modalias"
extra=/lib/modules/$(uname -r)/extra
mkdir -p "$extra"
cp modules/knc_pmu.ko "$extra" && depmod || fail "depmod"
before=$(dmesg | grep -c 'knc_pmu: .*registered as')
modprobe "$alias" || fail "modprobe $alias"
grep -q '^knc_pmu ' /proc/modules || fail "modprobe $alias loads no knc_pmu"
[ "$(dmesg | grep -c 'knc_pmu: .*registered as')" -eq $((before + 1)) ] ||
	fail "loading says nothing in the log"
dmesg | grep -q 'knc_pmu: .*counts them wrongly' &&
	fail "warns of generic events, which are ours here"
if [ -e /sys/bus/event_source/devices/knc/type ]; then
	fail "where nothing else counts the PMU is called knc"
fi
[ "$(cat /sys/bus/event_source/devices/cpu/type)" = 4 ] ||
	fail "the PMU is not of type 4 (PERF_TYPE_RAW)"
ok
