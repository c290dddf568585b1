// SPDX-License-Identifier: GPL-2.0-only
#include "bare.h"
#include <stdarg.h>

trap_handler *handlers[256];
u8 pages[16][4096] __attribute__((aligned(4096)));

const u32 pmu_registers[VALUES] = {
	MSR_CNT0, MSR_CNT1, MSR_SEL0, MSR_SEL1, MSR_SPFLT, MSR_STATUS,
	MSR_GLOBAL,
};

static int last_vector, failures;
static u64 resume_at;		/* where to continue after an expected fault */
const char *cmdline;

extern u64 gdt[], gdt_pointer[];
extern char stacks[], trap_stacks[];

static struct {
	u16 off0, sel;
	u8 ist, type;
	u16 off1;
	u32 off2, zero;
} __attribute__((packed)) idt[256];

static u32 tss[MAX_CPUS][26];

static struct {
	void (*volatile fn)(void);
	volatile int up;
} cpu[MAX_CPUS];

static char *number(char *to, u64 n, unsigned int base)
{
	char digits[24];
	int i = 0;

	do {
		digits[i++] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n);
	while (i)
		*to++ = digits[--i];
	return to;
}

static void format(char *to, const char *fmt, va_list ap)
{
	for (; *fmt; fmt++) {
		const char *s;

		if (*fmt != '%') {
			*to++ = *fmt;
			continue;
		}
		switch (*++fmt) {
		case 's':
			for (s = va_arg(ap, const char *); *s; s++)
				*to++ = *s;
			break;
		case 'd':
			to = number(to, va_arg(ap, u32), 10);
			break;
		case 'x':
			to = number(to, va_arg(ap, u32), 16);
			break;
		case 'l':
			to = number(to, va_arg(ap, u64), *++fmt == 'x' ? 16 : 10);
			break;
		}
	}
	*to = 0;
}

void print(const char *fmt, ...)
{
	char buf[512];
	va_list ap;
	u32 size = 0;

	va_start(ap, fmt);
	format(buf, fmt, ap);
	va_end(ap);
	while (buf[size])
		size++;
	put(buf, size);
}

const char *text(const char *fmt, ...)
{
	static char buf[80];
	va_list ap;

	va_start(ap, fmt);
	format(buf, fmt, ap);
	va_end(ap);
	return buf;
}

void result(int good, const char *name, const char *fmt, ...)
{
	char why[256];
	va_list ap;

	if (good) {
		print("ok %s\n", name);
		return;
	}
	failures++;
	va_start(ap, fmt);
	format(why, fmt, ap);
	va_end(ap);
	print("FAIL %s: %s\n", name, why);
}

void near(const char *name, u64 got, u64 want, u64 more)
{
	result(got >= want && got <= want + more, name, "%ld, not %ld and %ld more",
	       got, want, more);
}

void trap(struct regs *r)
{
	if (handlers[r->vector]) {
		handlers[r->vector](r);
		return;
	}
	if (resume_at) {
		last_vector = r->vector;
		r->rip = resume_at;
		resume_at = 0;
		return;
	}
	print("FAIL trap: vector %d, error 0x%lx, at 0x%lx:0x%lx\n",
	      (u32)r->vector, r->error, r->cs, r->rip);
	quit(1);
}

/* Returns the vector of the fault in fn(), or -1. */
int __attribute__((noinline)) faults(void (*fn)(u64, u64), u64 a, u64 b)
{
	last_vector = -1;
	/* fn() may have changed anything before it faulted. */
	asm volatile("leaq 1f(%%rip), %%rax\n\t"
		     "movq %%rax, %0\n\t"
		     "movq %%rsp, %%rbx\n\t"
		     "call *%1\n"
		     "1:\n\t"
		     "movq %%rbx, %%rsp"
		     : "=m"(resume_at), "+r"(fn), "+D"(a), "+S"(b)
		     : : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11",
			 "memory", "cc");
	resume_at = 0;
	return last_vector;
}

/* Handlers; all but ignore() count their traps. */
int trapped;

void ignore(struct regs *r)
{
}

void count_trap(struct regs *r)
{
	trapped++;
}

void skip2(struct regs *r)
{
	count_trap(r);
	r->rip += 2;
}

void map_and_retry(struct regs *r)
{
	count_trap(r);
	map_page((read_cr2() - PAGED_AREA) / 4096, 1);
}

/* Software interrupts of ring 3 */
void handle_ints(trap_handler *handler)
{
	handlers[3] = handler;
	handlers[VEC_INT80] = handler;
}

