# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of the scripts share."""
import importlib.machinery
import importlib.util
import os
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPTS = os.path.join(TOP, "scripts")


def load(name):
    """A script in Python, as a module."""
    path = os.path.join(SCRIPTS, name)
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class ScriptTest(unittest.TestCase):
    """With a directory of its own, that the programs run in."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = folder.name

    def path(self, name, content=None):
        path = os.path.join(self.work, name)
        if content is not None:
            with open(path, "wb") as f:
                f.write(content)
        return path

    def unbuilt(self, *command, **env):
        """The same, of a command that must not have begun to build anything."""
        cache = self.path("cache")
        result = self.run_it(*command, KNC_PMU_CACHE=cache, **env)
        self.assertFalse(os.path.exists(cache), f"{command}: has begun to build")
        return result

    def run_it(self, *command, timeout=60, **env):
        """Status, stdout and stderr of a command of ours."""
        program = command[0]
        if "/" not in program and os.path.exists(os.path.join(SCRIPTS, program)):
            program = os.path.join(SCRIPTS, program)
        done = subprocess.run([program, *command[1:]], cwd=self.work, check=False,
                              env={**os.environ, **env}, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=timeout)
        return (done.returncode, done.stdout.decode(errors="replace"),
                done.stderr.decode(errors="replace"))
