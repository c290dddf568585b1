// SPDX-License-Identifier: GPL-2.0-only
/*
 * A child of fork() may execute RDPMC, though it has no event and no mapping of one.
 * Prints "RDPMC in the child: faults", or the counter's value, which is the defect.
 * On an x86 CPU with /sys/bus/event_source/devices/cpu/rdpmc at 1:
 *
 *	gcc -O2 rdpmc.c && ./a.out
 */
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_fault(int sig)
{
	static const char text[] = "RDPMC in the child: faults\n";

	(void)sig;
	_exit(write(1, text, sizeof(text) - 1) < 0);
}

int main(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS,
		.size = sizeof(attr), .exclude_kernel = 1,
	};
	struct perf_event_mmap_page *page;
	unsigned int low, high;
	int fd, status;

	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	page = mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, fd, 0);
	if (fd < 0 || page == MAP_FAILED || !page->cap_user_rdpmc) {
		perror("an event that may be read by RDPMC");
		return 2;
	}
	if (!fork()) {
		/* The mapping is VM_DONTCOPY, so it is not here. */
		close(fd);
		signal(SIGSEGV, on_fault);
		asm volatile("rdpmc" : "=a" (low), "=d" (high) : "c" (0));
		printf("RDPMC in the child: %#llx\n", (unsigned long long)high << 32 | low);
		fflush(stdout);
		_exit(1);
	}
	wait(&status);
	return !WIFEXITED(status) || WEXITSTATUS(status);
}
