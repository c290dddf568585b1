// SPDX-License-Identifier: GPL-2.0-only
/*
 * addr2line -e FILE -i -f - the function and the line of each address on stdin, and where they
 * are inlined: perf report on a card asks this program for lines of the source. It takes what
 * perf 6.1 says, no more; scripts/build-card-perf builds it.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libdw ends what unwinds frames by it; here nothing does. */
void ebl_closebackend(void *backend)
{
	(void)backend;
}

/* Where the unit was compiled, for files with other names than absolute ones */
static const char *folder;

static void say(const char *function, const char *file, int line)
{
	printf("%s\n", function ?: "??");
	if (file && *file != '/' && folder)
		printf("%s/", folder);
	printf("%s:%d\n", file ?: "??", file ? line : 0);
}

static bool unit_at(Dwarf *dwarf, Dwarf_Addr address, Dwarf_Die *unit)
{
	Dwarf_CU *cu = NULL;

	while (!dwarf_get_units(dwarf, cu, &cu, NULL, NULL, unit, NULL))
		if (dwarf_haspc(unit, address) == 1)
			return true;
	return false;
}

/* What calls an inlined function is the next scope outside; the line is that of the call. */
static void calling_line(Dwarf_Die *unit, Dwarf_Die *inlined, const char **file, int *line)
{
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word number;

	*file = NULL;
	if (!dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &number))
		*line = number;
	if (!dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &number) &&
	    !dwarf_getsrcfiles(unit, &files, NULL))
		*file = dwarf_filesrc(files, number, NULL, NULL);
}

static void look_up(Dwarf *dwarf, Dwarf_Addr address)
{
	const char *file = NULL;
	Dwarf_Attribute attribute;
	Dwarf_Die unit, innermost, *scopes;
	int i, count, number = 0;
	Dwarf_Line *line;

	if (!dwarf || !unit_at(dwarf, address, &unit)) {
		say(NULL, NULL, 0);
		return;
	}
	folder = dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
	line = dwarf_getsrc_die(&unit, address);
	if (line) {
		file = dwarf_linesrc(line, NULL, NULL);
		dwarf_lineno(line, &number);
	}
	count = dwarf_getscopes(&unit, address, &scopes);
	if (count > 0) {
		/* Of an inlined function these are the ones around its definition. */
		innermost = scopes[0];
		free(scopes);
		count = dwarf_getscopes_die(&innermost, &scopes);
	}
	for (i = 0; i < count; i++) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag == DW_TAG_inlined_subroutine) {
			say(dwarf_diename(&scopes[i]), file, number);
			calling_line(&unit, &scopes[i], &file, &number);
		} else if (tag == DW_TAG_subprogram) {
			break;
		}
	}
	say(i < count ? dwarf_diename(&scopes[i]) : NULL, file, number);
	if (count > 0)
		free(scopes);
}

int main(int argc, char **argv)
{
	Dwarf *dwarf = NULL;
	char line[64], *end;
	int fd;

	if (argc != 5 || strcmp(argv[1], "-e") || strcmp(argv[3], "-i") ||
	    strcmp(argv[4], "-f")) {
		fprintf(stderr, "usage: addr2line -e FILE -i -f, with addresses on stdin\n");
		return 2;
	}
	fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "addr2line: %s: %s\n", argv[2], strerror(errno));
		return 1;
	}
	dwarf = dwarf_begin(fd, DWARF_C_READ);
	while (fgets(line, sizeof(line), stdin)) {
		Dwarf_Addr address = strtoull(line, &end, 16);

		/* After each address perf sends a comma, to know the end of the answer. */
		look_up(end == line ? NULL : dwarf, address);
		fflush(stdout);
	}
	return 0;
}
