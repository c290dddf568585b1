#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# tools/report, which an owner of a card sends: it is complete, and the self-test passes.
. ./lib.sh

sh ./report ./selftest >"$tmp/said" 2>&1 || fail "status $?"
for want in '== kernel' 'vendor_id.*GenuineIntel' "threads: $(nproc)" '== driver' \
	': 7 formats, [1-9][0-9]* events' '== log' '== self-test' \
	'ok cpu 0: instructions: counted 2000000, want 2000000' 'ok cpu 0: samples: ' \
	'self-test: all is as it should be' 'status 0'; do
	grep -q "$want" "$tmp/said" || {
		sed 's/^/# /' "$tmp/said"
		fail "without: $want"
	}
done
! grep 'not found' "$tmp/said" || fail "a program is not there"
ok
