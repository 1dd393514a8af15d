"""Reads Criteo rows from standard input, and prints MultiSlot lines: 13 numbers, 26 ids, the label."""

import sys
import zlib

import paddle.fluid.incubate.data_generator as dg

LEAST = [0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
RANGE = [20, 603, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50]
NUMBERS = range(1, 14)
CATEGORIES = range(14, 40)


class CriteoReader(dg.MultiSlotDataGenerator):
    """Ids are a hash of column and value below a limit: the same in every process."""

    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def generate_sample(self, line):
        """One row."""

        def reader():
            columns = line.rstrip("\n").split("\t")
            numbers = [(float(columns[i]) - LEAST[i - 1]) / RANGE[i - 1] if columns[i] else 0.0
                       for i in NUMBERS]
            ids = [[zlib.crc32((str(i) + columns[i]).encode()) % self.limit] for i in CATEGORIES]
            names = ["dense_input"] + ["C" + str(i - 13) for i in CATEGORIES] + ["label"]
            yield list(zip(names, [numbers] + ids + [[int(columns[0])]]))

        return reader


CriteoReader(int(sys.argv[1])).run_from_stdin()
