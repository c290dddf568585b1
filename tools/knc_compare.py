# SPDX-License-Identifier: GPL-2.0-only
"""Two results of knc-metrics compared: how much a metric differs, and whether chance does that.

The test is exact, by permutation (Fisher, Pitman), of the difference of two means. Every way to
divide all runs into two groups exchanges k runs of each result. Its typical value (Hartigan) is the
mean of the exchanged runs after less that of those before. These values, sorted, give the interval
of the difference: it has the true one in 95 of 100 comparisons or more.
"""
import collections
import itertools
import math
import random
import shlex

from knc_format import counted, elapsed, mean, number, quantity, span
from knc_perf import Failed

# The part of the comparisons in which the interval is all above the difference: about, and at most
BEYOND, MOST_BEYOND = 0.02, 0.025
# Of more ways to divide the runs so many are tried, which are the same each time.
MOST_WAYS, TRIED = 20000, 4000
# Pairs of runs, one of each program in turn, are compared pair by pair from here on: with fewer the
# 2^n ways to exchange a pair find less.
PAIRS = 8
# A run is set aside if a gap of so large a part of the range of all runs divides it from the rest
# (Dixon). It does not matter which result it is of, so the test has no bias. At most this part of
# the smaller result is set aside.
APART, MOST_APART = 0.35, 0.2
# From half of the interval to the difference that is found in 4 of 5 comparisons, by Student's t
POWER = 1.4
# The part of a value that addresses, the environment and the start of a program make, beside FEW events
SMALL = 1e-4
# What two results must have in common, and what is only told
MUST = {"emulated": ("of a real card", "of the emulated one"),
        "user": ("with what the kernel does", "without (-u)"),
        "turns": ("of a program", "of CPUs or processes, by turns")}
MAY = "machine", "kernel", "driver", "perf"
# On the emulated card these are by a number of instructions.
TIMES = {"elapsed_time", "clock_rate", "memory_bandwidth", "memory_read_bandwidth",
         "memory_write_bandwidth"}


def apart(values, most):
    """(least, most) of the values that do not lie apart from the rest"""
    values = sorted(values)
    while most and len(values) > 3:
        far = APART * (values[-1] - values[0])
        ends = [(n, top) for n in range(1, min(most, len(values) - 3) + 1) for top in (True, False)
                if (values[-n] - values[-n - 1] if top else values[n] - values[n - 1]) > far > 0]
        if not ends:
            break
        n, top = ends[0]
        values = values[:-n] if top else values[n:]
        most -= n
    return values[0], values[-1]


def typical(before, after):
    """(what exchanged runs differ by, sorted; how many ways there are to divide the runs)"""
    ways = math.comb(len(before) + len(after), len(after))
    if ways <= MOST_WAYS:
        return sorted((sum(new) - sum(old)) / n for n in range(1, min(len(before), len(after)) + 1)
                      for old in itertools.combinations(before, n)
                      for new in itertools.combinations(after, n)), ways
    found, draw, both = [], random.Random(1), range(len(before) + len(after))
    for _ in range(TRIED):
        second = set(draw.sample(both, len(after)))
        old = [value for at, value in enumerate(before) if at in second]
        new = [value for at, value in enumerate(after, len(before)) if at not in second]
        if old:
            found.append((sum(new) - sum(old)) / len(old))
    return sorted(found), len(found) + 1


def typical_pairs(differences):
    """The same of pairs, each of which may be exchanged"""
    size = len(differences)
    if 1 << size <= MOST_WAYS:
        return sorted(sum(some) / n for n in range(1, size + 1)
                      for some in itertools.combinations(differences, n)), 1 << size
    draw = random.Random(1)
    some = filter(None, ([d for d in differences if draw.random() < 0.5] for _ in range(TRIED)))
    found = sorted(map(mean, some))
    return found, len(found) + 1


