// SPDX-License-Identifier: GPL-2.0-only
/* When a program may use RDPMC */
#include "lib.h"

#include <pthread.h>

static void unmap_page(struct perf_event_mmap_page *page)
{
	must(!munmap(page, getpagesize()), "unmapping the page: %m");
}

struct elsewhere {
	pthread_barrier_t meeting;
	bool while_mapped, after;
};

static void *read_elsewhere(void *arg)
{
	struct elsewhere *e = arg;
	u64 value;

	pin(1);
	pthread_barrier_wait(&e->meeting);
	e->while_mapped = try_rdpmc(0, &value);
	pthread_barrier_wait(&e->meeting);
	pthread_barrier_wait(&e->meeting);
	e->after = try_rdpmc(0, &value);
	return NULL;
}

static void *come_and_go(void *arg)
{
	return arg;
}

/* RDPMC works on all CPUs of a process exactly while a page is mapped. */
TEST(rdpmc_unmapped, "rdpmc-unmapped", 60)
{
	struct perf_event_mmap_page *page, *second;
	int fd = ev_self(INSTRUCTIONS), round;
	struct elsewhere e = {};
	pthread_t thread, another;
	u64 value;

	pin(0);
	ev_on(fd);
	for (round = 0; round < 20; round++) {
		must(!try_rdpmc(0, &value), "round %d: RDPMC without a page", round);
		page = page_of(fd);
		second = page_of(fd);
		must(try_rdpmc(0, &value), "round %d: no RDPMC with a page", round);
		unmap_page(page);
		must(try_rdpmc(0, &value), "round %d: no RDPMC with a page left", round);
		unmap_page(second);
		must(!try_rdpmc(0, &value), "round %d: RDPMC after the last page", round);
	}

	must(!pthread_barrier_init(&e.meeting, NULL, 2) &&
	     !pthread_create(&thread, NULL, read_elsewhere, &e), "no thread");
	page = page_of(fd);
	/* another thread changes nothing */
	must(!pthread_create(&another, NULL, come_and_go, NULL), "no thread");
	pthread_join(another, NULL);
	must(try_rdpmc(0, &value), "no RDPMC after a thread has come");
	pthread_barrier_wait(&e.meeting);
	pthread_barrier_wait(&e.meeting);
	unmap_page(page);
	pthread_barrier_wait(&e.meeting);
	pthread_join(thread, NULL);
	must(e.while_mapped, "no RDPMC on another CPU, with a page");
	must(!e.after, "RDPMC on another CPU, after the last page");

	/* close the event, then unmap its page */
	page = page_of(fd);
	close(fd);
	unmap_page(page);
	must(!try_rdpmc(0, &value), "RDPMC after the last page of a closed event");
}

/* The page of a sampling event allows no RDPMC. */
TEST(rdpmc_refused, "rdpmc-refused", 60)
{
	struct perf_event_mmap_page *page;
	u64 value;
	int fd;

	pin(0);
	fd = ev_open(sampling_attr(INSTRUCTIONS, 1000003, 0), 0, -1, -1);
	page = page_of(fd);
	ev_on(fd);
	must(!page->cap_user_rdpmc, "an event that samples promises RDPMC");
	must(!page->index, "an event that samples is on counter %u", page->index - 1);
	must(!try_rdpmc(0, &value) && !try_rdpmc(1, &value), "RDPMC with an event that samples");
}
