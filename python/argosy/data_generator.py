"""Readers for pipe_command: lines of any text in, samples of slots out.

A sample is printed as for each slot, in order, its number of values and the values:

    class Reader(MultiSlotDataGenerator):
        def generate_sample(self, line):
            def samples():
                words = line.split()
                yield [("label", [int(words[0])]), ("ids", [int(word) for word in words[1:]])]
            return samples

    Reader().run_from_stdin()
"""

import sys
from itertools import islice
from typing import Any, Callable, Iterator, List, Optional, Sequence, TextIO, Tuple

__all__ = ["DataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]

Sample = Sequence[Tuple[str, Sequence[Any]]]


class DataGenerator:
    """Base of readers: subclasses have generate_sample, and may have generate_batch."""

    def __init__(self) -> None:
        self.batch_size_ = 32

    def set_batch(self, batch_size: int) -> None:
        """How many samples generate_batch gets at once; 32 if this is not called."""
        if not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"batch_size is {batch_size!r}, expected a positive integer")
        self.batch_size_ = batch_size

    def generate_sample(self, line: Optional[str]) -> Callable[[], Iterator[Sample]]:
        """A function that gives the samples of a line, each a list of (slot, values)."""
        raise NotImplementedError(f"{type(self).__name__} has no generate_sample, which a reader "
                                  "needs")

    def generate_batch(self, samples: List[Sample]) -> Callable[[], Iterator[Sample]]:
        """A function that gives samples again, after a look at batch_size of them."""
        return lambda: iter(samples)

    def run_from_stdin(self) -> None:
        """Reads lines from the standard input until it ends."""
        self._write((sample for line in sys.stdin for sample in self._samples(line)), sys.stdout)

    def run_from_memory(self) -> None:
        """Writes the samples that generate_sample(None) gives."""
        self._write(self._samples(None), sys.stdout)

    def _samples(self, line: Optional[str]) -> Iterator[Sample]:
        factory = self.generate_sample(line)
        if not callable(factory):
            raise TypeError(f"generate_sample of {type(self).__name__} gave a "
                            f"{type(factory).__name__}, expected a function that gives an iterator "
                            "over samples")
        for sample in factory():
            if sample is not None:
                yield sample

    def _write(self, samples: Iterator[Sample], out: TextIO) -> None:
        whole = type(self).generate_batch is DataGenerator.generate_batch
        while True:
            batch = list(islice(samples, self.batch_size_))
            if not batch:
                break
            out.write("".join(map(self._gen_str, batch if whole else self.generate_batch(batch)())))
        out.flush()

    def _gen_str(self, sample: Sample) -> str:
        raise NotImplementedError(f"{type(self).__name__} does not say how samples are printed; "
                                  "derive from MultiSlotDataGenerator or "
                                  "MultiSlotStringDataGenerator")


def _check_sample(sample: Any) -> None:
    if not isinstance(sample, (list, tuple)):
        raise ValueError("the output of process() must be in list or tuple type, got a "
                         f"{type(sample).__name__}: a sample is a list of (slot, values); zip() "
                         "needs list() around it")


class MultiSlotDataGenerator(DataGenerator):
    """Values are integers and floats; samples have the same slots in the same order, none empty."""

    def __init__(self) -> None:
        super().__init__()
        self._slots: Optional[List[str]] = None
        self._floats: List[bool] = []

    def _gen_str(self, sample: Sample) -> str:
        _check_sample(sample)
        if self._slots is None:
            self._learn(sample)
        elif len(sample) != len(self._slots):
            raise ValueError(f"a sample has {len(sample)} slots, the first had {len(self._slots)}: "
                             f"{', '.join(self._slots)}")
        parts: List[str] = []
        for i, (name, values) in enumerate(sample):
            if name != self._slots[i]:
                raise ValueError(f"slot {i} is '{name}', the first sample had '{self._slots[i]}' "
                                 "there")
            if not values:
                raise ValueError(f"slot '{name}' has no values, expected at least one: pad it, "
                                 "with 0 for instance")
            kinds = set(map(type, values))
            if kinds != {int} and not self._floats[i]:
                self._check_values(i, name, values)
            elif not kinds <= {int, float}:
                self._check_values(i, name, values)
            parts.append(str(len(values)))
            parts.extend(map(str, values))
        return " ".join(parts) + "\n"

    def _learn(self, sample: Sample) -> None:
        """The first sample says which slots there are."""
        for entry in sample:
            if not isinstance(entry, (list, tuple)) or len(entry) != 2:
                raise ValueError(f"a sample holds {entry!r}, expected (slot, values)")
            name, values = entry
            if not isinstance(name, str):
                raise ValueError(f"the name of a slot is {name!r}, expected a text")
            if not isinstance(values, (list, tuple)):
                raise ValueError(f"slot '{name}' has a {type(values).__name__}, expected a list of "
                                 "values")
        self._slots = [name for name, _ in sample]
        self._floats = [any(_is_float(value) for value in values) for _, values in sample]

    def _check_values(self, slot: int, name: str, values: Sequence[Any]) -> None:
        for value in values:
            if _is_float(value):
                self._floats[slot] = True
            elif isinstance(value, bool) or not hasattr(type(value), "__index__"):
                raise ValueError(f"slot '{name}' has {value!r} of type {type(value).__name__}, "
                                 "expected an integer or a float")


def _is_float(value: Any) -> bool:
    return isinstance(value, float) or type(value).__name__ in ("float32", "float16")


class MultiSlotStringDataGenerator(DataGenerator):
    """Values are texts, printed as they are: quicker, and without a look at them."""

    def _gen_str(self, sample: Sample) -> str:
        _check_sample(sample)
        return " ".join([f"{len(values)} {' '.join(values)}" for _, values in sample]) + "\n"
