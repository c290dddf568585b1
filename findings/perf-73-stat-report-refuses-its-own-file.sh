#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: perf stat report prints what perf stat record has written.
# Seen: perf 7.3.4 refuses the file that the same perf has just written, with "Invalid
#	HEADER_COMPRESSED: comp_mmap_len (0) must be a 4K-aligned value >= 4096" and status 255. It
#	expects a header of compressed samples, which a file of counts has no use for.
# Versions: linux-perf 7.3.4-1~bpo13+1 of trixie-backports, Linux 6.18
# Hurts: counts that were recorded on one machine for another one. perf 6.1 reads its own files.
. "$(dirname "$(realpath "$0")")/lib.sh"

packages 'trixie trixie-backports' linux-perf=7.3.4-1~bpo13+1
run usr/bin/perf stat record -o counts -e cpu-clock true >/dev/null 2>&1 || exit 2
run usr/bin/perf stat report -i counts >said 2>&1
echo "perf stat report: status $?" >>said
cat said
expect "a refusal: its own file" grep -q 'Invalid HEADER_COMPRESSED: comp_mmap_len (0)' said
expect "status 255" grep -q 'status 255' said