class Difference:
    """Of the values of a metric in the runs of two results. @before and @after are means without
    the runs that are set @aside; the interval of their difference is @low to @high, or None, and
    why. @seen is the least difference that such runs are likely to show. One of @few or less is also
    between a program and its copy of another name.
    """

    def __init__(self, before, after, are_pairs=False, few=0):
        self.aside, self.low, self.high, self.seen, self.why = [], None, None, None, ""
        most = max(int(MOST_APART * min(len(before), len(after))), min(len(before), len(after)) > 3)
        if are_pairs and len(before) == len(after) >= PAIRS:
            pairs = [*zip(before, after)]
            least, largest = apart([abs(b - a) for a, b in pairs], most)
            kept = [pair for pair in pairs if least <= abs(pair[1] - pair[0]) <= largest]
            self.aside = [value for pair in pairs if pair not in kept for value in pair]
            before, after = zip(*kept)
            values, ways = typical_pairs([b - a for a, b in kept])
        else:
            least, largest = apart([*before, *after], most)
            self.aside = [v for v in (*before, *after) if not least <= v <= largest]
            before, after = ([v for v in found if least <= v <= largest] for found in (before, after))
            values, ways = typical(before, after)
        self.before, self.after = mean(before), mean(after)
        self.value = self.after - self.before
        self.few = max(few, SMALL * max(abs(self.before), abs(self.after)))
        beyond = min(round(BEYOND * ways), int(MOST_BEYOND * ways))
        if beyond:
            self.low, self.high = values[beyond - 1], values[-beyond]
            self.seen = POWER * (self.high - self.low) / 2
        else:
            self.why = "too few runs to tell a change from chance: -r 5 has enough"

    def is_no_chance(self):
        return self.low is not None and (self.low > 0 or self.high < 0)

    def is_sure(self):
        return self.is_no_chance() and abs(self.value) > self.few


def signed(value, unit=""):
    """A difference: one of percents is in percentage points"""
    return ("+" if value > 0 else "-" if value < 0 else "") + \
        quantity(abs(value), "percentage points" if unit == "%" else unit)


def change(m):
    """The difference with its unit, and of a value that is no percentage in percent"""
    d = m["difference"]
    part = f" ({100 * d.value / d.before:+.1f} %)" if d.before and m["unit"] != "%" else ""
    return signed(d.value, m["unit"]) + part


def how_sure(m):
    d, unit = m["difference"], m["unit"]
    if d.why:
        return d.why
    text = (f"{'different' if d.is_sure() else 'not different'}: {signed(d.low, unit)} to "
            f"{signed(d.high, unit)}")
    if d.is_no_chance() and not d.is_sure():
        text += ("; so few events, or so small a part, also differ with a program's name, addresses and "
                 "environment")
    elif not d.is_sure() and d.seen:
        text += f"; {signed(d.seen, unit)[1:]} would have been found"
    if d.aside:
        text += (f"; {counted(len(d.aside), 'run')} far from all others "
                 f"{'is' if len(d.aside) == 1 else 'are'} left out: "
                 f"{', '.join(quantity(value, unit) for value in d.aside)}")
    return text


def in_words(m, where):
    """One sentence of a metric that differs"""
    d = m["difference"]
    words = ("slower", "faster") if m["metric"] == "elapsed_time" else ("more", "less")
    return (f"{m['metric']}{where} is {words[d.value < 0]}: "
            f"{span(d.before, d.after, m['unit'])}, {change(m)}")


def note_changes(before, after, are_pairs=False):
    """Give each metric of @after that @before has, too, the value before and the difference"""
    had = {m["metric"]: m for m in before if m["value"] is not None}
    for m in after:
        old = had.get(m["metric"])
        if not old or m["value"] is None:
            continue
        values = [each.get("values") or [each["value"]] for each in (old, m)]
        m["difference"] = d = Difference(*values, are_pairs, max(each.get("few") or 0 for each in (old, m)))
        m["before"], m["is_only_time"] = {**old, "value": d.before}, False
        m["value"] = d.after
        if any(each["min"] is not None and not each.get("values") for each in (old, m)):
            d.why = "the file has the spread of the runs, and not the value of each: measure again"


