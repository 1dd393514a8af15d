"""Samples to batches."""

import numbers
from collections.abc import Mapping, Sequence
from typing import Any, Callable

import numpy as np

from argosy import _mode


def default_collate_fn(batch: Sequence) -> Any:
    """One batch of a list of samples: numbers and arrays are stacked, field by field."""
    return _collate(batch, "")


def _collate(batch: Sequence, field: str) -> Any:
    first = batch[0]
    if hasattr(first, "numpy"):
        return _stack([sample.numpy() for sample in batch], field)
    if isinstance(first, np.ndarray):
        return _stack(batch, field)
    if isinstance(first, (numbers.Number, np.generic)):
        return np.array(batch)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: _collate([sample[key] for sample in batch], f"{field}['{key}']")
                for key in first}
    if isinstance(first, Sequence):
        width = len(first)
        for i, sample in enumerate(batch):
            if len(sample) != width:
                raise ValueError(f"sample {i} of the batch has {len(sample)} fields{_of(field)}, "
                                 f"the first has {width}")
        return [_collate(column, f"{field}[{i}]") for i, column in enumerate(zip(*batch))]
    raise TypeError(f"a sample{_of(field)} is a {type(first).__name__}, expected an array, a "
                    "tensor, a number, a text, or a list or dict of them; else give a collate_fn")


def _of(field: str) -> str:
    return f" in field {field}" if field else ""


def _stack(arrays: Sequence[np.ndarray], field: str) -> np.ndarray:
    shape = arrays[0].shape
    for i, array in enumerate(arrays):
        if array.shape != shape:
            raise ValueError(f"sample {i} of the batch has shape {list(array.shape)}{_of(field)}, "
                             f"the first has {list(shape)}; expected one shape, or a collate_fn "
                             "that pads")
    if not shape:
        return np.array(arrays)
    return np.concatenate(arrays).reshape((len(arrays),) + shape)  # quicker than np.stack


def default_convert_fn(sample: Any) -> Any:
    """A sample whose numbers are arrays; for a loader without batches."""
    if hasattr(sample, "numpy"):
        return sample.numpy()
    if isinstance(sample, (numbers.Number, np.generic)):
        return np.array(sample)
    if isinstance(sample, Mapping):
        return {key: default_convert_fn(value) for key, value in sample.items()}
    if isinstance(sample, Sequence) and not isinstance(sample, (str, bytes)):
        return [default_convert_fn(value) for value in sample]
    return sample


def values_of(batch: Any, own: bool) -> Any:
    """Arrays as the mode wants them: tensors in dynamic mode, arrays in static mode.

    own: nobody else has these arrays, so that tensors may take their memory.
    """
    if _mode.in_static_mode():
        return batch
    import argosy
    convert = argosy.from_numpy if own else argosy.to_tensor
    return _mapped(lambda value: convert(value) if isinstance(value, np.ndarray) else value, batch)


def arrays_of(batch: Any) -> Any:
    """A batch that can travel between processes: tensors become arrays."""
    return _mapped(lambda value: value.numpy() if hasattr(value, "numpy") else value, batch)


def _mapped(function: Callable, batch: Any) -> Any:
    if isinstance(batch, dict):
        return {key: _mapped(function, value) for key, value in batch.items()}
    if isinstance(batch, list):
        return [_mapped(function, value) for value in batch]
    if type(batch) is tuple:
        return tuple(_mapped(function, value) for value in batch)
    return function(batch)
