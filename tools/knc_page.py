# SPDX-License-Identifier: GPL-2.0-only
"""The page of knc-report: statements about the measurements, for the template knc_page.html."""
import contextlib
import functools
import os
import re
import shlex

import knc_advice
import knc_card
import knc_format
import knc_perf
from knc_compare import change, how_sure, places, signed
from knc_format import number
from knc_samples import SHOWN

# Lines of the table, and lines of the source around the hottest
MOST_LINES, AROUND = 12, 2
# With fewer samples of a line its share is a guess.
FEW = 20


def measured(page):
    """The metrics of the program, and those of its regions"""
    return [*(page.metrics or {}).get("metrics", ()),
            *({**m, "metric": f"{m['metric']} in {region['region']}"}
              for region, metrics, _ in page.regions for m in metrics)]


def exceeded(page):
    """The metrics that exceed a threshold, in the order of the table"""
    return [m for m in measured(page) if m["exceeded"]]


def ranked(lines):
    """(row, its part) of the rows, the worst first"""
    def count(row, event):
        return row["events"].get(event, {}).get("count") or 0

    event, lacks = lines["event"], lines.get("lacks")
    rows = [(row, lines["limit"] * count(row, event) - count(row, lacks) if lacks else
             count(row, event)) for row in lines["rows"]]
    rows = sorted((found for found in rows if found[1] > 0), key=lambda found: -found[1])
    whole = sum(size for _, size in rows)
    return [(row, size / whole if lacks else row["events"][event]["share"]) for row, size in rows]


def place(row):
    where = f"{row['file']}:{row['line']}" if row.get("file") and row.get("line") else ""
    function = row.get("function") or "[unknown]"
    return f"{where} in {function}" if where else f"{function} in {row.get('object') or '?'}"


class Sources:
    """Lines of the program's source, as far as they are here."""

    def __init__(self, folders):
        self.folders = folders

    @functools.lru_cache(None)
    def lines(self, name):
        """(lines, "") or ([], why not)"""
        for path in [name, *(os.path.join(folder, part) for folder in self.folders
                             for part in (name.lstrip("/"), os.path.basename(name)))]:
            with contextlib.suppress(OSError), \
                    open(path, encoding="utf-8", errors="replace", newline="\n") as f:
                return re.split("\r?\n", f.read().removesuffix("\n")), ""
        return [], f"{name} is not here; --source DIR says where it is"

    def line(self, row, around=0):
        """([(number, text)], why there is none)"""
        if not row.get("file") or not row.get("line"):
            return [], row.get("reason") or "no debug information says which line it is"
        lines, why = self.lines(row.get("path") or row["file"])
        if not why and row["line"] > len(lines):
            why = f"{row['file']} has {len(lines)} lines only: it is another version"
        if why:
            return [], why
        first = max(row["line"] - around, 1)
        return [(at, lines[at - 1]) for at in
                range(first, min(row["line"] + around, len(lines)) + 1)], ""


class Finding:
    """What the page says first, of one threshold or of none."""

    def __init__(self, page, metric, lines):
        self.metric, self.lines = metric, lines
        self.row, self.part = next(iter(ranked(lines) if lines else ()), (None, 0))
        shown, _ = page.sources.line(self.row) if self.row else ([], "")
        self.advice, self.advisor = knc_advice.advice(
            metric, values_of(page), self.row, shown[0][1] if shown else "") if metric else ("", "")
        functions = next((ranked(found) for found in page.lines if found.get("by") == "function"), ())
        self.waits = f"There the threads wait for others. {knc_advice.waits_for(functions)}" \
            if knc_advice.is_waiting(self.row) else ""
        # (text, is it hot) of lines, and of instructions
        lines, self.why = page.sources.line(self.row, AROUND) if self.row else ([], "")
        self.source = [(f"{'>' if at == self.row['line'] else ' '} {at:{len(str(lines[-1][0]))}}  "
                        f"{text.expandtabs(8)}", at == self.row["line"]) for at, text in lines]
        self.assembly = [(a, False) if isinstance(a, str) else
                         (f"{a['share']:6.1%}  {a['address']}: {a['instruction']}", a["share"] > 0)
                         for a in (self.row or {}).get("assembly", ())]

    def where(self):
        return self.row and \
            f"{place(self.row)} has {number(100 * self.part)} % of {shared(self.lines)}"

    def says(self):
        """How the value is to its threshold, where, and the first words of what to do"""
        is_low = self.metric["exceeded"][0]["threshold"].startswith("<")
        how = "is below" if is_low else "exceeds"
        where = f", most of all at {place(self.row)}" if self.row else ""
        advice = re.split(r"[.:] ", self.advice)[0].rstrip(".")
        return f"{self.metric['metric']} {how} its threshold{where}. {advice}."


