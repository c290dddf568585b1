/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Code whose length is known to the instruction: loops, the same loops between the two
 * system calls that let an event count, and kernel entries.
 */
#include <asm/unistd.h>

#define IOC_ENABLE	0x2400		/* PERF_EVENT_IOC_ENABLE, _IO('$', 0) */
#define IOC_DISABLE	0x2401		/* PERF_EVENT_IOC_DISABLE, _IO('$', 1) */

.macro LABEL name
	.globl	\name
\name:
.endm

.macro FUNCTION name
	.type	\name, @function
	/* A card lacks the NOPs that would fill the gaps. */
#ifndef __k1om__
	.p2align 6
#endif
LABEL \name
.endm

.macro END name
	.size	\name, . - \name
.endm

.macro NOPS n
	.rept	\n
	nop
	.endr
.endm

.macro SAVE regs:vararg
	.irp	reg, \regs
	push	%\reg
	.endr
.endm

.macro RESTORE regs:vararg
	.irp	reg, \regs
	pop	%\reg
	.endr
.endm

	.bss
	.p2align 3
saved_sp:
	.quad	0

	.text

/* void name(u64 n): n iterations, each of these NOPs, the decrement and the jump */
.macro LOOP name nops
FUNCTION \name
	test	%rdi, %rdi
	jz	2f
LABEL \name\()_lo
1:	NOPS	\nops
	dec	%rdi
	jnz	1b
LABEL \name\()_hi
2:	ret
END \name
.endm

	LOOP	spin, 0
	LOOP	spin20, 18

/*
 * long name(int fd, u64 n)
 *
 * What it executes beside the iterations does not depend on their number.
 */
.macro MEASURED name loop
FUNCTION \name
	SAVE	rbx, r12, r14
	mov	%rdi, %rbx
	mov	%rsi, %r12
	xor	%edx, %edx
	mov	$__NR_ioctl, %eax
	mov	$IOC_ENABLE, %esi
	syscall
	mov	%rax, %r14
	mov	%r12, %rdi
	call	\loop
	mov	$__NR_ioctl, %eax
	mov	%rbx, %rdi
	mov	$IOC_DISABLE, %esi
	xor	%edx, %edx
	syscall
	add	%r14, %rax
	RESTORE	r14, r12, rbx
	ret
END \name
.endm

	MEASURED measured_spin, spin
	MEASURED measured_spin20, spin20

.macro REGISTERS of
	mov	$(\of + 0), %ebx
	mov	$(\of + 1), %ebp
	mov	$(\of + 2), %r12d
	mov	$(\of + 3), %r13d
	mov	$(\of + 4), %r14d
	mov	$(\of + 5), %r15d
.endm

/*
 * void place_NAME(void *page, char *first_stack, char *second_stack): a kernel entry,
 * with registers and a stack that differ from those before it, so that a sample with
 * stale registers is noticed.
 *
 * From place_NAME_run to place_NAME_end the registers are the second set. The entry is at
 * place_NAME_site, and returns to place_NAME_after. All other instructions have one byte.
 */
.macro PLACE name insn:vararg
FUNCTION \name
	SAVE	rbx, rbp, r12, r13, r14, r15
	mov	%rsp, saved_sp(%rip)
	mov	%rsi, %rsp
	REGISTERS 0xa0
	mov	$__NR_getppid, %eax
	syscall
	mov	%rdx, %rsp
	REGISTERS 0xb0
	mov	$__NR_getppid, %eax
LABEL \name\()_run
	NOPS	64
LABEL \name\()_site
	\insn
LABEL \name\()_after
	NOPS	64
LABEL \name\()_end
	mov	saved_sp(%rip), %rsp
	RESTORE	r15, r14, r13, r12, rbp, rbx
	ret
END \name
.endm

	PLACE place_syscall, syscall
	PLACE place_fault, mov (%rdi), %ecx
	PLACE place_int3, int3
	PLACE place_debug, nop

/* n rounds of 20 instructions of 1 or 3 bytes; registers have how many are left. */
FUNCTION place_loop
	SAVE	rbx, r12, r13
LABEL place_loop_lo
1:	mov	%rdi, %rbx
	mov	%rdi, %r12
	mov	%rdi, %r13
	NOPS	15
	dec	%rdi
	jnz	1b
LABEL place_loop_hi
	RESTORE	r13, r12, rbx
	ret
END place_loop

	.section .note.GNU-stack, "", @progbits
