"""Batches of a data set."""

from typing import Any, Callable, Iterator, Optional, Sequence

from argosy.io._collate import values_of
from argosy.io._dataset import Dataset, IterableDataset, take
from argosy.io._generator_loader import GeneratorLoader, feed_names, shaped
from argosy.io._prefetch import prefetched
from argosy.io._sampler import BatchSampler
from argosy.io._tasks import batch_maker, stream
from argosy.io._workers import Workers

_AHEAD = 2  # batches that use_buffer_reader keeps ready


class DataLoader:
    """Iterates over the batches of a data set, made in this process or by num_workers others.

    Every process that iterates gets all samples: ranks are told apart by a DistributedBatchSampler.
    In dynamic mode batches are lists of tensors. In static mode they are lists of arrays, or with
    return_list=False dicts by the names of feed_list; a list of one such dict where places is one.
    """

    def __init__(self, dataset: Dataset, feed_list: Optional[Sequence[Any]] = None,
                 places: Any = None, return_list: bool = True,
                 batch_sampler: Optional[BatchSampler] = None, batch_size: Optional[int] = 1,
                 shuffle: bool = False, drop_last: bool = False,
                 collate_fn: Optional[Callable] = None, num_workers: int = 0,
                 use_buffer_reader: bool = True, prefetch_factor: int = 2,
                 use_shared_memory: bool = True, timeout: float = 0,
                 worker_init_fn: Optional[Callable[[int], Any]] = None,
                 persistent_workers: bool = False):
        _check(num_workers >= 0, f"num_workers is {num_workers}, expected 0 or more")
        _check(timeout >= 0, f"timeout is {timeout}, expected seconds, or 0 to wait for ever")
        _check(num_workers > 0 or worker_init_fn is None,
               "worker_init_fn has no effect with num_workers=0")
        _check(num_workers > 0 or not persistent_workers,
               "persistent_workers=True has no effect with num_workers=0")
        _check(prefetch_factor >= 1, f"prefetch_factor is {prefetch_factor}, expected 1 or more")
        _check(return_list or feed_list is not None,
               "return_list=False gives dicts, which needs a feed_list")
        self.dataset = dataset
        self.feed_list = feed_list
        self.places = places
        self.return_list = return_list
        self.collate_fn = collate_fn
        self.num_workers = num_workers
        self.use_buffer_reader = use_buffer_reader
        self.prefetch_factor = prefetch_factor
        self.use_shared_memory = use_shared_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.persistent_workers = persistent_workers
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.batch_sampler = self._sampler(batch_sampler, shuffle)
        self._iterable = isinstance(dataset, IterableDataset)
        self._names = feed_names(feed_list)
        self._idle: Optional[Workers] = None  # persistent workers between two passes

    @staticmethod
    def from_generator(feed_list: Optional[Sequence[Any]] = None, capacity: Optional[int] = None,
                       use_double_buffer: bool = True, iterable: bool = True,
                       return_list: bool = False, use_multiprocess: bool = False,
                       drop_last: bool = True) -> GeneratorLoader:
        """A loader of batches that a function makes; one of its set_ functions names that."""
        return GeneratorLoader(feed_list, capacity, use_double_buffer, iterable, return_list,
                               use_multiprocess, drop_last)

    def __iter__(self) -> Iterator[Any]:
        source: Callable[[], Iterator[Any]] = self._by_workers if self.num_workers else self._here
        if self.use_buffer_reader and not self._is_immediate():
            batches = prefetched(source, _AHEAD)
        else:
            batches = source()
        own = self.num_workers > 0 or (self.collate_fn is None and self.batch_size is not None)
        for batch in batches:
            yield shaped(values_of(batch, own), self._names, self.return_list, self.places)

    __call__ = __iter__

    def __len__(self) -> int:
        if self._iterable:
            raise TypeError("a DataLoader of an IterableDataset has no length")
        return len(self.dataset) if self.batch_sampler is None else len(self.batch_sampler)

    def _sampler(self, given: Optional[BatchSampler], shuffle: bool) -> Optional[BatchSampler]:
        if isinstance(self.dataset, IterableDataset):
            _check(given is None, "an IterableDataset has no indices, so it takes no batch_sampler")
            _check(not shuffle, "an IterableDataset says its own order: shuffle=True cannot be had")
            return None
        if given is not None:
            _check(self.batch_size == 1 and not shuffle and not self.drop_last,
                   "a batch_sampler says batch_size, shuffle and drop_last itself; they must not "
                   "be given too")
            self.batch_size = getattr(given, "batch_size", 1)
            return given
        if self.batch_size is None:
            _check(not shuffle and not self.drop_last, "batch_size=None gives single samples in "
                   "order, without shuffle and drop_last")
            return None
        return BatchSampler(self.dataset, shuffle=shuffle, batch_size=self.batch_size,
                            drop_last=self.drop_last)

    def _is_immediate(self) -> bool:
        """Whether batches are cut out of arrays in memory, which a thread would only delay."""
        return (self.num_workers == 0 and self.collate_fn is None and self.batch_sampler is not None
                and len(self.dataset) > 0 and take(self.dataset, [0]) is not None)

    def _tasks(self) -> Optional[Iterator[Any]]:
        if self._iterable:
            return None
        return iter(range(len(self.dataset)) if self.batch_sampler is None else self.batch_sampler)

    def _here(self) -> Iterator[Any]:
        if self._iterable:
            return stream(self.dataset, self.collate_fn, self.batch_size, self.drop_last)
        return map(batch_maker(self.dataset, self.collate_fn, self.batch_sampler is not None),
                   self._tasks())

    def _by_workers(self) -> Iterator[Any]:
        # A pass has the workers for itself; one that begins before it has ended gets new ones.
        workers, self._idle = self._idle, None
        if workers is None:
            workers = Workers(self._job(), self.num_workers, self.prefetch_factor, self.timeout)
        usable = False
        try:
            yield from workers.batches(self._tasks(), self.persistent_workers)
            usable = True
        except GeneratorExit:
            usable = True
            raise
        finally:
            if usable and self.persistent_workers and self._idle is None:
                self._idle = workers
            else:
                workers.close()

    def _job(self) -> "dict[str, Any]":
        return {"dataset": self.dataset, "collate": self.collate_fn, "iterable": self._iterable,
                "batch_size": self.batch_size, "drop_last": self.drop_last,
                "init": self.worker_init_fn, "shared_memory": self.use_shared_memory}


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
