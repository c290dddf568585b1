# SPDX-License-Identifier: GPL-2.0-only
"""What knc-metrics reports: a table, as text, CSV or JSON.

An entry is a metric of a place, or an event where samples were taken: a dictionary that is
the same in each form. Keys say which place it is: a region, an interval, a core, a function or
a line. A program as a whole has none.
"""
import csv
import json
import math
import sys

# By how much the durations of runs that are alike may differ
ALIKE = 0.1


def mean(values):
    return math.fsum(values) / len(values) if values else None


def entry(metric, value, unit="", *, spread=(), error=None, runs=1, reason="", **more):
    """@spread: all values, of which @value is the mean"""
    least, most = (min(spread), max(spread)) if len(spread) > 1 else (None, None)
    return {"metric": metric, "value": value, "unit": unit, "min": least, "max": most,
            "error": error, "runs": runs, "reason": reason if value is None else "", **more}


def number(value):
    """Four significant digits, three below 0.1, all of a large number, and no exponent."""
    if value is None:
        return "-"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    places = (3 if abs(value) >= 0.1 else 2) - math.floor(math.log10(abs(value)))
    return f"{value:.{min(places, 9)}f}"


def quantity(value, unit):
    """A number with its unit, for readers: of bytes there are many"""
    sizes = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")) if unit == "Bytes" else ()
    size, prefix = next((each for each in sizes if abs(value) >= each[0]), (1, ""))
    return f"{number(value / size)} {prefix + 'B' if prefix else unit}".rstrip()


def span(low, high, unit):
    """From one to another, with the unit once if both have the same"""
    least, most = quantity(low, unit), quantity(high, unit)
    return f"{least.removesuffix(most.partition(' ')[2]).rstrip()} to {most}"


def rounded(value, error):
    """As many digits as are certain"""
    if not error or not value:
        return number(value)
    place = math.floor(math.log10(error * abs(value)))
    return f"{round(value, -place):,.{max(0, -place)}f}"


def counted(count, what):
    """How many things: "1 run", "2,363 samples\""""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def differ(durations):
    if durations and max(durations) > (1 + ALIKE) * min(durations):
        yield (f"the runs took {min(durations):.6f} to {max(durations):.6f} seconds: they differ, "
               "and a metric of several runs mixes them")


def elapsed(seconds):
    """[how long the runs took, as a metric], if that is known"""
    return [entry("elapsed_time", mean(seconds), "s", exceeded=[], values=seconds, spread=seconds,
                  description="Seconds from beginning to end, on the average of all runs")] \
        if seconds else []


def in_words(threshold):
    """"< 8" is "below 8\""""
    return threshold.replace("<", "below").replace(">", "above")


def with_value(metrics, rows):
    """Those that have a value in one of the rows of entries"""
    return [m for m, *found in zip(metrics, *rows) if any(e["value"] is not None for e in found)]


def over_threads(rows):
    """[(metric, unit, its least, most and mean value)] of the entries of each thread"""
    found = {}
    for e in (e for entries in rows for e in entries if e["value"] is not None):
        found.setdefault((e["metric"], e["unit"]), []).append(e["value"])
    return [(*key, min(values), max(values), mean(values))
            for key, values in found.items() if len(rows) > 1]


