# SPDX-License-Identifier: GPL-2.0-only
"""Which Python the tools need. Each of them checks it before it imports anything else: an older
one cannot read the other modules. Python 3.6 can read this module and the programs.
"""
import os
import sys

NEEDED = (3, 9)


def check():
    if sys.version_info < NEEDED:
        sys.exit("{}: needs Python {}.{}; this is {}.{}".format(
            os.path.basename(sys.argv[0]), *NEEDED, *sys.version_info[:2]))
