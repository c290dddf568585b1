/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * For programs that measure themselves on a Knights Corner coprocessor: SPFLT,
 * RDPMC and RDTSC (Intel document 327357-001, 1.3.1.1 and 1.4.2). C99 or C++,
 * no library. On any other CPU SPFLT does nothing and RDPMC says that it cannot.
 *
 *	spflt_region {
 *		what shall be counted;
 *	}
 *
 * and then: perf stat -e cpu/instructions_executed,spflt/ ./program
 */
#ifndef KNC_PMU_USER_H
#define KNC_PMU_USER_H

#include <errno.h>
#include <stdint.h>
#include <linux/perf_event.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__x86_64__) || defined(__k1om__)
#define KNC_PMU_X86 1
#endif

/**
 * knc_cpu() - is this CPU a Knights Corner?
 *
 * It asks CPUID, which is slow, once for each file that includes this.
 *
 * Return: 1 if it is (GenuineIntel, family 11, model 1), else 0.
 */
static inline int knc_cpu(void)
{
#ifdef KNC_PMU_X86
	static int known;	/* 0: not asked yet, 1: no, 2: yes */

	if (!known) {
		uint32_t eax = 0, ebx, ecx = 0, edx, signature;

		__asm__ volatile("cpuid" : "+a" (eax), "=b" (ebx), "+c" (ecx), "=d" (edx));
		/* "Genu" "ineI" "ntel" */
		known = 1;
		if (ebx == 0x756e6547 && edx == 0x49656e69 && ecx == 0x6c65746e) {
			signature = 1;
			ecx = 0;
			__asm__ volatile("cpuid" : "+a" (signature), "=b" (ebx),
					 "+c" (ecx), "=d" (edx));
			/* Family and model; the stepping may be any. */
			if ((signature & 0x0fff0ff0) == 0xb10)
				known = 2;
		}
	}
	return known == 2;
#else
	return 0;
#endif
}

#ifdef KNC_PMU_X86
/* SPFLT %eax. Compilers and assemblers do not know it: VEX.128.F2.0F AE /6. */
static inline void knc_spflt(uint32_t preference)
{
	__asm__ volatile(".byte 0xc5, 0xfb, 0xae, 0xf0" : : "a" (preference) : "memory");
}
#endif

/**
 * spflt_on() - from here on, count this thread's SPFLT events
 *
 * The preference belongs to the calling thread, is 0 when the first such event
 * is opened, and does not nest. The SPFLT instruction itself is not counted.
 */
static inline void spflt_on(void)
{
#ifdef KNC_PMU_X86
	if (knc_cpu())
		knc_spflt(1);
#endif
}

/**
 * spflt_off() - from here on, do not count this thread's SPFLT events
 *
 * The SPFLT instruction itself, and what it takes to get to it, is counted.
 */
static inline void spflt_off(void)
{
#ifdef KNC_PMU_X86
	if (knc_cpu())
		knc_spflt(0);
#endif
}

/**
 * knc_rdtsc() - read the time stamp counter
 *
 * Return: core clocks since reset; the same counter for the four threads of a
 * core, and no wall clock (1.4.3.1). 0 where there is none.
 */
static inline uint64_t knc_rdtsc(void)
{
#ifdef KNC_PMU_X86
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a" (low), "=d" (high) : : "memory");
	return (uint64_t)high << 32 | low;
#else
	return 0;
#endif
}

/**
 * knc_rdpmc() - read an event's count without a system call
 * @page: the first page of the event's mmap(2), of an event of this thread
 * @count: where the count goes, the same that read(2) would give
 *
 * See perf_event_open(2) for the protocol.
 *
 * Return: 0; -EOPNOTSUPP if programs cannot use RDPMC here, as with the module; -EAGAIN if
 * the event is not on a counter now. Then @count is as it was, and read(2) will tell.
 */
static inline int knc_rdpmc(const volatile struct perf_event_mmap_page *page,
			    uint64_t *count)
{
#ifdef KNC_PMU_X86
	uint32_t seq, index, low, high;
	uint64_t pmc, offset;
	unsigned int unused;

	do {
		seq = page->lock;
		__asm__ volatile("" : : : "memory");
		if (!page->cap_user_rdpmc || !page->pmc_width)
			return -EOPNOTSUPP;
		index = page->index;
		if (!index)
			return -EAGAIN;
		offset = (uint64_t)page->offset;
		unused = 64 - page->pmc_width;
		__asm__ volatile("rdpmc" : "=a" (low), "=d" (high) : "c" (index - 1));
		pmc = (uint64_t)high << 32 | low;
		__asm__ volatile("" : : : "memory");
	} while (page->lock != seq);

	/* The counter is a signed number of that width. */
	*count = offset + (uint64_t)((int64_t)(pmc << unused) >> unused);
	return 0;
#else
	(void)page;
	(void)count;
	return -EOPNOTSUPP;
#endif
}

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && __cplusplus >= 201103L

/* Counts from its construction to the end of its scope, exceptions included. */
class spflt_scope {
public:
	spflt_scope() { spflt_on(); }
	~spflt_scope() { spflt_off(); }
	spflt_scope(const spflt_scope &) = delete;
	spflt_scope &operator=(const spflt_scope &) = delete;
	explicit operator bool() const { return true; }
};

#define spflt_region	if (spflt_scope knc_spflt_scope_{})

#else

/* Counts the statement that follows. Do not leave it by break, goto or return. */
#define spflt_region							\
	for (int knc_spflt_once_ = (spflt_on(), 1); knc_spflt_once_;	\
	     knc_spflt_once_ = (spflt_off(), 0))

#endif /* C++11 */

#endif /* KNC_PMU_USER_H */
