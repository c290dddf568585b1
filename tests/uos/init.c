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
 *
 * The card's board has no serial ports, and the driver of its console is a module that may
 * not be there. It has a port for results and one for the kernel's log, both in memory. What
 * a test prints goes to a file first.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "../guest/files.h"

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

#ifdef __k1om__
/* QEMU's isa-debugcon devices, as run-uos --board has them */
#define PORTS		0x8002000000
#define RESULTS_PORT	0xe9
#define LOG_PORT	0xea
#define RESULTS		"/tmp/results"

static volatile char *ports;
static pid_t log_reader;

static void port_write(int port, const char *text, ssize_t n)
{
	while (n-- > 0)
		ports[port] = *text++;
}

/* Whether a line is a test's result: its name gets the boot's prefix, as in guest.sh. */
static size_t verdict_of(const char *line)
{
	static const char * const verdicts[] = { "ok ", "FAIL ", "skip " };
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(verdicts); i++) {
		n = strlen(verdicts[i]);
		if (!strncmp(line, verdicts[i], n) && strncmp(line + n, "boot-", 5))
			return n;
	}
	return 0;
}

static void send_results(void)
{
	const char *prefix = getenv("TEST_PREFIX") ?: "";
	static FILE *results;
	char line[4096];
	size_t n;

	fflush(stdout);
	if (!results)
		results = fopen(RESULTS, "re");
	clearerr(results);
	while (fgets(line, sizeof(line), results)) {
		n = verdict_of(line);
		port_write(RESULTS_PORT, line, n);
		if (n)
			port_write(RESULTS_PORT, prefix, strlen(prefix));
		port_write(RESULTS_PORT, line + n, strlen(line + n));
	}
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
	int fd;

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
	dup2(fd, STDIN_FILENO);
	fd = open(RESULTS, O_WRONLY | O_CREAT | O_APPEND, 0644);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
	setvbuf(stdout, NULL, _IOLBF, 0);
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
	send_results();
}
#else
static void send_results(void)
{
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
	setvbuf(stdout, NULL, _IOLBF, 0);
}
#endif

static void finish(const char *how)
{
	char token[64] = "", *text = file_text("/uos/settings");
	char *at = text ? strstr(text, "token=") : NULL;

	if (at)
		sscanf(at, "token=%63[0-9a-f]", token);
	printf("\n%s %s\n", how, token);
	close_results();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

/*
 * Debian's shell and commands are newer than the kernel and cannot list directories there.
 * On the board they are those of an initrd that was given, if there is one.
 */
static void install_busybox(void)
{
	setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin", 1);
	if (access("/tests/busybox", X_OK))
		return;
	mkdir("/bin", 0755);
	if (symlink("/tests/busybox", "/bin/sh") ||
	    system("/tests/busybox --install -s /bin >/dev/null 2>&1"))
		puts("# no shell");
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
	DIR *dir = opendir(CPUS);
	struct dirent *entry;
	char *path;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, "cpu", 3) || !isdigit(entry->d_name[3]))
			continue;
		path = text_of(CPUS "/%s/online", entry->d_name);
		if (!access(path, F_OK) && *file_text(path) == '0')
			file_write(path, "1");
	}
	closedir(dir);
}

static bool have_shell(const char *test)
{
	if (!access("/bin/sh", X_OK))
		return true;
	printf("skip %s is a shell script, and there is no shell (INITRD)\n", test);
	return false;
}

/* Runs one test, which prints its result; false if it has failed. */
static bool run_program(const char *test)
{
	char *script = text_of("%s.sh", test);
	int status;
	pid_t pid;

	if (!access(script, F_OK) && !have_shell(test))
		return true;
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
	char *out = file_text("/tmp/card-check");

	return out && strstr(out, text);
}

