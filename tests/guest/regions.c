// SPDX-License-Identifier: GPL-2.0-only
/* Regions with names (include/knc_pmu_regions.h): their counts, and what goes wrong. */
#include "lib.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "../../include/knc_pmu_regions.h"

/* Around a loop in its region: the test of its length, the call, the return, and arguments */
#define LEAST_AROUND	4
#define MOST_AROUND	10

static char folder[32], file[64];

/* This process as one that was started with these variables: does it count? */
static bool regions_with(const char *events)
{
	setenv("KNC_REGIONS", events, 1);
	setenv("KNC_REGIONS_FILE", file, 1);
	memset(&knc_regions_, 0, sizeof(knc_regions_));
	return !knc_regions_off_();
}

static void set_regions(const char *events)
{
	must(regions_with(events), "no regions, with %s", events);
}

static const char *events_of(const char *first, u64 config, const char *second, u64 other)
{
	return text_of("%s=%u:%#llx:0:u,%s=%u:%#llx:0:u", first, pmu()->type, config, second,
		       pmu()->type, other);
}

static const char *counted_events(void)
{
	return events_of("instructions", INSTRUCTIONS, "branches", BRANCHES);
}

/* fn() in a process that counts these events, and its end; what it says goes to a file */
static void run_regions(const char *events, void (*fn)(void))
{
	pid_t pid;

	strcpy(folder, "/tmp/regions-XXXXXX");
	must(mkdtemp(folder), "mkdtemp: %m");
	must(!chmod(folder, 0777), "chmod: %m");
	snprintf(file, sizeof(file), "%s/out", folder);
	pid = must_fork();
	if (!pid) {
		int fd = open(text_of("%s/said", folder), O_CREAT | O_WRONLY, 0666);

		must(fd >= 0 && dup2(fd, 2) == 2, "%s: %m", folder);
		if (events)
			set_regions(events);
		fn();
		exit(0);
	}
	reap(pid);
	snprintf(file, sizeof(file), "%s/out.%d", folder, pid);
}

static void run_counted(void (*fn)(void))
{
	run_regions(counted_events(), fn);
}

struct row {
	char name[96];
	u64 tid, calls, lost, value[2], first[2], first_ns, first_calls;
	char why[96];
	double seconds;
};

/* The rows of a region in the file; it must be whole. */
static int rows_of(const char *name, struct row *rows, int room)
{
	FILE *f = fopen(file, "re");
	char line[512];
	int n = 0, at;

	must(f, "%s: %m", file);
	must(fgets(line, sizeof(line), f) && !strcmp(line, "# knc-regions 1\n"), "begins: %s",
	     line);
	must(fgets(line, sizeof(line), f), "no columns");
	while (fgets(line, sizeof(line), f) && line[0] != '#') {
		struct row r;

		must(sscanf(line, "%95[^\t]\t%llu\t%llu\t%llu\t%95[^\t]\t%lf\t%llu\t%llu%n", r.name,
			    &r.tid, &r.calls, &r.lost, r.why, &r.seconds, &r.value[0], &r.value[1],
			    &at) == 8 &&
		     sscanf(line + at, "\t%*u\t%*u\t%llu\t%llu\t%llu\t%llu", &r.first_ns,
			    &r.first[0], &r.first[1], &r.first_calls) == 4, "a row is %s", line);
		if (strcmp(r.name, name))
			continue;
		must(n < room, "%s has more than %d rows", name, room);
		rows[n++] = r;
	}
	must(!strcmp(line, "# end\n"), "ends with %s", line);
	fclose(f);
	return n;
}

static struct row row_of(const char *name)
{
	struct row r;

	must(rows_of(name, &r, 1) == 1, "no region is called %s", name);
	return r;
}

static struct row counted_row(const char *name, u64 calls)
{
	struct row r = row_of(name);

	must(r.calls == calls && !r.lost && !strcmp(r.why, "-"),
	     "%s: %llu calls, and %llu lost: %s", name, r.calls, r.lost, r.why);
	return r;
}

/* of a name, when nothing but such things are in the file */
static void must_lose(const char *name, const char *why)
{
	struct row r = row_of(name);

	must(r.lost == 1 && strstr(r.why, why), "%s: %llu lost: %s", name, r.lost, r.why);
}

static void must_say(const char *what)
{
	char *said = file_text(text_of("%s/said", folder));

	must(what ? said && strstr(said, what) : !said || !*said, "said: %s",
	     said ? said : "nothing");
}

