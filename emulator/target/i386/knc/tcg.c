/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: calls into the accelerator
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "cpu.h"
#include "tcg/tcg.h"
#include "internal.h"

/*
 * -icount allows an instruction to raise an interrupt or read the clock only at
 * the end of a block.  Allow it here.
 */
int knc_tcg_interrupt(CPUX86State *env, bool edge)
{
    CPUState *cs = env_cpu(env);
    bool can_do_io = knc_can_do_io(cs);
    bool unlock = !bql_locked();
    int mode = 0;

    if (unlock) {
        bql_lock();
    }
    knc_can_do_io(cs) = true;
    if (edge) {
        mode = knc_apic_deliver(env);
    } else {
        cpu_interrupt(cs, CPU_INTERRUPT_NMI);
    }
    knc_can_do_io(cs) = can_do_io;
    if (unlock) {
        bql_unlock();
    }
    return mode;
}

void knc_tcg_wait(CPUX86State *env, uintptr_t ra)
{
    CPUState *cs = env_cpu(env);

    /* RDTSCP, which -cpu knc,+rdtscp has, calls the helper of RDTSC. */
    if (tcg_tb_lookup(ra)) {
        cs->exception_index = EXCP_INTERRUPT;
        cpu_loop_exit_restore(cs, ra);
    }
}

G_NORETURN void knc_tcg_leave_before(CPUX86State *env, uintptr_t ra)
{
    CPUState *cs = env_cpu(env);

    cpu_restore_state(cs, ra);
    knc_pmu_stop(env);
    cs->exception_index = -1;
    cpu_loop_exit(cs);
}

bool knc_tcg_find_code(CPUX86State *env, uint64_t vaddr, uint64_t *paddr)
{
    CPUTLBEntryFull *full;
    void *host;

    if (knc_probe(env, vaddr, MMU_INST_FETCH, knc_fetch_mmu_index(env), &host,
                  &full) & TLB_INVALID_MASK) {
        return false;
    }
    *paddr = full->phys_addr;
    return true;
}

/* Look stores up as loads: as a store it would invalidate code in the page. */
static int knc_tcg_find_load(CPUX86State *env, uint64_t vaddr, int mmu_idx,
                             CPUTLBEntryFull **full)
{
    void *host;

#ifdef KNC_CAN_SEE_TLB
    CPUTLBEntry *entry = tlb_entry(env, mmu_idx, vaddr);

    if (likely(tlb_hit(entry->addr_read, vaddr))) {
        *full = &env_tlb(env)->d[mmu_idx].fulltlb[tlb_index(env, mmu_idx,
                                                            vaddr)];
        return entry->addr_read & TLB_MMIO;
    }
#endif
    return knc_probe(env, vaddr, MMU_DATA_LOAD, mmu_idx, &host, full);
}

bool knc_tcg_find_data(CPUX86State *env, uint64_t vaddr, int mmu_idx,
                       KncAccess *access)
{
    CPUTLBEntryFull *full;
    int flags = knc_tcg_find_load(env, vaddr, mmu_idx, &full);

    if (flags & TLB_INVALID_MASK) {
        return false;
    }
    access->paddr = full->phys_addr | (vaddr & ~TARGET_PAGE_MASK);
    access->large = full->lg_page_size >= KNC_LARGE_BITS;
    access->uncached = flags & TLB_MMIO;
    return true;
}
