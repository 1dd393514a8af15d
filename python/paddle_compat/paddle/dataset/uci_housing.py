"""Prices of houses: samples are (13 scaled features, the price)."""

from typing import Any, Callable, Iterator

from argosy import samples
from paddle import _names

__getattr__, __dir__ = _names.lazy(__name__)

feature_names = ["CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO",
                 "B", "LSTAT"]


def train() -> Callable[[], Iterator[Any]]:
    """A reader of the first four fifths."""
    return _reader("train")


def test() -> Callable[[], Iterator[Any]]:
    """A reader of the last fifth."""
    return _reader("test")


def _reader(part: str) -> Callable[[], Iterator[Any]]:
    x, y = samples.housing(part)
    return lambda: zip(x, y)
