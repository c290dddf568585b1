# SPDX-License-Identifier: GPL-2.0-only
"""tools/knc-draw: the numbers in the pictures are those of perf."""
import re
import xml.etree.ElementTree as ElementTree

from common import ScriptTest, load

draw = load("knc-draw")
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
SYSFS = "".join(f"/sys/devices/system/cpu/cpu{cpu}/topology/core_id:{(cpu - 1) // 4 % 61}\n"
                for cpu in range(244))
CPUINFO = "".join(f"processor\t: {cpu}\nsiblings\t: 244\ncore id\t\t: {(cpu - 1) // 4 % 61}\n"
                  "cpu cores\t: 61\n\n" for cpu in range(244))
SCRIPT = """# a comment
gt     81   12.345678:     100000 instructions:u:
\t          401680 inner+0x12 (/root/gt)
\t          401700 main+0x5 (/root/gt)

gt     81   12.345679:     100000 instructions:u:
\t          401684 inner+0x16 (/root/gt)
\t          401700 main+0x5 (/root/gt)

two words    82/83   12.345680:     100000 instructions:
\tffffffff81000010 do_<it>+0x10 ([kernel.kallsyms])
\t          401700 main+0x5 (/root/gt)

gt     81   12.345681:     100000 cycles:u:
\t          401700 main+0x5 (/root/gt (deleted))
\t               0 [unknown] ([unknown])
"""
# Names as perf and the compiler have them
CPLUSPLUS = """
gt     81   12.345678:     100000 instructions:
\t          401680 call<int (*)(int)>+0x10 (/root/gt)

gt     81   12.345679:     100000 instructions:
\t          401690 call<int (*)(long)>+0x10 (/root/gt)

gt     81   12.345680:     100000 instructions:
\t          4016a0 std::function<void (int)>::operator()(int) const (inlined)
\t          4016a0 (anonymous namespace)::run (int) (/root/gt)
"""
FOLDED = "gt;main;inner 2\ntwo words;main;do_<it>_[k] 1\n"


def counts(values):
    return {cpu: draw.Count(value, 100.0) for cpu, value in values.items()}


def card_of(values, places=None):
    return draw.Card("event", counts(values), places)


def as_json(text):
    """The same lines as perf stat -j has them"""
    for line in text.splitlines():
        cpu, value, _, rest = line.split(",", 3)
        event, runtime, share, metric, name = rest.rsplit(",", 4)
        yield (f'{{"cpu" : "{cpu[3:]}", "counter-value" : "{value}", "unit" : "", "event" : '
               f'"{event}", "event-runtime" : {runtime}, "pcnt-running" : {share}, '
               f'"metric-value" : {metric or 0.0}, "metric-unit" : "{name or "(null)"}"}}\n')


