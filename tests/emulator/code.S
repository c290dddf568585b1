/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions that were counted by hand: instructions, branches, reads and writes, all
 * with the ret
 */
#include "bare.h"

	/* In a table of struct entry; those in modern_code and pieces came after the Pentium. */
	.macro	CODE name, insns, branches, reads, writes, table = code_table
	.section \table, "a"
	.balign	8
	.quad	f_\name, \insns, \branches, \reads, \writes, 1f
	.section .rodata
1 :	.asciz	"\name"
	.text
	FUNCTION f_\name
	.endm

CODE	empty, 1, 1, 1, 0
	ret

CODE	nops, 101, 1, 1, 0
	.fill	100, 1, 0x90
	ret

CODE	loop, 2002, 1001, 1, 0
	movl	$1000, %ecx
1:	decl	%ecx
	jnz	1b
	ret

CODE	loop_insn, 1002, 1001, 1, 0
	movl	$1000, %ecx
1:	loop	1b
	ret

CODE	call, 402, 301, 101, 100
	movl	$100, %ecx
1:	call	f_empty
	decl	%ecx
	jnz	1b
	ret

CODE	jcc_not_taken, 102, 51, 1, 0
	clc
	.rept	50
	jc	1f
	nop
	.endr
	ret
1:	ud2

/* lea, push, call (and its ret), pop, lea, jmp, nop, jmp, ret */
CODE	indirect, 10, 5, 4, 2
	leaq	f_empty(%rip), %rax
	pushq	%rax
	call	*(%rsp)
	popq	%rax
	leaq	1f(%rip), %rax
	jmp	*%rax
1:	nop
	jmp	2f
2:	ret

CODE	jcxz, 5, 3, 1, 0
	xorl	%ecx, %ecx
	jrcxz	1f
	ud2
1:	incl	%ecx
	jrcxz	2f
	ret
2:	ud2

CODE	no_branches, 8, 1, 1, 0, modern_code
	xorl	%eax, %eax
	cmovzl	%eax, %ecx
	setz	%al
	cpuid
	lfence
	xorl	%eax, %eax
	bsfl	%eax, %ecx
	ret

CODE	rep_movsb, 5, 1, 1001, 1000
	movl	$pages, %esi
	movl	$pages + 8192, %edi
	movl	$1000, %ecx
	rep movsb
	ret

CODE	rep_zero, 6, 1, 1, 0
	movl	$pages, %edi
	xorl	%ecx, %ecx
	rep stosq
	rep stosb
	repe scasb
	ret

CODE	rep_one, 5, 1, 1, 1
	movl	$pages, %edi
	xorl	%eax, %eax
	movl	$1, %ecx
	rep stosq
	ret

/* The flag, not the count, ends repne: at the 6th byte */
CODE	rep_scas, 7, 2, 7, 0
	movl	$scanned, %edi
	movl	$1000, %ecx
	movb	$'x', %al
	repne scasb
	jnz	1f
	nop
	ret
1:	ud2

CODE	rep_cmps, 5, 1, 13, 0
	movl	$scanned, %edi
	movl	$scanned, %esi
	movl	$6, %ecx
	repe cmpsb
	ret

/* What QEMU does in pieces: one access, for an operand of up to 16 bytes */
CODE	x87, 9, 1, 5, 3, pieces
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
CODE	x87_state, 9, 1, 74, 73, pieces
	fnstenv	buffer
	fldenv	buffer
	data16 fnstenv	buffer
	data16 fldenv	buffer
	fnsave	buffer
	frstor	buffer
	fxsave	buffer
	fxrstor	buffer
	ret

CODE	sixteen, 10, 1, 3, 5, pieces
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

/* A string instruction in a loop, as a block that QEMU chains to itself */
CODE	rep_loop, 502, 101, 1, 6400
	movl	$100, %edx
1:	movl	$pages, %edi
	movl	$64, %ecx
	rep stosb
	decl	%edx
	jnz	1b
	ret

/* Across the end of a page: QEMU executes it again alone. */
CODE	locked_split, 302, 101, 101, 100
	movl	$100, %ecx
