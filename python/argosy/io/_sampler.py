"""The order in which samples are read."""

import os
from typing import Any, Iterable, Iterator, List, Optional, Sequence

import numpy as np

from argosy.io._dataset import IterableDataset


class Sampler:
    """Indices of a data set, in an order that a subclass's __iter__ says."""

    def __init__(self, data_source: Any = None):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__, which a Sampler needs")


class SequenceSampler(Sampler):
    """0, 1, 2 and so on."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """A random order, which NumPy's seed decides; with replacement or without."""

    def __init__(self, data_source: Any, replacement: bool = False,
                 num_samples: Optional[int] = None, generator: Any = None):
        super().__init__(data_source)
        if num_samples is not None and num_samples <= 0:
            raise ValueError(f"num_samples is {num_samples}, expected a positive number")
        if not replacement and generator is None and (num_samples or 0) > len(data_source):
            raise ValueError(f"num_samples is {num_samples}, more than the {len(data_source)} "
                             "samples without replacement")
        self.replacement = replacement
        self.generator = generator
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """How many indices one pass gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        if self.generator is not None:
            return self._from_generator()
        size = len(self.data_source)
        if self.replacement:
            return iter(np.random.randint(0, size, self.num_samples).tolist())
        return iter(np.random.permutation(size)[:self.num_samples].tolist())

    def _from_generator(self) -> Iterator[int]:
        for _, index in zip(range(self.num_samples), self.generator):
            yield index

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in a random order."""

    def __init__(self, indices: Sequence[int]):
        if len(indices) == 0:
            raise ValueError("SubsetRandomSampler needs at least one index")
        super().__init__()
        self.indices = indices

    def __iter__(self) -> Iterator[int]:
        return (self.indices[i] for i in np.random.permutation(len(self.indices)).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Random indices, each as likely as its weight says."""

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True):
        super().__init__()
        weights = np.asarray(weights.numpy() if hasattr(weights, "numpy") else weights,
                             dtype=np.float64)
        if weights.ndim != 1 or (weights < 0).any() or not weights.sum() > 0:
            raise ValueError(f"weights of shape {list(weights.shape)}, expected one row of numbers "
                             ">= 0 with a sum > 0")
        if num_samples <= 0 or (not replacement and num_samples > np.count_nonzero(weights)):
            raise ValueError(f"num_samples is {num_samples}, expected 1 to "
                             f"{np.count_nonzero(weights)} without replacement")
        self.weights = weights
        self.num_samples = num_samples
        self.replacement = replacement

    def __iter__(self) -> Iterator[int]:
        shares = self.weights / self.weights.sum()
        return iter(np.random.choice(len(shares), self.num_samples, self.replacement,
                                     shares).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of batch_size indices, of a data set in order or shuffled, or of another sampler."""

    def __init__(self, dataset: Any = None, sampler: Optional[Iterable[int]] = None,
                 shuffle: bool = False, batch_size: int = 1, drop_last: bool = False):
        super().__init__(dataset)
        if (dataset is None) == (sampler is None):
            raise ValueError("BatchSampler takes either dataset or sampler, and not both")
        if isinstance(dataset, IterableDataset):
            raise ValueError("BatchSampler takes a data set with samples by index, got an "
                             "IterableDataset")
        if sampler is not None and shuffle:
            raise ValueError("shuffle=True has no effect with a sampler, which says the order")
        if not isinstance(batch_size, (int, np.integer)) or batch_size <= 0:
            raise ValueError(f"batch_size is {batch_size!r}, expected a positive integer")
        if sampler is None:
            sampler = RandomSampler(dataset) if shuffle else SequenceSampler(dataset)
        self.sampler = sampler
        self.shuffle = bool(shuffle)
        self.batch_size = int(batch_size)
        self.drop_last = bool(drop_last)

    def __iter__(self) -> Iterator[List[int]]:
        return _batches(iter(self.sampler), self.batch_size, self.drop_last)

    def __len__(self) -> int:
        rest = 0 if self.drop_last else self.batch_size - 1
        return (len(self.sampler) + rest) // self.batch_size


def _batches(indices: Iterator[int], size: int, drop_last: bool) -> Iterator[List[int]]:
    steps = range(size)
    while True:
        batch = [index for _, index in zip(steps, indices)]
        if not batch or (drop_last and len(batch) < size):
            return
        yield batch


class DistributedBatchSampler(BatchSampler):
    """The part of the batches that one of several ranks reads; all ranks shuffle alike."""

    def __init__(self, dataset: Any, batch_size: int, num_replicas: Optional[int] = None,
                 rank: Optional[int] = None, shuffle: bool = False, drop_last: bool = False):
        super().__init__(dataset, shuffle=False, batch_size=batch_size, drop_last=drop_last)
        self.dataset = dataset
        self.shuffle = bool(shuffle)
        self.nranks = _given(num_replicas, "PADDLE_TRAINERS_NUM", 1)
        self.local_rank = _given(rank, "PADDLE_TRAINER_ID", 0)
        if not 0 <= self.local_rank < self.nranks:
            raise ValueError(f"rank is {self.local_rank} of {self.nranks}, expected 0 to "
                             f"{self.nranks - 1}")
        self.epoch = 0
        self.num_samples = -(-len(dataset) // self.nranks)
        self.total_size = self.num_samples * self.nranks

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next pass; the same number gives the same order."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[List[int]]:
        order = np.arange(len(self.dataset))
        if self.shuffle:
            np.random.RandomState(self.epoch).shuffle(order)
            self.epoch += 1
        order = np.resize(order, self.total_size)  # all ranks have as many
        return _batches(iter(self._own(order)), self.batch_size, self.drop_last)

    def _own(self, order: np.ndarray) -> List[int]:
        """Whole batches in turn, then an even share of what is left."""
        size = self.batch_size
        whole = self.total_size // (size * self.nranks) * (size * self.nranks)
        batches = order[:whole].reshape(-1, self.nranks, size)[:, self.local_rank].ravel()
        left = order[whole:].reshape(self.nranks, -1)[self.local_rank]
        return np.concatenate([batches, left]).tolist()

    def __len__(self) -> int:
        rest = 0 if self.drop_last else self.batch_size - 1
        return (self.num_samples + rest) // self.batch_size


def _given(number: Optional[int], name: str, default: int) -> int:
    """A number, or that of the environment where it is None."""
    if number is not None:
        return number
    value = os.environ.get(name, "") or str(default)
    if not value.isdigit():
        raise ValueError(f"{name} is '{value}', expected a number")
    return int(value)
