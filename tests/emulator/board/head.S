/* SPDX-License-Identifier: GPL-2.0-only */
#include "board.h"

	/* Linux's boot protocol 2.06: one more sector of setup; the boot flag; ... */
	.section .setup, "a"
	.org	0x1f1
	.byte	1
	.org	0x1fe
	.word	0xaa55
	.byte	0xeb, 0x66		/* ...; the header ends at 0x268 */
	.ascii	"HdrS"
	.word	0x206
	.org	0x211
	.byte	1			/* loaded high */
	.org	0x22c
	.long	0x7fffffff		/* end of the initrd */
	.org	1024

	/* The entry for 32-bit code is first; the board does not use it. */
	.section .head, "ax"
	.code64
	ud2
	.org	0x200
	.globl	start64
start64:
	/* The TSS and the mapping of 4 GiB are part of what the kernel relies on. */
	movl	$0x20, %eax
	ltr	%ax
	movq	%rsi, boot_params
	movl	$STACKS + STACK_SIZE, %esp
	call	tables
	xorl	%edi, %edi
	call	main
1:	hlt
	jmp	1b

/* The first 4 GiB as they are, and 1 GiB at the SBOX and at the host's window */
tables:
	movl	$pdpt, %eax
	orl	$7, %eax
	movl	%eax, pml4
	movl	$pdpt_host, %eax
	orl	$7, %eax
	movl	%eax, pml4 + 8
	movl	$pd, %eax
	orl	$7, %eax
	movl	$pdpt, %edi
	movl	$4, %ecx
1:	movl	%eax, (%edi)
	addl	$4096, %eax
	addl	$8, %edi
	loop	1b
	movl	%eax, pdpt + 32 * 8	/* 0x800000000 */
	addl	$4096, %eax
	movl	%eax, pdpt_host		/* 0x8000000000 */
	movl	$pd, %edi
	movl	$0x87, %eax
	xorl	%edx, %edx
	movl	$4 * 512, %ecx
	call	2f
	movl	$0x87, %eax
	movl	$8, %edx
	movl	$512, %ecx
	call	2f
	movl	$0x87, %eax
	movl	$0x80, %edx
	movl	$512, %ecx
	call	2f
	movl	$paged + 7, %eax	/* the 2 MiB at 0x40000000, in pages of 4 KiB */
	movl	%eax, pd + 512 * 8
	movl	$0, pd + 512 * 8 + 4
	movl	$pml4, %eax
	movq	%rax, %cr3
	lgdt	gdt_pointer
	pushq	$0x10
	leaq	3f(%rip), %rax
	pushq	%rax
	lretq
2:	movl	%eax, (%edi)
	movl	%edx, 4(%edi)
	addl	$0x200000, %eax
	addl	$8, %edi
	loop	2b
3:	ret

	.code16
	.globl	trampoline, trampoline_end
trampoline:
	cli
	xorw	%ax, %ax
	movw	%ax, %ds
	lgdtl	TRAMPOLINE + (tramp_gdt - trampoline)
	movl	$0x620, %eax		/* PAE, OSFXSR, OSXMMEXCPT */
	movl	%eax, %cr4
	movl	$pml4, %eax
	movl	%eax, %cr3
	movl	$0xc0000080, %ecx
	movl	$0x100, %eax
	xorl	%edx, %edx
	wrmsr
	movl	$0x80000011, %eax
	movl	%eax, %cr0
	ljmpl	$0x10, $ap64
	.balign	8
tramp_gdt:
	.word	6 * 8 - 1
	.long	gdt
trampoline_end:

	.code64
	.text
/* APIC IDs are those of the chip, so each thread finds its stack by its own. */
ap64:
	movl	$0x18, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	movl	$APIC_BASE + 0x20, %eax
	movl	(%eax), %edi
	shrl	$23, %edi
	movl	%edi, %eax
	incl	%eax
	imull	$STACK_SIZE, %eax
	addl	$STACKS, %eax
	movl	%eax, %esp
	xorl	%ebp, %ebp
	call	ap_main
1:	hlt
	jmp	1b

#include "../traps.inc"

/*
 * vectors_save(buf), vectors_load(buf): 32 vectors and 8 masks. The first of each
 * eight vectors has a displacement of one byte, which counts vectors, the next one
 * none, and the rest have displacements of four bytes.
 */
	.macro	VECTOR opcode, n, disp
	.byte	0x62, 0xf1 ^ (\n & 0x10) ^ ((\n & 8) << 4), 0x78, 0x08, \opcode
	.if \disp == 1
	.byte	0x47 | (\n & 7) << 3, \n
	.else
	.byte	0x87 | (\n & 7) << 3
	.long	64 * \n
	.endif
	.endm

	.macro	VECTORS opcode
	.set	n, 0
	.rept	32
	.if n & 7
	VECTOR	\opcode, n, 4
	.else
	VECTOR	\opcode, n, 1
	.endif
	.set	n, n + 1
	.endr
	.endm

	.globl	vectors_save, vectors_load
vectors_save:
	VECTORS	0x29
	.set	n, 0
	.rept	8
	.byte	0xc5, 0xf8, 0x93, 0xc0 | n	/* kmov %kn, %eax */
	movl	%eax, 2048 + 4 * n(%rdi)
	.set	n, n + 1
	.endr
	ret

vectors_load:
	VECTORS	0x28
	.set	n, 0
	.rept	8
	movl	2048 + 4 * n(%rdi), %eax
	.byte	0xc5, 0xf8, 0x92, 0xc0 | n << 3	/* kmov %eax, %kn */
	.set	n, n + 1
	.endr
	ret

	.data
	.balign	8
	.globl	gdt
gdt:
	.quad	0, 0
	.quad	0x00af9b000000ffff, 0x00cf93000000ffff
	.quad	0x0000890000000067, 0
gdt_pointer:
	.word	6 * 8 - 1
	.quad	gdt
	.globl	boot_params
boot_params:
	.quad	0

	.bss
	.balign	4096
	.globl	paged
pml4:		.skip	4096
pdpt:		.skip	4096
pdpt_host:	.skip	4096
pd:		.skip	6 * 4096
paged:		.skip	4096
