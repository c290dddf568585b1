# SPDX-License-Identifier: GPL-2.0-only
"""What "perf stat" has printed with -j, or with -x: a record for each count.

Imported by knc-draw and knc-metrics.
"""
import collections
import json
import math
import re

# value     None for <not counted> and <not supported>
# why       what perf has in place of the value, without the brackets
# unit      "ns" for duration_time, "" for most events
# event     as it was typed; "" on a line that has nothing but another metric of the
#           event before
# share     percent of the time for which it was on a counter; below 100 perf has
#           scaled the value
# cpu       with -A
# variance  percent, with -r
# metric, metric_unit, metric_value
#           perf's metric of this line; "" and None if there is none
# time      seconds since the start, with -I
# running   nanoseconds for which it was on a counter; of all CPUs without -A
Record = collections.namedtuple("Record", "value why unit event share cpu variance metric "
                                "metric_unit metric_value time running")

# [time,] [CPU, or core and number of CPUs,] value, unit, event, [variance,] run time,
# share [, value of a metric, its name]. An event may have the separator in its name.
FIELDS = r"""^(?:\s*(?P<time>\d+\.\d+){0})?
(?:CPU(?P<cpu>\d+){0}|[SN]\d[^{0}]*{0}\d+{0}|[^{0}]*-\d+{0})?
(?:(?P<value>[\d.]+|<[a-z\ ]+>){0}(?P<unit>[^{0}\d]*){0}(?P<event>\S.*?){0}
   (?:(?P<variance>[\d.]+)%{0})?(?P<running>\d+){0}(?P<share>[\d.]+)|{0}{{3,5}})
(?:{0}(?P<metric_value>[-\d.]*|-?nan|-?inf){0}(?P<metric>[^{0}]*))?$"""


def number(text):
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def record(fields):
    """Of {field: text}, where perf had any"""
    value, share = number(fields.get("value")), number(fields.get("share"))
    # Before the name perf 6.1 puts the unit, if there is one, and two blanks.
    unit, _, metric = (fields.get("metric") or "").rpartition("  ")
    metric = "" if metric == "(null)" else metric
    return Record(value, "" if value is not None else (fields.get("value") or "").strip("<>"),
                  fields.get("unit") or "", fields.get("event") or "",
                  100.0 if share is None else share,
                  None if fields.get("cpu") is None else int(fields["cpu"]),
                  number(fields.get("variance")), metric, unit.strip(),
                  number(fields.get("metric_value")) if metric else None,
                  number(fields.get("time")), int(fields.get("running") or 0))


JSON_NAMES = {"counter-value": "value", "pcnt-running": "share", "metric-unit": "metric",
              "metric-value": "metric_value", "interval": "time",
              "event-runtime": "running"}


def fields_of(line, pattern):
    if not line.startswith("{"):
        found = pattern.match(line)
        return found.groupdict() if found else {}
    try:
        # JSON has no word for what is not a number, and perf 6.1 prints one.
        entry = json.loads(re.sub(r" : -?(nan|inf)\b", " : null", line))
    except ValueError:
        return {}
    fields = {JSON_NAMES.get(key, key): value for key, value in entry.items()}
    # perf 6.1 prints 0 for a metric that it cannot compute, too.
    fields["metric_value"] = fields.get("metric_value") or None
    return fields


def read(lines, separator=","):
    """The records in these lines; what is not perf's is left out."""
    pattern = re.compile(FIELDS.format(re.escape(separator)), re.X)
    share = 100.0
    for line in lines:
        fields = fields_of(line.strip("\n"), pattern)
        if "value" in fields or "metric" in fields:
            found = record(fields)
            share = found.share if found.event else share
            yield found._replace(share=share)
