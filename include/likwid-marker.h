/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * For programs that are marked for likwid: the same macros and functions, with
 * LIKWID_PERFMON, for knc-metrics --regions. likwid itself is not needed. For a program that
 * includes <likwid.h>, write one with the line: #include <likwid-marker.h>
 */
#ifndef LIKWID_MARKER_H
#define LIKWID_MARKER_H

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* -std=c99 hides these. */
#if !defined(_GNU_SOURCE) && !defined(__cplusplus)
int sched_getcpu(void);
long syscall(long number, ...);
#endif

#ifdef LIKWID_PERFMON
#include "knc_pmu_regions.h"
#define LIKWID_MARKER_CALL_(call)	(call)
#else
/* The functions are there, and count nothing. */
#define LIKWID_MARKER_CALL_(call)	0
#endif

/* Processes and threads begin by themselves, and regions when they are started first. */
static inline void likwid_markerInit(void)
{
}

static inline void likwid_markerThreadInit(void)
{
}

static inline int likwid_markerRegisterRegion(const char *tag)
{
	(void)tag;
	return 0;
}

static inline int likwid_markerStartRegion(const char *tag)
{
	(void)tag;
	(void)LIKWID_MARKER_CALL_((knc_region_begin(tag), 0));
	return 0;
}

static inline int likwid_markerStopRegion(const char *tag)
{
	(void)tag;
	(void)LIKWID_MARKER_CALL_((knc_region_end(tag), 0));
	return 0;
}

static inline int likwid_markerResetRegion(const char *tag)
{
	(void)tag;
	(void)LIKWID_MARKER_CALL_((knc_region_reset(tag), 0));
	return 0;
}

/* There is one set of events in a run. */
static inline void likwid_markerNextGroup(void)
{
}

/* The name is that which knc-metrics has chosen. */
static inline int likwid_markerWriteFile(const char *file)
{
	(void)file;
	return LIKWID_MARKER_CALL_(knc_regions_write());
}

static inline void likwid_markerClose(void)
{
	(void)LIKWID_MARKER_CALL_(knc_regions_write());
}

/* Of this thread. @events has room for *@n counts; 0 of them if there is nothing. */
static inline void likwid_markerGetRegion(const char *tag, int *n, double *events, double *time,
					  int *count)
{
	uint64_t counts[2] = { 0, 0 }, ns = 0, calls = 0;
	int found = LIKWID_MARKER_CALL_(knc_region_get(tag, counts, &ns, &calls)), i;

	(void)tag;
	if (n) {
		if (found < 0)
			*n = 0;
		else if (*n > found)
			*n = found;
		for (i = 0; events && i < *n; i++)
			events[i] = (double)counts[i];
	}
	if (time)
		*time = (double)ns / 1e9;
	if (count)
		*count = (int)calls;
}

static inline int likwid_getProcessorId(void)
{
	return sched_getcpu();
}

/* Return: 1, or 0 if there is no such CPU */
static inline int likwid_pinThread(int cpu)
{
	unsigned long cpus[16] = { 0 };
	const int bits = 8 * (int)sizeof(cpus[0]);

	if (cpu < 0 || cpu >= 16 * bits)
		return 0;
	cpus[cpu / bits] = 1UL << (cpu % bits);
	return !syscall(SYS_sched_setaffinity, 0, sizeof(cpus), cpus);
}

/* As likwid does: the calling thread, of which the others that it makes take it over */
static inline int likwid_pinProcess(int cpu)
{
	return likwid_pinThread(cpu);
}

#ifdef LIKWID_PERFMON

#define LIKWID_MARKER_INIT			likwid_markerInit()
#define LIKWID_MARKER_THREADINIT		likwid_markerThreadInit()
#define LIKWID_MARKER_SWITCH			likwid_markerNextGroup()
#define LIKWID_MARKER_REGISTER(tag)		likwid_markerRegisterRegion(tag)
#define LIKWID_MARKER_START(tag)		likwid_markerStartRegion(tag)
#define LIKWID_MARKER_STOP(tag)			likwid_markerStopRegion(tag)
#define LIKWID_MARKER_RESET(tag)		likwid_markerResetRegion(tag)
#define LIKWID_MARKER_WRITE_FILE(file)		likwid_markerWriteFile(file)
#define LIKWID_MARKER_CLOSE			likwid_markerClose()
#define LIKWID_MARKER_GET(tag, n, events, time, count) \
	likwid_markerGetRegion(tag, n, events, time, count)

#else

#define LIKWID_MARKER_INIT
#define LIKWID_MARKER_THREADINIT
#define LIKWID_MARKER_SWITCH
#define LIKWID_MARKER_REGISTER(tag)
#define LIKWID_MARKER_START(tag)
#define LIKWID_MARKER_STOP(tag)
#define LIKWID_MARKER_RESET(tag)
#define LIKWID_MARKER_WRITE_FILE(file)
#define LIKWID_MARKER_CLOSE
#define LIKWID_MARKER_GET(tag, n, events, time, count)

#endif /* LIKWID_PERFMON */

#endif /* LIKWID_MARKER_H */
