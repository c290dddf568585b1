# SPDX-License-Identifier: GPL-2.0-only
"""knc-host watch, with cards that are directories, and a perf that prints what a test wants.
tests/guest/watch has it with emulated cards.
"""
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lines import TOP, built, once

sys.path.insert(0, f"{TOP}/tools")
import knc_tables  # noqa: E402

# A card is a directory; a shell runs the command there, as ssh's does. In its own session
# ssh has no terminal to ask at.
SSH = """#!/bin/sh
echo "$1" >>"$WORK/tries"
[ "$(cut -d ' ' -f 6 /proc/$$/stat)" = $$ ] || { echo "Password?" >&2; exit 255; }
cd "$WORK/$1" || exit 255
export PATH="$WORK:$PATH"
exec sh -c "$(echo "$2" | sed "s|/proc/||g")"
"""
# Another way to the card: it runs a command as it stands, and knows no card's name.
PHI = """#!/bin/sh
[ "$#: $1 $2 $3" = "4: run sh -c" ] && exec "$WORK/ssh" mic0 "$4"
"""
# The script of its turn may end it, or print counts; at last it waits as perf does for cat.
PERF = r"""#!/bin/sh
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
cat
[ ! -e last ] || . ./last
"""
# Of 4 CPUs
CYCLES = "9007199254740991;;cycles;40000000000;100.00"
INSTRUCTIONS = "7;;instructions;40000000000;100.00"


def runs(pid):
    """It is there, and more than its status."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


class Watch:
    def __init__(self, work):
        self.work, self.file, self.said = work, work / "knc.prom", work / "said"
        for name, text in (("ssh", SSH), ("phi", PHI), ("perf", PERF)):
            (work / name).write_text(text)
            (work / name).chmod(0o755)
        self.process = None

    def card(self, name, *turns, last=""):
        """A card, and what its perf does when it is started the first time, and so on"""
        room = self.work / name
        room.mkdir()
        (room / "cpuinfo").write_text("processor\t: 0\nmodel\t: 1\n" * 4)
        (room / "turn").write_text("0")
        for i, turn in enumerate(turns):
            (room / f"{i + 1}").write_text(turn)
        if last:
            (room / "last").write_text(last)

    def command(self, *args):
        return [f"{TOP}/tools/knc-host", "watch", "--prefix", f"{self.work}/ssh {{}}", *args]

    def start(self, *args):
        with self.said.open("w") as said:
            # A job in the background ignores SIGINT, and so does what it starts.
            self.process = subprocess.Popen(
                ["env", "--default-signal=INT",
                 *self.command("--openmetrics", self.file, *args)], stderr=said,
                stdin=subprocess.DEVNULL, env={**os.environ, "WORK": str(self.work)})

    def value(self, name):
        """Of a line of the file, as text"""
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.file.read_text(), re.M) \
            if self.file.exists() else None
        return found[1] if found else None

    def until(self, name, value, seconds=40):
        end = time.monotonic() + seconds
        while self.value(name) != value:
            assert time.monotonic() < end and self.process.poll() is None, \
                (name, value, self.file.read_text(), self.said.read_text())
            time.sleep(0.02)

    def until_said(self, words, times=1):
        end = time.monotonic() + 30
        while self.said.read_text().count(words) < times:
            assert time.monotonic() < end, self.said.read_text()
            time.sleep(0.02)

    def says(self, *lines):
        assert self.said.read_text().splitlines() == [f"knc-host watch: {x}" for x in lines]

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(20)

    def left(self):
        """Processes on the cards, that do not end soon"""
        pids = [pid for path in self.work.glob("*/pids") for pid in path.read_text().split()]
        assert pids
        end = time.monotonic() + 20
        while any(map(runs, pids)) and time.monotonic() < end:
            time.sleep(0.02)
        return [*filter(runs, pids)]


@pytest.fixture
def watch(tmp_path):
    made = Watch(tmp_path)
    yield made
    if made.process and made.process.poll() is None:
        made.process.kill()
        made.process.wait()


@once
def promtool():
    return f"{built('build-programs', 'prometheus')}/usr/bin/promtool"


def events(card, event):
    return f'knc_events_total{{card="{card}",event="{event}"}}'


def seconds(card, event):
    return f'knc_counted_seconds_total{{card="{card}",event="{event}"}}'


def up(card):
    return f'knc_up{{card="{card}"}}'


def test_watch_adds(watch):
    """Whole numbers also beyond what a double has; seconds of the card, not of its CPUs"""
    watch.card("mic0", f'interval 10.0 "{CYCLES}" "{INSTRUCTIONS}"\n'
                       f'interval 20.0 "{CYCLES}" "{INSTRUCTIONS}"\n',
               last='interval 22.5 "1;;cycles;10000000000;100.00" '
                    '"1;;instructions;10000000002;100.00"\n')
    watch.card("root@mic-1.b_c", 'interval 10.0 "5;;cycles;3;0.01" "0;;instructions;8;99.99"\n')
    watch.start("mic0", "root@mic-1.b_c")
    watch.until(events("mic0", "cycles"), str(2 * (2 ** 53 - 1)))
    watch.until(events("root@mic-1.b_c", "cycles"), "5")
    assert [watch.value(line) for line in (
        events("mic0", "instructions"), seconds("mic0", "cycles"), up("mic0"),
        events("root@mic-1.b_c", "instructions"), seconds("root@mic-1.b_c", "instructions"))] \
        == ["14", "20.000000000", "1", "0", "0.000000002"]
    when = float(watch.value('knc_last_interval_timestamp_seconds{card="mic0"}'))
    assert 0 <= time.time() - when < 20
    given = (watch.work / "mic0/given").read_text()
    assert "stat -a -I 10000 --no-scale -x ; --log-fd 3 -e cycles,instructions cat" in given
    assert watch.end() == 0 and not watch.left()
    # What was counted last is not lost, and the file says that nobody counts.
    assert [watch.value(line) for line in (
        events("mic0", "cycles"), seconds("mic0", "instructions"), up("mic0"))] == \
        [str(2 * (2 ** 53 - 1) + 1), "22.500000000", "0"]
    watch.says()


def test_watch_promtool(watch):
    """promtool minds nothing about the file, as it is at first and later"""
    watch.card("mic0", r"""sleep 1
