# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of the scripts share."""
import os
import subprocess
from pathlib import Path

from lines import TOP

ROOMS = [os.path.join(TOP, room) for room in ("scripts", "tools")]
# A way to a card beside ssh: it runs a command as it stands, knows no card's name, and serves one
# session at a time.
PHI = """#!/bin/sh
exec 9>"$WORK/session"
flock -n 9 || { echo "a session is open" >&2; exit 1; }
[ "$#: $1 $2 $3" = "4: run sh -c" ] && exec "$WORK/ssh" mic0 "$4"
"""


def find(name):
    """A program of ours, or the name as it is."""
    paths = [os.path.join(room, name) for room in ROOMS]
    return next(filter(os.path.exists, paths), name)


class ScriptTest:
    # What the environment of programs has, too
    env = {}

    def path(self, name, content=None):
        """A file of the test, which gets this content. What begins with #! is a program."""
        path = Path(name).absolute()
        if content is not None:
            content = content.encode() if isinstance(content, str) else content
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o755 if content[:2] == b"#!" else 0o644)
        return str(path)

    def passes(self, *command, **env):
        """What a command prints that has status 0, and nothing to say on stderr"""
        status, out, err = self.run_it(*command, **env)
        assert (status, err) == (0, ""), out
        return out

    def refuses(self, why, status, *command, **env):
        """A command prints nothing, says why, and has begun to build nothing."""
        got, out, err = self.unbuilt(*command, **env)
        assert (got, out) == (status, "") and why in err and "Traceback" not in err, (command, err)

    def unbuilt(self, *command, **env):
        """The same, of a command that builds nothing. What Python compiles is no build."""
        cache = self.path("cache")
        result = self.run_it(*command, KNC_PMU_CACHE=cache, **env)
        made = os.listdir(cache) if os.path.isdir(cache) else []
        assert made in ([], ["python"]), f"{command}: has begun to build"
        return result

    def run_it(self, *command, **env):
        """Status, stdout and stderr of a command of ours."""
        done = subprocess.run([find(command[0]), *command[1:]], check=False, timeout=600,
                              env={**os.environ, **self.env, **env}, stdin=subprocess.DEVNULL,
                              capture_output=True)
        return (done.returncode, done.stdout.decode(errors="replace"),
                done.stderr.decode(errors="replace"))

    def begin(self, name, *args, **env):
        """A command of ours that runs, as a terminal starts it: with SIGINT"""
        return subprocess.Popen(
            ["env", "--default-signal=INT,HUP", find(name), *args], text=True,
            env={**os.environ, **self.env, **env}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
