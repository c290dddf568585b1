/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Regions with names, for programs on a Knights Corner coprocessor: what each thread has
 * counted between begin and end, how many times, and how long it took. C99 or C++, no
 * library; with a glibc older than 2.34 link with -pthread, older than 2.17 with -lrt, too.
 *
 *	knc_region_begin("solve");
 *	solve(a, b);
 *	knc_region_end("solve");
 *
 * and then: knc-metrics --regions ./program
 *
 * Without the environment variables KNC_REGIONS and KNC_REGIONS_FILE, which knc-metrics
 * sets, nothing is counted. knc_pmu_regions(3) describes them, and the file.
 */
#ifndef KNC_PMU_REGIONS_H
#define KNC_PMU_REGIONS_H

#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "knc_pmu_user.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * knc_region_begin() - from here on, count for this region and thread
 * @name: any text of at most 95 bytes
 *
 * Regions nest. One that is begun again inside itself counts once, and calls twice.
 */
void knc_region_begin(const char *name);

/**
 * knc_region_end() - the end of the region that was begun last
 * @name: its name
 */
void knc_region_end(const char *name);

/**
 * knc_region_begin_spflt() - the same, and SPFLT events count inside
 * @name: any text of at most 95 bytes
 *
 * It also works without the environment variables, for perf's SPFLT events. Regions inside
 * leave the preference as it is. While regions are counted, the preference is theirs: do
 * not use spflt_on() and spflt_off() as well.
 */
void knc_region_begin_spflt(const char *name);

/**
 * knc_region_end_spflt() - the end of such a region
 * @name: its name
 */
void knc_region_end_spflt(const char *name);

/**
 * knc_region_get() - what this thread has counted for a region that is not open
 * @name: its name
 * @counts: room for two counts
 * @ns: where the time goes, in nanoseconds
 * @calls: where the number of calls goes
 *
 * Return: the number of events; -1 if there is nothing, or not of all calls.
 */
int knc_region_get(const char *name, uint64_t *counts, uint64_t *ns, uint64_t *calls);

/**
 * knc_region_reset() - forget what this thread has counted for a region so far
 * @name: its name
 */
void knc_region_reset(const char *name);

/**
 * knc_regions_write() - write the file now, as exit() does
 *
 * For a program that ends in another way, such as _exit(), abort() or execve(). Without it
 * knc-metrics reports that the process has begun regions and is not counted.
 *
 * Return: 0, also if there is nothing to write; -1 if it fails, with a message.
 */
int knc_regions_write(void);

/* For Fortran, whose names have a length, and blanks at their end */
void knc_region_fortran(const char *name, int length, int begin, int spflt);

/* From here on it is nobody's business but this file's. Weak: one copy for all files. */
#define KNC_REGIONS_WEAK	__attribute__((weak, visibility("default")))
/* of a name that ends with a 0 */
#define KNC_REGIONS_STRING	(-1)

#ifdef KNC_PMU_X86

#define KNC_REGIONS_EVENTS	2
/* The events' counts, and nanoseconds */
#define KNC_REGIONS_TIME	KNC_REGIONS_EVENTS
#define KNC_REGIONS_VALUES	(KNC_REGIONS_EVENTS + 1)
#define KNC_REGIONS_NAME	96
#define KNC_REGIONS_ROOM	256
#define KNC_REGIONS_DEPTH	64
#define KNC_REGIONS_ROUNDS	16
/* Threads that begin until it is asked which have ended */
#define KNC_REGIONS_REAP	64
#define KNC_REGIONS_TRIES	1000

#define KNC_REGIONS_BARRIER()	__asm__ volatile("" : : : "memory")

/* -std=c99 hides these. */
#ifndef CLOCK_MONOTONIC
int clock_gettime(int clock, struct timespec *now);
#define CLOCK_MONOTONIC 1
#endif
#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS 0x20
#endif

/* What is said once only */
enum knc_regions_said_ {
	KNC_REGIONS_SAID_NESTING, KNC_REGIONS_SAID_END, KNC_REGIONS_SAID_OPEN,
	KNC_REGIONS_SAID_ROOM, KNC_REGIONS_SAID_LENGTH, KNC_REGIONS_SAID_DEPTH,
	KNC_REGIONS_SAID_SIGNAL, KNC_REGIONS_SAID_EVENT, KNC_REGIONS_SAID_TAKEN,
	KNC_REGIONS_SAID_SETTING, KNC_REGIONS_SAID_MEMORY, KNC_REGIONS_SAID_BUSY,
	KNC_REGIONS_SAID_FILE
};

struct knc_regions_region_ {
	char name[KNC_REGIONS_NAME];
	uint64_t calls, lost;
	int64_t value[KNC_REGIONS_VALUES];
	int64_t first, last;		/* when it was begun first, and ended last */
	uint64_t first_calls;		/* 0: there was none, or it was lost */
	int64_t first_value[KNC_REGIONS_VALUES];
	const char *why;		/* the last one that was lost */
	int open;			/* how many times */
};

struct knc_regions_frame_ {
	struct knc_regions_region_ *region;	/* NULL: there was no room for it */
	/* Before and after what begin() does, and spent by regions inside until then */
	int64_t entry[KNC_REGIONS_VALUES];
	int64_t start[KNC_REGIONS_VALUES];
	int64_t spent[KNC_REGIONS_VALUES];
	int spflt, bad;
};

