/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner PMU: differences between QEMU's versions
 *
 * It works with 7.2, 10.0 and 10.2, and is written for 11.1.  A change whose
 * version is not known is attributed to 8.0, or to 10.2.
 */
#ifndef I386_KNC_COMPAT_H
#define I386_KNC_COMPAT_H

#define KNC_QEMU(major, minor) \
    (QEMU_VERSION_MAJOR * 100 + QEMU_VERSION_MINOR >= (major) * 100 + (minor))

#if KNC_QEMU(11, 1)
#define knc_singlestep(cs)      ((cs)->singlestep_flags)
#else
#define knc_singlestep(cs)      ((cs)->singlestep_enabled)
#endif

#if KNC_QEMU(10, 2)
/* cpu_exit() would call knc_kick(). */
#define knc_tcg_exit(cs)        tcg_kick_vcpu_thread(cs)
#define knc_set_interrupt(cs, mask) cpu_set_interrupt(cs, mask)
#define qemu_wait_io_event_common qemu_process_cpu_events_common
#define TARGET_INSN_START_WORDS INSN_START_WORDS
#define CharBackend             CharFrontend
#else
#define knc_tcg_exit(cs)        cpu_exit(cs)
#define knc_set_interrupt(cs, mask) ((cs)->interrupt_request |= (mask))
#endif

#if KNC_QEMU(10, 1)
#define KNC_CLASS_DATA          const void
#define KNC_OP_ADD              INDEX_op_add
#else
#define KNC_CLASS_DATA          void
#define KNC_OP_ADD              INDEX_op_add_i64
#endif

#if KNC_QEMU(10, 0)
#define KNC_PROPERTY            const Property
#define KNC_PROPERTIES_END
#else
#define KNC_PROPERTY            Property
#define KNC_PROPERTIES_END      DEFINE_PROP_END_OF_LIST()
#endif

#if KNC_QEMU(9, 2)
#define KNC_SHARED_BY_CORE      .share_level = CPU_TOPOLOGY_LEVEL_CORE,
#else
#define KNC_SHARED_BY_CORE
#endif

#if !KNC_QEMU(9, 0)
#define bql_locked()            qemu_mutex_iothread_locked()
#define bql_lock()              qemu_mutex_lock_iothread()
#define bql_unlock()            qemu_mutex_unlock_iothread()
#define qemu_cond_timedwait_bql qemu_cond_timedwait_iothread
#define qemu_cond_wait_bql      qemu_cond_wait_iothread
#define tcg_cpu_exec            tcg_cpus_exec
#endif

/* Kinds of temporaries: of an instruction; those that outlive a branch */
#if !KNC_QEMU(8, 0)
#define KNC_TEMP_NORMAL         TEMP_NORMAL
#define KNC_TEMP_KEPT           TEMP_LOCAL
#define knc_temp_new_i64        tcg_temp_new_i64
#define knc_temp_new_kept       tcg_temp_local_new_i64
#define tcg_env                 cpu_env
#else
#define KNC_TEMP_NORMAL         TEMP_EBB
#define KNC_TEMP_KEPT           TEMP_TB
#define knc_temp_new_i64        tcg_temp_ebb_new_i64
#define knc_temp_new_kept       tcg_temp_new_i64
#endif

/* One decoder for all instructions; a rep string instruction is a loop */
#define KNC_NEW_DECODER         KNC_QEMU(8, 0)
#if KNC_NEW_DECODER
#define KNC_GEN(name) \
    static void gen_##name(DisasContext *s, X86DecodedInsn *decode)
#define KNC_GEN_SOURCE(s)       ((s)->T0)
#define KNC_GEN_DISTANCE(s, decode) ((int)(decode)->immediate)
#define gen_knc_lea(s, decode)  gen_lea_modrm(s, decode)
#else
#define KNC_GEN(name) \
    static void gen_##name(DisasContext *s, CPUX86State *env, \
                           X86DecodedInsn *decode)
#define KNC_GEN_SOURCE(s)       ((s)->T1)
#define KNC_GEN_DISTANCE(s, decode) \
    ((int)((decode)->immediate - ((s)->pc - (s)->cs_base)))
#define gen_knc_lea(s, decode)  gen_load_ea(s, &(decode)->mem, false)
#endif

/* With -icount: may do I/O now; instructions left before the next event */
#if KNC_QEMU(8, 2)
#define knc_can_do_io(cs)       ((cs)->neg.can_do_io)
#define knc_icount_low(cs)      ((cs)->neg.icount_decr.u16.low)
#else
#define knc_icount_low(cs)      (cpu_neg(cs)->icount_decr.u16.low)
#define knc_can_do_io(cs)       ((cs)->can_do_io)
#endif

/* Translate an address, with TLB_INVALID_MASK in place of a fault. */
#if KNC_QEMU(8, 0)
#define knc_probe(env, vaddr, type, mmu_idx, host, full) \
    probe_access_full_mmu(env, vaddr, 1, type, mmu_idx, host, full)
#define knc_fetch_mmu_index(env) cpu_mmu_index(env_cpu(env), true)
#define knc_data_mmu_index(env) cpu_mmu_index(env_cpu(env), false)
#else
#define knc_probe(env, vaddr, type, mmu_idx, host, full) \
    probe_access_full(env, vaddr, type, mmu_idx, true, host, full, 0)
#define knc_fetch_mmu_index(env) cpu_mmu_index(env, true)
#define knc_data_mmu_index(env) cpu_mmu_index(env, false)
/* The TLB is accessible here and holds most addresses. */
#define KNC_CAN_SEE_TLB
#endif

/* Where a TLB is, from CPUX86State, as the code for accesses finds it */
#if KNC_QEMU(8, 2)
#define knc_tlb_offset(mmu_idx) \
    ((intptr_t)offsetof(ArchCPU, parent_obj.neg.tlb.f[mmu_idx]) - \
     (intptr_t)offsetof(ArchCPU, env))
#else
#define knc_tlb_offset(mmu_idx) \
    ((intptr_t)offsetof(ArchCPU, neg.tlb.f[mmu_idx]) - \
     (intptr_t)offsetof(ArchCPU, env))
#endif

#endif /* I386_KNC_COMPAT_H */
