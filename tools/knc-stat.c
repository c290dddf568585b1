// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts events of a program, of processes or of all CPUs on a Knights Corner.
 *
 * For cards that have no perf: one file that any compiler for the card takes, with headers
 * of any age, without a library but libc. Link it statically.
 *
 * Options and output are those of "perf stat". Events that do not fit the two counters take
 * turns: perf core would rotate them, but Linux 2.6.38 loses the time for which they wait.
 * Here the events of a turn always fit, and only they are enabled, so that perf core has
 * nothing to rotate.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long u64;
typedef unsigned int u32;

/* perf_event_open(2), as it was first: 64 bytes */
struct attr {
	u32 type, size;
	u64 config, period, sample_type, read_format, flags;
	u32 wakeup, bp_type;
	u64 config1;
};

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define SYS_OPEN	298
#define TIMES		(1ULL << 0 | 1ULL << 1)	/* read_format: enabled, running */
#define CPUS_MAX	8192			/* that an x86 kernel can have */
#define DISABLED	(1ULL << 0)
#define INHERIT		(1ULL << 1)
#define EXCLUDE_USER	(1ULL << 4)
#define EXCLUDE_KERNEL	(1ULL << 5)
#define ENABLE_ON_EXEC	(1ULL << 12)
#define IOC_ENABLE	0x2400
#define IOC_DISABLE	0x2401
#define TYPE_HARDWARE	0
#define TYPE_RAW	4

/* Of the chip: the counters, and the unit whose events only counter 0 has */
#define COUNTERS	2
#define UMASK(config)	((config) >> 8 & 0xff)
#define UMASK_CRI	0x10

#define DEVICES		"/sys/bus/event_source/devices"
#define NSEC		1000000000ULL
#define MAX_EVENTS	64
#define TURN_MS		100

#define FAILED		1
#define WRONG		2	/* arguments */
#define CANNOT_RUN	127

/* @group: the index of its leader; @duration: no event but the time */
struct event {
	char *name;
	struct attr attr;
	int group, turn;
	int duration, unsupported, without_model;
};

struct times {
	u64 value, enabled, running;
};

/* What is counted: a CPU, or a thread if @cpu is -1 */
struct place {
	int cpu;
	pid_t pid;
	int fd[MAX_EVENTS];
	struct times last[MAX_EVENTS];
};

static const char usage[] =
"usage: knc-stat [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
"       knc-stat [OPTION]... -a | -C CPU,... | -p PID,... [PROGRAM [ARGUMENT]...]\n"
"\n"
"Options and output are those of perf stat; a first word \"stat\" is skipped. Instead of a\n"
"count there is <not supported> if the kernel refused the event, <not counted> if it had no\n"
"counter, and <not modelled> on the emulated card, if that has no model of it. The status is\n"
"PROGRAM's, or 128 and its signal; 127 if it cannot be started; 1 if nothing is counted.\n"
"\n"
"  -e EVENT,...    names of the PMU or generic ones, rXXXX, PMU/TERM,.../; :u or :k after\n"
"                  it; {EVENT,...} are counted at the same time (cycles,instructions);\n"
"                  duration_time is the time in nanoseconds\n"
"  -a              all CPUs, until PROGRAM ends or ^C\n"
"  -C CPU,...      these CPUs\n"
"  -A              a line for each CPU\n"
"  -p PID,...      processes that run, with all their threads\n"
"  -I MS           a line for each interval\n"
"  -x SEPARATOR    fields with a separator, as perf stat -x has them\n"
"  -o FILE         where the counts go (stderr)\n"
"  --log-fd N      the same, as a file descriptor\n"
"  --no-scale      what was counted, also of events that take turns\n"
"  --turn MS       how long a turn is, where events do not fit two counters (100)\n";

/*
 * Events that the emulated card has no model of, as in knc_pmu_tables.ini. They never count
 * there, and 0 is no count.
 */