struct knc_regions_thread_ {
	struct knc_regions_thread_ *next;
	long tid;			/* 0 while costs are measured */
	volatile uint32_t seq;		/* odd while regions change */
	volatile int busy;
	volatile int count;
	int depth, beyond, spflt, rdpmc;
	int fd[KNC_REGIONS_EVENTS];
	struct perf_event_mmap_page *page[KNC_REGIONS_EVENTS];
	const char *why;		/* nothing is counted here */
	char error[160];
	/* What begin and end have cost so far, inside regions */
	int64_t spent[KNC_REGIONS_VALUES];
	/* What both cost in the region itself, and in one around it; there, begin alone */
	int64_t inside[KNC_REGIONS_VALUES], around[KNC_REGIONS_VALUES];
	int64_t begin[KNC_REGIONS_VALUES];
	struct knc_regions_frame_ frame[KNC_REGIONS_DEPTH];
	unsigned short slot[2 * KNC_REGIONS_ROOM];
	struct knc_regions_region_ region[KNC_REGIONS_ROOM];
};

struct knc_regions_event_ {
	char name[64];
	uint32_t type;
	uint64_t config, config1;
	unsigned int user;
};

enum { KNC_REGIONS_UNKNOWN, KNC_REGIONS_OFF, KNC_REGIONS_ON };

struct knc_regions_ {
	volatile int mode, lock;
	unsigned int said;
	int events, files;
	uint64_t written;
	int unreaped, reap_at;
	struct knc_regions_thread_ *volatile threads;
	struct knc_regions_event_ event[KNC_REGIONS_EVENTS];
	char file[4096];
	char rank[16];			/* of MPI; empty if none is known */
};

struct knc_regions_output_ {
	int fd, used, error;
	char text[4096];
};

extern struct knc_regions_ knc_regions_;
extern __thread struct knc_regions_thread_ *knc_regions_self_;
extern __thread int knc_regions_marks_;
KNC_REGIONS_WEAK struct knc_regions_ knc_regions_;
KNC_REGIONS_WEAK __thread struct knc_regions_thread_ *knc_regions_self_;
/* Without the environment variables: how many SPFLT regions are open */
KNC_REGIONS_WEAK __thread int knc_regions_marks_;

int knc_regions_off_(void);

/*
 * Not the C library's: these leave errno alone, are no points of cancellation, and are
 * there in any dialect of C.
 */
static inline long knc_regions_call_(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a" (result)
			 : "a" (number), "D" (a), "S" (b), "d" (c), "r" (r10), "r" (r8), "r" (r9)
			 : "rcx", "r11", "memory");
	return result;
}

