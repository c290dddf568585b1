#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: a disassembler for x86-64 calls 62 f1 78 08 28 07 invalid. It is an EVEX prefix with a
#	bit that has to be 1, so every processor with AVX-512 refuses it.
# Seen: ZydisDisasm prints "vmovaps zmm0, zmmword ptr": the bit selects MVEX, the encoding of
#	Knights Corner, which the tool decodes in every listing. No option of it switches that off
#	(the library has ZYDIS_DECODER_MODE_KNC). binutils 2.40 prints "(bad)".
# Versions: zydis-tools 4.0.0-1 and binutils 2.40-2 of bookworm
# Hurts: a search for instructions that do not exist, in data or in code that was cut wrongly.
. "$(dirname "$(realpath "$0")")/lib.sh"

packages bookworm zydis-tools=4.0.0-1 binutils=2.40-2
printf '\142\361\170\010\050\007' >code
run usr/bin/ZydisDisasm -64 code | tee said
run usr/bin/objdump -D -b binary -m i386:x86-64 code | tee listing | tail -n 3
expect "an instruction of Knights Corner" grep -q 'vmovaps zmm0' said
expect "(bad) from objdump" grep -q '(bad)' listing
