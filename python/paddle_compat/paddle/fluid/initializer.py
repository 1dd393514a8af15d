"""First values of parameters by their 1.x names."""

from argosy.nn.initializer import Constant, Normal, TruncatedNormal, Uniform, XavierNormal, XavierUniform
from paddle import _names

__all__ = ["Constant", "ConstantInitializer", "MSRA", "Normal", "NormalInitializer",
           "NumpyArrayInitializer", "TruncatedNormal", "TruncatedNormalInitializer", "Uniform",
           "UniformInitializer", "Xavier", "XavierInitializer"]

ConstantInitializer, UniformInitializer = Constant, Uniform


class NormalInitializer(Normal):
    """A normal distribution."""

    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0):
        super().__init__(loc, scale)


class TruncatedNormalInitializer(TruncatedNormal):
    """A normal distribution without its tails."""

    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0):
        super().__init__(loc, scale)


Normal, TruncatedNormal = NormalInitializer, TruncatedNormalInitializer


def Xavier(uniform: bool = True, fan_in=None, fan_out=None, seed: int = 0):
    """By the sizes of the layer."""
    kind = XavierUniform if uniform else XavierNormal
    return kind(fan_in=fan_in, fan_out=fan_out)


XavierInitializer = Xavier

__getattr__, __dir__ = _names.lazy(__name__, names={
    "NumpyArrayInitializer": "argosy.nn.initializer:Assign",
    "MSRA": "argosy.nn.initializer:KaimingNormal",
    "MSRAInitializer": "argosy.nn.initializer:KaimingNormal"})
