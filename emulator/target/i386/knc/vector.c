/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: the vector unit (Intel document 327364-001, as others quote
 * it): its operands, its memory and its state
 *
 * The registers are those of AVX-512 in CPUX86State: xmm_regs, opmask_regs and
 * mxcsr.  A vector instruction makes all its accesses in one line of memory,
 * and finds out whether that faults before it changes anything.  A gather or
 * scatter executes the elements of one line at a time: its mask says which ones
 * are left.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "tcg/tcg.h"
#include "tcg/helper-tcg.h"
#include "internal.h"
#include "vector.h"

/* An executing instruction */
typedef struct KncVector {
    CPUX86State *env;
    const KncVectorInsn *insn;
    const KncOperandKind *operand;
    KncVectorCode code;
    target_ulong addr;
    uintptr_t ra;
    float_status fp;            /* of conversions */
} KncVector;

/* MXCSR: 31:22, 20:16 and 12:7 must be 0, and DUE is always 1. */
#define MXCSR_DUE       (1u << 21)
#define MXCSR_ZERO      0xffdf1f80

uint32_t knc_mxcsr(CPUX86State *env, uint32_t value)
{
    return env->knc.strict ? (value & ~MXCSR_ZERO) | MXCSR_DUE : value;
}

static void check_mxcsr(CPUX86State *env, uint32_t value, uintptr_t ra)
{
    if (value & MXCSR_ZERO) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
    }
}

/* What QEMU loads.  These three are for a chip without SSE. */
uint32_t helper_knc_ldmxcsr(CPUX86State *env, uint32_t value)
{
    check_mxcsr(env, value, GETPC());
    return knc_mxcsr(env, value);
}

#define FXSAVE_MXCSR    24      /* where FXRSTOR finds it */

/* Before anything is restored */
void helper_knc_check_fxrstor(CPUX86State *env, target_ulong image)
{
    uintptr_t ra = GETPC();

    if (image % 16 == 0) {
        check_mxcsr(env, cpu_ldl_data_ra(env, image + FXSAVE_MXCSR, ra), ra);
    }
}

/* FXRSTOR clears the bits that would be SSE's registers. */
void helper_knc_fxrstor(CPUX86State *env)
{
    env->mxcsr = knc_mxcsr(env, env->mxcsr);
    if (!(env->cr[4] & CR4_OSFXSR_MASK)) {
        return;
    }
    for (int i = 0; i < ARRAY_SIZE(env->xmm_regs); i++) {
        env->xmm_regs[i].ZMM_Q(0) = env->xmm_regs[i].ZMM_Q(1) = 0;
    }
}

/* The next task would get what this one leaves in the registers. */
void helper_knc_vector_unsaved(CPUX86State *env)
{
    warn_report_once("knc: a program uses the vector unit, which its kernel "
                     "does not save");
    raise_exception_ra(env, EXCP06_ILLOP, GETPC());
}

/* Memory */

static void knc_check_aligned(KncVector *v, target_ulong addr, int size)
{
    if (addr & (size - 1)) {
        raise_exception_err_ra(v->env, EXCP0D_GPF, 0, v->ra);
    }
}

/*
 * probe_access() drops only blocks of code that have the first byte.  Drop
 * those that have another one, as long as the page has any.
 */
static void knc_drop_code(KncVector *v, target_ulong addr, int size)
{
    for (int i = 1; i < size; i++) {
        if (tlb_vaddr_to_host(v->env, addr, MMU_DATA_STORE, v->code.mmu_idx)) {
            return;
        }
        probe_access(v->env, addr + i, 1, MMU_DATA_STORE, v->code.mmu_idx,
                     v->ra);
    }
}

/*
 * Where @size bytes of one line are in the host's memory, or NULL.  That is one
 * access, of a line that is not read first if @stream.
 */
static void *knc_line(KncVector *v, target_ulong addr, int size, bool store,
                      KncVectorAccess how)
{
    MMUAccessType type = store ? MMU_DATA_STORE : MMU_DATA_LOAD;
    void *host = probe_access(v->env, addr, size, type, v->code.mmu_idx, v->ra);

    if (v->env->knc_pmu.tb_flags & HF_KNC_OBSERVE_MASK) {
        knc_pmu_vector_access(v->env, addr, size, store, v->code.mmu_idx, how);
    }
    if (host && store) {
        knc_drop_code(v, addr, size);
    }
    return host;
}

