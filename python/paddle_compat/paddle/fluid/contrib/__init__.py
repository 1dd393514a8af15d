"""Layers that came late to the 1.x releases."""

from argosy.static.nn import sparse_embedding
from paddle import _names

__all__ = ["sparse_embedding"]

__getattr__, __dir__ = _names.lazy(__name__, names={"layers": "paddle.fluid.contrib"})
