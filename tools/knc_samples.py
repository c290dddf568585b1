# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of each function, or of each line of the source: knc-metrics --by.

Each pair of events is counted in one run, and sampled in the next, each event with a period of its
own. Documentation/tools.rst says why.
"""
import collections
import math
import os
import tempfile

import knc_data
import knc_format
import knc_listing
import knc_script
from knc_format import counted
from knc_perf import printable
from knc_runs import RUNNING, Counts, Missing, broken, check_limits, count, exceeded, file_there, record, \
    spoken, there

# Of an event, in a run: enough for an error of 10 % where a 30th of the events is.
SAMPLES = 3000
# An interrupt costs more than this many events take.
LEAST_PERIOD = 101
# Where perf core throttles an event, as in many short programs, another run has longer periods.
FARTHER, TRIES = 4, 4
# A count of n samples is off by about 1/sqrt(n) of it. What is less certain than that is
# not shown: a count of fewer than 25 samples, a ratio of two of fewer than 50.
MOST_ERROR = 0.2
# What the samples have to account for, of what was counted, or some were not taken. It may
# be more: the kernel's part has the interrupts of the sampling in it.
ACCOUNT_FOR = 0.8
# The part of the cost from which on a place is called hot
HOT = 0.25
# Text leaves out places that have less of everything.
SHOWN = 0.01
# Instructions that are shown before the one with most samples, and after it
BEFORE, AFTER = 5, 3
# How many times an argument of perf script may have: it has room for 128 KiB.
RANGES = 2000

# A place with what is known of it, and why there is no more
Place = collections.namedtuple("Place", "function path line object reason")

class Run:
    """A pair of events: what was counted of it, and what was sampled."""

    def __init__(self, keys, counts):
        self.keys, self.counts = keys, counts
        self.periods = {key: prime(max(LEAST_PERIOD, value // SAMPLES))
                        for key, value in counts.values.items()}
        # {key: {place: samples}}, and {(key, place): {offset in the function: samples}}
        self.samples = {key: collections.Counter() for key in self.periods}
        self.offsets = collections.defaultdict(collections.Counter)
        self.walked, self.note, self.says = knc_data.Walked(0, 0, False, {}, 0), "", []

    def taken(self, key):
        return sum(self.samples[key].values())

    def share(self, key, place):
        return self.samples[key][place] / self.taken(key) if self.taken(key) else 0.0

    def judge(self, turns):
        """Why the samples say nothing, if so"""
        taken = {key: self.taken(key) for key in self.periods}
        if self.walked.throttled:
            self.note = ("perf core has throttled the events: kernel.perf_event_max_"
                         "sample_rate is too low for them")
        elif self.walked.is_cut:
            self.note = (f"the data is cut: it has {sum(taken.values()):,} samples, and what came "
                         "after them is missing")
        elif self.walked.lost * 10 > sum(taken.values()):
            self.note = f"{self.walked.lost} samples were lost, and {sum(taken.values())} were not"
        elif not any(taken.values()) and any(self.counts.values.values()):
            self.note = ("no sample was taken: something else has a counter (another perf, "
                         "the NMI watchdog), or the events are too rare")
        for key, samples in taken.items():
            # The last period of each thread on each CPU has no sample.
            counted, got = self.counts.values[key], samples * self.periods[key]
            if not (turns or self.note) and got < ACCOUNT_FOR * counted - 10 * self.periods[key]:
                self.note = (f"the samples of {key[0]} account for {100 * got / counted:.0f} % "
                             "of what a run before has counted: the runs were not alike, or "
                             "the program has many short threads")

    def at(self, place=None):
        """Counts of a place, or of all, as far as the samples are good for it"""
        counts = Counts()
        counts.duration, counts.reasons = self.counts.duration, dict(self.counts.reasons)
        for key in self.periods:
            if self.note:
                counts.reasons[key] = self.note
            else:
                samples = self.samples[key][place] if place else self.taken(key)
                counts.values[key] = samples * self.periods[key]
        return counts


def prime(least):
    """The next one, so that no loop keeps step with it"""
    return next(n for n in range(least, 2 * least)
                if all(n % d for d in range(2, math.isqrt(n) + 1)))


def sample(args, needed, run):
    """Sample the run's events, again with longer periods if perf core throttles them"""
    if not run.periods:
        return
    labels = {needed[key].label: key for key in run.keys}
    data = f"{args.folder}/perf.data"
    for attempt in range(TRIES):
        if attempt:
            run.periods = {key: prime(FARTHER * each) for key, each in run.periods.items()}
        events = ",".join(needed[key].spelled(args, f"period={value}")
                          for key, value in run.periods.items())
        # D: on the counters all the time, or never
        why = record(args, data, "-P", "-e", f"{{{events}}}:D")
        if why:
            run.note = f"perf record: {why}"
            return
        run.walked = knc_data.walk(data)
        if not run.walked.throttled:
            break
    read_samples(args, data, run, labels)
    run.judge(args.turns)


