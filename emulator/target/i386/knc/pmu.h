/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: the state of a hardware thread
 *
 * Register names and behaviour follow Intel document 327357-001.
 */
#ifndef I386_KNC_PMU_H
#define I386_KNC_PMU_H

#if defined(CONFIG_USER_ONLY) || !defined(TARGET_X86_64) || !defined(CONFIG_TCG)
#error "Knights Corner is for --target-list=x86_64-softmmu with --enable-tcg"
#endif

/* Flags of a translation block: bits of hflags that QEMU leaves free */
#define HF_KNC_PMU_MASK         (1u << 29)  /* counts events */
#define HF_KNC_OBSERVE_MASK     (1u << 30)  /* reports accesses as well */
#define HF_KNC_PREDICT_MASK     (1u << 31)  /* and branches */
#define HF_KNC_MASK             (HF_KNC_PMU_MASK | HF_KNC_OBSERVE_MASK | \
                                 HF_KNC_PREDICT_MASK)

#define KNC_PMU_COUNTERS        2
#define KNC_CORE_THREADS        4

/* Events are counted separately for ring 0 and for rings 1 to 3. */
enum {
    KNC_PMU_RING0,
    KNC_PMU_RING3,
    KNC_PMU_RINGS,
};

static inline int knc_pmu_ring(int cpl)
{
    return cpl ? KNC_PMU_RING3 : KNC_PMU_RING0;
}

/* What it adds to KncFilter.hits */
#define KNC_HIT_READ            1ull
#define KNC_HIT_WRITE           (1ull << 32)

/*
 * What an instruction and all that follow it in its block add, as kept in the
 * block's unwind information: above QEMU's cc_op, in the same word (while the
 * block is translated: the hits before it)
 */
#define KNC_UNWIND_SHIFT        8
#define KNC_UNWIND_CC_OP        MAKE_64BIT_MASK(0, KNC_UNWIND_SHIFT)

static inline uint64_t knc_pmu_unwind_data(int slots, bool branch,
                                           bool uncounted, uint64_t hits)
{
    return slots | branch << 14 | uncounted << 15 | (hits & 0xffff) << 16 |
           hits >> 32 << 32;
}

/* Also the instruction's token, if its accesses are observed */
static inline int knc_pmu_unwind_slots(uint64_t data)
{
    return data & 0x3fff;
}

static inline int knc_pmu_unwind_branches(uint64_t data)
{
    return data >> 14 & 1;
}

static inline int knc_pmu_unwind_uncounted(uint64_t data)
{
    return data >> 15 & 1;
}

static inline uint64_t knc_pmu_unwind_hits(uint64_t data)
{
    return (data >> 16 & 0xffff) * KNC_HIT_READ +
           (data >> 32) * KNC_HIT_WRITE;
}

#define KNC_LINE_BITS           6
#define KNC_L1_SETS             64

/* An access as generated code reports it */
#define KNC_ACCESS_SIZE         0xff
#define KNC_ACCESS_MAYBE        0x100   /* not a hit of its block */
#define KNC_ACCESS_LATE         0x200   /* the flags have changed before it */
#define KNC_ACCESS_MMU_SHIFT    12
#define KNC_ACCESS_MMU          0xf
#define KNC_ACCESS_TOKEN_SHIFT  16

enum {
    KNC_KIND_READ,
    KNC_KIND_WRITE,
    KNC_KIND_CODE,
    KNC_KINDS,
    KNC_KIND_HINT = KNC_KINDS,
    KNC_KIND_VECTOR,        /* no access: a vector instruction */
};

/* How a vector instruction accesses memory, if it is one */
typedef enum KncVectorAccess {
    KNC_NO_VECTOR,
    KNC_VECTOR_ACCESS,
    KNC_VECTOR_STRONG,      /* a store that does not read its line, ordered */
    KNC_VECTOR_WEAK,        /* not ordered */
} KncVectorAccess;

/*
 * Accesses that do not change the model: to a line of the L1 in a page of the
 * TLB that both have been used (caches.h), and for writing one that the thread
 * has modified.  Generated code finds them here, by the virtual address.  A
 * block counts all its accesses as hits; what it reports is taken off again.
 */
#define KNC_FILTER_ROWS         512

typedef struct KncFilter {
    uint64_t line[KNC_FILTER_ROWS][4];  /* by kind */
    uint64_t code;              /* the latest line of code */
    uint64_t hits;
} KncFilter;

/* Prefetches and evictions: the level of the cache, and the kind */
typedef enum KncHint {
    KNC_HINT_LEVEL = 3,
    KNC_HINT_L1 = 1,
    KNC_HINT_L2 = 2,
    KNC_HINT_WRITE = 4,     /* for writing: no other core keeps it */
    KNC_HINT_DROP = 8,      /* a miss counts as dropped */
    KNC_HINT_EVICT = 16,
} KncHint;

