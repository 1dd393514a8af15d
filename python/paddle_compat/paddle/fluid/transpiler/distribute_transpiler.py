"""DistributeTranspiler: the same program for trainers, and what servers hold of it."""

from argosy.fleet.transpiler import DistributeTranspiler, DistributeTranspilerConfig
from paddle import _names

__all__ = ["DistributeTranspiler", "DistributeTranspilerConfig"]

__getattr__, __dir__ = _names.lazy(__name__)
