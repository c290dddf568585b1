/* SPDX-License-Identifier: GPL-2.0-only */
#include "bare.h"

	.set	MAGIC, 0x1badb002
	.set	FLAGS, 0x00010000

	.section .multiboot, "a"
	.balign	4
header:
	.long	MAGIC, FLAGS, -(MAGIC + FLAGS)
	.long	header, header, _edata, _end, start

	.macro	SEGMENTS selector
	movl	$\selector, %eax
	.irp reg, ds, es, ss
	movl	%eax, %\reg
	.endr
	.endm

	.macro	EACH insn, regs:vararg
	.irp reg, \regs
	\insn	%\reg
	.endr
	.endm

	/* Switch the counters on, or off: 4 instructions */
	.macro	COUNTERS bits
	movl	$MSR_GLOBAL, %ecx
	movl	$\bits, %eax
	xorl	%edx, %edx
	wrmsr
	.endm

	.text
	.code32
	.globl	start
start:
	movl	%ebx, boot_info
	movl	$stacks + STACK_SIZE, %esp
	call	page_tables
	call	long_mode
	ljmp	$KERNEL_CS, $start64

/* 4 GiB, identity-mapped, open to ring 3; PAGED_AREA is in small pages. */
page_tables:
	movl	$pml4, %edi
	movl	$pdpt + 7, (%edi)
	movl	$pdpt, %edi
	movl	$pd + 7, %eax
1:	movl	%eax, (%edi)
	addl	$4096, %eax
	addl	$8, %edi
	cmpl	$pdpt + 32, %edi
	jne	1b
	movl	$pd, %edi
	movl	$0x87, %eax
2:	movl	%eax, (%edi)
	addl	$0x200000, %eax
	addl	$8, %edi
	cmpl	$pd + 4 * 4096, %edi
	jne	2b
	movl	$paged_table + 7, pd + (PAGED_AREA >> 21) * 8
	ret

	.globl	long_mode
long_mode:
	movl	$0x6a0, %eax		/* PAE, PGE, OSFXSR, OSXMMEXCPT */
	movl	%eax, %cr4
	movl	$pml4, %eax
	movl	%eax, %cr3
	movl	$0xc0000080, %ecx	/* EFER: SCE, LME */
	movl	$0x101, %eax
	xorl	%edx, %edx
	wrmsr
	lgdt	gdt_pointer
	movl	$0x80010033, %eax	/* PG, WP, NE, ET, MP, PE */
	movl	%eax, %cr0
	ret

	.code64
	.globl	start64
start64:
	SEGMENTS KERNEL_DS
	xorl	%eax, %eax
	movl	%eax, %fs
	movl	%eax, %gs
#ifdef BOARD
	movl	0xfee00020, %eax	/* Not always the first thread boots. */
	shrl	$APIC_ID_SHIFT, %eax
	imull	$STACK_SIZE, %eax
	leal	stacks + STACK_SIZE(%eax), %esp
#else
	movl	$stacks + STACK_SIZE, %esp
#endif
	xorl	%ebp, %ebp
	call	main
1:	hlt
	jmp	1b

/* The other threads start here in real mode, at TRAMPOLINE. */
	.code16
	.globl	trampoline, trampoline_end
trampoline:
	cli
	xorw	%ax, %ax
	movw	%ax, %ds
	lgdtl	TRAMPOLINE + (tramp_gdt - trampoline)
	movl	$0x11, %eax
	movl	%eax, %cr0
	ljmpl	$0x08, $TRAMPOLINE + (tramp32 - trampoline)
	.code32
tramp32:
	SEGMENTS 0x10
	movl	$0xfee00020, %eax
	movl	(%eax), %ebx
	shrl	$APIC_ID_SHIFT, %ebx
	movl	%ebx, %eax
	incl	%eax
	imull	$STACK_SIZE, %eax
	addl	$stacks, %eax
	movl	%eax, %esp
	movl	$long_mode, %eax
	call	*%eax
	ljmp	$KERNEL_CS, $ap64
	.balign	8