/* Instructions that count bits; KNC_BITS_64: of 64-bit operands */
enum {
    KNC_BITS_POPCNT,
    KNC_BITS_LZCNT,
    KNC_BITS_TZCNT,
    KNC_BITS_TZCNTI,
    KNC_BITS_KIND = 3,
    KNC_BITS_64 = 4,
};

/* Part of the size of a branch: it leaves its segment */
#define KNC_BRANCH_FAR          0x100

/* What is counted: CPU_CLK_UNHALTED and FE_STALLED with E, and the list */
typedef enum KncPmuEvent {
    KNC_UNHALTED_BEGINS,        /* a halt of the core ends */
    KNC_RING_BEGINS,            /* that, or the thread enters the ring */
    KNC_STALL_BEGINS,
#define EVENT(code, name) KNC_##name
#include "events.h.inc"
#undef EVENT
    KNC_EVENTS,
    KNC_OBSERVED = KNC_DATA_READ,
    KNC_SEVERAL = KNC_DATA_CACHE_LINES_WRITTEN_BACK,
    KNC_SNOOPED = KNC_SNP_HIT_L2,
} KncPmuEvent;

typedef struct KncPmuEvents {
    uint64_t n[KNC_EVENTS];
} KncPmuEvents;

/* What a counter counts: its event with CMASK, INV and E */
typedef enum KncPmuMode {
    KNC_MODE_NOTHING,
    KNC_MODE_EVENTS,
    KNC_MODE_MATCHES,       /* instructions with enough events */
    KNC_MODE_CYCLES,        /* every cycle */
    KNC_MODE_NO_EVENTS,     /* cycles without an event */
    KNC_MODE_NO_MATCHES,    /* cycles without enough events */
} KncPmuMode;

typedef struct KncPmuCounter {
    uint32_t evtsel;
    uint64_t value;         /* 40 bits */
    /* Derived from the control registers by knc_pmu_configure() */
    uint8_t rings;          /* bit mask of the rings in which it counts */
    bool any;               /* counts the core's other threads as well */
    KncPmuEvent event;
    KncPmuMode mode;
    uint8_t threshold;      /* events that an instruction needs to match */
    uint64_t others;        /* events of the other threads at the last fold */
    /* Shown by the test device and the monitor only */
    uint64_t total;
    uint64_t overflows;
} KncPmuCounter;

/* Branch prediction */
#define KNC_BTB_SETS 64
#define KNC_BTB_WAYS 4

typedef struct KncBranchTarget {
    uint64_t pc;
    uint64_t target;
    int8_t counter;
    bool valid;
} KncBranchTarget;

typedef struct KncPredictor {
    KncBranchTarget target[KNC_BTB_SETS][KNC_BTB_WAYS];
} KncPredictor;

/* What other cores do to a line, counted for the thread that had it */
enum {
    KNC_SNOOP_HIT,
    KNC_SNOOP_HITM,
    KNC_SNOOP_WRITTEN_BACK,
    KNC_SNOOPS,
};

/* Caches and TLBs, of the core: memory.c */
typedef struct KncCore KncCore;
/* Accesses that the model has not seen yet, and the predictor: observer.h */
typedef struct KncObserver KncObserver;

/* A test's orders for a hardware thread: inject.c */
typedef enum KncInjectAction {
    KNC_INJECT_NOTHING,
    KNC_INJECT_NMI,         /* not from the PMU */
    KNC_INJECT_OVERFLOW,    /* of counter 0, if it counts */
    KNC_INJECT_STOP,        /* until an interrupt or another order */
    KNC_INJECT_SKID,        /* delay every PMI */
} KncInjectAction;

typedef struct KncInject {
    KncInjectAction action;
    int rings;              /* bit mask of the rings whose instructions count */
    uint32_t msr;           /* at whose next write they start, or 0 */
    uint64_t left;          /* number of instructions */
    bool counting;
    bool stopped;
    uint64_t fired;

    /* KNC_INJECT_SKID, which stays in force beside the other orders */
    uint32_t skid;          /* number of instructions */
    uint64_t skid_left;
    bool in_flight;         /* a PMI is delayed */
} KncInject;

/* The thread's time: clock.c */
typedef struct KncClock {
    CPUState *cs;
    uint64_t slots;         /* in all */
    int64_t budget;         /* slots that it may execute, with those it has */
    int64_t time;           /* in cycles */
    int64_t reached;        /* time, or the end of its turn */
    int64_t last_read;      /* of the TSC */
    QTAILQ_ENTRY(KncClock) next;    /* in use: it may execute */
} KncClock;

