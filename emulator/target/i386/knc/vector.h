/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: the vector unit, as its decoder and its helpers see it
 */
#ifndef I386_KNC_VECTOR_H
#define I386_KNC_VECTOR_H

#include "fpu/softfloat.h"

#define KNC_VECTOR_SIZE     64

/* What the operands are, and where the encoding has them */
typedef enum KncShape {
    KNC_UNARY,          /* to ModRM.reg from rm */
    KNC_BINARY,         /* to reg from vvvv and rm */
    KNC_SETS,           /* and the mask of the prefix gets signs */
    KNC_SHIFT,          /* to vvvv from rm */
    KNC_COMPARE,        /* to the mask reg from vvvv and rm */
    KNC_CARRY,          /* to reg and the mask vvvv, from both and rm */
    KNC_BROADCAST,      /* from here on in memory: to reg from one element */
    KNC_BROADCAST4,     /* from four */
    KNC_STORE,          /* reg to memory */
    KNC_UNPACK,         /* to reg from consecutive elements of memory */
    KNC_PACK,
    KNC_GATHER,         /* to reg from elements of memory, by indices */
    KNC_GATHER_HINT,    /* prefetches for it */
    KNC_SCATTER,
    KNC_SCATTER_HINT,
    KNC_HINT,           /* a line of memory */
} KncShape;

/* Elements of rm: S before arithmetic, U in moves, D in stores */
typedef enum KncOperand {
    KNC_SF32, KNC_SI32, KNC_S64,
    KNC_UF32, KNC_UI32, KNC_U64,
    KNC_DF32, KNC_DI32, KNC_D64,
    KNC_LF32, KNC_LI32, /* that become eight of 64 bits */
    KNC_SF32_4, KNC_SI32_4, /* of which groups of four are used together */
    KNC_N32,            /* without a conversion */
    KNC_NONE,
} KncOperand;

/* What EH means if rm is a register, and which SSS are valid then */
typedef enum KncEh {
    KNC_RC,             /* SSS chooses the rounding, and SAE */
    KNC_SAE,            /* SSS chooses SAE */
    KNC_ANY,            /* nothing, and SSS nothing either */
    KNC_ZERO,           /* nothing, and SSS is 0 */
    KNC_NEVER,          /* undefined */
    KNC_MEM,            /* rm is no register */
    KNC_EH0, KNC_EH1,   /* part of the opcode: stores that do not read */
} KncEh;

/* Of an instruction's lanes: its functions change d, or k, in those of mask. */
typedef struct KncLanes {
    const ZMMReg *a;    /* first source, or the old destination */
    const ZMMReg *b;    /* second source, converted */
    ZMMReg *d;
    uint32_t mask;
    uint32_t k;         /* the other mask, which is written */
    int imm;
    bool quick;         /* rounding to nearest; inexact results set no flag */
    float_status fp;
} KncLanes;

typedef struct KncVectorInsn {
    const char *name;
    uint8_t map, prefix, w, opcode;
    int8_t digit;
    uint8_t shape, operand, eh;
    void (*lanes)(KncLanes *v);
} KncVectorInsn;

/* vector-lanes.c */
extern const KncVectorInsn knc_vector_insns[];
extern const int knc_vector_insns_n;
void knc_set_rounding(float_status *fp, int rc);

/* An instruction as the helper gets it */
typedef union KncVectorCode {
    struct {
        uint64_t insn:8;      /* of knc_vector_insns[] */
        uint64_t reg:5;
        uint64_t vvvv:5;      /* of VSIB: the index */
        uint64_t rm:5;
        uint64_t kkk:3;
        uint64_t eh:1;
        uint64_t sss:3;
        uint64_t memory:1;
        uint64_t imm:8;
        uint64_t scale:2;
        uint64_t segment:3;   /* of VSIB: its base is added last */
        uint64_t address32:1;
        uint64_t mmu_idx:4;
    };
    uint64_t word;
} KncVectorCode;

/* Elements, and which SSS are valid for memory and for registers */
typedef struct KncOperandKind {
    uint8_t memory, registers;
    uint8_t lanes;
    bool wide;                  /* elements of 64 bits, also in memory */
    bool floats;
} KncOperandKind;

static inline const KncOperandKind *knc_operand(const KncVectorInsn *insn)
{
    static const KncOperandKind kinds[] = {
        [KNC_SF32] = { 0xdf, 0xff, 16, false, true },
        [KNC_SI32] = { 0xf7, 0xff, 16 },
        [KNC_S64] = { 0x07, 0xff, 8, true },
        [KNC_UF32] = { 0xf9, 0xff, 16, false, true },
        [KNC_UI32] = { 0xf1, 0xff, 16 },
        [KNC_U64] = { 0x01, 0xff, 8, true },
        [KNC_DF32] = { 0xf9, 0, 16, false, true },
        [KNC_DI32] = { 0xf1, 0, 16 },
        [KNC_D64] = { 0x01, 0, 8, true },
        [KNC_LF32] = { 0x07, 0xff, 8, false, true },
        [KNC_LI32] = { 0x07, 0xff, 8 },
        [KNC_SF32_4] = { 0x05, 0x01, 16, false, true },
        [KNC_SI32_4] = { 0x05, 0x01, 16 },
        [KNC_N32] = { 0x01, 0x01, 16 },
        [KNC_NONE] = { 0x01, 0 },
    };

    return &kinds[insn->operand];
}

/* SSS for memory: how many elements, and how they are converted */
enum {
    KNC_ALL, KNC_1TO16, KNC_4TO16, KNC_FLOAT16,
    KNC_UINT8, KNC_SINT8, KNC_UINT16, KNC_SINT16,
};

/* Bytes of an element in memory */
static inline int knc_element_size(const KncVectorInsn *insn, int sss)
{
    static const uint8_t sizes[] = { 4, 4, 4, 2, 1, 1, 2, 2 };

    return knc_operand(insn)->wide ? 8 : sizes[sss];
}

/* Elements in memory of an operand that is one piece */
static inline int knc_elements(const KncVectorInsn *insn, int sss)
{
    if (insn->shape == KNC_BROADCAST || sss == KNC_1TO16) {
        return 1;
    }
    return insn->shape == KNC_BROADCAST4 || sss == KNC_4TO16 ? 4 :
           knc_operand(insn)->lanes;
}

static inline bool knc_has_vsib(const KncVectorInsn *insn)
{
    return insn->shape >= KNC_GATHER && insn->shape <= KNC_SCATTER_HINT;
}

#endif /* I386_KNC_VECTOR_H */