tramp_gdt_table:
	.quad	0, 0x00cf9b000000ffff, 0x00cf93000000ffff
tramp_gdt:
	.word	. - tramp_gdt_table - 1
	.long	TRAMPOLINE + (tramp_gdt_table - trampoline)
trampoline_end:

	.code64
ap64:
	SEGMENTS KERNEL_DS
	movl	%esp, %esp
	xorl	%ebp, %ebp
	movl	%ebx, %edi
	call	ap_main
1:	hlt
	jmp	1b

/* Traps: every stub pushes its vector, and an error code if the CPU did not. */
	.balign	16
	.globl	trap_stubs
trap_stubs:
	.set	vector, 0
	.rept	256
	.balign	16
	.if !((vector == 8) || ((vector >= 10) && (vector <= 14)) || (vector == 17))
	pushq	$0
	.endif
	pushq	$vector
	jmp	trap_common
	.set	vector, vector + 1
	.endr

trap_common:
	EACH	pushq, rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	cld
	movq	%rsp, %rdi
	call	trap
	.globl	trap_return
trap_return:
	EACH	popq, r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax
	addq	$16, %rsp
	iretq

/*
 * measure0: call *%rdi with both counters on. They also count call, movl, movl,
 * xorl, wrmsr: 5 instructions, 1 branch; but not the wrmsr that starts them.
 */
	.globl	measure0
measure0:
	EACH	pushq, rbx, rbp, r12, r13, r14, r15
	movq	%rdi, %r8
	COUNTERS 3
	call	*%r8
	COUNTERS 0
	EACH	popq, r15, r14, r13, r12, rbp, rbx
	ret

/*
 * user_run: the same in ring 3, with IOPL 3 and without interrupts. The counters
 * also count, in ring 3, call, int: 2 instructions, 2 branches; and in ring 0
 * iretq, movl, movl, xorl, wrmsr: 5 instructions, 1 branch.
 */
	.globl	user_run, user_return, user_stub
user_run:
	EACH	pushq, rbx, rbp, r12, r13, r14, r15
	movq	%rdi, %r8
	movq	%rsp, saved_rsp
	pushq	$USER_DS
	pushq	$user_stack + STACK_SIZE
	pushq	$0x3002
	pushq	$USER_CS
	pushq	$user_stub
	COUNTERS 3
	iretq
	.balign	64			/* in a separate line of code */
user_stub:
	call	*%r8
	int	$VEC_RETURN
user_return:
	COUNTERS 0
	movq	saved_rsp, %rsp
	EACH	popq, r15, r14, r13, r12, rbp, rbx
	ret

	.globl	syscall_entry
syscall_entry:
	sysretq

	.data
	.balign	8
	.globl	gdt, gdt_pointer
gdt:
	.quad	0
	.quad	0x00af9b000000ffff	/* kernel code */
	.quad	0x00cf93000000ffff	/* kernel data */
	.quad	0x00cff3000000ffff	/* user data */
	.quad	0x00affb000000ffff	/* user code */
	.fill	2 * MAX_CPUS, 8, 0	/* TSS of each CPU */
gdt_pointer:
	.word	. - gdt - 1
	.quad	gdt
	.globl	boot_info, saved_rsp
boot_info:
	.long	0
saved_rsp:
	.quad	0

	.bss
	.balign	4096
	.globl	pml4, pdpt, pd, paged_table
pml4:		.skip	4096
pdpt:		.skip	4096
pd:		.skip	4 * 4096
paged_table:	.skip	4096
	.globl	stacks, trap_stacks, user_stack
stacks:		.skip	STACK_SIZE * MAX_CPUS
trap_stacks:	.skip	STACK_SIZE * MAX_CPUS
user_stack:	.skip	STACK_SIZE
