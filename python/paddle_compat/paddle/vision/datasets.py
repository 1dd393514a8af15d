"""Data sets of images."""

from argosy.vision.datasets import *  # noqa: F401,F403
from paddle import _names

__getattr__, __dir__ = _names.lazy(__name__)