static void must_be(const char *what, u64 value, u64 instructions)
{
	must(value >= instructions + LEAST_AROUND && value <= instructions + MOST_AROUND,
	     "%s: %llu, not %llu and a few", what, value, instructions);
}

static void region(const char *name, u64 n)
{
	knc_region_begin(name);
	spin(n);
	knc_region_end(name);
}

/* Counts */

static const u64 lengths[] = { 0, 1, 10, 100, 12345, 1000000 };

static void loops(void)
{
	size_t i;
	int again;

	for (again = 0; again < 3; again++)
		for (i = 0; i < ARRAY_SIZE(lengths); i++)
			region(text_of("of %llu", lengths[i]), lengths[i]);
}

/* A call of any length has the same remainder. */
static void check_loops(void)
{
	u64 around = 0;
	size_t i;

	must_say(NULL);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct row r = counted_row(text_of("of %llu", lengths[i]), 3);

		/* Without a round the jump to the loop's end is taken, and that is all. */
		if (i == 1)
			around = r.value[0] - 3 * 2 * lengths[i];
		must_be(r.name, r.value[0] / 3, 2 * lengths[i]);
		must(!i || r.value[0] == 3 * 2 * lengths[i] + around,
		     "%s: %llu instructions, not %llu", r.name, r.value[0],
		     3 * 2 * lengths[i] + around);
		must(r.value[1] / 3 >= lengths[i] + 2 && r.value[1] / 3 <= lengths[i] + 5,
		     "%s: %llu branches", r.name, r.value[1]);
	}
	note("%llu instructions are counted beside each loop's own", around / 3);
}

static void by_rdpmc(void)
{
	loops();
	must(knc_regions_self_->rdpmc, "not by RDPMC");
}

TEST("regions-rdpmc", 60)
{
	run_counted(by_rdpmc);
	check_loops();
}

/* A user whose locked memory is used up gets no page, and so no RDPMC. */
static void by_read(void)
{
	struct rlimit none = { 0, 0 };

	must(!setrlimit(RLIMIT_MEMLOCK, &none), "setrlimit: %m");
	become_nobody();
	loops();
	must(!knc_regions_self_->rdpmc, "by RDPMC");
}

TEST("regions-read", 60)
{
	long limit = sysctl_get("kernel/perf_event_mlock_kb");

	sysctl_set("kernel/perf_event_mlock_kb", 0);
	run_counted(by_read);
	sysctl_set("kernel/perf_event_mlock_kb", limit);
	check_loops();
}

/* Nesting */

#define INSIDE	1000

static void __attribute__((noinline)) nest(const char *outer, int times)
{
	knc_region_begin(outer);
	while (times--) {
		knc_region_begin("inner");
		spin(INSIDE);
		knc_region_begin("innermost");
		spin(INSIDE);
		knc_region_end("innermost");
		knc_region_end("inner");
	}
	knc_region_end(outer);
}

static void nests(void)
{
	nest("outer of 10", 10);
	nest("outer of 1000", 1000);
}

/* begin and end of the regions inside are taken off to the instruction. */
static void check_nests(void)
{
	struct row few = counted_row("outer of 10", 1), many = counted_row("outer of 1000", 1);
	struct row inner = counted_row("inner", 1010), innermost = counted_row("innermost", 1010);
	u64 more = (many.value[0] - few.value[0]) - 990 * 4 * INSIDE;

	must_be("innermost", innermost.value[0] / 1010, 2 * INSIDE);
	must_be("inner", inner.value[0] / 1010, 4 * INSIDE + LEAST_AROUND);
	/* Of the loop, and calls of spin() */
	must(more % 990 == 0 && more / 990 <= 25, "%llu instructions more in 990 rounds", more);
	note("%llu instructions of each round beside the loops' own", more / 990);
}

TEST("regions-nested", 60)
{
	run_counted(nests);
	must_say(NULL);
	check_nests();
}

static void again_inside(int times)
{
	knc_region_begin("again");
	spin(100);
	if (times)
		again_inside(times - 1);
	knc_region_end("again");
}

static void recursion(void)
{
	uint64_t counts[2] = {}, ns, calls = 0;

	again_inside(1);
	knc_region_reset("again");
	again_inside(9);
	must(knc_region_get("again", counts, &ns, &calls) == 2 && calls == 10 &&
	     counts[0] >= 2000 && counts[1] >= 1000, "%lu calls, which counted %lu and %lu", calls,
	     counts[0], counts[1]);
	region("again", 100000);
}

