/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions that access memory, fetch code, or branch, in known ways */
#include "bare.h"

/* One access at each of walk_from, + walk_step ... up to walk_to */
	.globl	walk_from, walk_to, walk_step
	.macro	WALK name, insn:vararg
FUNCTION \name
	movl	$15, %eax
	.byte	0xc5, 0xf8, 0x92, 0xc8		/* kmov %eax, %k1 */
	movq	walk_from, %rsi
	movq	walk_to, %rdi
	movq	walk_step, %rdx
1:	\insn
	addq	%rdx, %rsi
	cmpq	%rdi, %rsi
	jb	1b
	ret
	.endm

	WALK	walk_read, movl (%rsi), %eax
	WALK	walk_write, movl %eax, (%rsi)
	/* vmovnrapd %zmm1, (%rsi), with mask k1, and vmovnrngoapd */
	WALK	walk_strong, .byte 0x62, 0xf1, 0xfa, 0x08, 0x29, 0x0e
	WALK	walk_masked, .byte 0x62, 0xf1, 0xfa, 0x09, 0x29, 0x0e
	WALK	walk_weak, .byte 0x62, 0xf1, 0xfa, 0x88, 0x29, 0x0e

/* 10 loads, each a known distance from the next */
FUNCTION ten_loads
	movl	$buffer, %ebx		/* 5 bytes */
	.rept	10
	movl	(%rbx), %eax
	.endr
	ret

/* 10 loads, each so far from the one before, behind walk_from */
	.macro	TEN name, step
FUNCTION \name
	movl	walk_from, %ebx		/* 7 bytes */
	.set	at, 128
	.rept	10
	movl	at(%rbx), %eax		/* 6 bytes */
	.set	at, at + \step
	.endr
	ret
	.endm

	TEN	ten_lines, 128
	TEN	ten_next, 64

/* An instruction whose accesses its helper makes */
FUNCTION saved
	nop
	fxsave	pages
	.globl	at_saved
at_saved:
	.fill	10, 1, 0x90
	ret

/* Loads of ten lines, with @insn before each; @first is after the first load. */
	.macro	LOADS first, insn:vararg
	movl	$buffer + (1 << 20), %esi
	xorl	%ecx, %ecx
	\insn
	movb	(%rsi), %bl
	.globl	\first
\first :
	.rept	9
	addq	$64, %rsi
	\insn
	movb	(%rsi), %bl
	.endr
	ret
	.endm

FUNCTION cold_rdpmc
	LOADS after_rdpmc, rdpmc

FUNCTION cold_invlpg
	movl	$PAGED_AREA, %edi
	LOADS after_invlpg, invlpg (%rdi)

FUNCTION cold_fxsave
	fxsave	buffer + (1 << 20) + 2048
	LOADS after_fxsave

/* 10 instructions with two accesses, 5 with one */
FUNCTION mixed
	.rept	10
	incl	buffer
	.endr
	.rept	5
	movl	buffer, %eax
	.endr
	ret

/* 16 lines of code and the ret */
FUNCTION lines16
	.fill	1024, 1, 0x90
	ret

/* 16 KiB and 48 KiB of code */
FUNCTION code16k
	.fill	16384 - 1, 1, 0x90
	ret
FUNCTION code48k
	.fill	49152 - 1, 1, 0x90
	ret

/* One instruction in each of 48 pages */
	.globl	hops
	.balign	4096
hops:
	.rept	48
	jmp	1f
	.balign	4096
1:
	.endr
	ret

/* Taken and not taken in turn, 1000 times */
FUNCTION alternating
	movl	$1000, %ecx
1:	testl	$1, %ecx
	jnz	2f
	nop
2:	decl	%ecx
	jnz	1b
	ret

/* Two targets in turn, 1000 times */
FUNCTION two_targets
	movl	$1000, %ecx
1:	movl	%ecx, %eax
	andl	$1, %eax
	movq	targets(, %rax, 8), %rdx
	call	*%rdx
	decl	%ecx
	jnz	1b
	ret
3:	nop
	ret
4:	ret

FUNCTION delayed
	movl	$100, %eax
	.byte	0xc5, 0xfa, 0xae, 0xf0	/* delay %eax */
	ret

/* The longest delay is 2^32 - 1 cycles. */
FUNCTION delayed_longest
	movq	$-1, %rax
	.byte	0xc4, 0xe1, 0xfa, 0xae, 0xf0	/* delay %rax */
	ret

/* A store to chained_to, which may be the APIC, and another block: 2006 in all */
	.globl	chained_to
FUNCTION chained
	movq	chained_to, %rdi
	movl	$0x44000 | VEC_TIMER, %eax
	movl	%eax, (%rdi)
	jmp	1f
1:	movl	$1000, %ecx
2:	decl	%ecx
	jnz	2b
	ret

	.data
	.balign	8
chained_to:	.quad	0
targets:
	.quad	3b, 4b
walk_from:	.quad	0
walk_to:	.quad	0
walk_step:	.quad	0

	.bss
	.balign	4096
	.globl	buffer
buffer:	.skip	2 << 20
