# SPDX-License-Identifier: GPL-2.0-only
"""What "perf script" has printed, or folded stacks: a record for each stack, or for samples that are alike.

Names may have blanks, parentheses and colons. FIELDS show where each ends: at "+0x4d (" before a
function's file, and at the time and period before an event. Without these fields the first place
that can be the end is taken.
"""
import codecs
import collections
import functools
import itertools
import os
import re
import sys
import time

from knc_perf import printable

PLACES = "time,period,event,ip,sym,symoff,dso"
FIELDS = "comm,tid," + PLACES
UNKNOWN = "[unknown]"

# comm    None if it was not printed
# weight  the period: how many events the sample stands for
# frames  the function of the sample first, then its callers
# time    as it was printed; None if it was not, or if these are several with callers
# count   how many samples these are: @time is of one, and @weight of all of them
# address of the instruction, and offset from the function's first one; None if not printed
Sample = collections.namedtuple("Sample", "comm event weight frames time count", defaults=(None, 1))
Frame = collections.namedtuple("Frame", "function object source address offset", defaults=(None, None, None))

# "workload    81/82 [003]  12.345:     100000 instructions:u: 4016f4 main+0x4 (/bin/x)"
# CPU, and more behind it; flags (misc); date (tod)
MORE = r"(?:\[\d+\]\s+(?:(?!\d+\.\d+:)\S+\s+){0,6}?)?(?:[KUHGg]+\s{2,})?(?:\d{4}-\d\d-\d\d \S+\s+)?"
# A task's number has five columns, from perf 6.12 on seven, behind a command and a blank
NUMBER = r"(?:-?\d+/(?P<tid>-?\d+)|(?P<pid>-?\d+)(?:(?<=\d{5})|(?<=\s[ \d-]{5})|(?<=^[ \d-]{5})))"
TASK = rf"(?P<comm>.*?)(?:(?<!\S)| ) *(?<!\S){NUMBER}\s+{MORE}"
# By hand it may have fewer columns, and a time fewer decimals.
SHORT = rf"(?P<comm>.*?)\s*(?<!\S)(?P<pid>-?\d+)\s+{MORE}"
NO_COMM = (r"(?:-?\d{1,7}(?!\d)|(?=[ \d-]{4}\d(?!\d)|[ \d-]{6}\d(?!\d)) *-?\d+)(?:/-?\d+)?\s+" + MORE)
NAME = r"(?P<comm>\S.*?)\s+" + MORE
TIME = r"(?P<time>\d+\.\d+):\s+"
EVENT = r"(?P<event>\S*[^\s\d.]\S*?):(?=\s|$)(?P<rest>.*)"
ANY = r"(?:(?P<weight>\d+)\s+)?" + EVENT
# A period has ten columns, and no other number behind a command
PERIOD = r"(?P<weight>(?=[ \d]{9}\d) *\d+)\s+"
# With -L a name has eight letters, and the CPU no brackets.
FORMS = [re.compile(form) for form in (
    r"(?P<comm>.{8}) (?=[ \d-]{5}) *-?\d+(?:/-?\d+ *)? +\d+ +" + MORE + TIME + ANY,
    rf"{NO_COMM}(?:{TIME})?{ANY}", TASK + TIME + ANY,
    SHORT + r"(?P<time>\d+\.\d{1,5}):\s+" + ANY, rf"\s*{MORE}{TIME}{ANY}", rf"\s*\[\d+\]\s+{MORE}{ANY}",
    # Between task and time is no other column.
    r"(?!.*\s(?:[ \d]{4}\d|\d+/\d+)\s.*?\d+\.\d+: )\s*" + NAME + TIME + ANY, PERIOD + EVENT,
    rf"{TASK}(?P<weight>\d+)\s+{EVENT}", rf"\s*{NAME}{PERIOD}{EVENT}",
    rf"{SHORT}(?P<weight>\d+)\s+{EVENT}", TASK + EVENT, SHORT + EVENT,
    rf"\s*(?:{NAME})?{EVENT}")]
