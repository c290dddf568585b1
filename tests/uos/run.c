// SPDX-License-Identifier: GPL-2.0-only
/*
 * run BOOT TEST... - run each test in a guest, and check the machine at the end. A test is a
 * function of the program gt, or a script; it prints "ok", "FAIL" or "skip".
 *
 * Environment: TEST_PREFIX, which goes before the names of the tests; TEST_SCALE and TEST_PMIS
 * (see lib.h); TEST_DRIVER: "module", or "builtin" where there is nothing to load.
 *
 * On the cards' own kernel, Linux 2.6.38, it is /init as well: Debian's programs do not run
 * there, as their C library needs Linux 3.2; this program and the tests are linked with another
 * one. /uos/settings has "token=..." from run-uos. /uos/command is one line, as for a shell:
 * settings (NAME=value), this program, the boot's name, and tests. Results go to the second
 * serial port; the last line carries the token.
 *
 * The card's board has no serial ports, and the driver of its console is a module that may
 * not be there. It has a port for results and one for the kernel's log, both in memory.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "../guest/files.h"

#define MODULE	"/tests/modules/knc_pmu.ko"
#define CPUS	"/sys/devices/system/cpu"
/* What a test prints */
#define OUT	"/tmp/out"

/* These load the driver themselves, or see that it does not load. */
static const char loading[] =
	" selftest-unloaded reset-state modprobe nosym wrong-cpu take-over likwid ";

/* In these boots interrupts are lost on purpose, or are not the driver's, or not told of. */
static const char unbalanced[] = " idle idle-other bench other ";

static char *boot;
static bool with_module, was_refused;

static bool is_one(const char *word, const char *words)
{
	return strstr(words, text_of(" %s ", word));
}

#ifdef __k1om__
/* QEMU's isa-debugcon devices, as run-uos --board has them */
#define PORTS		0x8002000000
#define RESULTS_PORT	0xe9
#define LOG_PORT	0xea

static volatile char *ports;
static pid_t log_reader;

static void port_write(int port, const char *text, ssize_t n)
{
	while (n-- > 0)
		ports[port] = *text++;
}

static void print(const char *text)
{
	port_write(RESULTS_PORT, text, strlen(text));
}

/* Waits for the kernel's messages, or takes those that there are. */
static void send_log(bool waits)
{
	char text[4096];
	int n = 1;

	while (n > 0 && (waits || klogctl(9, NULL, 0) > 0)) {
		n = klogctl(2, text, sizeof(text));
		port_write(LOG_PORT, text, n);
	}
}

/* The devices that the kernel has told sysfs of, as it may have no devtmpfs */
static void make_nodes(const char *class)
{
	DIR *dir = opendir(text_of("/sys/class/%s", class));
	struct dirent *entry;
	unsigned int major, minor;
	char *numbers;
	mode_t mode;

	while (dir && (entry = readdir(dir))) {
		char *path = text_of("/dev/%s", entry->d_name);

		numbers = file_text(text_of("/sys/class/%s/%s/dev", class, entry->d_name));
		if (!numbers || sscanf(numbers, "%u:%u", &major, &minor) != 2)
			continue;
		if (!strcmp(class, "msr")) {
			mkdir("/dev/cpu", 0755);
			mkdir(text_of("/dev/cpu/%s", entry->d_name + 3), 0755);
			path = text_of("/dev/cpu/%s/msr", entry->d_name + 3);
		}
		/* as devtmpfs has them */
		mode = !strcmp(entry->d_name, "null") || !strcmp(entry->d_name, "zero") ?
			0666 : 0600;
		if (!mknod(path, S_IFCHR | mode, makedev(major, minor)))
			chmod(path, mode);
	}
	if (dir)
		closedir(dir);
}

static void open_results(void)
{
	int fd, i;

	make_nodes("mem");
	make_nodes("misc");
	make_nodes("msr");
	fd = open("/dev/mem", O_RDWR | O_SYNC | O_CLOEXEC);
	ports = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, PORTS);
	close(fd);
	if (ports == MAP_FAILED)
		reboot(RB_POWER_OFF);
	/* There may be no console for the kernel to open. */
	fd = open("/dev/null", O_RDWR);
	for (i = STDIN_FILENO; i <= STDERR_FILENO; i++)
		dup2(fd, i);
	if (fd > STDERR_FILENO)
		close(fd);
	log_reader = fork();
	if (!log_reader) {
		send_log(true);
		_exit(0);
	}
}

