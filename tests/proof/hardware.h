/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The PMU of a hardware thread and its interrupt, as the manual has them (327357-001), and
 * what may happen at each place of the driver. Nothing here is the driver's.
 */
static struct {
	u64 counter[2];		/* 40 bits; a write sets all of them (1.4.3.2) */
	u32 evtsel[2];		/* what each counts (1.4.3.3) */
	u32 status;		/* which have wrapped (1.4.3.5); OVF_CTRL clears it (1.4.3.6) */
	u32 ctrl;		/* GLOBAL_CTRL: which counters run (1.4.3.7) */
	bool line;		/* to the APIC, of 1 bit: up while STATUS is not 0 (1.4.3.9) */
	bool masked;		/* the LVT entry; only a write of the entry unmasks it */
	bool coming;		/* an edge was seen; its NMI, the PMI, has not been delivered */
	bool swallowed;		/* another handler has claimed a PMI, and the entry may be masked */
	/* "Masked as it is delivered" has two readings: at the NMI, or at the edge */
	bool mask_late;
} hw;

#define SIGN		BIT_ULL(39)
#define COUNTER_MAX	(BIT_ULL(39) * 2 - 1)

/* The counter as the driver has it in prev_count: it counts up to 0. */
static s64 counter(unsigned int i)
{
	return sign_extend64(hw.counter[i], 39);
}

/* 1.4.3.9: the APIC sees edges only, and none while the entry is masked. */
static void drive_line(void)
{
	bool edge = hw.status && !hw.line;

	hw.line = hw.status;
	if (!edge)
		return;
	/* Masked late, one may come before the handler stops the counters: STATUS shows it. */
	HOLDS(!hw.masked || hw.mask_late || hw.swallowed,
	      "no edge comes while the LVT entry is masked");
	if (hw.masked)
		return;
	hw.masked = !hw.mask_late;
	hw.coming = true;
}

/*
 * Since the last place a counter that runs may have counted anything, and wrapped (1.4.3.8).
 * Assumed: it does not count 2^39 more while its overflow waits.
 */
static void count_anything(unsigned int i)
{
	struct perf_event *event = knc_pmus.event[i];
	u64 value = nondet_u64();

	if (!(hw.ctrl >> i & 1))
		return;
	HOLDS(event || operation == RESET, "no counter runs with an empty slot");
	HOLDS(!event || hw.evtsel[i] == event->hw.config, "a counter counts its slot's event");
	ASSUME(value <= COUNTER_MAX && sign_extend64(value, 39) >= counter(i));
	if (hw.counter[i] & SIGN && !(value & SIGN))
		hw.status |= BIT(i);
	hw.counter[i] = value;
}

/* An NMI is delivered: the PMI that is coming, or another source's. */
static void deliver_nmi(bool own)
{
	enum knc_state state = knc_pmus.state;
	struct pt_regs regs = { .user = nondet_bool() };
	bool handled;

	if (own) {
		hw.coming = false;
		hw.masked |= hw.mask_late;
	}
	in_pmi = true;
	nmi_level++;
	handled = knc_pmi(&regs);
	nmi_level--;
	in_pmi = false;
	HOLDS(knc_pmus.state == state, "the state after an NMI is that before it");
	HOLDS(handled || !own || !hw.mask_late || state == KNC_OFF, "each PMI is claimed");
	HOLDS(!knc_pmus.pending || !hw.ctrl || state == KNC_OFF,
	      "the counters are stopped while a PMI is pending");
}

/* Before each access to a register or to memory that an NMI shares */
static void place(void)
{
	if (!running)
		return;
	if (hw.ctrl) {
		count_anything(0);
		count_anything(1);
		drive_line();
	}
	if (knc_pmus.state == KNC_OFF)
		check_quiesced();
	if (in_pmi)
		return;
	if (hw.coming && nondet_bool()) {
		hw.coming = false;
		hw.masked |= hw.mask_late;
		hw.swallowed = hw.status || hw.masked;
	}
	if (!nondet_bool())
		return;
	if (knc_pmus.state == KNC_RUN || (knc_pmus.state == KNC_STOP && hw.ctrl)) {
		handled_pmis();
		return;
	}
	if (knc_pmus.state == KNC_STOP)
		hw.ctrl = 0;	/* as it is: this is for the solver */
	deliver_nmi(hw.coming && nondet_bool());
}

static void knc_write_lvtpc(u32 value)
{
	place();
	HOLDS((value & ~APIC_LVT_MASKED) == APIC_DM_NMI, "the LVT entry is an NMI's");
	hw.masked = value & APIC_LVT_MASKED;
	HOLDS(hw.masked || !hw.ctrl, "the LVT entry is unmasked while the counters are stopped");
	hw.swallowed &= hw.masked || hw.status;
}

static u32 knc_read_lvtpc(void)
{
	place();
	return APIC_DM_NMI | (hw.masked ? APIC_LVT_MASKED : 0);
}

/* Reserved bits are written as 0; STATUS is read only, OVF_CTRL write only (Table 1-2). */
static void write_msr(u32 msr, u64 value)
{
	place();
	HOLDS(msr == 0x2e || msr == 0x2f, "the register can be written");
	HOLDS(!(value & ~3ULL), "reserved bits are written as 0");
	if (msr == 0x2f) {
		if (value)
			read_anywhere();
		hw.ctrl = value;
		return;
	}
	HOLDS(!hw.ctrl, "STATUS is cleared while the counters are stopped");
	hw.status &= ~value;
	drive_line();
}

static void write_counter_msr(u32 msr, u64 value)
{
	place();
	HOLDS(!hw.ctrl, "what a counter has and counts is written while it is stopped");
	if ((msr & ~1U) == 0x20) {
		HOLDS(!may_read() || !knc_pmus.event[msr & 1], "a counter is written in no slot");
		HOLDS(value <= COUNTER_MAX, "reserved bits are written as 0");
		hw.counter[msr & 1] = value;
	} else {
		HOLDS((msr & ~1U) == 0x28, "the register can be written");
		TABLE(evtsel);
		hw.evtsel[msr & 1] = value;
	}
}

static u64 knc_rdmsr(u32 msr)
{
	place();
	HOLDS(msr == 0x2d || msr == 0x2f, "the register can be read");
	if (msr == 0x2d)
		split_status();
	return msr == 0x2d ? hw.status : hw.ctrl;
}

static u64 knc_read_counter(u32 idx)
{
	if (knc_pmus.state == KNC_STOP) {
		HOLDS(!hw.ctrl, "in KNC_STOP a counter is read while it is stopped");
		hw.ctrl = 0;	/* as it is: this is for the solver */
	}
	place();
	HOLDS(idx < 2, "the counter is there");
	return hw.counter[idx & 1];
}
