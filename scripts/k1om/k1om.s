# SPDX-License-Identifier: GPL-2.0-only
#
# Instructions that compilers make for every x86-64 and a Knights Corner lacks, as macros of
# those that it has. The assembler reads this before a program's own code (build-k1om).
# scripts/check-k1om finds what is missing here.

# CMOVcc is a jump over MOV. Its 32-bit form clears the upper half of the register in either
# case; MOV of the register to itself does that, and changes nothing for other sizes. CMOV reads
# memory in either case, this only if it moves: it cannot fault where CMOV would not. A macro's
# arguments are what commas separate, so that one operand in memory may be three of them.
.macro KNC_CMOV not, a, b, c, d
	j\not	.Lknc_cmov\@
	.ifnb	\d
	mov	\a, \b, \c, \d
.Lknc_cmov\@:
	mov	\d, \d
	.else
	.ifnb	\c
	mov	\a, \b, \c
.Lknc_cmov\@:
	mov	\c, \c
	.else
	mov	\a, \b
.Lknc_cmov\@:
	mov	\b, \b
	.endif
	.endif
.endm

# gcc leaves the size of the operands to the assembler, and clang names it.
.macro KNC_CMOVS cc, not
	.irp	size,,w,l,q
.macro cmov\cc\size operands:vararg
	KNC_CMOV \not, \operands
.endm
.macro cmov\not\size operands:vararg
	KNC_CMOV \cc, \operands
.endm
	.endr
.endm

KNC_CMOVS a, be
KNC_CMOVS ae, nae
KNC_CMOVS b, nb
KNC_CMOVS c, nc
KNC_CMOVS e, ne
KNC_CMOVS g, le
KNC_CMOVS ge, l
KNC_CMOVS o, no
KNC_CMOVS p, np
KNC_CMOVS s, ns

# Comparisons of the x87 that set EFLAGS: by its status word, whose bits SAHF has in their places.
# They need a stack without a red zone.
.macro KNC_FCOM compare, operand
	\compare \operand
	push	%rax
	fnstsw	%ax
	sahf
	pop	%rax
.endm
.macro fcomi a, b
	KNC_FCOM fcom, \a
.endm
.macro fcomip a, b
	KNC_FCOM fcomp, \a
.endm
.macro fucomi a, b
	KNC_FCOM fucom, \a
.endm
.macro fucomip a, b
	KNC_FCOM fucomp, \a
.endm

# FCMOVcc
.macro KNC_FCMOV not, from
	j\not	.Lknc_fcmov\@
	fld	\from
	fstp	%st(1)
.Lknc_fcmov\@:
.endm
.macro KNC_FCMOVS cc, condition, not
.macro fcmov\cc a, b
	KNC_FCMOV \not, \a
.endm
.macro fcmovn\cc a, b
	KNC_FCMOV \condition, \a
.endm
.endm
KNC_FCMOVS b, b, nb
KNC_FCMOVS be, be, nbe
KNC_FCMOVS e, e, ne
KNC_FCMOVS u, p, np

# Fences: an access with a lock is one, for all kinds of accesses. It changes flags, as gcc
# takes for granted of each piece of assembly.
.macro KNC_FENCE
	lock addl $0, (%rsp)
.endm
.macro lfence
	KNC_FENCE
.endm
.macro mfence
	KNC_FENCE
.endm
.macro sfence
	KNC_FENCE
.endm

# PAUSE only waits. gcc writes BSF with REP, which is TZCNT on other processors, where the operand
# is not 0: then both give the same.
.macro pause
.endm
.macro rep name, operands:vararg
	.ifnc	\name,bsf
	.ifnc	\name,bsfl
	.ifnc	\name,bsfq
	.byte	0xf3
	.endif
	.endif
	.endif
	\name	\operands
.endm