class Text:
    """A block for each place; or, after columns(), a line."""

    def __init__(self, out, what):
        self.out, self.what, self.heads, self.shown = out, what, [], ()
        self.begun, self.missing, self.is_mixed = False, {}, False

    def say(self, *lines):
        # The program has written there, too.
        if not self.begun and self.out is sys.stderr:
            self.out.write("\n")
        self.begun = True
        self.out.write("".join(f"{line.rstrip()}\n" for line in lines))
        self.out.flush()

    def columns(self, keys, metrics):
        self.shown = {m.name for m in metrics}
        self.heads = [*keys, *(f"{m.name} [{m.unit}]" if m.unit else m.name for m in metrics)]
        self.say("  ".join(self.heads))

    def place(self, _keys, entries, events=(), title=()):
        """@title is the text for the keys: lines, or cells; None leaves the place out."""
        if title is None:
            return
        self.is_mixed |= any(e["runs"] > 1 and e["value"] is not None for e in entries)
        if not self.heads:
            self.say(*title, *self.block([*events, *entries], "    " if events else ""))
            return
        cells = [*title, *(self.value(e) for e in entries if e["metric"] in self.shown)]
        self.say("  ".join(str(cell).rjust(len(head)) for cell, head in zip(cells, self.heads)))
        self.missing.update({e["metric"] + ": " + e["reason"]: None
                             for e in entries if e["reason"]})

    @staticmethod
    def value(e):
        if "share" in e:
            return f"{100 * e['share']:.1f}"
        return ("~" if e["runs"] > 1 else "") + rounded(e["value"], e["error"])

    def block(self, entries, indent):
        width = max(len(e["metric"]) for e in entries)
        for e in entries:
            unit, after = e["unit"], ""
            if "share" in e:
                unit, after = "%", f" {counted(e['samples'], 'sample')}"
            elif e["value"] is None:
                after = f" no value: {e['reason']}"
            elif e["min"] is not None:
                after = f" {number(e['min'])} .. {number(e['max'])}"
            elif e["error"]:
                after = f" +- {100 * e['error']:.0f} %"
            if "description" not in e:
                after += "".join(f"  ! {in_words(t['threshold'])}" for t in e.get("exceeded", ()))
            yield f"{indent}{e['metric']:{width}} {self.value(e):>16} {unit:6}{after}"
            if not e.get("description"):
                continue
            yield f"    {e['description']}"
            for t in e.get("exceeded", ()):
                yield f"    ! {in_words(t['threshold'])}: {t['meaning']}"
                yield f"      ({t['source']})"
                yield f"      {t['advice']}"
                yield f"      ({t['advisor']})"

    def over(self, rows):
        found = over_threads(rows)
        if found:
            lines = [(f"over {len(rows)} threads", "", "min", "max", "mean")] + [
                (name, unit, *map(number, values)) for name, unit, *values in found]
            self.say("", *(f"{name:26} {least:>16} {most:>16} {mean:>16} {unit}"
                           for name, unit, least, most, mean in lines))

    def end(self, _head, missing, notes=()):
        self.missing.update({f"{name}: {reason}": None for name, reason in missing.items()})
        lines = [*notes, *(f"no value: {note}" for note in self.missing)]
        if self.is_mixed:
            lines.append(f"~ computed from the counts of several {self.what}s")
        if lines:
            self.say("", *lines)


class Data:
    """A form for programs: it has no lines that are not of an entry."""

    def __init__(self, out, _what):
        self.out, self.writer, self.whole = out, None, {}

    def say(self, *_lines):
        pass

    columns = over = say


class Csv(Data):
    def place(self, keys, entries, events=(), **_text):
        for e in [*events, *entries]:
            # A place has a reason if it has no name.
            row = {**keys, **e, "reason": e["reason"] or keys.get("reason", "")}
            if not self.writer:
                names = dict.fromkeys([*(key for key in keys if key not in e), *e,
                                       *(name for other in entries for name in other)])
                for lists in ("cpus", "assembly", "values", "few", "all_seconds"):
                    names.pop(lists, None)
                self.writer = csv.DictWriter(self.out, names, lineterminator="\n",
                                             extrasaction="ignore")
                self.writer.writeheader()
            row["groups"] = ";".join(row.get("groups", ()))
            row["exceeded"] = "; ".join(f"{in_words(t['threshold'])}: {t['meaning']}"
                                        for t in row.get("exceeded", ()))
            self.writer.writerow(row)
        self.out.flush()

    def end(self, _head, missing, _notes=()):
        for name, reason in missing.items():
            self.place({}, [entry(name, None, reason=reason)])


class Json(Data):
    def place(self, keys, entries, events=(), **_text):
        if not keys:
            self.whole["metrics"] = entries
            return
        named = {kind: {e["metric"]: {key: value for key, value in e.items() if key != "metric"}
                        for e in found}
                 for kind, found in (("events", events), ("metrics", entries))}
        self.whole.setdefault("rows", []).append({**keys, **named})

    def end(self, head, missing, notes=()):
        json.dump({**head, **self.whole, "no_value": missing, "notes": [*notes]}, self.out, indent=2)
        self.out.write("\n")


FORMATS = {"text": Text, "csv": Csv, "json": Json}
