# SPDX-License-Identifier: GPL-2.0-only
"""What the scripts in Python share, as lib.sh is for those in shell."""
import os

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.environ.get("KNC_PMU_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "knc-pmu")
