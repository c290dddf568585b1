/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For cases.c: the state of the vector unit and of the general registers before and after
 * one piece of code. The places of an image's parts are those of struct image.
 */
#include "bare.h"

	.set	MASKS, 2048
	.set	REGISTERS, 2080
	.set	FLAGS, 2208
	.set	MXCSR, 2216

	/*
	 * Between 32 vectors and 64 bytes each at (%rdi). The first of eight has a displacement of
	 * one byte, which counts vectors, the others have four bytes.
	 */
	.macro	VECTORS opcode
	.set	n, 0
	.rept	32
	.byte	0x62, 0xf1 ^ (n & 0x10) ^ ((n & 8) << 4), 0x78, 0x08, \opcode
	.if	n & 7
	.byte	0x87 | (n & 7) << 3
	.long	64 * n
	.else
	.byte	0x47, n
	.endif
	.set	n, n + 1
	.endr
	.endm

	/* All registers but RSP, in their order of numbers */
	.macro	REGISTERS_OF image, store
	.set	n, 0
	.irp reg, rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	.if n != 4
	.if \store
	movq	%\reg, \image + REGISTERS + 8 * n
	.else
	movq	\image + REGISTERS + 8 * n, %\reg
	.endif
	.endif
	.set	n, n + 1
	.endr
	.endm

	.globl	case_load, case_save, case_code, case_body, case_end, vectors_load, vectors_save
/* case_load(image), case_save(image): MXCSR, vectors and masks; the others without MXCSR */
case_load:
	ldmxcsr	MXCSR(%rdi)
vectors_load:
	VECTORS	0x28
	.set	n, 0
	.rept	8
	movl	MASKS + 4 * n(%rdi), %eax
	.byte	0xc5, 0xf8, 0x92, 0xc0 | n << 3	/* kmov %eax, %kn */
	.set	n, n + 1
	.endr
	ret

case_save:
	stmxcsr	MXCSR(%rdi)
vectors_save:
	VECTORS	0x29
	.set	n, 0
	.rept	8
	.byte	0xc5, 0xf8, 0x93, 0xc0 | n	/* kmov %kn, %eax */
	movl	%eax, MASKS + 4 * n(%rdi)
	.set	n, n + 1
	.endr
	ret

/* In ring 0 or 3: the code, with the registers of case_now before and after it */
case_body:
	movq	%rsp, case_rsp
	pushq	case_now + FLAGS
	popfq
	REGISTERS_OF case_now, 0
	call	case_code
case_end:			/* or a fault in it */
	REGISTERS_OF case_now, 1
	movq	case_rsp, %rsp
	pushfq
	popq	case_now + FLAGS
	ret

	.section .bss
	.balign	4096
case_code:	.skip	4096
	.local	case_rsp
case_rsp:	.skip	8