interval 1.0 '1;;cpu/config=0x16,name=a"\b/;40000000000;100.00'
""")
    watch.start("mic0", "-e", "r16")
    watch.until(up("mic0"), "0")
    for wanted in ("0", "1"):
        watch.until(up("mic0"), wanted)
        subprocess.run([promtool(), "check", "metrics"], check=True,
                       stdin=watch.file.open(), capture_output=True)
    assert 'event="cpu/config=0x16,name=a\\"\\\\b/"} 1' in watch.file.read_text()


def test_watch_rules():
    """The example's metrics are those of the tables."""
    said = Path(TOP, "Documentation/examples/knc-rules.yml").read_text()
    metrics = {m.name: m for m in knc_tables.load()[1]}
    assert metrics["cpi_thread"].expr == "d_ratio(CPU_CLK_UNHALTED, INSTRUCTIONS_EXECUTED)"
    assert metrics["memory_read_bytes"].expr == "64 * (%s)" % " + ".join(
        name.upper() for name in re.findall(r'event="(\w+)"', said.partition("64 * (")[2]))
    assert re.search(r'"cycles"}\s*/ ignoring \(event\) .*"instructions"}', said)
    subprocess.run([promtool(), "check", "rules", f"{TOP}/Documentation/examples/knc-rules.yml"],
                   check=True, capture_output=True)