# Of two results of --by: the counts of an event, and whether they differ by two standard deviations
Place = collections.namedtuple("Place", "row before after is_sure")


def places(before, after, event):
    """Of each function, or line, what two results have of an event, what has changed most first"""
    def count(row):
        found = row["events"].get(event, {}) if row else {}
        samples = found.get("samples") or 0
        return found.get("count") or 0, (found.get("count") or 0) / math.sqrt(samples or 1)

    both = {}
    for which, result in enumerate((before, after)):
        for row in result["rows"]:
            key = row["function"], row.get("file"), row["line"]
            both.setdefault(key, [None, None])[which] = row
    found = []
    for old, new in both.values():
        (was, error), (is_now, other) = count(old), count(new)
        if was or is_now:
            found.append(Place(new or old, was, is_now,
                               abs(is_now - was) > 2 * math.hypot(error, other)))
    return sorted(found, key=lambda place: -abs(place.after - place.before))


def with_time(whole):
    """What knc-metrics has printed, with the time as a metric"""
    return {**whole, "metrics": [*elapsed(whole.get("seconds")), *whole["metrics"]]}


def check(before, after):
    """What differs between where two results are from; or Failed"""
    contexts = [result.get("context") for result in (before, after)]
    if not all(contexts):
        yield "at least one result does not say where it is from, and how it was counted"
        return
    first, second = contexts
    for key, names in MUST.items():
        which = [names[bool(context.get(key))] for context in contexts]
        if which[0] != which[1]:
            raise Failed(f"the results cannot be compared: one is {which[0]}, the other {which[1]}")
    for key in MAY:
        if first.get(key) != second.get(key):
            yield f"the {key} is another one: {first.get(key)}, then {second.get(key)}"


def says(metrics, is_emulated=False, where=""):
    """What is said first of metrics that are compared"""
    metrics = [m for m in metrics if "difference" in m]
    for m in metrics:
        m["is_only_time"] = is_emulated and m["metric"] in TIMES
    judged = [m for m in metrics if not m["is_only_time"] and not m["difference"].why]
    sure = [m for m in judged if m["difference"].is_sure()]
    yield from (f"{in_words(m, where)}." for m in sure)
    if judged and not sure:
        yield f"No metric{where} differs by more than chance does."
    elif len(judged) > 1:
        yield (f"{len(sure)} of {counted(len(judged), 'metric')}{where} differ: if nothing has "
               f"changed it is {number(2 * MOST_BEYOND * len(judged))} on the average, at most.")
    timed = [m["metric"] for m in metrics if m["is_only_time"]]
    if timed:
        yield ("Time on the emulated card is a number of instructions and says nothing of a "
               f"card's: {', '.join(timed)}.")
    for why in dict.fromkeys(m["difference"].why for m in metrics if m["difference"].why):
        yield f"{counted(sum(m['difference'].why == why for m in metrics), 'metric')}{where}: {why}."


def as_text(before, after):
    """Two results beside each other, of two programs that ran in turn"""
    for name, result in (("before", before), ("after", after)):
        yield f"{name + ':':8}{shlex.join(result['command'])}"
    before, after = with_time(before), with_time(after)
    note_changes(before["metrics"], after["metrics"], True)
    yield from ("", *says(after["metrics"], after["context"]["emulated"]), "")
    for m in after["metrics"]:
        if "difference" in m:
            d = m["difference"]
            yield (f"{m['metric']:26} {number(d.before):>14} {number(d.after):>14} "
                   f"{m['unit']:6} {change(m)}")
            yield f"    {how_sure(m)}"
        else:
            yield f"{m['metric']:26} no value: {m['reason'] or 'none before'}"
    yield from (f"{name}: {note}" for name, result in (("before", before), ("after", after))
                for note in result["notes"])
