# SPDX-License-Identifier: GPL-2.0-only
"""Flame graphs: as a text, a picture, or folded stacks."""
import collections
import functools
import itertools
from xml.sax.saxutils import escape, quoteattr

import knc_script
from knc_perf import Failed

# What is left out in the text
LEAST = 0.005
# Percent of a picture's width; narrower boxes cannot be seen.
LEAST_SEEN = 0.025


def hexa(rgb):
    return f"#{bytes(rgb).hex()}"


def svg_head(size, title, text=11):
    """Dark where the browser is; other viewers do not know its colours by these names."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" '
            f'font-size="{text}" fill="#000" style="color-scheme:light dark;fill:CanvasText">\n'
            f'<title>{escape(title)}</title>\n'
            '<rect width="100%" height="100%" fill="#fff" style="fill:Canvas"/>')


@functools.lru_cache(1 << 15)
def shown(frame):
    """A function's name, and whether it is the kernel's: by its file, or its address"""
    is_high = frame.address and int(frame.address, 16) >> 63 and frame.object != "[vsyscall]"
    return frame.function + "_[k]" * bool(is_high or knc_script.is_kernel(frame.object))


class Stacks:
    """All samples of a knc_script.Reader: {event: {stack, outermost first: [samples, weight]}}. Folded
    stacks have no event: it is "", and a sample is what they count.
    """

    def __init__(self, reader):
        self.events = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
        # How many samples have the same frames: several may have the same names
        self.reader, self.frames = reader, collections.Counter()
        for sample in reader:
            stack = (*[sample.comm] * (sample.comm is not None), *map(shown, reversed(sample.frames)))
            both = self.events[sample.event][stack]
            both[0] += sample.weight if reader.is_folded else sample.count
            both[1] += sample.weight
            self.frames[sample.frames] += sample.count

    def check(self):
        """Fail if there is nothing to draw"""
        if self.reader.refuses():
            raise Failed(self.reader.refuses())
        if not (any(self.frames) and any(weight for found in self.events.values() for _, weight in found.values())):
            raise Failed("; ".join([*self.reader.says(), 'there are no stacks in it; it takes what "perf '
                                    'script" prints after "perf record -g"']))

    def picture(self):
        """Of the first event"""
        self.check()
        event, samples = next(iter(self.events.items()))
        root = tree(samples)
        return svg_flame(root, heading(root, event))

    def sum(self, part):
        """Of part(frames), over all samples"""
        return sum(count * part(frames) for frames, count in self.frames.items())

    def called(self):
        """The part of the samples that have callers"""
        return self.sum(lambda frames: len(frames) > 1) / max(1, self.reader.taken)

    def unnamed(self):
        return {frame.object for frames in self.frames for frame in frames
                if frame.function == knc_script.UNKNOWN}


class Node:
    __slots__ = "name", "samples", "total", "own", "below", "before"

    def __init__(self, name):
        self.name, self.samples, self.total, self.own, self.below = name, 0, 0, 0, {}
        # With --before: the weight that it had
        self.before = 0

    def along(self, stack):
        """It, and the nodes of a stack below it"""
        yield self
        for name in stack:
            self = self.below.setdefault(name, Node(name))
            yield self


def tree(stacks, before=()):
    root = Node("all")
    for stack in before:
        for node in root.along(stack):
            node.before += before[stack][1]
    for stack, (samples, weight) in stacks.items():
        for node in root.along(stack):
            node.samples += samples
            node.total += weight
        node.own += weight
    if not root.total:
        raise Failed("the samples of this event stand for none: each has the period 0")
    return root


def boxes(node, least, level=0, begin=0):
    """(node, how many are below it, the weight of what is beside it), what took longest first"""
    yield node, level, begin
    for child in sorted(node.below.values(), key=lambda n: (-n.total, n.name)):
        if child.total >= least:
            yield from boxes(child, least, level + 1, begin)
        begin += child.total


def changes(node, least, level=0):
    """(node, how many are below it), what has changed most first; those that are gone, too"""
    yield node, level
    for child in sorted(node.below.values(), key=lambda n: (-abs(n.total - n.before), n.name)):
        if max(child.total, child.before) >= least:
            yield from changes(child, least, level + 1)


def cut(text, letters):
    return text if len(text) <= letters else text[:letters - 1] + "…" if letters > 2 else ""


def text_flame(root, columns, what):
    """An indented tree; of two recordings all by what the first one has as a whole"""
    all_of, bar = root.before or root.total, 12
    out = [what + ("; percent before and after, and the difference, of all before"
                   if root.before else "; percent with and without callees")]
    for node, level in itertools.islice(changes(root, all_of * LEAST), 1, None):
        part, was, own = (each / all_of for each in (node.total, node.before, node.own))
        name = "  " * (level - 1) + node.name
        out.append(f"{was:7.1%} {part:7.1%} {(node.total - node.before) / all_of:+8.1%}  "
                   f"{cut(name, max(20, columns - 27))}" if root.before else
                   f"{part:6.1%} {own:6.1%}  {'#' * round(part * bar):{bar}} "
                   f"{cut(name, max(20, columns - bar - 18))}")
    return "\n".join(out) + "\n"


def svg_flame(root, title):
    """As wide as there is room; each box is a picture of itself, which cuts its name off."""
    row, top, scale = 17, 40, 100 / root.total
    found = [*boxes(root, LEAST_SEEN / scale)]
    levels = max(level for _, level, _ in found)
    most = max(abs(node.total - node.before) for node, _, _ in found)
    out = [svg_head(f'width="100%" height="{top + (levels + 1) * row}"', title),
           f'<text x="4" y="22" font-size="14">{escape(title)}</text>']
    for node, level, begin in found:
        x, y, width = begin * scale, top + (levels - level) * row, node.total * scale
        name = node.name.removesuffix("_[k]")
        tip = (f"{node.name}: {whole(node.samples)} samples, {node.total / root.total:.1%}; "
               f"{node.own / root.total:.1%} of its own")
        # Warm for programs, cold for the kernel
        fill = "#f0a050" if name == node.name else "#80b8d8"
        if root.before:
            tip += (f"; before {node.before:,.15g}, after {node.total:,.15g}: "
                    f"{node.total - node.before:+,.15g}")
            # Red is more, blue is less; white is as much as before.
            change = (node.total - node.before) / most if most else 0
            pale = round(255 * (1 - min(abs(change), 1) ** 0.5))
            fill = hexa((255, pale, pale) if change > 0 else (pale, pale, 255))
        out.append(f'<svg x="{x:.3f}%" y="{y}" width="{width:.3f}%" height="{row - 1}" '
                   f'tabindex="0" role="img" aria-label={quoteattr(tip)}>'
                   f'<title>{escape(tip)}</title><rect width="100%" height="100%" fill="{fill}" '
                   f'stroke="#fff" style="stroke:Canvas"/><text x="4" y="{row - 5}" '
                   f'style="fill:#000">{escape(name)}</text></svg>')
    return "\n".join([*out, "</svg>", ""])


def heading(root, event):
    return f"{whole(root.samples)} samples of {event or 'events that are not named'}"


def whole(count):
    """An integer without decimals, and no digits that only the sum of decimals has"""
    return count if isinstance(count, int) else f"{count:.15g}"


def folded(stacks):
    """What inferno, FlameGraph and speedscope read. There ";" parts functions"""
    return "".join(f"{';'.join(name.replace(';', ':') for name in stack)} {whole(weight)}\n"
                   for stack, (_, weight) in sorted(stacks.items()))
