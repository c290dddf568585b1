# SPDX-License-Identifier: GPL-2.0-only
"""perf.data of a card, read on its host: only names that are proven, and what of it is missing.

perf takes names from this machine's files and its kernel. So it always gets --kallsyms and --symfs:
the card's, or this machine's if the data has its build id. The rest has no name.

knc-host runs it:
  knc_data.py bring DATA SYMFS PREFIX...   copies the programs that the samples are in
  knc_data.py report DATA KALLSYMS SYMFS [ARGUMENT...]
"""
import knc_python

knc_python.check()

import bisect
import collections
import contextlib
import functools
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile

import knc_perf
import knc_script
from knc_perf import Failed

# Of perf.data: struct perf_event_header; enum perf_event_type; what a pipe begins with. A file has
# offset and size of its records in its header.
RECORD = struct.Struct("<IHH")
LOST, THROTTLE, SAMPLE, MMAP2, LOST_SAMPLES, BUILD_ID, HAS_ID = 2, 5, 9, 10, 13, 67, 1 << 14
PIPE_HEADER, DATA_AT = 16, 40
# They have as much behind them as their first number says.
TRACING_DATA, AUXTRACE = 66, 71
# Samples in a row; bytes that are read at a time
IN_A_ROW, WINDOW = b"(?:\\x09\\0{3}..(?:%b))*", 1 << 15
# What no symbols come with
NOTHING = os.devnull
# Files that are no programs, or not to be had
NO_FILE = re.compile(r"/(/|dev/|proc/|sys/|memfd:|SYSV).*|.* \(deleted\)")
# Of a JIT, which perf names by this machine's file, also with --symfs; and a line of that file
JIT = re.compile(r"(\s*([0-9a-f]+)) .* (\((/tmp/perf-\d+\.map)\)\n)")
MAPPED = re.compile(r"(?:0x)?([0-9a-f]+) (?:0x)?([0-9a-f]+) (.+)", re.I)

# @ids: {file: build id} of a pipe; @head: where its samples begin
Walked = collections.namedtuple("Walked", "lost throttled is_cut ids head")


def walk(path):
    """What the records of perf.data say, also where perf reads no further"""
    with open(path, "rb") as f:
        def read(at, size):
            return os.pread(f.fileno(), size, at)

        def number(at, form="<Q"):
            return struct.unpack_from(form, read(at, 8).ljust(8, b"\0"))[0]

        if read(0, 8) != b"PERFILE2":
            raise Failed(f"{path}: perf record has not written it on a machine of this byte order")
        at, end, is_cut = PIPE_HEADER, os.fstat(f.fileno()).st_size, False
        if number(8) != PIPE_HEADER:
            at, size = number(DATA_AT), number(DATA_AT + 8)
            # perf fills in the size at the end.
            is_cut = not size or at + size > end
            end = min(at + size if size else end, end)
        found, sizes, samples, ids, head = collections.Counter(), {}, re.compile(b""), {}, 0
        while at < end:
            data = read(at, min(WINDOW, end - at))
            alike = samples.match(data).end()
            at += alike
            if alike:
                continue
            kind, misc, size = RECORD.unpack_from(data) if len(data) >= RECORD.size else (0, 0, 0)
            behind = number(at + RECORD.size, "<I") + 7 & ~7 if kind == TRACING_DATA else \
                number(at + RECORD.size) if kind == AUXTRACE else 0
            if size < RECORD.size or at + size + behind > end:
                is_cut = True
                break
            if kind == SAMPLE and size not in sizes:
                sizes[size] = re.escape(data[6:8]) + b".{%d}" % (size - RECORD.size)
                samples = re.compile(IN_A_ROW % b"|".join(sizes.values()), re.S)
                head = head or at * (number(8) == PIPE_HEADER)
            if kind == BUILD_ID or kind == MMAP2 and misc & HAS_ID and size > 72:
                ident, name = (data[12:32], data[36:size]) if kind == BUILD_ID else \
                    (data[44:44 + data[40]], data[72:size])
                name = name.split(b"\0")[0].decode(errors="replace")
                ids[re.sub(r"(?<=^\[kernel.kallsyms]).*", "", name)] = ident.hex()
            found[kind] += number(at + 16) if kind == LOST else \
                number(at + 8) if kind == LOST_SAMPLES else 1
            at += size + behind
    # Newer kernels count the losses both ways.
    return Walked(max(found[LOST], found[LOST_SAMPLES]), found[THROTTLE], is_cut, ids, head)


