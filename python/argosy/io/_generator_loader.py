"""Batches of reader functions, as scripts before 2.0 write them."""

from typing import Any, Callable, Iterator, List, Optional, Sequence

import numpy as np

from argosy.io._collate import values_of
from argosy.io._prefetch import prefetched


def feed_names(feed_list: Optional[Sequence[Any]]) -> Optional[List[str]]:
    """The names that a list of variables or of names stands for."""
    if feed_list is None:
        return None
    return [entry if isinstance(entry, str) else entry.name for entry in feed_list]


def shaped(batch: Any, names: Optional[List[str]], return_list: bool, places: Any) -> Any:
    """A batch as the loader was asked to give it: a list, a dict, or a list of a dict."""
    if return_list:
        return batch
    if isinstance(batch, dict):
        feed = {name: batch[name] for name in names}
    else:
        fields = batch if isinstance(batch, (list, tuple)) else [batch]
        if len(fields) != len(names):
            raise ValueError(f"a batch has {len(fields)} fields, but the feed_list has "
                             f"{len(names)} names: {', '.join(names)}")
        feed = dict(zip(names, fields))
    return [feed] if isinstance(places, (list, tuple)) else feed


class GeneratorLoader:
    """What DataLoader.from_generator makes."""

    def __init__(self, feed_list: Optional[Sequence[Any]], capacity: Optional[int],
                 use_double_buffer: bool, iterable: bool, return_list: bool, use_multiprocess: bool,
                 drop_last: bool):
        if not iterable:
            raise ValueError("iterable=False is not supported: iterate over the loader and feed "
                             "what it gives")
        if use_multiprocess:
            raise ValueError("use_multiprocess=True is not supported: use DataLoader(dataset, "
                             "num_workers=...)")
        if not return_list and feed_list is None:
            raise ValueError("return_list=False gives dicts, which needs a feed_list")
        if capacity is not None and capacity < 1:
            raise ValueError(f"capacity is {capacity}, expected 1 or more")
        self._feed_list = feed_list
        self._names = feed_names(feed_list)
        self._ahead = capacity or 2
        self._prefetch = use_double_buffer
        self._return_list = return_list
        self._places: Any = None
        self._reader: Optional[Callable[[], Iterator[Any]]] = None

    def set_sample_generator(self, reader: Callable[[], Iterator[Any]], batch_size: int,
                             drop_last: bool = True, places: Any = None) -> "GeneratorLoader":
        """The reader gives samples; batch_size of them make a batch."""
        if batch_size <= 0:
            raise ValueError(f"batch_size is {batch_size}, expected a positive integer")

        def batches() -> Iterator[Any]:
            rows: List[Any] = []
            for sample in reader():
                rows.append(sample if isinstance(sample, (list, tuple)) else (sample,))
                if len(rows) == batch_size:
                    yield rows
                    rows = []
            if rows and not drop_last:
                yield rows
        return self.set_sample_list_generator(batches, places)

    def set_sample_list_generator(self, reader: Callable[[], Iterator[Any]],
                                  places: Any = None) -> "GeneratorLoader":
        """The reader gives lists of samples, each a batch."""
        return self.set_batch_generator(lambda: map(self._columns, reader()), places)

    def set_batch_generator(self, reader: Callable[[], Iterator[Any]],
                            places: Any = None) -> "GeneratorLoader":
        """The reader gives the arrays of batches."""
        self._reader = reader
        self._places = places
        return self

    def __iter__(self) -> Iterator[Any]:
        if self._reader is None:
            raise RuntimeError("the loader has no reader yet: call set_sample_generator, "
                               "set_sample_list_generator or set_batch_generator")
        batches = prefetched(self._arrays, self._ahead) if self._prefetch else self._arrays()
        for batch in batches:
            yield shaped(values_of(batch, own=False), self._names, self._return_list, self._places)

    __call__ = __iter__

    def _arrays(self) -> Iterator[Any]:
        for batch in self._reader():
            if isinstance(batch, dict):
                yield batch
                continue
            fields = batch if isinstance(batch, (list, tuple)) else [batch]
            yield [field.numpy() if hasattr(field, "numpy") else np.asarray(field)
                   for field in fields]

    def _columns(self, rows: Sequence[Any]) -> List[np.ndarray]:
        rows = [row if isinstance(row, (list, tuple)) else (row,) for row in rows]
        variables: Sequence[Any] = self._feed_list or [None] * len(rows[0])
        if len(variables) != len(rows[0]):
            raise ValueError(f"a sample has {len(rows[0])} fields, but the feed_list has "
                             f"{len(variables)} names: {', '.join(self._names)}")
        return [_column(column, variable) for column, variable in zip(zip(*rows), variables)]


def _column(values: Sequence[Any], variable: Any) -> np.ndarray:
    """One field of all samples, of the variable's type and shape where one is known."""
    name = getattr(variable, "name", variable)
    try:
        array = np.array(values, dtype=getattr(variable, "dtype", None))
    except ValueError:
        shapes = sorted({str(list(np.shape(value))) for value in values})
        raise ValueError(f"samples of '{name}' have shapes {', '.join(shapes)}, expected one shape "
                         "in a batch") from None
    shape = list(getattr(variable, "shape", array.shape))[1:]
    if shape == list(array.shape[1:]):
        return array
    try:
        return array.reshape([len(values)] + shape)
    except ValueError:
        raise ValueError(f"samples of '{name}' have shape {list(array.shape[1:])}, expected "
                         f"{shape}") from None