static const char * const without_model[] = {
	"memory_accesses_in_both_pipes", "bank_conflicts", "instructions_executed_v_pipe",
	"pipeline_agi_stalls", "l1_data_hit_inflight_pf1", "pipeline_sg_agi_stalls",
	"microcode_cycles",
	"l2_strongly_ordered_streaming_vstores_miss", "l2_weakly_ordered_streaming_vstore_miss",
	"snp_hitm_bunit", "l2_data_hit_inflight_pf2", "vpu_data_read", "vpu_data_write",
	"vpu_data_read_miss", "vpu_data_write_miss", "vpu_stall_reg",
	"vpu_instructions_executed", "vpu_instructions_executed_v_pipe", "vpu_elements_active",
};

static struct event events[MAX_EVENTS];
static int nevents, nturns = 1;
static struct place *places;
static int nplaces;
static const char *pmu;
static u32 pmu_type = TYPE_RAW;
static int is_emulated;

static int per_cpu, no_scale;
static const char *separator;
static u64 interval, turn_length = TURN_MS * 1000000ULL;
static FILE *out;
static u64 began;

static void __attribute__((noreturn, format(printf, 2, 3)))
die(int status, const char *format, ...)
{
	va_list args;

	fputs("knc-stat: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(status);
}

static void *checked(void *memory)
{
	if (!memory)
		die(FAILED, "out of memory");
	return memory;
}

static u64 now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC + ts.tv_nsec;
}

/* The first line of a file; NULL if there is none. */
static char *first_line(const char *path)
{
	static char line[4096];
	FILE *f = fopen(path, "r");
	char *got;

	if (!f)
		return NULL;
	got = fgets(line, sizeof(line), f);
	fclose(f);
	if (got)
		line[strcspn(line, "\n")] = '\0';
	return got;
}

static char *first_line_of(const char *folder, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), DEVICES "/%s/%s/%s", pmu, folder, name);
	return strchr(name, '/') ? NULL : first_line(path);
}

/* A number that is all of the text */
static u64 number(const char *text, int base, const char *what)
{
	char *end;
	u64 value;

	errno = 0;
	value = strtoull(text, &end, base);
	if (!isxdigit((unsigned char)*text) || *end || errno)
		die(WRONG, "%s: not what %s has to be", text, what);
	return value;
}

/* Counts of another processor's events would be wrong. */
static void find_pmu(void)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	int value, found = 0;
	char line[256], *type;

	while (f && fgets(line, sizeof(line), f) && *line != '\n') {
		is_emulated |= !strncmp(line, "model name", 10) && strstr(line, "(emulated)");
		found += (sscanf(line, "cpu family : %d", &value) == 1 && value == 11) ||
			 (sscanf(line, "model : %d", &value) == 1 && value == 1);
	}
	if (f)
		fclose(f);
	if (found != 2)
		die(FAILED, "this is no Knights Corner");
	pmu = access(DEVICES "/knc", F_OK) ? "cpu" : "knc";
	type = first_line_of(".", "type");
	if (type)
		pmu_type = number(type, 10, "the PMU's type");
}

/* --- events ----------------------------------------------------------------------- */

static void add_terms(struct event *event, char *terms);

/* Put a value where format/ has the term: "config:0-7", "config1:0". */
static void add_term(struct event *event, const char *term, const char *value)
{
	char *format = first_line_of("format", term);
	u64 bits = value ? number(value, 0, term) : 1;
	int is_config1, fields, low, high;

	if (!format)
		die(WRONG, "%s: the PMU \"%s\" has no such event or term%s", term, pmu,
		    first_line_of("format", "event") ? "" : ": is knc_pmu loaded?");
	is_config1 = !strncmp(format, "config1:", 8);
	fields = sscanf(format + (is_config1 ? 8 : 7), "%d-%d", &low, &high);
	if (fields < 1)
		die(FAILED, "format/%s: cannot read \"%s\"", term, format);
	if (fields == 1)
		high = low;
	if (high - low < 63 && bits >> (high - low + 1))
		die(WRONG, "%s=%s: too large", term, value);
	*(is_config1 ? &event->attr.config1 : &event->attr.config) |= bits << low;
}

