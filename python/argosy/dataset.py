"""Data sets of files, read and parsed by the engine."""

import os
import random
from typing import Any, List, Optional, Sequence

import numpy as np

from argosy import _core


class DatasetBase:
    """Files of lines, each an instance: what they hold, who reads them and in which batches."""

    _in_memory = False

    def __init__(self) -> None:
        self._data = _core.FileData(self._in_memory)
        self._data.threads = 1
        self._data.batch_size = 1
        self._vars: List[Any] = []

    def set_batch_size(self, batch_size: int) -> None:
        """Instances of a batch."""
        self._data.batch_size = _positive("batch_size", batch_size)

    def set_thread(self, thread_num: int) -> None:
        """Threads that read, and that compute."""
        self._data.threads = _positive("thread_num", thread_num)

    def set_filelist(self, filelist: Sequence[str]) -> None:
        """The files to read."""
        self._data.files = [os.fspath(file) for file in filelist]

    def set_pipe_command(self, pipe_command: str) -> None:
        """A shell command through which each file goes; "cat" reads them as they are."""
        self._data.pipe_command = "" if pipe_command == "cat" else pipe_command

    def set_use_var(self, var_list: Sequence[Any]) -> None:
        """What a line holds, in its order; lod_level 0 is a fixed number of values."""
        for var in var_list:
            if var.dtype not in ("float32", "int64"):
                raise _core.ConfigError(f"use_var: '{var.name}' is {var.dtype}, expected float32 or "
                                        "int64")
        self._vars = list(var_list)

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> None:
        """Refused: files are read from folders."""
        if fs_name or fs_ugi:
            raise _core.ConfigError("set_hdfs_config: not supported; give files of a mounted folder")

    def compute_threads(self, asked: int = 0) -> int:
        """Computing threads: as many as asked for, at most one for each file and core."""
        wanted = asked or self._data.threads
        return max(1, min(wanted, len(self._data.files) or 1, os.cpu_count() or 1))

    def bound(self) -> Any:
        """The engine's side of it, which knows what its lines hold."""
        if not self._vars:
            raise _core.ConfigError("a data set needs set_use_var: what its lines hold")
        self._data.set_slots([_slot(var) for var in self._vars])
        return self._data


def _slot(var: Any):
    limits = [use.size for use in var.lookups if use.size]
    if var.lod_level == 0:
        width = int(np.prod([size for size in var.shape[1:]], dtype=np.int64))
        if width < 1:
            raise _core.ConfigError(f"use_var: '{var.name}' is {var.shape}, expected known sizes "
                                    "behind the batch, or lod_level=1")
    else:
        one_each = var.lookups and not all(use.pool for use in var.lookups)
        width = 1 if one_each else 0
    return var.name, var.dtype, width, min(limits) if limits else 0


def _positive(name: str, value: int) -> int:
    if int(value) < 1:
        raise _core.ConfigError(f"{name} is {value}, expected 1 or more")
    return int(value)


class QueueDataset(DatasetBase):
    """One pass over the files with bounded memory."""

    def init(self, batch_size: int = 1, thread_num: int = 1, use_var: Sequence[Any] = (),
             pipe_command: str = "cat", input_type: int = 0, fs_name: str = "", fs_ugi: str = "",
             download_cmd: str = "cat") -> None:
        """Everything at once."""
        if input_type != 0 or download_cmd != "cat":
            raise _core.ConfigError(f"init: input_type={input_type}, download_cmd={download_cmd!r}: "
                                    "expected 0 and 'cat'")
        self.set_batch_size(batch_size)
        self.set_thread(thread_num)
        self.set_pipe_command(pipe_command)
        self.set_hdfs_config(fs_name, fs_ugi)
        if use_var:
            self.set_use_var(use_var)

    def local_shuffle(self) -> None:
        """Raises: instances that stream by have no order to change."""
        raise NotImplementedError("a QueueDataset streams its files; use an InMemoryDataset")

    def global_shuffle(self, fleet: Any = None, thread_num: int = 12) -> None:
        """Raises: instances that stream by have no order to change."""
        raise NotImplementedError("a QueueDataset streams its files; use an InMemoryDataset")


class InMemoryDataset(QueueDataset):
    """All instances in memory: load once, shuffle, run many passes."""

    _in_memory = True

    def load_into_memory(self, is_shuffle: bool = False) -> None:
        """Reads the files."""
        self.bound().load()
        if is_shuffle:
            self.local_shuffle()

    def preload_into_memory(self, thread_num: Optional[int] = None) -> None:
        """Begins to read the files; wait_preload_done() ends it."""
        if thread_num is not None:
            self.set_thread(thread_num)
        self.bound().preload()

    def wait_preload_done(self) -> None:
        """Returns when all files are read."""
        self._data.wait_preload()

    def local_shuffle(self) -> None:
        """A new order."""
        self._data.shuffle(_seed())

    def global_shuffle(self, fleet: Any = None, thread_num: int = 12) -> None:
        """Spreads the instances of all workers over all of them by chance."""
        if fleet is None:
            return self.local_shuffle()
        _fleet_of(fleet).global_shuffle(self._data, 0)

    def release_memory(self) -> None:
        """Forgets all instances."""
        self._data.release()

    def get_memory_data_size(self, fleet: Any = None) -> int:
        """Instances in memory: of this worker, or of all."""
        size = self._data.size()
        return size if fleet is None else int(_fleet_of(fleet).all_reduce([size], "sum")[0])

    get_shuffle_data_size = get_memory_data_size

    def slots_shuffle(self, slots: Sequence[str]) -> None:
        """Refused."""
        raise _core.ConfigError("slots_shuffle is not supported")


def _seed() -> int:
    from argosy._creation import current_seed

    return current_seed() or random.getrandbits(31)


def _fleet_of(fleet: Any) -> Any:
    return getattr(fleet, "_core", None) or fleet.fleet._core


class DatasetFactory:
    """Makes data sets by name, as early releases did."""

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> DatasetBase:
        """QueueDataset or InMemoryDataset."""
        kinds = {"QueueDataset": QueueDataset, "InMemoryDataset": InMemoryDataset}
        if datafeed_class not in kinds:
            raise _core.ConfigError(f"no data set '{datafeed_class}', expected "
                                    f"{' or '.join(kinds)}")
        return kinds[datafeed_class]()