def test_watch_goes_and_returns(watch):
    """Counters stay, and go on; said once"""
    watch.card("mic0", f'interval 10.0 "{INSTRUCTIONS}"\necho lost >&2\nexit 1\n',
               "echo again >&2\nexit 1\n",
               f'interval 10.0 "{INSTRUCTIONS}"\n')
    watch.card("mic1", f'interval 10.0 "{INSTRUCTIONS}"\n')
    watch.start("mic0", "mic1", "-e", "instructions")
    watch.until(up("mic1"), "1")
    # It is 0 before the first interval as well.
    watch.until(events("mic0", "instructions"), "7")
    watch.until(up("mic0"), "0")
    assert watch.value(events("mic0", "instructions")) == "7"
    watch.until(events("mic0", "instructions"), "14")
    assert [watch.value(seconds("mic0", "instructions")), watch.value(up("mic0")),
            watch.value(up("mic1"))] == ["20.000000000", "1", "1"]
    assert watch.end() == 0
    watch.says("mic0 has gone away: lost; trying again", "mic0 counts again")


def test_watch_not_reached(watch):
    """A card that is not there at first, and no ssh at all"""
    watch.start("mic0", "-e", "cycles")
    watch.until_said("trying again")
    time.sleep(6)
    # After 0, 1, 3 and 7 seconds
    assert (watch.work / "tries").read_text() in ("mic0\n" * 3, "mic0\n" * 4)
    watch.card("mic0", f'interval 10.0 "{CYCLES}"\n')
    watch.until(up("mic0"), "1")
    assert watch.end(signal.SIGINT) == 0
    said = watch.said.read_text()
    assert re.fullmatch(r"knc-host watch: mic0 has gone away: .*mic0.*; trying again\n"
                        r"knc-host watch: mic0 counts again\n", said), said
    watch.start("mic0", "--prefix", "/no/such/ssh {}")
    watch.until_said("trying again")
    assert watch.end() == 0
    watch.says("mic0 has gone away: /no/such/ssh: No such file or directory; trying again")


def test_watch_prefix(watch):
    """A card that something else than ssh reaches"""
    watch.card("mic0", f'interval 10.0 "{CYCLES}"\n')
    watch.start("x", "-e", "cycles", "--prefix", f"{watch.work}/phi run sh -c")
    watch.until(up("x"), "1")
    assert watch.end() == 0


def test_watch_silent(watch):
    """A card that hangs is left, and keeps no other from being counted"""
    watch.card("mic0", f'interval 0.1 "{INSTRUCTIONS}"\nexec sleep 1000\n',
               f'interval 0.1 "{INSTRUCTIONS}"\n')
    watch.card("mic1", f"""while sleep 0.5; do
interval $((i += 1)).0 "{INSTRUCTIONS}"
done &
trap "kill $!" EXIT
""")
    watch.start("mic0", "mic1", "-e", "instructions", "-I", "100")
    watch.until(events("mic0", "instructions"), "7")
    began = time.monotonic()
    watch.until(up("mic0"), "0", 60)
    # Three intervals, and 15 seconds
    assert 14 < time.monotonic() - began < 40
    assert int(watch.value(events("mic1", "instructions"))) >= 7 * 10
    watch.until(events("mic0", "instructions"), "14")
    assert watch.end() == 0 and not watch.left()
    watch.says("mic0 has gone away: it is silent; trying again", "mic0 counts again")


def test_watch_garbage(watch):
    """What is no count is not counted"""
    watch.card("mic0", f"""echo "Welcome to mic0" >&3
echo "cpus 99" >&3
echo "     5.0;12;;insn" >&3
head -c 300000 /dev/urandom | tr -d ';' >&3
echo >&3
echo '# started' >&3
interval 10.0 "{INSTRUCTIONS}" "<not counted>;;branches;0;0.00" "<not supported>;;r80016;0;100.00"
interval 20.0 "{INSTRUCTIONS}" "9;;branches;20000000000;50.00" "<not supported>;;r80016;0;100.00"
interval 30.0 "{INSTRUCTIONS}"
printf '     30.0;1000;;branches;100' >&3
exit 3
""", f'interval 10.0 "{INSTRUCTIONS}"\ninterval 20.0 "{INSTRUCTIONS}"\n')
    watch.start("mic0", "-e", "{instructions,branches},r80016")
    watch.until(events("mic0", "instructions"), "28")
    assert [watch.value(line) for line in (
        events("mic0", "branches"), seconds("mic0", "branches"),
        events("mic0", "r80016"))] == ["9", "5.000000000", None]
    assert watch.end() == 0
    watch.says("mic0: branches is not counted", "mic0: r80016 is not supported",
               "mic0 has gone away: status 3; trying again", "mic0 counts again")


