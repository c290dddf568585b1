# SPDX-License-Identifier: GPL-2.0-only
"""Sphinx's settings for the book; "make book" builds it."""
import os
import re
import subprocess

_TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
with open(os.path.join(_TOP, "Makefile"), encoding="utf-8") as _f:
    version = release = re.search(r"^version := (.*)", _f.read(), re.M).group(1)

project = "knc-pmu"
author = "knc-pmu contributors"
# No year: pages are the same in each build.
copyright = author
root_doc = "index"
exclude_patterns = ["_build"]
# Code is shown as it is: most of it is what a terminal shows.
highlight_language = "none"
# Colours would have to be others in a dark page.
pygments_style = "bw"
nitpicky = True
html_theme = "alabaster"
# Code of 102 columns is seen whole in a window of 1280 pixels.
html_theme_options = {"page_width": "1200px", "sidebar_width": "240px",
                      "body_min_width": "0", "body_max_width": "900px", "code_font_size": "0.8em",
                      "description": "perf on Knights Corner"}
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
html_show_sourcelink = False
# Each page asks for custom.css.
html_static_path = ["_static"]


def _fill(_app, _page, source):
    """Put the tables that gen-events prints where a page asks for them."""
    source[0] = re.sub(
        r"^\.\. generated: (.*)$",
        lambda found: subprocess.run([os.path.join(_TOP, "scripts/gen-events"), found[1]],
                                     check=True, stdout=subprocess.PIPE, text=True).stdout,
        source[0], flags=re.M)


def setup(app):
    app.connect("source-read", _fill)
