"""Handwritten digits: samples are (784 pixels from -1 to 1, the digit)."""

from typing import Any, Callable, Iterator

from argosy import samples
from paddle import _names

__getattr__, __dir__ = _names.lazy(__name__)


def train() -> Callable[[], Iterator[Any]]:
    """A reader of the images to train with."""
    return _reader("train")


def test() -> Callable[[], Iterator[Any]]:
    """A reader of the images to test with."""
    return _reader("test")


def _reader(part: str) -> Callable[[], Iterator[Any]]:
    images, labels = samples.mnist(part)

    def read() -> Iterator[Any]:
        for image, label in zip(images, labels[:, 0].tolist()):
            yield image * 2 - 1, label
    return read
