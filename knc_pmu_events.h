/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The events of the Knights Corner core PMU, in one list. Every table, and every file under
 * events/, is made from it. The rows and names are those of Table 1-6 of Intel document
 * 327357-001.
 */
#ifndef _KNC_PMU_EVENTS_H
#define _KNC_PMU_EVENTS_H

/* Unit masks select the unit that reports (column FUB of Table 1-6). */
#define KNC_UNIT_P54C			0x00	/* core pipeline, L1, TLBs */
#define KNC_UNIT_CRI			0x10	/* core-ring interface, L2 */
#define KNC_UNIT_VPU			0x20	/* vector unit */

/* E(unit, code, NAME, name, description), in the manual's order */
#define KNC_EVENTS(E)							\
E(P54C, 0x00, DATA_READ, data_read,					\
	"Data reads committed by the L1 data cache")			\
E(P54C, 0x01, DATA_WRITE, data_write,					\
	"Data writes committed by the L1 data cache, streaming stores included") \
E(P54C, 0x02, DATA_PAGE_WALK, data_page_walk,				\
	"Page walks for data, reads and writes alike")			\
E(P54C, 0x03, DATA_READ_MISS, data_read_miss,				\
	"Data reads that missed the L1 data cache, prefetches not included") \
E(P54C, 0x04, DATA_WRITE_MISS, data_write_miss,				\
	"Data writes that missed the L1 data cache")			\
E(P54C, 0x06, DATA_CACHE_LINES_WRITTEN_BACK, data_cache_lines_written_back, \
	"Dirty lines written back from the L1 data cache, for whatever reason") \
E(P54C, 0x09, MEMORY_ACCESSES_IN_BOTH_PIPES, memory_accesses_in_both_pipes, \
	"Memory accesses paired in the U and the V pipe")		\
E(P54C, 0x0a, BANK_CONFLICTS, bank_conflicts,				\
	"Bank conflicts in the L1 data cache")				\
E(P54C, 0x0c, CODE_READ, code_read,					\
	"Instruction reads, cacheable or not")				\
E(P54C, 0x0d, CODE_PAGE_WALK, code_page_walk,				\
	"Page walks for instruction reads")				\
E(P54C, 0x0e, CODE_CACHE_MISS, code_cache_miss,				\
	"Instruction reads that missed the L1 instruction cache")	\
E(P54C, 0x11, L1_DATA_PF1, l1_data_pf1,					\
	"vprefetch0 requests that reached the L1 data cache")		\
E(P54C, 0x12, BRANCHES, branches,					\
	"Branches taken or not: jumps, calls, returns, software interrupts, IRET") \
E(P54C, 0x15, PIPELINE_FLUSHES, pipeline_flushes,			\
	"Pipeline flushes by branches, exceptions, interrupts, segment loads") \
E(P54C, 0x16, INSTRUCTIONS_EXECUTED, instructions_executed,		\
	"Instructions executed, at most two a clock")			\
E(P54C, 0x17, INSTRUCTIONS_EXECUTED_V_PIPE, instructions_executed_v_pipe, \
	"Instructions executed in the V pipe, that is, as second of a pair") \
E(P54C, 0x1c, L1_DATA_PF1_MISS, l1_data_pf1_miss,			\
	"vprefetch0 requests that missed the L1 data cache")		\
E(P54C, 0x1e, L1_DATA_PF1_DROP, l1_data_pf1_drop,			\
	"vprefetch0 requests dropped by the L1 data cache")		\
E(P54C, 0x1f, PIPELINE_AGI_STALLS, pipeline_agi_stalls,			\
	"Address generation interlocks; one in both pipes counts twice") \
E(P54C, 0x20, L1_DATA_HIT_INFLIGHT_PF1, l1_data_hit_inflight_pf1,	\
	"Data requests that met a vprefetch0 in flight, of any thread")	\
E(P54C, 0x21, PIPELINE_SG_AGI_STALLS, pipeline_sg_agi_stalls,		\
	"Address generation interlocks by vector scatters and gathers")	\
E(P54C, 0x28, DATA_READ_OR_WRITE, data_read_or_write,			\
	"Data reads and writes, hits and misses of the L1 data cache")	\
E(P54C, 0x29, DATA_READ_MISS_OR_WRITE_MISS, data_read_miss_or_write_miss, \
	"Data reads and writes that missed the L1 data cache")		\
E(P54C, 0x2a, CPU_CLK_UNHALTED, cpu_clk_unhalted,			\
	"Core clocks not halted; counted for the core, the same for its threads") \
E(P54C, 0x2b, BRANCHES_MISPREDICTED, branches_mispredicted,		\
	"Branches that hit the BTB and were predicted wrongly")		\
E(P54C, 0x2c, MICROCODE_CYCLES, microcode_cycles,			\
	"Clocks in microcode, which stalls the core's other threads")	\
