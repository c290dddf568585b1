#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# likwid knows the chip, and counts with some options. It writes the registers itself, so the
# driver is not loaded yet.
. ./lib.sh
[ -e /dev/cpu/0/msr ] || insmod modules/msr.ko 2>/dev/null
[ -e /dev/cpu/0/msr ] || fail "the kernel has no /dev/cpu/0/msr"
events=INSTRUCTIONS_EXECUTED:PMC0,CPU_CLK_UNHALTED:PMC1
rm -f /etc/likwid_topo.cfg

into groups likwid-perfctr -a
n=$(grep -cE '^ *(CACHE|COMPUTE_TO_DATA_RATIO|CPI|MEM|PAIRING|TLB_L1|VECTOR)[[:space:]]' \
	"$tmp/groups")
[ "$n" -eq 7 ] || fail "likwid-perfctr -a: $n of 7 groups: $(head -n 5 "$tmp/groups")"

# likwid finds no counter by itself: CPUID has none (leaf 0xA).
likwid-perfctr -M 0 -C 0 -g $events ls >"$tmp/said" 2>&1 &&
	fail "it counts by itself: the documentation says that it cannot"
has said 'Counter PMC0 is only available with deactivated HyperThreading'

into said likwid-genTopoCfg -o /etc/likwid_topo.cfg
grep -q '^cpuid_info perf_num_ctr = 0$' /etc/likwid_topo.cfg ||
	fail "likwid-genTopoCfg: $(grep perf_num_ctr /etc/likwid_topo.cfg)"
sed -i 's/perf_num_ctr = 0/perf_num_ctr = 2/' /etc/likwid_topo.cfg
into said likwid-perfctr -M 0 -C 0 -g $events ./gt --spin20 f4240
rm /etc/likwid_topo.cfg
value()
{
	sed -n "s/^|  *$1 *| *PMC[01] *| *\([0-9]*\) *|.*/\1/p" "$tmp/said"
}
instructions=$(value INSTRUCTIONS_EXECUTED) cycles=$(value CPU_CLK_UNHALTED)
# 1000000 rounds of 20 instructions, two clocks each at least. likwid 5.4 has missed 1 or 2 % of
# a program that it starts.
between INSTRUCTIONS_EXECUTED "$instructions" 19400000 24000000
[ "${cycles:-0}" -ge $((2 * instructions)) ] || fail "CPU_CLK_UNHALTED: ${cycles:-none}"
ok