def perf_script(args, data, *more):
    """What perf script prints. A card's symbols are below --symfs only: files here may be others"""
    symbols = ["--kallsyms", args.kallsyms] if args.remote else []
    symbols += ["--symfs", args.symfs] if args.symfs else []
    return knc_data.script(["perf"] if args.remote else args.perf, data, ["--ns", *more, *symbols])


def read_samples(args, data, run, labels):
    samples, first = collections.Counter(), {}
    if args.brings:
        knc_data.bring(data, args.symfs, lambda name: there(args, [name], "cat"))
    with perf_script(args, data, "-F", knc_script.PLACES) as reader:
        for sample in reader:
            key = labels.get(sample.event)
            if key and sample.frames:
                samples[key, sample.frames[0]] += sample.weight // run.periods[key]
                first.setdefault(sample.frames[0], sample.time)
    knc_data.note_losses(reader, run.walked)
    run.says = [*reader.says()]
    sources = sources_of(args, data, sorted({*first.values()})) if args.by == "line" else {}
    for (key, frame), count_of in samples.items():
        source, is_named = sources.get(frame), frame.function != knc_script.UNKNOWN
        place = Place(frame.function, *(source or (None, None)), frame.object,
                      "" if is_named and (source or args.by != "line") else
                      why_unknown(args, frame.function, frame.object))
        run.samples[key][place] += count_of
        run.offsets[key, place][frame.offset] += count_of


def sources_of(args, data, times):
    """{frame: (path, line)} of the samples at these times, one of each place, as perf is slow"""
    found = {}
    for at in range(0, len(times), RANGES):
        ranges = " ".join(f"{time},{time}" for time in times[at:at + RANGES])
        with perf_script(args, data, "-F", f"{knc_script.FIELDS},srcline", "--full-source-path",
                         "--time", ranges) as reader:
            for sample in reader:
                for frame in sample.frames[:1]:
                    # Without a name it is no proof that the line is of this file.
                    found[frame._replace(source=None)] = frame.source if \
                        frame.function != knc_script.UNKNOWN else None
    return found


def why_unknown(args, function, file):
    if file.startswith("[") or knc_script.is_kernel(file):
        if file == "[vdso]":
            return "the kernel's page in each program has no lines"
        if function != knc_script.UNKNOWN:
            return "lines of the kernel need its vmlinux"
        return "code that belongs to no file" if file == knc_script.UNKNOWN else \
            "symbols of the kernel are hidden from this user (kernel.kptr_restrict)"
    if not os.path.exists(args.symfs + file):
        return f"there is no file {file} here" if not args.remote else \
            f"{file} could not be had from the card; --symfs DIR has the card's files"
    if function == knc_script.UNKNOWN:
        return "the file has no symbols: it was stripped"
    return "the file has no lines: compile it with -g"


def assembly(args, run, key, place):
    """The instructions around the one with most samples, and their shares; or why there are none"""
    offsets, path = run.offsets[key, place], f"{args.symfs}{place.object}"
    if place.function == knc_script.UNKNOWN or not offsets or not os.path.isfile(path):
        return []
    found, why = knc_listing.instructions(path, place.function)
    hottest = max(offsets, key=offsets.get)
    at = next((i for i, (address, _) in enumerate(found) if address - found[0][0] == hottest), None)
    if at is None:
        return [why or "no instruction begins where most samples are: the file is another build"]
    return [{"address": f"{address:x}", "instruction": printable(words.expandtabs()),
             "share": offsets[address - found[0][0]] / run.taken(key)}
            for address, words in found[max(at - BEFORE, 0):at + AFTER + 1]]