/* An event of the PMU by its name, in either case; 0 if it has none. */
static int add_alias(struct event *event, const char *name)
{
	char lower[128], *terms;
	size_t i;

	for (i = 0; name[i] && i < sizeof(lower) - 1; i++)
		lower[i] = tolower((unsigned char)name[i]);
	lower[i] = '\0';
	terms = first_line_of("events", lower);
	if (!terms)
		return 0;
	terms = checked(strdup(terms));
	add_terms(event, terms);
	free(terms);
	return 1;
}

static void add_terms(struct event *event, char *terms)
{
	char *term, *value, *rest;

	for (term = strtok_r(terms, ",", &rest); term; term = strtok_r(NULL, ",", &rest)) {
		value = strchr(term, '=');
		if (value)
			*value++ = '\0';
		if (value && !strcmp(term, "name"))
			event->name = checked(strdup(value));
		else if (value && !strcmp(term, "config"))
			event->attr.config |= number(value, 0, term);
		else if (value && !strcmp(term, "config1"))
			event->attr.config1 |= number(value, 0, term);
		else if (value || !add_alias(event, term))
			add_term(event, term, value);
	}
}

/* 0 if it is none of perf's generic events. */
static int is_generic(struct event *event, const char *name)
{
	static const char * const names[] = {
		"cycles", "instructions", "cache-references", "cache-misses", "branches",
		"branch-misses",
	};
	size_t i;

	if (!strcmp(name, "cpu-cycles"))
		name = "cycles";
	else if (!strcmp(name, "branch-instructions"))
		name = "branches";
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i])) {
			event->attr.type = TYPE_HARDWARE;
			event->attr.config = i;
			return 1;
		}
	return 0;
}

static void add_modifiers(struct event *event, const char *modifiers)
{
	if (modifiers[strspn(modifiers, "uk")])
		die(WRONG, "%s: the modifiers are u and k, not \"%s\"", event->name, modifiers);
	if (*modifiers && event->attr.flags)
		die(WRONG, "%s: more modifiers than one", event->name);
	if (*modifiers && !strchr(modifiers, 'u'))
		event->attr.flags |= EXCLUDE_USER;
	if (*modifiers && !strchr(modifiers, 'k'))
		event->attr.flags |= EXCLUDE_KERNEL;
}

/* By the same code and unit mask, however the event was named */
static int is_without_model(const struct event *event)
{
	size_t i;

	for (i = 0; is_emulated && event->attr.type != TYPE_HARDWARE &&
	     i < ARRAY_SIZE(without_model); i++) {
		struct event other = { .name = NULL };

		if (add_alias(&other, without_model[i]) &&
		    other.attr.config == (event->attr.config & 0xffff))
			return 1;
	}
	return 0;
}

/* NAME[:uk], rXXXX[:uk] or PMU/TERMS/[uk] */
static void add_event(const char *text, int group)
{
	struct event *event = &events[nevents];
	char *copy = checked(strdup(text)), *modifiers, *terms, *end;

	if (!pmu)
		find_pmu();
	if (nevents == MAX_EVENTS)
		die(WRONG, "more than %d events", MAX_EVENTS);
	if (!*text || text[strcspn(text, "\"\\")])
		die(WRONG, "-e: there is no event where one should be");
	event->name = checked(strdup(text));
	event->group = group < 0 ? nevents : group;
	event->attr.type = pmu_type;
	nevents++;

	terms = strchr(copy, '/');
	if (terms) {
		*terms++ = '\0';
		if (strcmp(copy, pmu))
			die(WRONG, "%s: the PMU is called \"%s\", not \"%s\"", text, pmu, copy);
		end = strrchr(terms, '/');
		if (!end)
			die(WRONG, "%s: a \"/\" is missing", text);
		*end++ = '\0';
		add_modifiers(event, *end == ':' ? end + 1 : end);
		add_terms(event, terms);
	} else {
		modifiers = strchr(copy, ':');
		if (modifiers)
			*modifiers++ = '\0';
		add_modifiers(event, modifiers ? modifiers : "");
		event->duration = !strcmp(copy, "duration_time");
		if (*copy == 'r' && copy[1 + strspn(copy + 1, "0123456789abcdefABCDEF")] == '\0') {
			event->attr.type = TYPE_RAW;
			event->attr.config = number(copy + 1, 16, "a raw event");
		} else if (!event->duration && !is_generic(event, copy) &&
			   !add_alias(event, copy)) {
			add_term(event, copy, NULL);
		}
	}
	event->without_model = is_without_model(event);
	free(copy);
}