def jit_functions(path):
    """[(begin, end, name)] of code that was made at run time, the later ones in place of others"""
    found = {}
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as f:
        for entry in filter(None, map(MAPPED.match, f)):
            begin = int(entry[1], 16)
            found[begin] = begin, begin + int(entry[2], 16), entry[3]
    return sorted(found.values())


def jit_named(found, functions):
    before, address, behind, _ = found.groups()
    at = bisect.bisect(functions, (int(address, 16), float("inf"))) - 1
    begin, end, name = functions[at] if at >= 0 else (0, 0, "")
    offset = int(address, 16) - begin
    return f"{before} {name}+{offset:#x} {behind}" if begin + offset < end else \
        f"{before} {knc_script.UNKNOWN} {behind}"


@contextlib.contextmanager
def script(perf, path, options):
    """A reader of what perf script prints, and says on stderr"""
    symfs = options[options.index("--symfs") + 1] if "--symfs" in options else "/"
    functions = functools.lru_cache(lambda name: jit_functions(symfs + name))

    def changed(text):
        if symfs != "/" and "/tmp/perf-" in text:
            text = re.sub(".*/tmp/perf-.*\n", lambda line: JIT.sub(
                lambda found: jit_named(found, functions(found[4])), line[0]), text)
        return text

    # With SIGPIPE ignored, as here, perf script outlives an addr2line that finds no file.
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen([*perf, "script", "-i", path, *options], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=said, encoding="utf-8",
                              errors="replace", restore_signals=False,
                              env={**os.environ, "LC_ALL": "C"}) as process:
            reader = knc_script.Reader(process.stdout, changed)
            yield reader
        said.seek(0)
        words = [line for line in said.read().decode(errors="replace").split("\n") if line.strip()]
        for line in words:
            reader.hear(line)
        if process.returncode:
            raise Failed(f"perf script: {next(iter(words), 'it has failed')}")


def note_losses(reader, walked):
    """Have its reader say what perf.data says of losses"""
    reader.lost, reader.is_cut = walked.lost, reader.is_cut or walked.is_cut
    reader.words = [line for line in reader.words if not (
        walked.lost and knc_script.LOST.search(line))]


def build_ids(path):
    """{file: its build id} of perf.data; of a program {"": its build id}"""
    found = knc_perf.captured(["perf", "buildid-list", *(["-i", path] if path else ["-k"])]).stdout
    return {name: ident for ident, name in re.findall(r"^([0-9a-f]{8,})(?: (.*))?$", found, re.M)}


class Symbols:
    """Where perf finds the names that are proven: @options for perf."""

    def __init__(self, ids, kallsyms, symfs, walked):
        self.ids, self.kallsyms, self.symfs, self.walked = ids, kallsyms, symfs, walked
        self.options = ["--kallsyms", kallsyms, "--symfs", symfs]

    def lacks(self, name):
        """Is there nothing that the names of this file could be taken from?"""
        if knc_script.is_kernel(name) and name[0] == "[":
            return self.kallsyms == NOTHING
        if name.startswith("/tmp/perf-"):
            return os.path.exists(name)
        if NO_FILE.fullmatch(name) or name[:1] != "/":
            return False
        here = self.symfs + name
        if not os.path.isfile(here):
            return not (knc_script.is_kernel(name) and self.kallsyms != NOTHING)
        return self.ids.get(name, "") not in ("", build_ids(here).get("", ""))

    def says(self, unnamed):
        """One line of these files, whose frames have no name, if nothing proves it"""
        lacking = sorted(filter(self.lacks, unnamed))
        if lacking:
            yield (f"no names of {', '.join(lacking)}: nothing proves which file that was. --symfs "
                   "DIR has the card's files (with \"/\", this machine's), and the card's "
                   "/proc/kallsyms its kernel's names")


def is_whole(kallsyms):
    """An ordinary user reads 0 for each. If it is cut, its last name has what follows."""
    with open(kallsyms, encoding="utf-8", errors="replace") as f:
        text = f.read()
    return bool(re.search("^0*[1-9a-f]", text, re.M) and re.search("_etext$", text, re.M)) and text[-1] == "\n"


def kernel_names(ident):
    """Names of the kernel with this build id: it runs here, or perf has kept them."""
    kept = os.path.expanduser(f"~/.debug/[kernel.kallsyms]/{ident}/kallsyms")
    return "/proc/kallsyms" if ident and build_ids("").get("") == ident else \
        kept if ident and os.path.exists(kept) else NOTHING


