# SPDX-License-Identifier: GPL-2.0-only
"""The page of knc-report: statements about the measurements, and its HTML, framed by knc_page.html."""
import contextlib
import functools
import html
import os
import re
import shlex
import string

import knc_advice
import knc_card
import knc_perf
from knc_compare import change, how_sure, places, signed
from knc_format import counted, in_words, number, over_threads, quantity, span
from knc_samples import SHOWN

TEMPLATE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "knc_page.html")
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
        self.waits = knc_advice.waits_for(functions) if knc_advice.is_waiting(self.row) else ""

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


class Markup(str):
    """What needs no escaping"""


def escape(text):
    return html.escape(knc_perf.printable(str(text)))


def tag(name, *content, **attributes):
    """An element; of what is in it, and of its attributes, some may be none"""
    inside = "".join(part if isinstance(part, Markup) else escape(part) for part in content if part)
    words = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
                    for key, value in attributes.items() if value)
    return Markup(f"<{name}{words}>{inside}</{name}>")


def soft(*content):
    return tag("p", *content, class_="soft")


def join(parts):
    return Markup("\n".join(parts))


def section(ident, title, *content):
    return tag("section", tag("h2", title), Markup("\n"), *content, Markup("\n"), id=ident) \
        if content else Markup("")


def amount(value, text):
    """A number that a program can read back as it is"""
    return tag("data", text, value=repr(value))


def code_block(sources, row):
    shown = [tag("span", a) if isinstance(a, str) else
             tag("b" if a["share"] else "span", f"{a['share']:6.1%}  {a['address']}: "
                 f"{a['instruction']}") for a in row.get("assembly", ())]
    return tag("div", source_block(sources, row),
               shown and tag("pre", join(shown), tabindex="0"), class_="beside")


def source_block(sources, row):
    lines, why = sources.line(row, AROUND)
    if why:
        return soft(f"The source cannot be shown: {why}.")
    width = len(str(lines[-1][0]))
    shown = [f"{'>' if at == row['line'] else ' '} {at:{width}}  {text.expandtabs(8)}"
             for at, text in lines]
    return tag("pre", join(tag("b", text) if text.startswith(">") else
                           Markup(escape(text)) for text in shown), tabindex="0")


def finding(page, args, found):
    m, row = found.metric, found.row
    rule = m and m["exceeded"][0]
    head = f"{m['metric']}: {quantity(m['value'], m['unit'])} is {in_words(rule['threshold'])} " \
        f"{m['unit']}".rstrip() if m else verdict(page, args)
    is_kernel = m and row and (row.get("object") or "").startswith("[kernel")
    return tag(
        "div", tag("strong", head), m and tag("p", f"This means: {rule['meaning']}."),
        row and tag("p", "Hot line: " if m else "Most time: ",
                    tag("span", found.where(), class_="hot"), "."),
        row and code_block(page.sources, row),
        is_kernel and tag("p", "That is the kernel, at work for the program: -u leaves it out."),
        knc_advice.is_waiting(row) and
        tag("p", f"There the threads wait for others. {found.waits}"),
        m and tag("p", tag("b", "What to do: "), f"{found.advice.rstrip('.')}."),
        m and tag("small", f"Threshold: {rule['source']}. Advice: {found.advisor}."),
        class_="finding" if m or not page.metrics else "finding good")


def summary(page, args):
    head = [*page.says, *[verdict(page, args)] * bool(exceeded(page))]
    return tag("section", *(tag("p", tag("strong", text)) for text in head),
               join(finding(page, args, found) for found in findings(page)),
               *map(soft, unjudged(page)), id="summary")


def compared(metric, known):
    """How a value is to its threshold, in words; none if there is no threshold"""
    if metric["exceeded"]:
        words = f"! {in_words(metric['exceeded'][0]['threshold'])}"
    elif known and known.thresholds:
        words = f"not {in_words(known.thresholds[-1].text)}"
    else:
        return ""
    return tag("span", f"{words} {metric['unit']}".rstrip(),
               class_=metric["exceeded"] and "mark")


def headings(*texts):
    """The second is of numbers, and the third of four"""
    return tag("tr", *(tag("th", text, scope="col",
                           class_="n" if at == 1 or text == "After" else None)
                       for at, text in enumerate(texts)))