/* Up to a "," or "}" that is not between slashes; returns what follows. */
static const char *parse_event(const char *p, int group)
{
	size_t length;
	int in_terms = 0;
	char *text;

	for (length = 0; p[length] && (in_terms || !strchr(",}", p[length])); length++)
		in_terms ^= p[length] == '/';
	text = checked(strndup(p, length));
	add_event(text, group);
	free(text);
	return p + length;
}

/* EVENT,...}[:uk] */
static const char *parse_group(const char *p)
{
	int leader = nevents, i;
	char *modifiers;

	do
		p = parse_event(p, leader);
	while (*p++ == ',');
	if (p[-1] != '}')
		die(WRONG, "-e: a \"{\" without \"}\"");
	if (*p != ':')
		return p;
	modifiers = checked(strndup(p, strcspn(p, ",")));
	for (i = leader; i < nevents; i++) {
		add_modifiers(&events[i], modifiers + 1);
		events[i].name = checked(realloc(events[i].name, strlen(events[i].name) +
						 strlen(modifiers) + 1));
		strcat(events[i].name, modifiers);
	}
	p += strlen(modifiers);
	free(modifiers);
	return p;
}

static void parse_events(const char *p)
{
	for (;; p++) {
		p = *p == '{' ? parse_group(p + 1) : parse_event(p, -1);
		if (!*p)
			return;
		if (*p != ',')
			die(WRONG, "-e: there is \"%s\" after an event", p);
	}
}

static int only_counter_0(const struct event *event)
{
	return event->attr.type != TYPE_HARDWARE && UMASK(event->attr.config) == UMASK_CRI;
}

/* Put each group into the first turn that has room for it. */
static void make_turns(void)
{
	int used[MAX_EVENTS] = { 0 }, used_0[MAX_EVENTS] = { 0 };
	int i, j, turn, want, want_0;

	for (i = 0; i < nevents; i++) {
		if (events[i].group != i || events[i].duration)
			continue;
		want = 0;
		want_0 = 0;
		for (j = i; j < nevents; j++)
			if (events[j].group == i && !events[j].duration) {
				want++;
				want_0 += only_counter_0(&events[j]);
			}
		if (want > COUNTERS || want_0 > 1)
			die(WRONG, "the group of %s does not fit the two counters, of which %s",
			    events[i].name, "one has events of unit mask 0x10");
		for (turn = 0; used[turn] + want > COUNTERS || used_0[turn] + want_0 > 1; turn++)
			;
		used[turn] += want;
		used_0[turn] += want_0;
		for (j = i; j < nevents; j++)
			if (events[j].group == i)
				events[j].turn = turn;
		if (turn >= nturns)
			nturns = turn + 1;
	}
}

/* --- places ----------------------------------------------------------------------- */