def test_watch_models(watch):
    """What an emulated card has no model of is not exported as 0, by its own names either"""
    counts = " ".join(f'"0;;{name};40000000000;100.00"' for name in ("snp_hitm_bunit:u", "mine"))
    for name in ("mic0", "mic1"):
        watch.card(name, f"interval 10.0 {counts} '{INSTRUCTIONS}'\n")
    (watch.work / "mic0/cpuinfo").write_text("processor\t: 0\nmodel name\t: KNC (emulated)\n")
    watch.start("mic0", "mic1", "-e", "snp_hitm_bunit:u,cpu/event=0x0a,name=mine/,instructions")
    for name, value in (("mic0", None), ("mic1", "0")):
        watch.until(events(name, "instructions"), "7")
        assert [watch.value(events(name, event)) for event in ("snp_hitm_bunit:u", "mine")] == \
            [value, value]
    assert watch.end() == 0
    watch.says("mic0: snp_hitm_bunit:u is not modelled", "mic0: mine is not modelled")


def test_watch_turns(watch):
    """The cards' own kernel takes no turns on a CPU that sleeps."""
    for name, release in (("mic0", "2.6.38.8+mpss3.5"), ("mic1", "6.1.0")):
        watch.card(name, f'interval 10.0 "{INSTRUCTIONS}" "9;;branches;20000000000;50.00"\n')
        (watch.work / name / "release").write_text(release)
    (watch.work / "uname").write_text("#!/bin/sh\ncat release\n")
    (watch.work / "uname").chmod(0o755)
    watch.start("mic0", "mic1", "-e", "instructions,branches")
    watch.until(events("mic1", "branches"), "9")
    watch.until_said("mic0 has gone away: branches takes turns, which Linux 2.6.38 counts wrongly")
    assert watch.end() == 0 and watch.value(events("mic0", "branches")) is None


UNTRUE = (
    ('"1;;cycles;4;100.00" "2;;cycles;4;100.00"', "cycles stands twice in -e"),
    ('"2;ns;duration_time;4;100.00"', "duration_time: perf prints no number of events"),
    ('"1.50;;cycles;4;100.00"', "cycles: perf prints no number of events"),
    ('"9007199254740992;;cycles;4;100.00"', "cycles: perf prints no number of events"),
    ('"1;;cycles;0;100.00"', "cycles: perf prints no number of events"),
    ('"1;;a;4;100.00"\ninterval 2.0 "1;;b;4;100.00"\ninterval 3.0 "1;;c;4;100.00"',
     "perf prints more events than -e has, c among them"),
    ('"1;;a;4;100.00"\nhead -c 200000 /dev/zero | tr "\\0" x >&3', "it prints no lines"),
)


def test_watch_untrue(watch):
    """What cannot be true is no count, and is said."""
    for i, (line, _) in enumerate(UNTRUE):
        watch.card(f"mic{i}", f"interval 1.0 {line}\n")
    watch.start(*(f"mic{i}" for i in range(len(UNTRUE))), "-e", "cycles,task-clock")
    watch.until_said("trying again", len(UNTRUE))
    assert watch.end() == 0
    said = sorted(watch.said.read_text().splitlines())
    assert said == [f"knc-host watch: mic{i} has gone away: {why}; trying again"
                    for i, (_, why) in enumerate(UNTRUE)]
    counted = re.findall(r"^knc_events_total.* (\d+)$", watch.file.read_text(), re.M)
    assert {*counted} == {"1"}, counted