/* The last CPU has an idle driver like the cards' own, which is loaded first, as on a card. */
static void test_card_check(void)
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
	else if (system("sh ./card-check >/tmp/card-check 2>&1"))
		missing = "status 0 of its shell";
	for (i = 0; i < ARRAY_SIZE(wanted) && !missing; i++)
		if (!said(wanted[i]))
			missing = wanted[i];
	if (!missing && said("not found"))
		missing = "a program that is not there";
	if (!missing && !atoi(file_text("/sys/module/knc_test_idle/parameters/lost")))
		missing = "an overflow as a CPU wakes";
	if (missing) {
		printf("# %s\n", file_text("/tmp/card-check") ?: "nothing");
		printf("FAIL card-check without: %s\n", missing);
		return;
	}
	if (syscall(SYS_delete_module, "knc_pmu", O_NONBLOCK) ||
	    syscall(SYS_delete_module, "knc_test_idle", O_NONBLOCK))
		printf("FAIL card-check the modules stay: %s\n", strerror(errno));
	else
		puts("ok card-check");
}

/* Runs a program, and returns its status. */
static int run(char *const argv[])
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		execv(argv[0], argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status;
}

static void test_selftest(void)
{
	int status = run((char *[]){ "./selftest", NULL });

	if (status)
		printf("FAIL selftest its wait status is %#x\n", status);
	else
		puts("ok selftest");
}

/* What knc-stat counts of so many rounds of 20 instructions, one of them a branch */
static bool stat_rounds(char *rounds, long long count[2])
{
	char *const argv[] = { "./knc-stat", "-x,", "-o", "/tmp/stat", "-e",
			       "instructions:u,branches:u", "./gt", "--spin20", rounds, NULL };
	char *text;

	if (run(argv))
		return false;
	text = file_text("/tmp/stat");
	count[0] = text ? atoll(text) : 0;
	text = text ? strchr(text, '\n') : NULL;
	count[1] = text ? atoll(text + 1) : 0;
	return text;
}

static void test_stat_exact(void)
{
	long long few[2], many[2];

	/* A program that starts at another address may take some instructions more. */
	file_write("/proc/sys/kernel/randomize_va_space", "0");
	if (!stat_rounds("100000", few) || !stat_rounds("200000", many))
		puts("FAIL stat-exact knc-stat does not count");
	else if (many[0] - few[0] != 20 << 20 || many[1] - few[1] != 1 << 20)
		printf("FAIL stat-exact of 2^20 rounds %lld instructions, %lld branches\n",
		       many[0] - few[0], many[1] - few[1]);
	else
		puts("ok stat-exact");
	file_write("/proc/sys/kernel/randomize_va_space", "2");
}

static void run_test(const char *test)
{
	char *up = file_text("/proc/uptime");

	printf("# begin %s at %.*s\n", test, up ? (int)strcspn(up, " ") : 0, up);
	if (with_module && strcmp(test, "reset-state") && strcmp(test, "wrong-cpu") &&
	    !driver_is_loaded() && !insert_module(MODULE, "")) {
		printf("FAIL %s the driver does not load: %s\n", test, strerror(errno));
		return;
	}
	if (!strcmp(test, "card-check"))
		test_card_check();
	else if (!strcmp(test, "selftest"))
		test_selftest();
	else if (!strcmp(test, "stat-exact"))
		test_stat_exact();
	else
		run_program(test);
	all_online();
	send_results();
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
	file_write("/proc/sys/kernel/perf_event_paranoid", "1");
	file_write("/proc/sys/kernel/kptr_restrict", "0");

	snprintf(line, sizeof(line), "%s", file_text("/uos/command") ?: "");
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
	make_nodes("misc");
#ifdef __k1om__
	if (!strcmp(boot, "cpus") || !strcmp(boot, "card"))
		insert_module("/tests/modules/knc_test_tsc.ko", "");
#endif
	/* these tests send NMIs that have no handler */
	if (!strcmp(boot, "races"))
		insert_module("/tests/modules/knc_test_nmi.ko", "");

	while ((word = strtok(NULL, " ")))
		run_test(word);
	check_boot();
	finish("success");
}
