/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loops whose length is known to the instruction, and the same loops between
 * the two system calls that let an event count.
 *
 * What measured_*() executes apart from the iterations does not depend on
 * their number: the difference between two runs is exactly the iterations.
 */
#include <asm/unistd.h>

#define IOC_ENABLE	0x2400		/* PERF_EVENT_IOC_ENABLE, _IO('$', 0) */
#define IOC_DISABLE	0x2401		/* PERF_EVENT_IOC_DISABLE, _IO('$', 1) */

	.text

/* 20 instructions with the decrement and the jump: 18 of the cheapest kind */
.macro BODY18
	.rept 18
	nop
	.endr
.endm

.macro LOOP name body
	.globl	\name
	.type	\name, @function
	.p2align 6
\name:
	test	%rdi, %rdi
	jz	2f
	.globl	\name\()_lo
\name\()_lo:
1:
	.if	\body
	BODY18
	.endif
	dec	%rdi
	jnz	1b
	.globl	\name\()_hi
\name\()_hi:
2:	ret
	.size	\name, . - \name
.endm

	LOOP	spin, 0
	LOOP	spin20, 1

/* long name(int fd, u64 n, unsigned long flags) */
.macro MEASURED name loop
	.globl	\name
	.type	\name, @function
	.p2align 6
\name:
	push	%rbx
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	%rdi, %rbx
	mov	%rsi, %r12
	mov	%rdx, %r13
	mov	$__NR_ioctl, %eax
	mov	$IOC_ENABLE, %esi
	syscall
	mov	%rax, %r14
	mov	%r12, %rdi
	call	\loop
	mov	$__NR_ioctl, %eax
	mov	%rbx, %rdi
	mov	$IOC_DISABLE, %esi
	mov	%r13, %rdx
	syscall
	add	%r14, %rax
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbx
	ret
	.size	\name, . - \name
.endm

	MEASURED measured_spin, spin
	MEASURED measured_spin20, spin20

	.section .note.GNU-stack, "", @progbits