def shared(lines):
    """What the rows have a part of"""
    return f"the missing {lines['lacks']}" if lines.get("lacks") else \
        f"the samples of {lines['event']}"


def findings(page):
    """One for each exceeded threshold; one for the time if none is"""
    by_metric = {lines["metric"]: lines for lines in page.lines}
    # Those of no metric are functions.
    first = next((lines for lines in page.lines if lines.get("by") != "function"), None)
    found = [Finding(page, m, by_metric.get(m["metric"])) for m in exceeded(page)]
    return found or [Finding(page, None, first)]


def values_of(page):
    return {m["metric"]: m["value"] for m in (page.metrics or {}).get("metrics", ())}


def verdict(page, args):
    if not measured(page):
        return "No metrics were given, so there is nothing to compare with a threshold."
    if exceeded(page):
        return " ".join(found.says() for found in findings(page))
    had = {m["metric"].partition(" in ")[0] for m in measured(page) if m["value"] is not None}
    known = [metric.name for metric in args.metrics if metric.thresholds]
    with_value = [name for name in known if name in had]
    without = [name for name in known if name not in had]
    if not with_value:
        return f"No metric that has a threshold has a value here: {', '.join(without)}."
    return f"No threshold is exceeded. Compared: {', '.join(with_value)}." + \
        (f" Not compared, as there is no value: {', '.join(without)}." if without else "")


def unjudged(page):
    """One sentence, or none, on the emulated card"""
    context = (page.metrics or {}).get("context") or {}
    if page.metrics and (context.get("emulated") or knc_card.is_emulated(page.cpuinfo)):
        return [knc_advice.unjudged(values_of(page))]
    return []


def lost_of(name, event):
    """What is missing of an event's samples"""
    if event.get("note"):
        return event["note"]
    return (f"{event['lost']:,} samples of {name} and its companion were lost, and "
            f"{event['samples']:,} of {name} were not") if event.get("lost") else ""


def note_doubts(page):
    """What is known of the numbers that makes them less than counts"""
    for m in measured(page):
        if m["value"] is None:
            page.lack(m["metric"], m["reason"] or "no value")
    for lines in page.lines:
        what = f"hottest {lines.get('by', 'line')}s for {lines['metric'] or lines['event']}"
        for name, event in lines["events"].items():
            if lost_of(name, event):
                page.lack(what, lost_of(name, event))
        rows = [row for row, _ in ranked(lines)]
        if not rows:
            page.lack(what, f"there is no sample of {lines['event']}")
        elif (rows[0]["events"][lines["event"]].get("samples") or 0) < FEW:
            page.lack(what, "there are too few samples: fewer than "
                      f"{FEW} of the first, so the shares are guesses; a longer run has more")
        if lines.get("by") != "function" and any(not row.get("line") for row in rows[:MOST_LINES]):
            page.lack(what, "some samples have no line of a source: what they are in was "
                      "compiled without -g, or is stripped")


def tables(page, by):
    """Functions or lines with their parts of an event, and those of two results"""
    for lines in page.lines:
        rows = ranked(lines)
        both = places(lines["before"], lines, lines["event"]) if lines.get("before") else []
        whole = max(sum(found.before for found in both), sum(found.after for found in both))
        if lines.get("by", "line") == by and (rows or both):
            own = lines["events"][lines["event"]]
            for row, _ in rows:
                row["metrics"] = {name: {"value": None, "unit": "", "error": None, "exceeded": (), **m}
                                  for name, m in row.get("metrics", {}).items()}
            yield {"notes": (), **lines, "ranked": rows, "shared": shared(lines),
                   "changed": [(found, max(found.before, found.after) / whole) for found in both],
                   "period": own.get("period"), "lost": lost_of(lines["event"], own)}


def template():
    """knc_page.html; it escapes what is no element"""
    try:
        import jinja2
    except ImportError as why:
        raise knc_perf.Failed(f"needs the package python3-jinja2: {why}") from why
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(os.path.dirname(__file__)), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=lambda value: value if hasattr(value, "__html__") else knc_perf.printable(str(value))
    ).get_template("knc_page.html")


def as_html(page, args):
    note_doubts(page)
    reasons = {}
    for what, why in page.missing:
        reasons.setdefault(why, {})[what] = None
    return args.template.render(
        vars(knc_format), change=change, how_sure=how_sure, place=place, quote=shlex.quote,
        signed=signed, least_shown=SHOWN, most_lines=MOST_LINES, page=page,
        command=shlex.join((page.metrics or {}).get("command") or ()),
        verdict=verdict(page, args), findings=findings(page), unjudged=unjudged(page),
        limits={m.name: m.thresholds[-1].text for m in args.metrics if m.thresholds},
        functions=[*tables(page, "function")], lines=[*tables(page, "line")],
        missing=[(", ".join(what), why) for why, what in reasons.items()])
