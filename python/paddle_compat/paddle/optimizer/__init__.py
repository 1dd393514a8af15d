"""Optimizers by Paddle's names."""

from paddle import _names

__getattr__, __dir__ = _names.lazy(__name__, sources=["argosy.optimizer"])