E(P54C, 0x2d, FE_STALLED, fe_stalled,					\
	"Clocks in which the front end could not advance")		\
E(P54C, 0x2e, EXEC_STAGE_CYCLES, exec_stage_cycles,			\
	"Clocks completed in the integer execution stage")		\
E(P54C, 0x37, L1_DATA_PF2, l1_data_pf2,					\
	"vprefetch1 requests that reached the L1 data cache, dropped ones too") \
E(P54C, 0x38, L2_DATA_PF1_MISS, l2_data_pf1_miss,			\
	"vprefetch0 requests that missed the L2 cache")			\
E(P54C, 0x3a, LONG_DATA_PAGE_WALK, long_data_page_walk,			\
	"Page walks for data that also missed the L2 TLB")		\
E(P54C, 0x3b, LONG_CODE_PAGE_WALK, long_code_page_walk,			\
	"Page walks for instruction reads that also missed the L2 TLB")	\
E(CRI,  0xc8, L2_READ_HIT_E, l2_read_hit_e,				\
	"L2 reads that hit a line in state E")				\
E(CRI,  0xc9, L2_READ_HIT_M, l2_read_hit_m,				\
	"L2 reads that hit a line in state M")				\
E(CRI,  0xca, L2_READ_HIT_S, l2_read_hit_s,				\
	"L2 reads that hit a line in state S")				\
E(CRI,  0xcb, L2_READ_MISS, l2_read_miss,				\
	"L2 reads that missed; a prefetch and a demand of one line count twice") \
E(CRI,  0xcc, L2_WRITE_HIT, l2_write_hit,				\
	"L2 writes that hit")						\
E(CRI,  0xd7, L2_VICTIM_REQ_WITH_DATA, l2_victim_req_with_data,		\
	"Victim requests that L2 answered with data; counted for the core") \
E(CRI,  0xe3, SNP_HITM_BUNIT, snp_hitm_bunit,				\
	"Snoops that hit a modified line in the bus unit")		\
E(CRI,  0xe6, SNP_HIT_L2, snp_hit_l2,					\
	"Snoops that hit L2")						\
E(CRI,  0xe7, SNP_HITM_L2, snp_hitm_l2,					\
	"Snoops that hit a modified line in L2")			\
E(CRI,  0xf0, L2_CODE_READ_MISS_CACHE_FILL, l2_code_read_miss_cache_fill, \
	"Instruction reads that missed L2, filled from another core's L2") \
E(CRI,  0xf1, L2_DATA_READ_MISS_CACHE_FILL, l2_data_read_miss_cache_fill, \
	"Data reads that missed L2, filled from another core's L2")	\
E(CRI,  0xf2, L2_DATA_WRITE_MISS_CACHE_FILL, l2_data_write_miss_cache_fill, \
	"Data writes that missed L2, filled from another core's L2")	\
E(CRI,  0xf5, L2_CODE_READ_MISS_MEM_FILL, l2_code_read_miss_mem_fill,	\
	"Instruction reads that missed L2, filled from memory")		\
E(CRI,  0xf6, L2_DATA_READ_MISS_MEM_FILL, l2_data_read_miss_mem_fill,	\
	"Data reads that missed L2, filled from memory")		\
E(CRI,  0xf7, L2_DATA_WRITE_MISS_MEM_FILL, l2_data_write_miss_mem_fill,	\
	"Data writes that missed L2, filled from memory")		\
E(CRI,  0xfc, L2_DATA_PF2, l2_data_pf2,					\
	"vprefetch1 requests that reached L2")				\
E(CRI,  0xfd, L2_DATA_PF2_DROP, l2_data_pf2_drop,			\
	"vprefetch1 requests dropped by L2")				\
E(CRI,  0xfe, L2_DATA_PF2_MISS, l2_data_pf2_miss,			\
	"vprefetch1 requests that missed L2")				\
E(CRI,  0xff, L2_DATA_HIT_INFLIGHT_PF2, l2_data_hit_inflight_pf2,	\
	"Data requests that met a vprefetch1 in flight, of any thread")	\
E(VPU,  0x00, VPU_DATA_READ, vpu_data_read,				\
	"Vector reads, one for each cache line")			\
E(VPU,  0x01, VPU_DATA_WRITE, vpu_data_write,				\
	"Vector writes, one for each cache line")			\
E(VPU,  0x03, VPU_DATA_READ_MISS, vpu_data_read_miss,			\
	"Vector reads that missed the L1 data cache")			\
E(VPU,  0x04, VPU_DATA_WRITE_MISS, vpu_data_write_miss,			\
	"Vector writes that missed the L1 data cache")			\
E(VPU,  0x05, VPU_STALL_REG, vpu_stall_reg,				\
	"Stalls of the vector unit on a register dependency")		\
