# SPDX-License-Identifier: GPL-2.0-only
"""Builds and their cache: what they depend on, what they see of who calls them, and what becomes
of a build that is damaged later or was interrupted."""
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from lines import SCRIPTS, TOP, executable, none_of, quietly, until

# Of people who build kernels, and of others
NONSENSE = dict.fromkeys(
    """ARCH AR AS CC CFLAGS COMPILER_PATH CPATH CPPFLAGS CROSS_COMPILE CXX DESTDIR GIT_DIR
    GREP_OPTIONS INSTALL_MOD_PATH INSTALL_PATH KBUILD_OUTPUT KCFLAGS LD LDFLAGS LD_LIBRARY_PATH LIBRARY_PATH
    O PYTHONPATH TAR_OPTIONS V W C CDPATH LC_ALL MAKEFLAGS POSIXLY_CORRECT""".split(), "C")


def run(*command, **env):
    """What it prints; it has to succeed."""
    done = subprocess.run(command, env={**os.environ, **env}, check=False, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True)
    assert not done.returncode, f"{command}: status {done.returncode}: {done.stderr}"
    return done.stdout.strip(), done.stderr


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Another cache than that of the other tests"""
    monkeypatch.setenv("KNC_PMU_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_caller_is_not_seen(tmp_path):
    """Builders, which all have lib.sh, and tests inherit the names that it lists, and no umask."""
    script = tmp_path / "print"
    script.write_text(f"inherits='TEST TEST_*'; here={SCRIPTS}; . {SCRIPTS}/lib.sh; umask; env\n")
    kept = {"TEST": "a", "TEST_STRIDE": "1", "KNC_PMU_JOBS": "1", "https_proxy": "b", "HOME": "/c"}
    said = quietly("env", "-i", "PATH=" + os.environ["PATH"], *(
        f"{name}={value}" for name, value in {**NONSENSE, **kept}.items()),
        "sh", "-c", f"umask 077; exec sh {script}").splitlines()
    assert said[0] == "0022"
    none_of(f"{line} is left" for line in said[1:]
            if line.partition("=")[0] not in {*kept, "PATH", "PWD", "OLDPWD", "SHLVL", "_"})
    assert {f"{name}={value}" for name, value in kept.items()} <= {*said}
    for path in Path(SCRIPTS).glob("build-*"):
        assert '\n. "$here/lib.sh"\n' in path.read_text(), path


# Packages have the version $KNC_PMU_UPGRADE; a build gets no further than its name.
FAKES = {"dpkg-query": 'echo "installed $KNC_PMU_UPGRADE"',
         "apt-cache": 'echo "Depends: libfoo1"; case $* in *lib*) echo "Candidate: '
                      '$KNC_PMU_UPGRADE";; *) echo "Candidate: 1";; esac',
         "apt-get": "exit 1", "setup": "", "build-kernel": "echo /nosuch"}


@pytest.mark.parametrize("name, what", (("build-perf", "perf"), ("build-programs", "programs")))
def test_library_upgrade(name, what, tmp_path, cache):
    """apt upgrades a library: what was built with it is found again."""
    for room in ("scripts", "tools"):
        shutil.copytree(f"{TOP}/{room}", tmp_path / room)
    shutil.copy(f"{TOP}/knc_pmu_events.h", tmp_path)
    (tmp_path / "bin").mkdir()
    for fake, body in FAKES.items():
        executable(tmp_path / ("scripts" if fake in ("setup", "build-kernel") else "bin") / fake,
                   f"#!/bin/sh\n{body}\n")
    for upgrade in "12":
        done = subprocess.run([tmp_path / "scripts" / name], check=False, capture_output=True, env={
            **os.environ, "KNC_PMU_UPGRADE": upgrade,
            "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
        assert done.returncode == 1, done.stderr
    assert len([*(cache / what).glob("*.lock")]) == 1


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("damage", (Path.unlink, cut), ids=("remove", "cut"))
def test_damaged(damage):
    """A file that is missing or too short is found, and the build made again."""
    for name in ("build-workload", "build-rootfs"):
        path = Path(run(f"{SCRIPTS}/{name}")[0])
        whole = path.read_bytes()
        damage(path)
        said = run(f"{SCRIPTS}/{name}")[1]
        assert f"files of {path.parent} are missing or damaged, building it again" in said
        assert path.read_bytes() == whole
        assert "damaged" not in run(f"{SCRIPTS}/{name}")[1]


@pytest.mark.parametrize("file", ("knc_pmi.o", "knc_pmu.ko", ".knc_pmi.o.cmd"))
def test_damaged_module(file):
    """A module's tree, in which make believes what is newer than its source"""
    build = {"KNC_PMU_MAKE": f"DAMAGED={file}"}
    module = Path(run(f"{SCRIPTS}/build-module", "stock", **build)[0])
    whole = module.read_bytes()
    cut(module.with_name(file))
    assert run(f"{SCRIPTS}/build-module", "stock", **build)[0] == str(module)
    assert module.read_bytes() == whole


BROKEN = """
build() { echo >"$1/program"; works "a program" false; }
once broken key build
"""
SLOW = """
build() { logged slow "$1/log" '' 0 slow "$1"; }
slow() { echo >"$1/begun"; sleep 2; echo done >"$1/program"; }
once slow key build
cat "$built/program"
"""


def script(cache, text):
    path = cache.with_name("script")
    path.write_text(f"set -u\nhere={path.parent}\n. {SCRIPTS}/lib.sh\n{text}")
    return "sh", path


def test_what_does_not_work(cache):
    """is not put where the next run finds it. A key that lacks a file would be another build's."""
    done = subprocess.run(script(cache, BROKEN), check=False, text=True, capture_output=True)
    assert done.returncode == 1
    assert "a program was built, but does not work: false" in done.stderr
    assert not (cache / "broken/key").exists()
    command = script(cache, "key=$(key_of =text /none) || exit 3; echo $key")
    assert subprocess.run(command, check=False).returncode == 3


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM, signal.SIGKILL),
                         ids=lambda number: number.name)
def test_interrupted(number, cache):
    """The next run waits for a build that goes on, and for nothing else, and is right."""
    command = script(cache, SLOW)
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as first:
        until((cache / "slow/key.tmp/begun").exists)
        # As ^C does, all of them; else the one that a person sees
        (os.killpg if number == signal.SIGINT else os.kill)(first.pid, number)
        first.wait()
        assert quietly(*command, timeout=9).splitlines()[-1] == "done"
        for line in first.stderr:
            assert "slow: 1" not in line, "its progress is still printed"


@pytest.mark.usefixtures("cache")
def test_full_disk():
    """A build that had no room is not believed when there is room again."""
    limited = f"ulimit -f 1; exec {SCRIPTS}/build-rootfs"
    assert subprocess.run(["bash", "-c", limited], check=False, capture_output=True).returncode
    assert Path(run(f"{SCRIPTS}/build-rootfs")[0]).stat().st_size > 1024
