# SPDX-License-Identifier: GPL-2.0-only
"""What "perf script" has printed: a record for each sample.

Names may have blanks, parentheses and colons. With FIELDS it is sure where each ends: before
the file of a function stands "+0x4d (", and before an event the time and the period. Without
these fields the first place that can be the end is taken.

Imported by knc-draw, knc-report and knc_samples.
"""
import collections
import re

from knc_perf import printable

FIELDS = "comm,tid,time,period,event,ip,sym,symoff,dso"
UNKNOWN = "[unknown]"

# comm    None if it was not printed
# weight  the period: how many events the sample stands for
# time    as it was printed; None if it was not
# frames  the function of the sample first, then its callers
# address of the instruction, and offset from the function's first one; None if not printed
Sample = collections.namedtuple("Sample", "comm event weight frames time", defaults=(None,))
Frame = collections.namedtuple("Frame", "function object source address offset",
                               defaults=(None, None, None))

# "workload    81/82 [003]  12.345:     100000 instructions:u: 4016f4 main+0x4 (/bin/x)"
TASK = r"(?P<comm>.*?)\s*(?<!\S)-?\d+(?:/-?\d+)?\s+(?:\[\d+\]\s+)?"
TIME = r"(?P<time>\d+\.\d+):\s+"
EVENT = r"(?:(?P<weight>\d+)\s+)?(?P<event>\S*[^\s\d.]\S*?):(?=\s|$)(?P<rest>.*)"
SURE = re.compile(TASK + TIME + EVENT)
OTHER = [re.compile(head + EVENT) for head in
         (rf"\s*(?:\[\d+\]\s+)?(?:{TIME})?", TASK, rf"(?P<comm>\S.*?)\s+(?:\[\d+\]\s+)?(?:{TIME})?")]
FRAME = re.compile(r"\s+(?P<ip>[0-9a-f]+) (?P<text>.+)")
# "/src/main.c:27", or if there is none "main+0x4" or "x[4016f4]"
SOURCE = re.compile(r"\s+(?:(?P<path>\S.*):(?P<line>\d+)|\S.*[+[](?:0x)?[0-9a-f]+\]?)")
# Records of perf's that are no samples
RECORD = re.compile(r".* PERF_RECORD_(?:LOST.* lost (?P<lost>\d+))?")


def frame_of(address, text):
    """"main+0x4 (/bin/x)", "main (/bin/x (copy)/y)", "f(int) (inlined)", "[unknown] ([unknown])\""""
    end = re.match(r"\[unknown\] \(", text) or re.search(r"\+0x(?P<offset>[0-9a-f]+) \(", text) or \
        re.search(r" \((?=[/[])", text) or re.search(r" \((?=[^()]*\)$)", text)
    if not end or not text.endswith(")"):
        return Frame(printable(text), "", address=address)
    offset = end.groupdict().get("offset")
    return Frame(printable(text[:end.start()]) or UNKNOWN, printable(text[end.end():-1]), None,
                 address, offset and int(offset, 16))


class Reader:
    """An iterator of samples. @left_out and @lost say afterwards what is not among them."""

    def __init__(self, lines):
        self.lines, self.left_out, self.first, self.lost = lines, 0, "", 0

    def __iter__(self):
        sample, skips, is_begin = None, False, True
        for number, line in enumerate(self.lines, 1):
            line = line.rstrip("\n")
            record = RECORD.match(line)
            found = None if record else self.begins(line, is_begin)
            is_begin = not line.strip()
            if found or is_begin or record or not line[0].isspace():
                if sample:
                    yield sample
                sample, skips = found, False
            if record:
                self.lost += int(record["lost"] or 0)
            elif not (found or is_begin or skips or line.startswith("#") or
                      sample and self.add(sample, line)):
                self.left_out += 1
                self.first = self.first or f"line {number}: {printable(line.strip())[:60]}"
                skips = not sample
        if sample:
            yield sample

    @staticmethod
    def begins(line, is_begin):
        """The sample that begins in this line"""
        found = SURE.fullmatch(line)
        if not found and (is_begin or not line[:1].isspace()) and not line.startswith("#"):
            found = next(filter(None, (form.fullmatch(line) for form in OTHER)), None)
        if not found:
            return None
        at_once = FRAME.fullmatch(found["rest"].rstrip())
        comm = found.groupdict().get("comm")
        time = found.groupdict().get("time")
        return Sample(comm if comm is None else printable(comm.strip()) or "[no name]",
                      printable(found["event"]), int(found["weight"] or 1),
                      [frame_of(at_once["ip"], at_once["text"])] if at_once and
                      at_once["text"].endswith(")") else [], time)

    @staticmethod
    def add(sample, line):
        """A caller, or the source of the function above; False if it is neither"""
        frame, source = FRAME.fullmatch(line.rstrip()), SOURCE.fullmatch(line)
        if frame and (line.endswith(")") or not source):
            sample.frames.append(frame_of(frame["ip"], frame["text"]))
        elif source and sample.frames and source["path"] and int(source["line"]):
            sample.frames[-1] = sample.frames[-1]._replace(
                source=(printable(source["path"]), int(source["line"])))
        return frame or source

    def says(self):
        """What there is to say of what is not among the samples"""
        if self.left_out:
            yield (f"{self.left_out} record{'s' * (self.left_out > 1)} not understood and left "
                   f"out; the first is {self.first}")
        if self.lost:
            yield f"{self.lost} samples were lost"