static void knc_regions_lock_(void)
{
	while (__sync_lock_test_and_set(&knc_regions_.lock, 1))
		knc_regions_call_(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static void knc_regions_unlock_(void)
{
	__sync_lock_release(&knc_regions_.lock);
}

/* 0, or the errno */
static int knc_regions_put_(int fd, const char *text, size_t length)
{
	while (length) {
		long done = knc_regions_call_(SYS_write, fd, (long)text, (long)length, 0, 0, 0);

		if (done <= 0)
			return done ? (int)-done : EIO;
		text += done;
		length -= (size_t)done;
	}
	return 0;
}

/* Once for each kind. @name may be NULL, and need not end with a 0. */
static void knc_regions_say_(enum knc_regions_said_ what, const char *name, int length,
			     const char *more)
{
	unsigned int bit = 1U << what;
	char text[512];

	if (__sync_fetch_and_or(&knc_regions_.said, bit) & bit)
		return;
	if (!name)
		snprintf(text, sizeof(text), "knc_regions: %.400s\n", more);
	else
		snprintf(text, sizeof(text), "knc_regions: \"%.*s\": %.300s\n",
			 length < 0 || length > KNC_REGIONS_NAME ? KNC_REGIONS_NAME : length, name,
			 more);
	knc_regions_put_(2, text, strlen(text));
}

/* --- counting -------------------------------------------------------------------- */

/* Pinned: while the thread runs the events have counters, or an error. 0 or 1. */
static inline int knc_regions_counts_(const struct knc_regions_thread_ *t, int64_t *value)
{
	uint64_t group[1 + KNC_REGIONS_EVENTS];
	int i, n = knc_regions_.events;

	if (t->why)
		return 1;
	if (t->rdpmc) {
		for (i = 0; i < n; i++) {
			uint64_t count;

			if (knc_rdpmc(t->page[i], &count))
				return 1;
			value[i] = (int64_t)count;
		}
		return 0;
	}
	if (knc_regions_call_(SYS_read, t->fd[0], (long)group, sizeof(group), 0, 0, 0) !=
	    (long)((1 + (size_t)n) * sizeof(uint64_t)))
		return 1;
	for (i = 0; i < n; i++)
		value[i] = (int64_t)group[1 + i];
	return 0;
}

/* The time stamp counter is another one on each core, and a thread may move. */
static inline void knc_regions_time_(int64_t *value)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	value[KNC_REGIONS_TIME] = now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

/* Does it count where the preference is this? */
static inline int knc_regions_counted_(int value, int spflt)
{
	return value == KNC_REGIONS_TIME || spflt || !(knc_regions_.event[value].config1 & 1);
}

/* Of this thread, and made if there is none and @add; NULL if there is no room. */
static struct knc_regions_region_ *knc_regions_find_(struct knc_regions_thread_ *t,
						     const char *name, int length, int add)
{
	struct knc_regions_region_ *r;
	unsigned int hash = 2166136261U, at;
	int i;

	if (length == KNC_REGIONS_STRING)
		length = (int)strlen(name);
	else
		while (length > 0 && name[length - 1] == ' ')
			length--;
	if (length >= KNC_REGIONS_NAME) {
		if (add)
			knc_regions_say_(KNC_REGIONS_SAID_LENGTH, name, length,
					 "not counted, as the name is longer than 95 bytes");
		return NULL;
	}
	for (i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)name[i]) * 16777619U;
	for (at = hash;; at++) {
		unsigned short *slot = &t->slot[at % (2 * KNC_REGIONS_ROOM)];

		if (*slot) {
			r = &t->region[*slot - 1];
			if (!strncmp(r->name, name, (size_t)length) && !r->name[length])
				return r;
			continue;
		}
		if (!add)
			return NULL;
		if (t->count == KNC_REGIONS_ROOM) {
			knc_regions_say_(KNC_REGIONS_SAID_ROOM, name, length,
					 "not counted, as a thread has room for 256 regions");
			return NULL;
		}
		r = &t->region[t->count];
		memcpy(r->name, name, (size_t)length);
		*slot = (unsigned short)(t->count + 1);
		KNC_REGIONS_BARRIER();
		t->count = t->count + 1;
		return r;
	}
}

/* Before and after a change of a region, for the thread that writes the file */
static inline void knc_regions_change_(struct knc_regions_thread_ *t)
{
	KNC_REGIONS_BARRIER();
	t->seq = t->seq + 1;
	KNC_REGIONS_BARRIER();
}

static void knc_regions_lose_(struct knc_regions_thread_ *t, struct knc_regions_region_ *r,
			      const char *why)
{
	if (!r)
		return;
	knc_regions_change_(t);
	r->open--;
	r->lost++;
	r->why = why;
	knc_regions_change_(t);
}

static void knc_regions_push_(struct knc_regions_thread_ *t, struct knc_regions_frame_ *f,
			      const char *name, int length, int spflt)
{
	f->region = knc_regions_find_(t, name, length, 1);
	f->spflt = spflt || t->spflt;
	memcpy(f->spent, t->spent, sizeof(f->spent));
	if (f->region) {
		knc_regions_change_(t);
		f->region->open++;
		knc_regions_change_(t);
	}
	t->spflt = f->spflt;
	t->depth++;
}

/* The cost of begin and end is not the regions' around it; a dropped one has no end. */
static void knc_regions_spend_(struct knc_regions_thread_ *t, const struct knc_regions_frame_ *f,
			       int dropped)
{
	int i, outside = f > t->frame && f[-1].spflt;

	for (i = 0; i < KNC_REGIONS_VALUES; i++) {
		t->spent[i] += f->start[i] - f->entry[i];
		if (knc_regions_counted_(i, f->spflt) && !dropped)
			t->spent[i] += t->inside[i];
		if (knc_regions_counted_(i, outside))
			t->spent[i] += dropped ? t->begin[i] : t->around[i];
	}
}

static void knc_regions_add_(struct knc_regions_thread_ *t, const struct knc_regions_frame_ *f,
			     const int64_t *now)
{
	struct knc_regions_region_ *r = f->region;
	int i;

	knc_regions_change_(t);
	r->open--;
	if (f->bad) {
		r->lost++;
		r->why = t->why ? t->why : "something else has taken a counter";
	} else {
		r->calls++;
	}
	if (!r->first)
		r->first = f->start[KNC_REGIONS_TIME];
	r->last = now[KNC_REGIONS_TIME];
	/* Of a region inside itself the outermost call has all. */
	for (i = f->bad ? KNC_REGIONS_TIME : 0; !r->open && i < KNC_REGIONS_VALUES; i++)
		r->value[i] += now[i] - f->start[i] - (t->spent[i] - f->spent[i]) -
			(knc_regions_counted_(i, f->spflt) ? t->inside[i] : 0);
	if (!r->first_calls && !r->open && !r->lost) {
		r->first_calls = r->calls;
		memcpy(r->first_value, r->value, sizeof(r->first_value));
	}
	knc_regions_change_(t);
	if (f->bad && !t->why)
		knc_regions_say_(KNC_REGIONS_SAID_TAKEN, r->name, KNC_REGIONS_STRING,
				 "not counted: another perf, or the NMI watchdog, has taken a counter");
}

/* Takes the region off the stack, and what is open inside it. */
static void knc_regions_pop_(struct knc_regions_thread_ *t, const int64_t *now, int bad,
			     const char *name, int length)
{
	const struct knc_regions_region_ *r;
	struct knc_regions_frame_ *f;
	int i;

	if (t->beyond) {
		t->beyond--;
		return;
	}
	r = knc_regions_find_(t, name, length, 0);
	for (i = t->depth - 1; i >= 0 && t->frame[i].region != r; i--)
		;
	if (i < 0) {
		knc_regions_say_(KNC_REGIONS_SAID_END, name, length, "ends, and has not begun");
		for (i = 0; i < KNC_REGIONS_VALUES; i++)
			if (knc_regions_counted_(i, t->spflt))
				t->spent[i] += t->inside[i] + t->around[i] - t->begin[i];
		return;
	}
	f = &t->frame[i];
	while (--t->depth > i) {
		struct knc_regions_frame_ *inner = &t->frame[t->depth];

		if (t->tid)
			knc_regions_say_(KNC_REGIONS_SAID_NESTING, name, length,
					 "ends before a region inside it, which is not counted");
		knc_regions_lose_(t, inner->region, "the region around it ended first");
		knc_regions_spend_(t, inner, 1);
		f->bad |= inner->bad;
	}
	f->bad |= bad;
	if (f->region)
		knc_regions_add_(t, f, now);
	t->spflt = i && f[-1].spflt;
	if (i) {
		f[-1].bad |= f->bad;
		knc_regions_spend_(t, f, 0);
	}
}

static struct knc_regions_thread_ *knc_regions_start_(void);

/* After its last look at the counters, and before the first, the path is always the same. */
static __attribute__((noinline)) void knc_regions_enter_(const char *name, int length, int spflt)
{
	struct knc_regions_thread_ *t = knc_regions_self_;
	struct knc_regions_frame_ *f;

	if (!t) {
		t = knc_regions_start_();
		if (!t)
			return;
	}
	knc_spflt(0);
	if (t->busy) {
		knc_regions_say_(KNC_REGIONS_SAID_SIGNAL, name, length,
				 "not counted in a signal that came in a begin or an end");
		return;
	}
	t->busy = 1;
	if (t->depth < KNC_REGIONS_DEPTH) {
		f = &t->frame[t->depth];
		f->bad = 0;
		if (t->depth) {
			f->bad = knc_regions_counts_(t, f->entry);
			knc_regions_time_(f->entry);
		}
		knc_regions_push_(t, f, name, length, spflt);
		knc_regions_time_(f->start);
		f->bad |= knc_regions_counts_(t, f->start);
	} else {
		t->beyond++;
		knc_regions_say_(KNC_REGIONS_SAID_DEPTH, name, length,
				 "not counted, as 64 regions are open");
	}
	t->busy = 0;
	knc_spflt((uint32_t)t->spflt);
}

static __attribute__((noinline)) void knc_regions_leave_(const char *name, int length)
{
	struct knc_regions_thread_ *t = knc_regions_self_;
	int64_t now[KNC_REGIONS_VALUES], after[KNC_REGIONS_VALUES];
	int i, bad;

	if (!t) {
		knc_regions_say_(KNC_REGIONS_SAID_END, name, length,
				 "ends, and has not begun in this thread");
		return;
	}
	knc_spflt(0);
	if (t->busy)
		return;
	t->busy = 1;
	bad = knc_regions_counts_(t, now);
	knc_regions_time_(now);
	knc_regions_pop_(t, now, bad, name, length);
	if (t->depth) {
		knc_regions_time_(after);
		t->frame[t->depth - 1].bad |= knc_regions_counts_(t, after);
		for (i = 0; i < KNC_REGIONS_VALUES; i++)
			t->spent[i] += after[i] - now[i];
	}
	t->busy = 0;
	knc_spflt((uint32_t)t->spflt);
}

/* --- a thread ---------------------------------------------------------------------- */

static void knc_regions_close_(struct knc_regions_thread_ *t, int unmap)
{
	int i;

	t->rdpmc = 0;
	for (i = 0; i < KNC_REGIONS_EVENTS; i++) {
		if (unmap && t->page[i])
			knc_regions_call_(SYS_munmap, (long)t->page[i], 4096, 0, 0, 0, 0);
		if (t->fd[i] >= 0)
			knc_regions_call_(SYS_close, t->fd[i], 0, 0, 0, 0, 0);
		t->page[i] = NULL;
		t->fd[i] = -1;
	}
}

/* A group of events for this thread alone: 0, or -errno and which of them it is */
static int knc_regions_open_(struct knc_regions_thread_ *t, int *which)
{
	struct perf_event_attr attr;
	int i, rdpmc = 1;

	for (i = 0; i < knc_regions_.events; i++) {
		const struct knc_regions_event_ *event = &knc_regions_.event[i];
		long page;

		*which = i;
		memset(&attr, 0, sizeof(attr));
		attr.size = sizeof(attr);
		attr.type = event->type;
		attr.config = event->config;
		attr.config1 = event->config1;
		attr.exclude_kernel = event->user & 1;
		attr.exclude_hv = event->user & 1;
		attr.read_format = PERF_FORMAT_GROUP;
		attr.disabled = !i;
		/* Never a part of the time */
		attr.pinned = !i;
		t->fd[i] = (int)knc_regions_call_(SYS_perf_event_open, (long)&attr, 0, -1,
						  i ? t->fd[0] : -1, 0, 0);
		if (t->fd[i] < 0)
			return t->fd[i];
		knc_regions_call_(SYS_fcntl, t->fd[i], F_SETFD, FD_CLOEXEC, 0, 0, 0);
		page = knc_regions_call_(SYS_mmap, 0, 4096, PROT_READ, MAP_SHARED, t->fd[i], 0);
		if (page < 0 && page > -4096)
			rdpmc = 0;
		else
			t->page[i] = (struct perf_event_mmap_page *)page;
	}
	knc_regions_call_(SYS_ioctl, t->fd[0], PERF_EVENT_IOC_ENABLE, 0, 0, 0, 0);
	for (i = 0; i < knc_regions_.events && rdpmc; i++)
		rdpmc = t->page[i]->cap_user_rdpmc && t->page[i]->index;
	t->rdpmc = rdpmc;
	return 0;
}

/*
 * Threads that have ended keep their counts, and need no events. POSIX would tell of their
 * end if there was a key, but in static programs of Fortran that makes its library call
 * functions that are not linked.
 */
static void knc_regions_reap_(long self, int now)
{
	long pid = knc_regions_call_(SYS_getpid, 0, 0, 0, 0, 0, 0);
	struct knc_regions_thread_ *t;
	int alive = 0;

	knc_regions_lock_();
	knc_regions_.unreaped += !now;
	if (now || knc_regions_.unreaped >= knc_regions_.reap_at) {
		for (t = knc_regions_.threads; t; t = t->next) {
			if (t->tid != self &&
			    knc_regions_call_(SYS_tgkill, pid, t->tid, 0, 0, 0, 0) != -ESRCH) {
				alive++;
				continue;
			}
			knc_regions_close_(t, 1);
		}
		knc_regions_.unreaped = alive;
		knc_regions_.reap_at = 2 * alive + KNC_REGIONS_REAP;
	}
	knc_regions_unlock_();
}

static void knc_regions_events_(struct knc_regions_thread_ *t, long tid)
{
	int which = 0, error = -knc_regions_open_(t, &which);
	int64_t value[KNC_REGIONS_VALUES];

	if (error == EMFILE) {
		/* Threads that have ended may have them. */
		knc_regions_close_(t, 1);
		knc_regions_reap_(tid, 1);
		error = -knc_regions_open_(t, &which);
	}
	if (error) {
		snprintf(t->error, sizeof(t->error), "%.40s cannot be opened: %s (errno %d)",
			 knc_regions_.event[which].name,
			 error == EACCES || error == EPERM ? "see kernel.perf_event_paranoid" :
			 error == EMFILE ? "too many open files" :
			 error == EINVAL ? "two such events do not fit, or it is none" :
			 error == ENOENT ? "the PMU has no such event" : "perf_event_open", error);
		t->why = t->error;
		knc_regions_say_(KNC_REGIONS_SAID_EVENT, NULL, 0, t->error);
	} else if (knc_regions_counts_(t, value)) {
		t->why = "something else has the counters: another perf, or the NMI watchdog";
		knc_regions_say_(KNC_REGIONS_SAID_TAKEN, NULL, 0, t->why);
	}
}

/* The least that a region has counted so far, from which it begins anew */
static void knc_regions_least_of_(struct knc_regions_region_ *r, int64_t *least, int first)
{
	int i;

	for (i = 0; i < KNC_REGIONS_VALUES; i++) {
		if (first || r->value[i] < least[i])
			least[i] = r->value[i];
		r->value[i] = 0;
	}
}

/* What begin and end cost: of a region with another one inside, and with a begin alone */
static void knc_regions_calibrate_(struct knc_regions_thread_ *t)
{
	int64_t outer[KNC_REGIONS_VALUES], inner[KNC_REGIONS_VALUES], begin[KNC_REGIONS_VALUES];
	int round, i;

	for (round = 0; round < KNC_REGIONS_ROUNDS; round++) {
		knc_region_begin_spflt("outer");
		knc_region_begin_spflt("inner");
		knc_region_end_spflt("inner");
		knc_region_end_spflt("outer");
		knc_regions_least_of_(&t->region[0], outer, !round);
		knc_regions_least_of_(&t->region[1], inner, !round);
		knc_region_begin_spflt("outer");
		knc_region_begin_spflt("inner");
		knc_region_end_spflt("outer");
		knc_regions_least_of_(&t->region[0], begin, !round);
	}
	t->count = 0;
	memset(t->region, 0, 2 * sizeof(t->region[0]));
	memset(t->slot, 0, sizeof(t->slot));
	memset(t->spent, 0, sizeof(t->spent));
	for (i = 0; i < KNC_REGIONS_VALUES; i++) {
		t->inside[i] = inner[i];
		t->around[i] = outer[i] - 2 * inner[i];
		t->begin[i] = begin[i] - inner[i];
	}
}

static void knc_regions_mark_(void);

/* The first region of a thread begins. */
static struct knc_regions_thread_ *knc_regions_start_(void)
{
	struct knc_regions_thread_ *t;
	long memory = knc_regions_call_(SYS_mmap, 0, sizeof(*t), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), tid;
	int i;

	if (memory < 0 && memory > -4096) {
		knc_regions_say_(KNC_REGIONS_SAID_MEMORY, NULL, 0,
				 "a thread is not counted: no memory");
		return NULL;
	}
	t = (struct knc_regions_thread_ *)memory;
	for (i = 0; i < KNC_REGIONS_EVENTS; i++)
		t->fd[i] = -1;
	t->busy = 1;
	knc_regions_self_ = t;
	tid = knc_regions_call_(SYS_gettid, 0, 0, 0, 0, 0, 0);
	knc_regions_reap_(tid, 0);
	knc_regions_mark_();
	knc_regions_events_(t, tid);
	t->busy = 0;
	knc_regions_calibrate_(t);
	t->tid = tid;
	do
		t->next = knc_regions_.threads;
	while (!__sync_bool_compare_and_swap(&knc_regions_.threads, t->next, t));
	return t;
}

/* Threads, and pages of events, are not the child's, and its parent's events count there. */
static void knc_regions_forked_(void)
{
	struct knc_regions_thread_ *t, *next;

	for (t = knc_regions_.threads; t; t = next) {
		next = t->next;
		knc_regions_close_(t, 0);
		knc_regions_call_(SYS_munmap, (long)t, sizeof(*t), 0, 0, 0, 0);
	}
	knc_regions_.threads = NULL;
	knc_regions_.lock = 0;
	knc_regions_.files = 0;
	knc_regions_.written = 0;
	knc_regions_.unreaped = 0;
	knc_regions_self_ = NULL;
}

/* --- the file ------------------------------------------------------------------------ */

static void knc_regions_flush_(struct knc_regions_output_ *out)
{
	if (!out->error)
		out->error = knc_regions_put_(out->fd, out->text, (size_t)out->used);
	out->used = 0;
}

/* What begin and end cost may be more than there was, by a few. */
static uint64_t knc_regions_least_(int64_t value)
{
	if (value < 0)
		return 0;
	return (uint64_t)value;
}

/* A column, of which a tabulator ends each but the last */
static void knc_regions_column_(struct knc_regions_output_ *out, const char *text, char end)
{
	if (out->used > (int)sizeof(out->text) - 200)
		knc_regions_flush_(out);
	for (; *text; text++)
		out->text[out->used++] = (unsigned char)*text < ' ' ? '?' : *text;
	out->text[out->used++] = end;
}

static void knc_regions_number_(struct knc_regions_output_ *out, uint64_t value, char end)
{
	char text[24];

	snprintf(text, sizeof(text), "%lu", (unsigned long)value);
	knc_regions_column_(out, text, end);
}

/* One region, while its thread may go on: as it was at one moment, or 0 */
static int knc_regions_snapshot_(const struct knc_regions_thread_ *t, int i,
				 struct knc_regions_region_ *r)
{
	int tries;

	for (tries = 0; tries < KNC_REGIONS_TRIES; tries++) {
		uint32_t seq = t->seq;

		KNC_REGIONS_BARRIER();
		*r = t->region[i];
		KNC_REGIONS_BARRIER();
		if (!(seq & 1) && t->seq == seq)
			return 1;
		knc_regions_call_(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	}
	return 0;
}

static void knc_regions_row_(struct knc_regions_output_ *out, const struct knc_regions_thread_ *t,
			     struct knc_regions_region_ *r, int last)
{
	char seconds[40];
	uint64_t ns = knc_regions_least_(r->value[KNC_REGIONS_TIME]);
	int i;

	if (last && r->open) {
		r->lost++;
		r->why = "left open";
		knc_regions_say_(KNC_REGIONS_SAID_OPEN, r->name, KNC_REGIONS_STRING,
				 "left open at the end of its thread, and not counted");
	}
	snprintf(seconds, sizeof(seconds), "%lu.%09lu", (unsigned long)(ns / 1000000000),
		 (unsigned long)(ns % 1000000000));
	knc_regions_column_(out, r->name, '\t');
	knc_regions_number_(out, (uint64_t)t->tid, '\t');
	knc_regions_number_(out, r->calls, '\t');
	knc_regions_number_(out, r->lost, '\t');
	knc_regions_column_(out, r->why ? r->why : "-", '\t');
	knc_regions_column_(out, seconds, '\t');
	for (i = 0; i < knc_regions_.events; i++)
		knc_regions_number_(out, knc_regions_least_(r->value[i]), '\t');
	knc_regions_number_(out, (uint64_t)r->first, '\t');
	knc_regions_number_(out, (uint64_t)r->last, '\t');
	knc_regions_number_(out, knc_regions_least_(r->first_value[KNC_REGIONS_TIME]), '\t');
	for (i = 0; i < knc_regions_.events; i++)
		knc_regions_number_(out, knc_regions_least_(r->first_value[i]), '\t');
	knc_regions_number_(out, r->first_calls, '\n');
}

static void knc_regions_head_(struct knc_regions_output_ *out)
{
	knc_regions_column_(out, "# knc-regions 1", '\n');
	if (knc_regions_.rank[0]) {
		knc_regions_column_(out, "# rank", ' ');
		knc_regions_column_(out, knc_regions_.rank, '\n');
	}
}

static void knc_regions_rows_(struct knc_regions_output_ *out, int last)
{
	static const char *const columns[] = { "region", "tid", "calls", "lost", "why", "seconds" };
	const struct knc_regions_thread_ *t;
	struct knc_regions_region_ r;
	char first[80];
	int i;

	knc_regions_head_(out);
	for (i = 0; i < 6; i++)
		knc_regions_column_(out, columns[i], '\t');
	for (i = 0; i < knc_regions_.events; i++)
		knc_regions_column_(out, knc_regions_.event[i].name, '\t');
	knc_regions_column_(out, "first", '\t');
	knc_regions_column_(out, "last", '\t');
	knc_regions_column_(out, "first_ns", '\t');
	for (i = 0; i < knc_regions_.events; i++) {
		snprintf(first, sizeof(first), "first_%s", knc_regions_.event[i].name);
		knc_regions_column_(out, first, '\t');
	}
	knc_regions_column_(out, "first_calls", '\n');
	for (t = knc_regions_.threads; t; t = t->next)
		for (i = 0; i < t->count; i++)
			if (knc_regions_snapshot_(t, i, &r))
				knc_regions_row_(out, t, &r, last);
			else
				knc_regions_say_(KNC_REGIONS_SAID_BUSY, t->region[i].name,
						 KNC_REGIONS_STRING,
						 "not written: its thread is in a begin or an end");
	/* Without this line the file is not whole. */
	knc_regions_column_(out, "# end", '\n');
	knc_regions_flush_(out);
}

/* This process's own; a file that is there is of another one, or of another copy of this. */
static int knc_regions_create_(void)
{
	char name[sizeof(knc_regions_.file) + 32];
	int flags = O_WRONLY | O_CREAT | (knc_regions_.files ? O_TRUNC : O_EXCL), n;
	long pid = knc_regions_call_(SYS_getpid, 0, 0, 0, 0, 0, 0), fd;

	for (n = knc_regions_.files ? knc_regions_.files : 1;; n++) {
		if (n == 1)
			snprintf(name, sizeof(name), "%s.%ld", knc_regions_.file, pid);
		else
			snprintf(name, sizeof(name), "%s.%ld.%d", knc_regions_.file, pid, n);
		fd = knc_regions_call_(SYS_open, (long)name, flags, 0666, 0, 0, 0);
		if (fd != -EEXIST || n == 1000)
			break;
	}
	if (fd >= 0)
		knc_regions_.files = n;
	return (int)fd;
}

/* What is there if the process ends, and does not write its file */
static void knc_regions_mark_(void)
{
	struct knc_regions_output_ out;

	knc_regions_lock_();
	memset(&out, 0, sizeof(out));
	out.fd = knc_regions_.files ? -1 : knc_regions_create_();
	if (out.fd >= 0) {
		knc_regions_head_(&out);
		knc_regions_column_(&out, "# begun", '\n');
		knc_regions_flush_(&out);
		knc_regions_call_(SYS_close, out.fd, 0, 0, 0, 0, 0);
	}
	knc_regions_unlock_();
}

static int knc_regions_save_(int last)
{
	const struct knc_regions_thread_ *t;
	struct knc_regions_output_ out;
	uint64_t sum = 0;

	memset(&out, 0, sizeof(out));
	knc_regions_lock_();
	for (t = knc_regions_.threads; t; t = t->next)
		sum += t->seq;
	if (knc_regions_.threads && (!knc_regions_.files || sum != knc_regions_.written)) {
		out.fd = knc_regions_create_();
		if (out.fd < 0) {
			out.error = -out.fd;
		} else {
			knc_regions_rows_(&out, last);
			knc_regions_call_(SYS_close, out.fd, 0, 0, 0, 0, 0);
			knc_regions_.written = sum;
		}
	}
	knc_regions_unlock_();
	if (out.error) {
		snprintf(out.text, sizeof(out.text), "%.200s.PID cannot be written: errno %d",
			 knc_regions_.file, out.error);
		knc_regions_say_(KNC_REGIONS_SAID_FILE, NULL, 0, out.text);
	}
	return out.error ? -1 : 0;
}

static void knc_regions_exit_(void)
{
	knc_regions_save_(1);
}

KNC_REGIONS_WEAK int knc_regions_write(void)
{
	return knc_regions_off_() ? 0 : knc_regions_save_(0);
}

/* --- the environment ------------------------------------------------------------------- */

/* NAME=TYPE:CONFIG[:CONFIG1][:u], and after a comma another one: is it that? */
static int knc_regions_parse_(const char *text)
{
	struct knc_regions_event_ *event;
	char *end;
	size_t length;

	for (; *text; knc_regions_.events++) {
		if (knc_regions_.events == KNC_REGIONS_EVENTS) {
			knc_regions_say_(KNC_REGIONS_SAID_SETTING, NULL, 0,
					 "nothing is counted: there are two counters, for two events");
			return 0;
		}
		event = &knc_regions_.event[knc_regions_.events];
		length = strcspn(text, "=,");
		if (!length || length >= sizeof(event->name) || text[length] != '=')
			return 0;
		memcpy(event->name, text, length);
		text += length + 1;
		event->type = (uint32_t)strtoul(text, &end, 0);
		if (end == text || *end != ':')
			return 0;
		text = end + 1;
		event->config = strtoul(text, &end, 0);
		if (end == text)
			return 0;
		if (*end == ':' && end[1] != 'u') {
			text = end + 1;
			event->config1 = strtoul(text, &end, 0);
			if (end == text)
				return 0;
		}
		event->user = *end == ':' && end[1] == 'u';
		end += event->user ? 2 : 0;
		if (*end && (*end != ',' || !end[1]))
			return 0;
		text = end + (*end == ',');
	}
	return knc_regions_.events;
}

/* Which rank of a program of MPI this is; Slurm's variable is of what has started MPI, too. */
static void knc_regions_rank_(void)
{
	static const char *const names[] = { "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID" };
	const char *rank;
	size_t digits, i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		rank = getenv(names[i]);
		digits = rank ? strspn(rank, "0123456789") : 0;
		if (digits && !rank[digits] && digits < sizeof(knc_regions_.rank)) {
			strcpy(knc_regions_.rank, rank);
			return;
		}
	}
}

static int knc_regions_wanted_(void)
{
	const char *events = getenv("KNC_REGIONS"), *file = getenv("KNC_REGIONS_FILE");

	if (!events || !*events)
		return 0;
	/* It writes a file of any name, for the user who has started it. */
	if (knc_regions_call_(SYS_getuid, 0, 0, 0, 0, 0, 0) !=
	    knc_regions_call_(SYS_geteuid, 0, 0, 0, 0, 0, 0) ||
	    knc_regions_call_(SYS_getgid, 0, 0, 0, 0, 0, 0) !=
	    knc_regions_call_(SYS_getegid, 0, 0, 0, 0, 0, 0))
		return 0;
	if (!knc_cpu()) {
		knc_regions_say_(KNC_REGIONS_SAID_SETTING, NULL, 0,
				 "nothing is counted: this is no Knights Corner");
		return 0;
	}
	if (!file || !*file || strlen(file) >= sizeof(knc_regions_.file)) {
		knc_regions_say_(KNC_REGIONS_SAID_SETTING, NULL, 0,
				 "nothing is counted: KNC_REGIONS_FILE has no name of a file");
		return 0;
	}
	strcpy(knc_regions_.file, file);
	knc_regions_rank_();
	if (!knc_regions_parse_(events)) {
		knc_regions_say_(KNC_REGIONS_SAID_SETTING, NULL, 0,
				 "KNC_REGIONS is not NAME=TYPE:CONFIG[:CONFIG1][:u][,...]");
		return 0;
	}
	return 1;
}

/* Are there no regions in this process? It asks the environment, once. */
KNC_REGIONS_WEAK int knc_regions_off_(void)
{
	if (knc_regions_.mode == KNC_REGIONS_UNKNOWN) {
		knc_regions_lock_();
		if (knc_regions_.mode == KNC_REGIONS_UNKNOWN) {
			int mode = KNC_REGIONS_OFF;

			if (knc_regions_wanted_()) {
				pthread_atfork(NULL, NULL, knc_regions_forked_);
				atexit(knc_regions_exit_);
				mode = KNC_REGIONS_ON;
			}
			KNC_REGIONS_BARRIER();
			knc_regions_.mode = mode;
		}
		knc_regions_unlock_();
	}
	return knc_regions_.mode == KNC_REGIONS_OFF;
}

/* Before objects of C++ are made: exit() writes the file after they are gone. */
static __attribute__((constructor(101))) void knc_regions_begin_process_(void)
{
	knc_regions_off_();
}

/* --- for programs ------------------------------------------------------------------------ */

static void knc_regions_begin_(const char *name, int length, int spflt)
{
	if (!knc_regions_off_())
		knc_regions_enter_(name, length, spflt);
	else if (spflt && !knc_regions_marks_++)
		spflt_on();
}

static void knc_regions_end_(const char *name, int length, int spflt)
{
	if (!knc_regions_off_())
		knc_regions_leave_(name, length);
	else if (spflt && knc_regions_marks_ && !--knc_regions_marks_)
		spflt_off();
}

KNC_REGIONS_WEAK int knc_region_get(const char *name, uint64_t *counts, uint64_t *ns,
				    uint64_t *calls)
{
	struct knc_regions_thread_ *t = knc_regions_self_;
	const struct knc_regions_region_ *r;
	int i;

	r = t ? knc_regions_find_(t, name, KNC_REGIONS_STRING, 0) : NULL;
	if (!r || r->open || r->lost)
		return -1;
	for (i = 0; i < knc_regions_.events; i++)
		counts[i] = knc_regions_least_(r->value[i]);
	*ns = knc_regions_least_(r->value[KNC_REGIONS_TIME]);
	*calls = r->calls;
	return knc_regions_.events;
}

KNC_REGIONS_WEAK void knc_region_reset(const char *name)
{
	struct knc_regions_thread_ *t = knc_regions_self_;
	struct knc_regions_region_ *r;

	r = t ? knc_regions_find_(t, name, KNC_REGIONS_STRING, 0) : NULL;
	if (!r)
		return;
	knc_regions_change_(t);
	r->calls = 0;
	r->lost = 0;
	r->why = NULL;
	r->first = 0;
	r->first_calls = 0;
	memset(r->value, 0, sizeof(r->value));
	knc_regions_change_(t);
}

#else /* of another processor: nothing is counted */

static void knc_regions_begin_(const char *name, int length, int spflt)
{
	(void)name;
	(void)length;
	(void)spflt;
}

#define knc_regions_end_	knc_regions_begin_

KNC_REGIONS_WEAK int knc_region_get(const char *name, uint64_t *counts, uint64_t *ns,
				    uint64_t *calls)
{
	(void)name;
	(void)counts;
	(void)ns;
	(void)calls;
	return -1;
}

KNC_REGIONS_WEAK void knc_region_reset(const char *name)
{
	(void)name;
}

KNC_REGIONS_WEAK int knc_regions_write(void)
{
	return 0;
}

#endif /* KNC_PMU_X86 */

KNC_REGIONS_WEAK void knc_region_begin(const char *name)
{
	knc_regions_begin_(name, KNC_REGIONS_STRING, 0);
}

KNC_REGIONS_WEAK void knc_region_end(const char *name)
{
	knc_regions_end_(name, KNC_REGIONS_STRING, 0);
}

KNC_REGIONS_WEAK void knc_region_begin_spflt(const char *name)
{
	knc_regions_begin_(name, KNC_REGIONS_STRING, 1);
}

KNC_REGIONS_WEAK void knc_region_end_spflt(const char *name)
{
	knc_regions_end_(name, KNC_REGIONS_STRING, 1);
}

KNC_REGIONS_WEAK void knc_region_fortran(const char *name, int length, int begin, int spflt)
{
	if (begin)
		knc_regions_begin_(name, length, spflt);
	else
		knc_regions_end_(name, length, spflt);
}

#ifdef __cplusplus
}
#endif

#endif /* KNC_PMU_REGIONS_H */
