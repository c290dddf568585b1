/* SPDX-License-Identifier: GPL-2.0-only */
/* Short texts, files that are read or written at once, modules and programs */
#ifndef KNC_TESTS_GUEST_FILES_H
#define KNC_TESTS_GUEST_FILES_H

/* A short text, which is there until the fourth one after it is made */
char *text_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * What is in a file, without the line ends after it, or NULL if it is not there. The text is
 * there until the next file is read.
 */
char *file_text(const char *path);
/* These return 0, or -1 with errno. */
int file_write(const char *path, const char *text);
int module_insert(const char *path, const char *parameters);
/* Runs a program, with what it prints in a file, and returns its wait status. */
int run_into(const char *path, char *const argv[]);

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