1:	lock incl pages + 4094
	decl	%ecx
	jnz	1b
	ret

CODE	flags, 6, 1, 3, 2
	pushfq
	orl	$1, (%rsp)
	popfq
	cld
	cmc
	ret

/* Changes the instructions that follow in the same block */
CODE	self_modifying, 802, 101, 1, 300
	movl	$100, %ecx
1:	movb	%cl, 2f + 1
	movb	$0xf8, 3f		/* clc */
2:	movb	$0, %al
3:	stc
	movb	$0xf9, 3b		/* stc */
	nop
	decl	%ecx
	jnz	1b
	ret

CODE	readers, 7, 1, 1, 0
	xorl	%ecx, %ecx
	rdpmc
	rdtsc
	movl	$1, %ecx
	rdpmc
	nop
	ret

CODE	spflt_insns, 5, 1, 1, 0
	movl	$1, %eax
	.byte	0xc5, 0xfb, 0xae, 0xf0	/* spflt %eax */
	.byte	0xc5, 0xfa, 0xae, 0xf0	/* delay %eax */
	.byte	0xc5, 0xfb, 0xae, 0xf7	/* spflt %edi */
	ret

CODE	loads, 5, 1, 5, 0
	movb	buffer, %al
	movw	buffer, %ax
	movl	buffer, %eax
	movq	buffer, %rax
	ret

CODE	stores, 5, 1, 1, 4
	movb	%al, buffer
	movw	%ax, buffer
	movl	%eax, buffer
	movq	$0, buffer
	ret

CODE	modify, 5, 1, 5, 3
	incl	buffer
	addq	%rax, buffer
	xorl	buffer, %eax
	negb	buffer
	ret

CODE	stack, 9, 3, 6, 5
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
CODE	vectors, 8, 1, 5, 3, modern_code
	movdqa	buffer, %xmm0
	movups	buffer + 1, %xmm1
	paddd	buffer, %xmm0
	movsd	buffer, %xmm2
	movaps	%xmm0, buffer
	movdqu	%xmm1, buffer + 3
	movss	%xmm2, buffer
	ret

/* One access across the end of a line, or of a page */
CODE	split, 4, 1, 3, 1
	movq	buffer + 60, %rax
	movq	buffer + 4092, %rbx
	movl	%eax, buffer + 4094
	ret

/* A descriptor is one read; its data segment has been accessed before. */
CODE	segments, 5, 1, 4, 0
	movl	$USER_DS, %eax
	movl	%eax, %es
	movl	%eax, %es
	movl	%eax, %ds
	ret

CODE	locked, 6, 1, 5, 4
	lock incl buffer
	movl	$1, %eax
	xchgl	%eax, buffer
	lock xaddl %eax, buffer
	lock cmpxchgl %eax, buffer
	ret

CODE	not_data, 5, 1, 1, 0, modern_code
	leaq	buffer, %rax
	nopl	buffer(%rax)
	cmovzl	%eax, %ebx
	prefetchnta buffer
	ret

	/* Tests use the rest by name. */
	.globl	at_fault, at_rep_end, at_hlt_end

/* 6 instructions, 1 branch, once the access does not fault */
FUNCTION f_fault_load
	movl	$PAGED_AREA, %ebx
	nop
at_fault:
	movl	(%rbx), %eax
	nop
	nop
	ret

/* One instruction reads one page and writes another. */
FUNCTION f_fault_push
	movq	%rsp, %rdx
	movl	$PAGED_AREA + 4096 + 8, %esp
	pushq	PAGED_AREA
	movq	%rdx, %rsp
	ret

/* 5 instructions, 1 branch */
FUNCTION f_fault_rep
	movl	$PAGED_AREA, %edi
	movl	$8192 - 100, %ecx
	rep stosb
at_rep_end:
	nop
	ret

FUNCTION f_fault_fetch
	movl	$PAGED_AREA, %ebx
	call	*%rbx			/* a ret, once it is there */
	nop
	ret

