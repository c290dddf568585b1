#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: NASM assembles vfmadd132ph, a multiply-add of AVX512-FP16, or does not know it.
# Seen: NASM 2.16 assembles vfnmadd132ph, which subtracts the product, without a warning. All six
#	of vfmadd and vfmsub for packed FP16 are so; vfnmadd132ph itself is "instruction expected".
#	ndisasm of the same package reads it back as vfmadd132ph; objdump shows what it is.
# Versions: nasm 2.16.01-1 and binutils 2.40-2 of bookworm; nasm 2.16.03-1 of trixie does the same
# Hurts: hand-written FP16 kernels: results with a wrong sign, and a listing that looks right.
. "$(dirname "$(realpath "$0")")/lib.sh"

packages bookworm nasm=2.16.01-1 binutils=2.40-2
run usr/bin/nasm -v
for one in 'vfmadd132ph' 'vfmsub231ph' 'vfmadd132ps'; do
	printf 'bits 64\n%s zmm1, zmm2, zmm3\n' "$one" >one.asm
	run usr/bin/nasm -f bin -o code one.asm || exit 2
	echo "$one: $(run usr/bin/ndisasm -b 64 code)"
	run usr/bin/objdump -D -b binary -m i386:x86-64 -M intel code | tail -n 1
done >listing
cat listing
printf 'bits 64\nvfnmadd132ph zmm1, zmm2, zmm3\n' >one.asm
run usr/bin/nasm -f bin -o code one.asm 2>&1 | tee refused
expect "vfnmadd for vfmadd" grep -q 'vfnmadd132ph zmm1,zmm2,zmm3' listing
expect "vfnmsub for vfmsub" grep -q 'vfnmsub231ph zmm1,zmm2,zmm3' listing
expect "single precision as it was written" grep -q '	vfmadd132ps zmm1,zmm2,zmm3' listing
expect "ndisasm calls it vfmadd132ph" grep -q '^vfmadd132ph: .* vfmadd132ph zmm1,zmm2,zmm3' listing
expect "no vfnmadd132ph" grep -q 'instruction expected' refused
