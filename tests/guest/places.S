/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kernel entries, each with registers and a stack that differ from those before it, so
 * that a sample with stale registers is noticed.
 *
 * void place_NAME(void *page, char *first_stack, char *second_stack)
 *
 * From place_NAME_run to place_NAME_end the registers are the second set. The entry is
 * at place_NAME_site, and returns to place_NAME_after. All other instructions have one
 * byte.
 */
#include <asm/unistd.h>

	.bss
	.p2align 3
saved_sp:
	.quad	0

	.text

.macro REGISTERS of
	mov	$(\of + 0), %ebx
	mov	$(\of + 1), %ebp
	mov	$(\of + 2), %r12d
	mov	$(\of + 3), %r13d
	mov	$(\of + 4), %r14d
	mov	$(\of + 5), %r15d
.endm

.macro LABEL name
	.globl	\name
\name:
.endm

.macro PLACE name insn:vararg
	.globl	\name
	.type	\name, @function
	.p2align 6
\name:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	%rsp, saved_sp(%rip)
	mov	%rsi, %rsp
	REGISTERS 0xa0
	mov	$__NR_getppid, %eax
	syscall
	mov	%rdx, %rsp
	REGISTERS 0xb0
	mov	$__NR_getppid, %eax
LABEL \name\()_run
	.rept	64
	nop
	.endr
LABEL \name\()_site
	\insn
LABEL \name\()_after
	.rept	64
	nop
	.endr
LABEL \name\()_end
	mov	saved_sp(%rip), %rsp
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret
	.size	\name, . - \name
.endm

	PLACE place_syscall, syscall
	PLACE place_fault, mov (%rdi), %ecx
	PLACE place_int3, int3

/*
 * void place_loop(u64 n): n iterations of 20 instructions of one or three bytes; four
 * registers have the number of iterations left.
 */
	.globl	place_loop
	.type	place_loop, @function
	.p2align 6
place_loop:
	push	%rbx
	push	%r12
	push	%r13
LABEL place_loop_lo
1:	mov	%rdi, %rbx
	mov	%rdi, %r12
	mov	%rdi, %r13
	.rept	15
	nop
	.endr
	dec	%rdi
	jnz	1b
LABEL place_loop_hi
	pop	%r13
	pop	%r12
	pop	%rbx
	ret
	.size	place_loop, . - place_loop

	.section .note.GNU-stack, "", @progbits
