// SPDX-License-Identifier: GPL-2.0-only
/* Short texts, and files that are read or written at once */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

char *text_of(const char *fmt, ...)
{
	static char texts[4][320];
	static unsigned int turn;
	char *text = texts[turn++ % ARRAY_SIZE(texts)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(texts[0]), fmt, ap);
	va_end(ap);
	return text;
}

char *file_text(const char *path)
{
	FILE *f = fopen(path, "re");
	static char text[65536];
	size_t n;

	if (!f)
		return NULL;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	while (n && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	return text;
}

int file_write(const char *path, const char *text)
{
	int len = strlen(text), fd = open(path, O_WRONLY | O_CLOEXEC), ret = 0;

	if (fd < 0 || write(fd, text, len) != len)
		ret = -1;
	if (fd >= 0)
		close(fd);
	return ret;
}
