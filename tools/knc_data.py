# SPDX-License-Identifier: GPL-2.0-only
"""perf.data, as a file or as a pipe has it: what was lost, and no more samples than differ.

Imported by knc_samples.
"""
import collections
import struct

from knc_runs import Failed

# struct perf_event_header; enum perf_event_type, and perf's own after it
RECORD = struct.Struct("<IHH")
MMAP, LOST, THROTTLE, FORK, SAMPLE, MMAP2, LOST_SAMPLES, ATTR = 1, 2, 5, 7, 9, 10, 13, 64
# PERF_RECORD_HEADER_EVENT_TYPE: perf does not read it, whatever is in it.
NOTHING = 65
# What a pipe begins with. A file has pairs of offset and size after magic and size: attributes
# and records.
PIPE_HEADER, ATTRS_AT, DATA_AT = 16, 24, 40
# Of struct perf_event_attr
SAMPLE_TYPE_AT = 24
# Bits of sample_type, 8 bytes of a sample each, in this order
IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD = \
    1 << 16, 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 6, 1 << 9, 1 << 7, 1 << 8
FIELDS = IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD
NEEDED = IP | TID | TIME | PERIOD
# Those that stand after the time at the end of other records
AFTER_TIME = ID, STREAM_ID, CPU, IDENTIFIER


class Data:
    """The whole of it"""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.bytes = bytearray(f.read())
        if self.bytes[:8] != b"PERFILE2":
            raise Failed("perf record has not written what perf script reads")
        self.is_pipe = self.u64(8) == PIPE_HEADER
        self.begin, self.end = PIPE_HEADER, len(self.bytes)
        if not self.is_pipe:
            self.begin = self.u64(DATA_AT)
            self.end = self.begin + self.u64(DATA_AT + 8)

    def u32(self, at):
        return struct.unpack_from("<I", self.bytes, at)[0]

    def u64(self, at):
        return struct.unpack_from("<Q", self.bytes, at)[0]

    def add(self, at, value):
        struct.pack_into("<Q", self.bytes, at, self.u64(at) + value)

    def records(self):
        """(offset, kind, size) of each that is whole"""
        at = self.begin
        while at + RECORD.size <= self.end:
            kind, _, size = RECORD.unpack_from(self.bytes, at)
            if size < RECORD.size or at + size > self.end:
                break
            yield at, kind, size
            at += size

    def losses(self):
        """(lost samples, times that perf core has throttled an event)"""
        found = collections.Counter()
        for at, kind, _ in self.records():
            found[kind] += self.u64(at + 16) if kind == LOST else \
                self.u64(at + 8) if kind == LOST_SAMPLES else 1
        # Newer kernels count the same losses both ways.
        return max(found[LOST], found[LOST_SAMPLES]), found[THROTTLE]

    def sample_type(self):
        """What all events' samples have; 0 if they differ"""
        if self.is_pipe:
            attrs = [at + RECORD.size for at, kind, _ in self.records() if kind == ATTR]
        else:
            first, size = self.u64(ATTRS_AT), self.u64(ATTRS_AT + 8)
            attrs = range(first, first + size, self.u64(16))
        types = {self.u64(at + SAMPLE_TYPE_AT) for at in attrs}
        return types.pop() if len(types) == 1 else 0

    def merge(self):
        """Of an event's samples of one address, while their process maps no file, leave the
        first, with the sum of their periods as its period. perf looks up each sample's line
        anew, and that takes more time than anything else.
        """
        bits = self.sample_type()
        if bits & NEEDED != NEEDED:
            return
        where, at = {}, RECORD.size
        for field in FIELDS:
            where[field] = at
            at += 8 if bits & field else 0
        time_at_end = 8 + 8 * sum(bool(bits & field) for field in AFTER_TIME)
        ordered = []
        for at, kind, size in self.records():
            if kind == SAMPLE:
                ordered.append((self.u64(at + where[TIME]), at, kind))
            elif kind in (MMAP, MMAP2, FORK):
                ordered.append((self.u64(at + size - time_at_end), at, kind))
        maps, first = collections.Counter(), {}
        # CPUs have buffers of their own: what came later may stand first.
        for _, at, kind in sorted(ordered):
            if kind != SAMPLE:
                maps[self.u32(at + RECORD.size)] += 1
                continue
            pid = self.u32(at + where[TID])
            event = self.u64(at + where[IDENTIFIER if bits & IDENTIFIER else ID]) \
                if bits & (IDENTIFIER | ID) else 0
            stays = first.setdefault((event, pid, maps[pid], self.u64(at + where[IP])), at)
            if stays != at:
                self.add(stays + where[PERIOD], self.u64(at + where[PERIOD]))
                struct.pack_into("<I", self.bytes, at, NOTHING)

    def write(self, path):
        with open(path, "wb") as f:
            f.write(self.bytes)
