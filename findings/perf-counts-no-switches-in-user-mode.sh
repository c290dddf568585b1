#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: "perf stat -e context-switches" of a program that sleeps counts its switches, or says
#	that it cannot.
# Seen: an ordinary user at kernel.perf_event_paranoid 2 gets 0 and no message. perf then asks for
#	user mode only (":u"), and the kernel switches tasks in kernel mode. Page faults count.
# Versions: linux-perf 6.1 of bookworm, Linux 6.18
# Hurts: libraries that always ask for user mode, such as libpfm4 by default: PAPI's and Google
#	benchmark's CONTEXT-SWITCHES are 0 for a program that does nothing but sleep.
. "$(dirname "$(realpath "$0")")/lib.sh"

packages bookworm linux-perf=6.1.176-1
run usr/bin/perf stat -x, -o counts -e context-switches:u -e page-faults:u sleep 0.1 || exit 2
cat counts
expect "0 switches of a program that sleeps" grep -q '^0,,context-switches:u,.*,100.00' counts
expect "page faults" grep -q '^[1-9][0-9]*,,page-faults:u' counts