class Draw(ScriptTest):
    def test_draw_reads_perf_stat(self):
        found, units, twice = draw.read_stat(STAT.splitlines(True))
        self.assertEqual(found["cycles"], {0: (2483009, 45), 1: (None, 0), 5: (1116089, 42)})
        self.assertEqual({cpu: count.value for cpu, count in found["instructions"].items()},
                         {0: 212638, 1: 96321, 5: 1616659})
        # As good as the worse of its events, and none without one of them
        self.assertEqual(found["insn per cycle"], {0: (0.09, 37), 1: (None, 0), 5: (1.45, 40)})
        self.assertEqual(found["stalled cycles per insn"], {0: (0.03, 37)})
        self.assertEqual((units["insn per cycle"], twice), ("", set()))

    def test_draw_adds_intervals(self):
        lines = ["     1.000123,CPU3,10,,cycles,1,100.00,0.5,GHz\n",
                 "     2.000456,CPU3,32,,cycles,1,60.00,0.6,GHz\n",
                 "     2.000456,CPU4,<not supported>,,cycles,0,100.00,,\n",
                 "     1.000123,CPU5,10,,cycles,1,100.00,,\n",
                 "     2.000456,CPU5,<not counted>,,cycles,0,0.00,,\n"]
        self.assertEqual(draw.read_stat(lines)[0],
                         {"cycles": {3: (42, 60), 4: (None, 0), 5: (10, 0)}})

    def test_draw_marks_estimates(self):
        """What had a counter for a part of the time is no count."""
        card = draw.Card("cycles", draw.read_stat(STAT.splitlines(True))[0]["cycles"])
        text, svg = draw.text_card(card, False, 80, False), draw.svg_card(card, False)
        self.assertIn("most:  core 0 thread 0: ~2.48M   core 1 thread 1: ~1.12M", text)
        self.assertIn(">core 1 thread 1 (CPU 5): ~1,116,089<", svg)
        for picture in (text, svg):
            self.assertIn("cycles (estimates)", picture)
            self.assertIn("~: estimates; 2 threads have counted 42 to 45 % of the time",
                          picture)
        exact = draw.text_card(card_of({0: 5}), False, 80, False)
        self.assertNotRegex(exact, "~|estimate")

    def test_draw_tells_events_apart(self):
        """An event has commas in its name; two of one name are no sum."""
        for lines in (TWO_MASKS.splitlines(True), as_json(TWO_MASKS)):
            found, _, twice = draw.read_stat(lines)
            self.assertEqual(
                {name: [values[cpu].value for cpu in (0, 1)] for name, values in found.items()},
                {"cpu/event=0x16,umask=0x0/u": [579, 1801168],
                 "cpu/event=0x16,umask=0x20/u": [3, 5]})
            self.assertEqual(twice, set())
        same = self.path("same", TWO_MASKS.replace("0x20", "0x0").encode())
        self.refuses("several by the name cpu/event=0x16,umask=0x0/u", 1, "knc-draw", "card", same)

    def test_draw_metric_by_its_name(self):
        """Its unit stands before it; without one of its events it is no number."""
        csv, topology = self.path("csv", METRIC.encode()), self.path("cpus", CPUINFO.encode())
        js = self.path("json", "".join(as_json(METRIC)).encode())
        for path in (csv, js):
            out = self.passes("knc-draw", "card", path, "--topology", topology,
                              "--show", "l1_tlb_miss_ratio")
            self.assertIn("l1_tlb_miss_ratio (%): 61 cores", out)
            self.assertIn("most:  core 60 thread 0: 0.9\n", out)
        # perf's JSON has this where it could compute none.
        nothing = list(as_json(METRIC.replace("0.9", "0.0").replace("20.7", "0.0")))
        self.assertEqual(draw.read_stat(nothing)[0]["l1_tlb_miss_ratio"],
                         {0: (None, 100), 1: (None, 0)})

    def test_draw_cores_and_threads(self):
        card = card_of({cpu: cpu for cpu in range(244)})
        self.assertEqual((card.cores, card.threads, card.missing()), (61, 4, 0))
        self.assertEqual(card.cells[12, 3], 51)

    def test_draw_topology(self):
        """A card's own system begins with the last core."""
        for text in (CPUINFO, SYSFS):
            places = draw.knc_card.read_topology(text)
            card = card_of({cpu: cpu for cpu in range(244)}, places)
            self.assertEqual((card.cores, card.threads), (61, 4))
            self.assertEqual([card.cells[60, t] for t in range(4)], [0, 241, 242, 243])
            self.assertEqual([card.cells[0, t] for t in range(4)], [1, 2, 3, 4])
            # Those that were not counted are there all the same.
            self.assertEqual(card_of({242: 7}, places).cells, {(60, 2): 7})

    def test_draw_warns_without_topology(self):
        stat, cpus = self.path("stat", STAT.encode()), self.path("cpus", CPUINFO.encode())
        status, _, err = self.run_it("knc-draw", "card", stat)
        self.assertEqual(status, 0)
        self.assertIn("CPU 0 is the last core's", err)
        self.assertIn("most:  core 60 thread 0: ~2.48M",
                      self.passes("knc-draw", "card", stat, "--topology", cpus))

    def test_draw_text_of_a_card(self):
        values = {cpu: 1 for cpu in range(244)} | {51: 1000, 200: None}
        text = draw.text_card(card_of(values), False, 80, False)
        rows = [line for line in text.splitlines() if line.startswith("thread ")]
        self.assertEqual(len(rows), 4)
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()), text)
        self.assertEqual([(i, row.find("@")) for i, row in enumerate(rows) if "@" in row],
                         [(3, len("thread 0 ") + 12)])
        self.assertEqual(rows[0][len("thread 0 ") + 50], "x")
        self.assertIn("most:  core 12 thread 3: 1k", text)
        self.assertIn("x: 1 threads have no count", text)
        narrow = draw.text_card(card_of(values), False, 40, False)
        self.assertTrue(all(len(line) <= 40 for line in narrow.splitlines()
                            if line.startswith("thread ")), narrow)
        self.assertEqual(narrow.count("thread 3 "), 2)

    def test_draw_logarithm(self):
        card = card_of({0: 1e9, 1: 1e6, 2: 0, 3: 1e2})
        self.assertEqual(card.share((0, 0), True), 1)
        self.assertAlmostEqual(card.share((0, 1), True), 0.5)
        self.assertEqual([card.share((0, t), True) for t in (2, 3)], [0, 0])
        self.assertAlmostEqual(card.share((0, 1), False), 0.001)

    def test_draw_picture_of_a_card(self):
        values = {cpu: cpu * 1000 for cpu in range(244)} | {200: None}
        root = ElementTree.fromstring(draw.svg_card(card_of(values), False))
        cells = {r.find(f"{SVG}title").text: r.get("fill")
                 for r in root.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None}
        self.assertEqual(len(cells), 243)
        self.assertEqual(cells["core 60 thread 3 (CPU 243): 243,000"], "#fde725")
        self.assertEqual(cells["core 0 thread 0 (CPU 0): 0"], "#440154")
        crossed = [g.find(f"{SVG}title").text for g in root.iter(f"{SVG}g")]
        self.assertEqual(crossed, ["core 50 thread 0 (CPU 200): no count"])

    def test_draw_brighter_is_more(self):
        light = [sum(c * w for c, w in zip(draw.colour(i / 50), (3, 6, 1)))
                 for i in range(51)]
        self.assertEqual(light, sorted(light))

    def test_draw_reads_stacks(self):
        stacks = {("gt", "main", "inner"): 2, ("two words", "main", "do_<it>_[k]"): 1}
        want = {"instructions:u": {("gt", "main", "inner"): 2},
                "instructions": {("two words", "main", "do_<it>_[k]"): 1},
                "cycles:u": {("gt", "[unknown]", "main"): 1}}
        self.assertEqual(draw.read_stacks(SCRIPT.splitlines(True)), want)
        self.assertEqual(draw.read_stacks(FOLDED.splitlines(True)), {"": stacks})

    def test_draw_reads_events_by_number(self):
        """Behind an event that perf has no name for stand what it has no value for."""
        lines = ["gt   286     7.429589:        260 WALK:                0         5080021 "
                 "|OP N/A|LVL N/A|SNP N/A|TLB N/A|LCK N/A|BLK  N/A\n",
                 "\t            169d fill+0x4d (/root/gt)\n",
                 "\t            14ff main+0xf (/root/gt)\n"]
        self.assertEqual(draw.read_stacks(lines), {"WALK": {("gt", "main", "fill"): 1}})

    def test_draw_names_of_functions(self):
        """Those of C++ have blanks and parentheses."""
        self.assertEqual(draw.read_stacks(CPLUSPLUS.splitlines(True))["instructions"], {
            ("gt", "call<int (*)(int)>"): 1, ("gt", "call<int (*)(long)>"): 1,
            ("gt", "(anonymous namespace)::run (int)",
             "std::function<void (int)>::operator()(int) const"): 1})

    def test_draw_flame_of_one_event(self):
        script = self.path("script", SCRIPT.encode())
        status, out, err = self.run_it("knc-draw", "flame", script)
        self.assertEqual(status, 0)
        self.assertIn("2 samples of instructions:u;", out)
        self.assertIn("instructions:u, instructions, cycles:u", err)
        svg = self.path("svg")
        status, out, _ = self.run_it("knc-draw", "flame", script, "--show", "cycles:u",
                                     "--svg", svg)
        self.assertIn("1 samples of cycles:u;", out)
        with open(svg, encoding="utf-8") as f:
            self.assertIn("where the samples are: 1 samples of cycles:u<", f.read())
        # Nothing is left out without a word.
        odd = self.path("odd", SCRIPT.encode() + b"\t  inner\n")
        self.refuses("line 17 is not of a stack", 1, "knc-draw", "flame", odd)

    def test_draw_flame(self):
        root = draw.tree(draw.read_stacks(FOLDED.splitlines(True))[""])
        self.assertEqual((root.total, root.below["gt"].total), (3, 2))
        text = draw.text_flame(root, 80, 0, "3 samples")
        self.assertRegex(text, r" 66\.7%  66\.7%  #+ +    inner\n")
        self.assertLess(text.index("gt"), text.index("two words"))
        svg = draw.svg_flame(root, "a & b")
        boxes = {}
        for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
            name = group.find(f"{SVG}title").text.split(":")[0]
            rect = group.find(f"{SVG}rect")
            boxes.setdefault(name, []).append(
                tuple(float(rect.get(k)) for k in ("x", "y", "width")))
        # Callees stand on their caller, and are as wide as their part of it.
        (gx, gy, gw), (ix, iy, iw) = boxes["gt"][0], boxes["inner"][0]
        self.assertAlmostEqual(gw / iw, 1, 2)
        self.assertEqual(gx, ix)
        self.assertLess(iy, gy)
        self.assertAlmostEqual(gw / boxes["all"][0][2], 2 / 3, 2)
        self.assertIn("do_<it>_[k]", boxes)
        self.assertEqual(svg, draw.svg_flame(root, "a & b"))

    def test_draw_command(self):
        stat, svg = self.path("stat.csv", STAT.encode()), self.path("card.svg")
        status, out, _ = self.run_it("knc-draw", "card", stat, "--show", "instructions",
                                     "--svg", svg)
        self.assertEqual(status, 0)
        self.assertIn("most:  core 1 thread 1: ~1.62M", out)
        self.assertNotIn("\x1b", out)
        with open(svg, encoding="utf-8") as f:
            self.assertIn("1,616,659", f.read())
        status, out, _ = self.run_it("knc-draw", "card", stat, "--colour", "yes")
        self.assertEqual((status, len(re.findall("\x1b.48;2", out)) > 3), (0, True))

    def test_draw_refuses(self):
        junk = self.path("junk", b"\xff\xfe nothing\n")
        for args, content, why in (
                (["card"], junk, "there is no line of a CPU in it"),
                (["flame"], junk, "line 1 is not of a stack"),
                (["flame"], self.path("empty", b""), "there are no stacks in it"),
                (["card"], self.path("none", b"CPU0,<not counted>,,cycles,0,0.00,,\n"),
                 "cycles: no CPU has counted it"),
                (["card", "--show", "x"], self.path("s", STAT.encode()),
                 "it has no x; it has cycles"),
                (["card"], self.path("big", b"CPU99999999,1,,cycles,1,100.00,,\n"),
                 "are no card"),
                (["card", "--topology", junk], self.path("s"), "the topology has no core id"),
                (["card"], self.path("nosuch"), "No such file")):
            self.refuses(why, 1, "knc-draw", *args, content)
