# SPDX-License-Identifier: GPL-2.0-only
"""run-uos, with an emulator that is none: what it refuses, has from the guest, and how it ends"""
import io
import os
import random
import re
import subprocess
import tarfile
import types
from pathlib import Path

from common import ScriptTest
from lines import SCRIPTS, load

FAKE_QEMU = """#!/bin/sh
# What the emulator would write, and how it would end
for word; do
	case $word in
	file,id=saved,path=*) saved=${word#file,id=saved,path=} ;;
	*/initrd) initrd=$word ;;
	esac
done
token=$(grep -a -o "token=[0-9a-f]*" "$initrd" | tail -n 1)
token=${token#token=}
%s
"""
FINAL = 'printf "\\nsuccess $token\\n"'


class TestRunUos(ScriptTest):
    def test_run_uos_arguments(self):
        for words, why in (
                *((words, f"'{words.split()[1]}' is not a number from 1 on") for words in (
                    "--cores 0", "--cores two", "--timeout 0")),
                ("--cores 64", "256 threads: the emulator has 255 at most"),
                ("--add nosuch:there", "nosuch: there is no such file"),
                ("--trace .", "cannot be written"),
                ("--get x:no/such/file", "no/such/file: cannot be written"),
                ("--get dir/", "names no file")):
            self.refuses(why, 2, "run-uos", *words.split(), "--", "true")
        self.refuses("no command to run", 2, "run-uos")

    def test_run_uos_init(self):
        """An init needs no command, and finds the token in its settings."""
        init = self.path("init", "of ours")
        for command in ((), ("true",)):
            said, _ = self.boot(f'cat "$initrd"; {FINAL}', "--init", init, command=command)
            assert re.search(r"uos/settings\0+token=[0-9a-f]{8}\ninteractive=no\n", said), said
            assert re.search(r"uos/command\0+%s\n" % "".join(command), said), said

    def test_run_uos_k1om(self):
        """A PC's kernel gets a program of MPSS's machine as one of its own; the file is kept."""
        begin, end = b"\x7fELF\x02\x01" + bytes(12), b"\0the rest"
        program = self.path("programs/one", begin + b"\xb5" + end)
        init = self.path("init", "of ours")
        for name in ("programs", program):
            said, _ = self.boot(f'cat "$initrd"; {FINAL}', "--init", init, "--add", name)
            assert (begin + b"\x3e" + end).decode() in said
        assert Path(program).read_bytes() == begin + b"\xb5" + end

    def boot(self, does, *args, command=("true",), kernel="none", ends=0, **env):
        """What run-uos says, with an emulator that does this."""
        qemu = self.path("qemu", FAKE_QEMU % does)
        status, said, err = self.run_it(
            "run-uos", "--kernel", self.path("kernel", kernel), *args, "--", *command,
            **{"KNC_PMU_QEMU": qemu, "KNC_PMU_RUNS": "", **env})
        assert status == ends, err
        return said, err

    def test_run_uos_ends(self):
        for does, want, out, why in (
                (f"echo said; {FINAL}", 0, "said\n", ""),
                ('echo said; printf "\\nfailure 7 $token\\n"', 7, "said\n", ""),
                ("echo said", 125, "said\n", "ended without its final word"),
                ('printf "\\nsuccess 12345678\\n"', 125, "\nsuccess 12345678\n",
                 "ended without its final word"),
                ("echo cannot >&2; exit 3", 125, "",
                 "the emulator ended with status 3; why is told above"),
                ("echo said; exit 124", 125, "said\n",
                 "run-uos: still running at the limit of the guest's time: 600 s")):
            said, err = self.boot(does, ends=want)
            assert said == out and why in err, err

    def test_run_uos_timeout(self):
        """The limit is the emulator's, by the guest's time; a shell has none."""
        for does, device, more in ((f'echo "$*"; {FINAL}', "testdev,limit=7", []),
                                   ('echo "$*"', "testdev", ["--interactive"])):
            assert f" -device knc-pmu-{device} " in self.boot(does, "--timeout", "7", *more)[0]

    def test_run_uos_avx(self):
        """Kernels that use AVX themselves are told that there is none."""
        for version, has_own in ("6.1.187", False), ("6.15.9", False), ("6.16.0", True), ("7.2.12", True):
            # Of a compressed one only the header tells: 8 bytes after its magic, where that is.
            for kernel in f"Linux version {version}", f"{0x202 * ' '}HdrS{8 * ' '}\x10\0{version} (x)":
                said, _ = self.boot(f'echo "$*"; {FINAL}', kernel=kernel)
                assert (" noxsave" in said) == has_own, said

    def test_run_uos_keeps(self):
        """A run that has succeeded is not made again, with all that it has written."""
        count, sent = self.path("count"), self.archive(root__file=b"x")

        def again(made, does, *args, **more):
            self.path("count", "")
            said, err = self.boot(f"echo >>{count}; {does}", *args,
                                  KNC_PMU_RUNS=self.path("runs"), **more)
            assert os.path.getsize(count) == made, err
            return said

        does = f"cat {sent} >$saved; echo said; {FINAL}"
        for made in (1, 0):
            assert again(made, does, "--get", f"file:got{made}") == "said\n"
            assert Path(f"got{made}").read_bytes() == b"x"
        # Not of other options, another emulator, kernel or file; not with another output
        again(1, does, "--memory", "1G")
        again(1, f"{does}; :")
        again(1, does, kernel="another")
        for content in "12":
            again(1, does, "--add", self.path("added", content))
        for option in (["--real-time"], ["--trace", "t"], ["--qemu-arg=-s"], ["--cpu", "qemu64"]):
            for _ in range(2):
                again(1, does, *option)
        # What fails does so again: by itself, by its console, for what it has not saved
        for bad, ends in (
                ('printf "\nfailure 7 $token\n"', 7), ("exit 124", 125),
                (f'for w; do case $w in file:*) echo Oops >"${{w#file:}}"; esac; done; {FINAL}',
                 125)):
            for _ in range(2):
                again(1, bad, ends=ends)
        for made in (1, 0):
            again(made, f": ;{FINAL}", "--get", "no", ends=125)

    def test_run_uos_board(self):
        """Its ports in place of serial ones; --init lies over an initrd."""
        self.path("init", "of ours")
        self.path("theirs", "070701 of theirs")
        said, _ = self.boot(f'echo "$*"; cat "$initrd"; {FINAL}', "--board", "--init", "init",
                            "--initrd", "theirs")
        assert re.search("-M knc -cpu knc-strict .*-chardev stdio,id=results", said), said
        assert "serial" not in said and re.search("(?s)of theirs.*of ours", said), said
        said, _ = self.boot('echo "$*"', "--board", "--initrd", "theirs", "--interactive")
        assert re.search("-M knc .*-serial mon:stdio", said), said
        for words, why in (
                ("--kernel theirs", "needs --init FILE"),
                ("--kernel theirs --initrd theirs", "needs --init FILE"),
                ("--init init", "needs --kernel and a card's kernel"),
                ("--kernel theirs --init init --get file", "--get needs the uOS"),
                ("--kernel theirs --init init --cores 63",
                 "252 threads: the emulator has 248 at most")):
            self.refuses(why, 2, "run-uos", "--board", *words.split(), "--", "true")

    def test_run_uos_board_mainline(self):
        """By the version that a bzImage has; its POST codes say where it has stopped."""
        init = self.path("init", "of ours")
        kernel = bytes(0x202) + b"HdrS" + bytes(8) + b"\x00\x01" + bytes(0xf0) + b"7.2.3-card"
        for does, want, told in ((f'echo "$*"; {FINAL}', 0, ""),
                                 ('echo "$*"; for log; do :; done; echo code=K7 >"$log"', 125,
                                  "    code=K7\n")):
            said, err = self.boot(does, "--board", "--init", init, kernel=kernel, ends=want)
            assert told in err
            assert re.search("-M knc,mainline=on .* console=ttyPHI0 .*-serial chardev:log ",
                             said), said

    def test_run_uos_stands_still(self):
        """Where the guest's time stands still; with output it does not, however fast that comes."""
        run_uos = load(f"{SCRIPTS}/run-uos")
        run_uos.MOST_LOOKS, time_of = 3, run_uos.processor_time
        for does, times, why in (
                ("exec sleep 100", time_of, "the emulator has not run for 3 s"),
                ("ulimit -t 20; while :; do :; done", time_of, "limit of 1 s of processor time"),
                ("sleep 1; echo; exec sleep 1", time_of, ""),
                ("for i in 1 2 3 4 5 6; do echo; sleep 0.1; done", lambda qemu: 0, "")):
            run_uos.processor_time = times
            with subprocess.Popen(["sh", "-c", does], stdout=subprocess.PIPE) as qemu:
                told = run_uos.follow(qemu, run_uos.Results("", io.BytesIO()), 1)
                run_uos.stop(qemu)
                assert why in told and bool(why) == bool(told), told

    def test_run_uos_flavour(self):
        """A flavour is one where a directory has its name, as in a checkout."""
        run_uos = load(f"{SCRIPTS}/run-uos")
        run_uos.build = lambda program, flavour: f"{program} of {flavour}"
        self.path("bzImage", "none")
        os.mkdir("uos")
        for name, image in (("uos", "build-kernel of uos"), ("bzImage", "bzImage")):
            assert run_uos.kernel_image(name) == image

    def archive(self, **files):
        """As the guest's "save" makes one: an archive for each file."""
        whole = io.BytesIO()
        for name, content in files.items():
            with tarfile.open(fileobj=whole, mode="w") as tar:
                info = tarfile.TarInfo(name.replace("__", "/"))
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        return self.path("archive", whole.getvalue())

    def test_run_uos_get(self):
        # Any byte, and what a serial line might take for something else
        data = random.Random(1).randbytes(100000) + bytes(range(256)) * 8 + b"\r\n\0"
        sent = self.archive(root__perf_data=data, tmp__empty=b"")
        self.path("perf_data", "of yesterday")
        _, err = self.boot(f"cat {sent} >$saved; {FINAL}", "--get", "perf_data",
                           "--get", "/tmp/empty:other")
        assert [Path(name).read_bytes() for name in ("perf_data", "perf_data.old", "other")] == \
            [data, b"of yesterday", b""]
        assert f"perf_data: {len(data)} bytes" in err

    def test_run_uos_get_missing(self):
        sent = self.archive(root__there=b"x")
        for does, want in ((f"cat {sent} >$saved; {FINAL}", 125),
                           (f'cat {sent} >$saved; printf "\\nfailure 7 $token\\n"', 7),
                           (f": >$saved; {FINAL}", 125)):
            _, err = self.boot(does, "--get", "there", "--get", "nosuch", ends=want)
            assert "--get /root/nosuch: the guest has no such file" in err
        sent = self.archive(root__big=bytes(100000))
        _, err = self.boot(f"head -c 50000 {sent} >$saved; {FINAL}", "--get", "big", ends=125)
        assert "files came from the guest only in part" in err

    def test_run_uos_get_names_no_place(self, monkeypatch, capsys):
        """What a guest calls its files is not where they go here."""
        os.mkdir("out")
        with tarfile.open("out/saved.tar", "w") as tar:
            for name in ("../../outside", self.path("outside"), "a/b/plain"):
                info = tarfile.TarInfo(name)
                info.size = 1
                tar.addfile(info, io.BytesIO(b"x"))
            link = tarfile.TarInfo("link")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(link)
        os.mkdir("here")
        monkeypatch.chdir("here")
        assert load(f"{SCRIPTS}/run-uos").take_saved(types.SimpleNamespace(get=[]), "../out") == []
        assert not os.path.exists("../outside")
        assert sorted(os.listdir(".")) == ["outside", "outside.old", "plain"]
        assert "outside: 1 bytes" in capsys.readouterr().err