TEST("regions-recursive", 60)
{
	struct row r;

	run_counted(recursion);
	r = counted_row("again", 11);
	must(r.first_calls == 10 && r.first[0] >= 2000 && r.first[0] < 2000 + 10 * 20 &&
	     r.first[1] >= 1000 && r.first[1] < 1000 + 10 * 10,
	     "first %llu calls, which counted %llu and %llu", r.first_calls, r.first[0],
	     r.first[1]);
	must_be("the last call", r.value[0] - r.first[0], 200000);
	/* On a slow kernel it is overhead. */
	must(scale() > 1 || (r.first_ns && r.first_ns < 2e8 * r.seconds),
	     "the first took %llu ns", r.first_ns);
}

/* SPFLT events count in regions that ask for it, and what is inside these. */
static void with_spflt(void)
{
	knc_region_begin("plain");
	spin(1000);
	knc_region_begin_spflt("spflt");
	spin(1000);
	region("inside", 1000);
	spin(1000);
	knc_region_end_spflt("spflt");
	spin(1000);
	knc_region_end("plain");
	region("last", 1000);
}

static const char *spflt_events(void)
{
	return text_of("all=%u:%#llx:0:u,marked=%u:%#llx:1:u", pmu()->type, INSTRUCTIONS,
		       pmu()->type, INSTRUCTIONS);
}

TEST("regions-spflt", 60)
{
	struct row r;

	if (!pmu_file("format/spflt"))
		skip("this driver knows no SPFLT");
	run_regions(spflt_events(), with_spflt);
	must_say(NULL);
	r = counted_row("inside", 1);
	must_be("inside", r.value[1], 2000);
	must(r.value[0] == r.value[1], "inside: %llu, and with SPFLT %llu", r.value[0], r.value[1]);
	r = counted_row("spflt", 1);
	must(r.value[0] == r.value[1] && r.value[1] >= 6000 && r.value[1] < 6050,
	     "spflt: %llu, and with SPFLT %llu", r.value[0], r.value[1]);
	/* of the region inside it, and no more */
	must(counted_row("plain", 1).value[1] == r.value[1], "plain: with SPFLT %llu, not %llu",
	     counted_row("plain", 1).value[1], r.value[1]);
	must(counted_row("plain", 1).value[0] >= 10000, "plain: %llu",
	     counted_row("plain", 1).value[0]);
	must(!counted_row("last", 1).value[1], "last: %llu with SPFLT",
	     counted_row("last", 1).value[1]);
}

/* For perf's SPFLT events, in a program whose regions are not counted */
static void only_marks(void)
{
	int fd = ev_start(spflt_attr(INSTRUCTIONS), 0, -1);

	with_spflt();
	must(ev_count(fd) >= 6000 && ev_count(fd) < 6100, "counted %llu", ev_count(fd));
}

TEST("regions-marks", 60)
{
	if (!pmu_file("format/spflt"))
		skip("this driver knows no SPFLT");
	run_regions(NULL, only_marks);
	must(access(file, F_OK), "%s was written", file);
	must_say(NULL);
}

/* Threads, processes, signals */

#define THREADS	6

static void *thread(void *n)
{
	region("thread", (uintptr_t)n);
	return NULL;
}

static pthread_barrier_t done;

/* As OpenMP's, which exit() ends */
static void *thread_that_stays(void *n)
{
	thread(n);
	pthread_barrier_wait(&done);
	for (;;)
		pause();
	return NULL;
}

static void threads(void)
{
	pthread_t id[THREADS];

	pthread_barrier_init(&done, NULL, 2);
	for (uintptr_t i = 0; i < THREADS; i++)
		must(!pthread_create(&id[i], NULL, i ? thread : thread_that_stays,
				     (void *)(10000 * (i + 1))), "pthread_create");
	for (int i = 1; i < THREADS; i++)
		pthread_join(id[i], NULL);
	pthread_barrier_wait(&done);
	thread((void *)1000);
}

TEST("regions-threads", 60)
{
	struct row rows[THREADS + 1];
	unsigned int seen = 0;

	run_counted(threads);
	must_say(NULL);
	must(rows_of("thread", rows, THREADS + 1) == THREADS + 1, "not a row for each thread");
	for (int i = 0; i <= THREADS; i++) {
		u64 length = rows[i].value[1] / 1000 * 1000;

		must(rows[i].calls == 1 && !rows[i].lost, "%llu calls", rows[i].calls);
		must_be("a thread", rows[i].value[0], 2 * length);
		seen |= 1 << length / 10000;
		for (int j = 0; j < i; j++)
			must(rows[i].tid != rows[j].tid, "two are thread %llu", rows[i].tid);
	}
	must(seen == (1 << (THREADS + 1)) - 1, "threads were counted: %#x", seen);
}

