/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Instructions for strict.c: a function for each, and an entry in a table. They are
 * called with addresses in %rax, %rsi and %rdi, 0 in %rcx and a port in %dx.
 */
#include "bare.h"

	.macro	INSN text, before
	.text
1:	\before
	\text
	ret
	.section .rodata
2:	.asciz	"\text"
	.section .strict, "a"
	.quad	1b, 2b
	.endm

	/* Each ends with an entry of zeros. */
	.macro	TABLE name
	.section .strict, "a"
	.quad	0, 0
	.globl	strict_\name
strict_\name:
	.endm

	/* vmovaps between a page and a vector */
	.macro	VECTOR name, opcode
	.text
	FUNCTION \name
	.byte	0x62, 0xf1, 0x78, 0x08, \opcode, 0x04, 0x25
	.long	pages
	ret
	.endm

	VECTOR	f_vector_load, 0x28
	VECTOR	f_vector_store, 0x29

/* Both CPU models have these. */
TABLE	has
INSN	"nopl 64(%rax)"
INSN	"bsfl %eax, %ecx"
INSN	"bswapq %rax"
INSN	"btsl $3, %eax"
INSN	"shldq $5, %rax, %rdx"
INSN	"shrdl %cl, %eax, %edx"
INSN	"movzbl %al, %ecx"
INSN	"setnz %al"
INSN	"jnz .+2"
INSN	"xaddl %eax, %ecx"
INSN	"lock cmpxchg8b pages"
INSN	"push %fs; pop %fs"
INSN	"fxsave pages; fxrstor pages"
INSN	"stmxcsr pages"
INSN	"ldmxcsr pages"
INSN	"fld1; fadd %st; fstpl pages"
INSN	"fldz; fcom; fnstsw %ax; fstp %st"
INSN	"fldz; fucompp; fninit"
INSN	"fildq pages; fistpq pages"
INSN	"lar %ax, %ecx"
INSN	"sldt %eax"
INSN	"smsw %eax"

/* Ordinary x86-64 programs use these; the chip does not have them. */
TABLE	lacks
INSN	"cmovz %eax, %ecx"
INSN	"lfence"
INSN	"mfence"
INSN	"clflush pages"
INSN	"lock cmpxchg16b pages"
INSN	"prefetchnta pages"
INSN	"movq %mm0, pages"
INSN	"movups pages, %xmm0"
INSN	"movnti %eax, pages"
INSN	"haddps %xmm1, %xmm0"
INSN	"fldz; fcmovb %st, %st"
INSN	"fldz; fcmovnu %st, %st"
INSN	"fldz; fcomi %st, %st"
INSN	"fldz; fucomi %st, %st"
INSN	"fldz; fcomip %st, %st"
INSN	"fldz; fucomip %st, %st"
INSN	"fldz; fisttpl pages"
INSN	"fldz; fisttps pages"
INSN	"fldz; fisttpq pages"
INSN	".byte 0x0f, 0x1e, 0xc0 /* reserved nop */"
INSN	".byte 0x0f, 0x1f, 0xc8 /* nop /1 */"

TABLE	sysenter
INSN	"sysenter"
INSN	"sysexitq"

/* Neither CPU model has these. */
TABLE	later
INSN	"rdtscp"
INSN	"monitor"
INSN	"popcnt %eax, %eax"
INSN	"pshufb %xmm0, %xmm0"
INSN	"crc32b %al, %ecx"
INSN	"movbe pages, %eax"
INSN	".byte 0xc5, 0xf8, 0x28, 0xc1 /* vmovaps */"
INSN	".byte 0xc5, 0xf8, 0xae, 0x10 /* vldmxcsr */"
INSN	".byte 0xc4, 0xe2, 0x78, 0xf2, 0xc1 /* andn */"
INSN	".byte 0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc1 /* EVEX: vmovaps */"
INSN	".byte 0xc5, 0xfc, 0x41, 0xc1 /* kand with VEX.L */"

/* The chip has no ports; here ring 0 has them. user_run() sets no registers. */
	.macro	PORT text
INSN	"\text", "movl $pages, %edi; movl %edi, %esi; movl $0x80, %edx; xorl %ecx, %ecx"
	.endm

TABLE	ports
PORT	"inb $0x61, %al"
PORT	"inl %dx, %eax"
PORT	"outb %al, $0x80"
PORT	"outw %ax, %dx"
PORT	"insb"
PORT	"rep insl"
PORT	"outsb"
TABLE end
