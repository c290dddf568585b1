/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions whose accesses to memory were counted by hand. MEM has the numbers of reads, with
 * that of the ret, and of writes; those in modern_mem came after the Pentium.
 */
#include "bare.h"

	.macro	MEM name, reads, writes, table=mem_table
	ENTRY	m_\name, "\name", \reads, \writes, \table
	.endm

MEM	none, 1, 0
	movl	$5, %eax
	leaq	buffer(%rax), %rbx
	ret

MEM	loads, 5, 0
	movb	buffer, %al
	movw	buffer, %ax
	movl	buffer, %eax
	movq	buffer, %rax
	ret

MEM	stores, 1, 4
	movb	%al, buffer
	movw	%ax, buffer
	movl	%eax, buffer
	movq	$0, buffer
	ret

MEM	modify, 5, 3
	incl	buffer
	addq	%rax, buffer
	xorl	buffer, %eax
	negb	buffer
	ret

MEM	stack, 6, 5
	pushq	%rax
	pushq	buffer
	popq	%rbx
	popq	buffer
	call	1f
	ret
1:	pushfq
	popq	%rdx
	ret

/* 16, 8 or 4 bytes are one access, aligned or not. */
MEM	vectors, 5, 3, modern_mem
	movdqa	buffer, %xmm0
	movups	buffer + 1, %xmm1
	paddd	buffer, %xmm0
	movsd	buffer, %xmm2
	movaps	%xmm0, buffer
	movdqu	%xmm1, buffer + 3
	movss	%xmm2, buffer
	ret

/* What QEMU does in pieces: one access, for an operand of up to 16 bytes */
MEM	x87, 5, 3
	fldt	buffer
	fldt	buffer + 4092
	fstpt	buffer + 60
	fstp	%st
	fbld	buffer + 4090
	fbstp	buffer
	fldt	buffer
	fstpt	buffer
	ret

/* 7 words of the environment, 20 of the registers; 32 times 16 bytes */
MEM	x87_state, 74, 73
	fnstenv	buffer
	fldenv	buffer
	data16 fnstenv	buffer
	data16 fldenv	buffer
	fnsave	buffer
	frstor	buffer
	fxsave	buffer
	fxrstor	buffer
	ret

MEM	sixteen, 3, 5, modern_mem
	cmpxchg16b buffer
	lock cmpxchg16b buffer
	movl	$buffer, %edi
	pcmpeqb	%xmm0, %xmm0
	maskmovdqu %xmm0, %xmm1
	pcmpeqb	%mm0, %mm0
	maskmovq %mm0, %mm1
	emms
	movq	%rax, buffer
	ret

/* One access across the end of a line, or of a page */
MEM	split, 3, 1
	movq	buffer + 60, %rax
	movq	buffer + 4092, %rbx
	movl	%eax, buffer + 4094
	ret

/* A descriptor is one read; its data segment has been accessed before. */
MEM	segments, 4, 0
	movl	$USER_DS, %eax
	movl	%eax, %es
	movl	%eax, %es
	movl	%eax, %ds
	ret

MEM	rep_movs, 101, 100
	movl	$buffer, %esi
	movl	$buffer + 4096, %edi
	movl	$100, %ecx
	rep movsb
	ret

MEM	rep_stos, 1, 50
	movl	$buffer, %edi
	movl	$50, %ecx
	rep stosq
	ret

MEM	rep_none, 1, 0
	movl	$buffer, %edi
	xorl	%ecx, %ecx
	rep stosq
	ret

/* 5 equal bytes, and the read that finds a difference */
MEM	rep_cmps, 13, 0
	movl	$buffer + 64, %edi
	movl	$buffer + 128, %esi
	movl	$20, %ecx
	repe cmpsb
	ret

MEM	locked, 5, 4
	lock incl buffer
	movl	$1, %eax
	xchgl	%eax, buffer
	lock xaddl %eax, buffer
	lock cmpxchgl %eax, buffer
	ret

MEM	leave, 2, 1
	pushq	%rbp
	movq	%rsp, %rbp
	subq	$64, %rsp
	leave
	ret

MEM	not_data, 1, 0, modern_mem
	leaq	buffer, %rax
	nopl	buffer(%rax)
	cmovzl	%eax, %ebx
	prefetchnta buffer
	ret

/* One access at each of walk_from, + walk_step ... up to walk_to */
	.globl	walk_from, walk_to, walk_step
	.macro	WALK name, from, to
FUNCTION \name
	movq	walk_from, %rsi
	movq	walk_to, %rdi
	movq	walk_step, %rdx
1:	movl	\from, \to
	addq	%rdx, %rsi
	cmpq	%rdi, %rsi
	jb	1b
	ret
	.endm

	WALK	walk_read, (%rsi), %eax
	WALK	walk_write, %eax, (%rsi)

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

/* The longest delay, 2^32 - 1 cycles, also with a 64-bit operand */
FUNCTION delayed_long
	movl	$-1, %eax
	.byte	0xc5, 0xfa, 0xae, 0xf0	/* delay %eax */
	ret
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
