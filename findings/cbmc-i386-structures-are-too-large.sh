#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: cbmc --i386-linux lays out structures as compilers for i386 Linux do: there, long long
#	and double are aligned to 4 bytes inside a structure.
# Seen: cbmc 6.6 aligns them to 8. It proves that a char and a long long take 16 bytes; gcc -m32
#	compiles only the claim of 12. It takes the size of long double, 12, from the real ABI.
# Versions: cbmc 6.6.0-4 and gcc-14 14.2.0-19 of trixie
# Hurts: proofs about offsets, overlaps and overruns of structures that 32-bit code shares, such
#	as those of ioctl(). They hold for a layout that no compiler of i386 Linux makes.
. "$(dirname "$(realpath "$0")")/lib.sh"

packages trixie cbmc=6.6.0-4 gcc-14=14.2.0-19
structure='struct count { char cpu; long long value; };'
cat >claim.i <<END
$structure
int main(void)
{
	__CPROVER_assert(sizeof(struct count) == 16, "the structure has 16 bytes");
	__CPROVER_assert(sizeof(long double) == 12, "long double has 12 bytes");
}
END
printf '%s\n_Static_assert(sizeof(struct count) == %s, "");\n' "$structure" 12 >twelve.i
printf '%s\n_Static_assert(sizeof(struct count) == %s, "");\n' "$structure" 16 >sixteen.i
compile()
{
	run usr/libexec/gcc/x86_64-linux-gnu/14/cc1 -quiet -fpreprocessed -m32 -o /dev/null "$1"
}
echo "cbmc $(run usr/bin/cbmc --version)"
run usr/bin/cbmc --i386-linux claim.i | tee said | grep -e main.assertion -e VERIFICATION
compile sixteen.i 2>refused
grep error refused
expect "a proof of 16 bytes" grep -q '^VERIFICATION SUCCESSFUL' said
expect "gcc -m32 compiles the claim of 12 bytes" compile twelve.i
expect "gcc -m32 refuses the claim of 16 bytes" grep -q 'static assertion failed' refused