class Report:
    """All runs, and the rows: one for each place that has a sample."""

    def __init__(self, plan, runs):
        self.plan, self.args, self.runs, self.events = plan, plan.args, runs, {}
        for metric in list(plan.formulas):
            try:
                plan.check(metric, [run.counts for run in runs])
                if any("any" in terms for _, terms in metric.events()):
                    raise Missing("its event counts all threads of the core, and a sample shows "
                                  "what one of them executed")
                if RUNNING in metric.expr:
                    raise Missing("samples do not show how long a thread ran")
            except Missing as why:
                plan.reasons[metric] = str(why)
                del plan.formulas[metric]
        self.formulas = plan.formulas
        # The run from which an event is shown
        for run in runs:
            for key in run.periods:
                if "any" not in key[1]:
                    self.events.setdefault(key, run)
        self.cost = self.choose_cost()
        # Of a metric that is a sum, what all rows have
        self.whole = self.cost in self.formulas and self.value([run.at() for run in runs]) or 1
        places = {place for key, run in self.events.items() for place in run.samples[key]}
        self.rows = sorted((Row(self, place) for place in places),
                           key=lambda row: (-row.cost, row.place.function, row.place.line or 0))

    def choose_cost(self):
        """What rows are sorted by: a metric that is a sum, else clocks, else an event"""
        metric = next(iter(self.formulas), None)
        if metric and metric.is_sum():
            return metric
        clocks = [key for key in self.events if key[0] == "CPU_CLK_UNHALTED"]
        own = self.formulas[metric].keys if metric else ()
        of_metric = [key for key in own if key in self.events]
        return next(iter([*clocks, *of_metric, *self.events]), None)

    def value(self, counts):
        """Of the metric that rows are sorted by"""
        try:
            return self.formulas[self.cost].value(counts, self.args.turns)[0]
        except Missing:
            return 0.0

    def put(self, table):
        args, cost = self.args, getattr(self.cost, "name", None) or spoken(self.cost)
        table.say(f"by {args.by}, sorted by {cost}", f"{counted(len(self.runs), 'pair')} of events, "
                  f"each counted in one {args.what} and sampled in another")
        table.say(*([f"hot: {row.name()} has {row.cost:.0%} of {cost}"
                     for row in self.rows if row.hot] or
                    [f"no {args.by} has a quarter of {cost}: none is hot"]))
        for row in self.rows:
            row.put(table)
        events = {spoken(key): {
            "samples": run.taken(key), "period": run.periods[key], "lost": run.walked.lost,
            "throttled": run.walked.throttled, "counted": run.counts.values[key], "note": run.note}
            for key, run in self.events.items()}
        table.end(self.plan.head(by=args.by, cost=cost, events=events), self.plan.missing(),
                  [*self.notes()])

    def notes(self):
        yield from broken(self.args, next(filter(None, (run.counts.status for run in self.runs)), 0))
        rest = sum(not row.is_shown() for row in self.rows)
        if rest:
            yield f"{rest} more have less than 1 % of each event; csv and json have them"
        for number_of, run in enumerate(self.runs, 1):
            for note in [*{run.note} - {"", *run.says}, *run.says]:
                yield f"! run {number_of}: {note}"
        if self.args.by == "line":
            yield ("A sample is of an instruction that follows the one with the event: of the "
                   "line, or of one that is executed soon after it.")


