# SPDX-License-Identifier: GPL-2.0-only
import pytest


@pytest.fixture(autouse=True)
def room(tmp_path, monkeypatch):
    """Each test runs in a folder of its own."""
    monkeypatch.chdir(tmp_path)
