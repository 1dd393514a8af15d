"""Models that are ready to train."""

import os
import zlib
from typing import Callable, Dict, Iterator, List

import numpy as np

import argosy
import paddle.fluid as fluid

_LEAST = np.array([0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], dtype=np.float32)
_RANGE = np.array([20, 603, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50], dtype=np.float32)


class MultiSlotCTR:
    """CTR-DNN: 13 numbers and 26 ids of a click, three layers; a program of its own."""

    def __init__(self, sparse_feature_dim: int = 1000001, embedding_size: int = 10):
        argosy.enable_static()
        self.sparse_feature_dim = sparse_feature_dim
        dense = fluid.layers.data("dense_input", [13], dtype="float32")
        ids = [fluid.layers.data(f"C{i}", [1], dtype="int64") for i in range(1, 27)]
        label = fluid.layers.data("label", [1], dtype="int64")
        rows = [fluid.layers.embedding(one, [sparse_feature_dim, embedding_size], is_sparse=True,
                                       param_attr=fluid.ParamAttr(
                                           name="SparseFeatFactors",
                                           initializer=fluid.initializer.Uniform(-0.1, 0.1)))
                for one in ids]
        x = fluid.layers.concat(rows + [dense], axis=1)
        for _ in range(3):
            x = fluid.layers.fc(x, 400, act="relu")
        self.prediction = fluid.layers.fc(x, 2, act="softmax")
        self.loss = fluid.layers.mean(fluid.layers.cross_entropy(self.prediction, label))
        self.auc = fluid.layers.auc(self.prediction, label)[0]
        self.inputs = [dense] + ids + [label]
        self.target = self.prediction
        self.checkpoints: List[str] = []
        self.main_prog = fluid.default_main_program()
        self.startup_prog = fluid.default_startup_program()

    def load_criteo_from_file(self, path: str, sparse_feature_dim: int = 0, batch_size: int = 1000,
                              shuffle: bool = True) -> "CriteoLoader":
        """Batches of the Criteo rows in a file, or in all files of a folder."""
        return CriteoLoader(path, sparse_feature_dim or self.sparse_feature_dim, batch_size, shuffle)


class CriteoLoader:
    """loader(): feeds, batch by batch. Every worker reads everything."""

    def __init__(self, path: str, limit: int, batch_size: int, shuffle: bool):
        files = [path] if os.path.isfile(path) else \
            [os.path.join(path, name) for name in sorted(os.listdir(path))]
        if not files:
            raise argosy.DataError(f"{path} has no file")
        self._files, self._limit = files, limit
        self.batch_size, self._shuffle = batch_size, shuffle

    def __call__(self) -> Iterator[Dict[str, np.ndarray]]:
        """One pass."""
        rows: List[List[str]] = []
        for row in self._rows():
            rows.append(row)
            if len(rows) == self.batch_size:
                yield self._feed(rows)
                rows = []
        if rows:
            yield self._feed(rows)

    __iter__ = __call__

    def _rows(self) -> Iterator[List[str]]:
        """In order, or drawn from a buffer of a hundred batches."""
        lines = self._lines()
        if not self._shuffle:
            yield from lines
            return
        draw = np.random.RandomState(0)
        buffer: List[List[str]] = []
        for line in lines:
            if len(buffer) < 100 * self.batch_size:
                buffer.append(line)
                continue
            at = draw.randint(len(buffer))
            yield buffer[at]
            buffer[at] = line
        draw.shuffle(buffer)
        yield from buffer

    def _lines(self) -> Iterator[List[str]]:
        for name in self._files:
            with open(name, encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    columns = line.rstrip("\n").split("\t")
                    if len(columns) != 40:
                        raise argosy.DataError(f"{name}:{number}: {len(columns)} columns, expected "
                                               "a label, 13 numbers and 26 categories")
                    yield columns

    def _feed(self, rows: List[List[str]]) -> Dict[str, np.ndarray]:
        label = np.array([[int(row[0])] for row in rows], dtype=np.int64)
        dense = np.array([[value or "0" for value in row[1:14]] for row in rows], dtype=np.float32)
        missing = np.array([[not value for value in row[1:14]] for row in rows])
        dense = np.where(missing, np.float32(0), (dense - _LEAST) / _RANGE)
        feed = {"dense_input": dense, "label": label}
        hashed: Callable[[str], int] = lambda text: zlib.crc32(text.encode()) % self._limit
        for slot in range(26):
            prefix = str(slot + 14)
            feed[f"C{slot + 1}"] = np.array([[hashed(prefix + row[14 + slot])] for row in rows],
                                            dtype=np.int64)
        return feed