E(VPU,  0x16, VPU_INSTRUCTIONS_EXECUTED, vpu_instructions_executed,	\
	"Vector instructions executed, both pipes")			\
E(VPU,  0x17, VPU_INSTRUCTIONS_EXECUTED_V_PIPE, vpu_instructions_executed_v_pipe, \
	"Vector instructions executed in the V pipe")			\
E(VPU,  0x18, VPU_ELEMENTS_ACTIVE, vpu_elements_active,			\
	"Elements that the mask left active, summed over vector instructions")

/* Known from other tools for this chip. The unit mask of 0xce is that of 0xcf. */
#define KNC_EVENTS_EXTRA(E)						\
E(CRI,  0xc3, HWP_L2HIT, hwp_l2hit,					\
	"Hardware prefetches that hit L2 (not in the manual)")		\
E(CRI,  0xc4, HWP_L2MISS, hwp_l2miss,					\
	"Hardware prefetches that missed L2 (not in the manual)")	\
E(CRI,  0xce, L2_STRONGLY_ORDERED_STREAMING_VSTORES_MISS,		\
	l2_strongly_ordered_streaming_vstores_miss,			\
	"Strongly ordered streaming vector stores that missed L2 (not in the manual)") \
E(CRI,  0xcf, L2_WEAKLY_ORDERED_STREAMING_VSTORE_MISS,			\
	l2_weakly_ordered_streaming_vstore_miss,			\
	"Weakly ordered streaming vector stores that missed L2 (not in the manual)")

/* An event as PerfEvtSel has it: the code in 7:0, the unit mask in 15:8. */
#define KNC_EVENT_ENUM(unit, code, NAME, name, description)		\
	KNC_EVENT_##NAME = (KNC_UNIT_##unit << 8) | (code),

enum knc_event {
	KNC_EVENTS(KNC_EVENT_ENUM)
	KNC_EVENTS_EXTRA(KNC_EVENT_ENUM)
};

#undef KNC_EVENT_ENUM

/*
 * perf's generic hardware events: G(id, sysfs name, identifier, NAME). What is not listed
 * (bus-cycles, ref-cycles, stalled-cycles-backend) has no event here.
 */
#define KNC_GENERIC_EVENTS(G)						\
G(CPU_CYCLES, cpu-cycles, cpu_cycles, CPU_CLK_UNHALTED)			\
G(INSTRUCTIONS, instructions, instructions, INSTRUCTIONS_EXECUTED)	\
G(CACHE_REFERENCES, cache-references, cache_references, DATA_READ_OR_WRITE) \
G(CACHE_MISSES, cache-misses, cache_misses, DATA_READ_MISS_OR_WRITE_MISS) \
G(BRANCH_INSTRUCTIONS, branch-instructions, branch_instructions, BRANCHES) \
G(BRANCH_MISSES, branch-misses, branch_misses, BRANCHES_MISPREDICTED)

/*
 * The same without a name under events/: perf stat would count it unasked, where four
 * events take turns on two counters already, and print "stalled cycles per insn" of the
 * front end's stalls alone.
 */
#define KNC_GENERIC_EVENTS_UNOFFERED(G)					\
G(STALLED_CYCLES_FRONTEND, stalled-cycles-frontend,			\
	stalled_cycles_frontend, FE_STALLED)

/*
 * perf's generic cache events: C(cache, operation, result, NAME). Page walks are not told
 * apart by read and write, and L2 reports reads by the state of the line.
 */
#define KNC_CACHE_EVENTS(C)						\
C(L1D, READ, ACCESS, DATA_READ)						\
C(L1D, READ, MISS, DATA_READ_MISS)					\
C(L1D, WRITE, ACCESS, DATA_WRITE)					\
C(L1D, WRITE, MISS, DATA_WRITE_MISS)					\
C(L1D, PREFETCH, ACCESS, L1_DATA_PF1)					\
C(L1D, PREFETCH, MISS, L1_DATA_PF1_MISS)				\
C(L1I, READ, ACCESS, CODE_READ)						\
C(L1I, READ, MISS, CODE_CACHE_MISS)					\
C(LL, READ, MISS, L2_READ_MISS)						\
C(LL, PREFETCH, ACCESS, L2_DATA_PF2)					\
C(LL, PREFETCH, MISS, L2_DATA_PF2_MISS)					\
C(DTLB, READ, ACCESS, DATA_READ)					\
C(DTLB, WRITE, ACCESS, DATA_WRITE)					\
C(ITLB, READ, ACCESS, CODE_READ)					\
C(ITLB, READ, MISS, CODE_PAGE_WALK)					\
C(BPU, READ, ACCESS, BRANCHES)						\
C(BPU, READ, MISS, BRANCHES_MISPREDICTED)

#endif /* _KNC_PMU_EVENTS_H */
