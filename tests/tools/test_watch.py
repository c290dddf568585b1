# SPDX-License-Identifier: GPL-2.0-only
"""knc-host watch, with cards that are directories; tests/guest/watch has it with emulated ones."""
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lines import TOP, built, executable, once, quietly, until
from test_tools import knc_tables

# A card is a directory, where a shell runs the command. In its own session ssh has no terminal.
SSH = """#!/bin/sh
echo "$1" >>"$WORK/tries"
[ "$(cut -d ' ' -f 6 /proc/$$/stat)" = $$ ] || { echo "Password?" >&2; exit 255; }
cd "$WORK/$1" || exit 255
export PATH="$WORK:$PATH"
exec sh -c "$(echo "$2" | sed "s|/proc/||g; s|/sys/devices/system/cpu/||g; s|/sys/bus/event_source/devices/||g")"
"""
# The script of its turn may end it, or print counts; at last it waits for its program, if it
# has one, as perf does. The first interval of an event is in no sum.
PERF = r"""#!/bin/sh
[ "$2" != --list-opts ] || exit 0
interval()
{
	_time=$1
	shift
	for _event; do
		printf '     %s;%s;;\n' "$_time" "$_event" >&3
	done
}
turn=$(($(cat turn) + 1))
echo $turn >turn
echo $$ >>pids
echo "$*" >>given
[ ! -e $turn ] || . ./$turn
while [ $# -gt 0 ] && [ "$1" != sh ]; do shift; done
"$@"
[ ! -e last ] || . ./last
"""
# Of 4 CPUs
FIRST = "interval 0.1 '1;;instructions;4;100.00'\n"
CYCLES = "9007199254740990;;cycles;40000000000;100.00"
INSTRUCTIONS = "7;;instructions;40000000000;100.00"
COUNTED = f'interval 10.0 "{INSTRUCTIONS}"\n'
NAMES = {"events": "knc_events_total", "seconds": "knc_counted_seconds_total", "up": "knc_up",
         "last": "knc_last_interval_timestamp_seconds"}


class Watch:
    def __init__(self, work):
        self.work, self.file, self.said = work, work / "knc.prom", work / "said"
        executable(work / "ssh", SSH)
        executable(work / "perf", PERF)
        self.process = None

    def card(self, name, *turns, **files):
        """A card with these files; turns are what perf does at each start, "last" at the end"""
        (self.work / name).mkdir()
        files = {"online": "0-2,8\n", "turn": "0", **files, **dict(zip("123456789", turns))}
        for file, text in files.items():
            (self.work / name / file).write_text(text)

    def command(self, *args):
        return [f"{TOP}/tools/knc-host", "watch", "--prefix", f"{self.work}/ssh {{}}", *args]

    def start(self, *args, share=("--all",), patience=None):
        command = self.command("--textfile", self.file, *share, *args)
        if patience:
            command[:2] = [sys.executable, "-c", f"""import sys
sys.path.insert(0, "{TOP}/tools")
import knc_watch
knc_watch.QUIET = knc_watch.RETRY = {patience}
knc_watch.main()"""]
        with self.said.open("w") as said:
            # A job in the background ignores SIGINT, and so does what it starts.
            self.process = subprocess.Popen(
                ["env", "--default-signal=INT,HUP", *command], stderr=said, umask=0o077,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "WORK": str(self.work), "PYTHONWARNINGS": "default"})

    def value(self, card, what):
        """Of a line of the file, as Python writes it: up, or the events or seconds of an event"""
        name, _, event = what.partition(" ")
        event = f',event="{event or "instructions"}"' * (name != "up")
        line = re.escape(f'{NAMES[name]}{{card="{card}"{event}}} ')
        found = self.file.exists() and re.search(f"^{line}(.+)$", self.file.read_text(), re.M)
        return repr(float(found[1])).removesuffix(".0") if found else None

    def has(self, card, values):
        assert {what: self.value(card, what) for what in values} == values

    def until(self, card, what, value, seconds=40):
        until(lambda: self.value(card, what) == value or self.process.poll() is not None, seconds,
              lambda: (self.file.read_text(), self.said.read_text()))
        assert self.value(card, what) == value, self.said.read_text()

    def until_said(self, words):
        until(lambda: words in self.said.read_text(), why=self.said.read_text)

    def says(self, *lines):
        said = re.findall(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d knc-host watch: (.*)$|^(.*)$",
                          self.said.read_text(), re.M)
        assert [text or other for text, other in said if text or other] == [*lines]

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(20)

    def ends(self, *lines):
        """It has said no more than this."""
        assert self.end() == 0
        self.says(*lines)

    def leaves_nothing(self):
        """The processes on the cards end soon."""
        pids = [pid for path in self.work.glob("*/pids") for pid in path.read_text().split()]
        assert pids
        # One of which only its status is left has no program.
        until(lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in pids), 20)