static void close_results(void)
{
	kill(log_reader, SIGKILL);
	waitpid(log_reader, NULL, 0);
	send_log(false);
}
#else
static void print(const char *text)
{
	fputs(text, stdout);
	fflush(stdout);
}

static void close_results(void)
{
	fflush(stdout);
	tcdrain(STDOUT_FILENO);
}

static void make_nodes(const char *class)
{
	(void)class;
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
}
#endif

/* Of a test: "ok", "FAIL" or "skip", and why */
static void tell(const char *verdict, const char *test, const char *why)
{
	const char *prefix = getenv("TEST_PREFIX");

	print(text_of("%s %s%s %s\n", verdict, prefix ?: "", test, why));
}

static void finish(const char *how)
{
	char token[64] = "", *text = file_text("/uos/settings");
	char *at = text ? strstr(text, "token=") : NULL;

	if (at)
		sscanf(at, "token=%63[0-9a-f]", token);
	print(text_of("\n%s %s\n", how, token));
	close_results();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

/* Debian's shell and commands are newer than the kernel and cannot list directories there. */
static void install_busybox(void)
{
	setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin", 1);
	if (access("/tests/busybox", X_OK))
		return;
	mkdir("/bin", 0755);
	if (symlink("/tests/busybox", "/bin/sh") ||
	    system("/tests/busybox --install -s /bin >/dev/null 2>&1"))
		print("# no shell\n");
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

/* Tests may leave CPUs offline. If one does not come back the kernel is stuck: the end. */
static void all_online(void)
{
	pid_t pid = fork();
	int left = 300;
	glob_t found;
	char *state;
	size_t i;

	if (!pid) {
		glob(CPUS "/cpu[0-9]*/online", 0, NULL, &found);
		for (i = 0; i < found.gl_pathc; i++) {
			state = file_text(found.gl_pathv[i]);
			if (state && *state == '0')
				file_write(found.gl_pathv[i], "1");
		}
		_exit(0);
	}
	while (!waitpid(pid, NULL, WNOHANG) && left--)
		usleep(100000);
	if (left >= 0)
		return;
	print(text_of("FAIL boot-%s the CPUs do not come back\n", boot));
	sleep(1);
	file_write("/proc/sysrq-trigger", "b");
	reboot(RB_AUTOBOOT);
}

/* Runs a program, with what it prints in OUT, and returns its status. */
static int run(char *const argv[])
{
	int status = run_into(OUT, argv);

	/* the children that it has left, if they are ours */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	return status;
}

/* If a line is the result of the test: how long its first word is; else 0 */
static size_t verdict_of(const char *line, const char *test)
{
	char verdict[5], name[64];

	if (*line == ' ' || sscanf(line, "%4s %63s", verdict, name) != 2 || strcmp(name, test) ||
	    !is_one(verdict, " ok FAIL skip "))
		return 0;
	return strlen(verdict) + 1;
}

/* Runs a script or a function of gt, and prints what it has printed; false if it has failed. */
static bool run_program(char *test)
{
	char *script = text_of("./%s.sh", test), line[4096];
	const char *prefix = getenv("TEST_PREFIX") ?: "";
	bool told = false;
	int status;
	FILE *out;
	size_t n;

	if (!access(script, F_OK))
		status = run((char *[]){ "/bin/sh", script, test, NULL });
	else
		status = run((char *[]){ "./gt", test, NULL });
	out = fopen(OUT, "re");
	while (out && fgets(line, sizeof(line), out)) {
		n = verdict_of(line, test);
		told |= n;
		print(text_of("%.*s%s", (int)n, line, n ? prefix : ""));
		print(line + n);
	}
	if (out)
		fclose(out);
	if (!told)
		tell("FAIL", test, "said nothing");
	return told && !status;
}

static void test_selftest(void)
{
	int status = run((char *[]){ "./selftest", NULL });

	print(file_text(OUT) ?: "");
	print("\n");
	if (status)
		tell("FAIL", "selftest", text_of("its wait status is %#x", status));
	else
		tell("ok", "selftest", "");
}

static bool load_driver(const char *test)
{
	return !with_module || !strncmp(test, "load-", 5) || is_one(test, loading) ||
		!access("/sys/module/knc_pmu", F_OK) || !module_insert(MODULE, "");
}

/* What the kernel says of a module that it refuses is at the end of its log. */
static void print_log_end(void)
{
	char text[500], *line;
	int n = klogctl(3, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		print(text_of("# %s\n", line));
}

static void print_begin(const char *what)
{
	char *up = file_text("/proc/uptime");

	print(text_of("# begin %s at %.*s\n", what, up ? (int)strcspn(up, " ") : 0, up));
}

static void run_test(char *test)
{
	print_begin(test);
	if (!load_driver(test)) {
		int error = errno;

		print_log_end();
		tell("FAIL", test, text_of("the driver does not load: %s", strerror(error)));
		was_refused = true;
		return;
	}
	/* KCSAN delays the driver at random: not where the kernel's instructions are counted. */
	if (!strcmp(test, "count-kernel"))
		file_write("/sys/kernel/debug/kcsan", "off");
	if (!strcmp(test, "selftest"))
		test_selftest();
	else
		run_program(test);
	file_write("/sys/kernel/debug/kcsan", "on");
	all_online();
}

/* No interrupt was lost; run-uos looks at the kernel's log. */
static void check_boot(void)
{
	bool good = !was_refused &&
		(is_one(boot, unbalanced) || run_program("interrupts-balance"));

	print(text_of("%s boot-%s%s\n", good ? "ok" : "FAIL", boot,
		      was_refused ? " the driver has not loaded" : ""));
}

static void prepare(void)
{
	mount_all();
	open_results();
	install_busybox();
	file_write("/proc/sys/kernel/perf_event_paranoid", "1");
	file_write("/proc/sys/kernel/kptr_restrict", "0");
}

/* The words of /uos/command after its settings, which become the environment */
static char **command_words(void)
{
	static char line[8192], *words[sizeof(line) / 2];
	size_t n = 0;
	char *word;

	snprintf(line, sizeof(line), "%s", file_text("/uos/command") ?: "");
	line[strcspn(line, "\n")] = '\0';
	for (word = strtok(line, " "); word && strchr(word, '='); word = strtok(NULL, " "))
		putenv(word);
	for (; word; word = strtok(NULL, " "))
		words[n++] = word;
	return words;
}

int main(int argc, char **argv)
{
	bool is_init = getpid() == 1;
	char *driver;

	if (is_init) {
		prepare();
		argv = command_words();
	}
	driver = getenv("TEST_DRIVER");
	boot = argc && argv[0] ? argv[1] : NULL;
	if (!driver || !boot || chdir("/tests")) {
		if (is_init)
			finish("failure 126");
		return 126;
	}
	with_module = !strcmp(driver, "module");
	module_insert("modules/msr.ko", "");
	module_insert("modules/knc_test_loop.ko", "");
	make_nodes("misc");
#ifdef __k1om__
	if (!strcmp(boot, "cpus") || !strcmp(boot, "card"))
		module_insert("modules/knc_test_tsc.ko", "");
#endif
	/* The card's idle driver, which ours looks for when it is loaded */
	if (!strcmp(boot, "idle"))
		module_insert("modules/knc_test_idle.ko", "");
	else if (!strcmp(boot, "idle-other"))
		module_insert("modules/knc_test_idle_other.ko", "");
	/* these tests send NMIs that have no handler */
	if (strstr(boot, "races") || strstr(boot, "series"))
		module_insert("modules/knc_test_nmi.ko", "");

	for (argv += 2; *argv; argv++)
		run_test(*argv);
	print_begin(text_of("boot-%s", boot));
	check_boot();
	if (is_init)
		finish("success");
	return 0;
}