@contextlib.contextmanager
def proven(path, kallsyms, symfs):
    """Symbols for perf.data: from the card, or from this machine's files with its build ids"""
    walked = walk(path)
    ids = walked.ids if walked.head else build_ids(path)
    if not (os.path.exists(kallsyms) and is_whole(kallsyms)):
        kallsyms = kernel_names(ids.get("[kernel.kallsyms]"))
    with tempfile.TemporaryDirectory(prefix="knc-symbols.") as folder:
        for name, ident in ids.items() if not symfs else ():
            if os.path.isfile(name) and os.path.abspath(name) == name and build_ids(name).get("") == ident:
                link(name, folder)
        # These two go by build ids: debug files, and perf's cache, which is below --symfs then.
        if os.path.isdir("/usr/lib/debug/.build-id"):
            link("/usr/lib/debug/.build-id", folder)
        os.symlink(os.path.expanduser("~/.debug"), f"{folder}/.debug")
        yield Symbols(ids, kallsyms, symfs or folder, walked)


def link(name, folder):
    os.makedirs(os.path.dirname(folder + name), exist_ok=True)
    os.symlink(name, folder + name)


def bring(path, symfs, command, perf=("perf",)):
    """Copy the files that samples are in, and callers, to below @symfs; command(NAME) prints one.
    Callers by DWARF are found only with the files of what they call: so it looks again.
    """
    tried = set()
    while True:
        with script(perf, path, ["-F", knc_script.PLACES, "--kallsyms", NOTHING, "--symfs",
                                     symfs]) as reader:
            names = {frame.object for sample in reader for frame in sample.frames} - tried
        names = {name for name in names if name[:1] == "/" and not NO_FILE.fullmatch(name) and
                 os.path.normpath(name) == name}
        if not names:
            return
        tried |= names
        for name in sorted(names):
            os.makedirs(os.path.dirname(symfs + name), exist_ok=True)
            with open(symfs + name, "wb") as f:
                done = subprocess.run(command(name), check=False, stdin=subprocess.DEVNULL,
                                      stdout=f, stderr=subprocess.DEVNULL)
            if done.returncode or not os.path.getsize(symfs + name):
                os.remove(symfs + name)


@contextlib.contextmanager
def borrowed(names, symfs):
    """perf report reads such a file in /tmp alone: meanwhile it is there, if no other one is"""
    with contextlib.ExitStack() as links:
        for name in names:
            with contextlib.suppress(OSError):
                if os.path.isfile(symfs + name):
                    os.symlink(os.path.realpath(symfs + name), name)
                    links.callback(os.unlink, name)
        yield


def report(path, kallsyms, symfs, *arguments):
    """perf report, with what is missing of the data above it. The status is 1 if data is cut."""
    with proven(path, kallsyms, symfs) as symbols:
        with script(["perf"], path, ["-F", knc_script.PLACES, *symbols.options]) as reader:
            frames = {(frame.object, frame.function) for sample in reader for frame in sample.frames}
        note_losses(reader, symbols.walked)
        unnamed = {name for name, function in frames if function == knc_script.UNKNOWN}
        maps = {name for name, _ in frames if re.fullmatch(r"/tmp/perf-\d+\.map", name)}
        jit = any(map(os.path.lexists, maps))
        for line in [*reader.says(), *symbols.says(unnamed), *["[JIT] names are this machine's"] * jit]:
            print(f"# {line}", flush=True)
        shown = False
        with borrowed(maps, symbols.symfs), subprocess.Popen(
                ["perf", "report", "--stdio", "-i", path, *symbols.options, *arguments],
                stdout=subprocess.PIPE) as perf:
            for line in perf.stdout:
                shown |= line[:1] not in (b"#", b"\n")
                sys.stdout.buffer.write(line)
    sys.stdout.flush()
    if reader.taken and not (shown or perf.returncode or "--header-only" in arguments):
        raise Failed(f"perf report shows none of {reader.taken:,} samples: this machine's perf is older "
                     f"than the card's. The page has them: knc-report {path}")
    return perf.returncode or int(reader.is_cut)


def main(what, path, *words):
    if what == "report":
        return report(path, *words)
    symfs, *prefix = words
    os.makedirs(symfs, exist_ok=True)
    return bring(path, symfs, lambda name: [*prefix, f"cat {shlex.quote(name)}"])


if __name__ == "__main__":
    knc_perf.run(f"knc-host: {sys.argv[2]}", main, *sys.argv[1:])
