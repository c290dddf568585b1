// SPDX-License-Identifier: GPL-2.0-only
/* Events by name: the files under events/ against the tables of the manual. */
#include "lib.h"

#include <ctype.h>
#include <dirent.h>

#define DATA "/tests/data/"

struct event {
	char name[64];
	u64 config;
	bool seen;
};

static struct event events[128];
static size_t nr_events;

/* The first fields of a line; only later ones are ever quoted. */
static void split(char *line, char *fields[4])
{
	char *save;
	int i;

	for (i = 0; i < 4; i++)
		fields[i] = strtok_r(i ? NULL : line, ",\n", &save);
}

static void add_event(const char *name, u64 config)
{
	struct event *e = &events[nr_events];
	char *c;

	must(nr_events++ < ARRAY_SIZE(events), "%s: too many events", name);
	snprintf(e->name, sizeof(e->name), "%s", name);
	for (c = e->name; *c; c++)
		*c = tolower(*c);
	e->config = config;
}

/* Rows of a table with columns "name", "umask" and "event" among the first */
static void read_table(const char *path)
{
	char line[2048], *fields[4];
	int name = -1, umask = -1, code = -1, i;
	FILE *f = fopen(path, "re");

	must(f, "%s: %m", path);
	must(fgets(line, sizeof(line), f), "%s is empty", path);
	split(line, fields);
	for (i = 0; i < 4 && fields[i]; i++) {
		if (!strcmp(fields[i], "name"))
			name = i;
		if (!strcmp(fields[i], "umask"))
			umask = i;
		if (!strcmp(fields[i], "event"))
			code = i;
	}
	must(name >= 0 && umask >= 0 && code >= 0, "%s: lacks a column", path);
	while (fgets(line, sizeof(line), f)) {
		split(line, fields);
		must(fields[3], "%s: a row of less than four fields", path);
		add_event(fields[name], strtoull(fields[umask], NULL, 16) << 8 |
			  strtoull(fields[code], NULL, 16));
	}
	fclose(f);
}

static struct event *find(const char *name)
{
	size_t i;

	for (i = 0; i < nr_events; i++)
		if (!strcmp(events[i].name, name))
			return &events[i];
	return NULL;
}

/* Programs exactly this code and unit mask, and nothing besides. */
static void check_programs(struct perf_event_attr attr, u64 want, const char *name)
{
	int fd = ev_start(attr, 0, -1);

	if (have_msr()) {
		int n = counter_of(0, want);
		u64 sel;

		must(n >= 0, "%s: no counter has %#llx", name, want);
		sel = rdmsr_on(0, 0x28 + n);
		must(sel == (want | EVTSEL_USR | EVTSEL_OS | EVTSEL_INT | EVTSEL_EN),
		     "%s becomes %#llx", name, sel);
	}
	close(fd);
}

TEST(names, "names", 60)
{
	static const struct {
		const char *name;
		u64 config;
	} generic[] = {
		{ "cpu-cycles", 0x2a }, { "instructions", 0x16 },
		{ "cache-references", 0x28 }, { "cache-misses", 0x29 },
		{ "branch-instructions", 0x12 }, { "branch-misses", 0x2b },
	};
	struct dirent *entry;
	char path[256];
	size_t i;
	DIR *dir;

	pin(0);
	read_table(DATA "knc_events.csv");
	read_table(DATA "knc_events_extra.csv");
	for (i = 0; i < ARRAY_SIZE(generic); i++)
		add_event(generic[i].name, generic[i].config);

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/events", pmu()->name);
	dir = opendir(path);
	must(dir, "%s: %m", path);
	while ((entry = readdir(dir))) {
		struct perf_event_attr attr = attr_of(0);
		struct event *e;
		char *text;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "events/%.100s", entry->d_name);
		text = pmu_file(path);
		must(text, "%s: %m", path);
		/* pmu_parse() reads files, too */
		text = strdup(text);
		must(pmu_parse(text, &attr), "%s: \"%s\" is not in the terms of format/", path,
		     text);
		e = find(entry->d_name);
		must(e, "%s is in no table", path);
		must(attr.config == e->config, "%s: \"%s\", and the table has %#llx", path, text,
		     e->config);
		must(!e->seen, "%s is there twice", path);
		e->seen = true;
		check_programs(attr, e->config, entry->d_name);
		free(text);
	}
	closedir(dir);
	for (i = 0; i < nr_events; i++)
		must(events[i].seen, "no events/%s", events[i].name);
}