/* The CPU's model and its properties: model.c */
typedef struct KncPmuConfig {
    bool pmu;           /* has the PMU and the additional instructions */
    bool strict;        /* has only the instructions of the chip */
    bool strict_user;   /* the same outside ring 0, of a PC's kernel */
    uint32_t siblings;  /* logical processors by CPUID, or 0 */
    bool always;        /* true counts continue with all counters disabled */
    bool observe;       /* the same for the model of the memory hierarchy */
    bool stray;         /* a halted thread's PMI goes to one that executes */
    bool prefetcher;    /* the core has the hardware prefetcher */
} KncPmuConfig;

/* Events since the last fold, all in one ring, by generated code: count.c */
typedef struct KncCount {
    /*
     * uncounted: slots of the clock that are no slots of the PMU, of
     * instructions that do not complete.  replays: slots that did not complete
     * an instruction: all but the last iteration of a repeated string
     * instruction, and the slots of DELAY.  stalls: rows of them.  stalling: 1
     * within a row.
     */
    uint64_t branches;
    uint64_t uncounted;
    uint64_t replays;
    uint64_t stalls;
    uint64_t stalling;
    uint64_t folded;        /* knc_clock_slots() at the last fold */
    uint64_t stop;          /* the same, when a counter may overflow */
    int slot_cycles;        /* cost of a slot */
    uint64_t entries;       /* 1 if the ring has changed at the last fold */
    int ring;               /* the ring since then */
} KncCount;

/* What the observer has seen, and what it asks for: observe.c */
typedef struct KncSeen {
    KncFilter filter;
    /* Identifies the executing instruction within its block; 0: none */
    uint32_t token;
    uint32_t access_token;  /* that of the last reported access, or 0 */
    /* Accesses wait that may overflow a counter: gen_knc_pmu_check() */
    uint32_t check_due;
    bool alone;             /* the turn ends after the next instruction */
    /* KNC_OBSERVED and later, since the last fold */
    KncPmuEvents observed;
    uint64_t snooped[KNC_SNOOPS];   /* KncCore.snooped already counted */
} KncSeen;

/* Time and thread count mode, which a core's threads share: core.c */
typedef struct KncShare {
    uint32_t needs;         /* what the thread counts for itself */
    uint32_t wanted;        /* what the others must count for it */
    uint32_t serves;        /* needs, and what the others want */
    uint32_t strayed;       /* overflows whose PMI another thread got */
    /*
     * This thread's instructions that matched, for each counter of each thread
     * of the core; for its own counters since the last fold.
     */
    uint64_t matches[KNC_CORE_THREADS][KNC_PMU_COUNTERS][KNC_PMU_RINGS];
    uint64_t time;          /* in cycles of the core */
    uint64_t wakes;         /* KncCore.wakes at the last fold */
    bool asleep;
} KncShare;

/* registers.c, and apic.c */
typedef struct KncRegisters {
    KncPmuCounter counter[KNC_PMU_COUNTERS];
    uint64_t spflt;
    uint32_t status;
    uint32_t global_ctrl;
    uint32_t pmi;           /* status bits that drive the interrupt line */
} KncRegisters;

/* What only the test device and the monitor show: monitor.c */
typedef struct KncTally {
    KncPmuEvents true_count[KNC_PMU_RINGS];
    uint64_t descriptors[KNC_PMU_RINGS];
    uint64_t waits[KNC_PMU_RINGS];  /* slots of PAUSE and DELAY */
    uint64_t edges;
    uint64_t delivered;
    uint64_t lost;
    uint64_t rdmsrs;
    uint64_t wrmsrs;
    uint64_t rdpmcs;
    uint64_t lvtpc_writes;
    uint64_t eoi_writes;
} KncTally;

/* Cleared by a system reset, but not by INIT: knc_pmu_reset() */
typedef struct KncPmuState {
    KncCount count;
    KncSeen seen;
    KncShare share;
    KncRegisters regs;
    KncInject inject;
    KncTally tally;
    uint32_t tb_flags;      /* HF_KNC_PMU_MASK while events count */
    bool mov_ss;            /* it began the latest HF_INHIBIT_IRQ_MASK */

    /* Fields from here on are preserved across reset. */
    struct {} end_reset_fields;

    KncCore *core;
    struct CPUArchState *next;  /* of the core's threads, in a circle */
    KncObserver *observer;
    int thread;             /* number within the core */
    KncClock clock;
    QEMUTimer *inject_timer;
} KncPmuState;

uint32_t knc_pmu_change_ring(struct CPUArchState *env);

/* The flags of the next block; a fold comes with each change of the ring. */
#define knc_pmu_hflags(env) \
    ((env)->knc_pmu.tb_flags && \
     (env)->knc_pmu.count.ring != knc_pmu_ring((env)->hflags & HF_CPL_MASK) ? \
     knc_pmu_change_ring(env) : (env)->hflags)

#include "chip.h"
#include "hooks.h"

#endif /* I386_KNC_PMU_H */
