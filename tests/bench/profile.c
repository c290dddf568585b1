// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the kernel's instructions go: a plugin for QEMU that follows one
 * function of the guest's kernel, or one of its interrupt entries, from its
 * first instruction to its return.
 *
 *	-plugin profile.so,from=ADDR[,own=ADDR,delivery=ADDR] -d plugin
 *
 * "own" is a function called in there, "delivery" one called in that, which
 * divide what is counted into three parts. At the end it prints
 *
 *	call INSTRUCTIONS RDMSR WRMSR RDPMC LVTPC	for each call
 *	at ADDRESS OUTSIDE OWN DELIVERY			for each instruction
 *
 * where LVTPC is the number of writes to that register, and the last three say
 * how often the instruction was executed in each part. Of the latter only calls
 * are counted that took as many instructions as the one before, as most do: in
 * the others something happened that is rare. "usual N" is their number.
 */
#include <glib.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <qemu-plugin.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

#define MAX_CPUS	256
#define USER_END	(1ULL << 47)

/* The kernel maps the APIC somewhere into the last part of the address space. */
#define FIXMAP		0xffffffffff000000ULL
#define PAGE_OFFSET(a)	((a) & 0xfff)
#define APIC_LVTPC	0x340

enum part { OUTSIDE, OWN, DELIVERY, PARTS };
enum { INSTRUCTIONS, RDMSR, WRMSR, RDPMC, LVTPC, FIGURES };
enum kind { OTHER, CALL, RETURN, INTERRUPT_RETURN, REPEAT };

/* An instruction of the kernel; they are never freed, as code may be running. */
struct site {
	uint64_t address;
	enum kind kind;
	int access;			/* RDMSR ... RDPMC, or 0 */
	uint64_t count[PARTS];
};

/* What a CPU is doing: how deep in calls, and at which depth each part began */
struct cpu {
	bool inside;
	int depth;
	int begin[PARTS];
	enum part part;
	struct site *last;
	uint32_t figure[FIGURES];	/* of this call */
	uint32_t before;		/* instructions of the call before */
	GArray *steps;			/* what this call has executed */
};

struct step {
	struct site *site;
	enum part part;
};

static uint64_t begin_of[PARTS];
static struct cpu cpus[MAX_CPUS];
static uint64_t usual;
static GHashTable *sites;
static GString *calls;
static GMutex lock;

static void decode(struct site *site, const struct qemu_plugin_insn *insn)
{
	const uint8_t *byte = qemu_plugin_insn_data(insn);
	size_t size = qemu_plugin_insn_size(insn);
	size_t i = 0;

	/* Prefixes: operand size, segments, repeat and REX */
	while (i < size - 1 && (byte[i] == 0x66 || byte[i] == 0x2e || byte[i] == 0x3e ||
				byte[i] == 0xf2 || byte[i] == 0xf3 ||
				(byte[i] & 0xf0) == 0x40))
		i++;

	site->kind = OTHER;
	site->access = 0;
	if (byte[i] == 0xe8 || (byte[i] == 0xff && (byte[i + 1] & 0x38) == 0x10))
		site->kind = CALL;
	else if (byte[i] == 0xc3 || byte[i] == 0xc2)
		site->kind = RETURN;
	else if (byte[i] == 0xcf)
		site->kind = INTERRUPT_RETURN;
	else if ((byte[i] & 0xfc) == 0xa4 || (byte[i] & 0xfc) == 0xac ||
		 (byte[i] & 0xfe) == 0xaa)
		site->kind = REPEAT;
	else if (byte[i] == 0x0f && byte[i + 1] == 0x30)
		site->access = WRMSR;
	else if (byte[i] == 0x0f && byte[i + 1] == 0x32)
		site->access = RDMSR;
	else if (byte[i] == 0x0f && byte[i + 1] == 0x33)
		site->access = RDPMC;
}

static void begin_part(struct cpu *cpu, enum part part)
{
	cpu->part = part;
	cpu->begin[part] = cpu->depth;
}

static void end_call(struct cpu *cpu)
{
	cpu->inside = false;
	g_mutex_lock(&lock);
	g_string_append(calls, "call");
	for (int i = 0; i < FIGURES; i++)
		g_string_append_printf(calls, " %u", cpu->figure[i]);
	g_string_append_c(calls, '\n');
	if (cpu->figure[INSTRUCTIONS] == cpu->before) {
		usual++;
		for (size_t i = 0; i < cpu->steps->len; i++) {
			struct step *step = &g_array_index(cpu->steps, struct step, i);

			step->site->count[step->part]++;
		}
	}
	g_mutex_unlock(&lock);
	cpu->before = cpu->figure[INSTRUCTIONS];
}

