/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the driver uses of the kernel, for one CPU, and the seam: before each access to a
 * register, or to memory that an NMI shares, place() lets happen what may happen there.
 *
 * NARROW makes the solver's work less: counts have 16 bits, and counters 6, where bit 39
 * is bit 5. The driver's source is the same, and its arithmetic that of 64 and 40 bits.
 */
typedef unsigned char u8;
typedef unsigned int u32;
#if NARROW
typedef unsigned short u64;
typedef short s64;
#define BIT_39		5
#else
typedef unsigned long u64;
typedef long s64;
#define BIT_39		39
#endif
#define HOLDS(rule, text)	__CPROVER_assert(REACH == 2 || (rule), text)
#define ASSUME(rule)		__CPROVER_assume(rule)
/* Not what is proved, but that it says something: the end is reached, or a worse table fails. */
#define REACHED(what)		do { if (REACH == 1) __CPROVER_cover(what); } while (0)
#define BROKEN(rule, text)	__CPROVER_assert(rule, text)

#define RULE(rule, text) do {						\
	if (assume)							\
		ASSUME(rule);						\
	else								\
		HOLDS(rule, text);						\
} while (0)

#define NULL		((void *)0)
#define bool		_Bool
#define true		1
#define false		0

#define WIDTH		((int)sizeof(u64) * 8)
#define AT(bit)		((bit) == 39 ? BIT_39 : (bit))
#define BIT(n)		(1UL << (n))
#define BIT_ULL(n)	BIT(AT(n))
#define GENMASK_ULL(high, low) (BIT(AT(high) + 1) - BIT(low))
#define min_t(type, a, b) ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define for_each_set_bit(i, bits, n) for (i = 0; i < (n); i++) if (*(bits) >> i & 1)
#define __ffs(word)	((word) & 1 ? 0UL : 1UL)	/* of the two counters */
#define __fls(word)	((word) & 2 ? 1UL : 0UL)

static inline s64 sign_extend64(u64 value, int bit)
{
	int shift = WIDTH - 1 - AT(bit);

	return (s64)(u64)(value << shift) >> shift;
}

#define __always_inline	inline
#define noinline
#define __uninitialized
#define ____cacheline_aligned
#define likely(x)	(x)
#define unlikely(x)	(x)
#define barrier()
#define DECLARE_PER_CPU_ALIGNED(type, name) extern type name
#define DEFINE_PER_CPU_ALIGNED(type, name) type name
#define DEFINE_PER_CPU(type, name) type name
#define this_cpu_ptr(p)	(p)
#define irqs_disabled()	true
#define rdmsrq_safe(msr, value) 0
#define in_hardirq()	nondet_bool()
#define COMPAT_PMI_SWALLOWED SWALLOWED
#define boot_cpu_has(feature) true
#define x2apic_enabled() false

enum {
	ENODEV = 19, EAGAIN = 11,
	APIC_DM_NMI = 0x400, APIC_LVT_MASKED = 0x10000,
	PERF_EF_START = 1, PERF_EF_RELOAD = 2, PERF_EF_UPDATE = 4, perf_hw_context = 0,
};

struct pt_regs {
	bool user;
};

#define user_mode(regs)	((regs)->user)
#define perf_fetch_caller_regs(regs) ((regs)->user = false)

typedef struct {
	s64 value;
} local64_t;

struct perf_event;

struct hw_perf_event {
	u32 config;
	int idx;
	unsigned long interrupts;
	u64 sample_period, last_period;
	local64_t prev_count, period_left;
};

struct pmu {
	int task_ctx_nr;
	void (*pmu_enable)(struct pmu *pmu);
	void (*pmu_disable)(struct pmu *pmu);
	int (*add)(struct perf_event *event, int flags);
	void (*del)(struct perf_event *event, int flags);
	void (*start)(struct perf_event *event, int flags);
	void (*stop)(struct perf_event *event, int flags);
	void (*read)(struct perf_event *event);
};

struct perf_event {
	struct {
		bool exclude_kernel, freq;
		u64 config1;
	} attr;
	const struct pmu *pmu;
	struct perf_event *parent;
	u32 attach_state;
	local64_t count;
	struct hw_perf_event hw;
	/* What the proof knows: see invariant.h */
	u64 counted;
	bool sampled, throttled, counter0, rdpmc, paged, stopped, uptodate;
};

struct perf_sample_data {
	u64 period;
};

#define perf_sample_data_init(data, addr, last) ((data)->period = (last))
int perf_event_overflow(struct perf_event *event, struct perf_sample_data *data,
			struct pt_regs *regs);
#define compat_sample_period(hwc) ((s64)(hwc)->sample_period)
#define compat_event_has_rdpmc(event) ((event)->rdpmc)
#define perf_event_update_userpage(event) ((event)->paged = true)
#define inc_perf_irq_stat()

/* NMI level: of a real NMI, or of a replay */
static int nmi_level;
#define __preempt_count_add(level) (nmi_level++)
#define __preempt_count_sub(level) (nmi_level--)
#define compat_in_nmi_level() (nmi_level > 0)
#define in_nmi()	(nmi_level > 0)

/* The seam */
static void place(void);
static void before_read(const volatile void *what);
static void before_write(const volatile void *what, unsigned long value);
static void after_write(const volatile void *what);
static void read_before(const local64_t *l);
static void begins_period(const local64_t *left);

#define READ_ONCE(x) ({ before_read(&(x)); place(); (x); })
#define WRITE_ONCE(x, new) do {						\
	typeof(x) new_ = (new);						\
	place();						\
	before_write(&(x), (unsigned long)new_);			\
	(x) = new_;							\
	after_write(&(x));						\
} while (0)
#define LOCAL64(l, n, new, read_before) ({				\
	s64 n_ = (n), old_;						\
	place();						\
	read_before(l);						\
	old_ = (l)->value;						\
	TABLE(counts);							\
	(l)->value = (new);						\
	old_;								\
})
#define local64_read(l)	({ place(); read_before(l); (l)->value; })
#define local64_add(n, l) ((void)LOCAL64(l, n, old_ + n_, (void)))
#define local64_sub(n, l) ((void)LOCAL64(l, n, old_ - n_, (void)))
#define local64_xchg(l, n) LOCAL64(l, n, n_, read_before)
#define local64_set(l, n) (begins_period(l), (void)local64_xchg(l, n))
#define knc_assert(rule) HOLDS(rule, "rule of knc_softmask.h: " #rule)

#define KNC_PMU_RECORD_ACCESSES
/* A constant names a register of all counters, what is computed one of a counter's. */
#define knc_wrmsr(msr, value)						\
	(__builtin_constant_p(msr) ? write_msr(msr, value) : write_counter_msr(msr, value))
static void write_msr(u32 msr, u64 value);
static void write_counter_msr(u32 msr, u64 value);
static u64 knc_rdmsr(u32 msr);
static u64 knc_read_counter(u32 idx);
static u32 knc_read_lvtpc(void);
static void knc_write_lvtpc(u32 value);

/* Any value: CBMC knows these by their names. */
u64 nondet_u64(void);
s64 nondet_s64(void);
u32 nondet_u32(void);
bool nondet_bool(void);
