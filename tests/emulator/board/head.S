/* SPDX-License-Identifier: GPL-2.0-only */
#include "../bare.h"

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

	/*
	 * The entry for 32-bit code is first. The image is not where it was linked for, and
	 * there is no stack but a word of the boot parameters, which %esi points to.
	 */
	.section .head, "ax"
	.code32
head:
	movl	%esi, %ebx
	leal	0x1e8(%esi), %esp
	call	1f
1:	popl	%esi
	subl	$1b - head, %esi
	movl	%esi, %edx
	pushfl
	popl	%ebp
	movl	$head, %edi
	movl	$_edata, %ecx
	subl	%edi, %ecx
	cld
	rep movsb
	movl	%edx, entry_address
	movl	%ebp, entry_flags
	movl	%cr0, %eax
	movl	%eax, entry_cr0
	movl	$start, %eax
	jmp	*%eax
	.org	0x200
	.code64
	/* The TSS and the mapping of 4 GiB are part of what the kernel relies on. */
	movl	$0x20, %eax
	ltr	%ax
	movl	%esi, boot_info
	movl	$stacks + STACK_SIZE, %esp
	call	map_memory
	movl	$pml4, %eax
	movq	%rax, %cr3
	lgdt	gdt_pointer
	pushq	$KERNEL_CS
	pushq	$start64
	lretq
