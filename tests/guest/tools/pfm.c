// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that uses libpfm4: "pfm names" prints its names for this CPU, "pfm count"
 * counts by name, "pfm sample" samples.
 */
#include "loops.h"

#include <err.h>
#include <perfmon/pfmlib_perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS		1000000
#define SAMPLES		40
#define PAGE		4096
#define BUFFER		(8 * PAGE)

static struct perf_event_attr encode(const char *name)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	pfm_perf_encode_arg_t arg = { .attr = &attr, .size = sizeof(arg) };
	int rc = pfm_get_os_event_encoding(name, PFM_PLM3, PFM_OS_PERF_EVENT, &arg);

	must(rc == PFM_SUCCESS, "%s: %s", name, pfm_strerror(rc));
	attr.disabled = 1;
	return attr;
}

static int open_event(struct perf_event_attr *attr)
{
	int fd = perf_event_open(attr, 0, -1, -1, 0);

	if (fd < 0)
		err(1, "perf_event_open");
	return fd;
}

/* Each name, and the type and config that it is */
static void print_names(void)
{
	pfm_pmu_info_t pmu = { .size = sizeof(pmu) };
	pfm_event_info_t info = { .size = sizeof(info) };
	int i, rc = pfm_get_pmu_info(PFM_PMU_INTEL_KNC, &pmu);

	must(rc == PFM_SUCCESS, "the PMU knc: %s", pfm_strerror(rc));
	must(pmu.is_present, "libpfm4 does not take this for a Knights Corner");
	must(pmu.num_cntrs == 2, "%d counters", pmu.num_cntrs);
	for (i = pmu.first_event; i >= 0; i = pfm_get_event_next(i)) {
		struct perf_event_attr attr;
		char name[128];

		rc = pfm_get_event_info(i, PFM_OS_PERF_EVENT, &info);
		must(rc == PFM_SUCCESS, "event %d: %s", i, pfm_strerror(rc));
		snprintf(name, sizeof(name), "knc::%s", info.name);
		attr = encode(name);
		/* without the bits that the kernel sets */
		printf("%s,%u,0x%llx\n", info.name, attr.type,
		       (unsigned long long)attr.config & 0xffff);
	}
}

static void test_count(void)
{
	struct perf_event_attr attr = encode("knc::INSTRUCTIONS_EXECUTED:u");
	unsigned long long count, want = (unsigned long long)ROUNDS * PER_ROUND;
	int fd = open_event(&attr);

	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	spin20(ROUNDS);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	must(read(fd, &count, sizeof(count)) == sizeof(count), "read");
	must(count >= want && count < want + 1000, "%llu instructions, not %llu", count, want);
}

static void test_sample(void)
{
	struct perf_event_attr attr = encode("knc::BRANCHES:u");
	struct perf_event_mmap_page *page;
	struct perf_event_header *record;
	unsigned long long at, samples = 0;
	int fd;

	attr.sample_period = ROUNDS / SAMPLES;
	attr.sample_type = PERF_SAMPLE_IP;
	fd = open_event(&attr);
	page = mmap(NULL, PAGE + BUFFER, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		err(1, "mmap");
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	spin20(ROUNDS);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	for (at = 0; at < page->data_head; at += record->size) {
		record = (void *)((char *)page + PAGE + at);
		must(record->size, "an empty record");
		samples += record->type == PERF_RECORD_SAMPLE;
	}
	must(samples == SAMPLES, "%llu samples of %d", samples, SAMPLES);
}

int main(int argc, char **argv)
{
	int rc = pfm_initialize();

	must(rc == PFM_SUCCESS, "pfm_initialize: %s", pfm_strerror(rc));
	must(argc == 2, "which test?");
	if (!strcmp(argv[1], "names"))
		print_names();
	else if (!strcmp(argv[1], "count"))
		test_count();
	else if (!strcmp(argv[1], "sample"))
		test_sample();
	else
		fail("%s: no such test", argv[1]);
	return 0;
}
