# SPDX-License-Identifier: GPL-2.0-only
"""What knc-metrics leaves of perf.data, as a file and as a pipe has it"""
import struct
import sys

from lines import TOP

sys.path.insert(0, f"{TOP}/tools")
import knc_data  # noqa: E402

MMAP2, SAMPLE, ROUND, NOTHING = 10, 9, 68, 65
FORMS = False, True    # is it a pipe?
# IDENTIFIER, IP, TID, TIME, CPU, PERIOD, as perf record -a -P has it; and without the CPU
BITS = 1 << 16 | 1 << 0 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8


def record(kind, body):
    return struct.pack("<IHH", kind, 0, 8 + len(body)) + body


def sample(event, pid, ip, time, period=100, bits=BITS):
    body = struct.pack("<QQIIQ", event, ip, pid, pid + 1, time)
    body += struct.pack("<Q", 3) if bits & 1 << 7 else b""
    return record(SAMPLE, body + (struct.pack("<Q", period) if bits & 1 << 8 else b""))


def mapping(pid, time, bits=BITS):
    """What is not read, and the end that all records have: TID, TIME, CPU, IDENTIFIER"""
    end = struct.pack("<IIQ", pid, pid, time) + (bytes(8) if bits & 1 << 7 else b"") + bytes(8)
    return record(MMAP2, struct.pack("<II", pid, pid) + bytes(64) + end)


def attribute(bits):
    return struct.pack("<IIQQQ", 4, 128, 0, 0, bits).ljust(128, b"\0")


def data(tmp_path, is_pipe, records, bits=(BITS, BITS)):
    """Its path"""
    attrs, records = [attribute(b) for b in bits], b"".join(records)
    if is_pipe:
        text = struct.pack("<8sQ", b"PERFILE2", 16)
        text += b"".join(record(64, attr) for attr in attrs) + records
    else:
        attrs = b"".join(attr + bytes(16) for attr in attrs)
        at = 104 + len(attrs)
        text = struct.pack("<8s8Q", b"PERFILE2", 104, 144, 104, len(attrs), at, len(records), 0, 0)
        text += bytes(32) + attrs + records + b"the features"
    path = tmp_path / "perf.data"
    path.write_bytes(text)
    return path


def merged(path):
    """[(event, pid, ip, time, period)] of the samples, in their order, and how many others"""
    found = knc_data.Data(path)
    found.merge()
    found.write(path)
    found = knc_data.Data(path)
    samples, others = [], 0
    for at, kind, size in found.records():
        if kind == SAMPLE:
            event, ip, pid, _, time = struct.unpack_from("<QQIIQ", found.bytes, at + 8)
            samples.append((event, pid, ip, time, found.u64(at + size - 8)))
        else:
            others += kind not in (64, NOTHING)
    return samples, others


def test_data_merged(tmp_path):
    """One sample is left of those that are alike, with all of their period"""
    for is_pipe in FORMS:
        records = [mapping(7, 0), sample(1, 7, 0x40, 10), sample(1, 7, 0x40, 11),
                   record(ROUND, b""), sample(1, 7, 0x40, 12, 50), sample(2, 7, 0x40, 13),
                   sample(1, 8, 0x40, 14), sample(1, 7, 0x44, 15), sample(2, 7, 0x40, 16)]
        assert merged(data(tmp_path, is_pipe, records)) == (
            [(1, 7, 0x40, 10, 250), (2, 7, 0x40, 13, 200), (1, 8, 0x40, 14, 100),
             (1, 7, 0x44, 15, 100)], 2)


def test_data_mapped(tmp_path):
    """After its process has mapped another file an address is another place. Each CPU has
    a buffer of its own, so this goes by the time.
    """
    for is_pipe in FORMS:
        # The program is executed at 20, on the CPU that comes first in the file.
        records = [mapping(7, 20), sample(1, 7, 0x40, 21), sample(1, 7, 0x40, 22),
                   mapping(8, 12), sample(1, 7, 0x40, 10), sample(1, 7, 0x40, 11)]
        assert merged(data(tmp_path, is_pipe, records)) == (
            [(1, 7, 0x40, 21, 200), (1, 7, 0x40, 10, 200)], 2)
        bits = BITS & ~(1 << 7)
        records = [mapping(7, 20, bits), sample(1, 7, 0x40, 21, bits=bits),
                   sample(1, 7, 0x40, 10, bits=bits)]
        assert len(merged(data(tmp_path, is_pipe, records, (bits, bits)))[0]) == 2


def test_data_left(tmp_path):
    """What has other fields stays as it is, and so does the end of what is not whole"""
    for is_pipe in FORMS:
        records = [sample(1, 7, 0x40, 10, 1), sample(1, 7, 0x40, 11, 1)]
        for bits in ((BITS, BITS | 1 << 3), (BITS & ~(1 << 8),) * 2):
            path = data(tmp_path, is_pipe, records, bits)
            before = path.read_bytes()
            merged(path)
            assert path.read_bytes() == before
        if is_pipe:
            path = data(tmp_path, is_pipe, [*records, b"\x09\0\0\0\0\0\x30\0part"])
            assert merged(path) == ([(1, 7, 0x40, 10, 2)], 0)
            assert path.read_bytes().endswith(b"part")