static void kernel_insn(unsigned int index, void *data)
{
	struct cpu *cpu = &cpus[index % MAX_CPUS];
	struct site *site = data;
	/* QEMU has each round of a rep executed, the processor one instruction. */
	bool again = site->kind == REPEAT && site == cpu->last;
	struct step step;

	cpu->last = site;
	if (site->address == begin_of[OUTSIDE] && !cpu->inside) {
		cpu->inside = true;
		cpu->depth = 0;
		memset(cpu->figure, 0, sizeof(cpu->figure));
		if (!cpu->steps)
			cpu->steps = g_array_new(false, false, sizeof(struct step));
		g_array_set_size(cpu->steps, 0);
		begin_part(cpu, OUTSIDE);
	}
	if (!cpu->inside || again)
		return;

	if (cpu->part + 1 < PARTS && site->address == begin_of[cpu->part + 1])
		begin_part(cpu, cpu->part + 1);
	step = (struct step){ site, cpu->part };
	g_array_append_val(cpu->steps, step);
	cpu->figure[INSTRUCTIONS]++;
	if (site->access)
		cpu->figure[site->access]++;

	if (site->kind == CALL) {
		cpu->depth++;
	} else if (site->kind == INTERRUPT_RETURN) {
		end_call(cpu);
	} else if (site->kind == RETURN && cpu->depth-- == cpu->begin[cpu->part]) {
		if (cpu->part == OUTSIDE)
			end_call(cpu);
		else
			cpu->part--;
	}
}

static void memory(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address,
		   void *data)
{
	struct cpu *cpu = &cpus[index % MAX_CPUS];

	if (cpu->inside && address >= FIXMAP && PAGE_OFFSET(address) == APIC_LVTPC)
		cpu->figure[LVTPC]++;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	if (qemu_plugin_tb_vaddr(tb) < USER_END)
		return;

	g_mutex_lock(&lock);
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);
		struct site *site = g_hash_table_lookup(sites, &address);

		if (!site) {
			site = g_new0(struct site, 1);
			site->address = address;
			g_hash_table_insert(sites, &site->address, site);
		}
		/* The kernel patches its code as it runs. */
		decode(site, insn);
		qemu_plugin_register_vcpu_insn_exec_cb(insn, kernel_insn,
						       QEMU_PLUGIN_CB_NO_REGS, site);
		qemu_plugin_register_vcpu_mem_cb(insn, memory, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_W, NULL);
	}
	g_mutex_unlock(&lock);
}

static void print_site(gpointer key, gpointer value, gpointer data)
{
	const struct site *site = value;
	g_autofree char *line = NULL;

	if (!(site->count[OUTSIDE] | site->count[OWN] | site->count[DELIVERY]))
		return;
	line = g_strdup_printf("at %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			       site->address, site->count[OUTSIDE], site->count[OWN],
			       site->count[DELIVERY]);
	qemu_plugin_outs(line);
}

static void finish(qemu_plugin_id_t id, void *data)
{
	g_string_append_printf(calls, "usual %" PRIu64 "\n", usual);
	qemu_plugin_outs(calls->str);
	g_hash_table_foreach(sites, print_site, NULL);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
					   int argc, char **argv)
{
	const struct {
		const char *name;
		uint64_t *address;
	} options[] = {
		{ "from=", &begin_of[OUTSIDE] },
		{ "own=", &begin_of[OWN] },
		{ "delivery=", &begin_of[DELIVERY] },
	};

	for (int i = 0; i < argc; i++)
		for (size_t o = 0; o < G_N_ELEMENTS(options); o++)
			if (g_str_has_prefix(argv[i], options[o].name))
				*options[o].address =
					strtoull(argv[i] + strlen(options[o].name), NULL, 16);
	if (!begin_of[OUTSIDE]) {
		qemu_plugin_outs("profile: from= is needed\n");
		return -1;
	}

	sites = g_hash_table_new(g_int64_hash, g_int64_equal);
	calls = g_string_new(NULL);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, finish, NULL);
	return 0;
}