volatile int ticked;

void take_timer(struct regs *r)
{
	ticked++;
	apic_write(APIC_EOI, 0);
}

void start_timer(u32 ticks)
{
	ticked = 0;
	handlers[VEC_TIMER] = take_timer;
	apic_write(APIC_DIVIDE, 0xb);
	apic_write(APIC_LVTT, VEC_TIMER);
	apic_write(APIC_TIMER, ticks);
}

void halt_until_timer(u32 ticks)
{
	start_timer(ticks);
	while (!ticked)
		asm volatile("sti; hlt; cli");
}

static int fault3;

/* A fault in ring 3: skip the rest of the function */
static void leave_ring3(struct regs *r)
{
	fault3 = r->vector;
	r->rip = *(u64 *)r->rsp;
	r->rsp += 8;
}

/* The same in ring 3; only the return address may be on fn()'s stack. */
int faults3(code *fn)
{
	fault3 = -1;
	handlers[UD] = leave_ring3;
	handlers[GP] = leave_ring3;
	user_run(fn);
	handlers[UD] = 0;
	handlers[GP] = 0;
	return fault3;
}

static void do_rdmsr(u64 msr, u64 unused)
{
	rdmsr(msr);
}

int rdmsr_faults(u32 msr)
{
	return faults(do_rdmsr, msr, 0);
}

static void do_wrmsr(u64 msr, u64 val)
{
	wrmsr(msr, val);
}

int wrmsr_faults(u32 msr, u64 val)
{
	return faults(do_wrmsr, msr, val);
}

u64 item(int cpu, int what)
{
	u32 lo;

	outl(TESTDEV, (u32)cpu << 16 | what);
	lo = inl(TESTDEV + 4);
	return lo | (u64)inl(TESTDEV + 8) << 32;
}

static u64 marked[MAX_CPUS][ITEMS];

/* since() is what has come to an item since mark(). */
void mark(void)
{
	for (int n = 0; n < MAX_CPUS; n++)
		for (int i = 0; i < ITEMS; i++)
			marked[n][i] = item(n, i);
}

u64 since(int cpu, int what)
{
	return item(cpu, what) - marked[cpu][what];
}

void map_page(int n, int present)
{
	paged_table[n] = present ? (u64)pages[n] | 7 : 0;
	asm volatile("invlpg (%0)" : : "r"(PAGED_AREA + n * 4096ul) : "memory");
}

/* All counters off and zero, LVTPC masked */
void pmu_quiet(void)
{
	wrmsr(MSR_GLOBAL, 0);
	wrmsr(MSR_SEL0, 0);
	wrmsr(MSR_SEL1, 0);
	wrmsr(MSR_CNT0, 0);
	wrmsr(MSR_CNT1, 0);
	wrmsr(MSR_SPFLT, 0);
	wrmsr(MSR_OVF, 3);
	apic_write(APIC_LVTPC, LVT_MASKED);
}

void others_quiet(void)
{
	for (int n = 1; n < ncpus(); n++)
		on_cpu(n, pmu_quiet);
}

/* Set up both counters; measure0() and user_run() switch them on. */
void program(u64 sel0, u64 sel1)
{
	pmu_quiet();
	wrmsr(MSR_SEL0, sel0 | SEL_EN);
	wrmsr(MSR_SEL1, sel1 | SEL_EN);
}

/* Count from here to switch_off(), with counter 0 alone if @sel1 is 0. */
void switch_on(u64 sel0, u64 sel1)
{
	pmu_quiet();
	wrmsr(MSR_SEL0, sel0 | SEL_EN);
	if (sel1)
		wrmsr(MSR_SEL1, sel1 | SEL_EN);
	wrmsr(MSR_GLOBAL, sel1 ? 3 : 1);
}

/* Returns the value of counter 0. */
u64 switch_off(void)
{
	wrmsr(MSR_GLOBAL, 0);
	return rdmsr(MSR_CNT0);
}

/* Set up counter 0 alone. */
void overflow_after(u64 events, u64 sel, u32 lvt)
{
	pmu_quiet();
	wrmsr(MSR_SEL0, sel | SEL_EN);
	wrmsr(MSR_CNT0, WRAP - events);
	apic_write(APIC_LVTPC, lvt);
}

/* The first PMI of a run */
struct pmi pmi;

