/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: what the translator keeps while it makes a block
 */
#ifndef I386_KNC_TRANSLATE_H
#define I386_KNC_TRANSLATE_H

#include "compat.h"
#include "pmu.h"

typedef struct KncDisas {
    bool insns;         /* it has Knights Corner's additional instructions */
    bool strict;        /* and no others that the chip has not */
    /* The current instruction ... */
    bool branch;        /* is a branch, */
    bool near;          /* and within its segment */
    bool uncounted;     /* does not complete, or counts at run time */
    int opcode;         /* has this one, from 0x100 on after 0F */
    /* ... and where the block's counting code goes */
    TCGOp *insn_start;
    TCGLabel *leave;    /* the way out of a loop for a rep */
} KncDisas;

#endif /* I386_KNC_TRANSLATE_H */
