// SPDX-License-Identifier: GPL-2.0-only
/*
 * perf for a card (scripts/build-card-perf), where programs have the chip's instructions alone,
 * and on Linux 2.6.38
 */
#include "lib.h"

#define SAID	"/tmp/perf-said"
#define DATA	"/tmp/perf.data"

/* What "perf ARGUMENT..." prints; it has to succeed. */
#define perf(...) run_perf((const char *[]){ "./perf", __VA_ARGS__, NULL })

static char *run_perf(const char *const argv[])
{
	int status = run_into(SAID, (char *const *)argv), i;
	char *text, what[500] = "";

	for (i = 0; argv[i]; i++)
		snprintf(what + strlen(what), sizeof(what) - strlen(what), " %s", argv[i]);
	text = file_text(SAID);
	must(!status && text, "wait status %#x of%s: %s", status, what, text ?: "");
	return text;
}

/* In what "perf stat -x," prints, the count of this event */
static u64 count_of(const char *text, const char *event)
{
	const char *at = strstr(text, event);

	must(at && at > text, "no %s: %s", event, text);
	while (at > text && at[-1] != '\n')
		at--;
	must(*at >= '0' && *at <= '9', "%s is not counted: %s", event, text);
	return strtoull(at, NULL, 10);
}

static unsigned int lines_with(const char *text, const char *word)
{
	unsigned int lines = 0;

	for (; (text = strstr(text, word)); lines++)
		text += strcspn(text, "\n");
	return lines;
}

TEST("card-perf", 300)
{
	static const char *const rounds[] = { "100000", "200000" };
	u64 instructions[2], branches[2];
	const char *said;
	int i;

	/* A program that starts at another address may take some instructions more. */
	file_write("/proc/sys/kernel/randomize_va_space", "0");
	for (i = 0; i < 2; i++) {
		said = perf("stat", "-x,", "-e", "instructions:u,branches:u", "./gt", "--spin20",
			    rounds[i]);
		instructions[i] = count_of(said, "instructions:u");
		branches[i] = count_of(said, "branches:u");
	}
	file_write("/proc/sys/kernel/randomize_va_space", "2");
	must(instructions[1] - instructions[0] == 20 << 20 &&
	     branches[1] - branches[0] == 1 << 20,
	     "of 2^20 rounds %llu instructions, %llu branches", instructions[1] - instructions[0],
	     branches[1] - branches[0]);

	said = perf("stat", "-j", "-e", "instructions:u", "./gt", "--spin20", "1000");
	must(strstr(said, "\"event\" : \"instructions:u\""), "-j: %s", said);
	said = perf("stat", "-I", "100", "-x,", "-e", "instructions:u", "./gt", "--spin20",
		    "1000000");
	must(lines_with(said, "instructions:u") > 2, "-I 100: %s", said);
	said = perf("stat", "-M", "cpi_thread", "./gt", "--spin20", "100000");
	must(strstr(said, "cpi_thread"), "-M: %s", said);
	said = perf("list", "page_walk");
	must(strstr(said, "long_data_page_walk") && strstr(said, "Page walks for data"), "list: %s",
	     said);
}

TEST("card-perf-record", 300)
{
	const char *said, *hot;
	u64 count, samples, truth;
	int line;

	/* The emulator counts on a thread only while its PMU does: for the workload alone. */
	td_need();
	truth = td_sum(TD_INSN_USER);
	count = count_of(perf("stat", "-x,", "-e", "instructions:u", "./workload"),
			 "instructions:u");
	truth = td_sum(TD_INSN_USER) - truth;
	must(count == truth, "perf counts %llu instructions, the emulator %llu", count, truth);
	perf("record", "-q", "-o", DATA, "-c", "1000000", "-e", "instructions:u", "./workload");
	samples = lines_with(perf("script", "-i", DATA, "-F", "comm,ip,sym"), "workload");
	must(samples >= count / 1000000 - 1 && samples <= count / 1000000 + 1,
	     "%llu samples of %llu instructions", samples, count);
	said = perf("report", "-i", DATA, "--stdio", "--sort", "sym,srcline");
	/* The first line that is no comment, of the loop in the function */
	hot = strstr(said, "find_primes");
	must(hot && !strstr(said, "checksum") == !strstr(hot, "checksum"), "report: %s", said);
	must(sscanf(hot, "find_primes workload.c:%d", &line) == 1 && line >= 22 && line <= 26,
	     "report: the hottest line is not the loop: %s", said);
	note("%llu samples; the hottest line is %d", samples, line);
}
