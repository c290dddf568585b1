#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: a disassembler that does not know Knights Corner refuses 62 f1 78 08 58 c1, there vaddps
#	of 16 floats: a bit that is 1 in EVEX is 0 in MVEX. In APX it is 0 for memory operands only.
# Seen: llvm-mc 19 prints vaddps of four floats, xmm. With a memory operand it prints one with
#	register r18, and does so without being told of APX. LLVM 14 and objdump refuse the first.
#	NASM's ndisasm 2.16 reads both like AVX-512 as well.
# Versions: llvm-19 1:19.1.7-3~deb12u1, llvm-14 1:14.0.6-12 and binutils 2.40-2 of bookworm
# Hurts: listings of a card's programs: they look right, but have a quarter of the numbers and
#	another address.
. "$(dirname "$(realpath "$0")")/lib.sh"

packages bookworm llvm-19=1:19.1.7-3~deb12u1 llvm-14=1:14.0.6-12 binutils=2.40-2
printf '\142\361\170\010\130\301' >code
echo 0x62,0xf1,0x78,0x08,0x58,0xc1 >register
echo 0x62,0xf1,0x78,0x08,0x58,0x04,0x90 >memory
for version in 14 19; do
	for operand in register memory; do
		echo "LLVM $version, $operand:"
		run "usr/lib/llvm-$version/bin/llvm-mc" --disassemble -triple x86_64 "$operand" 2>&1 |
			tee "$operand-$version" | grep -e vaddps -e invalid
	done
done
run usr/bin/objdump -D -b binary -m i386:x86-64 code | tee listing | tail -n 3
expect "LLVM 14 refuses it" grep -q 'invalid instruction encoding' register-14
expect "(bad) from objdump" grep -q '(bad)' listing
expect "LLVM 19 prints four floats" grep -q 'vaddps.*%xmm1, %xmm0, %xmm0' register-19
expect "a register of APX in the address" grep -q 'vaddps.*(%rax,%r18,4)' memory-19