static void add_place(int cpu, pid_t pid)
{
	int i;

	for (i = 0; i < nplaces; i++)
		if (cpu >= 0 && places[i].cpu == cpu)
			die(WRONG, "CPU %d stands twice", cpu);
	places = checked(realloc(places, (nplaces + 1) * sizeof(*places)));
	memset(&places[nplaces], 0, sizeof(*places));
	memset(places[nplaces].fd, -1, sizeof(places->fd));
	places[nplaces].cpu = cpu;
	places[nplaces].pid = pid;
	nplaces++;
}

/* "0-3,8" */
static void add_cpus(const char *list)
{
	char *copy = checked(strdup(list)), *range, *last, *rest;
	u64 cpu, end;

	for (range = strtok_r(copy, ",", &rest); range; range = strtok_r(NULL, ",", &rest)) {
		last = strchr(range, '-');
		if (last)
			*last++ = '\0';
		cpu = number(range, 10, "a CPU");
		end = last ? number(last, 10, "a CPU") : cpu;
		if (end < cpu || end >= CPUS_MAX)
			die(WRONG, "%s: no CPUs", list);
		for (; cpu <= end; cpu++)
			add_place(cpu, -1);
	}
	free(copy);
	if (!nplaces)
		die(WRONG, "\"%s\": no CPUs", list);
}

static void add_threads(const char *pid)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)number(pid, 10, "a process"));
	dir = opendir(path);
	if (!dir)
		die(FAILED, "-p %s: there is no such process", pid);
	while ((entry = readdir(dir)))
		if (isdigit((unsigned char)*entry->d_name))
			add_place(-1, atoi(entry->d_name));
	closedir(dir);
}

static void add_processes(const char *list)
{
	char *copy = checked(strdup(list)), *pid, *rest;

	for (pid = strtok_r(copy, ",", &rest); pid; pid = strtok_r(NULL, ",", &rest))
		add_threads(pid);
	free(copy);
}

static int targets_live(void)
{
	int i, live = 0;

	for (i = 0; i < nplaces; i++)
		live |= !kill(places[i].pid, 0) || errno == EPERM;
	return live;
}

/* --- counting --------------------------------------------------------------------- */

static void refused(struct event *event, int error)
{
	switch (error) {
	case ENOENT:
	case EINVAL:
	case EOPNOTSUPP:
		if (!event->unsupported)
			fprintf(stderr, "knc-stat: %s: %s\n", event->name, strerror(error));
		event->unsupported = 1;
		return;
	case EACCES:
	case EPERM:
		die(FAILED, "%s: %s; count without the kernel (%s:u), or as root", event->name,
		    strerror(error), event->name);
	default:
		die(FAILED, "%s: %s", event->name, strerror(error));
	}
}

/* A program that is started here is counted from its exec on. */
static void open_event(struct place *place, int i, int starts)
{
	struct event *event = &events[i];
	struct attr attr = event->attr;
	int leader = event->group == i ? -1 : place->fd[event->group];

	/* A refused leader takes its group with it. */
	event->unsupported |= events[event->group].unsupported;
	if (event->duration || event->unsupported || (leader < 0 && event->group != i))
		return;
	attr.size = sizeof(attr);
	attr.read_format = TIMES;
	if (place->cpu < 0)
		attr.flags |= INHERIT;
	if (leader < 0)
		attr.flags |= DISABLED;
	if (leader < 0 && starts && event->turn == 0)
		attr.flags |= ENABLE_ON_EXEC;
	place->fd[i] = syscall(SYS_OPEN, &attr, place->pid, place->cpu, leader, 0);
	/* A thread may have ended meanwhile. */
	if (place->fd[i] < 0 && errno != ESRCH)
		refused(event, errno);
	else if (place->fd[i] >= 0)
		fcntl(place->fd[i], F_SETFD, FD_CLOEXEC);
}

static void open_all(int starts)
{
	struct rlimit files;
	int i, j, any = 0;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	for (i = 0; i < nplaces; i++)
		for (j = 0; j < nevents; j++)
			open_event(&places[i], j, starts);
	for (j = 0; j < nevents; j++)
		any |= !events[j].duration && !events[j].unsupported;
	if (!any)
		die(FAILED, "none of the events can be counted");
}