static void take_pmi(struct regs *r)
{
	wrmsr(MSR_GLOBAL, 0);
	r->rflags &= ~BIT(16); /* RF, which QEMU 10 sets for an NMI */
	if (!pmi.count++) {
		pmi.rip = r->rip;
		pmi.cs = r->cs;
		pmi.status = rdmsr(MSR_STATUS);
	}
	if (r->vector == VEC_PMI)
		apic_write(APIC_EOI, 0);
}

void arm_pmi(u64 sel, u64 after, u32 lvt)
{
	pmi.count = 0;
	handlers[2] = take_pmi;
	handlers[VEC_PMI] = take_pmi;
	overflow_after(after, sel, lvt);
}

/* One interrupt, and its place */
int came_at(void *rip, u64 cs)
{
	return pmi.count == 1 && pmi.rip == (u64)rip && pmi.cs == cs &&
	       pmi.status == 1;
}

/* Whether the interrupt @after events of fn() is not there */
int misses(void *rip, code *fn, u64 sel, u64 after)
{
	arm_pmi(sel | SEL_OS | SEL_INT, after, LVT_NMI);
	measure0(fn);
	return !came_at(rip, KERNEL_CS);
}

/* The events in ring 0, or in ring 3, of a run of fn() there */
u64 count0(code *fn, u64 sel)
{
	program(sel | SEL_OS, 0);
	measure0(fn);
	return rdmsr(MSR_CNT0);
}

u64 count3(code *fn, u64 sel)
{
	program(sel | SEL_USR, 0);
	user_run(fn);
	return rdmsr(MSR_CNT0);
}

void count_each(u64 (*count)(code *fn, u64 sel), const struct counting *c, u32 n)
{
	for (; n; n--, c++)
		check(c->name, count(c->fn, c->sel), c->want);
}

/* Allow RDPMC in ring 3. */
void set_pce(int on)
{
	write_cr4(on ? read_cr4() | 0x100 : read_cr4() & ~0x100ul);
}

void cpuid(u32 leaf, u32 r[4])
{
	r[0] = leaf;
	r[2] = 0;
	asm volatile("cpuid" : "+a"(r[0]), "=b"(r[1]), "+c"(r[2]), "=d"(r[3]));
}

/* Returns true if CPUID has CMOV: on knc-strict it has not. */
int modern(void)
{
	static int answer = -1;
	u32 r[4];

	if (answer < 0) {
		cpuid(1, r);
		answer = r[3] >> 15 & 1;
	}
	return answer;
}

static void set_gate(int vector, u64 handler, int dpl)
{
	idt[vector].off0 = handler;
	idt[vector].sel = KERNEL_CS;
	idt[vector].ist = 0;
	idt[vector].type = 0x8e | dpl << 5;
	idt[vector].off1 = handler >> 16;
	idt[vector].off2 = handler >> 32;
}

/* CPU 0 takes all traps on one stack, and NMIs on another: RSP may be anything. */
void own_stacks(void)
{
	u64 *ist = (u64 *)&tss[0][9];

	ist[0] = (u64)trap_stacks + 2 * STACK_SIZE;
	ist[1] = (u64)trap_stacks + 3 * STACK_SIZE;
	for (int i = 0; i < 256; i++)
		idt[i].ist = i == 2 ? 2 : 1;
}

static void setup_cpu(u32 n)
{
	struct { u16 limit; u64 base; } __attribute__((packed)) idtr = {
		sizeof(idt) - 1, (u64)idt
	};
	u64 base = (u64)tss[n], rsp0 = (u64)trap_stacks + (n + 1) * STACK_SIZE;
	u64 *desc = gdt + TSS_SEL(n) / 8;

	desc[0] = 103 | (base & 0xffffff) << 16 | 0x89ul << 40 |
		  (base >> 24 & 0xff) << 56;
	desc[1] = base >> 32;
	tss[n][1] = rsp0;
	tss[n][2] = rsp0 >> 32;
	asm volatile("lidt %0; ltr %w1" : : "m"(idtr), "r"(TSS_SEL(n)));
	wrmsr(0xc0000081, (u64)KERNEL_CS << 32 | (u64)(KERNEL_DS | 3) << 48);
	wrmsr(0xc0000082, (u64)syscall_entry);
	apic_write(APIC_SVR, 0x1ff);
}

void ap_main(int n)
{
	setup_cpu(n);
	cpu[n].up++;
	for (;;) {
		if (cpu[n].fn) {
			cpu[n].fn();
			cpu[n].fn = 0;
		}
		relax();
	}
}

/* How often a CPU has started since it was stopped */
int cpu_starts(int n)
{
	return cpu[n].up;
}

