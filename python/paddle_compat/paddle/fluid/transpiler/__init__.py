"""Splitting a program for trainers and servers."""

from paddle import _names
from paddle.fluid.transpiler.distribute_transpiler import (DistributeTranspiler,
                                                           DistributeTranspilerConfig)

__all__ = ["DistributeTranspiler", "DistributeTranspilerConfig"]

__getattr__, __dir__ = _names.lazy(__name__)
