// SPDX-License-Identifier: GPL-2.0-only
/* Each file under events/ is made of names in format/, and the event can be opened. */
#include "lib.h"

#include <dirent.h>

static u64 config_of(const char *name)
{
	struct perf_event_attr attr = attr_of(0);
	char *file = pmu_file(text_of("events/%.64s", name)), text[128];

	must(file, "events/%s: %m", name);
	/* pmu_parse() reads files, too. */
	snprintf(text, sizeof(text), "%s", file);
	must(pmu_parse(text, &attr), "events/%s: format/ has not all of \"%s\"", name, text);
	close(ev_open(attr, 0, -1, -1));
	return attr.config;
}

TEST("names", 60)
{
	DIR *dir = opendir(text_of("/sys/bus/event_source/devices/%s/events", pmu()->name));
	struct dirent *entry;
	int n = 0;

	must(dir, "events/: %m");
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		config_of(entry->d_name);
		n++;
	}
	closedir(dir);
	must(n, "there are no names");
	must(config_of("instructions") == INSTRUCTIONS && config_of("l2_read_miss") == L2_READ_MISS,
	     "l2_read_miss is %#llx", config_of("l2_read_miss"));
}
