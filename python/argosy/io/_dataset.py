"""Data sets: by index, or one sample after the other."""

import bisect
import itertools
from typing import Any, Iterable, Iterator, List, Optional, Sequence

import numpy as np


class Dataset:
    """Samples by index: subclasses have __getitem__ and __len__.

    A class may also have _take(indices), which gives the arrays of a batch at once, as the default
    collate function would make them of its own __getitem__, or None where it cannot.
    """

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} is a Dataset without __getitem__")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} is a Dataset without __len__")


class IterableDataset(Dataset):
    """Samples one after the other: subclasses have __iter__."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} is iterable, but has no __iter__")

    def __getitem__(self, index: int) -> Any:
        raise RuntimeError(f"{type(self).__name__} is an IterableDataset: it has no samples by "
                           "index")

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} is an IterableDataset: it has no length")


def take(dataset: Any, indices: Sequence[int]) -> Optional[List[np.ndarray]]:
    """The batch by the data set's own short cut; None where a subclass made that one stale."""
    for kind in type(dataset).__mro__:
        if "_take" in vars(kind):
            return dataset._take(indices)
        if "__getitem__" in vars(kind):
            return None
    return None


def _array(tensor: Any) -> np.ndarray:
    return tensor.numpy() if hasattr(tensor, "numpy") else np.asarray(tensor)


class TensorDataset(Dataset):
    """Rows of arrays or tensors of the same length."""

    def __init__(self, tensors: Sequence[Any]):
        lengths = {len(tensor) for tensor in tensors}
        if len(lengths) != 1:
            raise ValueError(f"the tensors have {sorted(lengths)} rows, expected the same number")
        self.tensors = list(tensors)
        self._arrays = [_array(tensor) for tensor in tensors]

    def __getitem__(self, index: int) -> tuple:
        return tuple(array[index] for array in self._arrays)

    def __len__(self) -> int:
        return len(self._arrays[0])

    def _take(self, indices: Sequence[int]) -> List[np.ndarray]:
        return [array[indices] for array in self._arrays]


class ComposeDataset(Dataset):
    """Fields of several data sets of the same length, side by side."""

    def __init__(self, datasets: Sequence[Dataset]):
        self.datasets = list(datasets)
        lengths = {len(dataset) for dataset in self.datasets}
        if len(lengths) != 1:
            raise ValueError(f"the data sets have {sorted(lengths)} samples, expected one and the "
                             "same number")

    def __len__(self) -> int:
        return len(self.datasets[0])

    def __getitem__(self, index: int) -> tuple:
        fields: List[Any] = []
        for dataset in self.datasets:
            sample = dataset[index]
            fields.extend(sample if isinstance(sample, (list, tuple)) else [sample])
        return tuple(fields)


class ChainDataset(IterableDataset):
    """Iterable data sets, one behind the other."""

    def __init__(self, datasets: Iterable[IterableDataset]):
        self.datasets = list(datasets)
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise TypeError("ChainDataset takes IterableDatasets, got a "
                                f"{type(dataset).__name__}")

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)


class ConcatDataset(Dataset):
    """Data sets with samples by index, one behind the other."""

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset needs at least one data set")
        for dataset in self.datasets:
            if isinstance(dataset, IterableDataset):
                raise TypeError("ConcatDataset takes data sets with samples by index; ChainDataset "
                                "takes iterable ones")
        self.cumulative_sizes = list(itertools.accumulate(len(dataset)
                                                          for dataset in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"sample {index} of {size}")
        index %= size
        part = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[part][index - (self.cumulative_sizes[part - 1] if part else 0)]


class Subset(Dataset):
    """The samples of a data set at the given indices."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)

    def _take(self, indices: Sequence[int]) -> Optional[List[np.ndarray]]:
        return take(self.dataset, [self.indices[index] for index in indices])


def random_split(dataset: Dataset, lengths: Sequence[float], generator: Any = None) -> List[Subset]:
    """Subsets of the given lengths, or shares that sum up to 1, in a random order."""
    if generator is not None and not hasattr(generator, "permutation"):
        raise ValueError("generator is neither None nor a NumPy generator, expected one of them")
    total = len(dataset)
    if all(isinstance(length, float) for length in lengths) and abs(sum(lengths) - 1) < 1e-9:
        sizes = [int(total * share) for share in lengths]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
    else:
        sizes = [int(length) for length in lengths]
    if sum(sizes) != total:
        raise ValueError(f"the lengths {list(lengths)} sum up to {sum(sizes)}, expected the data "
                         f"set's {total}")
    order = (generator or np.random).permutation(total).tolist()
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - size:end]) for size, end in zip(sizes, ends)]
