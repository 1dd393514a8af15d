"""Gradients by Paddle's names."""

from paddle import _names

__getattr__, __dir__ = _names.lazy(__name__, names={"backward": "argosy._autograd:backward"})
