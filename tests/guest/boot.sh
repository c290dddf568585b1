#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# At the end of a boot: the kernel's log is clean, no memory has leaked, no interrupt was
# lost or unknown. TEST_LOG_OK: what may be in the log. How long an NMI takes may be, too:
# it is measured by the host's clock.
. ./lib.sh

# With failed allocations (fault-load) the kernel warns of its jump labels and of the
# allocation: leave that out.
without_refusals()
{
	awk '
	/cut here/ { block = ""; inside = 1 }
	inside { block = block $0 "\n" }
	/end trace/ {
		if (block !~ /jump_label_(module_notify|del_module)/)
			printf "%s", block
		inside = 0
		next
	}
	inside { next }
	/vmalloc error:|page allocation failure:/ { refused = 1 }
	/Call Trace:/ && refused { refused = 0; next }
	{ print }
	END { if (inside) printf "%s", block }'
}

if [ -e /proc/self/fail-nth ]; then
	dmesg | without_refusals >"$tmp/log"
else
	dmesg >"$tmp/log"
fi
splats='Uhhuh|unknown NMI|NMI received for unknown|Dazed|WARNING|BUG|Oops|KASAN|UBSAN'
splats="$splats|INFO: |unchecked MSR|irq loop stuck|general protection|Call Trace"
bad=$(grep -E "$splats" "$tmp/log" | grep -vE "${TEST_LOG_OK:-^\$}" |
	grep -vE 'KernelAddressSanitizer initialized|NMI handler .* took too long')
[ -z "$bad" ] || fail "the kernel's log: $(echo "$bad" | head -n 3)"
[ -s "$tmp/log" ] || fail "the kernel has no log"

# No memory has leaked. The kernel ignores what is younger than five seconds, and one scan
# alone may be wrong.
leaks=/sys/kernel/debug/kmemleak
if [ -e $leaks ]; then
	sleep 6
	# kmemleak switches itself off when it runs out of memory.
	{ echo scan && sleep 1 && echo scan; } >$leaks || fail "kmemleak does not scan"
	cat $leaks >"$tmp/leaks" || fail "kmemleak cannot be read"
	sed 's/^/# /' "$tmp/leaks"
	[ ! -s "$tmp/leaks" ] || fail "$(grep -c '^unreferenced' "$tmp/leaks") leaks"
fi

./gt interrupts-balance >"$tmp/out" 2>&1
grep '^#' "$tmp/out"
case $(grep -E '^(ok|FAIL|skip)' "$tmp/out") in
ok*) ok ;;
skip*)	# the log was clean; another processor has no interrupts to balance
	sed -n 's/^skip/# no balance of/p' "$tmp/out"
	ok ;;
*) fail "$(sed -n 's/^FAIL [^ ]* //p' "$tmp/out")" ;;
esac
