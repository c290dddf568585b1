#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: gprof -s writes the sum of profiles to gmon.sum, "all the information" of them, or an
#	error. 65,536 runs of a program that calls f 100,001 times are 6,553,665,536 calls.
# Seen: gmon.sum has 2,258,698,240 calls and no time at all; status 0, no message. gprof adds in
#	wider numbers, but writes 32 bits of each number of calls and 16 of each bin of time. A bin
#	covers four bytes of code or so, and holds 11 minutes.
# Versions: binutils 2.40-2 and libc6-dev 2.36-9+deb12u14 of bookworm
# Hurts: profiles of many runs or ranks that are summed, which is what -s is for. The hottest
#	function loses the most, so that another one seems to be the hottest.
# shellcheck disable=SC1091,SC2034,SC2094,SC2154
. "$(dirname "$(realpath "$0")")/lib.sh"

packages bookworm binutils=2.40-2 libc6-dev=2.36-9+deb12u14
cat >program.s <<-END
	.globl main, f, __dso_handle
	.hidden __dso_handle
	.type main, @function
	.type f, @function
	main:
		push %rbx
		mov \$100001, %ebx
	1:	call f
		dec %ebx
		jnz 1b
		xor %eax, %eax
		pop %rbx
		ret
	f:
		push %rbp
		mov %rsp, %rbp
		call mcount
		mov \$3000, %ecx
	2:	dec %ecx
		jnz 2b
		pop %rbp
		ret
	.data
	__dso_handle: .quad 0
	.section .note.GNU-stack, "", @progbits
END
lib=$root/usr/lib/x86_64-linux-gnu
run usr/bin/as -o program.o program.s || exit 2
run usr/bin/ld -o "$root/program" "$lib/gcrt1.o" "$lib/crti.o" program.o "$lib/crtn.o" \
	"$lib/libc_nonshared.a" "$root/lib/x86_64-linux-gnu/libc.so.6" || exit 2
run program || exit 2
flat()
{
	run usr/bin/gprof -b -p "$root/program" "$1" | sed -n '/ f$/p'
}
run usr/bin/gprof --version | head -n 1
echo "   time  cumulative  self       calls"
flat gmon.out | tee one
mv gmon.out gmon.sum
for _ in $(seq 16); do
	run usr/bin/gprof -s "$root/program" gmon.sum gmon.sum 2>>said || exit 2
done
flat gmon.sum | tee sum
expect "100,001 calls and some time in one run" grep -Eq ' [0-9.]*[1-9] +100001 ' one
expect "a third of the calls in 65,536 runs" grep -q ' 2258698240 ' sum
expect "no time" grep -Eq '^ +0\.00 +0\.00 +0\.00 ' sum
expect "no message" [ ! -s said ]
