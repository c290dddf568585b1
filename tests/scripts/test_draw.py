# SPDX-License-Identifier: GPL-2.0-only
"""tools/knc-draw: the numbers in the pictures are those of perf."""
import io
import random
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from unittest import mock

from common import ScriptTest
from lines import TOP, load
from pytest import approx

draw = load(f"{TOP}/tools/knc-draw")
SVG = "{http://www.w3.org/2000/svg}"

# As perf 6.1 prints it, a second metric on a line of its own and all
STAT = """# started on Sat Nov 21 15:00:00 2026

CPU0,2483009,,cycles,78759934,45.00,0.014,GHz
CPU1,<not counted>,,cycles,0,0.00,,
CPU5,1116089,,cycles,70076892,42.00,0.007,GHz
CPU0,212638,,instructions,64545106,37.00,0.09,insn per cycle
CPU0,,,,,,0.03,stalled cycles per insn
CPU1,96321,,instructions,68008941,40.00,nan,insn per cycle
CPU5,1616659,,instructions,62311457,40.00,1.45,insn per cycle
"""
# Intervals: CPU 1 has no count, 5 was offline in one, 6 had a counter for a part of the time
INTERVALS = """     1.0,CPU0,2483009,,cycles,78759934,100.00,0.014,GHz
     2.0,CPU0,7,,cycles,78759934,100.00,0.014,GHz
     1.0,CPU1,<not counted>,,cycles,0,0.00,,
     1.0,CPU5,1116089,,cycles,70076892,100.00,,
# a comment

     2.0,CPU6,1e3,,cycles,1,100.00,,
     1.0,CPU6,1,,cycles,70076892,45.00,,
     2.0,CPU6,900000,,cycles,70076892,42.00,,
     2.0,CPU7,1116089,,cyc"""
NOTES = """x: 3 threads have no count
~: estimates; 1 threads have counted 42 to 42 % of the time
left out, as not understood: 2, first 2.0,CPU6,1e3,,cycles,1,100.00,,
"""
PICTURE = """cycles (estimates): 2 cores with 3 threads each

core     0
thread 0 @@ x
thread 1  x==
thread 2  x--

0 [  ..::--==++**##%%@@] 2.48M events
most:  core 0 thread 0: 2.48M   core 1 thread 1: 1.12M   core 1 thread 2: ~900k
least: core 1 thread 2: ~900k   core 1 thread 1: 1.12M   core 0 thread 0: 2.48M
""" + NOTES
TWO_MASKS = """CPU0,579,,cpu/event=0x16,umask=0x0/u,8852721,100.00,,
CPU1,1801168,,cpu/event=0x16,umask=0x0/u,8834051,100.00,,
CPU0,3,,cpu/event=0x16,umask=0x20/u,8851835,100.00,,
CPU1,5,,cpu/event=0x16,umask=0x20/u,8833165,100.00,,
"""
METRIC = """CPU0,7383,,DATA_READ_OR_WRITE,8470936,100.00,0.9,%  l1_tlb_miss_ratio
CPU1,1272150,,DATA_READ_OR_WRITE,8470096,100.00,20.7,%  l1_tlb_miss_ratio
CPU0,70,,DATA_PAGE_WALK,8470936,100.00,,
CPU1,<not counted>,,DATA_PAGE_WALK,0,0.00,,
"""
# A card of 61 cores, whose own Linux begins with the last one
CPUINFO = "".join(f"processor\t: {cpu}\nsiblings\t: 244\ncore id\t\t: {(cpu - 1) // 4 % 61}\n"
                  "cpu cores\t: 61\n\n" for cpu in range(244))
FOLDED = "gt;main;inner 2\ntwo words;main;do_<it>_[k] 1\n"


def card_of(values, places=None, event="event"):
    counts = {cpu: draw.Count(value, 100.0) for cpu, value in values.items()}
    return draw.Card(event, counts, places)


def file_of(text):
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")


def stacks_of(text):
    """{event: {stack: (samples, weight)}}, all of which is understood"""
    stacks = draw.Stacks(draw.knc_script.Reader(file_of(text)))
    assert not [*stacks.reader.says()], text
    return {event: {stack: tuple(both) for stack, both in found.items()}
            for event, found in stacks.events.items()}