/* More threads, one after the other, than there may be files */
#define SHORT_LIVED	300

static void churn(void)
{
	struct rlimit few = { 256, 256 };
	pthread_t id;

	must(!setrlimit(RLIMIT_NOFILE, &few), "setrlimit: %m");
	for (uintptr_t i = 0; i < SHORT_LIVED; i++) {
		must(!pthread_create(&id, NULL, thread, (void *)100), "pthread_create");
		pthread_join(id, NULL);
	}
}

TEST("regions-churn", 60)
{
	static struct row rows[SHORT_LIVED];

	run_counted(churn);
	must_say(NULL);
	must(rows_of("thread", rows, SHORT_LIVED) == SHORT_LIVED, "not a row for each thread");
	for (int i = 0; i < SHORT_LIVED; i++)
		must_be("a thread", rows[i].value[0], 200);
}

/* What a child counts is its own, in a file of its own. */
static void forks(void)
{
	pid_t pid;

	knc_region_begin("parent");
	spin(1000);
	pid = must_fork();
	if (!pid) {
		spin(500000);
		region("child", 100);
		exit(0);
	}
	reap(pid);
	pid = must_fork();
	if (!pid)
		exit(0);
	reap(pid);
	knc_region_end("parent");
}

/* How many files of regions there are */
static int files(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int n = 0;

	must(dir, "%s: %m", folder);
	while ((entry = readdir(dir)))
		n += !strncmp(entry->d_name, "out", 3);
	closedir(dir);
	return n;
}

TEST("regions-fork", 60)
{
	struct row r;

	run_counted(forks);
	must_say(NULL);
	r = counted_row("parent", 1);
	must(r.value[0] > 2000 && r.value[0] < 100000, "the parent has counted %llu", r.value[0]);
	must(!rows_of("child", &r, 1), "the parent has its child's region");
	must(files() == 2, "%d files, not 2: a child without regions writes none", files());
}

static volatile int signals;

static void handler(int sig)
{
	(void)sig;
	region("signal", 100);
	signals++;
}

static void signalled(void)
{
	signal(SIGUSR1, handler);
	knc_region_begin("around");
	spin(1000);
	raise(SIGUSR1);
	spin(1000);
	knc_region_end("around");
	/* As if it came in a begin or an end: it is not counted, and nothing else changes. */
	knc_region_begin("later");
	knc_regions_self_->busy = 1;
	raise(SIGUSR1);
	knc_regions_self_->busy = 0;
	knc_region_end("later");
	must(signals == 2, "%d signals", signals);
}

TEST("regions-signal", 60)
{
	run_counted(signalled);
	must_be("signal", counted_row("signal", 1).value[0], 200);
	must(counted_row("around", 1).value[0] > 4200, "around: %llu",
	     counted_row("around", 1).value[0]);
	counted_row("later", 1);
	must_say("\"signal\": not counted in a signal");
}

/* What goes wrong */

static void *leaves_open(void *unused)
{
	knc_region_begin("left by a thread");
	return unused;
}

static void wrong_nesting(void)
{
	pthread_t id;

	knc_region_end("never begun");
	knc_region_begin("whole");
	spin(1000);
	knc_region_begin("crossed");
	spin(1000);
	knc_region_end("whole");
	knc_region_end("crossed");
	region("fine", 1000);
	knc_region_begin("around an end");
	spin(1000);
	knc_region_end("never begun");
	spin(1000);
	knc_region_end("around an end");
	must(!pthread_create(&id, NULL, leaves_open, NULL), "pthread_create");
	pthread_join(id, NULL);
	knc_region_begin("open");
}

TEST("regions-nesting", 60)
{
	u64 whole;

	run_counted(wrong_nesting);
	must_say("\"never begun\": ends, and has not begun");
	must_say("\"whole\": ends before a region inside it");
	must_say(": left open at the end of its thread");
	must_lose("crossed", "the region around it ended first");
	must_lose("open", "left open");
	must_lose("left by a thread", "left open");
	must_be("fine", counted_row("fine", 1).value[0], 2000);
	whole = counted_row("whole", 1).value[0];
	must(whole >= 4000 && whole < 4000 + 60, "whole: %llu", whole);
	whole = counted_row("around an end", 1).value[0];
	must(whole >= 4000 && whole < 4000 + 20, "around an end: %llu", whole);
}

