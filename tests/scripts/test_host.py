# SPDX-License-Identifier: GPL-2.0-only
"""knc-host, with cards that are directories; tests/guest has it with emulated ones."""
import os
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest
from common import PHI, ScriptTest
from lines import until

# How perf.data of a pipe begins
PIPE = struct.pack("<8sQ", b"PERFILE2", 16)
# Each card is a directory; a shell runs the command there, as ssh's does.
SSH = r"""#!/bin/sh
cd "$WORK/$1" || exit 255
[ ! -e broken ] || { echo "no route to $1" >&2; exit 255; }
PATH=$WORK/bin:$PATH exec sh -c "$(echo "$2" | sed "s|/proc/\([a-z]\)|\1|; s|/root/||")"
"""
PERF = r"""#!/bin/sh
# What it was given, a word a line
[ "$1" = record ] && { printf 'PERFILE2\020\0\0\0\0\0\0\0'; printf '%s\n' "$@"; echo said >&2; exit 0; }
[ "$1" = report ] && { printf '%s\n' "$@"; exit 0; }
[ "$1" = buildid-list ] && exit 0
[ "$1" = script ] && {
	printf 'x 7/7 1.5:  1 cycles: \n\t40 %s (%s)\n\n' f+0x1 /root/prog g /dev/zero h '/root/old (deleted)' \
		k+0x1 '[kernel.kallsyms]' '[unknown]' /root/gone
	echo "$WORDS" >&2
	exit 0
}
echo "the program's own output"
printf '\n# started\nCPU0,%s,,cycles,1,100.00,,\n' "$(cat count)" >&3
"""
# It counts until it is interrupted, as its program does. perf handles SIGINT in the background,
# too; a shell that starts with it ignored cannot.
ENDLESS = r"""#!/usr/bin/env -S --default-signal=INT,TERM sh
[ -z "$START" ] || { trap '' INT; echo $$ $$ >pids; sleep $START; }
trap 'echo counted >&4; exit 130' INT
[ "$1" = record ] && exec 4>&1 || exec 4>&3
env --default-signal=INT sh -c "echo \$\$ $$ >pids; exec sleep 1000" 4>&- >/dev/null 2>&1 &
wait
"""

# It runs what stands behind "--", begins late on mic1, and counts until it is interrupted.
SLOW = r"""#!/usr/bin/env -S --default-signal=INT,TERM sh
case $PWD in *1) sleep 0.5 ;; esac
: >counting
shift 8
trap 'kill $!; rm counting; echo "7,,x,1,100.00,," >&3; exit 130' INT
"$@" &
wait
"""


