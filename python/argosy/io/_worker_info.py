"""What a data set can know about the process it is read in."""

from typing import Any, NamedTuple, Optional


class WorkerInfo(NamedTuple):
    """A worker of a DataLoader: its number, how many there are, its data set and its seed."""

    id: int
    num_workers: int
    dataset: Any
    seed: int


_current: Optional[WorkerInfo] = None


def get_worker_info() -> Optional[WorkerInfo]:
    """The worker that this process is; None outside of a DataLoader's workers."""
    return _current


def set_worker_info(info: WorkerInfo) -> None:
    """Says which worker this process is."""
    global _current
    _current = info