/* Enable or disable the groups of a turn, by their leaders. */
static void switch_turn(int turn, int request)
{
	int i, j;

	for (i = 0; i < nplaces; i++)
		for (j = 0; j < nevents; j++)
			if (events[j].turn == turn && events[j].group == j && places[i].fd[j] >= 0)
				ioctl(places[i].fd[j], request, 0);
}

/* --- reports ---------------------------------------------------------------------- */

/* What a place has counted since the last report */
static struct times taken(struct place *place, int i)
{
	struct times all = { 0, 0, 0 }, since;

	if (place->fd[i] >= 0 && read(place->fd[i], &all, sizeof(all)) != sizeof(all))
		die(FAILED, "%s: cannot be read: %s", events[i].name, strerror(errno));
	since.value = all.value - place->last[i].value;
	since.enabled = all.enabled - place->last[i].enabled;
	since.running = all.running - place->last[i].running;
	place->last[i] = all;
	return since;
}

/* The time of all turns together: perf core tells an event that of its own turn only. */
static u64 whole_time(const struct times *of, int i)
{
	u64 whole = of[i].enabled;
	int turn, j;

	for (turn = 0; turn < nturns; turn++)
		for (j = 0; j < nevents && turn != events[i].turn; j++)
			if (events[j].turn == turn && of[j].enabled) {
				whole += of[j].enabled;
				break;
			}
	return whole;
}

/* value * whole / running without an overflow; exact if whole is running */
static u64 scaled(u64 value, u64 whole, u64 running)
{
	while (whole >> 32) {
		whole >>= 1;
		running >>= 1;
	}
	return running ? value / running * whole + value % running * whole / running : 0;
}

/* A count as it is printed; @when is empty without -I, and @cpu -1 for a sum. */
struct line {
	const char *event, *unit;
	char value[32], when[48], percent[32];
	u64 running;
	int cpu;
};

static void print_fields(const struct line *line, const char *s)
{
	if (*line->when)
		fprintf(out, "     %s%s", line->when, s);
	if (line->cpu >= 0)
		fprintf(out, "CPU%d%s", line->cpu, s);
	fprintf(out, "%s%s%s%s%s%s%llu%s%s%s%s\n", line->value, s, line->unit, s, line->event, s,
		line->running, s, line->percent, s, s);
}

static void print_text(const struct line *line)
{
	if (*line->when)
		fprintf(out, "%20s ", line->when);
	if (line->cpu >= 0)
		fprintf(out, "CPU%-4d", line->cpu);
	fprintf(out, "%18s %-2s %s", line->value, line->unit, line->event);
	if (strcmp(line->percent, "100.00"))
		fprintf(out, "   (%s%%)", line->percent);
	fputc('\n', out);
}

/* What an event has counted in its part of the time is taken for the whole of it. */
static void print_count(const struct event *event, const struct times *count, u64 whole,
			u64 time, int cpu)
{
	struct line line = { event->name, event->duration ? "ns" : "", "", "", "100.00",
			     count->running, cpu };
	u64 share;

	if (event->unsupported)
		strcpy(line.value, "<not supported>");
	else if (event->without_model)
		strcpy(line.value, "<not modelled>");
	else if (!count->running)
		strcpy(line.value, "<not counted>");
	else
		snprintf(line.value, sizeof(line.value), "%llu",
			 no_scale ? count->value :
			 scaled(count->value, whole, count->running));
	if (count->running && count->running < whole) {
		share = scaled(10000, count->running, whole);
		snprintf(line.percent, sizeof(line.percent), "%llu.%02llu", share / 100,
			 share % 100);
	}
	if (interval)
		snprintf(line.when, sizeof(line.when), "%llu.%09llu", time / NSEC, time % NSEC);

	if (separator)
		print_fields(&line, separator);
	else
		print_text(&line);
}