FUNCTION f_fault_ud
	nop
	ud2
	nop
	ret

FUNCTION f_fault_div
	xorl	%edx, %edx
	movl	$1, %eax
	xorl	%ecx, %ecx
	divl	%ecx			/* again, with 1 */
	ret

FUNCTION f_fault_gp
	nop
	int	$VEC_CLOSED
	nop
	ret

FUNCTION f_int80
	nop
	int	$VEC_INT80
	int3
	nop
	ret

FUNCTION f_syscall
	nop
	syscall
	nop
	ret

/* 4 + 10 instructions under TF, and 3 without */
FUNCTION f_single_step
	pushfq
	orl	$0x100, (%rsp)
	popfq
	nop
	movl	$3, %ecx
1:	decl	%ecx
	jnz	1b
	nop
	pushfq
	andl	$~0x100, (%rsp)
	popfq
	ret

FUNCTION f_single_step_rep
	pushfq
	orl	$0x100, (%rsp)
	popfq
	movl	$pages, %edi
	movl	$5, %ecx
	rep stosb
	pushfq
	andl	$~0x100, (%rsp)
	popfq
	ret

	.globl	at_shadow_end
FUNCTION f_shadow
	movl	%ss, %eax
	movl	%eax, %ss
	nop
at_shadow_end:
	nop
	ret

/* 100,000 rounds, and a halt */
FUNCTION f_loop_hlt
	movl	$100000, %ecx
1:	decl	%ecx
	jnz	1b
	hlt
	ret

FUNCTION f_hlt
	nop
	hlt
at_hlt_end:
	nop
	ret

	.globl	at_loop
FUNCTION f_loop10
	movl	$10, %ecx
at_loop:
	decl	%ecx
	jnz	at_loop
	ret

/* A loop of 2 instructions, 1 branch; %ecx times */
FUNCTION long_loop
	movl	%edi, %ecx
1:	decl	%ecx
	jnz	1b
	ret

/* read_between: RDPMC of counter 0 before and after 10 nops; difference */
FUNCTION read_between
	xorl	%ecx, %ecx
	rdpmc
	movl	%eax, %r8d
	.fill	10, 1, 0x90
	rdpmc
	subl	%r8d, %eax
	ret

/* 2 * SAMPLED_ROUNDS + 2 instructions, SAMPLED_ROUNDS + 1 branches */
FUNCTION sampled_loop
	movl	$SAMPLED_ROUNDS, %ecx
1:	decl	%ecx
	jnz	1b
	ret

/* RDPMC of counter rdpmc_rcx, with the upper halves of %rax and %rdx set */
FUNCTION do_rdpmc
	movl	rdpmc_rcx, %ecx
	movq	$-1, %rax
	movq	%rax, %rdx
	rdpmc
	movq	%rax, rdpmc_rax
	movq	%rdx, rdpmc_rdx
	ret

FUNCTION spflt_one
	movl	$1, %eax
	.byte	0xc5, 0xfb, 0xae, 0xf0	/* spflt %eax */
	ret

/* 20 nops with the preference on, 30 with it off, 10 with it on again */
FUNCTION spflt_region
	movl	$1, %eax
	.byte	0xc5, 0xfb, 0xae, 0xf0	/* spflt %eax */
	.fill	20, 1, 0x90
	movl	$-2, %ecx
	.byte	0xc5, 0xfb, 0xae, 0xf1	/* spflt %ecx */
	.fill	30, 1, 0x90
	movl	$-1, %edx
	.byte	0xc5, 0xfb, 0xae, 0xf2	/* spflt %edx */
	.fill	10, 1, 0x90
	movl	$0, %ecx
	.byte	0xc5, 0xfb, 0xae, 0xf1	/* spflt %ecx */
	ret

/* For suite "trace" */
FUNCTION traced
	nop
	movl	$1, %eax
	.byte	0xc5, 0xfb, 0xae, 0xf0	/* spflt %eax */
	xorl	%ecx, %ecx
	rdpmc
	nop
	nop
	ret

	.data
scanned:
	.ascii	"abcdex            "