class TestDraw(ScriptTest):
    def draws(self, *args):
        return self.passes("knc-draw", *args)

    def refused(self, why, *args):
        self.refuses(why, 1, "knc-draw", *args)

    def test_draw_whole_card(self):
        """What has no count, is an estimate or is not understood, in both pictures"""
        status, out, err = self.run_it("knc-draw", "card", "--svg=svg", self.path("x", INTERVALS))
        assert (status, out) == (0, PICTURE) and "CPU 0 is the last core's" in err
        svg = Path("svg").read_text()
        assert re.findall('<g><.*</g>', svg) == [
            '<g><title>core 0, CPU 0, 1, -: 2,483,016; no count; no count</title>'
            '<path d="M7 0V14" stroke="#fde725"/><path d="M7 15V44" stroke="#eee"/>'
            '<path d="M0 15l14 14m0 -14l-14 14M0 30l14 14m0 -14l-14 14" '
            'stroke="#999" stroke-width="1" stroke-dasharray="none"/></g>',
            '<g><title>core 1, CPU -, 5, 6: no count; 1,116,089; '
            '~900,001</title><path d="M22 0V14" stroke="#eee"/><path d="M22 15V29" stroke="#25848e"/>'
            '<path d="M22 30V44" stroke="#2e6e8e"/><path d="M15 0l14 14m0 -14l-14 14" '
            'stroke="#999" stroke-width="1" stroke-dasharray="none"/></g>']
        assert re.findall('<text x="22" y="1..">(.*)</text>', svg) == \
            NOTES.replace("x", "crossed out", 1).splitlines()
        # Brighter is more.
        light = [sum(c * w for c, w in zip(draw.colour(i / 50), (3, 6, 1))) for i in range(51)]
        assert light == sorted(light)

    def test_draw_metric_by_its_name(self):
        """Its unit stands before it; without one of its events it is no number."""
        out = self.draws("card", self.path("csv", METRIC), "--topology",
                          self.path("cpus", CPUINFO), "--show", "l1_tlb_miss_ratio")
        assert "l1_tlb_miss_ratio: 61 cores" in out and "] 0.9 %\nmost:  core 60 thread 0: 0.9\n" in out

    def test_draw_forms_of_perf_stat(self):
        """Commas in names, a decimal comma, whatever separates the fields, a column for the cgroup,
        and intervals, which are added; two events of one name are no sum."""
        both = {"cycles": {0: (7, 45), 1: (9, 100)}, "GHz": {0: (0.014, 45)}}
        for text, want in (
                # A metric is as good as the worse of its events, and none without one of them
                (STAT, {"cycles": {0: (2483009, 45), 1: (None, 0), 5: (1116089, 42)},
                        "instructions": {0: (212638, 37), 1: (96321, 40), 5: (1616659, 40)},
                        "GHz": {0: (0.014, 37), 5: (0.007, 40)},
                        "insn per cycle": {0: (0.09, 37), 1: (None, 0), 5: (1.45, 40)},
                        "stalled cycles per insn": {0: (0.03, 37)}}),
                (TWO_MASKS, {"cpu/event=0x16,umask=0x0/u": {0: (579, 100), 1: (1801168, 100)},
                             "cpu/event=0x16,umask=0x20/u": {0: (3, 100), 1: (5, 100)}}),
                ("CPU0,7,,cycles,34759934,45,00,0,014,GHz\nCPU1,9,,cycles,1,100,00,,\n", both),
                ("CPU0;7;;cycles;34759934;45,00;0,014;GHz\nCPU1;9;;cycles;1;100,00;;\n", both),
                ("     1,000123,CPU3,1,50,msec,task-clock,user.slice/a b,1500000,100,00,0,002,CPUs\n"
                 "     1,000123,CPU3,7,,cpu/event=0x16,umask=0x0/u,/,8852721,100,00,,\n"
                 "     1,000123,CPU3,8,,cpu/event=0x16,umask=0x0/u,,8852721,100,00,,\n",
                 {"task-clock user.slice/a b": {3: (1.5, 100)},
                  "cpu/event=0x16,umask=0x0/u /": {3: (7, 100)},
                  "cpu/event=0x16,umask=0x0/u": {3: (8, 100)}}),
                # With the sum of all intervals (--summary --no-csv-summary)
                ("     1.0,CPU3,10,,cycles,1,100.00,0.5,GHz\n     2.0,CPU3,32,,cycles,1,60.00,0.6,GHz\n"
                 "     2.0,CPU4,<not supported>,,cycles,0,100.00,,\n"
                 "     1.0,CPU5,10,,cycles,1,100.00,,\n     2.0,CPU5,<not counted>,,cycles,0,0.00,,\n"
                 "CPU3,42,,cycles,2,80.00,,\nCPU5,10,,cycles,1,100.00,,\n",
                 {"cycles": {3: (42, 60), 4: (None, 0), 5: (10, 0)}})):
            for ends in "\n", "\r\n":
                others = []
                found, units, twice = draw.read_stat(text.replace("\n", ends).splitlines(True), others)
                assert (found, twice, others) == (want, set(), []), text
                assert not units.get("insn per cycle"), units
        same = self.path("same", TWO_MASKS.replace("0x20", "0x0"))
        self.refused("several by the name cpu/event=0x16,umask=0x0/u", "card", same)

    def test_draw_json(self):
        """JSON, with a decimal comma, nan and 0; what is damaged is named"""
        whole = ('{"interval" : 1.5, "counter-value" : "2,5", "unit" : "ms", "event" : "x", "cgroup" : "/", '
                 '"event-runtime" : 7, "pcnt-running" : 45,00, "metric-value" : -nan, "metric-unit" : "m"}')
        csv = "1.5;2,5;ms;x;/;7;45,00"
        for line, want in ((whole, f"{csv};nan;m"), (whole.replace("-nan", '"0.0"'), csv),
                           ('{"metric-value" : 0.3, "metric-unit" : "m"}', ";;;;0.3;m"),
                           (whole[:-1], ""), (whole.replace("7", "x"), ""), ('{"a" : ' * 99999, "")):
            others = []
            found = [*draw.knc_perf.read([line], others=others)]
            assert found == [*draw.knc_perf.read([want])] and others == [line[:60]] * (not want), line

    def test_draw_topology(self):
        places = draw.knc_card.read_topology(CPUINFO)
        card = card_of({cpu: cpu for cpu in range(244)}, places)
        assert (card.cores, card.threads) == (61, 4)
        assert [[card.cells[n, t] for t in range(4)] for n in (60, 0)] == \
            [[0, 241, 242, 243], [1, 2, 3, 4]]
        # Those that were not counted are there all the same.
        assert card_of({242: 7}, places).cells == {(60, 2): 7}

        # If one is offline, the others of its core stay in their places, or there is no place.
        places = draw.knc_card.read_topology("".join(
            block + f"\napicid\t\t: {(cpu - 1) % 244}\n\n"
            for cpu, block in enumerate(CPUINFO.split("\n\n")[:244]) if cpu not in (2, 241)))
        assert (places[1], places[3], places[0]) == ((0, 0), (0, 2), (60, 3))
        assert draw.knc_card.read_topology(CPUINFO.partition("\n\n")[2]) == {}

    def test_draw_what_knc_host_prints(self):
        """The card's name is before each line; of two cards it is not one picture."""
        cpus = self.path("cpus", CPUINFO)
        plain = self.draws("card", "--topology", cpus, self.path("stat", STAT))
        lines = "".join(f"mic0,{line}" for line in STAT.splitlines(True))
        assert self.draws("card", "--topology", cpus, self.path("stat", lines)) == plain
        self.refused("it has the counts of mic0 and mic1", "card",
                     self.path("both", lines + lines.replace("mic0", "mic1")))

    def test_draw_text_of_a_card(self):
        """Cores that have no room are below."""
        values = {cpu: 1 for cpu in range(244)} | {51: 1000, 200: None}
        for columns, place, bands in (80, 12, 1), (40, 12, 2):
            text = draw.text_card(card_of(values), columns, False)
            rows = re.findall("^thread . (.*)", text, re.M)
            assert len(rows) == 4 * bands and all(9 + len(row) <= columns for row in rows), text
            assert rows[3].find("@") == place, text
            assert rows[4 * bands - 4][50 - 31 * (bands - 1)] == "x", text

    def test_draw_book(self):
        """The book's picture is as it is drawn now; its text can be read where it is 400 pixels wide."""
        text = Path(f"{TOP}/Documentation/card.svg").read_text().partition("\n")[2]
        values = {int(cpu): int(value.replace(",", ""))
                  for cpus, those in re.findall(r", CPU (.*): (.*)</title>", text)
                  for cpu, value in zip(cpus.split(", "), those.split("; "))}
        card = card_of(values, event="instructions:u")
        assert text == draw.svg_card(card) and ">0 to 577k events; least" in text
        head = ElementTree.fromstring(text)
        assert 400 * int(head.get("font-size")) / int(head.get("width")) >= 11

    def test_draw_names(self):
        """Blanks, colons and parentheses in names; functions with an offset or without; no name"""
        assert stacks_of("gt 81 1.5: 9 x: \n\t 4a std::f<void (int)>::operator()(int) const (inlined)\n"
                           "\t 4a (anonymous namespace)::run (int) (/root/gt)\n") == {"x": {
            ("gt", "(anonymous namespace)::run (int)", "std::f<void (int)>::operator()(int) const"): (1, 9)}}
        for head, comm in (("my (old) job: 2  7", "my (old) job: 2"), (":-1  -1", ":-1"),
                           ("   7/7", "[no name]"), ("a\x1bb  7/8 [003]", "a?b")):
            for offset in ("+0x1f", ""):
                text = f"{head}  1.5:   30 r16:u: \n\t  40 f(int (*)(long)){offset} " \
                    f"(/opt/a b (2nd try)/c (deleted))\n\t 50 main{offset} (/opt/(x)/c)\n\n"
                assert stacks_of(text) == {"r16:u": {(comm, "main", "f(int (*)(long))"): (1, 30)}}

    def test_draw_other_fields(self):
        """With lines of the source, on one line; flags and dates; -L. Columns: test_perfs.py"""
        for text, event, stack, weight in (
                ("job 7 cycles: \n\t 40 f+0x1 (/c)\n  /s/f.c:12\n", "cycles", ("job", "f"), 1),
                ("   1.5:  30 cycles:u: \n\t 40 f+0x1 (/c)\n  c[40]\n", "cycles:u", ("f",), 30),
                # Behind an event by its number
                ("job   286     7.429589:        260 WALK:                0         5080021 |OP N/A|LVL N/A|SNP N/A|"
                 "TLB N/A|LCK N/A|BLK  N/A\n\t 40 f+0x1 (/c)\n", "WALK", ("job", "f"), 260),
                ("job cycles: \n\t 40 f\n", "cycles", ("job", "f"), 1),
                ("   job 7 1.5:  30 x:   40 f+0x1 (/c (2))\n", "x", ("job", "f"), 30),
                *((f"{head}x: \n\t 40 f+0x1 (/c)\n{below}", "x", ("job", "f"), 30) for head, below in (
                    ("job  7 U     2026-11-28 02:13:49.744051 1.5: 30 ", "        1f000\n"),
                    ("job 7/7 [001] KUH   d.h1. 1.5: 30 ", " 0x40/0x44/P/-/-/0 \n"),
                    ("job 7 2026-11-28 02:13:49.744051 30 ", " insn: 48 01\n"),
                    ("     job     7   1 1.5:         30 ", " N/A\n")))):
            assert stacks_of(text) == {event: {stack: (1, weight)}}, text

    def test_draw_what_repeats(self):
        """What is remembered and counted changes nothing, wherever the text is cut in pieces."""
        script = draw.knc_script
        heads = ("job {tid} {time}: {period} x: ", "   a  1 {tid} [003] {time}: {period} cycles:u: ",
                 "job {tid} {time}: x: ", "job         30 x: ", "0x{tid} {time}: 7 x: ",
                 "job{tid}  {tid}/{tid} {time}:    {period} y:   40 f+0x1 (/c)", "what is {tid}",
                 "job 7 {time}: PERF_RECORD_LOST lost 12", "{time}: {period} x: ", "# {time}: 1 x:",
                 "gone {end} {time}: 7 x: ", ":{end} {end} {time}: 7 x: ")
        below = ("", "\t 9 g (/c)\n", "\t 40 f+0x1 (/c)\n\t 50 main+0x{tid} (/d)\n", "\t 40 f+0x1 (/c)\n  /s/f.c:12\n",
                 "\t 40 f+0x1 (/c)\nodd\n", "\t 60 PERF_RECORD_LOST lost 1 (/d)\n", "\n", "   40 h\n",
                 "\t 60 k+0x2 (/c)\r\n", "\tno frame\n")
        ends, times = ("\n", "\n", ""), ("5", "500000")

        def read(text):
            reader, found = script.Reader(file_of(text)), {}
            for s in reader:
                found[s[:2], s.frames] = found.get((s[:2], s.frames), 0) + complex(s.count, s.weight)
            return [*found.items()], [*reader.says()], reader.lost, reader.is_cut

        def sample(draw, heads, below, ends, times):
            return (draw.choice(heads) + "\n" + draw.choice(below) + draw.choice(ends)).format(
                tid=draw.randrange(120), end=draw.randrange(9998, 10002), period=draw.randrange(80, 120),
                time=f"9.{draw.choice(times)}")

        for seed in random.sample(range(10 ** 9), 300):
            draws = random.Random(seed)
            some = [draws.sample(all_of, draws.choice((1, len(all_of)))) for all_of in (heads, below, ends, times)]
            text = "".join(sample(draws, *some) for _ in range(60))[:-draws.choice((1, 2, 9))]
            with mock.patch.object(script.Reader, "counts", lambda *_: False):
                want = read(text)
            with mock.patch.multiple(script, CHUNK=draws.choice((64, 100, 640, 1 << 20)),
                                     MOST_KINDS=draws.choice((0, 9, 999))):
                assert read(text) == want, seed

    def test_draw_left_out(self):
        """What is no sample, no count or not understood is left out, and said once, as is what perf
        says of the data; of cut data the status is 1. Forms of folded stacks"""
        sample = "job 7 1.1: 5 x:u: \n\t 40 f+0x1 (/c)\n\n"
        no_end = "the last line has no end: the file may be cut there"
        for text, stacks, *said in (
                ("# captured on    : today\n" + sample +
                 "job 7 1.2: PERF_RECORD_MMAP2 7/7: [0x40(0x1) @ 0 00:00 1 1]: r-xp /a b\n"
                 "   job 7 1.2: PERF_RECORD_LOST lost 12\nwhat is this\n\t 40 g+0x1 (/c)\n\n"
                 "job 7 [001] 1.3: sched:sched_switch: prev_comm=a: b ==> next_comm=c (d)\n"
                 "\t 50 h+0x1 ([kernel.kallsyms])\n\nand this\n", "job;f 5\n",
                 "2 records not understood and left out; the first is line 7: what is this",
                 "12 of 14 samples were lost"),
                (sample + "unexpected end of event stream\n", "job;f 5\n",
                 "the data is cut: it has 1 samples, and what came after them is missing"),
                (sample + "Warning:\nProcessed 366 events and lost 3 chunks!\n", "job;f 5\n",
                 "of 1 samples perf says: Processed 366 events and lost 3 chunks!"),
                (sample + "0x9 is not a known event\n", "job;f 5\n",
                 "of 1 samples perf says: 0x9 is not a known event"),
                (sample[:-2], "job;f 5\n", no_end), ("gt;a 5\ngt;b 12", "gt;a 5\ngt;b 12\n", no_end),
                ("\n# of July\n gt;main;a 100\r\ngt;main;b 50.5\r\n gt;main;b\t49.25\n",
                 "gt;main;a 100\ngt;main;b 99.75\n"),
                ("\ufeffgt;a 1e2\ngt;a .1\ngt;a .2\ngt;b 12345678901234567\n",
                 "gt;a 100.3\ngt;b 12345678901234567\n"),
                ("what is this\ngt;a 5\n", "gt;a 5\n",
                 "1 record not understood and left out; the first is line 1: what is this"),
                ("gt;thread 1 5\na::b 2\n", "a::b 2\ngt;thread 1 5\n"),
                ("gt;a 5\ngt;b -2\ngt;c 1e999\ngt;d\nc 3\rd 4\n", "gt;a 5\n",
                 "4 records not understood and left out; the first is line 2: gt;b -2")):
            status, out, err = self.run_it("knc-draw", "flame", "--folded", self.path("x", text),
                                           *["--show", "x"] * ("x:u" in text))
            assert (status, out) == (any("data is cut" in line for line in said), stacks), text
            assert err == "".join(f"knc-draw: {line}\n" for line in said), text
        for text, why in (("gt;a 1 2\ngt;b 3 0\n", "each stack has two counts, which is a difference"),
                          (sample[:-5], "the data is cut"),
                          *((tree, "indented") for tree in (
                              "a 9\n b 5\n", "a 9\n├─ b 5\n", "a 9\n|--b 5\n|  |--c 2\n", "a;x 9\n  a;y 5\n",
                              "m([La;)V 9\n f(La;)V 5\n", "job    30 \n\t 40 f+0x1 (/c)\n"))):
            self.refuses(why, 1, "knc-draw", "flame", self.path("x", text))

    def test_draw_kernel(self):
        """Modules and vmlinux are the kernel's, by name and by address; the vdso is not."""
        for file, address, mark in (
                ("[some_module]", 40, "_[k]"), ("/lib/modules/6.1/a/b.ko.xz", 40, "_[k]"),
                ("/usr/lib/debug/boot/vmlinux-6.1", 40, "_[k]"), ("bpf_prog_6", "ffffffffc0000010",
                "_[k]"), ("[guest.kernel.kallsyms]", 40, "_[k]"), ("[vdso]", "7ffff0", ""), ("[vsyscall]",
                "ffffffffff600000", ""), ("/opt/vmlinux/app", 40, ""), ("//anon", 40, "")):
            text = f"job 7 1.1: 5 x: \r\n\t {address} f+0x1 ({file})\r\n\t 50 g+0x1 (/c)\r\n\r\n"
            assert stacks_of(text) == {"x": {("job", "g", f"f{mark}"): (1, 5)}}, file

    def test_draw_flame(self):
        root = draw.tree(draw.read_stacks(file_of(FOLDED))[0][""])
        assert (root.total, root.below["gt"].total) == (3, 2)
        text = draw.text_flame(root, 80, "3 samples")
        assert re.search(r" 66\.7%  66\.7%  #+ +    inner\n", text), text
        assert text.index("gt") < text.index("two words")
        svg = draw.svg_flame(root, "a & b")
        boxes = {}
        for box in ElementTree.fromstring(svg).iterfind(f"{SVG}svg"):
            title = box.find(f"{SVG}title").text
            assert box.get("aria-label") == title
            boxes.setdefault(title.split(":")[0], [
                float(box.get(k).rstrip("%")) for k in ("x", "y", "width")])
        # Callees stand on their caller, and are as wide as their part of it.
        (gx, gy, gw), (ix, iy, iw) = boxes["gt"], boxes["inner"]
        assert gx == ix and iy < gy and gw / iw == approx(1, abs=0.005)
        assert boxes["all"][2] == 100 and gw == approx(100 * 2 / 3, abs=0.5)
        assert "do_<it>_[k]" in boxes

    def test_draw_weights(self):
        """A sample stands for as many events as its period says, also without a stack; so do folded
        stacks, for others and for us, with ";" and blanks in names."""
        text = "".join(f"a job 7 1.{n}: {period} x: \n\t 40 {name}+0x1 (/c)\n\t 50 main+0x1 (/c)\n\n"
                       for n, (period, name) in enumerate(((10, "f(a; b)"), (30, "g"), (960, "g"))))
        out = self.draws("flame", "--folded", self.path("x", text))
        assert out == "a job;main;f(a: b) 10\na job;main;g 990\n"
        assert stacks_of(out) == \
            {"": {("a job", "main", "f(a: b)"): (10, 10), ("a job", "main", "g"): (990, 990)}}
        self.refused("it has no y; it has x", "flame", "--show", "y", self.path("x"))
        out = self.draws("flame", self.path("x", text + "swapper 0 1.5: 1000 x: \n\n"))
        assert "4 samples of x;" in out
        assert re.search(r" 49\.5%  49\.5% .* g\n *0\.5%   0\.5% .* f\(a; b\)\n", out), out

    def test_draw_before(self):
        """What has more events than before is red, less is blue; what is gone is in the text"""
        before = self.path("before", b"p;main;a 60\np;main;b 40\np;old;c 100\n")
        after = self.path("after", b"p;main;a 90\np;main;b 10\np;main;d 40\n")

        def boxes():
            root = ElementTree.parse("out.svg").getroot()
            return {box.find(f"{SVG}title").text: box.find(f"{SVG}rect").get("fill")
                    for box in root.findall(f"{SVG}svg")}

        out = self.draws("flame", "--before", before, after, "--svg", "out.svg")
        assert "140 events; before 200" in out, out
        for words in ("50.0%   70.0%   +20.0%    main", "30.0%   45.0%   +15.0%      a",
                      "20.0%    5.0%   -15.0%      b", "0.0%   20.0%   +20.0%      d",
                      "50.0%    0.0%   -50.0%    old", "100.0%   70.0%   -30.0%  p"):
            assert re.search(rf"^ *{re.escape(words)}$", out, re.M), (words, out)
        fills = {tip.split(":")[0]: (tip, fill) for tip, fill in boxes().items()}
        assert fills["a"][0].endswith("; before 60, after 90: +30") and fills["a"][1][:3] == "#ff", fills
        assert fills["b"][1][-2:] == "ff" and fills["b"][1][:3] != "#ff" and "old" not in fills, fills
        same = self.draws("flame", "--before", before, before, "--svg", "out.svg")
        assert "100.0%  100.0%    +0.0%  p" in same and {*boxes().values()} == {"#ffffff"}
        self.refused("No such file", "flame", "--before", "no", after)
        # Folded stacks name no event: of two it is not known whose these are.
        two, second = (self.path(name, "".join(
            f"p 8/8 [000] 1.0: {n} {event}: \n\t4005d6 {name}+0x6 (/p)\n\n" for n, event, name in events))
            for name, events in (("two", ((7, "x:u", "a"), (5, "y:u", "b"))), ("second", ((5, "y:u", "b"),))))
        stacks = self.path("stacks", self.draws("flame", "--folded", second))
        for files in (two, stacks), (stacks, two):
            self.refused("has x:u, y:u, and folded stacks name no event: --show", "flame",
                         "--before", *files)
            out = self.draws("flame", "--show", "y:u", "--before", *files)
            assert "samples of y:u, 5 events; before 5;" in out and "100.0%  100.0%    +0.0%    b" in out, out
        assert "of y:u, 5 events; before 5" in self.draws("flame", "--before", stacks, second)
        self.refused("it has no x:u; it has y:u", "flame", "--before", second, two)
        self.refused("folded stacks name no event", "flame", "--show", "y", stacks)
        tenths = self.path("tenths", b"p;a .1\np;b .2\n")
        assert ", 0.3 events; before 200;" in self.draws("flame", "--before", before, tenths)

    def test_draw_command(self):
        stat = self.path("stat.csv", STAT)
        self.refuses("knc-draw: No space left on device", 1, "sh", "-c",
                     f"{TOP}/tools/knc-draw card {stat} >/dev/full")
        # A flame graph of one event
        script = self.path("script", "".join(
            f"gt 81 1.5: 100000 {event}: \n\t 0 [unknown] ([unknown])\n\n"
            for event in ("instructions:u", "instructions:u", "instructions", "cycles:u")))
        status, out, err = self.run_it("knc-draw", "flame", script)
        assert status == 0 and "2 samples of instructions:u;" in out
        assert "instructions:u, instructions, cycles:u" in err
        out = self.draws("flame", script, "--show", "cycles:u", "--svg", "svg")
        assert "1 samples of cycles:u;" in out and "[unknown]" in out
        assert ">1 samples of cycles:u<" in Path("svg").read_text()

    def test_draw_refuses(self):
        junk = b"\xff\xfe nothing\n"
        for text in (junk, "", "gt;main 0\n", '{\n  "$schema": "x",\n  "name": "y"\n}\n',
                     "[" * 10 ** 5, "job     7 odd 1.234567: 5 x:\n\t 40 f+0x1 (/c)\n",
                     "job 7 1.5: 5 x:   0 ffffffffa0000010 f (/c)\n",
                     "job 7 1.5: 5 x:   40 |OP N/A 0 f (/c)\n",
                     "a 1 28 02:13:49 1.5: 5 x:\n 40 f\n", "a 1 [2] 1.5: 5 U x:\n 40 f\n",
                     "0x108@p [0x50]: event: 69\n 40 f\n",
                     "a 1 1.5: 5 x:\n 40 f+0x1 (/c) cycles\n"):
            self.refused("there are no stacks in it", "flame", self.path("x", text))
        self.refused("each has the period 0", "flame",
                     self.path("x", "a 1 1.5: 0 x:   40 f+0x1 (/c)\na 1 1.5: 5 y:   40 f+0x1 (/c)\n"))
        self.path("junk", junk)
        for words, text, why in (
                ("", junk, "there is no line of a CPU in it"),
                ("", "CPU0,<not counted>,,cycles,0,0.00,,\n", "cycles: no CPU has counted it"),
                ("--show x", STAT, "it has no x; it has cycles"),
                ("", "CPU99999999,1,,cycles,1,100.00,,\n", "are no card"),
                ("--topology junk", STAT, "the topology has no core id")):
            self.refused(why, "card", *words.split(), self.path("x", text))
        self.refused("No such file", "card", "nosuch")
