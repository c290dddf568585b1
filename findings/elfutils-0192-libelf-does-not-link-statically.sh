#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: a program that calls elf_begin() links with libelf.a and the libraries that libelf.pc
#	names as private ones, zlib and zstd.
# Seen: eu_search_tree_init() is undefined. It is new in elfutils 0.192, and no file of the
#	package, nor libdw.a, defines it.
# Versions: libelf-dev and libdw-dev 0.192-4, binutils 2.44-3, libgcc-14-dev 14.2.0-19 of trixie
# Hurts: programs that look for libelf by linking it. A static perf of Linux 6.1 takes libelf for
#	missing, is built without it, status 0, and then names no function.
. "$(dirname "$(realpath "$0")")/lib.sh"

packages trixie libelf-dev=0.192-4 libdw-dev=0.192-4 binutils=2.44-3 \
	libgcc-14-dev=14.2.0-19
lib=$root/usr/lib/x86_64-linux-gnu gcc=$root/usr/lib/gcc/x86_64-linux-gnu/14
printf '.globl main\nmain: jmp elf_begin\n' >program.s
run usr/bin/as -o program.o program.s || exit 2
link()
{
	run usr/bin/ld -static -o program "$lib/crt1.o" "$lib/crti.o" program.o \
		--start-group "$@" "$lib/libz.a" "$lib/libzstd.a" "$lib/libc.a" "$gcc/libgcc.a" \
		"$gcc/libgcc_eh.a" --end-group "$lib/crtn.o"
}
grep -h Requires.private "$lib/pkgconfig/libelf.pc"
link "$lib/libelf.a" >said 2>&1
echo "ld: status $?; $(grep -o 'undefined reference.*' said | sort -u | tr '\n' ' ')"
link "$lib/libelf.a" "$lib/libdw.a" >with_libdw 2>&1
printf '.globl main\nmain: jmp getpid\n' >program.s
run usr/bin/as -o program.o program.s || exit 2
expect "a program without libelf links" link
expect "eu_search_tree_init is undefined" grep -q 'undefined reference.*eu_search_tree_init' said
expect "nothing else is" [ -z "$(grep 'undefined reference' said | grep -v eu_search_tree)" ]
expect "libdw.a does not help" grep -q 'undefined reference.*eu_search_tree_init' with_libdw
