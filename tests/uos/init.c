// SPDX-License-Identifier: GPL-2.0-only
/*
 * /init for a card's own kernel, Linux 2.6.38, on the emulated card: it does what
 * uos/init and tests/guest/guest.sh do elsewhere. Debian's programs do not run there,
 * as their C library needs Linux 3.2; this program and the tests are linked with
 * another one.
 *
 * /uos/settings has "token=..." from run-uos. /uos/command is one line, as for a shell:
 * settings (NAME=value), "sh /tests/guest.sh", the boot's name, and tests. Results go to
 * the second serial port; the last line carries the token.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MODULE	"/tests/modules/knc_pmu.ko"
#define IDLE	"/tests/modules/knc_test_idle.ko"
#define CPUS	"/sys/devices/system/cpu"

/* These in the kernel's log fail the boot. */
static const char * const splats[] = {
	"Uhhuh", "unknown NMI", "NMI received for unknown", "Dazed", "WARNING:", "BUG:",
	"Oops", "INFO: ", "irq loop stuck", "general protection", "Call Trace",
};

static char *boot;
static bool with_module;

static char *slurp(const char *path)
{
	static char text[65536];
	int fd = open(path, O_RDONLY);
	ssize_t n = 0, got;

	if (fd < 0)
		return NULL;
	while ((got = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += got;
	close(fd);
	text[n] = '\0';
	return text;
}

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

static void finish(const char *how)
{
	char token[64] = "", *text = slurp("/uos/settings");
	char *at = text ? strstr(text, "token=") : NULL;

	if (at)
		sscanf(at, "token=%63[0-9a-f]", token);
	printf("\n%s %s\n", how, token);
	fflush(stdout);
	tcdrain(STDOUT_FILENO);
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

/* Debian's shell and commands are newer than the kernel and cannot list directories there. */
static void install_busybox(void)
{
	mkdir("/bin", 0755);
	if (symlink("/tests/busybox", "/bin/sh") ||
	    system("/tests/busybox --install -s /bin >/dev/null 2>&1"))
		puts("# no shell");
	setenv("PATH", "/bin", 1);
}

/* The second serial port, in raw mode */
static void open_results(void)
{
	struct termios raw;
	int fd = open("/dev/ttyS1", O_RDWR | O_NOCTTY);

	if (fd < 0)
		return;
	if (!tcgetattr(fd, &raw)) {
		cfmakeraw(&raw);
		tcsetattr(fd, TCSANOW, &raw);
	}
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
	setvbuf(stdout, NULL, _IOLBF, 0);
}

static void mount_all(void)
{
	static const char * const names[][2] = {
		{ "proc", "/proc" }, { "sysfs", "/sys" }, { "devtmpfs", "/dev" },
		{ "tmpfs", "/tmp" }, { "debugfs", "/sys/kernel/debug" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		mkdir(names[i][1], 0755);
		mount(names[i][0], names[i][1], names[i][0], 0, NULL);
	}
	mkdir("/dev/shm", 01777);
	mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL);
}

static bool insert_module(const char *path, const char *parameters)
{
	static char image[4 << 20];
	int fd = open(path, O_RDONLY);
	ssize_t n = 0, got;

	if (fd < 0)
		return false;
	while ((got = read(fd, image + n, sizeof(image) - n)) > 0)
		n += got;
	close(fd);
	return !syscall(SYS_init_module, image, n, parameters);
}

static bool driver_is_loaded(void)
{
	return !access("/sys/module/knc_pmu", F_OK);
}

/* The kernel's log */
static char *kernel_log(void)
{
	int size = klogctl(10, NULL, 0);
	char *log = size > 0 ? calloc(1, size + 1) : NULL;

	if (log && klogctl(3, log, size) <= 0) {
		free(log);
		return NULL;
	}
	return log;
}

/* Tests may leave CPUs offline: bring them back. */
static void all_online(void)
{
	char path[128];
	DIR *dir = opendir(CPUS);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, "cpu", 3) || !isdigit(entry->d_name[3]))
			continue;
		snprintf(path, sizeof(path), CPUS "/%.32s/online", entry->d_name);
		if (!access(path, F_OK) && *slurp(path) == '0')
			put(path, "1");
	}
	closedir(dir);
}

/* Runs one test, which prints its result; false if it has failed. */
static bool run_program(const char *test)
{
	char script[64];
	int status;
	pid_t pid;

	snprintf(script, sizeof(script), "%s.sh", test);
	pid = fork();
	if (!pid) {
		if (!access(script, F_OK))
			execl("/bin/sh", "sh", script, test, (char *)NULL);
		else
			execl("gt", "gt", test, (char *)NULL);
		_exit(127);
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid && !WIFSIGNALED(status) &&
	    WEXITSTATUS(status) <= 1) {
		/* reap the children that it has left */
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		return !WEXITSTATUS(status);
	}
	printf("FAIL %s the program cannot be run\n", test);
	return false;
}

