/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __k1om__
/*
 * unit_over(before, after, nr, a, b, c): load the vector unit's registers and masks, make a
 * system call, store them, and return what the call does.
 */
.text
.macro UNIT opcode, base
	.set	n, 0
	.rept	32
	.byte	0x62, 0xf1 ^ (n & 16) ^ ((n & 8) << 4), 0x78, 0x08, \opcode
	.byte	0x80 | \base | (n & 7) << 3
	.long	64 * n
	.set	n, n + 1
	.endr
.endm
.globl	unit_over
unit_over:
	pushq	%rbx
	movq	%rdx, %rbx
	movq	%rsi, %r10
	pushq	%r10
	UNIT	0x28, 7
	.set	n, 0
	.rept	8
	movl	2048 + 4 * n(%rdi), %eax
	.byte	0xc5, 0xf8, 0x92, 0xc0 | n << 3
	.set	n, n + 1
	.endr
	movq	%rbx, %rax
	movq	%rcx, %rdi
	movq	%r8, %rsi
	movq	%r9, %rdx
	syscall
	popq	%rsi
	movq	%rax, %rdx
	UNIT	0x29, 6
	.set	n, 0
	.rept	8
	.byte	0xc5, 0xf8, 0x93, 0xc0 | n
	movl	%eax, 2048 + 4 * n(%rsi)
	.set	n, n + 1
	.endr
	movq	%rdx, %rax
	popq	%rbx
	ret
#endif
	.section .note.GNU-stack, "", @progbits
