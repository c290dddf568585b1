// SPDX-License-Identifier: GPL-2.0-only
/* Events by name: the files under events/ against the tables of the manual. */
#define _GNU_SOURCE
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

/*
 * Rows of a table with columns "name", "umask" and "event".  Only the last
 * columns are ever quoted, and those are not of interest.
 */
static void read_table(const char *path)
{
	int name = -1, umask = -1, code = -1, column;
	char line[2048], *field, *save;
	FILE *f = fopen(path, "re");

	must(f, "%s: %s", path, strerror(errno));
	must(fgets(line, sizeof(line), f), "%s is empty", path);
	column = 0;
	for (field = strtok_r(line, ",\n", &save); field; field = strtok_r(NULL, ",\n", &save)) {
		if (!strcmp(field, "name"))
			name = column;
		if (!strcmp(field, "umask"))
			umask = column;
		if (!strcmp(field, "event"))
			code = column;
		column++;
	}
	must(name >= 0 && umask >= 0 && code >= 0, "%s: lacks a column", path);
	while (fgets(line, sizeof(line), f)) {
		struct event *e = &events[nr_events];

		must(nr_events < ARRAY_SIZE(events), "%s: too many rows", path);
		column = 0;
		for (field = strtok_r(line, ",\n", &save); field && column <= 3;
		     field = strtok_r(NULL, ",\n", &save), column++) {
			if (column == name) {
				char *c;

				snprintf(e->name, sizeof(e->name), "%s", field);
				for (c = e->name; *c; c++)
					*c = tolower(*c);
			}
			if (column == umask)
				e->config |= strtoull(field, NULL, 16) << 8;
			if (column == code)
				e->config |= strtoull(field, NULL, 16);
		}
		if (column)
			nr_events++;
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
static void check_programs(struct perf_event_attr *attr, u64 want, const char *name)
{
	int fd = ev_open(attr, 0, -1, -1);
	int n;

	ev_on(fd);
	if (have_msr()) {
		u64 sel;

		n = counter_of(0, want);
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
	size_t i, seen = 0, generics = 0;
	DIR *dir;

	pin(0);
	read_table(DATA "knc_events.csv");
	must(nr_events == 59, "%zu rows in the table of the manual's events", nr_events);
	read_table(DATA "knc_events_extra.csv");
	must(nr_events == 63, "%zu rows in both tables", nr_events);

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/events", pmu()->name);
	dir = opendir(path);
	must(dir, "%s: %s", path, strerror(errno));
	while ((entry = readdir(dir))) {
		struct perf_event_attr attr = attr_of(0);
		struct event *e;
		char *text;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "events/%.100s", entry->d_name);
		text = pmu_file(path);
		must(text, "%s: %s", path, strerror(errno));
		/* pmu_parse() reads files, too */
		text = strdup(text);
		must(pmu_parse(text, &attr), "%s: \"%s\" is not in the terms of format/", path,
		     text);
		e = find(entry->d_name);
		if (!e) {
			for (i = 0; i < ARRAY_SIZE(generic); i++)
				if (!strcmp(generic[i].name, entry->d_name))
					break;
			must(i < ARRAY_SIZE(generic), "%s is in no table", path);
			must(attr.config == generic[i].config, "%s: \"%s\"", path, text);
			check_programs(&attr, attr.config, entry->d_name);
			generics++;
			free(text);
			continue;
		}
		must(attr.config == e->config, "%s: \"%s\", and the table has %#llx", path, text,
		     e->config);
		must(!e->seen, "%s is there twice", path);
		e->seen = true;
		seen++;
		check_programs(&attr, e->config, entry->d_name);
		free(text);
	}
	closedir(dir);
	for (i = 0; i < nr_events; i++)
		must(events[i].seen, "no events/%s", events[i].name);
	must(seen == 63, "%zu of 63 events", seen);
	must(generics == ARRAY_SIZE(generic), "%zu generic events", generics);
}