static bool said(const char *text)
{
	char *out = slurp("/tmp/report");

	return out && strstr(out, text);
}

/* The last CPU has an idle driver like the cards' own, which is loaded first, as on a card. */
static void test_report(void)
{
	static const char * const wanted[] = {
		"== kernel", "== processor", "GenuineIntel", "threads: 8",
		"cpu0/topology/thread_siblings_list: 0-3", "current_driver: knc_test_idle",
		"== driver", "knc_pmu ", "knc/type: 4", "RAS: not loaded",
		"all modules: knc_pmu knc_test_idle knc_test_loop", "== before the self-test",
		"registered as \"knc\"", "cpu 7: CC6: ", "== self-test",
		"ok cpu 0: instructions: counted 2000000, want 2000000",
		"ok cpu 4: branches, of two, with sleeps: counted 1000000, want 1000000",
		"ok cpu 7: samples, with sleeps: got 200, want 200",
		"ok cpu 7: samples of the CPU, with sleeps: got ",
		"self-test: all is as it should be\nstatus 0", "== after the self-test", "== end",
	};
	const char *missing = NULL;
	size_t i;

	if (syscall(SYS_delete_module, "knc_pmu", O_NONBLOCK) || !insert_module(IDLE, "cpu=7") ||
	    !insert_module(MODULE, ""))
		missing = "the modules";
	else if (system("sh ./report >/tmp/report 2>&1"))
		missing = "status 0 of its shell";
	for (i = 0; i < ARRAY_SIZE(wanted) && !missing; i++)
		if (!said(wanted[i]))
			missing = wanted[i];
	if (!missing && said("not found"))
		missing = "a program that is not there";
	if (!missing && !atoi(slurp("/sys/module/knc_test_idle/parameters/lost")))
		missing = "an overflow as a CPU wakes";
	if (missing) {
		printf("# %s\n", slurp("/tmp/report") ?: "nothing");
		printf("FAIL report without: %s\n", missing);
		return;
	}
	if (syscall(SYS_delete_module, "knc_pmu", O_NONBLOCK) ||
	    syscall(SYS_delete_module, "knc_test_idle", O_NONBLOCK))
		printf("FAIL report the modules stay: %s\n", strerror(errno));
	else
		puts("ok report");
}

static void run_test(const char *test)
{
	char *up = slurp("/proc/uptime");

	printf("# begin %s at %.*s\n", test, up ? (int)strcspn(up, " ") : 0, up);
	if (with_module && strcmp(test, "reset-state") && strcmp(test, "wrong-cpu") &&
	    !driver_is_loaded() && !insert_module(MODULE, "")) {
		printf("FAIL %s the driver does not load: %s\n", test, strerror(errno));
		return;
	}
	if (!strcmp(test, "report"))
		test_report();
	else
		run_program(test);
	all_online();
}

/* Whether no interrupt was lost, in boots that must not lose any */
static bool is_balanced(void)
{
	static const char * const untold[] = { "idle", "bench", "other" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(untold); i++)
		if (!strcmp(boot, untold[i]))
			return true;
	return !with_module || run_program("interrupts-balance");
}

/* The kernel's log is clean, and no interrupt was lost. */
static void check_boot(void)
{
	char *log = kernel_log(), *line, *why = NULL;
	size_t i;

	if (!log) {
		printf("FAIL boot-%s the kernel has no log\n", boot);
		return;
	}
	for (line = strtok(log, "\n"); line && !why; line = strtok(NULL, "\n"))
		for (i = 0; i < ARRAY_SIZE(splats); i++)
			if (strstr(line, splats[i]))
				why = line;
	if (why)
		printf("FAIL boot-%s the kernel's log: %s\n", boot, why);
	else if (is_balanced())
		printf("ok boot-%s\n", boot);
	else
		printf("FAIL boot-%s the PMIs do not balance\n", boot);
}

int main(void)
{
	char *word, *driver, line[8192];

	mount_all();
	open_results();
	install_busybox();
	chdir("/tests");
	put("/proc/sys/kernel/perf_event_paranoid", "1");
	put("/proc/sys/kernel/kptr_restrict", "0");

	snprintf(line, sizeof(line), "%s", slurp("/uos/command") ?: "");
	line[strcspn(line, "\n")] = '\0';
	for (word = strtok(line, " "); word && strchr(word, '='); word = strtok(NULL, " "))
		putenv(word);
	driver = getenv("TEST_DRIVER");
	strtok(NULL, " ");
	boot = strtok(NULL, " ");
	if (!driver || !boot)
		finish("failure 126");
	with_module = !strcmp(driver, "module");
	insert_module("/tests/modules/knc_test_loop.ko", "");
	/* these tests send NMIs that have no handler */
	if (!strcmp(boot, "races"))
		insert_module("/tests/modules/knc_test_nmi.ko", "");

	while ((word = strtok(NULL, " ")))
		run_test(word);
	check_boot();
	finish("success");
}