# Most have a time and ": ", and behind them this: period, event, and an instruction if no callers are below.
REST = re.compile(r" *(\d{1,20}) +(\S*[^\s\d.]\S*):((?: .*)?)")
TIMES, STACK = re.compile(r"(?:\d+\.\d{6,9} )+"), re.compile(r"(?:\t.*\)\n)+")
# With callers: the end of a sample, and the first line of the next
FIRST = re.compile(r"\n\n(.*)\n")
# So many lines, and kinds of samples, are remembered; letters that are read at a time
MOST_LINES, MOST_KINDS, CHUNK = 1 << 15, 1 << 16, 1 << 16
# A column that is not known, which no name has
COLUMN = re.compile(r"(?<!\S)(?:\[\d{3,}\]|\d+\.\d+:|\d\d:\d\d:\S+)(?!\S)")
# Comments, and what perf script -D prints
NO_SAMPLE = re.compile(r"[#.]|0x")
FRAME = re.compile(r"\s+(?P<ip>[0-9a-f]+) (?P<text>(?![0-9a-f]{8,} |\|)\S(?:.*\)|(?:(?!\+0x\w+ \().)*))")
# "/src/main.c:27", or if there is none "main+0x4" or "x[4016f4]"; or other columns below a stack
SOURCE = re.compile(r"\s+(?:(?P<path>\S.*):(?P<line>\d+)|\S.*[+[](?:0x)?[0-9a-f]+\]?|"
                    r"N/A|[0-9a-f]+[KMG]?|(?:insn|ilen): .*|0x\S+/.*)")
# For more letters before the event, or a row of 100 blanks, the patterns would take hours.
MOST_LETTERS, BLANKS = 499, re.compile(r"\s{100}")
# Records of perf's that are no samples
RECORD = re.compile(r"(?:.* )?PERF_RECORD_(?:LOST.* lost (?P<lost>\d+))?")
# What perf says of data that is cut or damaged, of samples that it has lost, and does not show
CUT = re.compile(r"end of event stream|bad event header|failed to process type|"
                 r"data size field is 0|file (is|was) truncated")
LOST = re.compile(r"lost \d+ chunks|Processed .* lost|LOST \d+ (chunks|events)")
OTHER_WORDS = re.compile(r"not a known event|unknown event|not present in the header|"
                         r"out of order|unprocessable|invalid callchain|data was lost|by DWARF", re.I)
HEADS = "Warning:", "Error:"
# How often a folded stack was there
COUNT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# Of the kernel and its modules, as perf has them; and what stands in brackets besides
KERNEL = re.compile(r"\[.+\].*|(.*/)?vmlinu[xz]([-.].*)?|.*\.ko(\.(gz|xz|zst|debug))?")
NO_KERNEL = re.compile(r"\[(vdso\d*|vsyscall|vvar|uprobes|heap|stack.*|anon.*|unknown)\]")


def is_kernel(file):
    return bool(KERNEL.fullmatch(file) and not NO_KERNEL.fullmatch(file))


def frame_of(address, text):
    """"main+0x4 (/bin/x)", "main (/bin/x (copy)/y)", "f(int) (inlined)", "[unknown] ([unknown])\""""
    end = re.match(r"\[unknown\] \(", text) or re.search(r"\+0x(?P<offset>[0-9a-f]+) \(", text) or \
        re.search(r" \((?=[/[])", text) or re.search(r" \((?=[^()]*\)$)", text)
    if not end or not text.endswith(")"):
        return Frame(printable(text), "", address=address)
    offset = end.groupdict().get("offset")
    return Frame(printable(text[:end.start()]) or UNKNOWN, printable(text[end.end():-1]), None,
                 address, offset and int(offset, 16))


def unmarked(line):
    return line.rstrip("\r").lstrip("\ufeff")


def lines_of(text):
    return map(unmarked, text.removesuffix("\n").split("\n"))