def test_watch_killed(watch):
    """However it ends, nothing is left on the cards, and a new one begins at 0."""
    counting = f'interval 10.0 "{INSTRUCTIONS}"\n'
    watch.card("mic0", counting, "until [ -e begin ]; do sleep 0.1; done\n" + counting)
    watch.start("mic0", "-e", "instructions")
    watch.until(events("mic0", "instructions"), "7")
    watch.end(signal.SIGKILL)
    assert not watch.left()
    watch.start("mic0", "-e", "instructions")
    watch.until(up("mic0"), "0")
    (watch.work / "mic0/begin").touch()
    watch.until(events("mic0", "instructions"), "7")
    assert watch.end() == 0
    watch.says()


def test_watch_disk_full(watch):
    """Counting goes on, and what was counted is written later."""
    between, begin = (watch.work / name for name in ("knc.prom.tmp", "mic0/begin"))
    watch.card("mic0", f"""until [ -e begin ]; do sleep 0.1; done
interval 10.0 "{INSTRUCTIONS}"
until [ ! -e begin ]; do sleep 0.1; done
interval 20.0 "{INSTRUCTIONS}"
""")
    watch.start("mic0", "-e", "instructions")
    watch.until(up("mic0"), "0")
    between.symlink_to("/dev/full")
    begin.touch()
    watch.until_said("No space left on device")
    assert watch.value(events("mic0", "instructions")) is None
    between.unlink()
    begin.unlink()
    watch.until(events("mic0", "instructions"), "14")
    assert watch.end() == 0
    watch.says(f"{watch.file}: No space left on device; counting goes on",
               f"{watch.file} is written again")


def test_watch_descriptors(watch):
    """A card that comes and goes leaves nothing in the process."""
    watch.card("mic0", *[f'interval 10.0 "{INSTRUCTIONS}"\nexit 1\n'] * 5)
    watch.start("mic0", "-e", "instructions")
    open_now = Path(f"/proc/{watch.process.pid}/fd")
    watch.until(events("mic0", "instructions"), "14")
    before = len([*open_now.iterdir()])
    watch.until(events("mic0", "instructions"), "35")
    time.sleep(2.5)
    assert len([*open_now.iterdir()]) <= before + 3
    children = Path(f"/proc/{watch.process.pid}/task/{watch.process.pid}/children").read_text()
    assert len(children.split()) <= 1
    assert watch.end() == 0


def test_watch_refuses(watch, tmp_path):
    for args, why in (
            (["--openmetrics", "x.prom"], "CARD"),
            (["mic0"], "--openmetrics"),
            (["mic0", "mic1", "mic0", "--openmetrics", "x.prom"], "mic0 stands twice"),
            (["mic0;reboot", "--openmetrics", "x.prom"], "mic0;reboot: no name of a card"),
            (["mic0\nmic1", "--openmetrics", "x.prom"], "no name of a card"),
            (["mic0", "-I", "99", "--openmetrics", "x.prom"], "-I: 100 to 3600000 ms"),
            (["mic0", "-I", "often", "--openmetrics", "x.prom"], "invalid int value"),
            (["mic0", "--prefix", "ssh '", "--openmetrics", "x.prom"], "--prefix: No closing quotation"),
            (["mic0", "--prefix", "", "--openmetrics", "x.prom"], "--prefix: which?"),
            (["mic0", "mic1", "--prefix", "phi run sh -c", "--openmetrics", "x.prom"],
             "several cards: --prefix needs {}"),
            (["mic0", "--openmetrics", "/no/such/x.prom"], "/no/such/x.prom: No such file"),
            (["mic0", "--openmetrics", "/"], "/: Is a directory")):
        done = subprocess.run(watch.command(*args), check=False, capture_output=True, text=True,
                              cwd=tmp_path, timeout=60)
        assert done.returncode and not done.stdout and why in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "x.prom").exists()
    watch.card("mic0")
    watch.start("mic0")
    watch.until(up("mic0"), "0")
    done = subprocess.run(watch.command("mic1", "--openmetrics", watch.file), check=False,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "another watch writes it" in done.stderr, done.stderr
    assert watch.end() == 0