static void print_counts(struct times *of, u64 time, u64 span, int cpu)
{
	int i;

	for (i = 0; i < nevents; i++) {
		if (events[i].duration) {
			struct times length = { span, span, span };

			print_count(&events[i], &length, span, time, -1);
		} else {
			print_count(&events[i], &of[i], whole_time(of, i), time, cpu);
		}
	}
}

static void report(void)
{
	static u64 last;
	struct times sum[MAX_EVENTS], of[MAX_EVENTS];
	u64 time = now() - began, span = time - last;
	int i, j;

	memset(sum, 0, sizeof(sum));
	for (i = 0; i < nplaces; i++) {
		for (j = 0; j < nevents; j++) {
			of[j] = taken(&places[i], j);
			sum[j].value += of[j].value;
			sum[j].enabled += of[j].enabled;
			sum[j].running += of[j].running;
		}
		if (per_cpu)
			print_counts(of, time, span, places[i].cpu);
	}
	if (!per_cpu)
		print_counts(sum, time, span, -1);
	fflush(out);
	if (ferror(out))
		die(FAILED, "the counts cannot be written");
	last = time;
}

/* --- the program ------------------------------------------------------------------ */

static int go[2], failed[2];
static sigset_t waited;

/* Fork the program, which waits until its events are open. */
static pid_t start(char **argv)
{
	int error;
	pid_t pid;
	char c;

	if (pipe(go) || pipe(failed))
		die(FAILED, "pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		die(FAILED, "fork: %s", strerror(errno));
	if (pid)
		return pid;
	close(go[1]);
	fcntl(go[0], F_SETFD, FD_CLOEXEC);
	fcntl(failed[1], F_SETFD, FD_CLOEXEC);
	/* The end of the pipe: knc-stat has died. */
	if (read(go[0], &c, 1) != 1)
		_exit(CANNOT_RUN);
	sigprocmask(SIG_UNBLOCK, &waited, NULL);
	execvp(argv[0], argv);
	error = errno;
	if (write(failed[1], &error, sizeof(error)) < 0)
		_exit(CANNOT_RUN);
	_exit(CANNOT_RUN);
}

static void let_go(const char *program)
{
	int error;

	close(go[0]);
	close(failed[1]);
	if (write(go[1], "", 1) != 1)
		die(FAILED, "%s cannot be started", program);
	if (read(failed[0], &error, sizeof(error)) == sizeof(error)) {
		/* perf's words */
		fprintf(stderr, "Workload failed: %s\n", strerror(error));
		exit(CANNOT_RUN);
	}
}

static int status_of(const char *program, int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	fprintf(stderr, "%s: %s\n", program, strsignal(WTERMSIG(status)));
	return 128 + WTERMSIG(status);
}

/* Sleeps until then, or until a signal comes. */
static int wait_until(u64 then, siginfo_t *info)
{
	u64 time = now(), left = then > time ? then - time : 0;
	struct timespec ts = { left / NSEC, left % NSEC };

	return sigtimedwait(&waited, info, &ts);
}

/* Takes turns and reports until what is counted ends; returns the program's status. */
static int count(const char *program, pid_t pid)
{
	u64 next_turn = nturns > 1 ? began + turn_length : ~0ULL;
	u64 next_report = interval ? began + interval : ~0ULL;
	/* no signal tells that a process has ended that is no child */
	u64 look = pid ? NSEC * 3600 : NSEC / 10;
	int turn = 0, status = 0, caught;
	siginfo_t info;

	for (;;) {
		u64 then = now() + look;

		if (then > next_turn)
			then = next_turn;
		if (then > next_report)
			then = next_report;
		caught = wait_until(then, &info);
		if (pid && waitpid(pid, &status, WNOHANG) == pid)
			return status_of(program, status);
		if (caught == SIGINT || caught == SIGTERM) {
			if (!pid)
				return 0;
			/* A terminal has given it to the program, too. */
			if (info.si_code <= 0)
				kill(pid, caught);
		}
		if (!pid && places[0].pid > 0 && !targets_live())
			return 0;
		if (now() >= next_turn) {
			switch_turn(turn, IOC_DISABLE);
			turn = (turn + 1) % nturns;
			switch_turn(turn, IOC_ENABLE);
			next_turn = now() + turn_length;
		}
		if (now() >= next_report) {
			report();
			next_report += interval;
		}
	}
}

static u64 milliseconds(const char *text, const char *what)
{
	u64 ms = number(text, 10, what);

	if (!ms || ms > 1000ULL * 3600 * 24 * 365)
		die(WRONG, "%s: no time for %s", text, what);
	return ms * 1000000;
}

/* Returns the program and its arguments. */
static char **parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "log-fd", required_argument, NULL, 'l' },
		{ "no-scale", no_argument, NULL, 'n' },
		{ "turn", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	const char *cpus = NULL, *processes = NULL;
	int c;

	/* in the place of perf */
	if (argc > 1 && !strcmp(argv[1], "stat")) {
		argc--;
		argv++;
	}
	out = stderr;
	while (out && (c = getopt_long(argc, argv, "+aAC:e:hI:o:p:x:", options, NULL)) != -1)
		switch (c) {
		case 'a':
			cpus = first_line("/sys/devices/system/cpu/online");
			cpus = checked(strdup(cpus ? cpus : "0"));
			break;
		case 'A':
			per_cpu = 1;
			break;
		case 'C':
			cpus = optarg;
			break;
		case 'e':
			parse_events(optarg);
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		case 'I':
			interval = milliseconds(optarg, "-I");
			break;
		case 'l':
			out = fdopen(number(optarg, 10, "--log-fd"), "w");
			break;
		case 'n':
			no_scale = 1;
			break;
		case 'o':
			out = fopen(optarg, "w");
			break;
		case 'p':
			processes = optarg;
			break;
		case 't':
			turn_length = milliseconds(optarg, "--turn");
			break;
		case 'x':
			separator = optarg;
			break;
		default:
			exit(WRONG);
		}
	if (!out)
		die(FAILED, "the counts cannot be written: %s", strerror(errno));
	if (cpus && processes)
		die(WRONG, "-p goes with neither -a nor -C");
	if (per_cpu && !cpus)
		die(WRONG, "-A wants -a or -C");
	if (!cpus && !processes && !argv[optind])
		die(WRONG, "which program? (or -a, -C CPU or -p PID; --help says more)");
	if (out != stderr)
		fcntl(fileno(out), F_SETFD, FD_CLOEXEC);
	if (!nevents)
		parse_events("cycles,instructions");
	make_turns();
	if (cpus)
		add_cpus(cpus);
	else if (processes)
		add_processes(processes);
	return argv + optind;
}

int main(int argc, char **argv)
{
	int status, starts, is_text;
	char **program;
	pid_t pid = 0;
	u64 time;

	program = parse(argc, argv);
	starts = !nplaces;
	/* waitpid() finds no program if SIGCHLD is ignored, as a parent may have left it. */
	signal(SIGCHLD, SIG_DFL);
	is_text = !interval && !separator;
	sigemptyset(&waited);
	sigaddset(&waited, SIGCHLD);
	sigaddset(&waited, SIGINT);
	sigaddset(&waited, SIGTERM);
	sigprocmask(SIG_BLOCK, &waited, NULL);
	if (*program)
		pid = start(program);
	if (starts)
		add_place(-1, pid);
	open_all(starts);
	began = now();
	if (!starts)
		switch_turn(0, IOC_ENABLE);
	if (pid)
		let_go(*program);
	status = count(*program, pid);
	time = now() - began;
	if (is_text)
		fputc('\n', out);
	report();
	if (is_text)
		fprintf(out, "\n%18llu.%09llu seconds time elapsed\n\n", time / NSEC, time % NSEC);
	return status;
}
