# SPDX-License-Identifier: GPL-2.0-only
"""setup, with other programs in place of apt-get and dpkg-query."""
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from common import ScriptTest

# As apt-get and dpkg do: a second one fails, and a package that is being replaced is not
# there for a while.
FAKES = {"apt-get": 'echo "$2" >>calls && mkdir busy || exit 100\n'
                    'rm -f installed; sleep 0.5\n'
                    '[ "$2" = update ] || echo installed >installed\nrmdir busy',
         "dpkg-query": "cat installed",
         "sudo": 'exec "$@"'}


class TestSetup(ScriptTest):
    @pytest.fixture(autouse=True)
    def fakes(self, room):
        os.mkdir(self.path("bin"))
        for name, body in FAKES.items():
            self.path(f"bin/{name}", f"#!/bin/sh\n{body}\n")

    def run_setup(self, beside=""):
        return self.run_it("setup", "demo", "book", KNC_PMU_TESTS_RUN=beside,
                           KNC_PMU_CACHE=self.path("cache"),
                           PATH=f"{self.path('bin')}:{os.environ['PATH']}")

    def test_setup_beside_another(self):
        """Runs that come while one installs wait for it, and have nothing to do."""
        with ThreadPoolExecutor() as pool:
            for status, _, err in pool.map(lambda _: self.run_setup(), range(4)):
                assert status == 0, err
        assert Path(self.path("calls")).read_text().split() == ["update", "install"]

    def test_setup_in_a_test(self):
        """Beside tests nothing is installed, and what is missing is named."""
        status, _, err = self.run_setup(beside="yes")
        assert status == 1
        assert re.search("these tests:.* busybox-static .* python3-sphinx", err), err
        assert not os.path.exists(self.path("calls"))
