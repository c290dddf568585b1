// SPDX-License-Identifier: GPL-2.0-only
/* Who may read counters by RDPMC, and who may not, or not any more. */
#define _GNU_SOURCE
#include "lib.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static struct perf_event_mmap_page *map_page(int fd)
{
	struct perf_event_mmap_page *page;

	page = mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, fd, 0);
	must(page != MAP_FAILED, "mapping the page: %s", strerror(errno));
	return page;
}

static void unmap_page(struct perf_event_mmap_page *page)
{
	must(!munmap(page, getpagesize()), "unmapping the page: %s", strerror(errno));
}

static sigjmp_buf denied;

static void on_fault(int sig)
{
	(void)sig;
	siglongjmp(denied, 1);
}

/* False if the processor says #GP. */
static bool read_counter(u32 counter, u64 *value)
{
	u32 low, high;

	signal(SIGSEGV, on_fault);
	if (sigsetjmp(denied, 1)) {
		signal(SIGSEGV, SIG_DFL);
		return false;
	}
	asm volatile("rdpmc" : "=a" (low), "=d" (high) : "c" (counter));
	signal(SIGSEGV, SIG_DFL);
	*value = low | (u64)high << 32;
	return true;
}

/* An event that programs may read, or the test is skipped. */
static int open_readable(void)
{
	int fd = ev_self(INSTRUCTIONS);
	struct perf_event_mmap_page *page = map_page(fd);
	bool readable = page->cap_user_rdpmc;

	unmap_page(page);
	if (!readable)
		skip("programs are given no RDPMC here");
	return fd;
}

struct elsewhere {
	pthread_barrier_t mapped, unmapped;
	bool while_mapped, after;
};

static void *read_elsewhere(void *arg)
{
	struct elsewhere *e = arg;
	u64 value;

	pin(1);
	pthread_barrier_wait(&e->mapped);
	e->while_mapped = read_counter(0, &value);
	pthread_barrier_wait(&e->unmapped);
	pthread_barrier_wait(&e->unmapped);
	e->after = read_counter(0, &value);
	return NULL;
}

static void *come_and_go(void *arg)
{
	return arg;
}

/* While a page is mapped, and not a moment longer; on all CPUs of the process */
TEST(rdpmc_unmapped, "rdpmc-unmapped", 60)
{
	struct perf_event_mmap_page *page, *second;
	int fd = open_readable(), round;
	struct elsewhere e = {};
	pthread_t thread, another;
	u64 value;

	pin(0);
	ev_on(fd);
	for (round = 0; round < 20; round++) {
		must(!read_counter(0, &value), "round %d: RDPMC without a page", round);
		page = map_page(fd);
		second = map_page(fd);
		must(read_counter(0, &value), "round %d: no RDPMC with a page", round);
		unmap_page(page);
		must(read_counter(0, &value), "round %d: no RDPMC with a page left", round);
		unmap_page(second);
		must(!read_counter(0, &value), "round %d: RDPMC after the last page", round);
	}

	must(!pthread_barrier_init(&e.mapped, NULL, 2) &&
	     !pthread_barrier_init(&e.unmapped, NULL, 2) &&
	     !pthread_create(&thread, NULL, read_elsewhere, &e), "no thread");
	page = map_page(fd);
	/* a thread more changes nothing */
	must(!pthread_create(&another, NULL, come_and_go, NULL), "no thread");
	pthread_join(another, NULL);
	must(read_counter(0, &value), "no RDPMC after a thread has come");
	pthread_barrier_wait(&e.mapped);
	pthread_barrier_wait(&e.unmapped);
	unmap_page(page);
	pthread_barrier_wait(&e.unmapped);
	pthread_join(thread, NULL);
	must(e.while_mapped, "no RDPMC on another CPU, with a page");
	must(!e.after, "RDPMC on another CPU, after the last page");

	/* The event goes, with its page mapped; then the page. */
	page = map_page(fd);
	close(fd);
	unmap_page(page);
	must(!read_counter(0, &value), "RDPMC after the last page of a closed event");
}

/* The page of an event that samples, or that is not the task's, opens nothing. */
TEST(rdpmc_refused, "rdpmc-refused", 60)
{
	struct perf_event_attr attr = user_attr(INSTRUCTIONS);
	struct perf_event_mmap_page *page;
	int fd = open_readable();
	u64 value;

	close(fd);
	pin(0);
	attr.sample_period = 1000003;
	fd = ev_open(&attr, 0, -1, -1);
	page = map_page(fd);
	ev_on(fd);
	must(!page->cap_user_rdpmc, "an event that samples promises RDPMC");
	must(!page->index, "an event that samples is on counter %u", page->index - 1);
	must(!read_counter(0, &value) && !read_counter(1, &value),
	     "RDPMC with an event that samples");
	ev_off(fd);
	unmap_page(page);
	close(fd);
}