/* An element at @addr, which is in a line: @host, or NULL for a device's */
static void knc_read_element(KncVector *v, uint8_t *bytes, const void *host,
                             target_ulong addr, int size)
{
    int mmu_idx = v->code.mmu_idx;

    if (host) {
        memcpy(bytes, host, size);
    } else if (size == 1) {
        *bytes = cpu_ldub_mmuidx_ra(v->env, addr, mmu_idx, v->ra);
    } else if (size == 2) {
        stw_le_p(bytes, cpu_lduw_le_mmuidx_ra(v->env, addr, mmu_idx, v->ra));
    } else if (size == 4) {
        stl_le_p(bytes, cpu_ldl_le_mmuidx_ra(v->env, addr, mmu_idx, v->ra));
    } else {
        stq_le_p(bytes, cpu_ldq_le_mmuidx_ra(v->env, addr, mmu_idx, v->ra));
    }
}

static void knc_write_element(KncVector *v, const uint8_t *bytes, void *host,
                              target_ulong addr, int size)
{
    int mmu_idx = v->code.mmu_idx;

    if (host) {
        memcpy(host, bytes, size);
    } else if (size == 1) {
        cpu_stb_mmuidx_ra(v->env, addr, *bytes, mmu_idx, v->ra);
    } else if (size == 2) {
        cpu_stw_le_mmuidx_ra(v->env, addr, lduw_le_p(bytes), mmu_idx, v->ra);
    } else if (size == 4) {
        cpu_stl_le_mmuidx_ra(v->env, addr, ldl_le_p(bytes), mmu_idx, v->ra);
    } else {
        cpu_stq_le_mmuidx_ra(v->env, addr, ldq_le_p(bytes), mmu_idx, v->ra);
    }
}

/* @n elements of a line */
static void knc_read(KncVector *v, uint8_t *bytes, target_ulong addr, int n,
                     int size)
{
    uint8_t *host = knc_line(v, addr, n * size, false, KNC_VECTOR_ACCESS);

    if (host) {
        memcpy(bytes, host, n * size);
        return;
    }
    for (int i = 0; i < n * size; i += size) {
        knc_read_element(v, bytes + i, NULL, addr + i, size);
    }
}

/* Those of @mask */
static void knc_write(KncVector *v, const uint8_t *bytes, target_ulong addr,
                      int n, int size, uint32_t mask, KncVectorAccess how)
{
    uint8_t *host = knc_line(v, addr, n * size, true, how);

    for (int i = 0; i < n; i++) {
        if (mask >> i & 1) {
            knc_write_element(v, bytes + i * size,
                              host ? host + i * size : NULL, addr + i * size,
                              size);
        }
    }
}

/* Conversions */

/* DAZ and FZ are for arithmetic: a float16 is moved whatever they say. */
static uint32_t knc_move_float16(KncVector *v, uint32_t value, bool store)
{
    float_status fp = v->fp;

    set_flush_inputs_to_zero(false, &fp);
    set_flush_to_zero(false, &fp);
    value = store ? float32_to_float16(value, true, &fp) :
                    float16_to_float32(value, true, &fp);
    float_raise(get_float_exception_flags(&fp), &v->fp);
    return value;
}

/* An element of 32 bits from memory */
static uint32_t knc_from_memory(KncVector *v, const uint8_t *bytes)
{
    int32_t value;

    switch (v->code.sss) {
    case KNC_FLOAT16:
        return knc_move_float16(v, lduw_le_p(bytes), false);
    case KNC_UINT8:
        value = *bytes;
        break;
    case KNC_SINT8:
        value = (int8_t)*bytes;
        break;
    case KNC_UINT16:
        value = lduw_le_p(bytes);
        break;
    case KNC_SINT16:
        value = ldsw_le_p(bytes);
        break;
    default:
        return ldl_le_p(bytes);
    }
    return v->operand->floats ? int32_to_float32(value, &v->fp) : value;
}

/* To memory: what is out of range becomes the nearest number that is not. */
static uint32_t knc_to_memory(KncVector *v, uint32_t value)
{
    static const struct {
        int32_t least, most;
    } ranges[] = {
        [KNC_UINT8] = { 0, UINT8_MAX },
        [KNC_SINT8] = { INT8_MIN, INT8_MAX },
        [KNC_UINT16] = { 0, UINT16_MAX },
        [KNC_SINT16] = { INT16_MIN, INT16_MAX },
    };
    int sss = v->code.sss;
    int32_t number = value;

    if (sss == KNC_ALL) {
        return value;
    }
    if (sss == KNC_FLOAT16) {
        return knc_move_float16(v, value, true);
    }
    if (v->operand->floats) {
        number = float32_is_any_nan(value) ? 0 :
                 float32_to_int32(value, &v->fp);
    } else if (sss == KNC_UINT8 || sss == KNC_UINT16) {
        return value;   /* of integers only the low bits */
    }
    return MIN(MAX(number, ranges[sss].least), ranges[sss].most);
}

