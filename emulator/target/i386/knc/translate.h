/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: the translator's state within a block
 */
#ifndef I386_KNC_TRANSLATE_H
#define I386_KNC_TRANSLATE_H

#include "compat.h"
#include "pmu.h"
#include "vector.h"

typedef struct KncDisas {
    bool insns;         /* the CPU has the additional instructions */
    bool strict;        /* the block has only the chip's instructions */
    bool all_strict;    /* and so have all others of the CPU */
    /* The current instruction: */
    uint64_t pc;        /* of its segment */
    bool branch;
    bool near;          /* a branch within its segment */
    bool sti;
    bool uncounted;     /* does not complete, or counts at run time */
    bool mvex;          /* its prefix is MVEX, and not VEX */
    uint8_t map, pp;    /* fields of that */
    KncVectorCode code;
    int opcode;         /* 0x100 stands for the prefix 0F */

    TCGOp *insn_start;  /* the block's counting code follows this op */
    TCGOp *insn;        /* the insn_start of the current instruction */
} KncDisas;

#endif /* I386_KNC_TRANSLATE_H */