class Row:
    """A place: its samples, and the metrics computed from them"""

    def __init__(self, report, place):
        self.place, self.file = place, place.path and os.path.basename(place.path)
        self.events = {key: (run.samples[key][place], run.periods[key], run.share(key, place))
                       for key, run in report.events.items()}
        counts = [run.at(place) for run in report.runs]
        self.metrics = [self.entry(report, metric, formula, counts)
                        for metric, formula in report.formulas.items()]
        self.cost = self.events[report.cost][2] if report.cost in self.events else \
            report.value(counts) / report.whole
        self.hot = self.cost >= HOT
        most = max(self.events, key=lambda key: self.events[key][2])
        self.assembly = assembly(report.args, report.events[most], most, place) \
            if self.events[most][2] >= HOT else []

    def entry(self, report, metric, formula, counts):
        value, runs, error, reason = None, 0, None, ""
        try:
            value, runs = formula.value(counts, report.args.turns)
            error = self.error(report, formula, counts, value)
            if error > MOST_ERROR:
                raise Missing("the difference is less than its error")
            # Of a part that is all of it, samples may have more, by their error.
            near = min(max(value, metric.least), metric.most)
            value = near if abs(value - near) <= min(error, 1) * abs(value) else value
            check_limits(metric, value)
        except Missing as why:
            value, reason = None, self.too_few(formula, report) or str(why)
        return knc_format.entry(metric.name, value, metric.unit, runs=runs, reason=reason,
                               error=None if error == math.inf else error,
                               exceeded=exceeded(metric, value))

    def error(self, report, formula, counts, value):
        # A count may be off by the root of its samples: by one even where there is none
        variance = sum(
            formula.moved(counts, report.args.turns, of_run.values, key, run.periods[key] *
                          math.sqrt(max(1, run.samples[key][self.place]))) ** 2
            for run, of_run in zip(report.runs, counts)
            for key in {*formula.keys} & {*of_run.values} if run.counts.values[key])
        if not variance:
            return 0.0
        lost = sum(run.walked.lost for run in report.runs)
        taken = sum(run.taken(key) for run in report.runs for key in run.periods)
        return (math.sqrt(variance) / abs(value) if value else math.inf) + lost / max(1, taken)

    def too_few(self, formula, report):
        """The samples that a metric would rest on, if these are too few"""
        few = [f"{self.events[key][0]} of {spoken(key)}" for key in formula.keys
               if key in self.events and not report.events[key].note and
               self.events[key][0] < 2 / MOST_ERROR ** 2 and
               report.events[key].counts.values[key]]
        return f"too few samples: {', '.join(few)}" if few else ""

    def name(self):
        where = f"{self.file}:{self.place.line}  " if self.file else ""
        return where + self.place.function

    def put(self, table):
        """Text leaves out what has little of everything."""
        place = self.place
        keys = {"function": place.function, "file": self.file, "path": place.path,
                "line": place.line, "object": place.object, "reason": place.reason,
                "cost": self.cost, "hot": self.hot, "assembly": self.assembly}
        events = [knc_format.entry(spoken(key), None, samples=n, count=n * each, share=share)
                  for key, (n, each, share) in self.events.items()]
        title = ["", f"{self.name()}  ({place.object})",
                 *[f"    {place.reason}"] * bool(place.reason),
                 *(f"    {a}" if isinstance(a, str) else
                   f"    {a['share']:7.1%}  {a['address']}:  {a['instruction']}"
                   for a in self.assembly)]
        table.place(keys, self.metrics, events, title=title if self.is_shown() else None)

    def is_shown(self):
        return max(share for _, _, share in self.events.values()) >= SHOWN


def measure(plan, table):
    """Report the functions, or lines; returns the program's bad status or 0."""
    args = plan.args
    runs = []
    with tempfile.TemporaryDirectory(prefix="knc-metrics.") as args.folder:
        args.kallsyms = f"{args.folder}/kallsyms"
        args.brings = args.remote and not args.symfs
        if args.brings:
            args.symfs = f"{args.folder}/symfs"
            os.mkdir(args.symfs)
        if args.remote:
            with open(args.kallsyms, "w", encoding="utf-8") as f:
                f.write(file_there(args, "/proc/kallsyms"))
        for keys in plan.each():
            runs.append(Run(keys, count(args, plan.needed, keys)))
            if len(runs) == 1 and plan.fails():
                return args.status
            sample(args, plan.needed, runs[-1])
        report = Report(plan, runs)
    if not report.rows:
        raise plan.failed(*(why for run in runs for why in (run.note, *run.counts.reasons.values())))
    report.put(table)
    return next((run.counts.status for run in runs if run.counts.status),
                int(any(run.walked.is_cut for run in runs)))
