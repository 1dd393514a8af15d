"""Functions that make readers of readers."""

from argosy.reader import (buffered, cache, chain, compose, firstn, map_readers,  # noqa: F401
                           multiprocess_reader, shuffle, xmap_readers)
from paddle import _names

__getattr__, __dir__ = _names.lazy(__name__)