void on_cpu_start(int n, void (*fn)(void))
{
	cpu[n].fn = fn;
}

int on_cpu_done(int n)
{
	return !cpu[n].fn;
}

void on_cpu_wait(int n)
{
	while (!on_cpu_done(n))
		relax();
}

void on_cpu(int n, void (*fn)(void))
{
	on_cpu_start(n, fn);
	on_cpu_wait(n);
}

void delay(u64 ticks)
{
	u64 end = rdtsc() + ticks;

	while (rdtsc() < end)
		relax();
}

static void icr(int n, u32 command)
{
	apic_write(APIC_ICR2, n << 24);
	apic_write(APIC_ICR, command);
	delay(2000000);
}

void send_nmi(int n)
{
	apic_write(APIC_ICR2, n << 24);
	apic_write(APIC_ICR, 0x4400);
}

/* INIT: the CPU drops what it does, and waits for a SIPI. */
void stop_cpu(int n)
{
	cpu[n].up = 0;
	cpu[n].fn = 0;
	icr(n, 0x4500);
}

/* INIT, then SIPI: the CPU restarts at the trampoline. */
void init_cpu(int n)
{
	stop_cpu(n);
	icr(n, 0x4600 | TRAMPOLINE >> 12);
	while (!cpu[n].up)
		relax();
}

/* CPU 0 sets @wake and sends an NMI, which may come before the hlt. */
static volatile int wake[MAX_CPUS], asleep[MAX_CPUS];

void wait_for_nmi(void)
{
	int me = this_cpu();

	asleep[me] = 1;
	while (!wake[me])
		asm volatile("hlt");
}

/* An NMI's handler may do so, too. */
void stay_awake(void)
{
	wake[this_cpu()] = 1;
}

/* Until the other CPU is about to halt, and long enough for it to do so */
void send_to_sleep(int n, void (*fn)(void))
{
	wake[n] = 0;
	asleep[n] = 0;
	on_cpu_start(n, fn);
	while (!asleep[n])
		relax();
	delay(50000000);
}

void wake_up(int n)
{
	wake[n] = 1;
	while (!on_cpu_done(n)) {
		send_nmi(n);
		delay(100000);
	}
}

/* Logical processors of the package, by CPUID */
int ncpus(void)
{
	u32 r[4];

	cpuid(1, r);
	return r[3] & BIT(28) ? r[1] >> 16 & 0xff : 1;
}

void copy_trampoline(void)
{
	for (int i = 0; i < trampoline_end - trampoline; i++)
		((volatile u8 *)TRAMPOLINE)[i] = trampoline[i];
}

void start_so_many_cpus(int count)
{
	copy_trampoline();
	for (int n = 1; n < count; n++)
		init_cpu(n);
}

void start_cpus(void)
{
	start_so_many_cpus(ncpus());
}

/* What follows in the command line if one of its words begins so, or 0 */
const char *find(const char *begin)
{
	for (const char *s = cmdline; *s; s++) {
		int n = 0;

		while (begin[n] && s[n] == begin[n])
			n++;
		if (!begin[n] && (s == cmdline || s[-1] == ' '))
			return s + n;
	}
	return 0;
}

/* A number follows, decimal or with 0x, and then a comma or a blank. */
u64 number_of(const char *begin)
{
	const char *s = find(begin);
	u32 base = s && s[0] == '0' && s[1] == 'x' ? 16 : 10;
	u64 n = 0;

	for (s += base == 16 ? 2 : 0; s && *s > ' ' && *s != ','; s++)
		n = n * base + (*s >= 'a' ? *s - 'a' + 10 : *s - '0');
	return n;
}

int same(const void *a, const void *b, u32 size)
{
	const u8 *p = a, *q = b;

	while (size && *p == *q)
		p++, q++, size--;
	return !size;
}

extern const struct suite __start_suites[], __stop_suites[];

int main(void)
{
	int ran = 0;

	for (int i = 0; i < 256; i++)
		set_gate(i, (u64)trap_stubs + 16 * i, i == 3 || i == VEC_INT80 ? 3 : 0);
	set_gate(VEC_RETURN, (u64)user_return, 3);
	setup_cpu(this_cpu());
	setup_machine();

	for (const struct suite *s = __start_suites; s < __stop_suites; s++) {
		const char *rest = find(s->name);

		if (rest && (!*rest || *rest == ' ')) {
			s->run();
			ran++;
		}
	}
	print("done %d %d\n", ran, failures);
	quit(!ran || failures);
	return 0;
}