def value_cell(m, class_="n now"):
    value = ("~" if m["runs"] > 1 else "") + quantity(m["value"], m["unit"])
    spread = span(m["min"], m["max"], m["unit"]) if m["min"] is not None else ""
    return tag("td", amount(m["value"], value), spread and tag("small", spread), class_=class_)


def metric_row(m, ident, known, over, is_compared):
    """@over is what its threads have"""
    cells = [value_cell(m)]
    if is_compared and "before" in m:
        is_more = m["difference"].is_sure() and not m["is_only_time"]
        cells = [value_cell(m["before"], "n"), *cells,
                 tag("td", change(m), tag("small", how_sure(m)), class_="more" * is_more)]
    elif is_compared:
        cells = [tag("td"), *cells, tag("td")]
    return tag("tr", tag("th", tag("span", m["metric"], class_="name"),
                         tag("small", m["description"] + over), scope="row"),
               *cells, tag("td", compared(m, known)),
               class_="over" if m["exceeded"] else None, id=f"{ident}-{m['metric']}")


def table(found, args, ident, threads=()):
    """Of metrics, those that exceed a threshold first; with those of each thread"""
    over = {name: f". Threads: {span(least, most, unit)}, mean {quantity(mean, unit)}"
            for name, unit, least, most, mean in over_threads(threads)}
    is_compared = any("before" in m for m in found)
    rows = [metric_row(m, ident, args.by_name.get(m["metric"]), over.get(m["metric"], ""), is_compared)
            for m in sorted(found, key=lambda m: not m["exceeded"]) if m["value"] is not None]
    texts = ("Before", "After", "Difference") if is_compared else ("Value",)
    return tag("table", tag("thead", headings("Metric", *texts, "Its threshold")),
               tag("tbody", join(rows)))


def metrics_table(page, args):
    if not page.metrics:
        return Markup("")
    found = page.metrics["metrics"]
    notes = ["~ is computed from the counts of several runs: it is as good as these are alike."] \
        if any(m["runs"] > 1 for m in found) else []
    without = sum(m["value"] is None for m in found)
    notes += [f"{without} more {'has' if without == 1 else 'have'} no value; the end of the page "
              "says why."] * bool(without)
    notes += page.metrics.get("notes", ())
    return section("metrics", "Metrics", table(found, args, "metric"), *map(soft, notes))


def regions_section(page, args):
    parts = []
    for at, (of, metrics, threads) in enumerate(page.regions, 1):
        parts += [tag("h3", of["region"]),
                  soft(counted(of["calls"], "call"), ", ", counted(of["threads"], "thread")),
                  table(metrics, args, f"region-{at}", threads)]
    return section("regions", "Regions", *parts)


def places_table(head, rows):
    """Of [(part of the event, row)] those that have a hundredth, and how many others there are"""
    shown = [row for part, row in rows if part >= SHOWN][:MOST_LINES]
    left = len(rows) - len(shown)
    return [tag("table", tag("thead", head), tag("tbody", join(shown))),
            *[soft(f"and {left} more")] * bool(left)]


def line_rows(lines, sources):
    event = lines["event"]
    for row, part in ranked(lines):
        found = row["events"][event]
        shown, why = sources.line(row)
        text = tag("code", shown[0][1].strip()) if shown else \
            tag("span", "" if lines.get("by") == "function" else f"source not shown: {why}",
                class_="soft")
        found_metrics = [(name, m) for name, m in row.get("metrics", {}).items()
                         if m.get("value") is not None]
        values = [tag("span", f"{name} {quantity(m['value'], m.get('unit', ''))}" +
                      (f" (± {100 * m['error']:.0f} %)" if m.get("error") else "") +
                      "".join(f" ! {in_words(t['threshold'])}" for t in m.get("exceeded", ())),
                      class_=m.get("exceeded") and "mark") for name, m in found_metrics]
        yield part, tag(
            "tr", tag("th", tag("span", place(row), class_="name"), tag("small", text), scope="row"),
            tag("td", amount(part, f"{number(100 * part)} %"),
                tag("small", amount(found["samples"], f"{found['samples']:,}"), " samples"),
                class_="n now"),
            tag("td", tag("span", class_="bar", style=f"width:{100 * part:.1f}%"),
                tag("small", Markup("; ".join(values)))),
            class_="over" if any(m.get("exceeded") for _, m in found_metrics) else None)


