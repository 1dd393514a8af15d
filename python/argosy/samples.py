"""Small data sets, read from the folder ARGOSY_DATA or generated; one line says which."""

import functools
import sys
from typing import Any, Tuple

import numpy as np

from argosy import _core


def mnist(part: str) -> Tuple[np.ndarray, np.ndarray]:
    """Pixels f32[n, 784] from 0 to 1 and digits i64[n, 1], of the part "train" or "test"."""
    arrays = _part(_mnist(_core.data_folder("mnist")), part)
    return arrays["x"], arrays["label"]


def housing(part: str) -> Tuple[np.ndarray, np.ndarray]:
    """Scaled features f32[n, 13] and prices f32[n, 1], of the part "train" or "test"."""
    arrays = _part(_housing(_core.data_folder("uci_housing")), part)
    return arrays["x"], arrays["y"]


def _part(samples: Any, part: str) -> Any:
    if part not in ("train", "test"):
        raise ValueError(f"the part of the data set is '{part}', expected train or test")
    return samples[0 if part == "train" else 1]


@functools.lru_cache(maxsize=1)
def _mnist(folder: str) -> Any:
    return _announced(_core.mnist_samples(folder))


@functools.lru_cache(maxsize=1)
def _housing(folder: str) -> Any:
    return _announced(_core.housing_samples(folder))


def _announced(samples: Any) -> Any:
    print(f"argosy: {samples[2]}", file=sys.stderr, flush=True)
    return samples
