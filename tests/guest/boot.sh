#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# At the end of a boot: nothing in the kernel's log that should not be there,
# no interrupt lost, none that nobody knew. TEST_LOG_OK: what may be in the log.
# (How long an NMI takes is told by the host's clock: it says nothing here.)
. ./lib.sh

dmesg >"$tmp/log"
splats='Uhhuh|unknown NMI|NMI received for unknown|Dazed|WARNING|BUG|Oops|KASAN|UBSAN'
splats="$splats|INFO: |unchecked MSR|irq loop stuck|general protection|Call Trace"
bad=$(grep -E "$splats" "$tmp/log" | grep -vE "${TEST_LOG_OK:-^\$}" |
	grep -vE 'KernelAddressSanitizer initialized|NMI handler .* took too long')
[ -z "$bad" ] || fail "the kernel's log: $(echo "$bad" | head -n 3)"
[ -s "$tmp/log" ] || fail "the kernel has no log"

./gt interrupts-balance >"$tmp/out" 2>&1
grep '^#' "$tmp/out"
case $(grep -E '^(ok|FAIL|skip)' "$tmp/out") in
ok*) ok ;;
skip*)	# the log was clean; another processor has no interrupts to balance
	sed -n 's/^skip/# no balance of/p' "$tmp/out"
	ok ;;
*) fail "$(sed -n 's/^FAIL [^ ]* //p' "$tmp/out")" ;;
esac
