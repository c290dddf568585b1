/* SPDX-License-Identifier: GPL-2.0-only */
/* A bare program on the board: what head.S and board.c share */
#ifndef BOARD_H
#define BOARD_H

#define MAX_CPUS	248
#define STACK_SIZE	8192
#define STACKS		0x1000000
#define TRAMPOLINE	0x8000
#define VEC_FIXED	0x40
#define APIC_BASE	0xfee00000

#endif
