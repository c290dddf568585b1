// SPDX-License-Identifier: GPL-2.0-only
/* What a PC has for a bare program: a serial line, and ports */
#include "bare.h"

#define COM1	0x3f8
#define EXIT	0xf4
#define PIC0_MASK	0x21
#define PIC1_MASK	0xa1

const struct window windows[] = { { APIC, 4096 } };
const u32 windows_quiet = 1, windows_all = 1;

void setup_machine(void)
{
	/* Only the PMU may interrupt. */
	outb(PIC0_MASK, 0xff);
	outb(PIC1_MASK, 0xff);
	for (int i = 0; i < 16; i++)
		map_page(i, 1);
	/* Multiboot's */
	cmdline = (char *)(u64)((u32 *)(u64)boot_info)[4];
}

const void *behind_program(void)
{
	const u32 *info = (u32 *)(u64)boot_info;

	/* Multiboot's first module */
	return info[0] & BIT(3) && info[5] ? (void *)(u64)*(u32 *)(u64)info[6] : 0;
}

void put(const char *s, u32 size)
{
	while (size--) {
		while (!(inb(COM1 + 5) & 0x20))
			;
		outb(COM1, *s++);
	}
}

void quit(int failed)
{
	outb(EXIT, failed);
	for (;;)
		asm volatile("hlt");
}

/* Wait a moment for another CPU. */
void relax(void)
{
	asm volatile("pause" : : : "memory");
}