@pytest.fixture
def watch(tmp_path):
    made = Watch(tmp_path)
    yield made
    if made.process and made.process.poll() is None:
        made.process.kill()
        made.process.wait()


@once
def promtool():
    """Debian 12 has it in the package of Prometheus."""
    names = subprocess.run(["apt-cache", "pkgnames", "promtool"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split()
    package = "promtool" if "promtool" in names else "prometheus"
    return f"{built('build-programs', package)}/usr/bin/promtool"


def test_watch_adds(watch):
    """Whole sums beyond what a double has; seconds of the card, not of its CPUs"""
    watch.card("mic0", "".join(f'interval {i}0.0 "{CYCLES}" "{INSTRUCTIONS}"\n' for i in (0, 1, 2)),
               last='interval 20.1 "1;;cycles;4;100.00" "0;;instructions;4;100.00"\n'
                    'interval 22.5 "1;;cycles;10000000000;100.00" '
                    '"1;;instructions;10000000002;100.00"\n')
    watch.card("root@mic-1.b_c",
               'interval 5.0 "9;;cycles;4;100.00" "9;;instructions;4;100.00"\n'
               'interval 10.0 "5;;cycles;3;0.01" "0;;instructions;8;99.99"\n')
    watch.start("mic0", "root@mic-1.b_c")
    watch.until("mic0", "events cycles", str(2.0 ** 54 - 4))
    watch.until("root@mic-1.b_c", "events cycles", "5")
    watch.has("mic0", {"events": "14", "seconds cycles": "20", "up": "1"})
    watch.has("root@mic-1.b_c", {"events": "0", "seconds": "2e-09"})
    assert 0 <= time.time() - float(watch.value("mic0", "last cycles")) < 20
    given = (watch.work / "mic0/given").read_text()
    assert "stat -x; -a --no-scale --log-fd 3 -e cycles:u,instructions:u -I 10000 sh -c" in given
    watch.ends()
    watch.leaves_nothing()
    # What was counted last is not lost, and the file says that nobody counts.
    watch.has("mic0", {"events cycles": str(2.0 ** 54 - 2), "seconds": "22.500000001",
                       "up": "0"})


def test_watch_promtool(watch):
    """promtool minds nothing about the file, as it is at first and later"""
    program = promtool()
    watch.card("mic0", r"""sleep 1
interval 1.0 '1;;cpu/config=0x16,name=a"\b/;40000000000;100.00'
interval 2.0 '1;;cpu/config=0x16,name=a"\b/;40000000000;100.00'
""")
    watch.start("mic0", "-e", "r16")
    for wanted in "01":
        watch.until("mic0", "up", wanted)
        subprocess.run([program, "check", "metrics"], check=True,
                       stdin=watch.file.open(), capture_output=True)
    assert 'event="cpu/config=0x16,name=a\\"\\\\b/"} 1.0' in watch.file.read_text()


def rules(interval):
    return quietly(f"{TOP}/tools/knc-host", "watch", "--rules", "-I", str(1000 * interval))


def test_watch_metrics():
    """The bytes that the rules count are those of the tables; cycles promtool counts below."""
    metrics = {m.name: m for m in knc_tables.load()[1]}
    assert metrics["memory_read_bytes"].expr == "64 * (%s)" % " + ".join(
        name.upper() for name in re.findall(r'event="(\w+)"', rules(10).partition("64 * (")[2]))


# A card's counts in a second
RATES = {"cycles:u": 10 ** 9, "instructions:u": 5 * 10 ** 8, "l2_data_read_miss_mem_fill": 10 ** 6,
         "l2_data_write_miss_mem_fill": 2 * 10 ** 6, "hwp_l2miss": 3 * 10 ** 6}


def panels(window):
    """The queries of Grafana's dashboard, and of how many series of @cards each has values"""
    board = json.loads(Path(TOP, "Documentation/examples/knc-dashboard.json").read_text())
    for query in (target["expr"] for panel in board["panels"] for target in panel["targets"]):
        yield query.replace("$window", window), lambda cards, query=query: \
            cards if "card:" in query else 3 * len(RATES) if "_last_" in query else 1


def series(interval, scrape, end, away=(0, 0), restart=0):
    """At each scrape (seconds counted, a tenth of all; when; knc_up); restart begins at 0 again"""
    found, counted, last, up = [], 0, 0, 1
    for now in range(0, end, scrape):
        if last < restart <= now:
            counted = 0
        for at in range((last // interval + 1) * interval, now + 1, interval):
            up = int(not away[0] <= at < away[1])
            if up:
                counted, last = counted + interval / 10, at
        found.append((counted, last, up))
    return zip(*found)


@pytest.mark.parametrize("interval, scrape, window", (
    (1, 120, "5m"), (60, 30, "5m"), (600, 60, "50m"), (3600, 300, "5h")))
def test_watch_rules(interval, scrape, window):
    """A card that is away, or counted anew, spoils no sum; no alert is for cards that count"""
    span = {"m": 60, "h": 3600}[window[-1]] * int(window[:-1])
    end = 9 * span
    lines, checks, alerts = [], [], []
    for card, (counted, last, up) in (
            ("mic0", series(interval, scrape, end)),
            ("mic1", series(interval, scrape, end, away=(3 * span, 6 * span))),
            ("mic2", series(interval, scrape, end, restart=5 * span + 7))):
        for event, rate in RATES.items():
            of = f'{{card="{card}",event="{event}"}}'
            lines += [(f"knc_events_total{of}", [int(rate * x) for x in counted]),
                      (f"knc_counted_seconds_total{of}", counted),
                      (f"knc_last_interval_timestamp_seconds{of}", last)]
        lines.append((f'knc_up{{card="{card}"}}', up))
    rate = f"card_event:knc_events:rate{window}"
    for at, cards in ((2 * span, 3), (5 * span + span // 2, 2), (8 * span, 3)):
        checks += [{"expr": query, "eval_time": f"{at}s", "exp_samples": [
            {"labels": "{}", "value": value}]} for query, value in (
                (f'round(sum(max_over_time({rate}{{event="cycles:u"}}[{4 * scrape}s])) / 1e6)', 1000 * cards),
                (f'count({rate}{{event="cycles:u"}})', cards),
                (f"count(card:knc_cycles_per_instruction:rate{window})", cards),
                (f"round(avg(card:knc_cycles_per_instruction:rate{window}), 0.01)", 2),
                (f"round(avg(card:knc_memory_read_bytes:rate{window}) / 1e6)", 64 * 6),
                *((f"count({query})", count(cards)) for query, count in panels(window)))]
        alerts.append({"alertname": "KncNotCounted", "eval_time": f"{at}s", "exp_alerts": [
            {"exp_labels": {"card": "mic1", **of}} for of in (
                {}, *({"event": event} for event in RATES))] if cards == 2 else []})
    Path("rules.yml").write_text(rules(interval))
    # JSON is YAML.
    Path("test.yml").write_text(json.dumps({
        "rule_files": ["rules.yml"], "evaluation_interval": f"{scrape}s", "tests": [{
            "interval": f"{scrape}s", "promql_expr_test": checks, "alert_rule_test": alerts,
            "input_series": [{"series": name, "values": " ".join(map(str, values))}
                             for name, values in lines]}]}))
    quietly(promtool(), "test", "rules", "test.yml")


def test_watch_goes_and_returns(watch):
    """Counters stay, and go on; said once; and nothing is left in the process"""
    watch.card("mic0", f"{FIRST}{COUNTED}until [ -e end ]; do sleep 0.1; done\n"
               "echo lost >&2\nexit 1\n",
               "echo again >&2\nexit 1\n", COUNTED)
    watch.card("mic1", COUNTED)
    watch.start("mic0", "mic1", "-e", "instructions")
    for name in ("mic0", "mic1"):
        watch.until(name, "up", "1")
    process = f"/proc/{watch.process.pid}"
    files = len(os.listdir(f"{process}/fd"))
    (watch.work / "mic0/end").touch()
    watch.until("mic0", "up", "0")
    watch.has("mic0", {"events": "7"})
    watch.until("mic0", "events", "14")
    watch.has("mic0", {"seconds": "20", "up": "1"})
    watch.has("mic1", {"up": "1"})
    assert len(os.listdir(f"{process}/fd")) == files
    assert len(Path(f"{process}/task/{watch.process.pid}/children").read_text().split()) == 2
    watch.ends("mic0 does not count: lost; trying again", "mic0 counts again")


def test_watch_not_reached(watch):
    """A card that comes late, one that counts for moments, one that does not listen, and no ssh"""
    watch.card("mic1", *[f'interval 10.0 "{CYCLES}"\nexit 1\n'] * 9)
    watch.start("mic0", "mic1", "-e", "cycles")
    watch.until_said("trying again")
    time.sleep(6)
    # After 0, 1, 3 and 7 seconds
    tries = (watch.work / "tries").read_text()
    assert {tries.count("mic0"), tries.count("mic1")} <= {3, 4}, tries
    watch.card("mic0", f'interval 10.0 "{CYCLES}"\n')
    watch.until("mic0", "up", "1")
    assert watch.end(signal.SIGINT) == 0
    said = "".join(re.findall(r".* mic0 .*\n", watch.said.read_text()))
    assert re.fullmatch(r".* mic0 does not count: .*mic0.*; trying again\n.* mic0 counts again\n",
                        said), said
    for prefix, why in (("""sh -c 'exec <&-; echo cpus 0; echo "1;7;;cycles;4;100"
            echo "1;7;;instructions;4;100"; sleep 0.2; echo lost >&2; exit 1' {}""", "lost"),
                        ("/no/such/ssh {}", "/no/such/ssh: No such file or directory")):
        watch.start("mic0", "--prefix", prefix)
        watch.until_said("trying again")
        watch.ends(f"mic0 does not count: {why}; trying again")


def test_watch_silent(watch):
    """A card that hangs is left, and keeps no other from being counted"""
    watch.card("mic0", f'{FIRST}interval 0.2 "{INSTRUCTIONS}"\n'
                       'interval 0.3 "0;;instructions;4;100.00"\nexec sleep 1000\n',
               f'interval 0.1 "{INSTRUCTIONS}"\n')
    watch.card("mic1", f"""while sleep 0.5; do
interval $((i += 1)).0 "{INSTRUCTIONS}"
done &
trap "kill $!" EXIT
""")
    watch.start("mic0", "mic1", "-e", "instructions", "-I", "100")
    watch.until("mic0", "events", "7")
    began = time.monotonic()
    watch.until("mic0", "up", "0", 60)
    # Three intervals, and 15 seconds
    assert 14 < time.monotonic() - began < 40
    assert int(watch.value("mic1", "events")) >= 7 * 10
    watch.until("mic0", "events", "14")
    watch.ends("mic0 does not count: it is silent; trying again", "mic0 counts again")
    watch.leaves_nothing()


def test_watch_garbage(watch):
    watch.card("mic0", f"""echo "Welcome to mic0" >&3
echo "cpus 3-2" >&3
echo "     5.0;12;;insn" >&3
head -c 300000 /dev/urandom | tr -d ';' >&3
echo >&3
echo '# started' >&3
interval 9.0 "0;;instructions;4;100.00" "<not counted>;;branches;0;0.00" "<not supported>;;r80016;0;100.00"
interval 10.0 "{INSTRUCTIONS}" "<not counted>;;branches;0;0.00" "<not supported>;;r80016;0;100.00"
interval 20.0 "{INSTRUCTIONS}" "9;;branches;20000000000;50.00" "<not supported>;;r80016;0;100.00"
interval 25.0 "0;;instructions;4;100.00" "9;;branches;20000000000;50.00" "<not supported>;;r80016;0;100.00"
interval 30.0 "{INSTRUCTIONS}"
printf '     30.0;1000;;branches;100' >&3
exit 3
""", f'{COUNTED}interval 20.0 "{INSTRUCTIONS}"\n')
    watch.start("mic0", "-e", "{instructions,branches},r80016")
    watch.until("mic0", "events", "28")
    watch.has("mic0", {"events branches": "9", "seconds branches": "5",
                       "events r80016": None})
    watch.ends("mic0: branches is not counted", "mic0: r80016 is not supported",
               "mic0: branches is counted",
               "mic0 does not count: status 3; trying again", "mic0 counts again")


def test_watch_models(watch):
    """What an emulated card has no model of is not exported as 0, by its own names either"""
    counts = " ".join(f'"0;;{name};40000000000;100.00"' for name in ("snp_hitm_bunit:u", "mine"))
    for name, model in (("mic0", "KNC (emulated)"), ("mic1", "0b/01")):
        watch.card(name, f"interval 5.0 {counts} '{INSTRUCTIONS}'\n"
                   f"interval 10.0 {counts} '{INSTRUCTIONS}'\n",
                   cpuinfo=f"processor\t: 0\nmodel name\t: {model}\n")
    watch.start("mic0", "mic1", "-e", "snp_hitm_bunit:u,cpu/event=0x0a,name=mine/,instructions")
    for name, value in (("mic0", None), ("mic1", "0")):
        watch.until(name, "events", "7")
        watch.has(name, {"events snp_hitm_bunit:u": value, "events mine": value})
    watch.ends("mic0: snp_hitm_bunit:u is not modelled", "mic0: mine is not modelled")


def test_watch_turns(watch):
    """The cards' own kernel takes no turns on a CPU that sleeps."""
    for name, release in (("mic0", "2.6.38.8+mpss3.5"), ("mic1", "6.1.0")):
        watch.card(name, "".join(f'interval {i}.0 "{INSTRUCTIONS}" "9;;branches;20000000000;50.00"\n'
                                 for i in (1, 2)), release=release)
    executable(watch.work / "uname", "#!/bin/sh\ncat release\n")
    watch.start("mic0", "mic1", "-e", "instructions,branches")
    watch.until("mic1", "events branches", "9")
    watch.until_said("mic0 does not count: branches takes turns, which Linux 2.6.38 counts wrongly")
    assert watch.end() == 0 and watch.value("mic0", "events branches") is None


def test_watch_untrue(watch):
    """What is no count of an event is said, and not counted."""
    watch.card("mic0", "interval 1.0 '1;;cycles;4;100.00' '2;;cycles;4;100.00'\n")
    watch.card("mic1", "interval 1.0 '2;ns;duration_time;4;100.00'\n")
    watch.start("mic1", "-e", "cycles,task-clock")
    watch.until_said("mic1 does not count: duration_time: perf prints no number of events")
    assert watch.end() == 0
    assert not re.search("^knc_events_total.* [1-9]", watch.file.read_text(), re.M)
    # Two events of one name: it ends, and does not try again.
    watch.start("mic0", "-e", "cycles,cpu/event=0x2a,name=cycles/")
    assert watch.process.wait(60) == 1
    watch.says("knc-host watch: error: cycles stands twice in -e")
    assert not re.search("^knc_events_total.* [1-9]", watch.file.read_text(), re.M)


def test_watch_killed(watch):
    """However it ends, nothing is left on the cards, and a new one begins at 0."""
    watch.card("mic0", FIRST + COUNTED, f"until [ -e begin ]; do sleep 0.1; done\n{FIRST}{COUNTED}")
    watch.start("mic0", "-e", "instructions")
    watch.until("mic0", "events", "7")
    watch.end(signal.SIGKILL)
    watch.leaves_nothing()
    watch.start("mic0", "-e", "instructions")
    watch.until("mic0", "up", "0")
    (watch.work / "mic0/begin").touch()
    watch.until("mic0", "events", "7")
    watch.ends()


def test_watch_disk_full(watch):
    """Counting goes on, and what was counted is written later."""
    between, begin = (watch.work / name for name in ("knc.prom.tmp", "mic0/begin"))
    watch.card("mic0", f"""until [ -e begin ]; do sleep 0.1; done
{FIRST}{COUNTED}until [ ! -e begin ]; do sleep 0.1; done
interval 20.0 "{INSTRUCTIONS}"
""")
    watch.start("mic0", "-e", "instructions")
    watch.until("mic0", "up", "0")
    between.symlink_to("/dev/full")
    begin.touch()
    watch.until_said("No space left on device")
    assert watch.value("mic0", "events") is None
    between.unlink()
    begin.unlink()
    watch.until("mic0", "events", "14")
    watch.ends(f"{watch.file}: No space left on device; counting goes on",
               f"{watch.file} is written again")


def test_watch_refuses(watch):
    def refuses(why, *args, file="x.prom"):
        done = subprocess.run([*watch.command(*args), *["--textfile", file] * (file != "")],
                              check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode and not done.stdout and why in done.stderr, done.stderr
        assert "Traceback" not in done.stderr and not os.path.exists("x.prom"), done.stderr
        return done.returncode

    twice = "cpu/event=0x2a,umask=0/u"
    for why, *args in (
            ("which CARD",), ("mic0 stands twice", "mic0", "mic1", "mic0"),
            ("mic0;reboot: no name of a card", "mic0;reboot"), ("no name of a card", "mic0\nmic1"),
            ("-I: 1000 to 3600000 ms", "mic0", "-I", "99"),
            ("invalid int value", "mic0", "-I", "often"),
            ("--prefix: invalid split value", "mic0", "--prefix", "ssh '"),
            ("several cards: --prefix needs {}", "mic0", "mic1", "--prefix", "phi run sh -c"),
            (f"-e: {twice} stands twice", "mic0", "-e", f"{{{twice},cycles}}", "-e", twice)):
        refuses(why, *args)
    for why, file in (("--textfile", ""), ("/no/such/x.prom: No such file", "/no/such/x.prom"),
                      ("/: Is a directory", "/")):
        refuses(why, "mic0", file=file)
    watch.card("mic0")
    watch.start("mic0")
    watch.until("mic0", "up", "0")
    assert watch.file.stat().st_mode & 0o777 == 0o644
    # What is not there is written by that watch, too; and a card has one, by any way to it.
    watch.file.unlink()
    assert refuses("another watch writes it", "mic1", file=watch.file) == 1
    assert refuses("mic0: another watch counts on it", "mic1", "mic0", file="/tmp/x.prom") == 1
    assert refuses("mic0: another watch counts on it", "mic0", "--prefix", "ssh -q {}") == 1
    assert watch.end(signal.SIGHUP) == 0


def test_watch_typo(watch):
    """perf's own error ends it, if the card has the driver, whose names perf knows then."""
    typo = "echo \"event syntax error: 'x'\" >&2\necho ' Usage: perf stat' >&2\nexit 129\n"
    watch.card("mic0", typo)
    watch.start("mic0", "-e", "x", share=())
    watch.until_said("mic0 does not count: event syntax error: 'x'; trying again")
    events_of = watch.work / "mic0/cpu/events"
    events_of.mkdir(parents=True)
    (events_of / "data_read").touch()
    (watch.work / "mic0/turn").write_text("0")
    assert watch.process.wait(30) == 1
    assert watch.said.read_text().endswith("knc-host watch: error: mic0: event syntax error: 'x'\n")


def test_watch_room(watch):
    """It counts a tenth of each interval, and not while others have events open."""
    count = f"interval 0.1 '{INSTRUCTIONS}'\n"
    # What was refused is tried again; counts between which CPUs have changed are not taken.
    watch.card("mic0", "interval 0.1 '<not supported>;;instructions;0;100.00'\n", count,
               count + "echo 0-1 >online\n", count,
               count + "mkdir -p 900/fd\nln -s 'anon_inode:[perf_event]' 900/fd/3\n", count)
    watch.start("mic0", "-e", "instructions", "-I", "1000", share=(), patience=2)
    watch.until_said("another process counts there")
    watch.until("mic0", "up", "0")
    watch.has("mic0", {"events": "14", "seconds": "40"})
    assert (watch.work / "mic0/turn").read_text() == "5\n"
    given = (watch.work / "mic0/given").read_text()
    assert given.count("-I 100 --interval-count 1\n") == 5
    (watch.work / "mic0/900/fd/3").unlink()
    watch.until("mic0", "events", "21")
    assert watch.value("mic0", "up") == "1"
    watch.ends("mic0: instructions is not supported", "mic0: instructions is counted",
               "mic0: another process counts there; its counters are left to it",
               "mic0 counts again")


def test_watch_begins_anew(watch):
    """perf that runs all the time is begun anew for other CPUs, and for an event without counts."""
    lacks = "interval {}.0 '1;;instructions;4;100.00' '<not counted>;;branches;0;0.00'\n"
    both = f"interval {{}}.0 '{INSTRUCTIONS}' '{INSTRUCTIONS.replace('instructions', 'branches')}'\n"
    watch.card("mic0", lacks.format(1), both.format(1) + both.format(2) + "echo 0-1 >online\n",
               both.format(1))
    watch.start("mic0", "-e", "instructions,branches", patience=1)
    watch.until("mic0", "seconds branches", "20")
    watch.ends("mic0: branches is not counted", "mic0: branches is counted",
               "mic0 does not count: CPUs 0-1 are online now; trying again", "mic0 counts again")


def test_watch_unit(watch):
    """What systemd's unit runs, with this checkout's knc-host and another file"""
    unit = Path(TOP, "Documentation/examples/knc-watch.service").read_text()
    program, *args = re.search(r"^ExecStart=(.*)$", unit, re.M)[1].split()
    assert program == "/usr/local/bin/knc-host" and args[0] == "watch"
    at = args.index("--textfile")
    assert args[at + 1].endswith(".prom")
    watch.card("mic0", f'interval 10.0 "{CYCLES}" "{INSTRUCTIONS}"\n')
    watch.start(*args[1:at], *args[at + 2:])
    watch.until("mic0", "up", "1")
    assert watch.end() == 0
