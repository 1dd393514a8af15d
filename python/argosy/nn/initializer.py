"""First values of parameters."""

from argosy._initializers import (Assign, Constant, Initializer, KaimingNormal, KaimingUniform,
                                  Normal, TruncatedNormal, Uniform, XavierNormal, XavierUniform,
                                  calculate_gain, set_global_initializer)

__all__ = ["Assign", "Constant", "Initializer", "KaimingNormal", "KaimingUniform", "Normal",
           "TruncatedNormal", "Uniform", "XavierNormal", "XavierUniform", "calculate_gain",
           "set_global_initializer"]
