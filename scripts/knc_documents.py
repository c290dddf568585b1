# SPDX-License-Identifier: GPL-2.0-only
"""What the scripts print for the documents"""


def table(head, rows):
    """A simple table of reStructuredText"""
    widths = [max(len(row[i]) for row in [head] + rows) for i in range(len(head))]
    rule = "  ".join("=" * width for width in widths)
    lines = [rule, head, rule, *rows, rule]
    return "\n".join(
        line if isinstance(line, str) else
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
        for line in lines)