class TestHost(ScriptTest):
    @pytest.fixture(autouse=True)
    def cards(self, room):
        self.env = {"WORK": os.getcwd(), "WORDS": "",
                    "PATH": f"{self.path('bin')}:{os.environ['PATH']}"}
        for name, text in (("ssh", SSH), ("phi", PHI), ("bin/perf", PERF)):
            self.path(name, text)
        for i, card in enumerate(("mic0", "mic1")):
            self.path(f"{card}/kallsyms", f"ffffffff81000000 T {card}\n")
            self.path(f"{card}/prog", f"the program of {card}")
            self.path(f"{card}/count", f"{i + 7}")
            self.path(f"{card}/cpuinfo", "processor\t: 0\ncore id\t\t: 60\n")

    def host(self, verb, *args):
        return self.run_it("knc-host", verb, "--prefix", "./ssh {}", *args)

    def test_host_record(self):
        assert self.host("record", "-d", "run", "mic0", "mic1", "--", "-g", "sh", "-c",
                         "echo it's $HOME") == (0, "", "")
        for card in ("mic0", "mic1"):
            for what, text in (("data", PIPE + b"record\n-o\n-\n-g\nsh\n-c\necho it's $HOME\n"),
                               ("kallsyms", f"ffffffff81000000 T {card}\n".encode()),
                               ("log", b"said\n")):
                assert Path(f"run/{card}.{what}").read_bytes() == text
            # The programs of the samples, and nothing else
            found, = (path for path in Path(f"run/{card}.symfs").rglob("*") if path.is_file())
            assert (str(found), found.read_bytes()) == \
                (f"run/{card}.symfs/root/prog", f"the program of {card}".encode())

        # perf 7.3 goes on without an event, with status 0.
        self.path("bin/perf", PERF.replace("echo said", "echo \"Failure to open event 'cycles:pH' on"
                                           " PMU 'cpu' which will be removed.\""))
        status, _, err = self.host("record", "mic0", "--", "true")
        assert status == 1 and "    perf: cycles:pH was not recorded\n" in err, err
        assert Path("mic0.data").read_bytes().startswith(PIPE)

    def test_host_banner(self):
        """A shell that says more than its answers spoils all data, and is told so"""
        said = "the card's shell prints \"Welcome\" before its answers: it must print nothing in such sessions\n"
        self.path("ssh", SSH.replace("cd", "echo Welcome\ncd", 1))
        for verb in "record", "stat":
            assert self.host(verb, "mic0", "mic1", "--", "-a") == (1, "", "".join(
                f"knc-host: {card} has failed:\n    {said}" for card in ("mic0", "mic1")))
            assert not os.path.exists("mic0.data") and not os.path.exists("mic0.csv")
        self.path("ssh", "#!/bin/sh\necho Welcome; shift; eval \"$@\"\n")
        self.path("bin/perf", "#!/bin/sh\necho perf version 6.1\n")
        for tool, *words in (("knc-metrics", "--perf", "./ssh mic0 bin/perf", "true"),
                             ("install-on-card", "./ssh", "mic0")):
            status, _, err = self.run_it(tool, *words)
            assert status == 1 and err.endswith(f": {said}"), err

    def test_host_record_breaks(self):
        """A connection that has ended cuts the data; a program that fails does not"""
        sample = "printf '\\011" + "\\0" * 5 + "\\020" + "\\0" * 9 + "'"
        self.path("bin/perf", PERF.replace("printf '%s\\n' \"$@\"", sample, 1).replace(
            "exit 0", "exit 255", 1))
        for cut in (False, True):
            self.path("ssh", SSH.replace("exec sh", "sh") +
                      "case $2 in *record*) exit 255; esac\n" * cut)
            assert self.host("record", "mic0", "--", "true")[0] == 1
            status, out, _ = self.run_it("knc-host", "report", "mic0")
            assert (status, "# the data is cut" in out) == (cut, cut), out

    def test_host_stat(self):
        status, out, err = self.host("stat", "mic0", "mic1", "--", "-a", "true")
        assert (status, sorted(out.splitlines()), err) == \
            (0, ["mic0,CPU0,7,,cycles,1,100.00,,", "mic1,CPU0,8,,cycles,1,100.00,,"], "")
        assert "core 60 thread 0: 8" in \
            self.passes("knc-draw", "card", "--topology", "mic1.cpuinfo", "mic1.csv")

    def test_host_stat_models(self):
        """What the emulator has no model of has no count, and no picture"""
        self.path("mic1/cpuinfo", "processor\t: 0\nmodel name\t: KNC (emulated)\ncore id\t\t: 60\n")
        for printed, kept in (
                ("CPU0,7,,cycles,1,100.00,,", None),
                ("CPU0,0,,r10e3,1,100.00,,", "CPU0,<not modelled>,,r10e3,1,100.00,,"),
                ("     1.5,S0-D0-C0,4,0,,snp_hitm_bunit:u,1,100.00,,",
                 "     1.5,S0-D0-C0,4,<not modelled>,,snp_hitm_bunit:u,1,100.00,,"),
                ("0,,snp_hitm_bunit,/a,1,100.00,,", "<not modelled>,,snp_hitm_bunit,/a,1,100.00,,"),
                ("CPU0,9,,INSTRUCTIONS_EXECUTED,1,100.00,0.0,v_pipe_share",
                 "CPU0,9,,INSTRUCTIONS_EXECUTED,1,100.00,nan,v_pipe_share")):
            self.path("bin/perf", f"#!/bin/sh\necho '{printed}' >&3\n")
            status, out, err = self.host("stat", "mic0", "mic1", "--", "-a")
            assert (status, sorted(out.splitlines()), err) == \
                (0, [f"mic0,{printed}", f"mic1,{kept or printed}"], "")
        for name in ("mic0.csv", "mic1.csv"):
            self.refuses("v_pipe_share: the emulator has no model of it", 1, "knc-draw", "card",
                         "--topology", "mic1.cpuinfo", "--show", "v_pipe_share", name)

    def test_host_stat_refused(self):
        """Said, and what was counted is kept"""
        self.path("bin/perf", b"#!/bin/sh\nfor cpu in 0 1; do echo \"CPU$cpu,<not supported>,,cycles,0,100.00,,\"\n"
                              b"echo \"CPU$cpu,7,,instructions,1,100.00,,\"; echo {; done >&3\n")
        status, out, err = self.host("stat", "mic0", "--", "-a")
        assert (status, out.count("mic0,CPU1,7,,instructions")) == (1, 1)
        assert err == "knc-host: mic0 has failed:\n    perf: cycles is not supported\n" \
            "    perf: leave out -j\n"
        # So it is if the program fails, but not of a line that is cut.
        self.path("bin/perf", PERF + "printf CPU1,9,,cyc >&3\nexit 3\n")
        status, out, err = self.host("stat", "mic0", "--", "false")
        assert (status, out) == (1, "mic0,CPU0,7,,cycles,1,100.00,,\n") and "mic0 has failed" in err

    def test_host_stat_hangs(self):
        """A card that hangs keeps no other's counts back; ssh has a limit for it."""
        os.unlink("mic1/cpuinfo")
        os.mkfifo("mic1/cpuinfo")
        self.path("bin/ssh", '#!/bin/sh\necho "$@" >>$WORK/given\nshift 4\nexec $WORK/ssh "$@"\n')
        for signals in range(3):
            with self.begin("knc-host", "stat", "mic0", "mic1", "--", "true") as host:
                assert host.stdout.readline() == "mic0,CPU0,7,,cycles,1,100.00,,\n"
                for _ in range(signals):
                    host.terminate()
                    time.sleep(1.5)
                # Now it goes on. After a signal nothing begins there.
                self.path("mic1/cpuinfo", b"")
                assert host.communicate(timeout=60)[0] == \
                    ("" if signals else "mic1,CPU0,8,,cycles,1,100.00,,\n")
                assert host.returncode == 143 * (signals > 0)
        given = Path("given").read_text()
        assert given.count("mic1 exec") == 1
        assert "-o ConnectTimeout=60 -o ServerAliveInterval=20 mic0 " in given

    def test_host_other_perf(self):
        os.rename("bin/perf", "mic0/counter")
        assert self.host("stat", "--perf", "./counter", "mic0", "--", "true") == \
            (0, "mic0,CPU0,7,,cycles,1,100.00,,\n", "")

    def test_host_other_prefix(self):
        phi = "./phi run sh -c"
        assert self.host("stat", "--prefix", phi, "x", "--", "sh", "-c", "echo it's") == \
            (0, "x,CPU0,7,,cycles,1,100.00,,\n", "")
        assert self.host("record", "--prefix", phi, "x", "--", "true") == (0, "", "")
        assert Path("x.kallsyms").read_bytes() == b"ffffffff81000000 T mic0\n"

    def test_host_while(self):
        """While perf counts on all cards the command runs here, whose status is told in any case"""
        self.path("bin/perf", SLOW)
        self.path("ssh", SSH.replace("[", "echo $$ >pid\n[", 1))
        words, counts = ["mic0", "mic1", "--", "-e", "x"], [f"mic{i},7,,x,1,100.00,," for i in (0, 1)]
        # One connection is lost at the end.
        for command, status, printed in (("ls mic*/counting; exit 3", 3, counts),
                                         ("kill -KILL $(cat mic1/pid)", 1, counts[:1])):
            got, out, err = self.host("stat", "--while", command, *words)
            assert (got, out) == (status, "mic0/counting\nmic1/counting\n" * (status == 3)), err
            assert sorted({*counts} & {*err.splitlines()}) == printed, err
        assert "mic1 has failed" in err and "mic1/pid): status 0\n" in err, err
        with self.begin("knc-host", "stat", "--prefix", "./ssh {}", "--while", ": >ran; exec sleep 100", *words) as host:
            until(lambda: os.path.exists("ran"))
            os.killpg(host.pid, signal.SIGINT)
            err = host.communicate(timeout=60)[1]
            assert host.returncode == 130 and {*counts} < {*err.splitlines()}, err
        self.path("mic1/broken", "")
        got, out, err = self.host("stat", "--while", "echo ran", *words)
        assert (got, out) == (1, "") and "no route to mic1" in err and not os.path.exists("mic0/counting"), err
        # perf ends before the command.
        self.path("bin/perf", SLOW.replace("wait", "sleep 0.5; kill -INT $$"))
        got, out, err = self.host("stat", "--while", "sleep 1; echo ran", "mic0", *words[2:])
        assert (got, out) == (1, "ran\n") and "mic0 has failed" in err and counts[0] not in err, err

    def endless(self, verb, start=""):
        """knc-host when perf counts on both cards, or is about to"""
        self.path("bin/perf", ENDLESS)
        process = self.begin("knc-host", verb, "--prefix", "./ssh {}", "mic0", "mic1", "--", "x",
                             START=start)
        for card in ("mic0", "mic1"):
            until(lambda card=card: os.path.exists(f"{card}/pids") and
                  Path(f"{card}/pids").read_bytes().endswith(b"\n"))
        return process

    def has_ended(self):
        """perf and its program on each card"""
        for card in ("mic0", "mic1"):
            for pid in Path(f"{card}/pids").read_bytes().split():
                until(lambda pid=pid: not os.path.exists(f"/proc/{int(pid)}"))
            os.unlink(f"{card}/pids")

    @pytest.mark.parametrize("verb, file", [("record", "data"), ("stat", "csv")])
    def test_host_interrupted(self, verb, file):
        """perf ends on the cards, and its counts come, also at a second signal, or as it starts"""
        for number, start in ((signal.SIGINT, ""), (signal.SIGTERM, ""), (signal.SIGHUP, "100")):
            process = self.endless(verb, start)
            for _ in range(2):
                os.killpg(process.pid, number)
                time.sleep(0.02)
            err = process.communicate(timeout=60)[1]
            assert process.returncode == 128 + number
            assert f"{number.name}: ending perf" in err and "ended early" in err, err
            self.has_ended()
            for card in ("mic0", "mic1"):
                assert Path(f"{card}.{file}").read_bytes() == (b"" if start else b"counted\n")
                os.unlink(f"{card}.{file}")

    def test_host_killed(self):
        """perf ends with knc-host, however that ends; a connection without input ends nothing"""
        process = self.endless("record")
        process.kill()
        process.communicate()
        self.has_ended()
        self.path("ssh", SSH.replace('exec sh', '</dev/null exec sh'))
        process = self.endless("record")
        time.sleep(0.5)
        pids = (Path("mic0/pids").read_text() + Path("mic1/pids").read_text()).split()
        assert all(os.path.exists(f"/proc/{pid}") for pid in pids)
        # The end of one ends the other.
        subprocess.run(["kill", "-KILL", *pids], stderr=subprocess.DEVNULL, check=False)
        process.communicate(timeout=60)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
    def test_host_metrics(self, number):
        """perf of knc-metrics ends on the card with its program, and leaves no file there"""
        self.path("bin/perf", "#!/bin/sh\n[ $1 = --version ] && exit\n"
                  "sleep 1000 & echo $! $$ $5 >pids; wait\n")
        # What it starts is no process of this session, and does not end with it.
        self.path("ssh", "#!/bin/sh\ncd $WORK/$1 && shift && exec setsid -fw sh -c \"$*\"\n")
        for more in [], ["-I", "100"]:
            process = self.begin("knc-metrics", "--perf", "./ssh mic0 perf", "-M",
                                 "ipc", *more, "x")
            until(lambda: os.path.exists("mic0/pids") and Path("mic0/pids").read_bytes())
            *pids, room = Path("mic0/pids").read_text().split()
            os.killpg(process.pid, number)
            assert process.wait(60) == (130 if number == signal.SIGINT else -number)
            for gone in (*(f"/proc/{pid}" for pid in pids), os.path.dirname(room)):
                until(lambda gone=gone: not os.path.exists(gone))
            os.unlink("mic0/pids")

    def test_host_begins_with_nothing(self):
        """What an earlier call has left is not taken for what a later one should have brought."""
        for name in ("mic0.data", "mic0.kallsyms", "mic0.csv"):
            self.path(name, b"old")
        self.path("mic0/broken", "")
        assert self.host("record", "mic0", "--", "true")[0] == 1
        assert self.host("stat", "mic0", "--", "true") == \
            (1, "", "knc-host: mic0 has failed:\n    no route to mic0\n")
        status, _, err = self.run_it("knc-host", "report", "mic0")
        assert (status, err) == (1, "knc-host: mic0: no samples in ./mic0.data\n")
        assert not os.path.exists("mic0.csv") or Path("mic0.csv").read_bytes() == b""

    def test_host_report(self):
        """With what record has brought, or --symfs; what is missing stands above it"""
        sample, symfs = struct.pack("<IHH8x", 9, 0, 16), self.path("sys root")
        os.mkdir(symfs)
        cut = ["# the data is cut: it has 5 samples, and what came after them is missing"]
        for options, data, kallsyms, words, status, said in (
                (["--symfs", symfs], sample, True, "", 0, []),
                ([], sample, True, "", 0, []), ([], sample, False, "", 0, []),
                ([], sample + sample[:8], True, "", 1, cut),
                ([], sample, True, "unexpected end of event stream", 1, cut),
                ([], struct.pack("<IHHQQ", 2, 0, 24, 1, 45) + sample, True,
                 "Processed 46 events and lost 45 chunks!", 0, ["# 45 of 50 samples were lost"]),
                ([], sample, True, "Found 3 unknown events!", 0,
                 ["# of 5 samples perf says: Found 3 unknown events!"])):
            self.path("mic0.data", PIPE + data)
            self.path("mic0.kallsyms", "ffffffff81000000 T _etext\n" * kallsyms)
            got, out, _ = self.run_it("knc-host", "report", *options, "mic0", "--", "-g", "none",
                                      WORDS=words)
            lines = [line for line in out.splitlines() if not line.startswith("# no names of")]
            assert lines == ["# card: mic0", *said, "report", "--stdio", "-i", "./mic0.data",
                             "--kallsyms", "./mic0.kallsyms" if kallsyms else "/dev/null", "--symfs",
                             symfs if options else "./mic0.symfs", "-g", "none"], (out, words)
            assert got == status
            # What has no name, and what that needs
            assert "# no names of /root/gone: nothing proves which file that was. --symfs" in out, out
        os.mkdir("mic2.data")
        assert "mic2.data: Is a directory\n" in self.run_it("knc-host", "report", "mic2")[2]

    def test_host_refuses(self):
        self.refuses("several cards: --prefix needs {}", 2, "knc-host", "record", "--prefix",
                     "phi run sh -c", "mic0", "mic1", "--", "true")
        for words, why in (
                ("", "record, stat, report or watch?"), ("record -- true", "which cards?"),
                ("record mic0", "what is perf to do?"), ("record -x mic0", "-x: no such option"),
                ("stat mic0 mic1 mic0 -- true", "mic0 stands twice"),
                ("record mic0;reboot -- true", "no name of a card"),
                ("report --symfs /no/such mic0", "/no/such: no such directory"),
                ("record --while true mic0 -- true", "--while is for stat"), ("stat -d", "-d: which?")):
            self.refuses(why, 2, "knc-host", *words.split())