/* Element @i of a vector from memory, and to it */
static void knc_take_element(KncVector *v, ZMMReg *reg, int i,
                             const uint8_t *bytes)
{
    if (v->operand->wide) {
        reg->ZMM_Q(i) = ldq_le_p(bytes);
    } else {
        reg->ZMM_L(i) = knc_from_memory(v, bytes);
    }
}

static void knc_give_element(KncVector *v, const ZMMReg *reg, int i,
                             uint8_t *bytes)
{
    uint64_t value = v->operand->wide ? reg->ZMM_Q(i) :
                     knc_to_memory(v, reg->ZMM_L(i));
    int size = knc_element_size(v->insn, v->code.sss);

    for (int n = 0; n < size; n++) {
        bytes[n] = value >> 8 * n;
    }
}

/* Lanes that the mask of the prefix leaves active */
static uint32_t knc_active(const KncVector *v)
{
    uint32_t all = MAKE_64BIT_MASK(0, v->operand->lanes);

    return v->code.kkk ? v->env->opmask_regs[v->code.kkk] & all : all;
}

/* An operand in memory.  No active lane needs it: it is not accessed. */
static void knc_load(KncVector *v, uint32_t mask, ZMMReg *reg)
{
    int size = knc_element_size(v->insn, v->code.sss);
    int n = knc_elements(v->insn, v->code.sss);
    uint8_t bytes[KNC_VECTOR_SIZE];

    knc_check_aligned(v, v->addr, n * size);
    if (!mask) {
        return;
    }
    knc_read(v, bytes, v->addr, n, size);
    for (int i = 0; i < v->operand->lanes; i++) {
        if (mask >> i & 1 || v->operand->lanes == 16) {
            knc_take_element(v, reg, i, bytes + (i & (n - 1)) * size);
        }
    }
}

/* A register, whose elements change places within groups of four */
static void knc_swizzle(KncVector *v, ZMMReg *reg)
{
    static const uint8_t from[8][4] = {
        { 0, 1, 2, 3 }, { 1, 0, 3, 2 }, { 2, 3, 0, 1 }, { 1, 2, 0, 3 },
        { 0, 0, 0, 0 }, { 1, 1, 1, 1 }, { 2, 2, 2, 2 }, { 3, 3, 3, 3 },
    };
    const ZMMReg *source = &v->env->xmm_regs[v->code.rm];
    const uint8_t *part = from[v->code.sss];

    for (int i = 0; i < (v->operand->wide ? 8 : 16); i++) {
        int other = (i & ~3) + part[i & 3];

        if (v->operand->wide) {
            reg->ZMM_Q(i) = source->ZMM_Q(other);
        } else {
            reg->ZMM_L(i) = source->ZMM_L(other);
        }
    }
}

/* Floating point: sticky flags are SSE's, as is all of MXCSR */

static void knc_begin_float(KncVector *v)
{
    v->fp = v->env->sse_status;
    set_float_exception_flags(0, &v->fp);
    if (v->code.eh && !v->code.memory && v->insn->eh == KNC_RC) {
        knc_set_rounding(&v->fp, v->code.sss);
    }
}

/* Suppress all exceptions: no sticky flags */
static bool knc_has_sae(const KncVector *v)
{
    return v->code.eh && !v->code.memory && (v->code.sss & 4) &&
           (v->insn->eh == KNC_RC || v->insn->eh == KNC_SAE);
}

static void knc_end_float(KncVector *v, float_status *fp)
{
    if (!knc_has_sae(v)) {
        float_raise(get_float_exception_flags(fp), &v->env->sse_status);
    }
}

