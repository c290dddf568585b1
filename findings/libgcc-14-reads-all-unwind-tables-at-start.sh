#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: a static program reads its tables for exceptions when there is one, as with libgcc 12
#	of bookworm: there the program below has 35,000 instructions in all.
# Seen: libgcc 14 reads each entry before main(), to find which addresses they are for: 120,000
#	instructions of the 150,000 of a program that does nothing, in classify_object_over_fdes()
#	and what it calls. With --eh-frame-hdr, and the start file crtbegin.o that gcc takes for
#	programs that are not static, it reads none.
# Versions: gcc-14 14.2.0-19, binutils 2.44-3, libc6-dev 2.41 and valgrind 1:3.24.0-3 of trixie
# Hurts: counts of short programs: a static one has four times as many instructions as on
#	Debian 12.
. "$(dirname "$(realpath "$0")")/lib.sh"

packages trixie libgcc-14-dev=14.2.0-19 binutils=2.44-3 valgrind=1:3.24.0-3 libc6-dev
lib=$root/usr/lib/x86_64-linux-gnu gcc=$root/usr/lib/gcc/x86_64-linux-gnu/14
printf '.globl main\nmain: xor %%eax, %%eax\nret\n.section .note.GNU-stack\n' >program.s
run usr/bin/as -o program.o program.s || exit 2
# counted START OPTION... - instructions of the program, and of its costliest functions
counted()
{
	start=$1
	shift
	run usr/bin/ld -static "$@" -o program "$lib/crt1.o" "$lib/crti.o" "$gcc/$start.o" program.o \
		--start-group "$gcc/libgcc.a" "$gcc/libgcc_eh.a" "$lib/libc.a" --end-group \
		"$gcc/crtend.o" "$lib/crtn.o" || exit 2
	VALGRIND_LIB=$root/usr/libexec/valgrind run usr/bin/valgrind.bin --tool=callgrind \
		--callgrind-out-file="$start.out" ./program 2>&1 | sed -n "s/.*Collected :/$start:/p"
	"$root/usr/bin/callgrind_annotate" "$start.out" | grep '%) .*:' | head -n 4 | tee "$start.top"
}
counted crtbeginT
counted crtbegin --eh-frame-hdr
expect "more than 100,000 in two functions of libgcc" awk '
	/classify_object_over_fdes|read_encoded_value/ { gsub(",", "", $1); sum += $1 }
	END { exit sum <= 100000 }' crtbeginT.top
expect "none of them with --eh-frame-hdr and crtbegin.o" \
	[ -z "$(grep -e fdes -e read_encoded crtbegin.top)" ]