def changed_rows(lines):
    """Of two results, what has changed most first"""
    rows = places(lines["before"], lines, lines["event"])
    whole = max(sum(found.before for found in rows), sum(found.after for found in rows))
    for found in rows:
        change = found.after - found.before
        part = f" ({100 * change / found.before:+.1f} %)" if found.before else ""
        yield max(found.before, found.after) / whole, tag(
            "tr", tag("th", tag("span", place(found.row), class_="name"), scope="row"),
            *(tag("td", amount(value, number(value)), class_="n")
              for value in (found.before, found.after)),
            tag("td", f"{signed(change)} events{part}",
                not found.is_sure and tag("small", "not more than sampling makes"),
                class_="more" * found.is_sure))


def lines_section(page, title, by):
    parts = []
    for lines in page.lines:
        if lines.get("by", "line") != by:
            continue
        if lines.get("before"):
            parts += [tag("h3", f"{lines['event']} before and after"),
                      *places_table(headings(by.capitalize(), "Before", "After", "Difference"),
                                    [*changed_rows(lines)])]
        rows = [*line_rows(lines, page.sources)]
        if not rows:
            continue
        event = lines["events"][lines["event"]]
        period, lost = event.get("period"), lost_of(lines["event"], event)
        head = headings(by.capitalize(), f"Share of {shared(lines)}", "Its metrics")
        parts += [tag("h3", f"By {lines['event']}" +
                      (f", for {lines['metric']}" if lines["metric"] else "")),
                  soft(period and f"A sample each {period:,} events.", lost and f" ! {lost}.", *(
                      f" {note}." for note in lines.get("notes", ()) if note[0] == "!")),
                  *places_table(head, rows)]
    return section(f"{by}s", title, *parts)


def picture(ident, title, svg, about):
    if not svg:
        return Markup("")
    # A namespace is the only address in it, and HTML needs none.
    svg = svg.replace(' xmlns="http://www.w3.org/2000/svg"', ' role="img"', 1)
    return section(ident, title, soft(about),
                   tag("div", Markup(svg.strip()), class_="box", tabindex="0", role="region",
                       aria_label=title), tag("output"))


def viewers(page):
    """Whole commands for programs that show more of the samples, with the card's names"""
    if not page.data:
        return ""
    data, kallsyms, symfs = map(shlex.quote, (
        page.data, page.kallsyms or "KALLSYMS", page.symfs or "SYMFS"))
    return (f' "hotspot --kallsyms {kallsyms} --sysroot {symfs} {data}" shows more, and so does the Firefox '
            f'Profiler of what "perf script -F +pid --kallsyms {kallsyms} --symfs {symfs} -i {data}" prints.'
            + " KALLSYMS is the card's /proc/kallsyms." * (not page.kallsyms)
            + " SYMFS is a directory with the card's files." * (not page.symfs))


def missing_section(page):
    if not page.missing:
        return section("missing", "What could not be had", tag("p", "Nothing is missing."))
    reasons = {}
    for what, why in page.missing:
        reasons.setdefault(why, []).append(what)
    return section("missing", "What could not be had, and why", tag("dl", join(
        tag("dt", ", ".join(dict.fromkeys(what))) + tag("dd", why)
        for why, what in reasons.items())))


def as_html(page, args):
    note_doubts(page)
    command = (page.metrics or {}).get("command")
    title = f"Report of {shlex.join(command)}" if command else "Report of a Knights Corner"
    body = join([
        tag("h1", title), summary(page, args), section("run", "What was run, and where", tag("dl", join(
            tag("dt", term) + tag("dd", text) for term, text in page.facts if text))),
        metrics_table(page, args), regions_section(page, args),
        lines_section(page, "Functions", "function"),
        lines_section(page, "Hottest lines", "line"),
        picture("card", "Which threads do the work", page.card,
                "Bright is much, dark is little; a thread that is crossed out has no count. The "
                "pointer, or a touch, shows the numbers."),
        picture("flame", "Which functions call which", page.flame,
                " ".join(f"! {note}." for note in page.doubts) +
                " As wide as its samples; callers are below. The pointer, a touch and the Tab key show the "
                "numbers; a click or Enter makes a box as wide as the picture." +
                viewers(page)),
        missing_section(page)])
    with open(TEMPLATE, encoding="utf-8") as f:
        # The first line is about that file alone.
        text = f.read().partition("\n")[2]
    return string.Template(text).substitute(title=escape(title), body=body)