/* Instructions that compute */
static void knc_compute(KncVector *v, uint32_t mask)
{
    CPUX86State *env = v->env;
    KncVectorCode code = v->code;
    int shape = v->insn->shape;
    uint64_t *k = shape == KNC_COMPARE ? &env->opmask_regs[code.reg] :
                  shape == KNC_CARRY ? &env->opmask_regs[code.vvvv] :
                  shape == KNC_SETS ? &env->opmask_regs[code.kkk] : NULL;
    ZMMReg operand;
    KncLanes lanes = {
        .d = &env->xmm_regs[shape == KNC_SHIFT ? code.vvvv : code.reg],
        .a = &env->xmm_regs[code.vvvv],
        .b = &operand,
        .mask = mask,
        .k = k && shape != KNC_COMPARE ? *k : 0,
        .imm = code.imm,
    };

    knc_begin_float(v);
    if (code.memory) {
        knc_load(v, mask, &operand);
        knc_end_float(v, &v->fp);
    } else if (code.sss == 0 || code.eh) {
        lanes.b = &env->xmm_regs[code.rm];
    } else {
        knc_swizzle(v, &operand);
    }
    if (shape == KNC_UNARY || shape == KNC_CARRY || shape == KNC_BROADCAST ||
        shape == KNC_BROADCAST4) {
        lanes.a = lanes.d;
    }
    lanes.fp = v->fp;
    lanes.quick = get_float_rounding_mode(&v->fp) == float_round_nearest_even &&
                  (knc_has_sae(v) ||
                   get_float_exception_flags(&env->sse_status) &
                   float_flag_inexact);
    v->insn->lanes(&lanes);
    knc_end_float(v, &lanes.fp);
    if (k) {
        *k = lanes.k;
    }
}

/* Loads, and moves between registers */
static void knc_move(KncVector *v, uint32_t mask)
{
    ZMMReg *d = &v->env->xmm_regs[v->code.reg], operand;

    knc_begin_float(v);
    if (v->code.memory) {
        knc_load(v, mask, &operand);
    } else {
        knc_swizzle(v, &operand);
    }
    for (int i = 0; i < v->operand->lanes; i++) {
        if (!(mask >> i & 1)) {
            continue;
        }
        if (v->operand->wide) {
            d->ZMM_Q(i) = operand.ZMM_Q(i);
        } else {
            d->ZMM_L(i) = operand.ZMM_L(i);
        }
    }
    knc_end_float(v, &v->fp);
}

static void knc_store(KncVector *v, uint32_t mask)
{
    int size = knc_element_size(v->insn, v->code.sss);
    int n = v->operand->lanes;
    bool whole = n * size == KNC_VECTOR_SIZE && ctpop32(mask) == n;
    uint8_t bytes[KNC_VECTOR_SIZE];
    KncVectorAccess how = !whole ? KNC_VECTOR_ACCESS :
                          v->insn->eh == KNC_EH0 ? KNC_VECTOR_STRONG :
                          v->insn->eh == KNC_EH1 ? KNC_VECTOR_WEAK :
                          KNC_VECTOR_ACCESS;

    knc_check_aligned(v, v->addr, n * size);
    if (!mask) {
        return;
    }
    knc_begin_float(v);
    for (int i = 0; i < n; i++) {
        if (mask >> i & 1) {
            knc_give_element(v, &v->env->xmm_regs[v->code.reg], i,
                             bytes + i * size);
        }
    }
    knc_write(v, bytes, v->addr, n, size, mask, how);
    knc_end_float(v, &v->fp);
}

/*
 * The n-th active lane has the n-th element from an address on: here those
 * before the end of its line or, for the instructions whose operand is 64 bytes
 * further, those behind it.
 */
static void knc_consecutive(KncVector *v, uint32_t mask)
{
    int size = knc_element_size(v->insn, v->code.sss);
    int n = ctpop32(mask), in_line = v->addr % KNC_VECTOR_SIZE;
    int below = MIN(n, (KNC_VECTOR_SIZE - in_line) / size);
    bool high = v->insn->opcode & 4, pack = v->insn->shape == KNC_PACK;
    int first = high ? below : 0, last = high ? n : below, nth = 0;
    target_ulong addr = high ? v->addr - in_line : v->addr;
    ZMMReg *reg = &v->env->xmm_regs[v->code.reg];
    uint8_t bytes[KNC_VECTOR_SIZE];

    knc_check_aligned(v, v->addr, size);
    if (first == last) {
        return;
    }
    knc_begin_float(v);
    if (!pack) {
        knc_read(v, bytes, addr, last - first, size);
    }
    for (int i = 0; i < v->operand->lanes; i++) {
        uint8_t *at = bytes + (nth - first) * size;

        if (!(mask >> i & 1)) {
            continue;
        }
        if (nth >= first && nth < last) {
            if (pack) {
                knc_give_element(v, reg, i, at);
            } else {
                knc_take_element(v, reg, i, at);
            }
        }
        nth++;
    }
    if (pack) {
        knc_write(v, bytes, addr, last - first, size, -1, KNC_VECTOR_ACCESS);
    }
    knc_end_float(v, &v->fp);
}

