#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: perf buildid-list -i FILE prints the build ID of an ELF file, whatever its length.
# Seen: of 16 bytes (ld --build-id=md5 or uuid) or 8 (lld's) it calls the file an "incompatible
#	file format", status 255. Of 32 bytes it prints the first 20, status 0. Only SHA-1's 20 are
#	right. perf record --buildid-mmap of the same files notes the 8 and 16 bytes as they are.
# Versions: linux-perf 7.3.4-1~bpo13+1 of trixie-backports (6.1.176-1 of bookworm does the same),
#	binutils 2.44-3 of trixie
# Hurts: scripts that look up debugging information by the ID: files of other linkers have none,
#	and mold's --build-id=sha256 gives an ID that nothing else knows.
. "$(dirname "$(realpath "$0")")/lib.sh"

packages 'trixie trixie-backports' linux-perf=7.3.4-1~bpo13+1 binutils=2.44-3
run usr/bin/perf version
echo '.globl _start; _start: nop' >program.s
run usr/bin/as -o program.o program.s || exit 2
for kind in sha1 md5 0x0102030405060708 \
	0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f; do
	run usr/bin/ld --build-id=$kind -o program program.o || exit 2
	run usr/bin/readelf -n program | grep 'Build ID'
	run usr/bin/perf buildid-list -i program 2>&1
	echo "   status $? for $kind"
done >told
cat told
expect "40 digits of SHA-1" grep -Eq '^[0-9a-f]{40}$' told
expect "a refusal of 16 bytes" grep -q 'status 255 for md5' told
expect "a refusal of 8 bytes" grep -q 'status 255 for 0x0102' told
expect "the first 20 of 32 bytes" grep -q '^000102030405060708090a0b0c0d0e0f10111213$' told
