// SPDX-License-Identifier: GPL-2.0-only
/* tools/selftest.c, which must not disturb others that use the counters */
#include "lib.h"

static char said[16384];

/* Its status; what it says is in said[]. */
static int ask(bool root)
{
	size_t length = 0;
	int ends[2], status;
	ssize_t got;
	pid_t pid;

	must_pipe(ends);
	in_child(pid) {
		/* nobody cannot look into /tests */
		int program = open("/tests/selftest", O_RDONLY | O_CLOEXEC);

		must(dup2(ends[1], STDOUT_FILENO) >= 0, "dup2: %m");
		if (!root)
			become_nobody();
		fexecve(program, (char *[]){ "self", NULL }, environ);
		fail("/tests/selftest: %m");
	}
	close(ends[1]);
	while ((got = read(ends[0], said + length, sizeof(said) - 1 - length)) > 0)
		length += got;
	said[length] = '\0';
	close(ends[0]);
	must(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "the self-test has crashed");
	return WEXITSTATUS(status);
}

static void not_done(bool root, const char *why)
{
	int status = ask(root);

	must(status == 2 && strstr(said, why) && !strstr(said, "FAIL"),
	     "status %d, not \"%s\": %s", status, why, strrchr(said, ':'));
}

/*
 * The events of a CPU are on their counters all the time, and count what the emulator does.
 * Root looks at the registers; others find that their events have to wait.
 */
static void beside(int cpu, int n, bool root)
{
	struct perf_event_attr attr = times_attr(INSTRUCTIONS, .pinned = !root);
	struct times t;
	pid_t spinner;
	int fd[2], i;
	u64 truth;

	for (i = 0; i < n; i++)
		fd[i] = ev_open(attr, -1, cpu, -1);
	truth = -td_read(cpu, TD_INSN_USER);
	for (i = 0; i < n; i++)
		ev_on(fd[i]);
	in_child(spinner) {
		pin(cpu);
		for (;;)
			spin(1000);
	}
	not_done(root, root && have_msr() ? text_of(" of cpu %d\n", cpu) :
		 "in use: an event has waited for it");
	end_child(spinner);
	truth += td_read(cpu, TD_INSN_USER);
	for (i = 0; i < n; i++) {
		t = ev_times(fd[i]);
		must(t.value == truth && t.running == t.enabled,
		     "CPU %d, %d events: counted %llu of %llu in %llu of %llu ns", cpu, n, t.value,
		     truth, t.running, t.enabled);
		close(fd[i]);
	}
}

TEST("selftest-in-use", 120)
{
	int other_core = cpus_online() - 4;

	td_need();
	/* No other CPU is measured. */
	pin(1);
	beside(0, 1, true);
	beside(other_core, 2, true);
	beside(0, 2, false);
	beside(other_core, 1, false);
}

TEST("selftest-unloaded", 60)
{
	module_need();
	not_done(true, "self-test: not done: the driver is not loaded");
}