/* The address of element @i of a gather or scatter */
static target_ulong knc_indexed(const KncVector *v, int i)
{
    int32_t index = v->env->xmm_regs[v->code.vvvv].ZMM_L(i);
    target_ulong addr = v->addr + ((int64_t)index << v->code.scale);

    return (v->code.address32 ? (uint32_t)addr : addr) +
           (v->code.segment ? v->env->segs[v->code.segment].base : 0);
}

/* The lanes of @mask that have their element in one line, which is aligned */
static uint32_t knc_lanes_of(KncVector *v, uint32_t mask, target_ulong line)
{
    int size = knc_element_size(v->insn, v->code.sss);
    uint32_t lanes = 0;

    for (uint32_t left = mask; left; left &= left - 1) {
        target_ulong addr = knc_indexed(v, ctz32(left));

        if ((addr & -KNC_VECTOR_SIZE) == line) {
            if (v->insn->shape == KNC_GATHER || v->insn->shape == KNC_SCATTER) {
                knc_check_aligned(v, addr, size);
            }
            lanes |= left & -left;
        }
    }
    return lanes;
}

static void knc_prefetch(KncVector *v, target_ulong line)
{
    uint32_t hint = (v->insn->digit & 3) == 2 ? KNC_HINT_L2 : KNC_HINT_L1;

    if (v->insn->shape == KNC_SCATTER_HINT) {
        hint |= KNC_HINT_WRITE;
    }
    if (v->env->knc_pmu.tb_flags & HF_KNC_OBSERVE_MASK) {
        knc_pmu_hint(v->env, line,
                     hint | v->code.mmu_idx << KNC_ACCESS_MMU_SHIFT, 0);
    }
}

static void knc_access_lanes(KncVector *v, uint32_t lanes, target_ulong line)
{
    int size = knc_element_size(v->insn, v->code.sss);
    ZMMReg *reg = &v->env->xmm_regs[v->code.reg];
    bool scatter = v->insn->shape == KNC_SCATTER;
    uint8_t *host = knc_line(v, line, KNC_VECTOR_SIZE, scatter,
                             KNC_VECTOR_ACCESS);

    for (; lanes; lanes &= lanes - 1) {
        target_ulong addr = knc_indexed(v, ctz32(lanes));
        uint8_t *at = host ? host + (addr - line) : NULL;
        uint8_t bytes[8];

        if (scatter) {
            knc_give_element(v, reg, ctz32(lanes), bytes);
            knc_write_element(v, bytes, at, addr, size);
        } else {
            knc_read_element(v, bytes, at, addr, size);
            knc_take_element(v, reg, ctz32(lanes), bytes);
        }
    }
}

/*
 * A gather or scatter: all elements in the line of the first active one.  Their
 * bits of the mask become 0, and so do bits without a lane.
 */
static void knc_gather(KncVector *v, uint32_t mask)
{
    uint32_t lanes = 0;

    if (mask) {
        target_ulong line = knc_indexed(v, ctz32(mask)) & -KNC_VECTOR_SIZE;

        lanes = knc_lanes_of(v, mask, line);
        if (v->insn->shape == KNC_GATHER || v->insn->shape == KNC_SCATTER) {
            knc_begin_float(v);
            knc_access_lanes(v, lanes, line);
            knc_end_float(v, &v->fp);
        } else {
            knc_prefetch(v, line);
        }
    }
    v->env->opmask_regs[v->code.kkk] = mask & ~lanes;
}

void helper_knc_vector(CPUX86State *env, target_ulong addr, uint64_t word)
{
    KncVectorCode code = { .word = word };
    const KncVectorInsn *insn = &knc_vector_insns[code.insn];
    KncVector v = {
        .env = env,
        .insn = insn,
        .operand = knc_operand(insn),
        .code = code,
        .addr = addr,
        .ra = GETPC(),
    };
    uint32_t mask = knc_active(&v);

    if (env->knc_pmu.tb_flags & HF_KNC_OBSERVE_MASK) {
        knc_pmu_vector(env, ctpop32(mask));
    }
    switch (insn->shape) {
    case KNC_STORE:
        knc_store(&v, mask);
        break;
    case KNC_UNPACK:
    case KNC_PACK:
        knc_consecutive(&v, mask);
        break;
    case KNC_GATHER:
    case KNC_GATHER_HINT:
    case KNC_SCATTER:
    case KNC_SCATTER_HINT:
        knc_gather(&v, mask);
        break;
    default:
        if (insn->lanes) {
            knc_compute(&v, mask);
        } else {
            knc_move(&v, mask);
        }
    }
}