def fold(line):
    """(functions, outermost first; how often, None if that is not said) of a folded stack"""
    words = line.rsplit(None, 1)
    if len(words) < 2 or not COUNT.fullmatch(words[1]):
        return line, None
    return words[0], int(words[1]) if words[1].isdigit() and len(words[1]) < 20 else float(words[1])


@functools.lru_cache(MOST_LINES)
def caller(line):
    found = FRAME.fullmatch(line.rstrip())
    return found and frame_of(found["ip"], found["text"])


class Reader:
    """An iterator of samples. Then says() has what is missing, and @is_cut if there is no end."""

    def __init__(self, file, changed=str):
        # @changed is given the text in parts, and gives what is to be read.
        self.file, self.changed = file, changed
        self.left_out, self.taken, self.lost, self.first = 0, 0, 0, ""
        self.is_cut, self.is_folded, self.words = False, False, []
        # Folded stacks with two counts; (how deep a line is, has it callers); the last line
        self.pairs, self.depths, self.last = 0, set(), ""
        # {number of a task: its name}: from perf 6.12 on one that has ended is ":" and its number
        self.tasks = {}
        self.forget()

    def __iter__(self):
        pieces = self.pieces()
        # What stands before the first line that says which kind it is
        head = []
        for piece in pieces:
            head.append(piece)
            if any(map(self.decides, lines_of(piece))):
                break
        read = self.folded if self.is_folded else self.samples
        for sample in read(itertools.chain(head, pieces)):
            self.taken += sample.count
            yield sample
        self.is_cut |= not self.is_folded and self.last[-1:] not in ("", "\n", ")")

    def texts(self):
        """What there is to read, in large parts: the file's own read() goes through it in small ones"""
        decode = codecs.getincrementaldecoder(self.file.encoding)("replace").decode
        said, due = "", time.monotonic() + 1
        while data := self.file.buffer.read(CHUNK):
            yield decode(data)
            if time.monotonic() > due and os.isatty(2):
                due = time.monotonic() + 0.2
                said = f"\r{os.path.basename(sys.argv[0])}: {self.taken + sum(self.kinds.values()):,} samples read"
                print(end=said, file=sys.stderr, flush=True)
        print(end=said and f"\r{'':{len(said)}}\r", file=sys.stderr, flush=True)
        yield decode(b"", True)

    def pieces(self):
        """The text in pieces, which end where a sample does if there is such a place"""
        rest = ""
        for text in itertools.chain(filter(None, self.texts()), [""]):
            self.last = text[-1:] or self.last
            rest += text
            end = rest.rfind("\n\n") + 2 if text else len(rest)
            if text and end < 2:
                end = rest.rfind("\n") + 1
                line = rest.rfind("\n", 0, max(0, end - 1)) + 1
                # What is below a sample is still to come.
                end = line if REST.fullmatch(rest[line:end - 1].partition(": ")[2]) else end
            whole, rest = rest[:end], rest[end:]
            if whole:
                yield self.changed(whole)

    def decides(self, line):
        """Whether this line says which kind of text it is"""
        # Without ";" it has no colon: what perf script prints has one behind the event or time.
        self.is_folded = fold(line.strip())[1] is not None and not line.lstrip().startswith("#") \
            and (":" not in line or ";" in line)
        return self.is_folded or self.begins(line, True)

    def refuses(self):
        """Why this text is not read at all, if so"""
        if any(depth > min(self.depths)[0] + has for depth, has in self.depths):
            return ("its lines are indented, as in a tree, or in perf script without an event: a "
                    "folded stack is one line")
        if self.pairs and self.pairs == self.taken:
            return ("each stack has two counts, which is a difference of two profiles (difffolded makes "
                    "such): a flame graph has one count for each stack")
        return ""

    def folded(self, pieces):
        for at, line in enumerate(itertools.chain.from_iterable(map(lines_of, pieces)), 1):
            depth, line = len(re.match(r"[\s|│├└]*", line.expandtabs())[0]), line.strip()
            if line and not line.startswith("#"):
                # Java's types have ";" in parentheses.
                self.depths.add((depth, ";" in re.sub(r"\([^()]*\)", "", line)))
            stack, count = fold(line)
            if count is not None and 0 <= count < float("inf") and "\r" not in line:
                self.pairs += fold(stack)[1] is not None
                yield Sample(None, "", count, (*(Frame(printable(name), "") for name in reversed(stack.split(";"))),))
            elif line and not line.startswith("#"):
                self.leave_out(at, line)

    def leave_out(self, at, line):
        self.left_out += 1
        self.first = self.first or f"line {at}: {printable(line.strip())[:60]}"

    def samples(self, pieces):
        sample, skips, is_begin, number = None, False, True, 1
        for text in pieces:
            if counted := is_begin and self.counts(text):
                yield from filter(None, [sample])
                sample = None
            if not counted or len(self.comms) + len(self.kinds) > MOST_KINDS:
                yield from self.alike()
            for at, line in () if counted else enumerate(lines_of(text), number):
                found = self.opens(line, is_begin) if line else None
                record = RECORD.match(line)
                # A sample with its address in the same line has no callers below.
                is_begin = not line.strip()
                is_flat = bool(found and found.frames)
                if found or is_begin or record or not line[0].isspace():
                    if sample:
                        yield sample
                    sample, skips = found, False
                if record:
                    self.lost += int(record["lost"] or 0)
                elif not (found or is_begin or skips or line.startswith("#")):
                    more = sample and self.add(sample, line)
                    sample = more or sample
                    if not more:
                        if not self.hear(line):
                            self.leave_out(at, line)
                        skips = not sample
                is_begin |= is_flat
            number += counted or text.count("\n")
        yield from filter(None, (sample, *self.alike()))

    def counts(self, text):
        """Count the samples, if the text has nothing else, and return how many lines it has; else 0"""
        is_deep, tasks = text[-2:] == "\n\n", {**self.tasks}
        parts = FIRST.split("\n\n" + text[:-2]) if is_deep else text[:-1].split("\n")
        firsts, stacks = (parts[1::2], parts[2::2]) if is_deep else (parts, ())
        befores, _, rests = zip(*[first.partition(": ") for first in firsts or [""]])
        befores, _, times = zip(*[before.rpartition(" ") for before in befores])
        new, frames = dict(zip(rests, times)), [self.stacks.get(hash(stack)) or self.calls(stack) for stack in stacks]
        if not (text[-1] == "\n" and TIMES.fullmatch(" ".join(times) + " ") and 0 not in frames and
                all(self.is_begin(before) for before in dict.fromkeys(befores) if before not in self.comms) and
                all(self.is_rest(rest, new[rest], is_deep) for rest in new.keys() - self.rests[is_deep])):
            self.tasks = tasks
            return 0
        self.kinds.update(zip(map(self.comms.get, befores), rests, frames or itertools.repeat(0)))
        while self.ended:
            del self.comms[self.ended.pop()]
        return sum(map(len, map(self.frames.__getitem__, frames))) + 2 * len(frames) if is_deep else len(parts)

    def is_begin(self, before):
        """Remember whose samples these are, if that can be told from what stands before their time"""
        head = self.opens(unmarked(f"{before} 1.500000: 1 x: "), True)
        if not head or head[1:5] != ("x", 1, (), "1.500000") or (head.comm or "")[:1] == ":":
            return False
        self.comms[before] = (head.comm,)
        # The name of a task that has ended is another one later.
        self.ended += [before] * (before.lstrip()[:1] == ":")
        return True

    def is_rest(self, rest, time, is_deep):
        """Remember what stands behind a time, of a sample with callers below or without"""
        found = REST.fullmatch(rest)
        if not found or BLANKS.search(rest) or "PERF_RECORD_" in rest:
            return False
        weight, event, below = found.groups()
        frame = below[-1:] == ")" and caller(below)
        self.rests[is_deep][rest] = Sample(None, printable(event), int(weight), (frame,) if frame else (), time)
        return not below.strip() if is_deep else bool(frame)

    def calls(self, stack):
        """Remember the functions of these lines: their place in @frames, 0 if there is something else"""
        frames = (*map(caller, stack.split("\n")),)
        if None in frames or not STACK.fullmatch(stack + "\n") or "PERF_RECORD_" in stack:
            return 0
        self.frames.append(frames)
        return self.stacks.setdefault(hash(stack), len(self.frames) - 1)

    def alike(self):
        """What was counted; and forget it"""
        for ((comm,), rest, at), count in self.kinds.items():
            _, event, weight, frames, time, _ = self.rests[at > 0][rest]
            yield Sample(comm, event, weight * count, frames or self.frames[at], None if at else time, count)
        self.forget()

    def forget(self):
        # {what stands before a time: (name of the task,)}, and those of ended tasks; {what stands behind
        # it: a sample}, without callers and with; {hash of their lines: place in @frames}; how many are alike
        self.comms, self.ended, self.rests, self.stacks, self.frames = {}, [], ({}, {}), {}, [()]
        self.kinds = collections.Counter()

    def hear(self, line):
        """Note what perf says of the data, beside its samples. False if it says nothing."""
        if CUT.search(line):
            self.is_cut = True
        elif line in HEADS or LOST.search(line) and self.lost:
            pass
        elif LOST.search(line) or OTHER_WORDS.search(line):
            self.words.append(printable(line.strip()))
        else:
            return False
        return True

    def opens(self, line, is_begin):
        """The sample that begins in this line of perf script, if one does"""
        if line[:1] == "\t" or line in HEADS or "PERF_RECORD_" in line and RECORD.match(line):
            return None
        return self.begins(line, is_begin)

    def begins(self, line, is_begin):
        """The same of a line that is no other record; only the first forms are sure"""
        forms = FORMS[:4] if line[:1].isspace() and not is_begin or NO_SAMPLE.match(line) else FORMS
        found = None if BLANKS.search(line, 0, MOST_LETTERS) else next(filter(None, (
            form.fullmatch(line[:MOST_LETTERS]) for form in forms)), None)
        words = found.groupdict() if found else {}
        name, number = words.get("comm"), words.get("tid") or words.get("pid")
        if not found or COLUMN.search(name or ""):
            return None
        name = name if name is None else printable(name.strip()) or "[no name]"
        if name and number:
            name = self.tasks[number] = self.tasks.get(number, name) if name == f":{number}" else name
        rest = (words["rest"] + line[MOST_LETTERS:]).rstrip()
        at_once = rest[-1:] == ")" and caller(rest)
        return Sample(name, printable(words["event"]), int(words.get("weight") or 1),
                      (at_once,) if at_once else (), words.get("time"))

    def add(self, sample, line):
        """The sample with a caller, or with the source of the function above; None if it is neither"""
        frame = caller(line)
        source = None if frame and line[-1] == ")" else SOURCE.fullmatch(line)
        if frame and not source:
            return sample._replace(frames=(*sample.frames, frame))
        if source and sample.frames and source["path"] and int(source["line"]):
            last = sample.frames[-1]._replace(source=(printable(source["path"]), int(source["line"])))
            return sample._replace(frames=(*sample.frames[:-1], last))
        return sample if source else None

    def says(self):
        if self.left_out:
            yield (f"{self.left_out} record{'s' * (self.left_out > 1)} not understood and left "
                   f"out; the first is {self.first}")
        if self.lost:
            yield f"{self.lost:,} of {self.lost + self.taken:,} samples were lost"
        if self.is_cut:
            yield f"the data is cut: it has {self.taken:,} samples, and what came after them is missing"
        elif self.last[-1:] not in ("", "\n"):
            yield "the last line has no end: the file may be cut there"
        for words in dict.fromkeys(self.words):
            yield f"of {self.taken:,} samples perf says: {words}"
