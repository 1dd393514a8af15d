#!/usr/bin/env python3
"""Turns click logs on stdin into MultiSlot lines on stdout: the pipe_command of config.yaml.

Reads raw rows of Criteo (40 columns with tabs between them: label, 13 integers, 26 categories) or
PaddleRec's slot text (click:0 dense_feature:0.1 ... 1:737395 ... 26:715353), line by line. Writes
the slots in the order that the configuration has them: dense_input, C1 to C26, label.

Ids and dense values are those of argosy's parser `criteo`: an id is XXH64, seed 0, of the column's
number and the value's bytes, modulo the size of the table (docs/formats/criteo-hash.md). A line
that cannot be read becomes one that the trainer counts as bad, so that line numbers stay.

  benchmark_reader.py [--hash SIZE] [YAML FOLDER]

The trainer appends the paths of the YAML file and of its folder, which are not needed here.
"""

import argparse
import math
import struct
import sys

INTEGERS, CATEGORIES = 13, 26
COLUMNS = 1 + INTEGERS + CATEGORIES
MIN = (0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
DIFF = (20, 603, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50)

MASK = (1 << 64) - 1
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def rotate(x, bits):
    return (x << bits | x >> (64 - bits)) & MASK


def mixed(lane, word):
    return rotate((lane + word * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
    """XXH64 with seed 0."""
    size, at = len(data), 0
    if size >= 32:
        lanes = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while at + 32 <= size:
            words = struct.unpack_from("<4Q", data, at)
            lanes = [mixed(lane, word) for lane, word in zip(lanes, words)]
            at += 32
        h = sum(rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            h = ((h ^ mixed(0, lane)) * P1 + P4) & MASK
    else:
        h = P5
    h = h + size & MASK
    # Most values take this way once each, so the rotations are written out.
    while at + 8 <= size:
        k = int.from_bytes(data[at:at + 8], "little") * P2 & MASK
        h ^= (k << 31 | k >> 33) * P1 & MASK
        h = ((h << 27 | h >> 37) & MASK) * P1 + P4 & MASK
        at += 8
    if at + 4 <= size:
        h ^= int.from_bytes(data[at:at + 4], "little") * P1 & MASK
        h = ((h << 23 | h >> 41) & MASK) * P2 + P3 & MASK
        at += 4
    for byte in data[at:]:
        h ^= byte * P5 & MASK
        h = ((h << 11 | h >> 53) & MASK) * P1 & MASK
    h = (h ^ h >> 33) * P2 & MASK
    h = (h ^ h >> 29) * P3 & MASK
    return h ^ h >> 32


class Column(dict):
    """Output of each value of a column. Values repeat, so most are only looked up."""

    LARGEST = 1 << 20

    def __missing__(self, value):
        if len(self) >= self.LARGEST:
            self.clear()
        self[value] = text = self.written(value)
        return text


class Category(Column):
    def __init__(self, column, table_size):
        super().__init__()
        self.prefix, self.table_size = str(column).encode(), table_size

    def written(self, value):
        return b"1 %d" % (xxh64(self.prefix + value) % self.table_size)


def number(value):
    """The finite number of a text; what only Python takes for a number is refused."""
    result = float(value)
    if not math.isfinite(result) or b"_" in value or value != value.strip():
        raise ValueError
    return result


class Integer(Column):
    def __init__(self, index):
        super().__init__()
        self.first, self.min, self.diff = index == 0, MIN[index], DIFF[index]

    def written(self, value):
        scaled = (number(value) - self.min) / self.diff if value else 0.0
        # As the trainer's float, whose digits read back as the same bits.
        text = repr(struct.unpack("f", struct.pack("f", scaled))[0]).encode()
        return b"%d %s" % (INTEGERS, text) if self.first else text


class Label(Column):
    def written(self, value):
        number(value)
        return b"1 " + value


class RawRows:
    def __init__(self, table_size):
        self.label = Label()
        self.features = [Integer(i) for i in range(INTEGERS)]
        self.features += [Category(1 + INTEGERS + i, table_size) for i in range(CATEGORIES)]

    def __call__(self, line):
        values = line.split(b"\t")
        if len(values) != COLUMNS:
            return b"bad line: expected 40 columns, found %d" % len(values)
        out = [column[value] for column, value in zip(self.features, values[1:])]
        out.append(self.label[values[0]])
        return b" ".join(out)


def slot_text(line):
    """A slot that the line does not have is padded with 0, as PaddleRec's readers do."""
    slots = {}
    for word in line.split():
        name, _, value = word.partition(b":")
        slots.setdefault(name, []).append(value)
    names = [b"dense_feature", *(b"%d" % i for i in range(1, CATEGORIES + 1)), b"click"]
    out = []
    for name in names:
        values = slots.pop(name, [b"0"] * (INTEGERS if name == b"dense_feature" else 1))
        out.append(b"%d %s" % (len(values), b" ".join(values)))
    if slots:
        return b"bad line: no slot " + next(iter(slots))
    return b" ".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hash", type=int, default=1000001, metavar="SIZE", help="size of the id range")
    parser.add_argument("ignored", nargs="*", help="what the trainer appends")
    raw = RawRows(parser.parse_args().hash)
    write = sys.stdout.buffer.write
    for line in sys.stdin.buffer:
        line = line.rstrip(b"\r\n")
        try:
            out = (raw(line) if b"\t" in line else slot_text(line)) if line else line
        except (ValueError, OverflowError):
            out = b"bad line: a value is not a finite number"
        write(out + b"\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.exit(1)