static void too_many(void)
{
	char name[128] = "";
	int i;

	for (i = 0; i < 300; i++)
		region(text_of("region %d", i), 100);
	memset(name, 'x', 120);
	region(name, 0);
	knc_region_begin("region 0");
	for (i = 1; i < 100; i++)
		knc_region_begin(i < 64 ? "region 1" : "region 2");
	while (--i)
		knc_region_end(i < 64 ? "region 1" : "region 2");
	knc_region_end("region 0");
}

TEST("regions-many", 60)
{
	struct row r;

	run_counted(too_many);
	must_say("\"region 256\": not counted, as a thread has room for 256 regions");
	must_say("not counted, as the name is longer than 95 bytes");
	must_say("not counted, as 64 regions are open");
	must_be("region 255", counted_row("region 255", 1).value[0], 200);
	counted_row("region 0", 2);
	counted_row("region 1", 1 + 63);
	counted_row("region 2", 1);
	must(!strstr(file_text(text_of("%s/said", folder)), "has not begun"), "an end too many");
	must(!rows_of("region 256", &r, 1), "there is a region 256");
}

static void one_region(void)
{
	region("one", 1000);
}

/* A CPU's pinned event comes before those of tasks. It goes before the region ends. */
static void taken(void)
{
	struct perf_event_attr attr = user_attr(CYCLES);
	int fds[cpus_online()];

	attr.pinned = 1;
	attr.disabled = 0;
	pin(0);
	region("before", 1000);
	knc_region_begin("during");
	for (int cpu = 0; cpu < cpus_online(); cpu++)
		fds[cpu] = ev_open(attr, -1, cpu, -1);
	/* Linux 2.6.38 takes no counter from an event that is on it. */
	pin(1);
	spin(1000);
	for (int cpu = 0; cpu < cpus_online(); cpu++)
		close(fds[cpu]);
	/* Other events would come back to their counters. */
	usleep(20000);
	spin(1000);
	knc_region_end("during");
	one_region();
}

TEST("regions-taken", 60)
{
	run_counted(taken);
	must_be("before", counted_row("before", 1).value[0], 2000);
	must_lose("during", "something else has taken a counter");
	must(!row_of("during").first_calls, "it has a first call");
	must_lose("one", "something else has taken a counter");
	must_say("not counted: another perf, or the NMI watchdog, has taken a counter");
}

static void refused_events(void)
{
	set_regions(events_of("a", L2_READ_MISS, "b", L2_WRITE_HIT));
	one_region();
}

static void no_files(void)
{
	struct rlimit few = { 3, 3 };

	set_regions(counted_events());
	must(!setrlimit(RLIMIT_NOFILE, &few), "setrlimit: %m");
	one_region();
	/* The file has to be written. */
	close(0);
}

static void three_events(void)
{
	must(!regions_with("a=4:1,b=4:2,c=4:3"), "three events are taken");
	one_region();
}

static void bad_setting(void)
{
	static const char *const bad[] = {
		"instructions", "a=4", "a=4:", "=4:0", "a=x:0", "a=4:0,", "a=4:0:z", "a=4:0:0:k",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		must(!regions_with(bad[i]), "%s is taken", bad[i]);
		one_region();
	}
}

TEST("regions-refused", 60)
{
	run_regions(NULL, refused_events);
	must_say("b cannot be opened: two such events do not fit");
	must_lose("one", "cannot be opened");
	run_regions(NULL, no_files);
	must_say("too many open files");
	must_lose("one", "too many open files");
	run_regions(NULL, three_events);
	must_say("nothing is counted: there are two counters, for two events");
	run_regions(NULL, bad_setting);
	must_say("KNC_REGIONS is not NAME=TYPE:CONFIG");
	must(access(file, F_OK), "%s was written", file);
}

/* A program that ends without exit() */
static void writes_itself(void)
{
	one_region();
	must(!knc_regions_write(), "not written");
	one_region();
	must(!knc_regions_write(), "not written again");
	_exit(0);
}

TEST("regions-write", 60)
{
	run_counted(writes_itself);
	counted_row("one", 2);
}

/* What is there already is another process's. */
static void beside_another(void)
{
	FILE *f = fopen(text_of("%s.%d", file, getpid()), "w");

	must(f && fputs("another's\n", f) >= 0 && !fclose(f), "%s: %m", file);
	one_region();
}

TEST("regions-exists", 60)
{
	run_counted(beside_another);
	must(!strcmp(file_text(file), "another's"), "overwritten: %s", file_text(file));
	strcat(file, ".2");
	counted_row("one", 1);
}
