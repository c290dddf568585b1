#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# perf's own tests, as Debian has them: those below fail (Documentation/testing.rst), no other
. ./lib.sh

cat >"$tmp/known" <<-EOT
	Simple expression parser
	Setup struct perf_event_attr
	Test dwarf unwind
	probe libc's inet_pton & backtrace it with ping
EOT

# In / perf would take /tests for its own.
cd /root || fail "there is no /root"
perf test -s 10 >"$tmp/out" 2>&1
sed -n 's/^ *[0-9.]*: *\(.*[^ ]\) *: FAILED!.*/\1/p' "$tmp/out" >"$tmp/failed"
awk '/: Ok/ { ok++ } /: Skip/ { skip++ } END { print "# " ok " are ok, " skip " skipped" }' "$tmp/out"
cmp -s "$tmp/known" "$tmp/failed" || fail "not what is known: $(tr '\n' ',' <"$tmp/failed")"
ok
