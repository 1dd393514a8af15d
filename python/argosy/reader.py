"""Readers, which are functions that give an iterator over samples, and what changes them."""

import itertools
import random
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Deque, Iterator, List, Sequence

from argosy.io import DataLoader, IterableDataset, get_worker_info
from argosy.io._prefetch import prefetched

Reader = Callable[[], Iterator[Any]]

__all__ = ["batch", "buffered", "cache", "chain", "compose", "firstn", "map_readers",
           "multiprocess_reader", "shuffle", "xmap_readers"]


def batch(reader: Reader, batch_size: int, drop_last: bool = False) -> Reader:
    """Lists of batch_size samples; the last one may be shorter unless drop_last."""
    if int(batch_size) <= 0:
        raise ValueError(f"batch_size is {batch_size}, expected a positive integer")

    def read() -> Iterator[List[Any]]:
        samples = iter(reader())
        while True:
            rows = list(itertools.islice(samples, int(batch_size)))
            if not rows or (drop_last and len(rows) < batch_size):
                return
            yield rows
    return read


def shuffle(reader: Reader, buf_size: int) -> Reader:
    """Samples in a random order within each buf_size of them; the seed of `random` decides."""
    def read() -> Iterator[Any]:
        samples = iter(reader())
        while True:
            buffer = list(itertools.islice(samples, buf_size))
            if not buffer:
                return
            random.shuffle(buffer)
            yield from buffer
    return read


def map_readers(func: Callable, *readers: Reader) -> Reader:
    """func of a sample of each reader."""
    return lambda: map(func, *(reader() for reader in readers))


def chain(*readers: Reader) -> Reader:
    """The samples of the readers, one behind the other."""
    return lambda: itertools.chain.from_iterable(reader() for reader in readers)


class ComposeNotAligned(ValueError):
    """Readers that are composed have different lengths."""


def compose(*readers: Reader, check_alignment: bool = True) -> Reader:
    """The fields of a sample of each reader, in one tuple."""
    end = object()

    def read() -> Iterator[tuple]:
        for row in itertools.zip_longest(*(reader() for reader in readers), fillvalue=end):
            if any(field is end for field in row):
                if check_alignment:
                    raise ComposeNotAligned("the readers have different numbers of samples")
                return
            yield tuple(itertools.chain.from_iterable(
                field if isinstance(field, tuple) else (field,) for field in row))
    return read


def buffered(reader: Reader, size: int) -> Reader:
    """Reads up to `size` samples ahead in a thread."""
    return lambda: prefetched(lambda: iter(reader()), size)


def firstn(reader: Reader, n: int) -> Reader:
    """The first n samples."""
    return lambda: itertools.islice(reader(), n)


def cache(reader: Reader) -> Reader:
    """Reads all samples at once, and gives them from memory from then on."""
    samples = tuple(reader())
    return lambda: iter(samples)


def xmap_readers(mapper: Callable, reader: Reader, process_num: int, buffer_size: int,
                 order: bool = False) -> Reader:
    """mapper of each sample, computed by process_num threads; in order, or as they get ready."""
    def in_order() -> Iterator[Any]:
        with ThreadPoolExecutor(process_num) as pool:
            waiting: Deque[Any] = deque()
            for sample in reader():
                waiting.append(pool.submit(mapper, sample))
                if len(waiting) >= buffer_size:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def as_ready() -> Iterator[Any]:
        samples, lock = iter(reader()), threading.Lock()

        def mapped() -> Iterator[Any]:
            while True:
                with lock:
                    sample = next(samples, end)
                if sample is end:
                    return
                yield mapper(sample)
        end = object()
        return _merged([mapped] * process_num, buffer_size)
    return in_order if order else as_ready


def _merged(sources: Sequence[Reader], size: int) -> Iterator[Any]:
    """The items of several sources, each read by a thread, as they come."""
    import queue
    items: "queue.Queue[Any]" = queue.Queue(maxsize=max(1, size))
    stop = threading.Event()

    def put(kind: str, value: Any) -> bool:
        while not stop.is_set():
            try:
                items.put((kind, value), timeout=0.2)
                return True
            except queue.Full:
                pass
        return False

    def run(source: Reader) -> None:
        try:
            for item in source():
                if not put("item", item):
                    return
            put("end", None)
        except BaseException as error:
            put("error", error)

    for source in sources:
        threading.Thread(target=run, args=(source,), daemon=True).start()
    running = len(sources)
    try:
        while running:
            kind, value = items.get()
            if kind == "error":
                raise value
            if kind == "end":
                running -= 1
            else:
                yield value
    finally:
        stop.set()


class _OfReaders(IterableDataset):
    """Worker number i reads readers i, i + workers and so on."""

    def __init__(self, readers: Sequence[Reader]):
        self.readers = list(readers)

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        for reader in self.readers[info.id::info.num_workers]:
            yield from reader()


def multiprocess_reader(readers: Sequence[Reader], use_pipe: bool = True,
                        queue_size: int = 1000) -> Reader:
    """The samples of all readers, each read by a process of its own, in turn."""
    if not readers:
        raise ValueError("multiprocess_reader needs at least one reader")
    if queue_size < 1:
        raise ValueError(f"queue_size is {queue_size}, expected 1 or more")
    ahead = max(1, queue_size // len(readers))
    loader = DataLoader(_OfReaders(readers), batch_size=None, num_workers=len(readers),
                        collate_fn=_as_it_is, use_shared_memory=not use_pipe,
                        prefetch_factor=min(ahead, 64))
    return loader._by_workers


def _as_it_is(sample: Any) -> Any:
    return sample
