# SPDX-License-Identifier: GPL-2.0-only
"""What "perf stat -x" or -j has printed: a record for each count. And code that all our programs share."""
import collections
import json
import math
import os
import re
import subprocess
import sys

# value     None for <not counted> and <not supported>
# why       what perf has in place of the value, without the brackets
# unit      "ns" for duration_time, "" for most events
# event     as it was typed, with its cgroup; "" on a line that has nothing but another
#           metric of the event before
# share     percent of the time for which it was on a counter; below 100 perf has
#           scaled the value
# cpu       with -A
# metric, metric_unit, metric_value
#           perf's metric of this line; "" and None if there is none
# time      seconds since the start, with -I
# running   nanoseconds for which it was on a counter; of all CPUs without -A
Record = collections.namedtuple("Record", "value why unit event share cpu metric metric_unit "
                                "metric_value time running")

# Where the locale has a decimal comma, perf prints that.
NUMBER = r"\d+(?:[.,]\d+)?"
# [time,] [CPU, or core and number of CPUs,] value, unit, event, [cgroup,] [variance,] run
# time, share [, value of a metric, its name]. An event may have the separator in its terms.
FIELDS = r"""^(?:\s*(?P<time>\d+[.,]\d+){0})?
(?:CPU(?P<cpu>\d+){0}|[SN]\d[^{0}]*{0}\d+{0}|[^{0}]*-\d+{0})?
(?:(?P<value>{1}|<[a-z\ ]+>){0}(?P<unit>[^{0}\d]*){0}
   (?P<event>[^{0}/\s][^{0}/]*(?:/[^/]*/[^{0}]*)?)(?:{0}(?P<cgroup>[^{0}]*))??{0}
   (?:{1}%{0})?(?P<running>\d+){0}(?P<share>\d+[.,]\d+)|{0}{{3,5}})
(?:{0}(?P<metric_value>-?(?:{1})?|-?nan|-?inf|none){0}(?P<metric>[^{0}]*))?$"""
# Behind the name of a card, with which knc-host stat prints each line
NOTHING = re.compile(r"(?:[\w.@-]+,)?\s*(?:#.*\s*)?")
# The first of these that a line fits; the last is JSON's
SEPARATORS = ",;\t|\0"
# Of perf stat -j, in the order of -x
KEYS = "interval cpu counter-value unit event cgroup event-runtime pcnt-running metric-value metric-unit".split()
# A number, or nan
BARE = re.compile(r'(?<=" : )([^"\s]+)(?=, "|}$)')


class Failed(Exception):
    """There is nothing to report, and why."""


def run(name, main, *words):
    """Run one of our programs: its status, or why it fails"""
    try:
        sys.exit(main(*words))
    except BrokenPipeError:
        # The reader has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except (Failed, OSError) as error:
        sys.exit(f"{name}: {reason(error)}")
    except KeyboardInterrupt:
        sys.exit(130)


def printable(text):
    """A name without what a terminal obeys, and XML does not have"""
    return text if text.isprintable() else \
        "".join(c if c.isprintable() or c == "\t" else "?" for c in text)


def captured(command):
    """A command that has run, with what it has printed, in no language but English"""
    return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", env={**os.environ, "LC_ALL": "C"})


def reason(error):
    """Of a file, without the number that Python puts in front; or of a command, which has said why"""
    if hasattr(error, "cmd"):
        return f"{error.cmd[0]}: status {error.returncode}"
    if isinstance(error, OSError) and error.strerror:
        return ": ".join(filter(None, (error.filename, error.strerror)))
    return str(error)


def number(text):
    try:
        value = float((text or "").replace(",", "."))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def record(fields):
    """Of {field: text}, where perf had any"""
    value, share = number(fields["value"]), number(fields["share"])
    # Before the name perf 6.1 puts the unit, if there is one, and two blanks.
    unit, _, metric = (fields["metric"] or "").rpartition("  ")
    event = " ".join(filter(None, (fields["event"], fields["cgroup"])))
    return Record(value, "" if value is not None else (fields["value"] or "").strip("<>"),
                  fields["unit"] or "", printable(event), 100.0 if share is None else share,
                  None if fields["cpu"] is None else int(fields["cpu"]),
                  printable(metric), unit.strip(),
                  number(fields["metric_value"]) if metric else None,
                  number(fields["time"]), int(fields["running"] or 0))


def of_json(line):
    """A line of perf stat -j as one of -x, if it is JSON"""
    try:
        of = {key: "CPU" * (key == "cpu") + str(text)
              for key, text in json.loads(BARE.sub(r'"\1"', line)).items()}
    except (ValueError, RecursionError):
        return line
    # Up to 6.12 perf has 0 for none, too.
    if number(of.get("metric-value")) == 0:
        of["metric-unit"] = ""
    return "\0".join(of.get(key, "") for key in KEYS if key in of or key not in ("interval", "cpu", "cgroup"))


def read(lines, others=None):
    """The records in these lines; what is not perf's is left out, and appended to @others."""
    patterns = [re.compile(FIELDS.format(re.escape(s), NUMBER), re.X) for s in SEPARATORS]
    share, time = 100.0, None
    for line in lines:
        text = line.strip("\ufeff\r\n")
        text = of_json(text) if text[:1] == "{" else text
        match = next(filter(None, (p.match(text) for p in patterns)), None)
        if match:
            patterns = [match.re]
            found = record(match.groupdict())
            # Behind the intervals stands their sum (--summary --no-csv-summary).
            if time is not None and found.time is None:
                continue
            time = found.time
            share = found.share if found.event else share
            yield found._replace(share=share)
        elif others is not None and not NOTHING.fullmatch(line):
            others.append(printable(line.strip())[:60])
