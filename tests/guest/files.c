// SPDX-License-Identifier: GPL-2.0-only
/* What the tests and the program that runs them share; files.h says what each function does. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"

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

int module_insert(const char *path, const char *parameters)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret = -1;
	off_t size = lseek(fd, 0, SEEK_END);
	void *image = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (image != MAP_FAILED) {
		ret = syscall(SYS_init_module, image, size, parameters);
		munmap(image, size);
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

int run_into(const char *path, char *const argv[])
{
	int status = -1, fd;
	pid_t pid = fork();

	if (!pid) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		close(fd);
		execv(argv[0], argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status;
}
